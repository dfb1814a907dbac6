/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.rta.AnalysisDescription.Origin;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AnalysesTest {
    /** Columns of sweeps on disk are compared with this list: another order would discard them. */
    @Test
    void shouldSweepTheAnalysesOfTheFiguresInTheOrderOfTheirColumns() {
        assertEquals(List.of("tsg-rr-busy", "tsg-rr-suspend", "gcaps-busy", "gcaps-suspend", "gcaps-window-busy",
            "gcaps-window-suspend", "gcaps-boost-busy", "gcaps-boost-suspend", "mpcp-busy", "mpcp-suspend",
            "fmlp-busy", "fmlp-suspend"), Analyses.inFigures().stream().map(Analysis::name).toList());
    }

    @Test
    void shouldNameTheModeAndClaimSoundnessForProofsOfThisProjectOnly() {
        for (final Analysis analysis : Analyses.all()) {
            final AnalysisDescription row = analysis.description();
            assertSame(row, Analyses.describe(row.name()));
            assertTrue(("-" + row.name() + "-").contains("-" + row.mode().word() + "-"), row.name());
            assertTrue(row.claim() != Analysis.Claim.SOUND || row.origin() == Origin.OURS, row.name());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"partition-fp-suspend", "partition-edf-fp-suspend", "partition-edf-edf-suspend"})
    void shouldDescribeWhatNeedsATableButNotGiveItByName(final String name) {
        assertEquals(name, Analyses.describe(name).name());
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Analyses.get(name)).getMessage()
            .contains("--policy-file"));
    }

    @Test
    void shouldRefuseToDescribeWhatDoesNotExistWithTheNamesThatDo() {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Analyses.describe("gcaps")).getMessage()
            .contains("known are tsg-rr-busy, "));
    }

    @Test
    void shouldDocumentEveryModel() throws IOException {
        final String readme = Files.readString(Path.of(System.getProperty("gpuseg.root"), "analysis/README.md"));
        for (final Analysis analysis : Analyses.all()) {
            final String family = analysis.name().replaceFirst("-(suspend|busy).*", "");
            assertTrue(readme.contains("`" + family + "-"), analysis.name());
        }
    }
}

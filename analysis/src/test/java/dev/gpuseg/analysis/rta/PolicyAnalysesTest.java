/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sweep.Claim;
import dev.gpuseg.core.PolicyAnalysis;
import dev.gpuseg.core.PolicyAnalysis.Waiting;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The names of analyses in the catalogue of policies, of which the core knows no more. */
class PolicyAnalysesTest {
    @Test
    void shouldNameAnalysesThatExistAndWaitAsTheCatalogueSays() {
        for (final PolicyDescription row : PolicyCatalog.builtIn().all()) {
            for (final PolicyAnalysis a : row.analyses()) {
                final AnalysisDescription found = Analyses.describe(a.name());
                assertEquals(Analysis.Claim.SOUND, found.claim(), a.name());
                assertEquals(a.waiting() == Waiting.BUSY ? WaitMode.BUSY : WaitMode.SUSPEND, found.mode(), a.name());
            }
        }
    }

    /** Each analysis for which the soundness campaign claims that no response passes its bound is on some row. */
    @Test
    void shouldNameEveryAnalysisThatTheSimulatorIsHeldTo() {
        final Set<String> named = new TreeSet<>();
        PolicyCatalog.builtIn().all().forEach(row -> row.analyses().forEach(a -> named.add(a.name())));
        final Set<String> claimed = new TreeSet<>();
        Stream.of(Claim.all(), Claim.partitions(), Claim.turns()).flatMap(List::stream).filter(Claim::claimed)
            .forEach(c -> claimed.add(c.analysis().name()));
        // spinning threads may be boosted only while their window has the GPU, which the daemon does not offer
        assertTrue(claimed.remove("gcaps-boost-busy"));
        assertEquals(claimed, named);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.rta.Analysis;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class AcceptanceSweepTest {
    /** What the documents say of 2,160 sets: the boost and the count by windows gain back what soundness cost. */
    @Test
    void shouldAcceptMoreOfThePublishedSetsWithASoundBoundThanThePublishedBoundDoes(@TempDir final Path directory)
        throws Exception {
        final SetCounter counter = new ThreadCounter(2);
        final AcceptanceSweep sweep = new AcceptanceSweep(1, 120, directory, counter);
        assertEquals(2_160, sweep.totalSets());
        final long[] counts = sweep.run(new Progress(null, "sets", sweep.totalSets()));
        counter.close();
        final Map<String, Long> accepted = new HashMap<>();
        final List<Analysis> analyses = AcceptanceSweep.analyses();
        for (int a = 0; a < counts.length; a++) {
            accepted.put(analyses.get(a).name(), counts[a]);
        }
        assertEquals(1_293, accepted.get("gcaps-suspend"));
        assertTrue(accepted.get("gcaps-boost-tight-suspend") >= 1_300, accepted::toString);
        assertTrue(accepted.get("edf-boost-suspend") >= 1_100, accepted::toString);
        assertTrue(accepted.get("gcaps-boost-tight-suspend") > accepted.get("gcaps-boost-suspend"));
        assertTrue(accepted.get("gcaps-boost-suspend") > accepted.get("gcaps-window-suspend"));
        final List<String> lines = Files.readAllLines(directory.resolve("accepted.csv"));
        assertEquals(20, lines.size());
        assertTrue(lines.get(19).startsWith("all 2160,2160,") && lines.get(19).contains(",1293,"), lines.get(19));
    }

    /** What docs/turns.md says of 300 sets: turns accept what slow updates refuse, and do not depend on them. */
    @Test
    void shouldAcceptByTurnsWhatSlowUpdatesRefuse(@TempDir final Path directory) throws Exception {
        final SetCounter counter = new ThreadCounter(2);
        final TurnAcceptance sweep = new TurnAcceptance(1, 300, directory, counter);
        assertEquals(1_200, sweep.totalSets());
        sweep.run(new Progress(null, "sets", sweep.totalSets()));
        counter.close();
        final List<String> lines = Files.readAllLines(directory.resolve("turns.csv"));
        assertEquals(List.of("200us,300,225,265,120,87,89,59,265", "800us,300,88,116,120,87,89,59,132",
            "3.4ms,300,16,19,120,87,89,59,120", "55ms,300,1,1,120,87,89,59,120"), lines.subList(1, 5));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class DriftTest {
    private static Figures.OfRecording row(final String robot, final String version, final int i, final long ns) {
        return new Figures.OfRecording(robot + version + i, robot, version, "camera", 50, 0, 10, 10, 0, ns, ns, ns);
    }

    private static Drift.Compared p99(final List<Figures.OfRecording> rows) {
        return Drift.of(rows, "1", "2").compared().get(1);
    }

    /** Robots differ by far more than versions do. */
    private static List<Figures.OfRecording> fleet(final double factor, final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final List<Figures.OfRecording> rows = new ArrayList<>();
        for (int robot = 0; robot < 6; robot++) {
            for (int i = 0; i < 12; i++) {
                for (int version = 1; version <= 2; version++) {
                    rows.add(row("r" + robot, "" + version, i, (long) ((1 + robot) * 1_000_000 * (version == 2 ? factor
                        : 1) * (0.9 + 0.2 * random.nextDouble()))));
                }
            }
        }
        return rows;
    }

    @Test
    void shouldFindASlowerVersionAmongRobotsThatDifferMore() {
        final Drift.Compared found = p99(fleet(1.08, 1));
        assertEquals(Drift.Verdict.SLOWER, found.verdict());
        assertTrue(found.byRobot() && found.robots() == 6 && found.nBefore() == 72, found::toString);
        assertTrue(found.ratioLow() > 1 && found.ratioLow() < 1.08 && found.ratioHigh() > 1.06, found::toString);
        assertEquals(Drift.Verdict.FASTER, p99(fleet(0.92, 2)).verdict());
    }

    /** 100 fleets without a difference: the level is kept, with room for chance. */
    @Test
    void shouldRarelyFindADifferenceWhereThereIsNone() {
        int found = 0;
        for (int seed = 0; seed < 100; seed++) {
            found += Drift.of(fleet(1, 100 + seed), "1", "2").compared().stream()
                .anyMatch(c -> c.verdict() != Drift.Verdict.NO_DIFFERENCE) ? 1 : 0;
        }
        assertTrue(found <= 12, found + " of 100");
    }

    /** Known answer: 1..4 against 5..8, Wilcoxon's W = 26, mean 18, variance 12: z = 8 / sqrt(12), p = 0.0209. */
    @Test
    void shouldBeWilcoxonsTestWhereOneRobotRanBoth() {
        final List<Figures.OfRecording> rows = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            rows.add(row("a", "1", i, 100 + i));
            rows.add(row("a", "2", i, 104 + i));
        }
        final Drift.Compared found = p99(rows);
        assertEquals(0.0209, found.p(), 0.0001);
        // two measures of the same values: Holm doubles the smaller one
        assertEquals(2 * found.p(), found.adjusted(), 1e-12);
        assertEquals(Drift.Verdict.SLOWER, found.verdict());
    }

    @Test
    void shouldSayThatRobotsDifferWhereNoneRanBothVersions() {
        final List<Figures.OfRecording> rows = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            rows.add(row("a" + i, "1", i, 100 + i));
            rows.add(row("b" + i, "2", i, 100 + i));
        }
        final Drift.Compared found = p99(rows);
        assertFalse(found.byRobot());
        assertEquals(Drift.Verdict.NO_DIFFERENCE, found.verdict());
        assertEquals(1, found.p(), 1e-9);
    }

    @Test
    void shouldNotJudgeThreeRecordings() {
        final List<Figures.OfRecording> rows = List.of(row("a", "1", 0, 5), row("a", "1", 1, 5), row("a", "1", 2, 5),
            row("a", "2", 0, 50), row("a", "2", 1, 50), row("a", "2", 2, 50), row("a", "2", 3, 50));
        assertEquals(Drift.Verdict.TOO_FEW, p99(rows).verdict());
        assertTrue(Double.isNaN(p99(rows).ratio()));
    }

    @Test
    void shouldOrderVersionsAsAReaderDoesAndRefuseUnknownOnes() {
        final List<String> versions = new ArrayList<>(List.of("2.10", "2.9", "2.9-rc1", "10.0", "unknown"));
        versions.sort(Versions.ORDER);
        assertEquals(List.of("2.9", "2.9-rc1", "2.10", "10.0", "unknown"), versions);
        assertEquals(new Versions.Pair("2.9", "2.10"), Versions.choose(List.of("2.8", "2.9", "2.10"), null, null));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Versions.choose(versions, "2.9", "3"))
            .getMessage().contains("3, which no recording has"));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.BoostMutant;
import dev.gpuseg.analysis.sweep.WitnessSets.Shape;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Errors in single terms of theorem 11 (docs/boost.md): the simulator exceeds each wrong bound within {@link #SETS}
 * sets of one shape, each with {@link #RUNS} random runs and {@link #CLIMBS} of a directed search: 4,400 runs.
 */
@Timeout(300)
@Tag("long")
class BoostMutantsTest {
    private static final long SEED = 7;
    private static final int SETS = 100;
    private static final int RUNS = 4;
    private static final int CLIMBS = 40;
    private static final int STEP = 10;

    private static Claim ceiling(final String name, final Analysis analysis) {
        return Claim.all().stream().filter(c -> c.analysis().name().equals(name)
            && c.mechanism().toString().endsWith("/ceiling")).map(c -> new Claim(analysis, c.mechanism(), false))
            .findAny().orElseThrow();
    }

    /** Sets until one is exceeded, at most {@code sets}. */
    private static long exceeded(final Claim claim, final LongFunction<TaskSet> sets, final int count) {
        final Campaign campaign = new Campaign(List.of(claim), sets, SEED, RUNS, CLIMBS);
        long exceeded = 0;
        long accepted = 0;
        for (int k = 0; k < count && exceeded == 0; k += STEP) {
            final Map<String, Long> counts = campaign.run(k, Math.min(count, k + STEP));
            exceeded = counts.get("exceeded sets of " + claim.title());
            accepted += counts.get("accepted of " + claim.title());
        }
        assertTrue(accepted > 0, () -> claim.title() + " accepts none of the sets");
        return exceeded;
    }

    @ParameterizedTest
    @CsvSource({"ALONE_IN_WINDOW, LATE_BY_FIRST", "REQUESTS, STOPPED", "JITTER_OF_REQUESTS, LATE_BY_FIRST",
        "STRETCHES, STOPPED", "BLOCKERS, BLOCKERS", "UPDATES_OF_LOCAL, UPDATES", "JITTER_OF_LOCAL, LATE_BY_FIRST",
        "JITTER_OF_REMOTE, LATE_BY_FIRST", "SPAN, OVERLAP", "DEADLINES, STOPPED", "STOPS, STOPPED"})
    void shouldFindAnError(final BoostMutant mutant, final Shape shape) {
        for (final String name : List.of("gcaps-boost-tight-suspend", "edf-boost-suspend")) {
            if (mutant != BoostMutant.DEADLINES || name.startsWith("edf")) {
                assertTrue(exceeded(ceiling(name, mutant.of(name)), k -> WitnessSets.generate(shape, SEED, k), SETS)
                    > 0, name + " with " + mutant + " is not exceeded");
            }
        }
    }

    @Test
    void shouldTestEveryMutant() throws NoSuchMethodException {
        final String tested = String.join(" ", BoostMutantsTest.class.getDeclaredMethod("shouldFindAnError",
            BoostMutant.class, Shape.class).getAnnotation(CsvSource.class).value());
        for (final BoostMutant mutant : BoostMutant.values()) {
            assertTrue(tested.contains(mutant + ", "), mutant + " is not tested");
        }
    }

    /** Tiny sets come closer to the bounds than the large ones of the campaign. */
    @ParameterizedTest
    @CsvSource({"gcaps-boost-suspend", "gcaps-boost-tight-suspend", "edf-boost-suspend"})
    void shouldNeverExceedABoundOfTinySets(final String name) {
        assertEquals(0, exceeded(ceiling(name, Analyses.get(name)), k -> WitnessSets.generate(Shape.TINY, SEED, k),
            1_000));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.BoostMutant;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Errors in single terms of theorem 11 (docs/boost.md): the simulator exceeds each wrong bound, and no right one. */
@Timeout(300)
class BoostMutantsTest {
    private static final long MS = 1_000_000L;
    private static final long SEED = 7;
    private static final int RUNS = 4;
    private static final int CLIMBS = 60;
    private static final int STEP = 50;

    /** Sets made for one error, of whole milliseconds and without epsilon. */
    private static final Map<BoostMutant, TaskSet> MADE = Map.of(
        // late is late by first, then its next job follows soon: both hit the window of low
        BoostMutant.JITTER_OF_REMOTE, lateWindow(2), BoostMutant.JITTER_OF_REQUESTS, lateWindow(2),
        BoostMutant.JITTER_OF_LOCAL, lateWindow(1),
        // stop keeps its core for its window on GPU 1 while holder has GPU 0
        BoostMutant.STOPS, set(2, task("stop", 1, 1, 100, 90, cpu(0), window(6, 1), cpu(0)),
            task("holder", 1, 0, 100, 80, cpu(0), window(2, 2), cpu(0)),
            task("low", 2, 0, 200, 70, cpu(1), window(0, 3), cpu(0))),
        // a job of block before the window of high, another one before its end
        BoostMutant.BLOCKERS, set(2, task("high", 1, 0, 200, 90, cpu(1), window(0, 20), cpu(1)),
            task("block", 1, 1, 11, 80, cpu(0), window(3, 0), cpu(0))));

    private static TaskSet lateWindow(final int core) {
        return set(2, task("first", 1, 0, 100, 90, cpu(7)), task("late", 1, 0, 14, 80, cpu(0), window(0, 5), cpu(0)),
            task("low", core, 0, 200, 70, cpu(12), window(0, 3), cpu(0)));
    }

    private static TaskSet set(final int gpus, final Task... tasks) {
        final Gpu gpu = new Gpu(0, 0, 0, MS);
        return new TaskSet("made", new Platform(2, gpus == 1 ? List.of(gpu) : List.of(gpu, gpu), true, null),
            WaitMode.SUSPEND, List.of(tasks));
    }

    private static Task task(final String name, final int core, final int gpu, final int periodMs, final int priority,
        final Segment... segments) {
        return new Task(name, core, gpu, periodMs * MS, periodMs * MS, 0, 0, priority, priority, false,
            List.of(segments));
    }

    private static Segment cpu(final int ms) {
        return new Segment.Cpu(ms * MS);
    }

    private static Segment window(final int hostMs, final int deviceMs) {
        return new Segment.Gpu(hostMs * MS, deviceMs * MS);
    }

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
    @CsvSource({"ALONE_IN_WINDOW, true, true", "REQUESTS, true, true", "STRETCHES, true, true",
        "UPDATES_OF_LOCAL, true, false", "DEADLINES, false, true", "SPAN, false, true"})
    void shouldFindAnErrorInTinySets(final BoostMutant mutant, final boolean byPriority, final boolean byDeadline) {
        for (final String name : List.of("gcaps-boost-tight-suspend", "edf-boost-suspend")) {
            if (name.startsWith("edf") ? byDeadline : byPriority) {
                assertTrue(exceeded(ceiling(name, mutant.of(name)), k -> TinySets.generate(SEED, k), 2_000) > 0,
                    name + " with " + mutant + " is not exceeded");
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"JITTER_OF_REMOTE", "JITTER_OF_REQUESTS", "JITTER_OF_LOCAL", "STOPS", "BLOCKERS"})
    void shouldFindAnErrorInASetMadeForIt(final BoostMutant mutant) {
        for (final String name : List.of("gcaps-boost-tight-suspend", "edf-boost-suspend")) {
            assertTrue(exceeded(ceiling(name, mutant.of(name)), k -> MADE.get(mutant), 10) > 0,
                name + " with " + mutant + " is not exceeded");
            assertEquals(0, exceeded(ceiling(name, Analyses.get(name)), k -> MADE.get(mutant), 10), name);
        }
    }

    /** Tiny sets come closer to the bounds than the large ones of the campaign. */
    @ParameterizedTest
    @CsvSource({"gcaps-boost-suspend", "gcaps-boost-tight-suspend", "edf-boost-suspend"})
    void shouldNeverExceedABoundOfTinySets(final String name) {
        assertEquals(0, exceeded(ceiling(name, Analyses.get(name)), k -> TinySets.generate(SEED, k), 1_000));
    }
}

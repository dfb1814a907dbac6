/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import java.util.ArrayList;
import java.util.List;

/** Errors in theorem 16, for mutation tests: the bounds of a set that has less of something than the real one. */
public enum TurnErrors {
    /** Each other context has one turn in a wait, and none one more. */
    ONE_MORE,
    /** A wait meets one best-effort context fewer. */
    CONTEXT,
    /** Each window has one burst fewer. */
    BURST,
    /** Nothing new comes. */
    NEWCOMER,
    /** Switches cost a nanosecond less. */
    SWITCH,
    /** Best effort has a slice that is a nanosecond shorter. */
    SLICE;

    /**
     * An analysis with the error.
     *
     * @return as turns-suspend, with bounds that are lower where the error counts
     */
    public Analysis analysis() {
        final Analysis right = Analyses.get("turns-suspend");
        return new LowerBounds(right, set -> new TurnsSuspend(right.description(), this == ONE_MORE ? 0 : 1)
            .analyse(less(set)));
    }

    private TaskSet less(final TaskSet set) {
        final PlatformLimits limits = set.platform().limits();
        final TurnLimits turns = limits.turns();
        return switch (this) {
            case ONE_MORE -> set;
            case CONTEXT -> turns.contexts() == 1 ? set : set.withPlatform(set.platform().withLimits(limits.withTurns(
                turns.with(turns.sliceNs(), turns.contexts() - 1))));
            case BURST -> set.withTasks(set.tasks().stream().map(TurnErrors::fewerBursts).toList());
            case NEWCOMER -> set.withPlatform(set.platform().withLimits(new PlatformLimits(limits.clockPermille(), true,
                0, 0, 0, 0, turns)));
            case SWITCH -> set.withPlatform(set.platform().withGpus(set.platform().gpus().stream().map(gpu -> new Gpu(
                gpu.epsilonNs(), 0, Math.max(0, gpu.thetaNs() - 1), gpu.timesliceNs())).toList()));
            case SLICE -> set.withPlatform(set.platform().withLimits(limits.withTurns(
                turns.with(Math.max(1, turns.sliceNs() - 1), turns.contexts()))));
        };
    }

    private static Task fewerBursts(final Task task) {
        final List<Segment> segments = new ArrayList<>();
        for (final Segment segment : task.segments()) {
            segments.add(segment instanceof Segment.Gpu gpu ? gpu.withBursts(Math.max(1, gpu.bursts() - 1)) : segment);
        }
        return task.withSegments(segments);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.List;

/** Errors in what bounds count of the limits of a platform, for mutation tests: bounds of a set that states others. */
public enum LimitError {
    /** Device parts take as long as declared. */
    CLOCK,
    /** The clock makes host parts longer, not device parts. */
    CLOCK_ON_HOST,
    /** No new context comes. */
    NEWCOMERS,
    /** Each is one more update: it takes epsilon, not its delay. */
    NEWCOMERS_AS_EPSILON,
    /** They make updates longer, and nothing else. */
    NEWCOMERS_IN_EPSILON,
    /** One comes in a bound. */
    ONE_NEWCOMER,
    /** Nothing else stops a GPU. */
    STOPS,
    /** Of stops and newcomers the longer ones count. */
    LONGER_OF_BOTH;

    private static final long NEVER_NS = 1L << 50;

    /**
     * An analysis with the error.
     *
     * @param right the right one
     * @return as {@code right}, with bounds that are lower where the error counts
     */
    public Analysis of(final Analysis right) {
        return new LowerBounds(right, set -> right.analyse(less(set)));
    }

    private TaskSet less(final TaskSet set) {
        final PlatformLimits said = set.platform().limits();
        return switch (this) {
            case CLOCK -> limited(set, PlatformLimits.CLOCK_MIN, said.newcomerNs(), said.newcomerPeriodNs());
            case CLOCK_ON_HOST -> limited(set.withTasks(set.tasks().stream().map(task -> slowHost(task,
                said.clockPermille())).toList()), PlatformLimits.CLOCK_MIN, said.newcomerNs(), said.newcomerPeriodNs());
            case NEWCOMERS -> limited(set, said.clockPermille(), 0, 0);
            case NEWCOMERS_AS_EPSILON -> limited(set, said.clockPermille(), Math.min(said.newcomerNs(),
                epsilonNs(set)), said.newcomerPeriodNs());
            case NEWCOMERS_IN_EPSILON -> limited(set.withPlatform(set.platform().withGpus(set.platform().gpus().stream()
                .map(gpu -> said.newcomerNs() == 0 || gpu.stallNs() > 0 ? gpu : gpu.withEpsilonNs(gpu.withStalls(
                    said.newcomerNs(), said.newcomerPeriodNs()).stalledEpsilonNs())).toList())), said.clockPermille(),
                0, 0);
            case ONE_NEWCOMER -> limited(set, said.clockPermille(), said.newcomerNs(), said.newcomerNs() == 0 ? 0
                : NEVER_NS);
            case STOPS -> set.withPlatform(set.platform().withGpus(set.platform().gpus().stream().map(gpu ->
                gpu.withStalls(0, 0)).toList()));
            case LONGER_OF_BOTH -> set.withPlatform(set.platform().withGpus(set.platform().gpus().stream().map(gpu ->
                gpu.withStalls(Math.max(0, gpu.stallNs() - said.newcomerNs()), gpu.stallNs() <= said.newcomerNs() ? 0
                    : gpu.stallPeriodNs())).toList()));
        };
    }

    private static long epsilonNs(final TaskSet set) {
        return set.platform().gpus().stream().mapToLong(Gpu::epsilonNs).max().orElse(0);
    }

    private static TaskSet limited(final TaskSet set, final int clock, final long delayNs, final long periodNs) {
        return set.withPlatform(set.platform().withLimits(new PlatformLimits(clock, delayNs == 0, delayNs,
            delayNs == 0 ? 0 : periodNs, 0, 0)));
    }

    private static Task slowHost(final Task task, final int clock) {
        final List<Segment> segments = new ArrayList<>();
        for (final Segment segment : task.segments()) {
            if (segment instanceof Segment.Gpu gpu && clock > PlatformLimits.CLOCK_MIN) {
                final long host = IntegerMath.ceilDiv(gpu.hostNs() * clock, PlatformLimits.CLOCK_MIN);
                segments.add(new Segment.Gpu(host, gpu.deviceNs(), gpu.totalNs() + host - gpu.hostNs(), gpu.bursts()));
            } else {
                segments.add(segment);
            }
        }
        return task.withSegments(segments);
    }

    /**
     * What T1 says that a core needs, without what jobs carry in from before.
     *
     * @param set    as declared
     * @param mode   what threads do while the GPU works for them
     * @param core   1..cpus
     * @param spanNs positive
     * @return ns
     */
    public static long needWithoutCarryIn(final TaskSet set, final WaitMode mode, final int core, final long spanNs) {
        return CoreThrottling.needNs(set, mode, core, spanNs, false);
    }
}

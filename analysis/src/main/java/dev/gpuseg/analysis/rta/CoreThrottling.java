/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Hypotheses.Finding;
import dev.gpuseg.analysis.rta.Hypotheses.Status;

/**
 * Whether the kernel may take a core away from the real-time threads of a set (T1). By default they have 950 ms of each
 * second of a core, after which the core is another's for 50 ms ({@code sched_rt_runtime_us}; since Linux 6.12 the fair
 * server, where an ordinary thread waits).
 */
public final class CoreThrottling {
    private static final long SECOND_NS = 1_000_000_000L;
    private static final long RUNTIME_NS = 950_000_000L;
    private static final long MS = 1_000_000L;

    private CoreThrottling() {
    }

    static Finding find(final TaskSet set, final WaitMode mode) {
        if (set == null) {
            return new Finding(Hypothesis.T1, Status.BY_SET, "");
        }
        int busiest = 0;
        long most = 0;
        for (int core = 1; core <= set.platform().cpus(); core++) {
            final long sum = needNs(set, mode, core, SECOND_NS);
            if (sum > most) {
                most = sum;
                busiest = core;
            }
        }
        if (most <= RUNTIME_NS) {
            return new Finding(Hypothesis.T1, Status.HOLDS, most == 0 ? "" : "core " + busiest + " needs at most "
                + (most + MS - 1) / MS + " ms of a second, of 950");
        }
        return new Finding(Hypothesis.T1, Status.NOT_STATED, "real-time threads of core " + busiest + " may need "
            + Math.min(SECOND_NS / MS, (most + MS - 1) / MS) + " ms of a second, and the kernel gives them 950: "
            + "kernel.sched_rt_runtime_us must be -1");
    }

    /**
     * The most that the real-time threads of a core need of it within any time so long, if they meet their deadlines.
     *
     * @param set    as declared
     * @param mode   what threads do while the GPU works for them
     * @param core   1..cpus
     * @param spanNs positive
     * @return ns; more than the time itself where the core is overloaded
     */
    public static long needNs(final TaskSet set, final WaitMode mode, final int core, final long spanNs) {
        return needNs(set, mode, core, spanNs, true);
    }

    /** The same; {@code carries} false: without what a job brings into the time from before, which is wrong. */
    static long needNs(final TaskSet set, final WaitMode mode, final int core, final long spanNs,
        final boolean carries) {
        long sum = 0;
        for (final Task task : set.slowed().tasks()) {
            sum += task.cpu() == core && !task.bestEffort() ? inOne(task, mode, spanNs, carries) : 0;
        }
        return sum;
    }

    /**
     * The most that a task needs of its core. One that spins may do so until its deadline, with or without the GPU.
     */
    private static long inOne(final Task task, final WaitMode mode, final long spanNs, final boolean carries) {
        final long need = mode == WaitMode.BUSY && task.gpuSegmentCount() > 0 ? task.deadlineNs()
            : Math.min(task.deadlineNs(), Math.addExact(task.cpuNs(), hostNs(task)));
        final long span = spanNs + (carries ? Math.max(0, task.deadlineNs() - need) : 0);
        final long jobs = span / task.periodNs();
        return Math.min(spanNs, jobs * need + Math.min(need, span - jobs * task.periodNs()));
    }

    private static long hostNs(final Task task) {
        return task.segments().stream().filter(Segment.Gpu.class::isInstance)
            .mapToLong(s -> ((Segment.Gpu) s).hostNs()).sum();
    }
}

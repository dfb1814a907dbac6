/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.core.Priority;
import java.util.List;

/**
 * The least budgets with which a task that keeps its declared times is never found to overrun. A budget counts from the
 * grant (of a begin that does not wait: from the decision) to the end, without the time in which the window has lost
 * the GPU. It so contains more than the window: two updates after a begin that does not wait, what runs above the task
 * on its core while it has the GPU, and stops of the GPU ({@code docs/window.md}, section 9).
 */
public final class LeastBudgets {
    private static final int ROUNDS_MAX = 100_000;

    private final TaskSet set;
    private final AnalysisResult bounds;
    private final Model model;
    private final boolean optimistic;
    private final boolean boosted;

    /**
     * For a set whose bounds are known.
     *
     * @param declared   the set as its file has it
     * @param bounds     of that set, all tasks schedulable
     * @param model      the schedule that the bounds describe
     * @param optimistic whether begins return at once where nothing could outrank the task
     * @param boosted    whether windows run at boosts
     */
    public LeastBudgets(final TaskSet declared, final AnalysisResult bounds, final Model model,
        final boolean optimistic, final boolean boosted) {
        set = declared.slowed();
        this.bounds = bounds;
        this.model = model;
        this.optimistic = optimistic;
        this.boosted = boosted;
    }

    /**
     * The least budget of a task, and what it is made of.
     *
     * @param windowNs its longest window, as the bounds count it
     * @param leastNs  the budget
     */
    public record Least(long windowNs, long leastNs) {
        /**
         * Why a budget is refused.
         *
         * @param task     name of the task
         * @param budgetNs its budget, ns
         * @return one line with value and remedy; empty if the budget is enough
         */
        public String refusal(final String task, final long budgetNs) {
            if (budgetNs >= leastNs) {
                return "";
            }
            final String least = Durations.format(leastNs);
            return "the budget of \"" + task + "\" is " + Durations.format(budgetNs)
                + ", and a job within its declared times may use " + least + " of it (window "
                + Durations.format(windowNs) + ", and updates, higher tasks of its core and stops while it has the GPU"
                + "); raise the budget to " + least;
        }
    }

    /**
     * For one task.
     *
     * @param name of a task with a GPU segment
     * @return its least budget
     */
    public Least of(final String name) {
        int index = 0;
        while (!set.tasks().get(index).name().equals(name)) {
            index++;
        }
        final Task task = set.tasks().get(index);
        long window = 0;
        for (final Segment segment : task.segments()) {
            if (segment instanceof Segment.Gpu gpu) {
                window = Math.max(window, gpu.totalNs());
            }
        }
        return new Least(window, least(index, task, window));
    }

    private long least(final int index, final Task task, final long windowNs) {
        final Gpu gpu = set.platform().gpus().get(task.gpu());
        if (model == Model.TURNS) {
            return boundOf(index);   // waits for turns count, since nothing tells the daemon of them
        }
        final boolean gate = model == Model.GATED_WINDOWS;
        final long base = Math.addExact(windowNs, gate ? gpu.thetaNs() : optimistic ? 2 * gpu.stalledEpsilonNs() : 0);
        // pieces of a window that loses the GPU are not one interval: all that its response can contain counts
        final long whole = isOutranked(index, task) ? boundOf(index) : 0;
        long now = Math.min(base, boundOf(index));
        for (int round = 0; round < ROUNDS_MAX; round++) {
            final long next = Math.addExact(base, disturbance(index, task, gpu, Math.max(now, whole)));
            if (next == now) {
                return now;
            }
            if (next > boundOf(index)) {
                return boundOf(index);   // what is charged lies between begin and end
            }
            now = next;
        }
        return boundOf(index);
    }

    private long disturbance(final int index, final Task task, final Gpu gpu, final long spanNs) {
        long sum = gpu.stallNs() == 0 ? 0
            : Math.multiplyExact(IntegerMath.ceilDiv(spanNs + gpu.stallNs(), gpu.stallPeriodNs()), gpu.stallNs());
        final List<Task> tasks = set.tasks();
        for (int c = 0; c < tasks.size(); c++) {
            final Task other = tasks.get(c);
            if (c == index || other.bestEffort() || other.cpu() != task.cpu()
                || model.cores() != CpuPolicy.EDF && Priority.isHigherThan(task.priority(), other.priority())) {
                continue;
            }
            final long cost = cost(other, c, task);
            if (cost > 0) {
                final long carriedNs = Math.max(0, boundOf(c) - cost);
                sum = Math.addExact(sum, Math.multiplyExact(IntegerMath.ceilDiv(spanNs + carriedNs,
                    other.periodNs()), cost));
            }
        }
        return sum;
    }

    /** What a job of a task above takes from the core while the task has the GPU. */
    private long cost(final Task other, final int c, final Task task) {
        final boolean windows = other.gpuSegmentCount() > 0;
        final boolean sameGpu = windows && other.gpu() == task.gpu();
        if (boosted) {
            return sameGpu ? 0 : host(other);
        }
        if (sameGpu && !model.usesDeadlines()) {
            return other.cpuNs();   // its windows are closed: with one open, it would have the GPU
        }
        if (windows && set.mode() == WaitMode.BUSY) {
            return boundOf(c);
        }
        return Math.addExact(other.cpuNs(), host(other));
    }

    private static long host(final Task task) {
        long sum = 0;
        for (final Segment segment : task.segments()) {
            sum += segment instanceof Segment.Gpu gpu ? gpu.hostNs() : 0;
        }
        return sum;
    }

    private boolean isOutranked(final int index, final Task task) {
        if (model == Model.GATED_WINDOWS) {
            return false;
        }
        for (int h = 0; h < set.tasks().size(); h++) {
            final Task other = set.tasks().get(h);
            if (h != index && !other.bestEffort() && other.gpuSegmentCount() > 0 && other.gpu() == task.gpu()
                && !Priority.isHigherThan(task.gpuPriority(), other.gpuPriority())) {
                return true;
            }
        }
        return model != Model.WINDOWS && model != Model.BOOSTED_WINDOWS;
    }

    private long boundOf(final int index) {
        final Long bound = bounds.tasks().get(index).wcrtNs();
        return bound == null ? set.tasks().get(index).deadlineNs() : bound;
    }
}

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
 * the GPU. It so contains more than the window: two updates after a begin that does not wait, updates that a window
 * which has the GPU again did not lose it by, updates beyond what a budget leaves out, what runs above the task on its
 * core while it has the GPU, and stops of the GPU ({@code docs/window.md}, section 9).
 */
public class LeastBudgets {
    private static final int ROUNDS_MAX = 100_000;
    /** Of one window a budget leaves out so much, ns. Source: {@code SegmentTable.GRACE_NS} of the core, ADR 51. */
    private static final long LEFT_OUT_NS = 100_000_000;

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
    public final Least of(final String name) {
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
        if (model == Model.TURNS || model == Model.PARTITIONS || model == Model.PARTITIONS_DEADLINE_CORES
            || sharesContext(index, task)) {
            // waits for turns count, since nothing tells the daemon of them; a window that is closed and opened again
            // within an update counts while its context is still being disabled, as often as its partition closes;
            // and so does a wait for windows of the same context, which is enabled for them
            return boundOf(index);
        }
        final boolean gate = model == Model.GATED_WINDOWS;
        final long base = Math.addExact(ownNs(windowNs), gate ? switchNs(gpu) : updatesNs(index, task, gpu));
        // pieces of a window that loses the GPU are not one interval: all that its response can contain counts
        final long whole = isInPieces(windowsAbove(index, task) > 0) ? boundOf(index) : 0;
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

    private boolean sharesContext(final int index, final Task task) {
        for (int h = 0; h < set.tasks().size(); h++) {
            final Task other = set.tasks().get(h);
            if (h != index && task.process() != null && task.process().equals(other.process())
                && other.gpuSegmentCount() > 0 && other.gpu() == task.gpu()) {
                return true;
            }
        }
        return false;
    }

    private long disturbance(final int index, final Task task, final Gpu gpu, final long spanNs) {
        long sum = stopsNs(gpu, spanNs);
        final List<Task> tasks = set.tasks();
        for (int c = 0; c < tasks.size(); c++) {
            final Task other = tasks.get(c);
            if (c == index || other.bestEffort() || other.cpu() != task.cpu()
                || model.cores() != CpuPolicy.EDF && Priority.isHigherThan(task.priority(), other.priority())) {
                continue;
            }
            final long cost = chargedNs(other, cost(other, c, task));
            if (cost > 0) {
                final long carriedNs = carriedNs(Math.max(0, boundOf(c) - cost));
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
        // with a window open it would have the GPU; that of a task of equal priority or by deadline can be open beside
        final boolean closed = sameGpu && !model.usesDeadlines() && isClosed(other, task);
        if (boosted) {
            return closed ? 0 : host(other);
        }
        if (closed) {
            return other.cpuNs();
        }
        if (windows && set.mode() == WaitMode.BUSY) {
            return boundOf(c);
        }
        return Math.addExact(other.cpuNs(), host(other));
    }

    // ---- the terms, each by itself: mutation tests change one ----

    long ownNs(final long windowNs) {
        return windowNs;
    }

    long beginNs(final long ns) {
        return ns;
    }

    long lostNs(final long ns) {
        return ns;
    }

    long beyondNs(final long ns) {
        return ns;
    }

    long switchNs(final Gpu gpu) {
        return gpu.thetaNs();
    }

    long stopsNs(final Gpu gpu, final long spanNs) {
        return gpu.stallNs() == 0 ? 0
            : Math.multiplyExact(IntegerMath.ceilDiv(spanNs + gpu.stallNs(), gpu.stallPeriodNs()), gpu.stallNs());
    }

    boolean isClosed(final Task above, final Task task) {
        return Priority.isHigherThan(above.priority(), task.priority());
    }

    long chargedNs(final Task above, final long costNs) {
        return costNs;
    }

    long carriedNs(final long ns) {
        return ns;
    }

    boolean isInPieces(final boolean outranked) {
        return outranked;
    }

    static long host(final Task task) {
        long sum = 0;
        for (final Segment segment : task.segments()) {
            sum += segment instanceof Segment.Gpu gpu ? gpu.hostNs() : 0;
        }
        return sum;
    }

    /** How many windows can take the GPU from one job of a task. */
    private long windowsAbove(final int index, final Task task) {
        long count = 0;
        for (int h = 0; h < set.tasks().size() && model != Model.GATED_WINDOWS; h++) {
            final Task other = set.tasks().get(h);
            if (h != index && !other.bestEffort() && other.gpuSegmentCount() > 0 && other.gpu() == task.gpu()
                && (model.usesDeadlines() || !Priority.isHigherThan(task.gpuPriority(), other.gpuPriority()))) {
                count = Math.addExact(count, Math.multiplyExact(IntegerMath.ceilDiv(Math.addExact(boundOf(index),
                    boundOf(h)), other.periodNs()), (long) other.gpuSegmentCount()));
            }
        }
        return count;
    }

    /**
     * Updates while a window is open that count: lemma 3 has two of its own and two for each window that outranks it.
     * The own ones count if begin does not wait; those of a window whose begin does not wait can, since it can end
     * before it has taken the GPU; by deadlines every begin waits. Of all others what is left out at most does not.
     */
    private long updatesNs(final int index, final Task task, final Gpu gpu) {
        final long ownNs = Math.multiplyExact(2, gpu.stalledEpsilonNs());
        final long othersNs = Math.multiplyExact(windowsAbove(index, task), ownNs);
        final long countedNs = Math.addExact(optimistic ? beginNs(ownNs) : 0, model.usesDeadlines() ? 0
            : lostNs(othersNs));
        final long leftOutNs = Math.addExact(optimistic ? 0 : ownNs, model.usesDeadlines() ? othersNs : 0);
        return Math.addExact(countedNs, beyondNs(Math.max(0, leftOutNs - LEFT_OUT_NS)));
    }

    private long boundOf(final int index) {
        final Long bound = bounds.tasks().get(index).wcrtNs();
        return bound == null ? set.tasks().get(index).deadlineNs() : bound;
    }
}

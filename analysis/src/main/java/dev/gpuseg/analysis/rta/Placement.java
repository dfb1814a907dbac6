/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Where the tasks of a set belong: is preemption enough, or does one of them need a part of the GPU for itself
 * ({@code docs/space.md})? Short is a task whose deadline the updates of preemption exceed, and that needs the GPU for
 * {@link #SHORT_NS} at most.
 *
 * @param rows    of the tasks that use the GPU, in file order
 * @param set     the set so placed
 * @param space   whether there is one
 * @param assumed whether its limits are not those of the set but {@link #ASSUMED}
 * @param holds   whether every deadline holds, under the hypotheses of {@link #analysis}
 */
public record Placement(List<Row> rows, TaskSet set, boolean space, boolean assumed, boolean holds) {
    /** Limits where the set has none. */
    public static final SpaceLimits ASSUMED = new SpaceLimits(12, 50, 2_000_000);

    /** The longest work of a job for which a part is proposed: a kernel that takes longer fills the GPU. */
    public static final long SHORT_NS = 1_000_000;

    /** Where a task is. */
    public enum Where {
        /** Disabled and enabled by the driver, in time. */
        OUTSIDE,
        /** Has a part of the multiprocessors for itself. */
        RESERVE,
        /** Holds launches of what is lower. */
        INSIDE,
        /** Best effort, with a share of what the reserve leaves. */
        PLACE;

        /** In lower case. */
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * One task.
     *
     * @param task    as placed
     * @param where   where it is
     * @param why     one clause
     * @param boundNs of its response, so placed; null = none, or best effort
     */
    public record Row(Task task, Where where, String why, Long boundNs) {
    }

    /** Copies the list. */
    public Placement {
        rows = List.copyOf(rows);
    }

    /**
     * Places the tasks of a set. A part that the set gives to a task stays.
     *
     * @param declared with cores and priorities
     * @return where they belong
     * @throws dev.gpuseg.analysis.model.InvalidModelException if the set cannot be analysed
     */
    public static Placement of(final TaskSet declared) {
        final TaskSet byTime = declared.withTasks(declared.tasks().stream().map(task -> task.withReserve(0)).toList())
            .withPlatform(declared.platform().withSpace(SpaceLimits.NONE));
        final boolean given = declared.tasks().stream().anyMatch(task -> task.reservePercent() > 0);
        final AnalysisResult preempted = Analyses.get(analysis(declared)).analyse(byTime);
        final boolean need = declared.tasks().stream().anyMatch(task -> isShort(task, declared));
        if (!given && (preempted.schedulable() || !need)) {
            return new Placement(rows(byTime, preempted, declared), byTime, false, false, preempted.schedulable());
        }
        final SpaceLimits own = declared.platform().space();
        final SpaceLimits space = own.reservePercent() > 0 ? own : new SpaceLimits(ASSUMED.reservePercent(),
            own.isNone() ? ASSUMED.slowdownPercent() : own.slowdownPercent(),
            own.isNone() ? ASSUMED.inFlightNs() : own.inFlightNs());
        final TaskSet placed = byTime.withPlatform(declared.platform().withSpace(space))
            .withTasks(parts(declared, space));
        final AnalysisResult beside = Analyses.get(analysis(declared)).analyse(placed);
        return new Placement(rows(placed, beside, declared), placed, true, own.reservePercent() == 0,
            beside.schedulable());
    }

    /** The analysis whose bounds are shown. */
    public String analysis() {
        return analysis(set);
    }

    private static String analysis(final TaskSet set) {
        return set.mode() == WaitMode.SUSPEND ? "gcaps-window-suspend" : "gcaps-window-busy";
    }

    /** Each short task gets as much of what the others leave. */
    private static List<Task> parts(final TaskSet declared, final SpaceLimits space) {
        final int given = declared.tasks().stream().mapToInt(Task::reservePercent).sum();
        final int wanting = (int) declared.tasks().stream().filter(task -> task.reservePercent() == 0
            && isShort(task, declared)).count();
        final int part = wanting == 0 ? 0 : (space.reservePercent() - given) / wanting;
        final List<Task> placed = new ArrayList<>();
        for (final Task task : declared.tasks()) {
            placed.add(task.reservePercent() == 0 && isShort(task, declared) ? task.withReserve(Math.max(1, part))
                : task);
        }
        return placed;
    }

    /** Whether a job cannot be in time if its begins and ends cost what an update costs, though nothing else runs. */
    private static boolean isShort(final Task task, final TaskSet set) {
        return !task.bestEffort() && task.gpuSegmentCount() > 0 && task.gpuNs() <= SHORT_NS
            && Math.addExact(workNs(task), updatesNs(task, set)) > task.deadlineNs() - task.jitterNs()
            && workNs(task) <= task.deadlineNs() - task.jitterNs();
    }

    private static long workNs(final Task task) {
        return Math.addExact(task.cpuNs(), task.gpuNs());
    }

    private static long updatesNs(final Task task, final TaskSet set) {
        return Math.multiplyExact(2L * task.gpuSegmentCount(), set.platform().gpus().get(task.gpu()).epsilonNs());
    }

    private static List<Row> rows(final TaskSet placed, final AnalysisResult result, final TaskSet declared) {
        final List<Row> rows = new ArrayList<>();
        for (int i = 0; i < placed.tasks().size(); i++) {
            final Task task = placed.tasks().get(i);
            if (task.gpuSegmentCount() > 0) {
                final boolean space = !placed.platform().space().isNone();
                final Where where = !space ? Where.OUTSIDE : task.bestEffort() ? Where.PLACE
                    : task.reservePercent() > 0 ? Where.RESERVE : Where.INSIDE;
                rows.add(new Row(task, where, why(task, where, placed, declared), result.tasks().get(i).wcrtNs()));
            }
        }
        return rows;
    }

    private static String why(final Task task, final Where where, final TaskSet placed, final TaskSet declared) {
        final SpaceLimits space = placed.platform().space();
        return switch (where) {
            case OUTSIDE -> task.bestEffort() ? "disabled while real-time tasks have the GPU"
                : isShort(task, declared) ? "its updates and its work exceed its deadline" : "preempts what is lower";
            case RESERVE -> (isShort(task, declared) ? "its updates of " + Durations.format(updatesNs(task, declared))
                + " and its work of " + Durations.format(workNs(task)) + " exceed its deadline of "
                + Durations.format(task.deadlineNs()) : "as the set says") + "; its kernels must take no longer on "
                + task.reservePercent() + "% of the multiprocessors";
            case INSIDE -> "no update costs it its deadline; it waits for what is in flight";
            case PLACE -> task.longestDeviceNs() <= space.inFlightNs() ? "its segments are no longer than in_flight"
                : "if no kernel of it is longer than " + Durations.format(space.inFlightNs()) + " (in_flight)";
        };
    }
}

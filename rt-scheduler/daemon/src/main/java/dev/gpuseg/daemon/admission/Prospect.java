/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.ChainResult;
import dev.gpuseg.analysis.rta.MissBound;
import dev.gpuseg.analysis.rta.TaskResult;
import java.util.ArrayList;
import java.util.List;

/**
 * What the analysis says of a set of tasks, some of which have no core of their own in it: for these every placement is
 * analysed, and the worst counts.
 *
 * @param analysis whose verdict it is; null if none was asked
 * @param set     the set that {@code result} is about (with several placements, the one that fails, else any); null if
 *                there is nothing to analyse
 * @param result  bounds, the largest over all placements if all pass; null if there is nothing to analyse
 * @param problem one line: why there is no proof although no bound fails; empty if there is none
 */
record Prospect(Analysis analysis, TaskSet set, AnalysisResult result, String problem) {
    /** Most placements that are analysed. */
    static final int PLACEMENTS_MAX = 1024;

    /** No proof, and why. */
    static Prospect unproven(final Analysis analysis, final String problem) {
        return new Prospect(analysis, null, null, problem);
    }

    boolean proven() {
        return problem.isEmpty() && (result == null || result.schedulable());
    }

    /**
     * Analyses.
     *
     * @param analysis  the sound analysis
     * @param id        of the set
     * @param platform  its constants
     * @param mode      what threads do while the GPU works
     * @param placed    tasks with a core
     * @param floating  tasks without
     * @param chains    of placed tasks
     * @return what it says
     */
    static Prospect of(final Analysis analysis, final String id, final Platform platform, final WaitMode mode,
        final List<Task> placed, final List<Task> floating, final Chains chains) {
        if (placed.isEmpty() && floating.isEmpty()) {
            return unproven(analysis, "");
        }
        long placements = 1;
        for (int i = 0; i < floating.size() && placements <= PLACEMENTS_MAX; i++) {
            placements *= platform.cpus();
        }
        if (placements > PLACEMENTS_MAX) {
            return unproven(analysis, floating.size() + " tasks have no declared core and could be on any of "
                + platform.cpus() + ", too many cases to analyse; declare them in the task-set file");
        }
        try {
            return ofPlacements(analysis, new TaskSet(id, platform, mode, join(placed, floating, 0, 1), chains), placed,
                floating, (int) placements);
        } catch (final InvalidModelException e) {
            return unproven(analysis, e.getMessage());
        }
    }

    private static Prospect ofPlacements(final Analysis analysis, final TaskSet shape, final List<Task> placed,
        final List<Task> floating, final int placements) {
        TaskSet set = shape;
        AnalysisResult worst = null;
        for (int p = 0; p < placements; p++) {
            set = shape.withTasks(join(placed, floating, p, shape.platform().cpus()));
            final AnalysisResult result = analysis.analyse(set);
            if (!result.schedulable()) {
                return new Prospect(analysis, set, result, "");
            }
            worst = worst == null ? result : larger(worst, result);
        }
        return new Prospect(analysis, set, worst, "");
    }

    /** The tasks with the floating ones on the cores of placement p, a number in base {@code cpus}. */
    private static List<Task> join(final List<Task> placed, final List<Task> floating, final int p, final int cpus) {
        final List<Task> tasks = new ArrayList<>(placed);
        int rest = p;
        for (final Task task : floating) {
            tasks.add(task.withPlacement(1 + rest % cpus, task.gpu()));
            rest /= cpus;
        }
        return tasks;
    }

    private static AnalysisResult larger(final AnalysisResult a, final AnalysisResult b) {
        final List<TaskResult> tasks = new ArrayList<>();
        for (int i = 0; i < a.tasks().size(); i++) {
            final TaskResult x = a.tasks().get(i);
            final TaskResult y = b.tasks().get(i);
            tasks.add(x.wcrtNs() == null || y.wcrtNs() != null && y.wcrtNs() > x.wcrtNs() ? y : x);
        }
        final List<ChainResult> chains = new ArrayList<>();
        for (int c = 0; c < a.chains().size(); c++) {
            chains.add(slower(a.chains().get(c), b.chains().get(c)));
        }
        return new AnalysisResult(a.analysis(), a.taskSetId(), a.schedulable() && b.schedulable(), tasks, chains,
            moreMisses(a.misses(), b.misses()));
    }

    private static List<MissBound> moreMisses(final List<MissBound> a, final List<MissBound> b) {
        final List<MissBound> more = new ArrayList<>();
        for (int i = 0; i < a.size(); i++) {
            final boolean first = a.get(i).bound() == null
                || b.get(i).bound() != null && b.get(i).bound() <= a.get(i).bound();
            more.add(first ? a.get(i) : b.get(i));
        }
        return more;
    }

    private static ChainResult slower(final ChainResult a, final ChainResult b) {
        return a.reaction().boundNs() == null || b.reaction().boundNs() != null
            && b.reaction().boundNs() <= a.reaction().boundNs() ? a : b;
    }
}

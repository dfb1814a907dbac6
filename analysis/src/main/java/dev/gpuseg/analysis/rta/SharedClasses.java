/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.core.Policy;
import java.util.List;

/**
 * Theorem 12 ({@code analysis/docs/classes.md}): where no two real-time tasks of a GPU are in one class, policy classes
 * decides as fixed priority does. Of tasks of one class nothing is proven, since they share the GPU as the driver
 * divides it, unless their contexts have time slices and theorem 16 covers them.
 */
public final class SharedClasses {
    /**
     * A real-time task that uses a GPU.
     *
     * @param name        for the reader
     * @param gpu         from 0
     * @param gpuPriority 1..99
     */
    public record Ranked(String name, int gpu, int gpuPriority) {
    }

    private SharedClasses() {
    }

    /**
     * What speaks against the hypothesis.
     *
     * @param policy what decides
     * @param set    tasks with their priorities
     * @return one line, empty if it holds, and for every policy without classes
     */
    public static String conflict(final Policy policy, final TaskSet set) {
        return conflict(policy, ranked(set));
    }

    /**
     * What speaks against the hypothesis.
     *
     * @param policy what decides
     * @param tasks  the real-time tasks with their present priorities
     * @return one line, empty if it holds, and for every policy without classes
     */
    public static String conflict(final Policy policy, final List<Ranked> tasks) {
        for (int i = 0; i < tasks.size(); i++) {
            final Ranked a = tasks.get(i);
            for (int k = i + 1; k < tasks.size(); k++) {
                final Ranked b = tasks.get(k);
                if (a.gpu() == b.gpu() && policy.runTogether(a.gpuPriority(), b.gpuPriority())) {
                    return "tasks \"" + a.name() + "\" (gpu_priority " + a.gpuPriority() + ") and \"" + b.name()
                        + "\" (gpu_priority " + b.gpuPriority() + ") are in one class of GPU " + a.gpu()
                        + " and run together, for which nothing is proven; give them priorities of "
                        + "different classes, or use policy fp";
                }
            }
        }
        return "";
    }

    /**
     * What speaks against tasks that share their GPU by time slices, so that none is disabled for another: of those of
     * a GPU every two have to be in one class.
     *
     * @param policy what decides
     * @param set    tasks with their priorities
     * @return one line, empty if nothing does
     */
    public static String apart(final Policy policy, final TaskSet set) {
        final List<Ranked> tasks = ranked(set);
        for (final Ranked a : tasks) {
            for (final Ranked b : tasks) {
                if (a != b && a.gpu() == b.gpu() && !policy.runTogether(a.gpuPriority(), b.gpuPriority())) {
                    return "turns say that real-time tasks are together, and policy " + policy.name() + " disables \""
                        + (a.gpuPriority() < b.gpuPriority() ? a : b).name() + "\" for \""
                        + (a.gpuPriority() < b.gpuPriority() ? b : a).name() + "\"; use policy classes with "
                        + "class_width 99, or leave together out";
                }
            }
        }
        return "";
    }

    private static List<Ranked> ranked(final TaskSet set) {
        return set.tasks().stream()
            .filter(task -> !task.bestEffort() && task.gpuPriority() > 0 && task.gpuSegmentCount() > 0)
            .map(task -> new Ranked(task.name(), task.gpu(), task.gpuPriority())).toList();
    }
}

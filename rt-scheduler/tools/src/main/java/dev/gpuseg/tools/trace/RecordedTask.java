/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import java.util.ArrayList;
import java.util.List;

/**
 * What a recorded task did, for another task to do it again.
 *
 * @param name        letters, digits, dots, underscores and hyphens
 * @param priority    0 best effort, 1..99
 * @param gpuPriority 1..99; 0 for best effort
 * @param periodNs    between releases
 * @param deadlineNs  relative
 * @param budgetNs    longest time that a segment may hold the GPU, 0 = none
 * @param offsetNs    of its first release after the earliest of all tasks
 * @param segments    as gpuseg-demo-task takes them
 */
public record RecordedTask(String name, int priority, int gpuPriority, long periodNs, long deadlineNs, long budgetNs,
    long offsetNs, String segments) {
    private static final int SEGMENTS_MAX = 64;

    /**
     * Takes the tasks of a trace that completed jobs while decisions were enforced.
     *
     * @param trace  what happened
     * @param median true for the middle of the measured times, false for the longest
     * @return in the order of the trace
     * @throws IllegalArgumentException if there is none, or one has too many segments for a demo task
     */
    public static List<RecordedTask> of(final Trace trace, final boolean median) {
        final List<RecordedTask> all = new ArrayList<>();
        long earliestNs = Long.MAX_VALUE;
        final List<TaskSetDrawing.Measured> measured = TaskSetDrawing.measure(trace,
            median ? TaskSetDrawing.MEDIAN : TaskSetDrawing.LONGEST);
        for (final TaskSetDrawing.Measured m : measured) {
            earliestNs = Math.min(earliestNs, firstNs(m.task()));
        }
        for (final TaskSetDrawing.Measured m : measured) {
            if (m.periodNs() > 0) {
                all.add(new RecordedTask(m.task().name.replaceAll("[^A-Za-z0-9._-]", "_"), m.task().priority,
                    m.task().isRealTime() ? m.task().gpuPriority : 0, m.periodNs(),
                    m.task().deadlineNs > 0 ? m.task().deadlineNs : m.periodNs(), m.task().budgetNs,
                    firstNs(m.task()) - earliestNs, segments(m)));
            }
        }
        if (all.isEmpty()) {
            throw new IllegalArgumentException(trace.title + ": no periodic task completed a job while decisions were "
                + "enforced; record under policy fp or edf");
        }
        return all;
    }

    private static long firstNs(final Trace.Task task) {
        for (final Trace.Job job : task.jobs) {
            if (Trace.isEnforced(job.policy)) {
                return job.releaseNs;
            }
        }
        return Long.MAX_VALUE;
    }

    private static String segments(final TaskSetDrawing.Measured m) {
        final List<String> parts = new ArrayList<>();
        for (int i = 0; i < m.cpuNs().length; i++) {
            if (m.cpuNs()[i] > 0) {
                parts.add("cpu:" + m.cpuNs()[i] + "ns");
            }
            if (i < m.hostNs().length) {
                parts.add("gpu:" + (m.wholeOnly() ? 0 : m.hostNs()[i]) + "ns+" + Math.max(1, m.deviceNs()[i]) + "ns");
            }
        }
        if (parts.isEmpty() || parts.size() > SEGMENTS_MAX) {
            throw new IllegalArgumentException("task \"" + m.task().name + "\" has " + parts.size()
                + " segments; a demo task can do 1..64");
        }
        return String.join(",", parts);
    }
}

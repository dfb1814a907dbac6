/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ThreadConfiguration;
import dev.gpuseg.analysis.io.ThreadConfiguration.Entry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/**
 * The threads of drawn tasks: their cores and priorities, as a configuration gives them, and what it says that a task
 * set cannot. A task set has a fixed priority and one core for each real-time task, and none for best effort. Without a
 * configuration, what the tasks were opened with. Not thread-safe.
 */
final class DrawnThreads {
    private final List<TaskSetDrawing.Measured> tasks;
    private final ThreadConfiguration configuration;
    /** Of each task; null if it has none. */
    private final Entry[] threads;

    private DrawnThreads(final List<TaskSetDrawing.Measured> tasks, final ThreadConfiguration configuration) {
        this.tasks = tasks;
        this.configuration = configuration;
        threads = new Entry[tasks.size()];
    }

    /**
     * Finds them.
     *
     * @param tasks         that are drawn
     * @param configuration null if there is none
     * @param warnings      gets what differs from what the task set says
     * @throws InvalidFileException if several threads may be that of a task, or one has SCHED_DEADLINE
     */
    static DrawnThreads of(final List<TaskSetDrawing.Measured> tasks, final ThreadConfiguration configuration,
        final List<String> warnings) throws InvalidFileException {
        final DrawnThreads threads = new DrawnThreads(tasks, configuration);
        for (int i = 0; configuration != null && i < tasks.size(); i++) {
            final Trace.Task task = tasks.get(i).task();
            threads.threads[i] = configuration.threadOf(task.name);
            if (threads.threads[i] == null) {
                warnings.add("task \"" + task.name + "\" is of no thread of " + oneLine(configuration.file())
                    + ", so its core" + (task.isRealTime() ? " and its priority " + task.priority + " are" : " is")
                    + " not from there; let its program open it under the name of its node or callback group");
            } else {
                threads.check(task, threads.threads[i], warnings);
            }
        }
        threads.warnOfSharing(warnings);
        return threads;
    }

    private void check(final Trace.Task task, final Entry thread, final List<String> warnings)
        throws InvalidFileException {
        if (thread.isReservation()) {
            throw new InvalidFileException(configuration.file(), thread.line(), thread.shown() + ", the thread of task "
                + "\"" + task.name + "\", is SCHED_DEADLINE, for which a task set has no word; write SCHED_FIFO and a "
                + "priority, or draw the set without this file");
        }
        if (task.isRealTime() && !thread.hasPriority()) {
            warnings.add(where(thread) + " is " + thread.policy() + ", but task \"" + task.name + "\" is "
                + "real-time; the set says priority " + task.priority + ", with which it was opened, and "
                + "no bound holds before its thread has it: write SCHED_FIFO, or let " + filling() + " do it");
        } else if (!task.isRealTime() && thread.hasPriority()) {
            warnings.add(where(thread) + " is " + thread.scheduling() + ", but task \"" + task.name + "\" is best "
                + "effort, which has no priority in a set, so no bound counts its time; write SCHED_OTHER, or give the "
                + "task a priority");
        }
    }

    /** While a task waits for the GPU, a thread of its own would let others on; one that is shared does not. */
    private void warnOfSharing(final List<String> warnings) {
        for (int i = 0; i < threads.length; i++) {
            final Entry thread = threads[i];
            if (thread != null && Arrays.asList(threads).indexOf(thread) < i) {
                warnings.add(where(thread) + " is the thread of task \"" + tasks.get(i).task().name + "\" and of \""
                    + tasks.get(Arrays.asList(threads).indexOf(thread)).task().name
                    + "\"; no bound counts that one waits while the "
                    + "other waits for the GPU: give each a callback group of its own");
            }
        }
    }

    /** The command that writes a set's cores and priorities into the file. */
    private String filling() {
        return "gpuseg trace taskset SET " + oneLine(configuration.file());
    }

    private String where(final Entry thread) {
        return oneLine(configuration.file()) + ":" + thread.line() + ": " + thread.shown();
    }

    /** Cores that the machine has at least. */
    int cpus() {
        return Arrays.stream(threads).filter(Objects::nonNull).flatMap(thread -> thread.cores().stream())
            .mapToInt(core -> core + 1).max().orElse(1);
    }

    /** Cores from 0 that a task may use; empty = all. */
    List<Integer> cores(final int task) {
        return threads[task] == null ? List.of() : threads[task].cores();
    }

    /** Whether a task may use a core from 0. */
    boolean mayUse(final int task, final int core) {
        return cores(task).isEmpty() || cores(task).contains(core);
    }

    /** The CPU priority of a real-time task. */
    int priority(final int task) {
        return threads[task] != null && threads[task].hasPriority() ? threads[task].priority()
            : tasks.get(task).task().priority;
    }

    /**
     * Warns of what depends on the cores.
     *
     * @param cpu      core of each task, from 1
     * @param warnings gets the lines
     */
    void warn(final int[] cpu, final List<String> warnings) {
        if (configuration == null) {
            return;
        }
        final Map<Integer, Integer> lowest = new TreeMap<>();
        for (int i = 0; i < cpu.length; i++) {
            final Trace.Task task = tasks.get(i).task();
            if (!task.isRealTime()) {
                continue;
            }
            lowest.merge(cpu[i], priority(i), Math::min);
            if (threads[i] != null && threads[i].cores().size() != 1) {
                warnings.add(where(threads[i]) + " has " + (threads[i].cores().isEmpty() ? "no affinity" : "affinity "
                    + threads[i].cores()) + ", but task \"" + task.name + "\" has one core in a set, which says cpu: "
                    + cpu[i] + "; write affinity: [" + (cpu[i] - 1) + "], or let " + filling() + " do it");
            }
        }
        warnings.addAll(configuration.uncounted(Arrays.asList(threads), lowest));
    }

    /** A line for each thread that is none of a task. */
    List<String> others() {
        final List<String> lines = new ArrayList<>();
        if (configuration != null) {
            configuration.entries().stream().filter(entry -> !Arrays.asList(threads).contains(entry)).forEach(entry ->
                lines.add("No task of the set: line " + entry.line() + ", " + entry.shown() + ", "
                    + entry.scheduling()));
        }
        return lines;
    }

    /** A name of a file as part of a comment. */
    static String oneLine(final String text) {
        return text.replaceAll("\\p{Cntrl}", "?");
    }
}

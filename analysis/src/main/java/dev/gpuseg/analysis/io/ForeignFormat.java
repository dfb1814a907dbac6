/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.TaskName;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Task sets of related projects. Each constant states what its format lacks; the user must add it: cores and priorities
 * by {@code --partition} and {@code --assign}, epsilon is 1 ms.
 */
public enum ForeignFormat {
    /** Records of the published GCAPS generator, one a line: {@link GcapsArtifactImporter}. Batches only. */
    GCAPS_ARTIFACT("gcaps-artifact"),
    /**
     * {@code taskset.csv} of the GCAPS case study: columns {@code taskid,workload,period,wcet} with this header,
     * milliseconds. It gives one number for the whole job, so a workload whose name contains {@code cpu} becomes CPU
     * work, any other one GPU segment whose device part is the whole (host part 0): split it where you know better.
     */
    GCAPS_CSV("gcaps-csv"),
    /**
     * DISB workload: {@code {"tasks": [{"id", "load": {"type": "periodic"|"poisson"|"continuous"|"trace"|"dependent",
     * "frequency": per second}, "client": {"name", "model_name", ...}}]}}. This project adds to a task what its model
     * needs: {@code exec_ms} (or {@code latency_ms}), {@code deadline_ms}, {@code priority} (0 = best effort), and
     * {@code interval_ms} beside {@code frequency}. Loads without a minimal distance (all but periodic) have no worst
     * case and become best effort. The priority in a load orders its start and does not count.
     */
    DISB("disb"),
    /**
     * rt-app JSON, with the comments and the commas before closing brackets that its files have: {@code tasks: {NAME:
     * {instance, policy, priority, cpus, deadline, phases: {NAME: {loop, run, runtime, timer: {ref, period, mode}}}}}},
     * microseconds, or a text with a unit. This project adds the event {@code gpu: {host, device}} and a list
     * {@code events} of events in their order; a timer without {@code ref} is the task's own. The work between two
     * timers is a job, at the timer's period; of a SCHED_DEADLINE task without one, {@code dl-runtime} every
     * {@code dl-period}. {@code delay}, {@code util_min}, {@code util_max}, {@code nodes_membind}, {@code taskgroup}
     * and what is {@code global} but its {@code default_policy} do not count. Events that wait for others, jobs that
     * differ, and loops that end are refused.
     */
    RT_APP("rt-app");

    private static final long DEFAULT_EPSILON_NS = 1_000_000L;
    private static final List<String> CSV_COLUMNS = List.of("taskid", "workload", "period", "wcet");
    private static final NodeReader FILES = new NodeReader("task set", TaskSetReader.MAX_BYTES, "give one file each",
        "remove one", true);
    private static final NodeReader RT_APP_FILES = new NodeReader("task set", TaskSetReader.MAX_BYTES,
        "give one file each", "number them, like run1 and run2, if both are meant, else remove one", true);

    private final String word;

    ForeignFormat(final String word) {
        this.word = word;
    }

    /**
     * Finds a format.
     *
     * @param word as on the command line
     * @return the format
     * @throws IllegalArgumentException if there is none of that name
     */
    public static ForeignFormat of(final String word) {
        for (final ForeignFormat format : values()) {
            if (format.word.equals(word)) {
                return format;
            }
        }
        throw new IllegalArgumentException("format '" + word
            + "' does not exist; known are gcaps-artifact, gcaps-csv, disb, rt-app");
    }

    /**
     * A reader of lines, for batches.
     *
     * @return the reader
     * @throws IllegalArgumentException if the format has one task set per file
     */
    public BatchRunner.LineReader lines() {
        if (this != GCAPS_ARTIFACT) {
            throw new IllegalArgumentException("format '" + word + "' holds one task set a file; leave out --batch");
        }
        return new GcapsArtifactImporter()::readLine;
    }

    /**
     * Reads one file.
     *
     * @param path      the file
     * @param cpus      number of cores, 1..1024
     * @param epsilonNs update delay of the GPU, negative for the default of 1 ms
     * @return the task set; cores and priorities only where the format gives them
     * @throws InvalidFileException     if the content is refused
     * @throws IOException              if the file cannot be read
     * @throws IllegalArgumentException if the format is for batches only
     */
    public TaskSet read(final Path path, final int cpus, final long epsilonNs) throws IOException {
        if (this == GCAPS_ARTIFACT) {
            throw new IllegalArgumentException("format '" + word + "' holds one task set a line; use --batch");
        }
        final String content = FILES.load(path);
        final String file = path.toString();
        try {
            final Platform platform = Platform.of(cpus, Gpu.ofEpsilon(epsilonNs < 0 ? DEFAULT_EPSILON_NS : epsilonNs));
            final List<Task> tasks = switch (this) {
                case GCAPS_CSV -> csv(content, file);
                case DISB -> DisbImporter.tasks(FILES.readJson(content, file));
                default -> new RtAppImporter(cpus).tasks(RT_APP_FILES.readJson(content, file));
            };
            final String last = path.getFileName().toString();
            return new TaskSet(last.contains(".") ? last.substring(0, Math.max(1, last.indexOf('.'))) : last, platform,
                WaitMode.SUSPEND, tasks);
        } catch (final InvalidModelException e) {
            throw new InvalidFileException(file, 0, e.getMessage());
        }
    }

    private static List<Task> csv(final String content, final String file) throws InvalidFileException {
        final List<Task> tasks = new ArrayList<>();
        for (final CsvTable.Row row : CsvTable.parse(content, file, CSV_COLUMNS).rows()) {
            final String workload = row.cells().get(1);
            final String name = row.cells().get(0) + "-" + workload;
            final String refusal = TaskName.refusal(name);
            if (refusal != null) {
                throw row.refusal("the name of the task, taskid-workload, " + refusal);
            }
            final long period = time(row, name + ": period", row.cells().get(2));
            final long wcet = time(row, name + ": wcet", row.cells().get(3));
            try {
                tasks.add(new Task(name, 0, 0, period, period, 0, 0, 0, 0, false,
                    List.of(workload.contains("cpu") ? new Segment.Cpu(wcet) : new Segment.Gpu(0, wcet))));
            } catch (final InvalidModelException e) {
                throw row.refusal(e.getMessage());
            }
        }
        return tasks;
    }

    private static long time(final CsvTable.Row row, final String what, final String cell)
        throws InvalidFileException {
        try {
            return ForeignTime.ns(cell, ForeignTime.MILLISECONDS);
        } catch (final IllegalArgumentException e) {
            throw row.refusal(what + " " + e.getMessage());
        }
    }

    /** A task of a file that gives each place; what the model refuses is refused there. */
    static Task task(final Node at, final String name, final int cpu, final long periodNs, final long deadlineNs,
        final int priority, final boolean bestEffort, final List<Segment> segments) throws InvalidFileException {
        final String refusal = TaskName.refusal(name);
        if (refusal != null) {
            throw at.refusal("the name of the task " + refusal);
        }
        try {
            return new Task(name, cpu, 0, periodNs, deadlineNs, 0, 0, priority, priority, bestEffort, segments);
        } catch (final InvalidModelException e) {
            throw at.refusal(e.getMessage());
        }
    }
}

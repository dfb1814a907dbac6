/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.certificate;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.LimitedFile;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.WindowBounds;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A task set, reduced to what theorem 1 of {@code docs/window.md} needs (fixed priorities, threads suspend), with its
 * bounds. The format is described in {@code analysis/coq/README.md}. A certificate proves nothing until it is checked:
 * {@link CoqCheck}.
 *
 * @param format   {@link #FORMAT}
 * @param version  {@link #VERSION}
 * @param analysis {@link #ANALYSIS}
 * @param id       of the task set
 * @param gpus     the GPUs, in the order of the platform
 * @param tasks    the real-time tasks, in the order of the file
 */
public record Certificate(@JsonProperty(required = true) String format, @JsonProperty(required = true) int version,
    @JsonProperty(required = true) String analysis, @JsonProperty(required = true) String id,
    @JsonProperty(required = true) List<GpuLine> gpus, @JsonProperty(required = true) List<TaskLine> tasks) {
    /** The word that tells a certificate from other JSON files. */
    public static final String FORMAT = "gpuseg-certificate";
    /** The version of the format. */
    public static final int VERSION = 1;
    /** The analysis whose bounds are certified. */
    public static final String ANALYSIS = "gcaps-window-suspend";

    private static final ObjectMapper JSON = JsonMapper.builder()
        .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
        .enable(SerializationFeature.INDENT_OUTPUT)
        .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
        .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
        .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
        .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
        .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
        .build();

    /**
     * A GPU.
     *
     * @param epsilonNs longest update
     * @param stallNs   stops that the scheduler does not cause; the theorem knows none, so the checker wants 0
     */
    public record GpuLine(@JsonProperty(required = true) long epsilonNs,
        @JsonProperty(required = true) long stallNs) {
        /** Refuses negative times. */
        public GpuLine {
            requireNatural("gpu", epsilonNs, stallNs);
        }
    }

    /**
     * One GPU segment.
     *
     * @param hostNs   host part
     * @param deviceNs device part
     * @param totalNs  both together; the checker wants the sum
     * @param windowNs F: bound on the length of the window
     */
    public record SegmentLine(@JsonProperty(required = true) long hostNs,
        @JsonProperty(required = true) long deviceNs, @JsonProperty(required = true) long totalNs,
        @JsonProperty(required = true) long windowNs) {
        /** Refuses negative times. */
        public SegmentLine {
            requireNatural("segment", hostNs, deviceNs, totalNs, windowNs);
        }
    }

    /**
     * A real-time task.
     *
     * @param name         for messages only
     * @param cpu          core
     * @param gpu          index into the GPUs; without meaning if there are no segments
     * @param process      two tasks with segments may not share one: a GPU context belongs to one task
     * @param priority     at the core, larger is higher
     * @param gpuPriority at the GPU, larger is higher
     * @param periodNs    T
     * @param deadlineNs  D
     * @param jitterNs    Jr: longest time from arrival to release
     * @param blockingNs  B: declared blocking outside of windows
     * @param cpuNs       C: CPU work outside of windows
     * @param epsilonNs   the update that the recurrence charges to a task without segments
     * @param responseNs  R
     * @param segments     the GPU segments, in order
     */
    public record TaskLine(@JsonProperty(required = true) String name, @JsonProperty(required = true) int cpu,
        @JsonProperty(required = true) int gpu, @JsonProperty(required = true) int process,
        @JsonProperty(required = true) int priority, @JsonProperty(required = true) int gpuPriority,
        @JsonProperty(required = true) long periodNs, @JsonProperty(required = true) long deadlineNs,
        @JsonProperty(required = true) long jitterNs, @JsonProperty(required = true) long blockingNs,
        @JsonProperty(required = true) long cpuNs, @JsonProperty(required = true) long epsilonNs,
        @JsonProperty(required = true) long responseNs,
        @JsonProperty(required = true) List<SegmentLine> segments) {
        /** Refuses negative numbers. */
        public TaskLine {
            segments = List.copyOf(segments);
            requireNatural("task \"" + name + "\"", cpu, gpu, process, priority, gpuPriority, periodNs, deadlineNs,
                jitterNs, blockingNs, cpuNs, epsilonNs, responseNs);
        }
    }

    /** Refuses other formats. */
    public Certificate {
        if (!FORMAT.equals(format) || version != VERSION || !ANALYSIS.equals(analysis)) {
            throw new InvalidModelException("format is \"" + format + "\", version " + version + ", analysis \""
                + analysis + "\"; it must be \"" + FORMAT + "\", version " + VERSION + ", \"" + ANALYSIS + "\"");
        }
        gpus = List.copyOf(gpus);
        tasks = List.copyOf(tasks);
    }

    /**
     * Analyses a set and states the bounds. Hypotheses of the theorem are not looked at here: the checker does that.
     *
     * @param set every real-time task with a core and priorities; threads suspend
     * @return the certificate, or empty if a task misses its deadline
     * @throws InvalidModelException if threads spin, tasks share a process, or a core or priority is missing
     */
    public static Optional<Certificate> of(final TaskSet set) {
        if (set.mode() != WaitMode.SUSPEND) {
            throw new InvalidModelException("task set \"" + set.id() + "\": mode is " + set.mode().word()
                + "; certificates exist for mode: suspend only");
        }
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            final Task first = set.tasks().get(process(set, i));
            if (first != task && task.gpuSegmentCount() > 0 && first.gpuSegmentCount() > 0) {
                throw new InvalidModelException("tasks \"" + first.name() + "\" and \"" + task.name()
                    + "\" share process \"" + task.process() + "\"; certificates exist for tasks of different "
                    + "processes only");
            }
        }
        return WindowBounds.of(set).map(bounds -> of(set.slowed(), bounds));
    }

    private static Certificate of(final TaskSet set, final WindowBounds bounds) {
        final List<TaskLine> lines = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            if (!task.bestEffort()) {
                lines.add(new TaskLine(task.name(), task.cpu(), task.gpu(), process(set, i), task.priority(),
                    task.gpuPriority(),
                    task.periodNs(), task.deadlineNs(), task.jitterNs(), task.blockingNs(), task.cpuNs(),
                    bounds.epsilonNs()[i], bounds.responseNs()[i], segments(task, bounds.lengthNs()[i])));
            }
        }
        return new Certificate(FORMAT, VERSION, ANALYSIS, set.id(), set.platform().gpus().stream()
            .map(gpu -> new GpuLine(gpu.epsilonNs(), gpu.stallNs())).toList(), lines);
    }

    /** The index of the first task in the same process. */
    private static int process(final TaskSet set, final int task) {
        final String name = set.tasks().get(task).process();
        int first = 0;
        while (name != null && !name.equals(set.tasks().get(first).process())) {
            first++;
        }
        return name == null ? task : first;
    }

    private static List<SegmentLine> segments(final Task task, final long[] lengthNs) {
        final List<SegmentLine> lines = new ArrayList<>();
        for (final Segment segment : task.segments()) {
            if (segment instanceof Segment.Gpu g) {
                lines.add(new SegmentLine(g.hostNs(), g.deviceNs(), g.totalNs(), lengthNs[lines.size()]));
            }
        }
        return lines;
    }

    /** The file form; indented JSON with a final newline. */
    public String json() {
        try {
            return JSON.writeValueAsString(this) + "\n";
        } catch (final JsonProcessingException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Reads a certificate; unknown, missing and repeated keys are refused.
     *
     * @param file what {@link #json} wrote
     * @return the certificate
     * @throws InvalidFileException if it is none
     * @throws IOException          if the file cannot be read
     */
    public static Certificate read(final Path file) throws IOException {
        final String text = LimitedFile.text(file);
        try {
            return JSON.readValue(text, Certificate.class);
        } catch (final JsonProcessingException e) {
            final int line = e.getLocation() == null ? 0 : e.getLocation().getLineNr();
            throw new InvalidFileException(file.toString(), Math.max(0, line), e.getOriginalMessage());
        }
    }

    private static void requireNatural(final String what, final long... values) {
        for (final long value : values) {
            if (value < 0) {
                throw new InvalidModelException(what + ": " + value + " is negative; numbers of a certificate are 0 "
                    + "or more");
            }
        }
    }
}

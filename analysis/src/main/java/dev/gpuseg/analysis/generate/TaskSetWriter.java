/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.fasterxml.jackson.dataformat.yaml.YAMLGenerator;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.IOException;
import java.io.StringWriter;
import java.io.Writer;

/** Writes task sets in the format that the reader of this module reads; every value survives the round trip exactly. */
public final class TaskSetWriter {
    /** File formats. */
    public enum Format {
        /** One set, for people. */
        YAML,
        /** One set. */
        JSON,
        /** One set per line: a batch. */
        JSONL
    }

    private static final JsonFactory JSON = new JsonFactory();
    private static final YAMLFactory YAML = YAMLFactory.builder().disable(YAMLGenerator.Feature.WRITE_DOC_START_MARKER)
        .enable(YAMLGenerator.Feature.MINIMIZE_QUOTES).build();

    private TaskSetWriter() {
    }

    /**
     * Writes one set.
     *
     * @param set    the set
     * @param format file format
     * @param out    receives the text, ends of lines included; not closed
     * @throws IOException if it cannot be written
     */
    public static void write(final TaskSet set, final Format format, final Writer out) throws IOException {
        final StringWriter text = new StringWriter();
        try (JsonGenerator json = format == Format.YAML ? YAML.createGenerator(text) : JSON.createGenerator(text)) {
            if (format == Format.JSON) {
                json.setPrettyPrinter(new DefaultPrettyPrinter());
            }
            writeSet(set, json);
        }
        final String written = text.toString();
        out.write(written);
        if (!written.endsWith("\n")) {
            out.write('\n');
        }
    }

    private static void writeSet(final TaskSet set, final JsonGenerator json) throws IOException {
        json.writeStartObject();
        json.writeNumberField("version", 1);
        json.writeStringField("id", set.id());
        json.writeObjectFieldStart("platform");
        json.writeNumberField("cpus", set.platform().cpus());
        if (set.platform().gpus().size() == 1) {
            writeGpu(set.platform().gpus().get(0), json);
        } else if (!set.platform().gpus().isEmpty()) {
            json.writeArrayFieldStart("gpus");
            for (final Gpu gpu : set.platform().gpus()) {
                json.writeStartObject();
                writeGpu(gpu, json);
                json.writeEndObject();
            }
            json.writeEndArray();
        }
        if (set.platform().optimistic()) {
            json.writeBooleanField("optimistic", true);
        }
        json.writeEndObject();
        json.writeStringField("mode", set.mode().word());
        json.writeArrayFieldStart("tasks");
        for (final Task task : set.tasks()) {
            writeTask(task, set.platform().gpus().size(), json);
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private static void writeGpu(final Gpu gpu, final JsonGenerator json) throws IOException {
        writeTime("epsilon", gpu.epsilonNs(), json);
        writeTime("alpha", gpu.alphaNs(), json);
        writeTime("theta", gpu.thetaNs(), json);
        writeTime("timeslice", gpu.timesliceNs(), json);
    }

    private static void writeTask(final Task task, final int gpus, final JsonGenerator json) throws IOException {
        json.writeStartObject();
        json.writeStringField("name", task.name());
        if (task.cpu() > 0) {
            json.writeNumberField("cpu", task.cpu());
        }
        if (gpus > 1 && task.gpuSegmentCount() > 0) {
            json.writeNumberField("gpu", task.gpu());
        }
        writeTime("period", task.periodNs(), json);
        if (task.deadlineNs() != task.periodNs()) {
            writeTime("deadline", task.deadlineNs(), json);
        }
        if (task.jitterNs() > 0) {
            writeTime("jitter", task.jitterNs(), json);
        }
        if (task.blockingNs() > 0) {
            writeTime("blocking", task.blockingNs(), json);
        }
        if (task.bestEffort()) {
            json.writeBooleanField("best_effort", true);
        } else if (task.priority() > 0) {
            json.writeNumberField("priority", task.priority());
            if (task.gpuPriority() != task.priority() && task.gpuPriority() > 0) {
                json.writeNumberField("gpu_priority", task.gpuPriority());
            }
        }
        json.writeArrayFieldStart("segments");
        for (final Segment segment : task.segments()) {
            json.writeStartObject();
            if (segment instanceof Segment.Gpu gpu) {
                json.writeObjectFieldStart("gpu");
                writeTime("host", gpu.hostNs(), json);
                writeTime("device", gpu.deviceNs(), json);
                if (gpu.totalNs() != gpu.hostNs() + gpu.deviceNs()) {
                    writeTime("total", gpu.totalNs(), json);
                }
                json.writeEndObject();
            } else if (segment instanceof Segment.Cpu cpu) {
                writeTime("cpu", cpu.durationNs(), json);
            }
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private static void writeTime(final String field, final long ns, final JsonGenerator json) throws IOException {
        json.writeStringField(field, Durations.format(ns));
    }
}

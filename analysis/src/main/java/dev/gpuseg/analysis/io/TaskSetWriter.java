/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;

/** Writes task sets in the format that {@link TaskSetReader} reads; reading gives an equal set. Stateless. */
public final class TaskSetWriter {
    private static final JsonFactory JSON = new JsonFactory();

    private TaskSetWriter() {
    }

    /**
     * One line of JSON, for a batch.
     *
     * @param set any set
     * @return JSON without a newline
     */
    public static String line(final TaskSet set) {
        return write(set, false);
    }

    /**
     * Indented JSON.
     *
     * @param set any set
     * @return JSON with a final newline
     */
    public static String json(final TaskSet set) {
        return write(set, true) + "\n";
    }

    private static String write(final TaskSet set, final boolean indent) {
        final StringWriter text = new StringWriter();
        try (JsonGenerator out = JSON.createGenerator(text)) {
            if (indent) {
                out.useDefaultPrettyPrinter();
            }
            out.writeStartObject();
            out.writeNumberField("version", 1);
            out.writeStringField("id", set.id());
            writePlatform(out, set);
            out.writeStringField("mode", set.mode().word());
            out.writeArrayFieldStart("tasks");
            for (final Task task : set.tasks()) {
                writeTask(out, task, set.chains().maxPeriodNs().getOrDefault(task.name(), 0L));
            }
            out.writeEndArray();
            if (!set.chains().isEmpty()) {
                writeChains(out, set.chains());
            }
            out.writeEndObject();
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
        return text.toString();
    }

    /** Constants of a profile are written out, so that the line means the same where the profile is missing. */
    private static void writePlatform(final JsonGenerator out, final TaskSet set) throws IOException {
        out.writeObjectFieldStart("platform");
        out.writeNumberField("cpus", set.platform().cpus());
        if (set.platform().optimistic()) {
            out.writeBooleanField("optimistic", true);
        }
        if (set.platform().simulated()) {
            out.writeBooleanField("simulated", true);
        }
        if (!set.platform().space().isNone()) {
            writeSpace(out, set.platform().space());
        }
        writeLimits(out, set.platform().limits());
        if (set.platform().gpus().size() == 1) {
            writeGpu(out, set.platform().gpus().get(0));
        } else {
            out.writeArrayFieldStart("gpus");
            for (final Gpu gpu : set.platform().gpus()) {
                out.writeStartObject();
                writeGpu(out, gpu);
                out.writeEndObject();
            }
            out.writeEndArray();
        }
        out.writeEndObject();
    }

    private static void writeSpace(final JsonGenerator out, final SpaceLimits space) throws IOException {
        out.writeObjectFieldStart("space");
        if (space.reservePercent() > 0) {
            out.writeStringField("reserve", space.reservePercent() + "%");
        }
        out.writeStringField("slowdown", space.slowdownPercent() + "%");
        out.writeStringField("in_flight", Durations.format(space.inFlightNs()));
        out.writeEndObject();
    }

    private static void writeLimits(final JsonGenerator out, final PlatformLimits limits) throws IOException {
        if (limits.clockPermille() > 0) {
            out.writeFieldName("clock");
            out.writeNumber(limits.clock());
        }
        if (limits.newcomerNs() > 0) {
            out.writeObjectFieldStart("newcomers");
            out.writeStringField("delay", Durations.format(limits.newcomerNs()));
            out.writeStringField("period", Durations.format(limits.newcomerPeriodNs()));
            out.writeEndObject();
        } else if (limits.withoutNewcomers()) {
            out.writeStringField("newcomers", "none");
        }
        if (limits.contexts() > 0) {
            out.writeNumberField("contexts", limits.contexts());
        }
        if (limits.samples() > 0) {
            out.writeNumberField("samples", limits.samples());
        }
        if (limits.turns() != null) {
            out.writeObjectFieldStart("turns");
            out.writeStringField("slice", Durations.format(limits.turns().sliceNs()));
            out.writeNumberField("contexts", limits.turns().contexts());
            if (limits.turns().isMeasured()) {
                out.writeStringField("wait", Durations.format(limits.turns().waitNs()));
            }
            if (limits.turns().samples() > 0) {
                out.writeNumberField("samples", limits.turns().samples());
            }
            if (limits.turns().together()) {
                out.writeBooleanField("together", true);
            }
            out.writeEndObject();
        }
    }

    private static void writeGpu(final JsonGenerator out, final Gpu gpu) throws IOException {
        out.writeStringField("epsilon", Durations.format(gpu.epsilonNs()));
        if (gpu.alphaNs() <= gpu.epsilonNs()) {
            out.writeStringField("alpha", Durations.format(gpu.alphaNs()));
        }
        out.writeStringField("theta", Durations.format(gpu.thetaNs()));
        out.writeStringField("timeslice", Durations.format(gpu.timesliceNs()));
        if (gpu.stallNs() > 0) {
            out.writeObjectFieldStart("stall");
            out.writeStringField("length", Durations.format(gpu.stallNs()));
            out.writeStringField("period", Durations.format(gpu.stallPeriodNs()));
            out.writeEndObject();
        }
    }

    private static void writeChains(final JsonGenerator out, final Chains chains) throws IOException {
        out.writeArrayFieldStart("chains");
        for (final Chain chain : chains.all()) {
            out.writeStartObject();
            out.writeStringField("name", chain.name());
            out.writeArrayFieldStart("tasks");
            for (final String task : chain.tasks()) {
                out.writeString(task);
            }
            out.writeEndArray();
            out.writeArrayFieldStart("edges");
            for (final Chain.Edge edge : chain.edges()) {
                out.writeString(edge.word());
            }
            out.writeEndArray();
            writeIfPositive(out, "reaction", chain.reactionNs());
            writeIfPositive(out, "age", chain.ageNs());
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private static void writeTask(final JsonGenerator out, final Task task, final long maxPeriodNs)
        throws IOException {
        out.writeStartObject();
        out.writeStringField("name", task.name());
        if (task.cpu() > 0) {
            out.writeNumberField("cpu", task.cpu());
        }
        if (task.gpu() > 0) {
            out.writeNumberField("gpu", task.gpu());
        }
        out.writeStringField("period", Durations.format(task.periodNs()));
        if (task.deadlineNs() != task.periodNs()) {
            out.writeStringField("deadline", Durations.format(task.deadlineNs()));
        }
        writeIfPositive(out, "max_period", maxPeriodNs);
        writeIfPositive(out, "jitter", task.jitterNs());
        writeIfPositive(out, "blocking", task.blockingNs());
        if (task.priority() > 0) {
            out.writeNumberField("priority", task.priority());
        }
        if (task.gpuPriority() > 0 && task.gpuPriority() != task.priority()) {
            out.writeNumberField("gpu_priority", task.gpuPriority());
        }
        if (task.bestEffort()) {
            out.writeBooleanField("best_effort", true);
        }
        if (task.process() != null) {
            out.writeStringField("process", task.process());
        }
        if (task.reservePercent() > 0) {
            out.writeStringField("reserve", task.reservePercent() + "%");
        }
        if (task.missLimit() != null) {
            out.writeObjectFieldStart("weakly_hard");
            out.writeNumberField("misses", task.missLimit().misses());
            out.writeNumberField("jobs", task.missLimit().jobs());
            out.writeEndObject();
        }
        if (task.overload() != null) {
            out.writeObjectFieldStart("overload");
            out.writeStringField("period", Durations.format(task.overload().periodNs()));
            out.writeNumberField("typical", task.overload().typicalPercent());
            out.writeEndObject();
        }
        out.writeArrayFieldStart("segments");
        for (final Segment segment : task.segments()) {
            out.writeStartObject();
            if (segment instanceof Segment.Cpu cpu) {
                out.writeStringField("cpu", Durations.format(cpu.durationNs()));
            } else if (segment instanceof Segment.Gpu gpu) {
                out.writeObjectFieldStart("gpu");
                out.writeStringField("host", Durations.format(gpu.hostNs()));
                out.writeStringField("device", Durations.format(gpu.deviceNs()));
                if (gpu.totalNs() != gpu.hostNs() + gpu.deviceNs()) {
                    out.writeStringField("total", Durations.format(gpu.totalNs()));
                }
                if (gpu.bursts() > 1) {
                    out.writeNumberField("bursts", gpu.bursts());
                }
                out.writeEndObject();
            }
            out.writeEndObject();
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    private static void writeIfPositive(final JsonGenerator out, final String name, final long ns) throws IOException {
        if (ns > 0) {
            out.writeStringField(name, Durations.format(ns));
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.TaskResult;
import dev.gpuseg.analysis.rta.Terms;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Locale;

/** Writes results as JSON, as one line of a batch, and as text. Stateless. */
public final class ResultWriter {
    private static final JsonFactory JSON = new JsonFactory();

    private ResultWriter() {
    }

    /**
     * The full result: {@code
     * {"id","results":{NAME:{"schedulable","tasks":[{"name","wcrt_ns","deadline_ns","schedulable", "terms"}]}}}},
     * tasks in file order, nanoseconds, null where there is no bound.
     *
     * @param id      of the task set
     * @param results one per analysis
     * @return JSON, indented, with a final newline
     */
    public static String json(final String id, final List<AnalysisResult> results) {
        return write(id, results, true, (out, tasks) -> {
            out.writeArrayFieldStart("tasks");
            for (final TaskResult task : tasks) {
                writeTask(out, task);
            }
            out.writeEndArray();
        }) + '\n';
    }

    /**
     * One line of a batch: {@code {"id","results":{NAME:{"schedulable","wcrt_ns":[…]}}}}, tasks in file order.
     *
     * @param id      of the task set
     * @param results one per analysis
     * @return JSON without a newline
     */
    public static String line(final String id, final List<AnalysisResult> results) {
        return write(id, results, false, (out, tasks) -> {
            out.writeArrayFieldStart("wcrt_ns");
            for (final TaskResult task : tasks) {
                writeNanoseconds(out, task.wcrtNs());
            }
            out.writeEndArray();
        });
    }

    /** What is written of the tasks of one analysis. */
    @FunctionalInterface
    private interface TaskFields {
        void write(JsonGenerator out, List<TaskResult> tasks) throws IOException;
    }

    private static String write(final String id, final List<AnalysisResult> results, final boolean indent,
        final TaskFields fields) {
        final StringWriter text = new StringWriter();
        try (JsonGenerator out = JSON.createGenerator(text)) {
            if (indent) {
                out.useDefaultPrettyPrinter();
            }
            out.writeStartObject();
            out.writeStringField("id", id);
            out.writeObjectFieldStart("results");
            for (final AnalysisResult result : results) {
                out.writeObjectFieldStart(result.analysis());
                out.writeBooleanField("schedulable", result.schedulable());
                fields.write(out, result.tasks());
                ChainWriter.json(out, result, Analyses.describing(result).claim());
                out.writeEndObject();
            }
            out.writeEndObject();
            out.writeEndObject();
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
        return text.toString();
    }

    /**
     * A table per analysis, times in milliseconds.
     *
     * @param set     the analysed set
     * @param results one per analysis
     * @return text with a final newline
     */
    public static String text(final TaskSet set, final List<AnalysisResult> results) {
        return text(set, results, null);
    }

    /**
     * The same, with a column of measured responses.
     *
     * @param set      the analysed set
     * @param results  one per analysis
     * @param measured or null
     * @return text with a final newline
     */
    public static String text(final TaskSet set, final List<AnalysisResult> results, final Measurement measured) {
        final StringBuilder out = new StringBuilder();
        out.append("task set ").append(set.id()).append(": ").append(set.tasks().size()).append(" tasks, ")
            .append(set.platform().cpus()).append(" cores, ").append(set.platform().gpus().size()).append(" GPU");
        out.append(set.platform().gpus().size() == 1
            ? ", epsilon " + Durations.format(set.platform().gpus().get(0).epsilonNs()) : "s").append('\n');
        int width = 4;
        for (final var task : set.tasks()) {
            width = Math.max(width, Math.min(40, task.name().length()));
        }
        for (final AnalysisResult result : results) {
            final Analysis analysis = Analyses.describing(result);
            out.append('\n').append(result.analysis()).append(": ")
                .append(result.schedulable() ? "schedulable" : "NOT schedulable").append('\n');
            out.append("  ").append(analysis.summary()).append(" [").append(claim(analysis.claim())).append("]\n");
            out.append(String.format(Locale.ROOT, "  %-" + width + "s %12s %12s %12s%s  %s%n", "task", "bound ms",
                "deadline ms", "slack ms", measured == null ? "" : String.format("%13s", "measured ms"),
                "made of (ms)"));
            for (final TaskResult task : result.tasks()) {
                out.append(row(task, width, set.tasks().get(result.tasks().indexOf(task)).bestEffort(),
                    measured));
            }
            out.append(ChainWriter.text(result, analysis.claim()));
        }
        if (measured != null) {
            out.append("\nmeasured: longest responses in ").append(measured.caption()).append('\n');
        }
        return out.toString();
    }

    private static String row(final TaskResult task, final int width, final boolean bestEffort,
        final Measurement measured) {
        final Long max = measured == null ? null : measured.maxNs(task.name());
        final String bound = task.wcrtNs() != null ? Durations.milliseconds(task.wcrtNs()) : bestEffort ? "-"
            : "> deadline";
        final String slack = task.wcrtNs() != null ? Durations.milliseconds(task.deadlineNs() - task.wcrtNs()) : "-";
        return String.format(Locale.ROOT, "  %-" + width + "s %12s %12s %12s%s  %s%n", task.name(), bound,
            Durations.milliseconds(task.deadlineNs()), slack, measured == null ? ""
                : String.format("%13s", max == null ? "-" : Durations.milliseconds(max)),
            bestEffort ? "best effort" : terms(task.terms()));
    }

    private static String terms(final Terms terms) {
        if (terms == null) {
            return "";
        }
        final StringBuilder out = new StringBuilder("own ").append(Durations.milliseconds(terms.ownNs()));
        append(out, "jitter", terms.jitterNs());
        append(out, "preemption", terms.preemptionNs());
        append(out, "interference", terms.interferenceNs());
        append(out, "interleaving", terms.interleavingNs());
        append(out, "blocking", terms.blockingNs());
        append(out, "overhead", terms.overheadNs());
        return out.toString();
    }

    private static void append(final StringBuilder out, final String name, final long ns) {
        if (ns != 0) {
            out.append(" + ").append(name).append(' ').append(Durations.milliseconds(ns));
        }
    }

    private static String claim(final Analysis.Claim claim) {
        return switch (claim) {
            case SOUND -> "sound for this scheduler";
            case MODEL_ONLY -> "holds for its own model, not for this scheduler";
            case COMPARISON -> "for comparison only";
        };
    }

    private static void writeTask(final JsonGenerator out, final TaskResult task) throws IOException {
        out.writeStartObject();
        out.writeStringField("name", task.name());
        out.writeFieldName("wcrt_ns");
        writeNanoseconds(out, task.wcrtNs());
        out.writeNumberField("deadline_ns", task.deadlineNs());
        out.writeBooleanField("schedulable", task.schedulable());
        if (task.terms() == null) {
            out.writeNullField("terms");
        } else {
            final Terms terms = task.terms();
            out.writeObjectFieldStart("terms");
            out.writeNumberField("own_ns", terms.ownNs());
            out.writeNumberField("jitter_ns", terms.jitterNs());
            out.writeNumberField("preemption_ns", terms.preemptionNs());
            out.writeNumberField("interference_ns", terms.interferenceNs());
            out.writeNumberField("interleaving_ns", terms.interleavingNs());
            out.writeNumberField("blocking_ns", terms.blockingNs());
            out.writeNumberField("overhead_ns", terms.overheadNs());
            out.writeEndObject();
        }
        out.writeEndObject();
    }

    private static void writeNanoseconds(final JsonGenerator out, final Long ns) throws IOException {
        if (ns == null) {
            out.writeNull();
        } else {
            out.writeNumber(ns);
        }
    }
}

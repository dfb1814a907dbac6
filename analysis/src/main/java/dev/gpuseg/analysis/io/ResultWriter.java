/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.AnalysisDescription;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.Hypotheses;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TaskResult;
import dev.gpuseg.analysis.rta.Terms;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** Writes results as JSON, as one line of a batch, and as text. Stateless. */
public final class ResultWriter {
    private static final JsonFactory JSON = new JsonFactory();

    private ResultWriter() {
    }

    /**
     * The full result: {@code
     * {"id","results":{NAME:{"schedulable","claim","claim_text","hypotheses":[{"id","text","status","detail"}],
     * "tasks":[{"name","wcrt_ns","deadline_ns","schedulable","terms"}]}}}}, tasks in file order, nanoseconds, null
     * where there is no bound.
     *
     * @param set     the analysed set
     * @param results one per analysis
     * @return JSON, indented, with a final newline
     */
    public static String json(final TaskSet set, final List<AnalysisResult> results) {
        return json(set, results, false);
    }

    /**
     * The same for tasks that are open.
     *
     * @param set     the analysed set
     * @param results one per analysis
     * @param boosted whether all real-time tasks are known to be open with a boost
     * @return JSON, indented, with a final newline
     */
    public static String json(final TaskSet set, final List<AnalysisResult> results, final boolean boosted) {
        return json(set, results, boosted, null);
    }

    /**
     * The same with everything else that a report says: the fields {@code verdict}, {@code out_of_model} and
     * {@code provenance}, of a refused set {@code why}, and what was measured.
     *
     * @param set     the analysed set
     * @param results one per analysis
     * @param dossier what is known besides the bounds
     * @return JSON, indented, with a final newline
     */
    public static String json(final TaskSet set, final List<AnalysisResult> results, final Dossier dossier) {
        return json(set, results, false, dossier);
    }

    private static String json(final TaskSet set, final List<AnalysisResult> results, final boolean boosted,
        final Dossier dossier) {
        return write(set, boosted, results, true, dossier, (out, result) -> {
            writeSoundness(out, Soundness.of(Analyses.describe(result.analysis()), set, boosted));
            out.writeArrayFieldStart("tasks");
            for (final TaskResult task : result.tasks()) {
                out.writeStartObject();
                writeTask(out, task);
                if (dossier != null) {
                    DossierWriter.writeMeasured(out, dossier, task.name(), task.wcrtNs(), task.deadlineNs());
                }
                out.writeEndObject();
            }
            out.writeEndArray();
            if (dossier != null) {
                DossierWriter.writeRefusal(out, dossier, result);
            }
        }) + '\n';
    }

    /**
     * Writes the fields {@code claim}, {@code claim_text} and {@code hypotheses} into the object that is open.
     *
     * @param out       where to
     * @param soundness what is claimed
     * @throws IOException if that fails
     */
    public static void writeSoundness(final JsonGenerator out, final Soundness soundness) throws IOException {
        out.writeStringField("claim", soundness.verdict().word());
        out.writeStringField("claim_text", soundness.text());
        out.writeArrayFieldStart("hypotheses");
        for (final Hypotheses.Finding finding : soundness.findings()) {
            out.writeStartObject();
            out.writeStringField("id", finding.hypothesis().id());
            out.writeStringField("text", finding.hypothesis().text());
            out.writeStringField("status", finding.status().word());
            if (!finding.detail().isEmpty()) {
                out.writeStringField("detail", finding.detail());
            }
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    /**
     * One line of a batch: {@code {"id","results":{NAME:{"schedulable","wcrt_ns":[…]}}}}, tasks in file order.
     *
     * @param set     the analysed set
     * @param results one per analysis
     * @return JSON without a newline
     */
    public static String line(final TaskSet set, final List<AnalysisResult> results) {
        return write(set, false, results, false, null, (out, result) -> {
            out.writeArrayFieldStart("wcrt_ns");
            for (final TaskResult task : result.tasks()) {
                writeNanoseconds(out, task.wcrtNs());
            }
            out.writeEndArray();
        });
    }

    /** What is written of one analysis. */
    @FunctionalInterface
    private interface TaskFields {
        void write(JsonGenerator out, AnalysisResult result) throws IOException;
    }

    private static String write(final TaskSet set, final boolean boosted, final List<AnalysisResult> results,
        final boolean indent, final Dossier dossier, final TaskFields fields) {
        final StringWriter text = new StringWriter();
        try (JsonGenerator out = JSON.createGenerator(text)) {
            if (indent) {
                out.useDefaultPrettyPrinter();
            }
            out.writeStartObject();
            out.writeStringField("id", set.id());
            if (dossier != null) {
                Verdict.of(set, results, dossier.measured()).write(out);
                DossierWriter.writeTurns(out, dossier);
            }
            if (indent && set.platform().simulated()) {
                out.writeBooleanField("simulated", true);
            }
            if (!set.platform().space().isNone()) {
                out.writeStringField("space", set.platform().space().text());
            }
            out.writeObjectFieldStart("results");
            for (final AnalysisResult result : results) {
                out.writeObjectFieldStart(result.analysis());
                out.writeBooleanField("schedulable", result.schedulable());
                fields.write(out, result);
                MissWriter.json(out, result);
                if (!result.chains().isEmpty()) {
                    ChainWriter.json(out, result, Soundness.of(Analyses.describe(result.analysis()), set, boosted));
                }
                out.writeEndObject();
            }
            out.writeEndObject();
            if (dossier != null) {
                DossierWriter.write(out, dossier);
            }
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
        return text(set, results, new Dossier(null, Map.of(), null));
    }

    /**
     * The same, with a column of measured responses and everything else that a report says.
     *
     * @param set     the analysed set
     * @param results one per analysis
     * @param dossier what is known besides the bounds
     * @return text with a final newline
     */
    public static String text(final TaskSet set, final List<AnalysisResult> results, final Dossier dossier) {
        final Measurement measured = dossier.measured();
        final StringBuilder out = new StringBuilder();
        out.append("task set ").append(set.id()).append(": ").append(set.tasks().size()).append(" tasks, ")
            .append(set.platform().cpus()).append(" cores, ").append(set.platform().gpus().size()).append(" GPU");
        out.append(set.platform().gpus().size() == 1
            ? ", epsilon " + Durations.format(set.platform().gpus().get(0).epsilonNs()) : "s")
            .append(set.platform().caveat()).append('\n');
        final Verdict verdict = Verdict.of(set, results, measured);
        out.append("verdict: ").append(verdict.sentence()).append('\n');
        dossier.turnLines().forEach(line -> out.append(line).append('\n'));
        int width = 4;
        for (final var task : set.tasks()) {
            width = Math.max(width, Math.min(40, task.name().length()));
        }
        for (final AnalysisResult result : results) {
            final AnalysisDescription analysis = Analyses.describe(result.analysis());
            out.append('\n').append(result.analysis()).append(": ")
                .append(result.schedulable() ? "schedulable" : "NOT schedulable").append('\n');
            final Soundness soundness = Soundness.of(analysis, set);
            out.append("  ").append(analysis.summary()).append('\n');
            out.append("  ").append(soundness.text()).append('\n');
            out.append(String.format(Locale.ROOT, "  %-" + width + "s %12s %12s %12s%s  %s%n", "task", "bound ms",
                "deadline ms", "slack ms", measured == null ? "" : String.format("%13s", "measured ms"),
                "made of (ms)"));
            for (final TaskResult task : result.tasks()) {
                out.append(row(task, width, set.tasks().get(result.tasks().indexOf(task)).bestEffort(),
                    measured));
            }
            out.append(MissWriter.text(result));
            out.append(ChainWriter.text(result, soundness));
            out.append(DossierWriter.refusal(dossier, result.analysis()));
        }
        if (measured != null) {
            out.append("\nmeasured: longest responses in ").append(measured.caption())
                .append("; ! = above the bound or the deadline\n");
        }
        out.append(hypotheses(set, results)).append(DossierWriter.outOfModel())
            .append(DossierWriter.provenance(dossier)).append('\n')
            .append(NextStep.of(set, verdict, dossier)).append('\n');
        return out.toString();
    }

    private static String row(final TaskResult task, final int width, final boolean bestEffort,
        final Measurement measured) {
        final Long max = measured == null ? null : measured.maxNs(task.name());
        final String bound = task.wcrtNs() != null ? Durations.milliseconds(task.wcrtNs()) : bestEffort ? "-"
            : task.passed() != null ? ">= " + Durations.milliseconds(task.passed().totalNs()) : "> deadline";
        final String slack = task.wcrtNs() != null ? Durations.milliseconds(task.deadlineNs() - task.wcrtNs())
            : task.passed() != null ? "<= " + Durations.milliseconds(task.deadlineNs() - task.passed().totalNs()) : "-";
        final String seen = max == null ? "-" : Durations.milliseconds(max)
            + (!bestEffort && (max > task.deadlineNs() || task.wcrtNs() != null && max > task.wcrtNs()) ? "!" : "");
        return String.format(Locale.ROOT, "  %-" + width + "s %12s %12s %12s%s  %s%n", task.name(), bound,
            Durations.milliseconds(task.deadlineNs()), slack, measured == null ? "" : String.format("%13s", seen),
            bestEffort ? "best effort" : task.terms() == null && task.passed() != null ? terms(task.passed())
                + " when it passed the deadline" : terms(task.terms()));
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

    /** The hypotheses of the analyses that are sound, each once. */
    private static String hypotheses(final TaskSet set, final List<AnalysisResult> results) {
        final Map<Hypotheses.Finding, String> users = new TreeMap<>(
            Comparator.comparing(Hypotheses.Finding::hypothesis).thenComparing(Hypotheses.Finding::status)
                .thenComparing(Hypotheses.Finding::detail));
        for (final AnalysisResult result : results) {
            final Soundness soundness = Soundness.of(Analyses.describe(result.analysis()), set);
            if (soundness.verdict() != Soundness.Verdict.NOT_SOUND) {
                for (final Hypotheses.Finding finding : soundness.findings()) {
                    users.merge(finding, result.analysis(), (a, b) -> a + ", " + b);
                }
            }
        }
        final StringBuilder out = new StringBuilder(users.isEmpty() ? "" : "\nhypotheses of the sound bounds:\n");
        users.forEach((finding, who) -> out.append(String.format(Locale.ROOT, "  %-4s %-10s %s%s%s%n",
            finding.hypothesis().id(), finding.status().word(), finding.hypothesis().text(),
            finding.detail().isEmpty() ? "" : " (" + finding.detail() + ")",
            results.size() == 1 ? "" : " [" + who + "]")));
        return out.toString();
    }

    private static void writeTask(final JsonGenerator out, final TaskResult task) throws IOException {
        out.writeStringField("name", task.name());
        out.writeFieldName("wcrt_ns");
        writeNanoseconds(out, task.wcrtNs());
        out.writeNumberField("deadline_ns", task.deadlineNs());
        out.writeBooleanField("schedulable", task.schedulable());
        writeTerms(out, "terms", task.terms());
        if (task.passed() != null) {
            out.writeNumberField("passed_ns", task.passed().totalNs());
            writeTerms(out, "passed_terms", task.passed());
        }
    }

    private static void writeTerms(final JsonGenerator out, final String field, final Terms terms)
        throws IOException {
        if (terms == null) {
            out.writeNullField(field);
            return;
        }
        out.writeObjectFieldStart(field);
        out.writeNumberField("own_ns", terms.ownNs());
        out.writeNumberField("jitter_ns", terms.jitterNs());
        out.writeNumberField("preemption_ns", terms.preemptionNs());
        out.writeNumberField("interference_ns", terms.interferenceNs());
        out.writeNumberField("interleaving_ns", terms.interleavingNs());
        out.writeNumberField("blocking_ns", terms.blockingNs());
        out.writeNumberField("overhead_ns", terms.overheadNs());
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

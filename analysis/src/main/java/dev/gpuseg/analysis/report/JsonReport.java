/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.io.ChainWriter;
import dev.gpuseg.analysis.io.DossierWriter;
import dev.gpuseg.analysis.io.MissWriter;
import dev.gpuseg.analysis.io.ResultWriter;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TaskResult;
import dev.gpuseg.analysis.rta.Terms;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;

/**
 * The report for programs. Times are integer nanoseconds, factors integer thousandths. The keys {@code id} and
 * {@code results} are those of {@code analyze --format json}; the others are additional.
 */
public final class JsonReport {
    private static final JsonFactory JSON = new JsonFactory();

    private JsonReport() {
    }

    /**
     * Renders a report.
     *
     * @param report the report
     * @return one JSON object
     */
    public static String render(final Report report) {
        final StringWriter text = new StringWriter();
        try (JsonGenerator json = JSON.createGenerator(text)) {
            json.useDefaultPrettyPrinter();
            json.writeStartObject();
            json.writeStringField("id", report.set().id());
            report.verdict().write(json);
            DossierWriter.writeTurns(json, report.dossier());
            json.writeBooleanField("schedulable", report.schedulable());
            json.writeBooleanField("simulated", report.set().platform().simulated());
            if (!report.set().platform().space().isNone()) {
                json.writeStringField("space", report.set().platform().space().text());
            }
            json.writeObjectFieldStart("results");
            for (final Report.Section section : report.sections()) {
                writeSection(json, report, section);
            }
            json.writeEndObject();
            DossierWriter.write(json, report.dossier());
            json.writeEndObject();
        } catch (final IOException e) {
            throw new UncheckedIOException("a string cannot be written to", e);
        }
        return text + "\n";
    }

    private static void writeSection(final JsonGenerator json, final Report report, final Report.Section section)
        throws IOException {
        json.writeObjectFieldStart(section.analysis().name());
        json.writeBooleanField("schedulable", section.result().schedulable());
        final Soundness soundness = Soundness.of(section.analysis().description(), report.set());
        ResultWriter.writeSoundness(json, soundness);
        json.writeArrayFieldStart("tasks");
        for (int i = 0; i < report.set().tasks().size(); i++) {
            final Task task = report.set().tasks().get(i);
            final TaskResult bound = section.result().tasks().get(i);
            json.writeStartObject();
            json.writeStringField("name", task.name());
            if (bound.wcrtNs() == null) {
                json.writeNullField("wcrt_ns");
            } else {
                json.writeNumberField("wcrt_ns", bound.wcrtNs());
            }
            json.writeNumberField("deadline_ns", task.deadlineNs());
            json.writeBooleanField("schedulable", bound.schedulable());
            writeTerms(json, "terms", bound.terms());
            if (bound.passed() != null) {
                json.writeNumberField("passed_ns", bound.passed().totalNs());
                writeTerms(json, "passed_terms", bound.passed());
            }
            json.writeNumberField("cpu_ns", task.cpuNs());
            json.writeNumberField("gpu_ns", task.gpuNs());
            if (section.worst() != null) {
                json.writeNumberField("simulated_max_ns", section.worst().maxResponseNs().get(i));
            }
            DossierWriter.writeMeasured(json, report.dossier(), task.name(), bound.wcrtNs(),
                task.deadlineNs());
            writeFactor(json, "cpu_factor_permille", section.sensitivity().taskCpuPermille().get(i));
            writeFactor(json, "gpu_factor_permille", section.sensitivity().taskGpuPermille().get(i));
            json.writeEndObject();
        }
        json.writeEndArray();
        DossierWriter.writeRefusal(json, report.dossier(), section.result());
        MissWriter.json(json, section.result());
        ChainWriter.json(json, section.result(), soundness);
        json.writeObjectFieldStart("sensitivity");
        if (section.sensitivity().epsilonNs().isPresent()) {
            json.writeNumberField("epsilon_max_ns", section.sensitivity().epsilonNs().getAsLong());
        } else {
            json.writeNullField("epsilon_max_ns");
        }
        writeFactor(json, "cpu_factor_permille", section.sensitivity().cpuPermille());
        writeFactor(json, "gpu_factor_permille", section.sensitivity().gpuPermille());
        json.writeEndObject();
        json.writeEndObject();
    }

    private static void writeTerms(final JsonGenerator json, final String field, final Terms terms)
        throws IOException {
        if (terms != null) {
            json.writeObjectFieldStart(field);
            final long[] values = Figures.values(terms);
            for (int k = 0; k < values.length; k++) {
                json.writeNumberField(Figures.TERM_KEYS[k] + "_ns", values[k]);
            }
            json.writeEndObject();
        }
    }

    private static void writeFactor(final JsonGenerator json, final String field, final long permille)
        throws IOException {
        if (permille < 0) {
            json.writeNullField(field);
        } else {
            json.writeNumberField(field, permille);
        }
    }
}

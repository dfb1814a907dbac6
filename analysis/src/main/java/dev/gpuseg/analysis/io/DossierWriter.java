/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.OutOfModel;
import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;

/** Writes what a report says besides the bounds, as text and JSON. Stateless. */
public final class DossierWriter {
    private DossierWriter() {
    }

    /**
     * Why an analysis refuses a set.
     *
     * @param dossier  what is known
     * @param analysis its name
     * @return lines under a heading; empty if it accepts the set
     */
    public static String refusal(final Dossier dossier, final String analysis) {
        final List<String> lines = dossier.refusal(analysis);
        return lines.isEmpty() ? "" : "\nwhy " + analysis + " refuses it, and what would help:\n"
            + lines.stream().map(line -> "  " + line + '\n').collect(Collectors.joining());
    }

    /** What no bound covers: one line each under a heading. */
    public static String outOfModel() {
        final StringBuilder out = new StringBuilder("\nout of the model (what happens: what the daemon does; where it "
            + "is seen):\n");
        for (final OutOfModel each : OutOfModel.values()) {
            out.append("  ").append(each.what()).append(" -- the daemon: ").append(each.daemon()).append(" -- seen: ")
                .append(each.seen()).append('\n');
        }
        return out.toString();
    }

    /**
     * What the report was made of.
     *
     * @param dossier what is known
     * @return lines under a heading; empty if it is not known
     */
    public static String provenance(final Dossier dossier) {
        final Provenance from = dossier.provenance();
        if (from == null) {
            return "";
        }
        final StringBuilder out = new StringBuilder("\nmade of:\n  tool         ").append(from.tool()).append('\n');
        for (final Provenance.Input file : from.files()) {
            out.append(String.format("  %-12s %s sha256 %s%s%n", file.role(), file.name(), file.sha256(),
                file.remark().isEmpty() ? "" : ", " + file.remark()));
        }
        for (final Provenance.Constant constant : from.constants()) {
            out.append(String.format("  %-12s %s (%s)%n", constant.name(), constant.value(), constant.origin()));
        }
        return out.toString();
    }

    /**
     * Writes the field {@code why} into the object of a result that is open, if the analysis refuses the set.
     *
     * @param out     where to
     * @param dossier what is known
     * @param result  of the analysis
     * @throws IOException if that fails
     */
    public static void writeRefusal(final JsonGenerator out, final Dossier dossier, final AnalysisResult result)
        throws IOException {
        if (!dossier.refusal(result.analysis()).isEmpty()) {
            out.writeArrayFieldStart("why");
            for (final String line : dossier.refusal(result.analysis())) {
                out.writeString(line);
            }
            out.writeEndArray();
        }
    }

    /**
     * Writes the field {@code turns} into the object that is open, if the bounds by calls and by turns were compared:
     * {@code {"chosen","calls_schedulable","turns_schedulable","lines"}}.
     *
     * @param out     where to
     * @param dossier what is known
     * @throws IOException if that fails
     */
    public static void writeTurns(final JsonGenerator out, final Dossier dossier) throws IOException {
        if (dossier.turns() == null) {
            return;
        }
        out.writeObjectFieldStart("turns");
        out.writeStringField("chosen", dossier.turns().analysis().name());
        out.writeBooleanField("calls_schedulable", dossier.turns().calls().schedulable());
        out.writeBooleanField("turns_schedulable", dossier.turns().turns().schedulable());
        out.writeArrayFieldStart("lines");
        for (final String line : dossier.turnLines()) {
            out.writeString(line);
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    /**
     * Writes the fields {@code out_of_model} and {@code provenance} into the object that is open.
     *
     * @param out     where to
     * @param dossier what is known
     * @throws IOException if that fails
     */
    public static void write(final JsonGenerator out, final Dossier dossier) throws IOException {
        out.writeArrayFieldStart("out_of_model");
        for (final OutOfModel each : OutOfModel.values()) {
            out.writeStartObject();
            out.writeStringField("what", each.what());
            out.writeStringField("daemon", each.daemon());
            out.writeStringField("seen", each.seen());
            out.writeEndObject();
        }
        out.writeEndArray();
        final Provenance from = dossier.provenance();
        if (from == null) {
            return;
        }
        out.writeObjectFieldStart("provenance");
        out.writeStringField("tool", from.tool());
        out.writeArrayFieldStart("files");
        for (final Provenance.Input file : from.files()) {
            out.writeStartObject();
            out.writeStringField("role", file.role());
            out.writeStringField("name", file.name());
            out.writeStringField("sha256", file.sha256());
            if (!file.remark().isEmpty()) {
                out.writeStringField("remark", file.remark());
            }
            out.writeEndObject();
        }
        out.writeEndArray();
        out.writeArrayFieldStart("constants");
        for (final Provenance.Constant constant : from.constants()) {
            out.writeStartObject();
            out.writeStringField("name", constant.name());
            out.writeStringField("value", constant.value());
            out.writeStringField("origin", constant.origin());
            out.writeEndObject();
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    /**
     * Writes the fields {@code measured_max_ns}, {@code measured_jobs}, {@code measured_misses} and, with a bound,
     * {@code measured_above} (at least so many jobs exceeded it) into the object of a task that is open.
     *
     * @param out        where to
     * @param dossier    what is known
     * @param task       its name
     * @param boundNs    its bound, or null
     * @param deadlineNs its relative deadline
     * @throws IOException if that fails
     */
    public static void writeMeasured(final JsonGenerator out, final Dossier dossier, final String task,
        final Long boundNs, final long deadlineNs) throws IOException {
        final Measurement.Figure figure = dossier.measured() == null ? null : dossier.measured().byTask().get(task);
        if (figure != null) {
            out.writeNumberField("measured_max_ns", figure.maxNs());
            out.writeNumberField("measured_jobs", figure.jobs());
            out.writeNumberField("measured_misses", figure.misses());
            if (boundNs != null) {
                out.writeNumberField("measured_above", figure.above(boundNs, deadlineNs));
            }
        }
    }
}

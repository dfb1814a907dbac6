/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.MissBound;
import java.io.IOException;

/** Writes the bounds on misses of tasks with a weakly hard constraint as text and JSON. Stateless. */
public final class MissWriter {
    private MissWriter() {
    }

    /**
     * Lines about the misses of a result.
     *
     * @param result any
     * @return lines, empty if no task may miss a deadline
     */
    public static String text(final AnalysisResult result) {
        final StringBuilder out = new StringBuilder();
        for (final MissBound bound : result.misses()) {
            out.append("  task ").append(bound.task()).append(": ").append(sentence(bound)).append('\n');
        }
        return out.toString();
    }

    /**
     * What is known of one task.
     *
     * @param bound any
     * @return without the name and a full stop
     */
    public static String sentence(final MissBound bound) {
        final String limit = ", limit " + bound.limit().misses() + (bound.holds() ? " ok" : " MISS");
        if (bound.bound() == null) {
            return "no bound on its misses of " + bound.limit().jobs() + " jobs" + limit + ": " + bound.problem();
        }
        return "at most " + bound.bound() + " of " + bound.limit().jobs() + " jobs late" + limit + (bound.bound() == 0
            ? "" : " (without overload " + Durations.milliseconds(bound.usualNs()) + " ms)");
    }

    /**
     * Writes the field {@code misses} into the object that is open: {@code [{"task","limit","jobs","bound","late_ns",
     * "usual_ns","holds","problem"}]}, null where there is no bound. Without such tasks it writes nothing.
     *
     * @param out    where to
     * @param result any
     * @throws IOException if that fails
     */
    public static void json(final JsonGenerator out, final AnalysisResult result) throws IOException {
        if (result.misses().isEmpty()) {
            return;
        }
        out.writeArrayFieldStart("misses");
        for (final MissBound bound : result.misses()) {
            out.writeStartObject();
            out.writeStringField("task", bound.task());
            out.writeNumberField("limit", bound.limit().misses());
            out.writeNumberField("jobs", bound.limit().jobs());
            number(out, "bound", bound.bound());
            number(out, "late_ns", bound.lateNs());
            number(out, "usual_ns", bound.usualNs());
            out.writeBooleanField("holds", bound.holds());
            out.writeStringField("problem", bound.problem());
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private static void number(final JsonGenerator out, final String name, final Long value) throws IOException {
        if (value == null) {
            out.writeNullField(name);
        } else {
            out.writeNumberField(name, value);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.ChainResult;
import dev.gpuseg.analysis.rta.Soundness;
import java.io.IOException;
import java.util.List;
import java.util.Locale;

/** Writes the bounds of chains as text and JSON. Stateless. */
public final class ChainWriter {
    private ChainWriter() {
    }

    /**
     * What a bound on a chain guarantees. It is a sum of bounds of tasks, so it holds where those do.
     *
     * @param soundness of the bounds of the tasks
     * @return one line without a full stop, with the hypotheses that fail
     */
    public static String claim(final Soundness soundness) {
        return soundness.text() + (soundness.verdict() == Soundness.Verdict.NOT_SOUND
            ? " (a bound on a chain is a sum of bounds of its tasks)"
            : "; for chains also the hypotheses of docs/chains.md (register communication, max_period is true)");
    }

    /**
     * Lines about the chains of a result.
     *
     * @param result    any
     * @param soundness of its bounds
     * @return lines, empty if there are no chains
     */
    public static String text(final AnalysisResult result, final Soundness soundness) {
        final StringBuilder out = new StringBuilder();
        if (!result.chains().isEmpty()) {
            out.append("  chains [").append(claim(soundness)).append("]\n");
        }
        for (final ChainResult chain : result.chains()) {
            out.append("  chain ").append(chain.name()).append(": ");
            if (!chain.problem().isEmpty()) {
                out.append("no bound: ").append(chain.problem()).append('\n');
                continue;
            }
            out.append("reaction ").append(latency(chain.reaction())).append(", age ").append(latency(chain.age()))
                .append('\n');
            steps(out, chain);
        }
        return out.toString();
    }

    private static String latency(final ChainResult.Latency latency) {
        final String bound = Durations.milliseconds(latency.boundNs());
        return latency.deadlineNs() == 0 ? bound + " ms"
            : bound + " of " + Durations.milliseconds(latency.deadlineNs()) + " ms " + (latency.holds() ? "ok"
                : "MISS");
    }

    private static void steps(final StringBuilder out, final ChainResult chain) {
        int width = 4;
        for (final ChainResult.Step step : chain.steps()) {
            width = Math.max(width, Math.min(40, step.task().length()));
        }
        for (final ChainResult.Step step : chain.steps()) {
            out.append(String.format(Locale.ROOT, "    %-" + width + "s %-8s %12s wait + %12s response%s%n",
                step.task(), step.edge(), Durations.milliseconds(step.waitNs()),
                Durations.milliseconds(step.responseNs()), step == chain.dominant() ? "   <- longest, "
                    + 100 * step.totalNs() / Math.max(1, chain.reaction().boundNs()) + " % of the reaction time" : ""));
        }
    }

    /**
     * Writes the field {@code chains} into the object that is open: {@code [{"name","schedulable","reaction_ns",
     * "reaction_deadline_ns","age_ns","age_deadline_ns","claim","problem","dominant","steps":[{"task","edge","wait_ns",
     * "response_ns","in_age"}]}]}, null where there is no bound or no limit. Without chains it writes nothing.
     *
     * @param out       where to
     * @param result    any
     * @param soundness of its bounds
     * @throws IOException if that fails
     */
    public static void json(final JsonGenerator out, final AnalysisResult result, final Soundness soundness)
        throws IOException {
        final List<ChainResult> chains = result.chains();
        if (chains.isEmpty()) {
            return;
        }
        out.writeArrayFieldStart("chains");
        for (final ChainResult chain : chains) {
            out.writeStartObject();
            out.writeStringField("name", chain.name());
            out.writeBooleanField("schedulable", chain.schedulable());
            latency(out, "reaction", chain.reaction());
            latency(out, "age", chain.age());
            out.writeStringField("claim", claim(soundness));
            out.writeStringField("problem", chain.problem());
            if (chain.dominant() == null) {
                out.writeNullField("dominant");
            } else {
                out.writeStringField("dominant", chain.dominant().task());
            }
            out.writeArrayFieldStart("steps");
            for (final ChainResult.Step step : chain.steps()) {
                out.writeStartObject();
                out.writeStringField("task", step.task());
                out.writeStringField("edge", step.edge());
                out.writeNumberField("wait_ns", step.waitNs());
                out.writeNumberField("response_ns", step.responseNs());
                out.writeBooleanField("in_age", step.inAge());
                out.writeEndObject();
            }
            out.writeEndArray();
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private static void latency(final JsonGenerator out, final String name, final ChainResult.Latency latency)
        throws IOException {
        if (latency.boundNs() == null) {
            out.writeNullField(name + "_ns");
        } else {
            out.writeNumberField(name + "_ns", latency.boundNs());
        }
        if (latency.deadlineNs() == 0) {
            out.writeNullField(name + "_deadline_ns");
        } else {
            out.writeNumberField(name + "_deadline_ns", latency.deadlineNs());
        }
    }
}

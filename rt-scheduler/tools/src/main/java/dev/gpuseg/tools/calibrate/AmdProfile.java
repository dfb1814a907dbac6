/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.tools.demo.Workload;
import java.util.Locale;

/** The platform profile of an AMD GPU: what was measured, and {@code unknown} for what was not. */
public final class AmdProfile {
    private static final double NS_PER_MS = 1e6;
    private static final double PERCENT = 100;

    private final ObjectNode measured;
    private final int margin;
    private final long epsilonNs;
    private final long alphaNs;
    private final long commandNs;
    private final long changeNs;

    /**
     * Adds the margin.
     *
     * @param costs    the longest that was observed
     * @param margin   percent, added to each
     * @param measured what was measured, and how
     */
    public AmdProfile(final AmdCalibration.Costs costs, final int margin, final ObjectNode measured) {
        this.measured = measured.put("margin_percent", margin);
        this.margin = margin;
        epsilonNs = more(costs.epsilonNs());
        measured.put("one_way_epsilon_ns", more(costs.oneWayNs()));
        alphaNs = more(costs.alphaNs());
        commandNs = more(costs.commandNs());
        changeNs = more(costs.changeNs());
    }

    private long more(final long ns) {
        return (long) Math.ceil(ns * (1 + margin / PERCENT));
    }

    private boolean isStandIn() {
        return measured.path("simulated").asBoolean();
    }

    private String change() {
        switch (measured.path("mode").asText()) {
            case "hws":
                return "all queues of the GPU unmapped and mapped: this delays every process";
            case "mes":
                return "one message to the firmware, for one queue";
            default:
                return "one queue's HQD unloaded or loaded, with the driver's wait for it";
        }
    }

    /** YAML for a file. */
    public String text() {
        final StringBuilder text = new StringBuilder("# Written by gpuseg calibrate. Longest delays observed, plus ")
            .append(margin).append(" %: no proof that none is longer.\n");
        if (isStandIn()) {
            text.append("# SIMULATED: a stand-in of the driver, NO AMD HARDWARE: the delays below were chosen by ")
                .append("the test.\n");
        }
        final int failed = measured.path("failed_changes").asInt();
        if (failed > 0) {
            text.append("# ").append(failed).append(" changes failed and are not in these numbers, the last so: ")
                .append(measured.path("last_failure").asText().replaceAll("\\p{Cntrl}", " ")).append('\n');
        }
        final String n = "n " + measured.path("begin_to_return_ns").path("n").asInt();
        line(text, "description", "\"" + (isStandIn() ? "SIMULATED, no AMD hardware: " : "")
            + measured.path("driver").asText().replace("\"", "'") + "\"", "");
        line(text, "cpus", Integer.toString(Runtime.getRuntime().availableProcessors()), "");
        line(text, "epsilon", Workload.us(epsilonNs), "longest begin to return (" + n + "), or command and the longest "
            + "call, and the longest return of all: with " + measured.path("processes").asInt() + " processes, "
            + measured.path("queues").asInt() + " queues. For more write epsilon: unknown, and contexts and queues");
        line(text, "alpha", Workload.us(alphaNs), "longest call of the daemon's (n "
            + measured.path("daemon_calls_ns").path("n").asInt() + ")");
        line(text, "theta", "unknown", "only kernels that share the GPU show it");
        line(text, "timeslice", "unknown", "the firmware's; only kernels that share the GPU show it");
        line(text, "optimistic", "true", "");
        text.append("amd:\n");
        line(text, "  interface", measured.path("interface").asText(), "");
        line(text, "  mode", measured.path("mode").asText(), "");
        line(text, "  command", Workload.us(commandNs), "longest begin to return less the driver's part (" + n + ")");
        line(text, "  change", Workload.us(changeNs), "longest, by the caller's clock (n " + calls() + "): "
            + change());
        line(text, "  contexts", "unknown", "the most processes with queues there will be");
        line(text, "  queues", "unknown", "the most of one process");
        line(text, "  foreign", "unknown", "shortest time between two changes by others, or none");
        text.append("measured: ").append(measured).append('\n');
        return text.toString();
    }

    private int calls() {
        int n = 0;
        for (final var cell : measured.path("changes")) {
            n += cell.path("hold_ns").path("n").asInt() + cell.path("release_ns").path("n").asInt();
        }
        return n;
    }

    private static void line(final StringBuilder to, final String key, final String value, final String comment) {
        to.append(key).append(": ").append(value);
        if (!comment.isEmpty()) {
            to.append("   # ").append(comment);
        }
        to.append('\n');
    }

    /** For programs: what was measured, and what is in the profile, ns. */
    public ObjectNode json() {
        return measured.put("epsilon_ns", epsilonNs).put("alpha_ns", alphaNs).put("command_ns", commandNs)
            .put("change_ns", changeNs);
    }

    /** A few lines for people. */
    public String summary() {
        return String.format(Locale.ROOT, "%s%s%nepsilon %.3f ms (longest driver call %.3f), command %.3f ms, one "
            + "change %.3f ms (%s); margin of %d %% in all%nchanges that failed: %d%nunknown: theta, timeslice, "
            + "contexts, queues, foreign",
            measured.path("driver").asText(), isStandIn() ? " (SIMULATED)" : "", epsilonNs / NS_PER_MS,
            alphaNs / NS_PER_MS, commandNs / NS_PER_MS, changeNs / NS_PER_MS, change(), margin,
            measured.path("failed_changes").asInt());
    }
}

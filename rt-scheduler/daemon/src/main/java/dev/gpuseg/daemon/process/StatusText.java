/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The answer to {@code status} as a human reads it; of the counters, what says trouble. Stateless. */
public final class StatusText {
    private static final double NS_PER_MS = 1e6;
    private static final double NS_PER_S = 1e9;
    private static final int PERCENT = 100;

    private StatusText() {
    }

    /**
     * Writes it down.
     *
     * @param status the answer as JSON
     * @return lines, each with its end
     */
    public static String of(final JsonNode status) {
        final StringBuilder out = new StringBuilder(1 << 11);
        final JsonNode daemon = status.path("daemon");
        line(out, "daemon   pid %d, up %.1f s, %s\n", daemon.path("pid").asLong(),
            daemon.path("uptime_ns").asLong() / NS_PER_S, daemon.path("dir").asText());
        line(out, "policy   %s, optimistic begins %s\n", daemon.path("policy").asText(),
            daemon.path("optimistic").asBoolean() ? "on" : "off");
        line(out, "enforce  %s (level %d, %s)%s: %s\n", daemon.path("mechanism").asText(),
            daemon.path("level").asInt(), daemon.path("level_name").asText(),
            daemon.path("simulated").asBoolean() ? ", SIMULATED GPU" : "", daemon.path("consequence").asText());
        line(out, "watchdog %s\n", daemon.path("watchdog_pid").asLong() == 0 ? "none"
            : "pid " + daemon.path("watchdog_pid").asLong() + ", period "
            + daemon.path("watchdog_period_ms").asInt() + " ms");
        line(out, "journal  %s, %d events%s\n", daemon.path("journal").asText(),
            daemon.path("journal_events").asLong(), daemon.path("journal_failure").asText().isEmpty() ? ""
            : " -- " + daemon.path("journal_failure").asText());
        final JsonNode space = status.path("space");
        if (!space.isMissingNode()) {
            line(out, "space    %d%% reserve, %d places, MPS at %s%s\n", space.path("reserve").asInt(),
                space.path("places").asInt(), space.path("pipe").asText(), space.path("failure").asText().isEmpty() ? ""
                : " -- " + space.path("failure").asText());
            if (space.path("occupied").asInt() > space.path("places").asInt()) {
                line(out, "         %d best-effort processes are inside: together they may take the reserve\n",
                    space.path("occupied").asInt());
            }
            if (!space.path("outside").isEmpty()) {
                final List<String> outside = new ArrayList<>();
                space.path("outside").forEach(program -> outside.add(program.asText()));
                line(out, "         outside, in time slices of the whole GPU: %s\n", String.join(", ", outside));
            }
        }
        for (final JsonNode gpu : status.path("gpus")) {
            if (gpu.path("best_effort_together").asBoolean()) {
                line(out, "turns    GPU %d: none, best effort shares it together: one program alone leaves it idle\n",
                    gpu.path("gpu").asInt());
            }
        }
        proof(out, status.path("admission"), mostContexts(status.path("gpus")));
        out.append('\n');
        line(out, "%5s %-20s %8s %5s %5s %4s %-10s %9s %9s %8s %8s %10s %10s %10s %6s\n", "TASK", "NAME", "PID", "PRIO",
            "BOOST", "GPU", "STATE", "SEGMENTS", "PREEMPTED", "JOBS", "MISSES", "P50 ms", "P99 ms",
            "MAX ms", "GPU %");
        for (final JsonNode task : status.path("tasks")) {
            final JsonNode response = task.path("response_ns");
            line(out, "%5d %-20s %8d %5s %5s %4d %-10s %9d %9d %8d %8d %10s %10s %10s %6.1f\n",
                task.path("id").asInt(), task.path("name").asText(), task.path("pid").asInt(),
                task.path("priority").asInt() == 0 ? "BE" : task.path("priority").asText(),
                task.path("boost").asInt() == 0 ? "-" : task.path("boost").asText(), task.path("gpu").asInt(),
                task.path("state").asText(), task.path("segments").asLong(), task.path("preemptions").asLong(),
                task.path("jobs").asLong(), task.path("job_misses").asLong(), milliseconds(response.path("p50")),
                milliseconds(response.path("p99")), milliseconds(response.path("max")),
                PERCENT * task.path("gpu_share").asDouble());
            if (task.path("reserve").asInt() > 0) {
                line(out, "%5s %-20s has %d%% of the GPU for itself\n", "", "", task.path("reserve").asInt());
            }
            if (task.path("skipped").asLong() > 0) {
                line(out, "%5s %-20s skipped %d of the jobs that it had released\n", "", "",
                    task.path("skipped").asLong());
            }
        }
        out.append('\n');
        for (final JsonNode counter : status.path("counters")) {
            if (counter.path("value").asLong() != 0 && counter.path("trouble").asBoolean(true)) {
                line(out, "%12d  %-28s %s\n", counter.path("value").asLong(), counter.path("label").asText(),
                    counter.path("description").asText());
            }
        }
        return out.toString();
    }

    /** How many processes have channels of one GPU, or may have; of the GPU with the most. */
    private static int mostContexts(final JsonNode gpus) {
        int most = 0;
        for (final JsonNode gpu : gpus) {
            int count = 0;
            for (final JsonNode context : gpu.path("contexts")) {
                count += context.path("units").asInt(1) > 0 ? 1 : 0;
            }
            most = Math.max(most, count);
        }
        return most;
    }

    /** What admission claims, and whether the machine has contradicted it. */
    private static void proof(final StringBuilder out, final JsonNode admission, final int contexts) {
        final long broken = admission.path("bounds_broken").asLong();
        final long constants = admission.path("constants_broken").asLong();
        if (broken > 0) {
            line(out, "proof    BROKEN: %d jobs took longer than their bound: a hypothesis does not hold here\n",
                broken);
        } else if (constants > 0) {
            line(out, "proof    BROKEN: %d driver calls and waits of begins took longer than the constants of the "
                + "proof: measure this machine again (gpuseg calibrate)\n", constants);
        } else if (admission.path("proven").asBoolean()) {
            line(out, "proof    %s\n", admission.path("claim").asText().isEmpty() ? "nothing is open"
                : admission.path("claim").asText());
            if (!admission.path("claim").asText().isEmpty()) {
                line(out, "bounds   %s\n", admission.path("constants").asText());
            }
            final int measured = admission.path("contexts_measured").asInt();
            if (measured > 0 && contexts > measured) {
                line(out, "         conditional: %d processes have a context of one GPU, the constants were measured "
                    + "with %d (gpuseg calibrate --others %d)\n", contexts, measured, contexts - 1);
            }
        } else if (!admission.isMissingNode()) {
            line(out, "proof    none%s\n", admission.path("problem").asText().isEmpty() ? ""
                : ": " + admission.path("problem").asText());
        }
    }

    private static void line(final StringBuilder out, final String format, final Object... values) {
        out.append(String.format(Locale.ROOT, format, values));
    }

    private static String milliseconds(final JsonNode ns) {
        return ns.isMissingNode() ? "-" : String.format(Locale.ROOT, "%.3f", ns.asLong() / NS_PER_MS);
    }
}

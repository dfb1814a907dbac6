/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.daemon.cgroup.GroupRule;
import java.io.PrintWriter;
import java.util.Locale;
import picocli.CommandLine.Command;

/** GPU time by control group. */
@Command(name = "cgroups", mixinStandardHelpOptions = true,
    description = "Show the GPU time, the rules and the fairness of control groups. Exit status 3: no daemon runs.",
    footer = "%nGPU time is the time of segments, from grant to end. While several groups use the GPU together, it is "
        + "divided equally. Processes that never registered have no segments, hence no time here.")
final class CgroupsCommand extends DaemonQuery {
    private static final double NS_PER_MS = 1e6;
    private static final double PERCENT = 100.0;

    @Override
    JsonNode part(final JsonNode status) {
        return status.path("cgroups");
    }

    @Override
    void print(final JsonNode cgroups, final PrintWriter out) {
        long total = 0;
        for (final JsonNode group : cgroups.path("groups")) {
            total += group.path("gpu_ns").asLong();
        }
        out.printf("%6s %6s %-12s %8s %9s %12s %7s %9s  %s%n", "PROCS", "WEIGHT", "CAP", "PRIORITY", "PROTECTED",
            "GPU ms", "SHARE", "WINDOWS", "CGROUP");
        for (final JsonNode group : cgroups.path("groups")) {
            final long ns = group.path("gpu_ns").asLong();
            final String path = group.path("path").asText();
            out.printf(Locale.ROOT, "%6d %6d %-12s %8s %9s %12.1f %6.1f%% %9d  %s%n",
                group.path("processes").asInt(), group.path("weight").asInt(), cap(group), priority(group),
                group.path("protected").asBoolean() ? "yes" : "-", ns / NS_PER_MS,
                total == 0 ? 0 : PERCENT * ns / total, group.path("windows").asLong(),
                path.isEmpty() ? "(none)" : path.replaceAll("\\p{Cntrl}", "?"));
        }
        out.println();
        if (!cgroups.path("rules_problem").asText().isEmpty()) {
            out.println("rules: " + cgroups.path("rules_problem").asText());
        }
        fairness("since start", cgroups.path("fairness"), out);
        fairness(String.format(Locale.ROOT, "last %.1f s", cgroups.path("fairness_recent").path("over_ns").asLong()
            / NS_PER_MS / 1e3), cgroups.path("fairness_recent"), out);
    }

    private static void fairness(final String when, final JsonNode fairness, final PrintWriter out) {
        out.printf(Locale.ROOT, "best-effort time by weight, %s: %d groups, Jain index %.3f, coefficient of variation "
            + "%.3f%n", when, fairness.path("groups").asInt(), fairness.path("jain").asDouble(),
            fairness.path("coefficient_of_variation").asDouble());
    }

    /** The highest that its tasks may have; - where the limits of their users say it. */
    private static String priority(final JsonNode group) {
        final int most = group.path("priority_max").asInt(GroupRule.NOT_SAID);
        return most == GroupRule.NOT_SAID ? "-" : Integer.toString(most);
    }

    private static String cap(final JsonNode group) {
        return group.path("cap_quota_ns").asLong() == 0 ? "-" : String.format(Locale.ROOT, "%.0f/%.0fms",
            group.path("cap_quota_ns").asLong() / NS_PER_MS, group.path("cap_period_ns").asLong() / NS_PER_MS);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** Prints results of {@code gpuseg bench gpu} as tables. */
public final class GpuBenchText {
    private static final double NS_PER_MS = 1e6;
    private static final double NS_PER_US = 1e3;
    private static final double PERCENT = 100;

    private final PrintWriter to;

    public GpuBenchText(final PrintWriter to) {
        this.to = to;
    }

    public void print(final JsonNode result, final List<GpuGoals.Goal> goals) {
        if (result.path("simulated").asBoolean()) {
            to.println("SIMULATED: a stand-in of the driver, its times mean nothing");
        }
        to.printf(Locale.ROOT, "GPU %s%n%s%n%d jobs per line, seed %d; times in milliseconds, BE = best-effort "
            + "processes, kept = of their kernels outside segments%n", result.path("gpu_before").asText(),
            result.path("driver").asText(), result.path("jobs").asInt(), result.path("seed").asInt());
        for (final Map.Entry<String, JsonNode> scenario : result.path("scenarios").properties()) {
            print(scenario.getKey(), scenario.getValue());
        }
        to.printf(Locale.ROOT, "%n%-78s | %-8s | %8s | met%n", "goal", "limit", "measured");
        goals.forEach(goal -> to.println(goal.text()));
        to.flush();
    }

    private void print(final String name, final JsonNode scenario) {
        to.printf("%n%s%s%n", name, kernels(scenario));
        for (final String reason : List.of("not_run", "failed")) {
            if (scenario.has(reason)) {
                to.printf("  %s: %s%n", reason.replace('_', ' '), scenario.path(reason).asText());
            }
        }
        if (!scenario.has("alone")) {
            return;
        }
        if (scenario.path("alone").has("tasks")) {
            together(scenario);
            return;
        }
        to.printf(Locale.ROOT, "%-3s %-38s %8s %8s %8s %9s %9s %9s %8s%n", "BE", "strategy", "p50", "p99", "max",
            "p50/alone", "p99/alone", "begin p50", "BE kept");
        line(0, "alone", scenario.path("alone"));
        if (scenario.has("alone_second")) {
            line(0, "alone, GPU 1", scenario.path("alone_second"));
        }
        for (final JsonNode cell : scenario.path("cells")) {
            line(cell.path("others").asInt(), cell.path("strategy").asText(), cell);
            if (cell.has("low")) {
                line(cell.path("others").asInt(), "    the lower level", cell.path("low"));
            }
            if (cell.has("other_gpu")) {
                line(cell.path("others").asInt(), "    the task on GPU 1", cell.path("other_gpu"));
            }
            if (cell.has("other_gpu_kept")) {
                to.printf(Locale.ROOT, "        best-effort work on GPU 1 kept, segments of GPU 0 included: %.1f%%%n",
                    cell.path("other_gpu_kept").asDouble() * PERCENT);
            }
            if (cell.has("others_to_unanticipated")) {
                to.printf(Locale.ROOT, "        best-effort work to that without anticipation: %.1f%%; late jobs: %s%n",
                    cell.path("others_to_unanticipated").asDouble() * PERCENT, cell.path("missed").asText());
            }
            if (cell.path("known_idle").asInt() > 0) {
                to.printf("        processes that the daemon took for idle: %s%n", cell.path("known_idle").asText());
            }
            if (cell.has("later_ns")) {
                to.printf(Locale.ROOT, "    %-38s %8.3f %8.3f %8.3f   driver calls per burst: %s%n",
                    "    second to last segment", ms(cell, "later_ns", "p50"), ms(cell, "later_ns", "p99"),
                    ms(cell, "later_ns", "max"), cell.path("calls_per_job").asText("-"));
            }
        }
        scenario.path("enforcement").forEach(this::enforcement);
    }

    /** Several measured processes in each cell. */
    private void together(final JsonNode scenario) {
        to.printf(Locale.ROOT, "%-12s %-24s %8s %8s %8s %9s %9s %6s %6s%n", "task", "strategy", "p50", "p99", "max",
            "p50/alone", "p99/alone", "late", "left");
        for (final JsonNode cell : scenario.path("cells")) {
            final String strategy = cell.path("strategy").asText();
            if (cell.has("failed")) {
                to.printf("%-12s %-24s failed: %s%n", "", strategy, cell.path("failed").asText());
            }
            for (final JsonNode task : cell.path("tasks")) {
                to.printf(Locale.ROOT, "%-12s %-24s %8.3f %8.3f %8.3f %9.3f %9.3f %6d %6d%n",
                    task.path("task").asText(), strategy, ms(task, "response_ns", "p50"),
                    ms(task, "response_ns", "p99"), ms(task, "response_ns", "max"),
                    task.path("p50_to_alone").asDouble(),
                    task.path("p99_to_alone").asDouble(), task.path("missed").asLong(), task.path("skipped").asLong());
                watched(task, strategy);
            }
            if (cell.has("kept_free_share")) {
                to.printf(Locale.ROOT, "%-12s %-24s GPU kept free %.2f%% of the time; begins anticipated %d, in vain "
                    + "%d, over budget %d%n", "", strategy, cell.path("kept_free_share").asDouble() * PERCENT,
                    cell.path("anticipated").asLong(), cell.path("anticipations_wasted").asLong(),
                    cell.path("anticipations_over_budget").asLong());
            }
            if (cell.has("loads")) {
                to.printf("%-12s %-24s jobs a second: %s%n", "", strategy, loads(cell));
            }
            if (cell.has("others_to_default")) {
                to.printf(Locale.ROOT, "%-12s %-24s best-effort work to that by the driver alone: %.1f%%%n", "",
                    strategy, cell.path("others_to_default").asDouble() * PERCENT);
            }
            if (cell.has("others_to_unanticipated")) {
                to.printf(Locale.ROOT, "%-12s %-24s best-effort work to that without anticipation: %.1f%%%n", "",
                    strategy, cell.path("others_to_unanticipated").asDouble() * PERCENT);
            }
        }
    }

    /** A task whose process knows when its CPU was away. */
    private void watched(final JsonNode task, final String strategy) {
        if (task.has("net_ns")) {
            to.printf(Locale.ROOT, "%-12s %-24s p99.9 %.3f; late without the time of its CPU's absence %d; then p50 "
                + "%.3f, p99 %.3f, p99.9 %.3f, max %.3f%n", "", strategy, ms(task, "response_ns", "p99.9"),
                task.path("missed").asLong() - task.path("excused").asLong(), ms(task, "net_ns", "p50"),
                ms(task, "net_ns", "p99"), ms(task, "net_ns", "p99.9"), ms(task, "net_ns", "max"));
        }
    }

    /** What each load did, and that to what it did by the driver alone. */
    private static String loads(final JsonNode cell) {
        return cell.path("loads").properties().stream().map(load -> String.format(Locale.ROOT, "%s %.1f%s%s",
            load.getKey(), load.getValue().asDouble(), !cell.has("loads_to_driver") ? "" : String.format(Locale.ROOT,
                " (%.2f)", cell.path("loads_to_driver").path(load.getKey()).asDouble()),
            wrong(cell.path("loads_wrong").path(load.getKey()).asLong()))).collect(Collectors.joining(", "));
    }

    private static String wrong(final long results) {
        return results == 0 ? "" : " WRONG " + results;
    }

    private static String kernels(final JsonNode scenario) {
        if (scenario.has("high_kernel_ms")) {
            return ": " + scenario.path("high_kernel_ms").asText() + " ms kernels above "
                + scenario.path("low_kernel_ms").asText() + " ms kernels";
        }
        return !scenario.has("kernel_ms") ? "" : ": " + scenario.path("kernel_ms").asText()
            + " ms kernels, best-effort kernels of " + scenario.path("other_kernel_ms").asText() + " ms";
    }

    private static double ms(final JsonNode cell, final String figures, final String figure) {
        return cell.path(figures).path(figure).asLong() / NS_PER_MS;
    }

    private void line(final int others, final String name, final JsonNode cell) {
        if (!cell.has("response_ns")) {
            to.printf(Locale.ROOT, "%-3d %-38s %s%n", others, name, cell.has("failed")
                ? "failed: " + cell.path("failed").asText() : "not run: " + cell.path("not_run").asText());
            return;
        }
        to.printf(Locale.ROOT, "%-3d %-38s %8.3f %8.3f %8.3f %9.3f %9.3f %9s %8s%n", others, name,
            ms(cell, "response_ns", "p50"), ms(cell, "response_ns", "p99"), ms(cell, "response_ns", "max"),
            cell.path("p50_to_alone").asDouble(1), cell.path("p99_to_alone").asDouble(1),
            cell.has("begin_ns") ? String.format(Locale.ROOT, "%.4f", ms(cell, "begin_ns", "p50")) : "-",
            cell.has("others_kept")
                ? String.format(Locale.ROOT, "%.1f%%", cell.path("others_kept").asDouble() * PERCENT) : "-");
    }

    private void enforcement(final JsonNode costs) {
        to.printf(Locale.ROOT, "enforcement against %d, p50 / p99 in us: bare call %s, begin to grant %s "
            + "(%.3f / %.3f of it), the daemon's driver call %s (%.3f / %.3f)%n", costs.path("others").asInt(),
            us(costs.path("bare_call_ns")), us(costs.path("begin_to_grant_ns")),
            costs.path("begin_to_bare_p50").asDouble(), costs.path("begin_to_bare_p99").asDouble(),
            us(costs.path("daemon_call_ns")), costs.path("call_to_bare_p50").asDouble(),
            costs.path("call_to_bare_p99").asDouble());
        final StringBuilder steps = new StringBuilder();
        costs.path("steps_ns").properties().forEach(step -> steps
            .append(steps.length() == 0 ? "  of which " : ", ")
            .append(step.getKey().replace('_', ' ')).append(' ').append(us(step.getValue())));
        to.println(steps);
    }

    private static String us(final JsonNode figures) {
        return String.format(Locale.ROOT, "%.0f / %.0f", figures.path("p50").asLong() / NS_PER_US,
            figures.path("p99").asLong() / NS_PER_US);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;

/** The goals of this project on a GPU, compared with a run of {@code gpuseg bench gpu}. */
public final class GpuGoals {
    static final double THREE = 1.2;
    static final double SEVEN = 1.25;
    private static final double DEFAULT = 4;
    static final double LEVELS = 1.2;
    private static final double TWO_GPUS = 1.25;
    private static final double KEPT = 0.95;
    private static final double HINT = 1.05;
    private static final double TORCH = 0.5;
    private static final double ENFORCEMENT = 1.1;

    /**
     * One goal.
     *
     * @param name     what is judged
     * @param atMost   whether the limit is an upper one
     * @param limit    the limit itself meets it
     * @param measured empty where this run did not measure it
     */
    public record Goal(String name, boolean atMost, double limit, OptionalDouble measured) {
        public boolean missed() {
            return measured.isPresent()
                && (atMost ? measured.getAsDouble() > limit : measured.getAsDouble() < limit);
        }

        String answer() {
            return measured.isEmpty() ? "not measured" : missed() ? "no" : "yes";
        }

        String text() {
            return String.format(Locale.ROOT, "%-78s | %s %-5s | %8s | %s", name, atMost ? "<=" : ">=", number(limit),
                measured.isPresent() ? number(measured.getAsDouble()) : "-", answer());
        }

        private static String number(final double value) {
            return value == Math.rint(value) && Math.abs(value) < 1e6 ? Long.toString((long) value)
                : String.format(Locale.ROOT, "%.3f", value);
        }
    }

    private GpuGoals() {
    }

    /**
     * Judges a run.
     *
     * @param result   of the bench
     * @param judged   the strategy that has to reach the goals of responses
     * @param xidLines new lines about faults in the kernel's log; null = unknown
     * @return every goal, measured or not
     */
    public static List<Goal> judge(final JsonNode result, final GpuStrategy judged, final Integer xidLines) {
        final JsonNode all = result.path("scenarios");
        final JsonNode loads = all.path("long");
        final List<Goal> goals = new ArrayList<>();
        final String title = judged.title();
        goals.add(atMost("p99 / alone against 3: " + title, THREE, ratio(cell(loads, 3, judged))));
        goals.add(new Goal("p99 / alone against 3: the driver by itself", false, DEFAULT,
            ratio(cell(loads, 3, GpuStrategy.NONE))));
        goals.add(atMost("p99 / alone against 7: " + title, SEVEN, ratio(cell(loads, 7, judged))));
        goals.add(atMost("higher of two levels, p99 / alone: " + title, LEVELS, ratio(cell(all.path("levels"), 1,
            judged))));
        goals.add(atMost("hint 2 ms ahead, worst p99 / alone", HINT, worst(loads, GpuStrategy.HINT)));
        goals.add(new Goal("best-effort work kept outside segments, least of all daemon cells", false, KEPT,
            kept(all)));
        final double plain = figure(cell(all.path("pytorch"), 3, GpuStrategy.NONE));
        final double held = figure(cell(all.path("pytorch"), 3, judged));
        goals.add(atMost("PyTorch inference, p99 / that of the driver by itself: " + title, TORCH,
            plain > 0 && held > 0 ? OptionalDouble.of(held / plain) : OptionalDouble.empty()));
        final JsonNode one = cellOf(all.path("gpus"), title);
        final JsonNode both = cellOf(all.path("gpus"), title + GpusScenario.BOTH);
        goals.add(atMost("two GPUs: task on GPU 0, p99 / alone: " + title, TWO_GPUS, ratio(one)));
        goals.add(new Goal("two GPUs: best-effort work on GPU 1 kept while GPU 0 has segments", false, KEPT,
            one.has("other_gpu_kept") ? OptionalDouble.of(one.path("other_gpu_kept").asDouble())
                : OptionalDouble.empty()));
        goals.add(atMost("two GPUs: a task on each, the worse p99 / alone: " + title, TWO_GPUS,
            both.has("other_gpu") ? OptionalDouble.of(Math.max(both.path("p99_to_alone").asDouble(),
                both.path("other_gpu").path("p99_to_alone").asDouble())) : OptionalDouble.empty()));
        goals.add(atMost("begin to grant / bare call, worst p50", ENFORCEMENT, enforcement(all, "begin_to_bare_p50")));
        goals.add(atMost("the daemon's driver call / bare call, worst p50", ENFORCEMENT,
            enforcement(all, "call_to_bare_p50")));
        goals.addAll(AnticipationGoals.judge(all));
        goals.add(atMost("wrong results", 0, OptionalDouble.of(wrong(result))));
        goals.add(atMost("new Xid lines in the kernel's log", 0,
            xidLines == null ? OptionalDouble.empty() : OptionalDouble.of(xidLines)));
        return goals;
    }

    private static Goal atMost(final String name, final double limit, final OptionalDouble measured) {
        return new Goal(name, true, limit, measured);
    }

    private static JsonNode cell(final JsonNode scenario, final int others, final GpuStrategy strategy) {
        for (final JsonNode cell : scenario.path("cells")) {
            if (cell.path("others").asInt() == others && strategy.title().equals(cell.path("strategy").asText())) {
                return cell;
            }
        }
        return MissingNode.getInstance();
    }

    private static JsonNode cellOf(final JsonNode scenario, final String title) {
        for (final JsonNode cell : scenario.path("cells")) {
            if (title.equals(cell.path("strategy").asText())) {
                return cell;
            }
        }
        return MissingNode.getInstance();
    }

    private static OptionalDouble ratio(final JsonNode cell) {
        return cell.has("p99_to_alone") ? OptionalDouble.of(cell.path("p99_to_alone").asDouble())
            : OptionalDouble.empty();
    }

    private static double figure(final JsonNode cell) {
        return cell.path("response_ns").path("p99").asDouble();
    }

    private static OptionalDouble worst(final JsonNode scenario, final GpuStrategy strategy) {
        double worst = Double.NaN;
        for (final JsonNode cell : scenario.path("cells")) {
            if (strategy.title().equals(cell.path("strategy").asText()) && cell.has("p99_to_alone")) {
                final double here = cell.path("p99_to_alone").asDouble();
                worst = Double.isNaN(worst) ? here : Math.max(worst, here);
            }
        }
        return Double.isNaN(worst) ? OptionalDouble.empty() : OptionalDouble.of(worst);
    }

    /** Of the scenarios with counted kernels; a training's step is too long to be counted that finely. */
    private static OptionalDouble kept(final JsonNode scenarios) {
        double least = Double.NaN;
        for (final String name : List.of("long", "short")) {
            for (final JsonNode cell : scenarios.path(name).path("cells")) {
                if (cell.has("calls_ns") && cell.has("others_kept")) {   // through the daemon
                    final double here = cell.path("others_kept").asDouble();
                    least = Double.isNaN(least) ? here : Math.min(least, here);
                }
            }
        }
        return Double.isNaN(least) ? OptionalDouble.empty() : OptionalDouble.of(least);
    }

    private static OptionalDouble enforcement(final JsonNode scenarios, final String ratio) {
        double worst = Double.NaN;
        for (final JsonNode scenario : scenarios) {
            for (final JsonNode costs : scenario.path("enforcement")) {
                if (costs.has(ratio)) {
                    worst = Double.isNaN(worst) ? costs.path(ratio).asDouble()
                        : Math.max(worst, costs.path(ratio).asDouble());
                }
            }
        }
        return Double.isNaN(worst) ? OptionalDouble.empty() : OptionalDouble.of(worst);
    }

    /** The sum of the wrong results of all processes in a node of results.json. */
    public static long wrong(final JsonNode node) {
        long sum = node.path("wrong").asLong();
        for (final JsonNode child : node) {
            if (child.isContainerNode()) {
                sum += wrong(child);
            }
        }
        return sum;
    }

    /** Whether something that was to be measured was not, or a program was not content. */
    public static boolean failed(final JsonNode node) {
        if (node.has("failed") || node.path("exit_status").asInt() != 0) {
            return true;
        }
        for (final JsonNode child : node) {
            if (child.isContainerNode() && failed(child)) {
                return true;
            }
        }
        return false;
    }

    /** For results.json. */
    public static ArrayNode json(final List<Goal> goals) {
        final ArrayNode array = JsonNodeFactory.instance.arrayNode();
        for (final Goal goal : goals) {
            final ObjectNode node = array.addObject().put("goal", goal.name())
                .put(goal.atMost() ? "at_most" : "at_least", goal.limit());
            if (goal.measured().isPresent()) {
                node.put("measured", GpuBench.rounded(goal.measured().getAsDouble())).put("met", !goal.missed());
            } else {
                node.putNull("measured").putNull("met");
            }
        }
        return array;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import dev.gpuseg.tools.bench.GpuGoals.Goal;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.function.ToDoubleFunction;
import java.util.stream.DoubleStream;
import java.util.stream.StreamSupport;

/** The goals of anticipated begins and of idle contexts, compared with a run of {@code gpuseg bench gpu}. */
final class AnticipationGoals {
    private static final double SHORT_P99 = 1.3;
    private static final double SHORT_P50 = 1.1;
    private static final double LONG_P99 = 1.05;
    private static final double KEPT = 0.95;
    private static final double LEARNED = 1.1;
    private static final double IDLE_P50 = 1.03;
    private static final double IDLE_P99 = 1.15;
    private static final double OTHERS_P99 = 1.03;
    private static final double BUDGET = 0.05;

    private static final String P50 = "p50_to_alone";
    private static final String P99 = "p99_to_alone";
    private static final String KEPT_FIELD = "others_to_unanticipated";

    private AnticipationGoals() {
    }

    static List<Goal> judge(final JsonNode scenarios) {
        final List<Goal> goals = new ArrayList<>();
        final JsonNode control = scenarios.path("control");
        final JsonNode periodic = scenarios.path("periodic");
        final JsonNode switching = scenarios.path("switch");
        goals.add(atMost("0.35 ms at 100 Hz, period declared, worst p99 / alone", SHORT_P99,
            worst(control, PeriodicScenario.DECLARED, P99)));
        goals.add(atMost("0.35 ms at 100 Hz, period declared, worst p50 / alone", SHORT_P50,
            worst(control, PeriodicScenario.DECLARED, P50)));
        final JsonNode touched = cell(switching, SwitchScenario.BUSY_TOUCHED);
        goals.add(atMost("0.35 ms at 100 Hz, period declared, touched, worst p99 / alone", SHORT_P99,
            larger(figure(touched, P99), worst(control, PeriodicScenario.DECLARED_TOUCHED, P99))));
        goals.add(atMost("0.35 ms at 100 Hz, period declared, touched, worst p50 / alone", SHORT_P50,
            larger(figure(touched, P50), worst(control, PeriodicScenario.DECLARED_TOUCHED, P50))));
        goals.add(atMost("5 ms at 30 Hz, period declared, worst p99 / alone", LONG_P99,
            worst(periodic, PeriodicScenario.DECLARED, P99)));
        goals.add(new Goal("best-effort work kept, period declared, to that without anticipation", false, KEPT,
            least(List.of(control, periodic), PeriodicScenario.DECLARED)));
        goals.add(new Goal("best-effort work kept, period declared, touched, to that without anticipation", false,
            KEPT, least(List.of(control, periodic), PeriodicScenario.DECLARED_TOUCHED)));
        goals.add(atMost("0.35 ms at 100 Hz, period learned, p99 / that with the period declared", LEARNED,
            ratio(cell(control, PeriodicScenario.LEARNED_TITLE), cell(control, PeriodicScenario.DECLARED), P99)));
        goals.add(atMost("0.35 ms at 100 Hz, period learned, touched, p99 / that with the period declared", LEARNED,
            ratio(cell(control, PeriodicScenario.LEARNED_TOUCHED), cell(control, PeriodicScenario.DECLARED_TOUCHED),
                P99)));
        idle(goals, "anticipated", cell(periodic, PeriodicScenario.WITH_IDLE),
            cell(periodic, PeriodicScenario.DECLARED));
        idle(goals, "0.35 ms, anticipated", cell(switching, SwitchScenario.BUSY_IDLE_ANTICIPATED),
            cell(switching, SwitchScenario.BUSY_ANTICIPATED));
        idle(goals, "0.35 ms, not anticipated", cell(switching, SwitchScenario.BUSY_IDLE),
            cell(switching, SwitchScenario.BUSY_ONLY));
        final JsonNode disturbed = scenarios.path(DisturbScenario.NAME).path("cells");
        goals.add(atMost("a task stops, doubles its period or jitters: worst p99 of others / regular", OTHERS_P99,
            largest(disturbed, AnticipationGoals::worstOther)));
        goals.add(atMost("GPU kept free for begins that were expected, largest share of the time", BUDGET,
            largest(disturbed, cell -> cell.path("kept_free_share").asDouble(Double.NaN))));
        return goals;
    }

    private static void idle(final List<Goal> goals, final String what, final JsonNode with, final JsonNode without) {
        goals.add(atMost("3 idle contexts, " + what + ": p50 / that without them", IDLE_P50,
            ratio(with, without, P50)));
        goals.add(atMost("3 idle contexts, " + what + ": p99 / that without them", IDLE_P99,
            ratio(with, without, P99)));
    }

    private static Goal atMost(final String name, final double limit, final OptionalDouble measured) {
        return new Goal(name, true, limit, measured);
    }

    private static JsonNode cell(final JsonNode scenario, final String title) {
        for (final JsonNode cell : scenario.path("cells")) {
            if (title.equals(cell.path("strategy").asText())) {
                return cell;
            }
        }
        return MissingNode.getInstance();
    }

    private static OptionalDouble figure(final JsonNode cell, final String field) {
        return cell.has(field) ? OptionalDouble.of(cell.path(field).asDouble()) : OptionalDouble.empty();
    }

    private static OptionalDouble larger(final OptionalDouble one, final OptionalDouble other) {
        return DoubleStream.concat(one.stream(), other.stream()).max();
    }

    private static OptionalDouble ratio(final JsonNode over, final JsonNode basis, final String field) {
        return over.has(field) && basis.path(field).asDouble() > 0
            ? OptionalDouble.of(over.path(field).asDouble() / basis.path(field).asDouble()) : OptionalDouble.empty();
    }

    /** Of all kinds of best-effort kernels: their titles begin alike. */
    private static OptionalDouble worst(final JsonNode scenario, final String title, final String field) {
        return largest(scenario.path("cells"), cell -> isKind(cell, title) ? cell.path(field).asDouble(Double.NaN)
            : Double.NaN);
    }

    private static boolean isKind(final JsonNode cell, final String title) {
        final String strategy = cell.path("strategy").asText();
        return strategy.equals(title) || strategy.startsWith(title + PeriodicScenario.AGAINST);
    }

    private static OptionalDouble least(final List<JsonNode> scenarios, final String title) {
        return scenarios.stream().flatMap(scenario -> StreamSupport.stream(scenario.path("cells").spliterator(), false))
            .filter(cell -> isKind(cell, title) && cell.has(KEPT_FIELD))
            .mapToDouble(cell -> cell.path(KEPT_FIELD).asDouble()).min();
    }

    private static OptionalDouble largest(final JsonNode cells, final ToDoubleFunction<JsonNode> figure) {
        return StreamSupport.stream(cells.spliterator(), false).mapToDouble(figure)
            .filter(value -> !Double.isNaN(value)).max();
    }

    private static double worstOther(final JsonNode cell) {
        return cell.path("strategy").asText().equals(DisturbScenario.REGULAR) ? Double.NaN
            : StreamSupport.stream(cell.path("tasks").spliterator(), false)
                .filter(task -> task.has(DisturbScenario.TO_REGULAR))
                .mapToDouble(task -> task.path(DisturbScenario.TO_REGULAR).asDouble()).max().orElse(Double.NaN);
    }
}

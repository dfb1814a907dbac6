/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import org.junit.jupiter.api.Test;

class GpuGoalsTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static List<GpuGoals.Goal> judge(final String scenarios, final Integer xid) throws Exception {
        return GpuGoals.judge(JSON.readTree("{\"scenarios\":{" + scenarios + "}}"), GpuStrategy.OPTIMISTIC, xid);
    }

    private static GpuGoals.Goal goal(final List<GpuGoals.Goal> goals, final String start) {
        return goals.stream().filter(g -> g.name().startsWith(start)).findFirst().orElseThrow();
    }

    @Test
    void shouldNotCallAGoalMetThatWasNotMeasured() throws Exception {
        for (final GpuGoals.Goal goal : judge("", null)) {
            assertFalse(goal.missed());
            if (!goal.name().equals("wrong results")) {
                assertEquals("not measured", goal.answer(), goal.name());
            }
        }
    }

    @Test
    void shouldMeetAGoalAtItsLimitAndMissItBeyond() throws Exception {
        final String cells = "\"long\":{\"cells\":["
            + "{\"others\":3,\"strategy\":\"interrupt, optimistic\",\"p99_to_alone\":1.2,\"calls_ns\":{},"
            + "\"others_kept\":0.9499},"
            + "{\"others\":3,\"strategy\":\"default\",\"p99_to_alone\":3.9,\"others_kept\":0.2},"
            + "{\"others\":1,\"strategy\":\"interrupt, hint 2 ms ahead\",\"p99_to_alone\":1.0},"
            + "{\"others\":7,\"strategy\":\"interrupt, hint 2 ms ahead\",\"p99_to_alone\":1.0501},"
            + "{\"others\":7,\"strategy\":\"interrupt, optimistic\",\"p99_to_alone\":1.2501}],"
            + "\"enforcement\":[{\"begin_to_bare_p50\":1.0},{\"begin_to_bare_p50\":1.3}]}";
        final List<GpuGoals.Goal> goals = judge(cells, 1);
        assertEquals("yes", goal(goals, "p99 / alone against 3: interrupt").answer());
        assertEquals("no", goal(goals, "p99 / alone against 3: the driver").answer());
        assertEquals("no", goal(goals, "p99 / alone against 7").answer());
        assertEquals("no", goal(goals, "hint").answer());
        assertEquals(0.9499, goal(goals, "best-effort").measured().orElseThrow(), "cells of the daemon count");
        assertEquals("no", goal(goals, "best-effort").answer());
        assertEquals(1.3, goal(goals, "begin to grant").measured().orElseThrow(), "the worst counts");
        assertEquals("no", goal(goals, "new Xid").answer());
    }

    @Test
    void shouldJudgeAnticipationByTheWorstKindOfOthersAndIdleContextsAgainstNone() throws Exception {
        final String cells = "\"control\":{\"cells\":["
            + cell("period declared", 1.1, 1.2, ",\"others_to_unanticipated\":0.96")
            + "," + cell("period declared, BE 0.5 ms", 1.0, 1.31, ",\"others_to_unanticipated\":0.949")
            + "," + cell("period learned", 1.1, 1.32, "")
            + "," + cell("period declared, touched", 1.02, 1.1, ",\"others_to_unanticipated\":0.951")
            + "," + cell("period declared, touched, BE 0.5 ms", 1.11, 1.0, ",\"others_to_unanticipated\":0.99")
            + "," + cell("period learned, touched", 1.0, 1.22, "") + "],\"alone\":{}},"
            + "\"switch\":{\"cells\":[" + cell("busy, anticipated, touched by the library", 1.05, 1.2, "") + "]},"
            + "\"periodic\":{\"cells\":[" + cell("period declared", 1.0, 1.05, "") + ","
            + cell("declared, 3 idle contexts more", 1.04, 1.1, "") + "]},"
            + "\"disturb\":{\"cells\":[{\"strategy\":\"regular\",\"kept_free_share\":0.02,"
            + "\"tasks\":[{\"p99_to_regular\":1}]},{\"strategy\":\"stops\",\"kept_free_share\":0.051,"
            + "\"tasks\":[{\"p99_to_regular\":1.02},{\"p99\":9},{\"p99_to_regular\":1.04}]}]}";
        final List<GpuGoals.Goal> goals = judge(cells, 0);
        assertEquals("no", goal(goals, "0.35 ms at 100 Hz, period declared, worst p99").answer());
        assertEquals(1.31, goal(goals, "0.35 ms at 100 Hz, period declared, worst p99").measured().orElseThrow());
        assertEquals("yes", goal(goals, "0.35 ms at 100 Hz, period declared, worst p50").answer());
        assertEquals("yes", goal(goals, "5 ms at 30 Hz, period declared").answer());
        assertEquals(1.11, goal(goals, "0.35 ms at 100 Hz, period declared, touched, worst p50").measured()
            .orElseThrow());
        assertEquals(1.2, goal(goals, "0.35 ms at 100 Hz, period declared, touched, worst p99").measured()
            .orElseThrow(), "of both scenarios");
        assertEquals(0.949, goal(goals, "best-effort work kept, period declared, to").measured().orElseThrow());
        assertEquals(0.951, goal(goals, "best-effort work kept, period declared, touched").measured().orElseThrow());
        assertEquals("yes", goal(goals, "0.35 ms at 100 Hz, period learned, p99").answer(), "1.32 / 1.2");
        assertEquals("no", goal(goals, "0.35 ms at 100 Hz, period learned, touched").answer(), "1.22 / 1.1");
        assertEquals("no", goal(goals, "3 idle contexts, anticipated: p50").answer());
        assertEquals("yes", goal(goals, "3 idle contexts, anticipated: p99").answer());
        assertEquals("not measured", goal(goals, "3 idle contexts, 0.35 ms, not anticipated: p99").answer());
        assertEquals(1.04, goal(goals, "a task stops").measured().orElseThrow());
        assertEquals("no", goal(goals, "GPU kept free").answer());
    }

    private static String cell(final String title, final double p50, final double p99, final String more) {
        return "{\"strategy\":\"" + title + "\",\"p50_to_alone\":" + p50 + ",\"p99_to_alone\":" + p99 + more + "}";
    }

    @Test
    void shouldAddUpWrongResultsOfEverybodyAndSeeWhatFailed() throws Exception {
        final JsonNode node = JSON.readTree("{\"a\":{\"cells\":[{\"wrong\":2,\"others_wrong\":9,"
            + "\"low\":{\"wrong\":3}}],\"checked\":[{\"wrong\":4}]}}");
        assertEquals(9, GpuGoals.wrong(node));
        assertFalse(GpuGoals.failed(node));
        assertTrue(GpuGoals.failed(JSON.readTree("{\"cells\":[{\"low\":{\"exit_status\":1}}]}")));
        assertTrue(GpuGoals.failed(JSON.readTree("{\"cells\":[{\"failed\":\"why\"}]}")));
    }

    @Test
    void shouldDrawARecordedRunWithItsGoalsAndCutWhatDoesNotFit() throws Exception {
        final JsonNode recorded = JSON.readTree(
            RecordedRunsTest.recorded("2026-11-21-h200-nvidia", "bench-hybrid/results.json"));
        final String svg = GpuBenchChart.draw(recorded);
        assertTrue(svg.contains(">5.0 ms kernel against 3 processes with endless 20.0 ms kernels<"), svg);
        assertTrue(svg.contains(">interrupt, optimistic<") && svg.contains("NVIDIA H200"), svg);
        assertTrue(svg.contains(">5.425<"), "numbers stand beside bars that are cut");
        assertEquals(2 + 1, svg.split("stroke-dasharray", -1).length - 1, "goals of 3 and of 7, and the legend's");
        final double width = Double.parseDouble(svg.replaceFirst("(?s).*viewBox=\"0 0 ([0-9.]+) .*", "$1"));
        final var rectangles = java.util.regex.Pattern.compile("<rect x=\"([0-9.]+)\"[^>]*width=\"([0-9.]+)\"")
            .matcher(svg);
        int seen = 0;
        while (rectangles.find()) {
            seen++;
            assertTrue(Double.parseDouble(rectangles.group(1)) + Double.parseDouble(rectangles.group(2)) <= width,
                rectangles.group());
        }
        assertTrue(seen > 27, "a bar for each of 27 cells");
    }

    @Test
    void shouldDrawATaskOfDisbWithARowForEachWay() throws Exception {
        final String svg = GpuBenchChart.draw(JSON.readTree(
            RecordedRunsTest.recorded("2026-11-30-h200-disb", "results.json")));
        assertTrue(svg.contains(">Scenario disb, task vgg19<"), svg);
        for (final String row : List.of("A, default", "B, MPS", "C, interrupt, optimistic", "E, MPS")) {
            assertTrue(svg.contains(">" + row + "<"), row);
        }
        assertTrue(svg.contains(">1.031<") && svg.contains(">45.32<"), "figures of the daemon, and of MPS");
    }
}

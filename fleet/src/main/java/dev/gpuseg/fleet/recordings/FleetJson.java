/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;

/** The figures as JSON; times in ns. Equal figures give equal text. Stateless. */
final class FleetJson {
    private FleetJson() {
    }

    static String render(final Figures figures) {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("format", "gpuseg-fleet-report").put("version", 1);
        final ObjectNode files = root.putObject("recordings");
        files.put("all", figures.outcomes().size());
        final Map<String, Integer> byStatus = new TreeMap<>();
        figures.outcomes().forEach(o -> byStatus.merge(o.status(), 1, Integer::sum));
        byStatus.forEach(files::put);
        for (final Outcome outcome : figures.outcomes()) {
            if (!outcome.isOk()) {
                root.withArray("unusable").addObject().put("recording", outcome.name()).put("status", outcome.status())
                    .put("reason", outcome.reason());
            }
        }
        for (final Figures.Responses r : figures.responses()) {
            final ObjectNode node = root.withArray("responses").addObject().put("task", r.task())
                .put("version", r.version()).put("robot", r.robot().isEmpty() ? null : r.robot())
                .put("priority", r.priority()).put("deadline_ns", r.deadlineNs()).put("recordings", r.recordings())
                .put("jobs", r.jobs()).put("complete", r.complete().total()).put("late", r.late());
            putTimes(node, r.complete());
        }
        for (final Figures.ChainAge c : figures.chains()) {
            putTimes(root.withArray("chains").addObject().put("source", c.source()).put("task", c.task())
                .put("version", c.version()).put("robot", c.robot()).put("recording", c.recording())
                .put("outputs", c.ages().total()), c.ages());
        }
        for (final Figures.WorstJob w : figures.worstJobs()) {
            root.withArray("worst_jobs").addObject().put("recording", w.recording()).put("robot", w.robot())
                .put("version", w.version()).put("task", w.task()).put("number", w.number())
                .put("response_ns", w.responseNs()).put("deadline_ns", w.deadlineNs()).put("wait_ns", w.waitNs())
                .put("preemptions", w.preemptions());
        }
        if (figures.drift() != null) {
            final ObjectNode drift = root.putObject("drift").put("before", figures.drift().before())
                .put("after", figures.drift().after()).put("level", Drift.LEVEL);
            for (final Drift.Compared c : figures.drift().compared()) {
                final ObjectNode node = drift.withArray("compared").addObject().put("task", c.task())
                    .put("measure", c.measure().word()).put("recordings_before", c.nBefore())
                    .put("recordings_after", c.nAfter()).put("robots", c.robots()).put("by_robot", c.byRobot())
                    .put("before_ns", c.beforeNs()).put("after_ns", c.afterNs()).put("p", c.p())
                    .put("p_adjusted", c.adjusted()).put("verdict", c.verdict().word());
                if (c.verdict() != Drift.Verdict.TOO_FEW) {
                    node.put("ratio", c.ratio()).put("ratio_low", c.ratioLow()).put("ratio_high", c.ratioHigh());
                }
            }
        }
        return root.toPrettyString() + "\n";
    }

    private static void putTimes(final ObjectNode node, final ResponseHistogram times) {
        node.put("p50_ns", times.quantileNs(0.5)).put("p95_ns", times.quantileNs(0.95))
            .put("p99_ns", times.quantileNs(0.99)).put("p999_ns", times.quantileNs(0.999)).put("max_ns", times.maxNs());
    }
}

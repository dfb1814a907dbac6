/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import static dev.gpuseg.analysis.report.SvgCanvas.escape;

import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TaskResult;
import dev.gpuseg.analysis.rta.Terms;

/** The tasks of one analysis in the HTML report: bounds with what they consist of, and what was declared. */
final class ResponseTable {
    private ResponseTable() {
    }

    static void render(final StringBuilder out, final Report report, final Report.Section section,
        final Soundness soundness) {
        bounds(out, report, section, soundness.verdict() != Soundness.Verdict.NOT_SOUND);
        declared(out, report, section);
    }

    private static void bounds(final StringBuilder out, final Report report, final Report.Section section,
        final boolean sound) {
        out.append("<div class=\"scroll\"><table class=\"tasks\"><thead><tr><th>Task</th><th>Verdict</th>"
            + "<th class=\"n\">Bound R</th><th class=\"n\">Deadline D</th><th class=\"n\">Slack</th>"
            + (report.measured() == null ? "" : "<th class=\"n\">Longest measured</th><th class=\"n\">of R</th>")
            + "<th class=\"n\">Simulated</th><th>R consists of</th></tr></thead><tbody>\n");
        for (int i = 0; i < report.set().tasks().size(); i++) {
            final Task task = report.set().tasks().get(i);
            final TaskResult bound = section.result().tasks().get(i);
            final Measurement.Figure figure = report.measured() == null ? null
                : report.measured().byTask().get(task.name());
            out.append("<tr").append(bound.schedulable() && !broken(task, bound, figure) ? "" : " class=\"miss\"")
                .append(" data-task=\"").append(escape(task.name())).append("\"><td>").append(escape(task.name()))
                .append("</td><td>").append(badge(task, bound, figure, sound)).append("</td>");
            if (bound.wcrtNs() != null) {
                cell(out, "wcrt", "n", bound.wcrtNs(), "<strong>" + Figures.ms(bound.wcrtNs()) + "</strong>");
            } else if (bound.passed() != null) {
                cell(out, "passed", "n over", bound.passed().totalNs(), "\u2265 "
                    + Figures.msDown(bound.passed().totalNs()));
            } else {
                out.append("<td class=\"n\" data-key=\"wcrt\">\u2013</td>");
            }
            cell(out, "deadline", "n", task.deadlineNs(), Figures.ms(task.deadlineNs()));
            if (bound.wcrtNs() != null) {
                cell(out, "slack", "n", task.deadlineNs() - bound.wcrtNs(),
                    Figures.msDown(task.deadlineNs() - bound.wcrtNs()));
            } else {
                out.append(bound.passed() == null ? "<td class=\"n\">\u2013" : "<td class=\"n over\">\u2264 \u2212"
                    + Figures.msDown(bound.passed().totalNs() - task.deadlineNs())).append("</td>");
            }
            if (report.measured() != null) {
                measured(out, task, bound, figure);
            }
            if (section.worst() == null) {
                out.append("<td class=\"n\">\u2013</td>");
            } else {
                final long seen = section.worst().maxResponseNs().get(i);
                cell(out, "seen", "n", seen, Figures.ms(seen));
            }
            out.append("<td>").append(parts(task, bound)).append("</td></tr>\n");
        }
        out.append("</tbody></table></div>\n<p class=\"note\">Times in ms. R: bound on the time from arrival to "
            + "completion; \u2265: the value of the recurrence when it passed the deadline; it has no solution below. "
            + "Simulated: longest response of the simulated runs, which prove nothing."
            + (report.measured() == null ? "" : " Measured: " + escape(report.measured().caption())
                + "; red: above the bound or the deadline.") + "</p>\n");
    }

    private static boolean broken(final Task task, final TaskResult bound, final Measurement.Figure figure) {
        return figure != null && !task.bestEffort() && (bound.wcrtNs() != null && figure.maxNs() > bound.wcrtNs()
            || task.missLimit() == null && (figure.misses() > 0 || figure.maxNs() > task.deadlineNs()));
    }

    private static String badge(final Task task, final TaskResult bound, final Measurement.Figure figure,
        final boolean sound) {
        if (task.bestEffort()) {
            return "<span class=\"badge\">no deadline</span>";
        }
        if (!bound.schedulable()) {
            return "<span class=\"badge no\">\u2717 may miss</span>";
        }
        if (broken(task, bound, figure)) {
            return "<span class=\"badge no\">\u2717 contradicted</span>";
        }
        return sound ? "<span class=\"badge yes\">\u2713 holds</span>" : "<span class=\"badge open\">no proof</span>";
    }

    private static void measured(final StringBuilder out, final Task task, final TaskResult bound,
        final Measurement.Figure figure) {
        if (figure == null) {
            out.append("<td class=\"n\">\u2013</td><td class=\"n\">\u2013</td>");
            return;
        }
        final boolean over = broken(task, bound, figure);
        cell(out, "measured", over ? "n over" : "n", figure.maxNs(), Figures.ms(figure.maxNs()));
        out.append("<td class=\"").append(over ? "n over" : "n").append("\">").append(bound.wcrtNs() == null ? "\u2013"
            : Figures.share(figure.maxNs(), bound.wcrtNs()) + (figure.maxNs() > bound.wcrtNs() ? "<br>"
            + (figure.isExact() ? "" : "\u2265 ") + figure.above(bound.wcrtNs(), task.deadlineNs()) + " of "
            + figure.jobs() + " above" : ""))
            .append(!task.bestEffort() && figure.misses() > 0 ? "<br>" + figure.misses() + " of " + figure.jobs()
                + " late" : "").append("</td>");
    }

    private static String parts(final Task task, final TaskResult bound) {
        final Terms terms = bound.terms() == null ? bound.passed() : bound.terms();
        if (terms == null) {
            return task.bestEffort() ? "best effort: no bound" : "\u2013";
        }
        final long[] values = Figures.values(terms);
        final StringBuilder out = new StringBuilder();
        for (int k = 0; k < values.length; k++) {
            if (values[k] != 0) {
                out.append(out.isEmpty() ? "" : " + ").append(Figures.TERM_NAMES[k]).append("\u00a0")
                    .append(Figures.ms(values[k]));
            }
        }
        return out.append(bound.terms() == null ? ", when it passed the deadline" : "").toString();
    }

    private static void declared(final StringBuilder out, final Report report, final Report.Section section) {
        out.append("<h3>What the set declares, and by how much it may grow</h3>\n<div class=\"scroll\"><table "
            + "class=\"tasks\"><thead><tr><th>Task</th><th>Core</th><th>Priority</th><th class=\"n\">C</th>"
            + "<th class=\"n\">G</th><th class=\"n\">U</th><th class=\"n\">T</th><th class=\"n\">C may grow</th>"
            + "<th class=\"n\">G may grow</th></tr></thead><tbody>\n");
        for (int i = 0; i < report.set().tasks().size(); i++) {
            final Task task = report.set().tasks().get(i);
            out.append("<tr data-declared=\"").append(escape(task.name())).append("\"><td>")
                .append(escape(task.name())).append("</td><td>").append(task.cpu()).append("</td><td>")
                .append(task.bestEffort() ? "best effort" : task.priority() == task.gpuPriority()
                    || task.gpuSegmentCount() == 0 ? "" + task.priority() : task.priority() + " / "
                    + task.gpuPriority()).append(task.reservePercent() > 0 ? ", reserve " + task.reservePercent() + "%"
                    : "").append("</td>");
            cell(out, "cpu", "n", task.cpuNs(), Figures.ms(task.cpuNs()));
            cell(out, "gpu", "n", task.gpuNs(), Figures.ms(task.gpuNs()));
            out.append("<td class=\"n\">").append(Figures.share(task.cpuNs() + task.gpuNs(), task.periodNs()))
                .append("</td>");
            cell(out, "period", "n", task.periodNs(), Figures.ms(task.periodNs()));
            out.append("<td class=\"n\">").append(Figures.growth(section.sensitivity().taskCpuPermille().get(i)))
                .append("</td><td class=\"n\">").append(Figures.growth(section.sensitivity().taskGpuPermille().get(i)))
                .append("</td></tr>\n");
        }
        out.append("</tbody></table></div>\n<p class=\"note\">Times in ms. C: work on the core; G: GPU segments "
            + "alone, host part included; U: (C + G) / T; T: period. \u201cMay grow\u201d: by how much the "
            + "task\u2019s own C or G may grow before any deadline is at risk, or must shrink (\u2212) for the set to "
            + "pass; \u201cnone helps\u201d: the set fails even with 0.</p>\n");
    }

    private static void cell(final StringBuilder out, final String key, final String style, final long ns,
        final String html) {
        out.append("<td class=\"").append(style).append("\" data-key=\"").append(key).append("\" data-ns=\"")
            .append(ns).append("\">").append(html).append("</td>");
    }
}

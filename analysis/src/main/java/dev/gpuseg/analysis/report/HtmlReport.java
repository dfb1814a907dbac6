/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import static dev.gpuseg.analysis.report.SvgCanvas.escape;

import dev.gpuseg.analysis.io.Provenance;
import dev.gpuseg.analysis.io.Verdict;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Hypotheses;
import dev.gpuseg.analysis.rta.OutOfModel;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TaskResult;
import dev.gpuseg.analysis.rta.Terms;
import dev.gpuseg.analysis.sim.SimulationOptions;
import java.util.List;
import java.util.Locale;

/**
 * The report as one HTML file that opens offline and prints well: no script, no font, no image from anywhere. The same
 * numbers stand as JSON in an element with the id {@code report-json}; each cell carries its exact value in
 * {@code data-ns}.
 */
public final class HtmlReport {
    private static final int BARS_WIDTH = 1000;
    private static final int BARS_LEFT = 130;
    private static final int BAR_ROW = 26;
    private static final int READ_AT_ONCE = 125;

    private HtmlReport() {
    }

    /**
     * Renders a report.
     *
     * @param report the report
     * @return an HTML document
     */
    public static String render(final Report report) {
        final StringBuilder out = new StringBuilder(1 << 16);
        out.append("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            + "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            + "<link rel=\"icon\" href=\"data:,\">\n<title>").append(escape(report.set().id()))
            .append(": response-time "
            + "report</title>\n<style>\n").append(STYLE).append("</style>\n</head>\n<body>\n<main>\n");
        header(out, report);
        if (report.sections().size() > 1) {
            overview(out, report);
        }
        for (final Report.Section section : report.sections()) {
            section(out, report, section);
        }
        outOfModel(out);
        provenance(out, report);
        out.append("</main>\n<script type=\"application/json\" id=\"report-json\">\n")
            .append(JsonReport.render(report).replace("<", "\\u003c")).append("</script>\n</body>\n</html>\n");
        return out.toString();
    }

    private static void header(final StringBuilder out, final Report report) {
        final TaskSet set = report.set();
        out.append("<header>\n<p class=\"eyebrow\">gpuseg response-time report</p>\n<h1>").append(escape(set.id()))
            .append("</h1>\n<p class=\"verdict ").append(colour(report.verdict()))
            .append(report.verdict().sentence().length() > READ_AT_ONCE ? " long" : "").append("\" id=\"verdict\">")
            .append(escape(report.verdict().sentence())).append("</p>\n<dl class=\"facts\">\n");
        fact(out, "Platform", set.platform().cpus() + " cores, " + set.platform().gpus().size() + " GPU"
            + (set.platform().gpus().size() == 1 ? "" : "s")
            + (set.platform().profile() == null ? "" : ", profile " + escape(set.platform().profile()))
            + (set.platform().simulated() ? ", <strong id=\"simulated\">SIMULATED GPU</strong>" : ""));
        if (!set.platform().space().isNone()) {
            fact(out, "Work beside", "<span id=\"space\">" + set.platform().space().text() + "</span>");
        }
        if (!set.platform().limits().text().isEmpty()) {
            fact(out, "Limits", "<span id=\"limits\">" + set.platform().limits().text() + "</span>");
        }
        for (int g = 0; g < set.platform().gpus().size(); g++) {
            final Gpu gpu = set.platform().gpus().get(g);
            fact(out, "GPU " + g, "&epsilon; " + Figures.duration(gpu.epsilonNs()) + ", &theta; "
                + Figures.duration(gpu.thetaNs()) + ", time slice " + Figures.duration(gpu.timesliceNs()));
        }
        fact(out, "Tasks", set.tasks().stream().filter(t -> !t.bestEffort()).count() + " real-time, "
            + set.tasks().stream().filter(Task::bestEffort).count() + " best effort");
        if (report.measured() != null) {
            fact(out, "Measured", report.measured().jobs() + " jobs, " + escape(report.measured().caption()));
        }
        out.append("</dl>\n");
        turns(out, report);
        out.append("</header>\n");
    }

    private static String colour(final Verdict verdict) {
        return switch (verdict.kind()) {
            case HOLDS -> "yes";
            case CONDITIONAL, NO_PROOF -> "open";
            default -> "no";
        };
    }

    private static void fact(final StringBuilder out, final String name, final String html) {
        out.append("<div><dt>").append(name).append("</dt><dd>").append(html).append("</dd></div>\n");
    }

    private static void overview(final StringBuilder out, final Report report) {
        out.append("<section>\n<h2>Verdicts</h2>\n<table "
            + "class=\"verdicts\"><thead><tr><th>Analysis</th><th>Verdict</th>"
            + "<th>Summary</th></tr></thead><tbody>\n");
        for (final Report.Section section : report.sections()) {
            out.append("<tr><td><a href=\"#").append(section.analysis().name()).append("\">")
                .append(section.analysis().name()).append("</a></td><td>").append(badge(report, section))
                .append("</td><td>").append(escape(section.analysis().summary())).append("</td></tr>\n");
        }
        out.append("</tbody></table>\n</section>\n");
    }

    /** Green is for what is proven and not refuted. */
    private static String badge(final Report report, final Report.Section section) {
        final Verdict verdict = Verdict.of(report.set(), List.of(section.result()), report.measured());
        return "<span class=\"badge " + colour(verdict) + "\">" + switch (verdict.kind()) {
            case HOLDS -> "\u2713 holds";
            case CONDITIONAL -> "holds under conditions";
            case REFUSED -> "\u2717 may miss";
            case CONTRADICTED -> "\u2717 contradicted";
            case NO_PROOF -> section.result().schedulable() ? "accepts, no proof" : "refuses, no proof";
        } + "</span>";
    }

    private static void section(final StringBuilder out, final Report report, final Report.Section section) {
        final Soundness soundness = Soundness.of(section.analysis().description(), report.set());
        out.append("<section id=\"").append(section.analysis().name()).append("\">\n<h2>")
            .append(section.analysis().name()).append(' ').append(badge(report, section))
            .append("</h2>\n<p class=\"lead\">").append(escape(section.analysis().summary())).append(". ")
            .append(escape(capital(soundness.text()))).append(".</p>\n");
        ResponseTable.render(out, report, section, soundness);
        refusal(out, report, section);
        out.append("<h3>What makes up each response time</h3>\n<div class=\"chart\">").append(bars(report, section))
            .append("</div>\n");
        out.append(MissList.of(section.result()));
        out.append(ChainTable.of(section.result(), soundness));
        sensitivity(out, report, section);
        hypotheses(out, soundness);
        if (section.worst() != null) {
            gantt(out, report, section);
        }
        out.append("</section>\n");
    }

    private static String capital(final String text) {
        return text.substring(0, 1).toUpperCase(Locale.ROOT) + text.substring(1);
    }

    private static void refusal(final StringBuilder out, final Report report, final Report.Section section) {
        final List<String> lines = report.dossier().refusal(section.analysis().name());
        if (lines.isEmpty()) {
            return;
        }
        out.append("<h3>Why ").append(section.analysis().name()).append(" refuses it, and what would help</h3>\n<ul "
            + "class=\"why\">\n");
        for (final String line : lines) {
            out.append("<li>").append(escape(line)).append("</li>\n");
        }
        out.append("</ul>\n");
    }

    /** Which of two bounds was chosen, and what waits for turns cost. */
    private static void turns(final StringBuilder out, final Report report) {
        if (report.dossier().turnLines().isEmpty()) {
            return;
        }
        out.append("<ul id=\"turns\" class=\"why\">\n");
        for (final String line : report.dossier().turnLines()) {
            out.append("<li>").append(escape(line)).append("</li>\n");
        }
        out.append("</ul>\n");
    }

    private static void hypotheses(final StringBuilder out, final Soundness soundness) {
        out.append("<h3>Hypotheses</h3>\n<table class=\"list hypotheses\"><tbody>\n");
        for (final Hypotheses.Finding finding : soundness.findings()) {
            out.append("<tr><td>").append(finding.hypothesis().id()).append("</td><td>")
                .append(escape(finding.status().word())).append("</td><td>")
                .append(escape(finding.hypothesis().text()))
                .append(finding.detail().isEmpty() ? "" : " (" + escape(finding.detail()) + ")").append("</td></tr>\n");
        }
        out.append("</tbody></table>\n");
    }

    private static void outOfModel(final StringBuilder out) {
        out.append("<section id=\"out-of-model\">\n<h2>Out of the model</h2>\n<p class=\"lead\">No bound covers "
            + "these.</p>\n<table class=\"list\"><thead><tr><th>What happens</th><th>What the daemon does</th>"
            + "<th>Where it is seen</th></tr></thead><tbody>\n");
        for (final OutOfModel each : OutOfModel.values()) {
            out.append("<tr><td>").append(escape(each.what())).append("</td><td>").append(escape(each.daemon()))
                .append("</td><td>").append(escape(each.seen())).append("</td></tr>\n");
        }
        out.append("</tbody></table>\n</section>\n");
    }

    private static void provenance(final StringBuilder out, final Report report) {
        final Provenance from = report.dossier().provenance();
        if (from == null) {
            return;
        }
        out.append("<section id=\"provenance\">\n<h2>Made of</h2>\n<table class=\"list\"><tbody>\n<tr><td>tool</td>"
            + "<td>").append(escape(from.tool())).append("</td><td></td></tr>\n");
        for (final Provenance.Input file : from.files()) {
            out.append("<tr><td>").append(file.role()).append("</td><td>").append(escape(file.name()))
                .append("</td><td><code>").append(file.sha256()).append("</code>")
                .append(file.remark().isEmpty() ? "" : "<br>" + escape(file.remark())).append("</td></tr>\n");
        }
        for (final Provenance.Constant constant : from.constants()) {
            out.append("<tr><td>").append(escape(constant.name())).append("</td><td>")
                .append(escape(constant.value())).append("</td><td>").append(escape(constant.origin()))
                .append("</td></tr>\n");
        }
        out.append("</tbody></table>\n</section>\n");
    }

    private static String bars(final Report report, final Report.Section section) {
        final int count = report.set().tasks().size();
        final int height = 34 + BAR_ROW * count + 8;
        final SvgCanvas canvas = new SvgCanvas(BARS_WIDTH, height,
            "Parts of each response-time bound, in percent of the deadline");
        double x = BARS_LEFT - 120;
        for (int k = 0; k < Figures.TERM_NAMES.length; k++) {
            if (used(section, k)) {
                canvas.rectangle(x, 9, 11, 11, Figures.TERM_COLOURS[k], null);
                canvas.text(x + 15, 19, 11, Canvas.Anchor.START, false, 0x1f2933, Figures.TERM_NAMES[k]);
                x += 30 + Figures.TERM_NAMES[k].length() * 6.1;
            }
        }
        // the end of the scale is the deadline of each task, or a bound beyond it; the dashed line is the deadline
        final double right = BARS_WIDTH - 112;
        final double scale = right - BARS_LEFT;
        for (int i = 0; i < count; i++) {
            final Task task = report.set().tasks().get(i);
            final TaskResult bound = section.result().tasks().get(i);
            final double y = 34 + BAR_ROW * i;
            canvas.text(BARS_LEFT - 8, y + 15, 12, Canvas.Anchor.END, true, 0x1f2933,
                task.name().length() <= 16 ? task.name() : task.name().substring(0, 15) + "\u2026");
            canvas.rectangle(BARS_LEFT, y + 3, scale, BAR_ROW - 8, 0xf0f2f5, null);
            final Terms terms = bound.terms() == null ? bound.passed() : bound.terms();
            final double unit = scale / Math.max(task.deadlineNs(), terms == null ? 0 : terms.totalNs());
            if (terms == null) {
                canvas.text(BARS_LEFT + 8, y + 16, 11, Canvas.Anchor.START, false, bound.schedulable() ? 0x5f6b7a
                    : 0xc0392b, task.bestEffort() ? "best effort: no bound" : bound.schedulable()
                    ? "verdict without a bound"
                        : "no bound below the deadline");
            } else {
                double at = BARS_LEFT;
                final long[] values = Figures.values(terms);
                for (int k = 0; k < values.length; k++) {
                    final double width = unit * values[k];
                    if (values[k] > 0) {
                        canvas.rectangle(at, y + 3, width, BAR_ROW - 8, Figures.TERM_COLOURS[k], task.name() + ": "
                            + Figures.TERM_NAMES[k] + " " + Figures.ms(values[k]) + " ms");
                    }
                    at += width;
                }
            }
            final double end = BARS_LEFT + unit * task.deadlineNs();
            canvas.line(end, y + 1, end, y + BAR_ROW - 3, 0x1f2933, 1.6, true);
            canvas.text(right + 8, y + 15, 11, Canvas.Anchor.START, false, bound.schedulable() ? 0x5f6b7a : 0xc0392b,
                terms == null ? "" : (bound.terms() == null ? "\u2265 " : "")
                    + Figures.share(terms.totalNs(), task.deadlineNs()) + " of D");
        }
        return canvas.toSvg();
    }

    private static boolean used(final Report.Section section, final int term) {
        for (final TaskResult task : section.result().tasks()) {
            final Terms terms = task.terms() == null ? task.passed() : task.terms();
            if (terms != null && Figures.values(terms)[term] > 0) {
                return true;
            }
        }
        return false;
    }

    private static void sensitivity(final StringBuilder out, final Report report, final Report.Section section) {
        final Sensitivity s = section.sensitivity();
        final boolean passes = section.result().schedulable();
        final String before = report.verdict().contradicted() ? "By the analysis, before the first miss"
            : "Before the first miss";
        out.append("<h3>").append(passes ? before : "To pass, each alone").append("</h3>\n<div class=\"cards\">\n");
        final boolean usesGpu = report.set().tasks().stream().anyMatch(t -> t.gpuSegmentCount() > 0);
        if (usesGpu) {
            long now = 0;
            for (final Gpu gpu : report.set().platform().gpus()) {
                now = Math.max(now, gpu.epsilonNs());
            }
            card(out, "Update delay &epsilon;", s.epsilonNs().isPresent() ? Figures.msDown(s.epsilonNs().getAsLong())
                + " ms"
                : "none helps", "largest at which every deadline holds; now " + Figures.duration(now));
        }
        card(out, "All CPU work C", Figures.growth(s.cpuPermille()), "of every real-time task at once");
        if (usesGpu) {
            card(out, "All GPU work G", Figures.growth(s.gpuPermille()),
                "host parts included, of every real-time task");
        }
        out.append("</div>\n");
    }

    private static void card(final StringBuilder out, final String name, final String value, final String note) {
        out.append("<div class=\"card\"><p class=\"name\">").append(name).append("</p><p "
            + "class=\"value\">").append(value)
            .append("</p><p class=\"note\">").append(note).append("</p></div>\n");
    }

    private static void gantt(final StringBuilder out, final Report report, final Report.Section section) {
        final WorstCase worst = section.worst();
        final GanttChart chart = new GanttChart(worst);
        final SvgCanvas canvas = new SvgCanvas(GanttChart.WIDTH, chart.height(),
            "Schedule of the worst simulated case");
        chart.draw(canvas);
        final SimulationOptions o = worst.options();
        out.append("<h3>Worst simulated case</h3>\n<p class=\"lead\">");
        if (worst.task() >= 0) {
            final Task task = report.set().tasks().get(worst.task());
            out.append("<strong>").append(escape(task.name())).append("</strong> took ")
                .append(Figures.ms(worst.responseNs())).append(" ms of its ").append(Figures.ms(task.deadlineNs()))
                .append(" ms, the closest that any job came to its deadline");
        } else {
            out.append("No real-time job ran");
        }
        out.append(" in ").append(worst.runs()).append(" simulated runs (").append(o.scheduler().word()).append(", ")
            .append(o.hold().name().toLowerCase(Locale.ROOT)).append(", threads ")
            .append(worst.set().mode() == WaitMode.BUSY ? "spin" : "suspend").append(", begins ")
            .append(o.optimistic() ? "optimistic" : "wait").append(", offsets ").append(o.offsets().name().toLowerCase(
                Locale.ROOT)).append(", seed ").append(o.seed())
            .append("). A simulation shows what can happen; it proves nothing.</p>\n<div class=\"chart\">")
            .append(canvas.toSvg()).append("</div>\n");
    }

    private static final String STYLE = """
        :root { --ink: #1f2933; --grey: #5f6b7a; --faint: #e1e5ea; --yes: #146c41; --no: #b3261e; --open: #8a5a00;
          --panel: #f7f8fa; }
        * { box-sizing: border-box; }
        body { margin: 0; color: var(--ink); background: #fff; line-height: 1.5;
          font: 15px/1.5 system-ui, "DejaVu Sans", Arial, sans-serif; }
        main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 60px; }
        h1 { font-size: 30px; line-height: 1.2; margin: 0 0 14px; overflow-wrap: anywhere; }
        h2 { font-size: 21px; margin: 40px 0 6px; padding-top: 18px; border-top: 1px solid var(--faint); }
        h3 { font-size: 16px; margin: 26px 0 8px; }
        code { font: 12.5px ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
        .eyebrow { margin: 0; color: var(--grey); font-size: 13px; letter-spacing: .04em; }
        .verdict { font-size: 34px; line-height: 1.25; font-weight: 700; margin: 0 0 20px; padding: 20px 24px;
          border-radius: 6px; border-left: 12px solid; overflow-wrap: anywhere; }
        .verdict.long { font-size: 28px; }
        .verdict.yes { color: var(--yes); background: #e3f4ea; border-color: var(--yes); }
        .verdict.no { color: #fff; background: var(--no); border-color: #7d150f; }
        .verdict.open { color: var(--open); background: #fff2d6; border-color: #d28b00; }
        .facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 4px 28px; margin: 0; }
        .facts div { display: flex; gap: 10px; min-width: 0; }
        .facts dt { color: var(--grey); flex: 0 0 90px; }
        .facts dd { margin: 0; min-width: 0; }
        .lead { margin: 0 0 14px; max-width: 90ch; }
        .note { color: var(--grey); font-size: 12.5px; margin: 8px 0 0; }
        .scroll, .chart { overflow-x: auto; }
        .chart svg { display: block; width: 100%; min-width: 640px; height: auto; }
        table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
        th { text-align: left; color: var(--grey); font-weight: 600; font-size: 12px; }
        th, td { padding: 6px 7px; border-bottom: 1px solid var(--faint); vertical-align: top; }
        th.n, td.n { text-align: right; white-space: nowrap; }
        table.tasks td:first-child { overflow-wrap: anywhere; min-width: 130px; }
        table.tasks tbody tr:nth-child(even) { background: var(--panel); }
        tr.miss td, table.tasks tbody tr.miss:nth-child(even) td { background: #fdecea; }
        td.over { color: var(--no); font-weight: 700; }
        table.list td, table.list th { vertical-align: top; overflow-wrap: anywhere; }
        table.hypotheses td:nth-child(-n+2) { white-space: nowrap; }
        .badge { font-size: 12px; font-weight: 600; white-space: nowrap; color: var(--grey); }
        .badge.yes { color: var(--yes); }
        .badge.no { color: var(--no); }
        .badge.open { color: var(--open); }
        h2 .badge { margin-left: 8px; font-size: 14px; }
        .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 12px; }
        .card { border: 1px solid var(--faint); border-radius: 6px; padding: 12px 14px; background: var(--panel); }
        .card p { margin: 0; }
        .card .name { color: var(--grey); font-size: 13px; }
        .card .value { font-size: 22px; font-weight: 600; }
        ul { padding-left: 20px; margin: 8px 0; }
        li { margin: 4px 0; }
        @media print {
          @page { size: A4 portrait; margin: 14mm 12mm; }
          main { max-width: none; padding: 0; }
          body { font-size: 10px; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
          h1 { font-size: 20px; margin-bottom: 8px; }
          h2 { font-size: 15px; margin: 20px 0 4px; padding-top: 10px; }
          h3 { font-size: 12px; margin: 14px 0 5px; }
          .verdict { font-size: 24px; padding: 12px 16px; margin-bottom: 12px; }
          .verdict.long { font-size: 20px; }
          .facts { grid-template-columns: 1fr 1fr; gap: 2px 16px; }
          .facts dt { flex-basis: 70px; }
          .chart, .cards, .card, tr, li, .verdict { break-inside: avoid; }
          h2, h3, .lead { break-after: avoid; }
          thead { display: table-header-group; }
          .scroll, .chart { overflow: visible; }
          .chart svg { min-width: 0; }
          .cards { grid-template-columns: 1fr 1fr 1fr; gap: 8px; padding-right: 1px; }
          table.tasks td:first-child { min-width: 80px; }
          .card .value { font-size: 15px; }
          .card .name, .note { font-size: 9px; }
          table { font-size: 9px; }
          th { font-size: 8.5px; }
          th, td { padding: 3px 4px; }
          code, .badge { font-size: 8.5px; }
        }
        """;
}

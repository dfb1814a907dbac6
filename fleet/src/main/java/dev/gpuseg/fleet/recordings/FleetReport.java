/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static dev.gpuseg.analysis.report.SvgCanvas.escape;

import dev.gpuseg.tools.trace.ResponseCharts;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * The figures as one HTML file that opens offline, light or dark as the reader chooses: no script, no font, no image
 * from anywhere. The same figures stand in {@code report.json}. Stateless.
 */
final class FleetReport {
    private static final int COLOURS = 4;
    private static final int CHAINS = 40;
    private static final int NAMED = 200;
    private static final double NS_PER_MS = 1e6;
    /** From here on a tenth of a millisecond is exact enough, and the column no wider. */
    private static final long LONG_NS = 1_000_000_000L;
    /** From here on a count is shown in millions, so that it fits into its box. */
    private static final long LARGE = 100_000_000L;
    private static final double MILLION = 1e6;
    private static final double NS_PER_MIN = 6e10;
    private static final double NS_PER_H = 3.6e12;
    private static final String STYLE = """
        main { max-width: 1260px; }
        h2 { margin-top: 34px; padding-top: 14px; border-top: 1px solid var(--grid); }
        .verdict { color: var(--ink); font-size: 16px; font-weight: 600; padding: 10px 14px; margin: 12px 0 18px;
          border-left: 5px solid var(--p3); background: color-mix(in srgb, var(--p3) 10%, var(--page)); }
        .verdict.bad { border-color: var(--miss); background: color-mix(in srgb, var(--miss) 10%, var(--page)); }
        dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 8px; margin: 0 0 8px; }
        dl div { border: 1px solid var(--grid); border-radius: 6px; padding: 8px 12px; }
        dt { color: var(--faint); font-size: 12px; } dd { margin: 0; font-size: 20px; font-weight: 600; }
        td.w { white-space: normal; text-align: left; overflow-wrap: anywhere; } td.l, th.l { text-align: left; }
        td.good { color: var(--p3); font-weight: 600; } summary { cursor: pointer; margin: 8px 0; }
        ul { padding-left: 20px; } li { margin: 4px 0; max-width: 95ch; }
        .panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 10px 18px; }
        .panels svg { width: 100%; height: auto; }
        @media print { main { max-width: none; } tr, .panels svg { break-inside: avoid; } }
        """;

    private final Figures figures;
    private final List<String> versions;
    private final StringBuilder out = new StringBuilder(1 << 16);

    private FleetReport(final Figures figures) {
        this.figures = figures;
        versions = figures.byRecording().stream().map(Figures.OfRecording::version).distinct().sorted(Versions.ORDER)
            .toList();
    }

    static String render(final Figures figures) {
        final FleetReport report = new FleetReport(figures);
        report.page();
        return report.out.toString();
    }

    private void page() {
        ResponseCharts.pageHead(out, "gpuseg fleet report");
        out.append(STYLE).append("</style>\n</head>\n<body class=\"gs\"><main>\n<h1>Recordings of a fleet</h1>\n");
        head();
        drift();
        responses();
        distributions();
        chains();
        worstJobs();
        unusable();
        method();
        out.append("</main></body>\n</html>\n");
    }

    private void head() {
        final List<Outcome> ok = figures.outcomes().stream().filter(Outcome::isOk).toList();
        final long simulated = ok.stream().filter(Outcome::simulated).count();
        out.append("<p>");
        if (simulated > 0) {
            out.append("<span class=\"sim\">SIMULATED GPU</span> in ").append(simulated).append(" of ")
                .append(ok.size()).append(" recordings. ");
        }
        out.append("Versions: ");
        for (int i = 0; i < versions.size(); i++) {
            out.append(i > 0 ? ", " : "").append(key(versions.get(i))).append(escape(versions.get(i)));
        }
        out.append("</p>\n");
        verdict();
        final long bad = figures.outcomes().size() - ok.size();
        out.append("<dl>\n");
        fact("Recordings", Integer.toString(ok.size()));
        fact("Files left out", Long.toString(bad));
        fact("Robots", Long.toString(ok.stream().map(Outcome::robot).distinct().count()));
        fact("Time recorded", time(ok.stream().mapToLong(Outcome::durationNs).sum()));
        fact("Jobs", large(ok.stream().mapToLong(Outcome::jobs).sum()));
        fact("Missed deadlines", large(all().stream().mapToLong(Figures.Responses::late).sum()));
        fact("Events", large(ok.stream().mapToLong(Outcome::events).sum()));
        fact("Events lost", large(ok.stream().mapToLong(Outcome::lostEvents).sum()));
        out.append("</dl>\n");
    }

    private void verdict() {
        final Drift drift = figures.drift();
        if (drift == null) {
            out.append("<p class=\"verdict\">One version only: nothing to compare.</p>\n");
            return;
        }
        final long slower = drift.compared().stream().filter(c -> c.verdict() == Drift.Verdict.SLOWER)
            .map(Drift.Compared::task).distinct().count();
        final long faster = drift.compared().stream().filter(c -> c.verdict() == Drift.Verdict.FASTER)
            .map(Drift.Compared::task).distinct().count();
        final long tasks = drift.compared().stream().map(Drift.Compared::task).distinct().count();
        final long few = drift.compared().stream().filter(c -> c.verdict() == Drift.Verdict.TOO_FEW)
            .map(Drift.Compared::task).distinct().count();
        out.append("<p class=\"verdict").append(slower > 0 ? " bad" : "").append("\">From version ")
            .append(escape(drift.before())).append(" to ").append(escape(drift.after())).append(": ").append(slower)
            .append(" of ").append(tasks).append(" tasks slower, ").append(faster)
            .append(" faster").append(few > 0 ? ", " + few + " with too few recordings to judge" : "")
            .append(" (5 % significance over all comparisons together).</p>\n");
    }

    private void fact(final String name, final String value) {
        out.append("<div><dt>").append(name).append("</dt><dd>").append(value).append("</dd></div>\n");
    }

    /** Rows of all robots of a version. */
    private List<Figures.Responses> all() {
        return figures.responses().stream().filter(r -> r.robot().isEmpty()).toList();
    }

    private String key(final String version) {
        return "<i class=\"f" + versions.indexOf(version) % COLOURS + "\"></i>";
    }

    // ---- versions ----

    private void drift() {
        final Drift drift = figures.drift();
        if (drift == null) {
            return;
        }
        out.append("<h2>Version ").append(escape(drift.before())).append(" against ").append(escape(drift.after()))
            .append("</h2>\n<p>Of each recording one value per task: the median and the 99th percentile of its "
                + "response times. Times in ms: median over the recordings.</p>\n");
        final List<Drift.Compared> found = drift.compared().stream().filter(FleetReport::isDifferent).toList();
        final List<Drift.Compared> others = drift.compared().stream().filter(c -> !isDifferent(c)).toList();
        if (!found.isEmpty()) {
            driftTable(found);
        }
        if (!others.isEmpty()) {
            out.append("<details><summary>").append(others.size()).append(" comparisons without a finding</summary>\n");
            driftTable(others);
            out.append("</details>\n");
        }
    }

    private static boolean isDifferent(final Drift.Compared compared) {
        return compared.verdict() == Drift.Verdict.SLOWER || compared.verdict() == Drift.Verdict.FASTER;
    }

    private void driftTable(final List<Drift.Compared> rows) {
        out.append("<div class=\"scroll\"><table>\n<tr><th>task</th><th>of each recording</th><th>recordings</th>"
            + "<th>robots</th><th>before</th><th>after</th><th>shift</th><th>95 % interval</th><th>p</th>"
            + "<th>p (Holm)</th><th>finding</th></tr>\n");
        for (final Drift.Compared c : rows) {
            out.append("<tr><td>").append(escape(c.task())).append("</td><td>").append(c.measure().word())
                .append("</td><td>").append(c.nBefore()).append(" / ").append(c.nAfter()).append("</td><td>")
                .append(c.byRobot() ? Integer.toString(c.robots()) : "different ones").append("</td><td>")
                .append(ms(c.beforeNs())).append("</td><td>").append(ms(c.afterNs())).append("</td>");
            if (c.verdict() == Drift.Verdict.TOO_FEW) {
                out.append("<td>-</td><td>-</td><td>-</td><td>-</td>");
            } else {
                out.append("<td>").append(percent(c.ratio())).append("</td><td>").append(percent(c.ratioLow()))
                    .append(" .. ").append(percent(c.ratioHigh())).append("</td><td>").append(p(c.p()))
                    .append("</td><td>").append(p(c.adjusted())).append("</td>");
            }
            out.append(c.verdict() == Drift.Verdict.SLOWER ? "<td class=\"bad\">"
                : c.verdict() == Drift.Verdict.FASTER ? "<td class=\"good\">" : "<td>").append(c.verdict().word())
                .append("</td></tr>\n");
        }
        out.append("</table></div>\n");
    }

    // ---- response times ----

    private void responses() {
        out.append("<h2>Response times by task and version</h2>\n");
        responseTable(all(), false);
        out.append("<details><summary>Each robot by itself</summary>\n");
        responseTable(figures.responses().stream().filter(r -> !r.robot().isEmpty()).toList(), true);
        out.append("</details>\n");
    }

    private void responseTable(final List<Figures.Responses> rows, final boolean robots) {
        out.append("<div class=\"scroll\"><table>\n<tr><th>task</th><th>version</th>").append(robots
            ? "<th class=\"l\">robot</th>" : "").append("<th>priority</th><th>recordings</th><th>jobs</th>"
            + "<th>missed</th><th>missed %</th><th>p50 ms</th><th>p95 ms</th><th>p99 ms</th><th>p99.9 ms</th>"
            + "<th>max ms</th><th>deadline ms</th></tr>\n");
        for (final Figures.Responses r : rows) {
            final boolean deadline = r.priority() > 0 && r.deadlineNs() > 0;
            out.append("<tr><td>").append(escape(r.task())).append("</td><td>").append(key(r.version()))
                .append(escape(r.version())).append("</td>").append(robots ? "<td class=\"l\">" + escape(r.robot())
                    + "</td>" : "").append("<td>").append(r.priority() == 0 ? "best effort"
                    : Integer.toString(r.priority())).append("</td><td>").append(r.recordings()).append("</td><td>")
                .append(grouped(r.jobs())).append(r.late() > 0 ? "</td><td class=\"bad\">" : "</td><td>")
                .append(deadline ? grouped(r.late()) : "-").append("</td><td>").append(deadline && r.jobs() > 0
                    ? String.format(Locale.ROOT, "%.3f", 100.0 * r.late() / r.jobs()) : "-");
            for (final double share : new double[] {0.5, 0.95, 0.99, 0.999, 1}) {
                out.append("</td><td>").append(ms(r.complete().quantileNs(share)));
            }
            out.append("</td><td>").append(deadline ? ms(r.deadlineNs()) : "-").append("</td></tr>\n");
        }
        out.append("</table></div>\n");
    }

    /** One drawing for each task: which share of the recordings has a 99th percentile of at most so much. */
    private void distributions() {
        final Map<String, Map<String, List<Double>>> byTask = new TreeMap<>();
        final Map<String, Long> deadlines = new LinkedHashMap<>();
        for (final Figures.OfRecording r : figures.byRecording()) {
            if (r.complete() > 0) {
                byTask.computeIfAbsent(r.task(), task -> new TreeMap<>(Versions.ORDER))
                    .computeIfAbsent(r.version(), version -> new ArrayList<>()).add((double) r.p99Ns());
                deadlines.merge(r.task(), r.priority() > 0 ? r.deadlineNs() : 0, Math::max);
            }
        }
        out.append("<h2>The 99th percentile from recording to recording</h2>\n<p>Up: the share of recordings in which "
            + "the 99th percentile of the task's response times is at most so long.</p>\n<div class=\"panels\">\n");
        byTask.forEach((task, values) -> out.append(new QuantileChart(task, values, versions, deadlines.get(task))
            .svg()));
        out.append("</div>\n");
    }

    // ---- chains and jobs ----

    private void chains() {
        out.append("<h2>Worst chains</h2>\n");
        if (figures.chains().isEmpty()) {
            out.append("<p>No job carries another task's sample (gpuseg_job_release_stamped, ")
                .append("gpuseg_job_release_sample).</p>\n");
            return;
        }
        out.append("<p>Age of the data when a job ends: its end less the time at which the first task took the sample. "
            + "The ").append(Math.min(CHAINS, figures.chains().size())).append(" of ").append(figures.chains().size())
            .append(" with the largest age.</p>\n<div class=\"scroll\"><table>\n<tr><th>chain</th><th>version</th>"
                + "<th class=\"l\">robot</th><th>outputs</th><th>age p50 ms</th><th>p99 ms</th><th>max ms</th>"
                + "<th class=\"l\">recording with the largest</th></tr>\n");
        for (final Figures.ChainAge c : figures.chains().subList(0, Math.min(CHAINS, figures.chains().size()))) {
            out.append("<tr><td>").append(escape(c.source())).append(" \u2192 ").append(escape(c.task()))
                .append("</td><td>").append(key(c.version())).append(escape(c.version()))
                .append("</td><td class=\"l\">").append(escape(c.robot())).append("</td><td>")
                .append(grouped(c.ages().total())).append("</td><td>")
                .append(ms(c.ages().quantileNs(0.5))).append("</td><td>").append(ms(c.ages().quantileNs(0.99)))
                .append("</td><td>").append(ms(c.ages().maxNs())).append("</td><td class=\"w\">")
                .append(escape(c.recording())).append("</td></tr>\n");
        }
        out.append("</table></div>\n");
    }

    private void worstJobs() {
        out.append("<h2>Jobs closest to their deadlines or beyond them</h2>\n<p>Of each task, version and robot the "
            + "one job with the longest response for its deadline; the ").append(figures.worstJobs().size())
            .append(" worst.</p>\n<div class=\"scroll\"><table>\n<tr>"
            + "<th>task</th><th>version</th><th class=\"l\">robot</th><th>job</th><th>response ms</th>"
            + "<th>deadline ms</th><th>of deadline</th><th>waited ms</th><th>preempted</th>"
            + "<th class=\"l\">recording</th></tr>\n");
        for (final Figures.WorstJob w : figures.worstJobs()) {
            out.append("<tr><td>").append(escape(w.task())).append("</td><td>").append(key(w.version()))
                .append(escape(w.version())).append("</td><td class=\"l\">").append(escape(w.robot()))
                .append("</td><td>").append(w.number()).append("</td><td>").append(ms(w.responseNs()))
                .append("</td><td>").append(ms(w.deadlineNs())).append(w.responseNs() > w.deadlineNs()
                    ? "</td><td class=\"bad\">" : "</td><td>").append(String.format(Locale.ROOT, "%.0f %%",
                    100.0 * w.responseNs() / w.deadlineNs())).append("</td><td>").append(ms(w.waitNs()))
                .append("</td><td>").append(w.preemptions()).append("</td><td class=\"w\">")
                .append(escape(w.recording())).append("</td></tr>\n");
        }
        out.append("</table></div>\n");
    }

    private void unusable() {
        final List<Outcome> bad = figures.outcomes().stream().filter(o -> !o.isOk()).toList();
        if (bad.isEmpty()) {
            return;
        }
        out.append("<h2>Files left out</h2>\n<p>").append(bad.size()).append(" of ").append(figures.outcomes().size())
            .append(" files; nothing of them is in the tables.").append(bad.size() > NAMED ? " The first " + NAMED
                + "; all are in report.json." : "").append("</p>\n<div class=\"scroll\"><table>\n<tr><th>file</th>"
                + "<th>status</th><th class=\"l\">why</th><th>bytes</th></tr>\n");
        for (final Outcome o : bad.subList(0, Math.min(NAMED, bad.size()))) {
            out.append("<tr><td class=\"w\">").append(escape(o.name())).append("</td><td>").append(o.status())
                .append("</td><td class=\"w\">").append(escape(o.reason())).append("</td><td>")
                .append(grouped(o.bytes())).append("</td></tr>\n");
        }
        out.append("</table></div>\n");
    }

    private void method() {
        out.append("<h2>How to read this</h2>\n<ul>\n");
        for (final String line : List.of(
            "Response times are of complete jobs, from release to end. A job misses if it ends after its deadline, or "
                + "is given up after it. Best effort never misses.",
            "Quantiles are by nearest rank and at most 0.1 % too long; minimum and maximum are exact. They do not "
                + "depend on how the work was divided.",
            "A name of a task means one task in all recordings; its deadline is the largest that occurs.",
            "Jobs of one recording depend on each other, so versions are compared by recordings: van Elteren's test "
                + "(rank sums within each robot, so that a slow robot is no slow version), two-sided, p by the normal "
                + "approximation, all comparisons together by Holm's method. \"different ones\": no robot ran both "
                + "versions, so the difference may be one of robots.",
            "The shift is the ratio of medians, averaged over robots; its interval comes from 1,000 bootstrap samples "
                + "of the recordings of each robot and version.",
            "Assumed: recordings are independent of each other, and those of one robot and version differ by chance "
                + "alone. What else changed with the version (load, place, season) is in the difference, too.",
            "\"No difference shown\" does not say that there is none: look at the interval.")) {
            out.append("<li>").append(escape(line)).append("</li>\n");
        }
        out.append("</ul>\n");
    }

    // ---- numbers ----

    private static String time(final long ns) {
        return ns < NS_PER_H ? String.format(Locale.ROOT, "%.1f min", ns / NS_PER_MIN)
            : String.format(Locale.ROOT, "%.1f h", ns / NS_PER_H);
    }

    private static String ms(final long ns) {
        return String.format(Locale.ROOT, ns < LONG_NS ? "%.3f" : "%.1f", ns / NS_PER_MS);
    }

    private static String percent(final double ratio) {
        return String.format(Locale.ROOT, "%+.1f %%", 100 * (ratio - 1));
    }

    private static String p(final double p) {
        return p < 1e-4 ? "< 0.0001" : String.format(Locale.ROOT, "%.4f", p);
    }

    private static String large(final long count) {
        return count < LARGE ? grouped(count) : String.format(Locale.ROOT, "%,.1f M", count / MILLION);
    }

    private static String grouped(final long number) {
        return String.format(Locale.ROOT, "%,d", number);
    }
}

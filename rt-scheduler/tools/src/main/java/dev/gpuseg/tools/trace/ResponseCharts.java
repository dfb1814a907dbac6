/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static dev.gpuseg.analysis.report.SvgCanvas.escape;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Draws the response times of each task, one colour per policy: a histogram, and the share of jobs that were complete
 * within a time. Text, lines and colours follow the reader's choice of light or dark; nothing is loaded. Stateless.
 */
public final class ResponseCharts {
    private static final int WIDTH = 430;
    private static final int HEIGHT = 180;
    private static final int LEFT = 44;
    private static final int RIGHT = 418;
    private static final int TOP = 26;
    private static final int BOTTOM = 144;
    private static final int BINS = 48;
    private static final int LEGEND = 58;
    private static final int PANEL_HEAD = 26;
    private static final int COLOURS = 4;
    private static final double NS_PER_MS = 1e6;
    private static final double ROOM = 1.04;
    private static final int HALVES = 2;
    /** Of a time in ns as milliseconds. */
    private static final int MS_DIGITS = 6;
    private static final String NUMBER = "%.2f";

    /** Colours and lines of the drawings. */
    private static final String STYLE = resource("responses.css");
    /** The page around them. */
    private static final String PAGE_STYLE = resource("responses-page.css");

    /** The responses of one task, sorted, under each policy. */
    private record Panel(Trace.Task task, Map<String, long[]> responses) {
        long longestNs() {
            final long longest = responses.values().stream().mapToLong(r -> r[r.length - 1]).max().orElse(1);
            return Math.max(1, Math.max(longest, hasDeadline() ? task.deadlineNs : 0));
        }

        boolean hasDeadline() {
            return task.isRealTime() && task.deadlineNs > 0;
        }
    }

    private ResponseCharts() {
    }

    private static String resource(final String name) {
        try (InputStream in = ResponseCharts.class.getResourceAsStream(name)) {
            return new String(Objects.requireNonNull(in, name).readAllBytes(), StandardCharsets.UTF_8);
        } catch (final IOException e) {
            throw new UncheckedIOException(name + " cannot be read: " + e.getMessage() + "; install gpuseg again", e);
        }
    }

    /** All tasks in one drawing, a whole SVG file. */
    public static String svg(final Trace trace) {
        final List<Panel> panels = panels(trace);
        final List<String> policies = policies(trace);
        final int height = LEGEND + Math.max(1, panels.size()) * (HEIGHT + PANEL_HEAD);
        final StringBuilder out = new StringBuilder(1 << 14).append("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
            .append(open(HALVES * WIDTH, height, "Response times of each task")).append("<style>\n").append(STYLE)
            .append("</style>\n<rect class=\"page\" width=\"").append(HALVES * WIDTH).append("\" height=\"")
            .append(height).append("\"/>\n").append(text(12, 20, "t", "start", "Response times: " + subtitle(trace)));
        int x = 12;
        for (int i = 0; i < policies.size(); i++) {
            out.append("<rect class=\"f").append(i % COLOURS).append("\" x=\"").append(x)
                .append("\" y=\"34\" width=\"14\" height=\"10\"/>\n")
                .append(text(x + 20, 43, "", "start", "policy " + policies.get(i)));
            x += 90 + 7 * policies.get(i).length();
        }
        if (panels.isEmpty()) {
            out.append(text(12, LEGEND + 20, "", "start", "no job was completed"));
        }
        int y = LEGEND;
        for (final Panel panel : panels) {
            out.append(text(12, y + 16, "t", "start", title(panel)));
            out.append("<g transform=\"translate(0 ").append(y + PANEL_HEAD - 8).append(")\">\n")
                .append(histogram(panel, policies)).append("</g>\n<g transform=\"translate(").append(WIDTH).append(' ')
                .append(y + PANEL_HEAD - 8).append(")\">\n").append(distribution(panel, policies)).append("</g>\n");
            y += HEIGHT + PANEL_HEAD;
        }
        return out.append("</svg>\n").toString();
    }

    /**
     * The beginning of a page of its own, up to its styles; the caller adds styles of its own and closes them. The
     * title is plain text without markup.
     */
    public static void pageHead(final StringBuilder out, final String title) {
        out.append("""
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="Content-Security-Policy"
              content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
            <link rel="icon" href="data:,">
            <title>""").append(title).append("</title>\n<style>\n").append(STYLE)
            .append(PAGE_STYLE);
        for (int i = 0; i < COLOURS; i++) {
            out.append("i.f").append(i).append(" { background: var(--p").append(i).append("); }\n");
        }
    }

    /**
     * An HTML document: the table of {@link TraceStats} and the drawings, which stand below each other where there is
     * little width.
     */
    public static String html(final Trace trace) {
        final List<String> policies = policies(trace);
        final StringBuilder out = new StringBuilder(1 << 15);
        pageHead(out, "gpuseg response times");
        out.append("</style>\n</head>\n<body class=\"gs\"><main>\n<h1>Response times</h1>\n<p>");
        if (trace.simulated) {
            out.append("<span class=\"sim\">SIMULATED GPU</span> ");
        }
        out.append(escape(subtitle(trace))).append("</p>\n");
        table(out, trace, policies);
        final List<Panel> panels = panels(trace);
        for (final Panel panel : panels) {
            out.append("<h2>").append(escape(title(panel))).append("</h2>\n<div class=\"charts\">\n")
                .append(open(WIDTH, HEIGHT, "Histogram of the responses of " + panel.task().name))
                .append(histogram(panel, policies)).append("</svg>\n")
                .append(open(WIDTH, HEIGHT, "Share of jobs of " + panel.task().name + " complete within a time"))
                .append(distribution(panel, policies)).append("</svg>\n</div>\n");
        }
        if (panels.isEmpty()) {
            out.append("<p>No job was completed.</p>\n");
        }
        return out.append("</main></body>\n</html>\n").toString();
    }

    private static void table(final StringBuilder out, final Trace trace, final List<String> policies) {
        out.append("<div class=\"scroll\"><table>\n<tr><th>task</th><th>policy</th><th>priority</th><th>jobs</th>"
            + "<th>missed</th><th>p50 ms</th><th>p99 ms</th><th>max ms</th><th>preempted</th><th>GPU %</th></tr>\n");
        for (final TraceStats.Row row : TraceStats.of(trace)) {
            out.append("<tr><td>").append(escape(row.task())).append("</td><td><i class=\"f")
                .append(policies.indexOf(row.policy()) % COLOURS).append("\"></i>").append(escape(row.policy()))
                .append("</td><td>").append(row.priority() == 0 ? "best effort" : Integer.toString(row.priority()))
                .append("</td><td>").append(row.jobs())
                .append(row.misses() > 0 ? "</td><td class=\"bad\">" : "</td><td>")
                .append(row.misses() < 0 ? "-" : Integer.toString(row.misses()));
            for (final long ns : new long[] {row.response().p50Ns(), row.response().p99Ns(), row.response().maxNs()}) {
                out.append("</td><td>").append(String.format(Locale.ROOT, NUMBER, ns / NS_PER_MS));
            }
            out.append("</td><td>").append(row.preemptions()).append("</td><td>")
                .append(String.format(Locale.ROOT, "%.1f", 100 * row.gpuShare())).append("</td></tr>\n");
        }
        out.append("</table></div>\n");
    }

    private static String subtitle(final Trace trace) {
        return trace.title + (trace.simulated ? ", SIMULATED GPU" : "") + ", "
            + String.format(Locale.ROOT, "%.1f s", (trace.lastNs - trace.firstNs) / 1e9);
    }

    private static String title(final Panel panel) {
        return panel.task().name
            + (panel.task().isRealTime() ? ", priority " + panel.task().priority : ", best effort");
    }

    private static List<String> policies(final Trace trace) {
        final Set<String> names = new LinkedHashSet<>();
        trace.phases.forEach(phase -> names.add(phase.policy()));
        return new ArrayList<>(names);
    }

    /** Tasks of one name are one: a task that was opened under each policy has a number for each. */
    private static List<Panel> panels(final Trace trace) {
        final Map<String, List<Trace.Task>> byName = new LinkedHashMap<>();
        trace.tasks.stream().sorted(Comparator.comparingInt((Trace.Task t) -> -t.priority))
            .forEach(task -> byName.computeIfAbsent(task.name, name -> new ArrayList<>()).add(task));
        final List<Panel> panels = new ArrayList<>();
        for (final List<Trace.Task> tasks : byName.values()) {
            final Map<String, long[]> responses = new LinkedHashMap<>();
            for (final String policy : policies(trace)) {
                final long[] sorted = tasks.stream().flatMap(task -> task.jobs.stream())
                    .filter(job -> job.isComplete() && job.policy.equals(policy)).mapToLong(job -> job.responseNs)
                    .sorted().toArray();
                if (sorted.length > 0) {
                    responses.put(policy, sorted);
                }
            }
            if (!responses.isEmpty()) {
                panels.add(new Panel(tasks.get(tasks.size() - 1), responses));
            }
        }
        return panels;
    }

    private static String histogram(final Panel panel, final List<String> policies) {
        final double scaleNs = panel.longestNs() * ROOM;
        final Map<String, double[]> shares = new LinkedHashMap<>();
        double most = 0;
        for (final Map.Entry<String, long[]> entry : panel.responses().entrySet()) {
            final double[] share = new double[BINS];
            for (final long ns : entry.getValue()) {
                share[(int) Math.min(BINS - 1, ns / scaleNs * BINS)] += 100.0 / entry.getValue().length;
            }
            shares.put(entry.getKey(), share);
            most = Math.max(most, Arrays.stream(share).max().orElse(0));
        }
        final StringBuilder out = new StringBuilder(frame(panel, scaleNs, "jobs, %", most));
        for (final Map.Entry<String, double[]> entry : shares.entrySet()) {
            final int colour = policies.indexOf(entry.getKey()) % COLOURS;
            out.append("<path class=\"h f").append(colour).append(" c").append(colour).append("\" d=\"M")
                .append(LEFT).append(' ').append(BOTTOM);
            for (int bin = 0; bin < BINS; bin++) {
                final String y = number(y(entry.getValue()[bin] / most));
                out.append('L').append(number(x((double) bin / BINS))).append(' ').append(y).append('L')
                    .append(number(x((bin + 1.0) / BINS))).append(' ').append(y);
            }
            out.append('L').append(RIGHT).append(' ').append(BOTTOM).append("Z\"><title>policy ")
                .append(escape(entry.getKey())).append(", ").append(panel.responses().get(entry.getKey()).length)
                .append(" jobs</title></path>\n");
        }
        return out.append(deadline(panel, scaleNs)).toString();
    }

    private static String distribution(final Panel panel, final List<String> policies) {
        final double scaleNs = panel.longestNs() * ROOM;
        final StringBuilder out = new StringBuilder(frame(panel, scaleNs, "complete within, %", 100));
        for (final Map.Entry<String, long[]> entry : panel.responses().entrySet()) {
            final long[] sorted = entry.getValue();
            out.append("<path class=\"s c").append(policies.indexOf(entry.getKey()) % COLOURS).append("\" d=\"M")
                .append(LEFT).append(' ').append(BOTTOM);
            for (int i = 0; i < sorted.length; i++) {
                out.append('H').append(number(x(sorted[i] / scaleNs))).append('V')
                    .append(number(y((i + 1.0) / sorted.length)));
            }
            out.append('H').append(RIGHT).append("\"><title>policy ").append(escape(entry.getKey()))
                .append("</title></path>\n");
        }
        return out.append(deadline(panel, scaleNs)).toString();
    }

    /** Axes and their numbers. */
    private static String frame(final Panel panel, final double scaleNs, final String label, final double most) {
        final StringBuilder out = new StringBuilder();
        out.append(text(LEFT, BOTTOM + 32, "", "start", "up: " + label));
        for (final double share : new double[] {0.5, 1}) {
            out.append(line("g", LEFT, y(share), RIGHT, y(share)))
                .append(text(LEFT - 5, y(share) + 4, "", "end", String.format(Locale.ROOT, "%.3g", share * most)));
        }
        final double stepMs = step(scaleNs / NS_PER_MS);
        for (int i = 0; i * stepMs * NS_PER_MS <= scaleNs; i++) {
            final double x = x(i * stepMs * NS_PER_MS / scaleNs);
            out.append(line("a", x, BOTTOM, x, BOTTOM + 4)).append(text(x, BOTTOM + 17, "", "middle",
                String.format(Locale.ROOT, stepMs < 1 ? NUMBER : "%.0f", i * stepMs)));
        }
        return out.append(line("a", LEFT, BOTTOM, RIGHT, BOTTOM))
            .append(text(RIGHT, BOTTOM + 32, "", "end", "response, ms")).toString();
    }

    private static String deadline(final Panel panel, final double scaleNs) {
        if (!panel.hasDeadline()) {
            return "";
        }
        final double x = x(panel.task().deadlineNs / scaleNs);
        return line("d", x, TOP, x, BOTTOM) + text(x, TOP - 8, "m", x > RIGHT - 110 ? "end" : "middle",
            "deadline " + BigDecimal.valueOf(panel.task().deadlineNs, MS_DIGITS).stripTrailingZeros().toPlainString()
            + " ms");
    }

    /** A step of 1, 2 or 5 times a power of ten that gives four to nine numbers. */
    private static double step(final double most) {
        final double power = Math.pow(10, Math.floor(Math.log10(most / 4)));
        final double lead = most / 4 / power;
        return power * (lead >= 5 ? 5 : lead >= 2 ? 2 : 1);
    }

    private static double x(final double share) {
        return LEFT + (RIGHT - LEFT) * Math.min(1, share);
    }

    private static double y(final double share) {
        return BOTTOM - (BOTTOM - TOP) * share;
    }

    private static String open(final int width, final int height, final String label) {
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gs\" viewBox=\"0 0 " + width + ' ' + height
            + "\" width=\"" + width + "\" height=\"" + height + "\" role=\"img\" aria-label=\"" + escape(label)
            + "\">\n";
    }

    private static String line(final String style, final double x1, final double y1, final double x2, final double y2) {
        return "<line class=\"" + style + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2)
            + "\" y2=\"" + number(y2) + "\"/>\n";
    }

    private static String text(final double x, final double y, final String style, final String anchor,
        final String text) {
        return "<text" + (style.isEmpty() ? "" : " class=\"" + style + "\"") + " x=\"" + number(x) + "\" y=\""
            + number(y) + "\" text-anchor=\"" + anchor + "\">" + escape(text) + "</text>\n";
    }

    private static String number(final double value) {
        return String.format(Locale.ROOT, "%.1f", value);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static dev.gpuseg.analysis.report.SvgCanvas.escape;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Draws the distribution of one value per recording, a step line for each version, in the colours of the page.
 *
 * @param task       its name
 * @param values     by version, ns
 * @param versions   all, for their colours
 * @param deadlineNs drawn if it is not 0
 */
record QuantileChart(String task, Map<String, List<Double>> values, List<String> versions, long deadlineNs) {
    private static final int WIDTH = 430;
    private static final int HEIGHT = 190;
    private static final int LEFT = 40;
    private static final int RIGHT = 418;
    private static final int TOP = 40;
    private static final int BOTTOM = 152;
    private static final int COLOURS = 4;
    private static final double NS_PER_MS = 1e6;
    private static final double ROOM = 1.05;
    private static final int EDGE = 14;
    private static final double DEADLINE_IN_SIGHT = 3;
    /** More steps than this are no more than a pixel apart. */
    private static final int STEPS = 200;

    String svg() {
        final double longest = values.values().stream().flatMap(List::stream).mapToDouble(Double::doubleValue).max()
            .orElse(1);
        // a far deadline would press the lines together
        final boolean shown = deadlineNs > 0 && deadlineNs < DEADLINE_IN_SIGHT * longest;
        final double scale = Math.max(1, shown ? Math.max(longest, deadlineNs) : longest) * ROOM;
        final StringBuilder out = new StringBuilder("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gs\" "
            + "viewBox=\"0 0 " + WIDTH + " " + HEIGHT + "\" role=\"img\" aria-label=\"99th percentiles of "
            + escape(task) + "\">\n");
        text(out, 8, 16, "t", "start", task);
        for (final double share : new double[] {0.5, 1}) {
            line(out, "g", LEFT, y(share), RIGHT, y(share));
            text(out, LEFT - 5, y(share) + 4, "", "end", Math.round(100 * share) + "%");
        }
        final double step = step(scale / NS_PER_MS);
        for (int i = 0; i * step * NS_PER_MS <= scale; i++) {
            final double x = x(i * step * NS_PER_MS / scale);
            line(out, "a", x, BOTTOM, x, BOTTOM + 4);
            // at the edge half of a long number would be cut off
            text(out, x, BOTTOM + 17, "", x > RIGHT - EDGE ? "end" : "middle",
                String.format(Locale.ROOT, step < 1 ? "%.2f" : "%.0f", i * step));
        }
        line(out, "a", LEFT, BOTTOM, RIGHT, BOTTOM);
        text(out, RIGHT, BOTTOM + 32, "", "end", "p99 of a recording, ms");
        values.forEach((version, ofVersion) -> curve(out, version, ofVersion.stream().mapToDouble(Double::doubleValue)
            .sorted().toArray(), scale));
        if (shown) {
            final double x = x(deadlineNs / scale);
            line(out, "d", x, TOP - 6, x, BOTTOM);
            text(out, x, TOP - 10, "m", x > RIGHT - 60 ? "end" : "middle", "deadline");
        }
        return out.append("</svg>\n").toString();
    }

    private void curve(final StringBuilder out, final String version, final double[] sorted, final double scale) {
        out.append("<path class=\"s c").append(Math.max(0, versions.indexOf(version)) % COLOURS).append("\" d=\"M")
            .append(LEFT).append(' ').append(BOTTOM);
        final int count = Math.min(STEPS, sorted.length);
        for (int i = 1; i <= count; i++) {
            final int rank = (int) ((long) i * sorted.length / count);
            out.append('H').append(number(x(sorted[rank - 1] / scale))).append('V')
                .append(number(y((double) rank / sorted.length)));
        }
        out.append('H').append(RIGHT).append("\"><title>version ").append(escape(version)).append(", ")
            .append(sorted.length).append(" recordings</title></path>\n");
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

    private static void line(final StringBuilder out, final String style, final double x1, final double y1,
        final double x2, final double y2) {
        out.append("<line class=\"").append(style).append("\" x1=\"").append(number(x1)).append("\" y1=\"")
            .append(number(y1)).append("\" x2=\"").append(number(x2)).append("\" y2=\"").append(number(y2))
            .append("\"/>\n");
    }

    private static void text(final StringBuilder out, final double x, final double y, final String style,
        final String anchor, final String text) {
        out.append("<text").append(style.isEmpty() ? "" : " class=\"" + style + "\"").append(" x=\"")
            .append(number(x)).append("\" y=\"").append(number(y)).append("\" text-anchor=\"").append(anchor)
            .append("\">").append(escape(text)).append("</text>\n");
    }

    private static String number(final double value) {
        return String.format(Locale.ROOT, "%.1f", value);
    }
}

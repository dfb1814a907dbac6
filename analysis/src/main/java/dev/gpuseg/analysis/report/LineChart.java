/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import java.util.List;
import java.util.Locale;

/**
 * A chart of percentages over a parameter: our results as lines, published ones as hollow marks of the same colour.
 *
 * @param title   above the chart
 * @param xLabel  below the x axis
 * @param yLabel  beside the y axis
 * @param yMax    top of the y axis, greater than 0
 * @param series  the curves
 * @param footers lines of small print below
 */
public record LineChart(String title, String xLabel, String yLabel, double yMax, List<Series> series,
    List<String> footers) {
    /** Width of every chart in CSS pixels. */
    public static final int WIDTH = 860;
    private static final int PLOT_HEIGHT = 360;
    private static final int TOP = 40;
    private static final int LEFT = 62;
    private static final int RIGHT = 230;
    private static final int INK = 0x1f2933;
    private static final int FAINT = 0xe1e5ea;
    private static final int GREY = 0x5f6b7a;

    /**
     * One curve.
     *
     * @param name      in the legend
     * @param colour    0xRRGGBB
     * @param dashed    dashed line, square marks
     * @param x         points of our own curve
     * @param y         points of our own curve
     * @param published y of the published curve at the same x, NaN where there is none; empty if none at all
     */
    public record Series(String name, int colour, boolean dashed, double[] x, double[] y, double[] published) {
    }

    /** Copies the lists. */
    public LineChart {
        series = List.copyOf(series);
        footers = List.copyOf(footers);
    }

    /** Height of this chart; CSS pixels. */
    public int height() {
        return TOP + PLOT_HEIGHT + 58 + 15 * footers.size();
    }

    /**
     * Draws it.
     *
     * @param canvas at least {@link #WIDTH} by {@link #height()}
     */
    public void draw(final Canvas canvas) {
        final double plotWidth = WIDTH - LEFT - RIGHT;
        double least = Double.MAX_VALUE;
        double most = -Double.MAX_VALUE;
        for (final Series s : series) {
            for (final double x : s.x()) {
                least = Math.min(least, x);
                most = Math.max(most, x);
            }
        }
        final double span = most > least ? most - least : 1;
        final double scaleX = plotWidth / span;
        final double scaleY = PLOT_HEIGHT / yMax;
        canvas.text(LEFT, 24, 15, Canvas.Anchor.START, true, INK, title);
        final double step = yMax > 50 ? 20 : yMax > 20 ? 5 : yMax > 10 ? 4 : 2;
        for (double y = 0; y <= yMax + 1e-9; y += step) {
            final double at = TOP + PLOT_HEIGHT - y * scaleY;
            canvas.line(LEFT, at, LEFT + plotWidth, at, FAINT, 1, false);
            canvas.text(LEFT - 8, at + 4, 12, Canvas.Anchor.END, false, GREY, trim(y));
        }
        if (!series.isEmpty()) {
            for (final double x : series.get(0).x()) {
                final double at = LEFT + (x - least) * scaleX;
                canvas.line(at, TOP + PLOT_HEIGHT, at, TOP + PLOT_HEIGHT + 5, GREY, 1, false);
                canvas.text(at, TOP + PLOT_HEIGHT + 19, 12, Canvas.Anchor.MIDDLE, false, GREY, trim(x));
            }
        }
        canvas.line(LEFT, TOP + PLOT_HEIGHT, LEFT + plotWidth, TOP + PLOT_HEIGHT, GREY, 1, false);
        canvas.text(LEFT + plotWidth / 2, TOP + PLOT_HEIGHT + 40, 13, Canvas.Anchor.MIDDLE, false, INK, xLabel);
        canvas.textUpwards(18, TOP + PLOT_HEIGHT / 2.0, 13, INK, yLabel);
        double legend = TOP + 8;
        for (final Series s : series) {
            drawSeries(canvas, s, least, scaleX, scaleY);
            final double x = LEFT + plotWidth + 18;
            canvas.line(x, legend, x + 26, legend, s.colour(), 2, s.dashed());
            if (s.published().length > 0) {
                canvas.mark(x + 40, legend, s.dashed(), s.colour(), null);
            }
            canvas.text(x + 52, legend + 4, 12, Canvas.Anchor.START, false, INK, s.name());
            legend += 21;
        }
        final double x = LEFT + plotWidth + 18;
        canvas.text(x, legend + 12, 11, Canvas.Anchor.START, false, GREY, "line: gpuseg");
        if (series.stream().anyMatch(s -> s.published().length > 0)) {
            canvas.text(x, legend + 27, 11, Canvas.Anchor.START, false, GREY, "mark: published (GCAPS, ECRTS'24)");
        }
        double y = TOP + PLOT_HEIGHT + 60;
        for (final String footer : footers) {
            canvas.text(LEFT, y, 11, Canvas.Anchor.START, false, GREY, footer);
            y += 15;
        }
    }

    private void drawSeries(final Canvas canvas, final Series s, final double least, final double scaleX,
        final double scaleY) {
        final double[] x = new double[s.x().length];
        final double[] y = new double[s.x().length];
        for (int i = 0; i < x.length; i++) {
            x[i] = LEFT + (s.x()[i] - least) * scaleX;
            y[i] = TOP + PLOT_HEIGHT - Math.min(yMax, s.y()[i]) * scaleY;
        }
        canvas.polyline(x, y, s.colour(), 2, s.dashed());
        for (int i = 0; i < s.published().length; i++) {
            if (!Double.isNaN(s.published()[i])) {
                canvas.mark(x[i], TOP + PLOT_HEIGHT - Math.min(yMax, Math.max(0, s.published()[i])) * scaleY,
                    s.dashed(),
                    s.colour(), s.name() + ", published, at " + trim(s.x()[i]) + ": " + trim(s.published()[i]));
            }
        }
    }

    private static String trim(final double value) {
        final String text = String.format(Locale.ROOT, "%.2f", value);
        return text.contains(".") ? text.replaceAll("0+$", "").replaceAll("\\.$", "") : text;
    }
}

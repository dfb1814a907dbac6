/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.analysis.report.Canvas;
import dev.gpuseg.analysis.report.SvgCanvas;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Draws results of {@code gpuseg bench gpu}: per scenario and number of processes one row per strategy, its response
 * divided by that of the kernel alone. Bar: p50, tick: p99, dot: max. What does not fit is cut, with an arrow; all
 * numbers stand beside.
 */
public final class GpuBenchChart {
    private static final int INK = 0x1f2937;
    private static final int FAINT = 0x6b7280;
    private static final int GRID = 0xe5e7eb;
    private static final int PLAIN = 0x9ca3af;
    private static final int BARE = 0xf0b45c;
    private static final int DAEMON = 0x2563eb;
    private static final int GOAL = 0xdc2626;
    private static final int WIDTH = 900;
    private static final int LEFT = 236;
    private static final int RIGHT = 690;
    private static final int ROW = 19;
    private static final int HEAD = 34;
    private static final int TOP = 74;
    private static final int GAP = 22;
    private static final double MOST = 1.6;
    private static final int GRID_STEPS = 6;
    private static final int[] COLUMNS = {745, 805, 865};
    private static final List<String> FIGURES = List.of("p50", "p99", "max");

    /** One row. */
    private record Row(String name, double[] ratios, int colour) {
    }

    /** Rows that are compared with the same goal. */
    private record Panel(String title, double goal, List<Row> rows) {
        int height() {
            return HEAD + ROW * rows.size() + GAP;
        }
    }

    private GpuBenchChart() {
    }

    /** A whole SVG file of the content of a results.json. */
    public static String draw(final JsonNode result) {
        final List<Panel> panels = panels(result);
        final int height = TOP + panels.stream().mapToInt(Panel::height).sum() + 12;
        final SvgCanvas svg = new SvgCanvas(WIDTH, height, "Response of a real-time GPU segment, divided by its "
            + "response alone, for each strategy and number of best-effort processes");
        svg.rectangle(0, 0, WIDTH, height, 0xffffff, null);
        svg.text(16, 26, 16, Canvas.Anchor.START, true, INK, "Response divided by that of the kernel alone");
        svg.text(16, 46, 11, Canvas.Anchor.START, false, FAINT, subtitle(result));
        legend(svg);
        int y = TOP;
        for (final Panel panel : panels) {
            draw(svg, panel, y);
            y += panel.height();
        }
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg.toSvg();
    }

    private static String subtitle(final JsonNode result) {
        final String gpu = result.path("gpu_before").asText("GPU unknown");
        final String[] parts = gpu.split(",");
        return (parts.length > 1 ? parts[0].strip() + ", driver " + parts[1].strip() : "GPU unknown") + ", "
            + (result.path("simulated").asBoolean() ? "SIMULATED, " : "")
            + result.path("begun").asText().replaceFirst("T.*", "") + ", " + result.path("jobs").asInt()
            + " jobs per row, seed " + result.path("seed").asInt();
    }

    private static void legend(final SvgCanvas svg) {
        double x = 16;
        final double y = 62;
        x = swatch(svg, x, y, PLAIN, "without the daemon");
        x = swatch(svg, x, y, BARE, "bare driver calls");
        x = swatch(svg, x, y, DAEMON, "through the daemon");
        svg.text(x, y + 4, 11, Canvas.Anchor.START, false, FAINT, "bar p50");
        x += 52;
        svg.line(x, y - 5, x, y + 5, INK, 2, false);
        svg.text(x + 6, y + 4, 11, Canvas.Anchor.START, false, FAINT, "p99");
        x += 38;
        svg.mark(x, y, false, INK, null);
        svg.text(x + 8, y + 4, 11, Canvas.Anchor.START, false, FAINT, "max (over p99 alone)");
        x += 136;
        svg.line(x, y, x + 16, y, GOAL, 1.5, true);
        svg.text(x + 22, y + 4, 11, Canvas.Anchor.START, false, FAINT, "goal for p99");
    }

    private static double swatch(final SvgCanvas svg, final double x, final double y, final int colour,
        final String text) {
        svg.rectangle(x, y - 5, 14, 10, colour, null);
        svg.text(x + 19, y + 4, 11, Canvas.Anchor.START, false, FAINT, text);
        return x + 36 + text.length() * 5.9;
    }

    private static void draw(final SvgCanvas svg, final Panel panel, final int top) {
        final int bottom = top + HEAD + ROW * panel.rows().size();
        svg.text(16, top + 18, 12, Canvas.Anchor.START, true, INK, panel.title());
        for (int i = 0; i < FIGURES.size(); i++) {
            svg.text(COLUMNS[i], top + HEAD - 5, 10, Canvas.Anchor.END, false, FAINT, FIGURES.get(i));
        }
        for (int i = 0; i <= GRID_STEPS; i++) {
            final double ratio = 1 + (MOST - 1) * i / GRID_STEPS;
            svg.line(x(ratio), top + HEAD, x(ratio), bottom, GRID, 1, false);
            svg.text(x(ratio), top + HEAD - 5, 10, Canvas.Anchor.MIDDLE, false, FAINT,
                String.format(Locale.ROOT, "%.1f", ratio));
        }
        int y = top + HEAD;
        for (final Row row : panel.rows()) {
            draw(svg, row, y, panel.goal());
            y += ROW;
        }
        if (panel.goal() > 0) {
            svg.line(x(panel.goal()), top + HEAD, x(panel.goal()), bottom, GOAL, 1.5, true);
        }
        svg.line(x(1), top + HEAD, x(1), bottom, INK, 1, false);
    }

    private static void draw(final SvgCanvas svg, final Row row, final int y, final double goal) {
        final double middle = y + ROW / 2.0;
        final double p50 = row.ratios()[0];
        final double p99 = row.ratios()[1];
        final double most = row.ratios()[2];
        svg.text(LEFT - 8, middle + 4, 11, Canvas.Anchor.END, false, INK, row.name());
        svg.rectangle(x(1), y + 4, Math.max(1, x(p50) - x(1)), ROW - 8, row.colour(), String.format(Locale.ROOT,
            "%s: p50 %.3f, p99 %.3f, max %.3f", row.name(), p50, p99, most));
        if (p50 <= MOST) {
            svg.line(x(p50), middle, x(most), middle, row.colour(), 1, false);
        }
        if (most > MOST) {   // it goes on
            final double edge = x(MOST);
            svg.polyline(new double[] {edge - 12, edge - 5, edge - 12}, new double[] {middle - 4, middle, middle + 4},
                p50 > MOST ? 0xffffff : row.colour(), 2, false);
        }
        if (p99 <= MOST) {
            svg.line(x(p99), y + 2, x(p99), y + ROW - 2, INK, 2, false);
        }
        if (most <= MOST) {
            svg.mark(x(most), middle, false, INK, null);
        }
        for (int i = 0; i < FIGURES.size(); i++) {
            final boolean missed = i == 1 && goal > 0 && p99 > goal;
            svg.text(COLUMNS[i], middle + 4, 11, Canvas.Anchor.END, i == 1, missed ? GOAL : INK,
                String.format(Locale.ROOT, row.ratios()[i] < 10 ? "%.3f" : "%.2f", row.ratios()[i]));
        }
    }

    private static double x(final double ratio) {
        return LEFT + (RIGHT - LEFT) * (Math.min(Math.max(ratio, 1), MOST) - 1) / (MOST - 1);
    }

    private static List<Panel> panels(final JsonNode result) {
        final List<Panel> panels = new ArrayList<>();
        if (result.has("scenarios")) {
            result.path("scenarios").properties().forEach(s -> add(panels, s.getKey(), s.getValue()));
        } else {
            add(panels, "long", result);
        }
        return panels;
    }

    private static void add(final List<Panel> panels, final String name, final JsonNode scenario) {
        addTasks(panels, name, scenario);
        final Map<Integer, List<Row>> rows = new LinkedHashMap<>();
        for (final JsonNode cell : scenario.path("cells")) {
            if (cell.has("response_ns")) {
                final double[] ratios = new double[FIGURES.size()];
                for (int i = 0; i < ratios.length; i++) {
                    ratios[i] = GpuBench.ratio(cell, scenario.path("alone"), FIGURES.get(i));
                }
                rows.computeIfAbsent(cell.path("others").asInt(), k -> new ArrayList<>())
                    .add(new Row(cell.path("strategy").asText(), ratios, colour(cell.path("strategy").asText())));
            }
        }
        rows.forEach((others, list) -> panels.add(new Panel(title(name, others, scenario), goal(name, others), list)));
    }

    /** A panel for each task, with a row for each cell in which it runs. */
    private static void addTasks(final List<Panel> panels, final String name, final JsonNode scenario) {
        final Map<String, List<Row>> rows = new LinkedHashMap<>();
        for (final JsonNode cell : scenario.path("cells")) {
            final String title = cell.path("strategy").asText();
            for (final JsonNode task : cell.path("tasks")) {
                final double[] ratios = FIGURES.stream().mapToDouble(f -> task.path(f + "_to_alone").asDouble())
                    .toArray();
                rows.computeIfAbsent(task.path("task").asText(), k -> new ArrayList<>())
                    .add(new Row(title, ratios, cell.has("kept_free_share") ? DAEMON : PLAIN));
            }
        }
        rows.forEach((task, list) -> panels.add(new Panel("Scenario " + name + ", task " + task, 0, list)));
    }

    private static int colour(final String title) {
        for (final GpuStrategy strategy : GpuStrategy.values()) {
            if (strategy.title().equals(title) && !strategy.needsDaemon()) {
                return strategy == GpuStrategy.BARE_BLOCKING || strategy == GpuStrategy.BARE_OPTIMISTIC ? BARE : PLAIN;
            }
        }
        return DAEMON;
    }

    private static double goal(final String scenario, final int others) {
        if ("long".equals(scenario)) {
            return others == 7 ? GpuGoals.SEVEN : others == 3 ? GpuGoals.THREE : 0;
        }
        return "levels".equals(scenario) ? GpuGoals.LEVELS : 0;
    }

    private static String title(final String name, final int others, final JsonNode scenario) {
        final String processes = others + (others == 1 ? " process" : " processes");
        switch (name) {
            case "levels":
                return String.format(Locale.ROOT, "Higher of two levels: %.0f ms kernel against one of lower priority, "
                    + "%.0f ms", scenario.path("high_kernel_ms").asDouble(), scenario.path("low_kernel_ms").asDouble());
            case "burst":
                return String.format(Locale.ROOT, "Bursts of five %.0f ms kernels against %s with %.0f ms kernels",
                    scenario.path("kernel_ms").asDouble(), processes, scenario.path("other_kernel_ms").asDouble());
            case "pytorch":
                return "ResNet-50 inference against " + others + " trainings";
            case "pytorch-eager":
                return "Vision transformer, eager, against " + others + " trainings";
            case "pytorch-decode":
                return "Decoder, token by token, against " + others + " trainings";
            default:
                return String.format(Locale.ROOT, "%s ms kernel against %s with endless %s ms kernels",
                    scenario.path("kernel_ms").asText(), processes, scenario.path("other_kernel_ms").asText());
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.generate.TaskSetGenerator;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.report.LineChart;
import dev.gpuseg.analysis.report.SvgCanvas;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Reproduces the published figures 8a..8f and 9a..9f. Figures of one letter share their points; each point is computed
 * once and stored on disk.
 *
 * <p>Columns: each analysis under rate-monotonic priorities on CPU and GPU; for the two published GCAPS analyses also
 * the published retry with GPU priorities of their own ({@code +gprio}) and the frontier assignment ({@code +opa}).
 */
public final class FigureSweep {
    private static final String GPRIO = "+gprio";
    private static final String OPA = "+opa";
    /** Analyses with a second and a third column. */
    private static final List<String> RETRIED = List.of("gcaps-suspend", "gcaps-busy");
    private static final int BLUE = 0x0b5cad;
    private static final int ORANGE = 0xc2540a;
    private static final int GREEN = 0x1b7f4d;
    private static final int GREY = 0x8a94a3;
    private static final int PURPLE = 0x7a3e9d;

    private final long seed;
    private final int sets;
    private final Variant variant;
    private final Path directory;
    private final SetCounter counter;
    private final List<String> columns = columnNames();

    /**
     * A sweep.
     *
     * @param seed      of the sets
     * @param sets      per point, at least 1
     * @param variant   how sets are drawn
     * @param directory receives the files; points of an earlier run with the same seed, number and variant are used
     *                  again
     * @param counter   counts the sets of each point; stays open
     */
    public FigureSweep(final long seed, final int sets, final Variant variant, final Path directory,
        final SetCounter counter) {
        this.seed = seed;
        this.sets = sets;
        this.variant = variant;
        this.directory = directory;
        this.counter = counter;
    }

    private static List<String> columnNames() {
        final List<String> columns = new ArrayList<>();
        for (final Analysis analysis : Analyses.inFigures()) {
            columns.add(analysis.name());
        }
        for (final String published : RETRIED) {
            columns.add(published + GPRIO);
            columns.add(published + OPA);
        }
        return columns;
    }

    /** One point of an axis. */
    private record Point(Axis axis, double label, Variant variant, long seed) implements SetWork {
        @Override
        public List<String> columns() {
            return columnNames();
        }

        @Override
        public SetJudge open() {
            final TaskSetGenerator generator = new TaskSetGenerator(axis.experiment(label, variant));
            final int point = (axis.letter() - 'a') * 100 + (int) Math.round(label * 10);
            final List<Analysis> analyses = Analyses.inFigures();
            return (k, counts) -> judge(analyses, generator.generate(seed, point, k), counts);
        }
    }

    /**
     * Runs what is missing and writes CSV and SVG of each figure, and a table that compares the GCAPS curves.
     *
     * @param figures  {@code 8a}..{@code 9f}
     * @param progress receives the number of sets done
     * @throws IOException          if a file cannot be written
     * @throws InterruptedException if the thread is interrupted; finished points are kept
     */
    public void run(final List<String> figures, final Progress progress) throws IOException, InterruptedException {
        final PointStore store = new PointStore(directory.resolve("points"));
        final Map<Axis, List<Map<String, Long>>> done = new LinkedHashMap<>();
        for (final String figure : figures) {
            final Axis axis = Axis.ofFigure(figure);
            List<Map<String, Long>> points = done.get(axis);
            if (points == null) {
                points = new ArrayList<>();
                for (final double label : axis.labels()) {
                    points.add(point(axis, label, store, progress));
                }
                done.put(axis, points);
            }
            write(figure, axis, points);
        }
        writeComparison(done);
    }

    /**
     * Number of sets of a run over these figures.
     *
     * @param figures {@code 8a}..{@code 9f}
     * @return number of sets, points on disk included
     */
    public long totalSets(final List<String> figures) {
        return figures.stream().map(Axis::ofFigure).distinct().mapToLong(a -> (long) a.labels().length * sets).sum();
    }

    private Map<String, Long> point(final Axis axis, final double label, final PointStore store,
        final Progress progress) throws IOException, InterruptedException {
        final String key = String.format(Locale.ROOT, "%s-%s-seed%d-n%d-%s", axis.letter(), label, seed, sets,
            variant.name().toLowerCase(Locale.ROOT).replace('_', '-'));
        final Map<String, Long> stored = store.load(key, columns);
        if (stored != null) {
            progress.skip(sets);
            return stored;
        }
        final Map<String, Long> counted = counter.count(new Point(axis, label, variant, seed), 0, sets, progress)
            .byName(columns);
        store.save(key, counted);
        return counted;
    }

    private static void judge(final List<Analysis> analyses, final TaskSet set, final long[] counts) {
        final PreparedSet prepared = PreparedSet.of(set);
        int at = 0;
        for (final Analysis analysis : analyses) {
            counts[at] += analysis.isSchedulable(prepared) ? 1 : 0;
            at++;
        }
        for (final String published : RETRIED) {
            final Analysis analysis = Analyses.get(published);
            final boolean monotonic = analysis.isSchedulable(prepared);
            counts[at] += monotonic || GpuPriorities.published(analysis, prepared) ? 1 : 0;
            counts[at + 1] += monotonic || GpuPriorities.frontier(analysis, prepared) ? 1 : 0;
            at += 2;
        }
    }

    private double percent(final Map<String, Long> point, final String column) {
        return 100.0 * point.get(column) / sets;
    }

    // ---- files ----

    private void write(final String figure, final Axis axis, final List<Map<String, Long>> points) throws IOException {
        final char number = figure.charAt(0);
        final StringBuilder csv = new StringBuilder();
        csv.append("# figure ").append(figure).append(", seed ").append(seed).append(", ").append(sets)
            .append(" sets per point, ").append(variant.name().toLowerCase(Locale.ROOT)).append(
                "; percent of sets that are schedulable\n");
        csv.append("label,value,").append(String.join(",", columns));
        final String[][] published = number == '8' ? FIGURE_8 : FIGURE_9;
        for (final String[] pair : published) {
            csv.append(",published ").append(pair[1]);
        }
        csv.append('\n');
        final double[] labels = axis.labels();
        for (int i = 0; i < labels.length; i++) {
            csv.append(labels[i]).append(',').append(axis.value(labels[i], variant));
            for (final String column : columns) {
                csv.append(',').append(String.format(Locale.ROOT, "%.2f", percent(points.get(i), column)));
            }
            for (final String[] pair : published) {
                final double value = PublishedFigures.value(number, axis, labels[i], pair[1]);
                csv.append(',').append(Double.isNaN(value) ? "" : String.format(Locale.ROOT, "%.1f", value));
            }
            csv.append('\n');
        }
        Files.createDirectories(directory);
        ResultFile.write(directory.resolve("figure-" + figure + ".csv"), csv);
        final LineChart chart = number == '8' ? schedulability(figure, axis, points) : gain(figure, axis, points);
        final SvgCanvas svg = new SvgCanvas(LineChart.WIDTH, chart.height(), chart.title());
        svg.rectangle(0, 0, LineChart.WIDTH, chart.height(), 0xffffff, null);
        chart.draw(svg);
        ResultFile.write(directory.resolve("figure-" + figure + ".svg"),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg.toSvg());
    }

    /** Our column, published column. */
    private static final String[][] FIGURE_8 = {
        {"gcaps-suspend" + GPRIO, "gcaps_suspend"}, {"gcaps-busy" + GPRIO, "gcaps_busy"},
        {"tsg-rr-suspend", "tsg_rr_suspend"}, {"tsg-rr-busy", "tsg_rr_busy"},
        {"fmlp-suspend", "fmlp+_suspend"}, {"fmlp-busy", "fmlp+_busy"},
        {"mpcp-suspend", "mpcp_suspend"}, {"mpcp-busy", "mpcp_busy"},
    };
    private static final String[][] FIGURE_9 = {
        {"gcaps-suspend", "gain_suspend_pts"}, {"gcaps-busy", "gain_busy_pts"},
    };

    private LineChart schedulability(final String figure, final Axis axis, final List<Map<String, Long>> points) {
        final List<LineChart.Series> series = new ArrayList<>();
        final int[] colours = {BLUE, BLUE, ORANGE, ORANGE, GREEN, GREEN, GREY, GREY};
        for (int i = 0; i < FIGURE_8.length; i++) {
            series.add(series(FIGURE_8[i][0], colours[i], i % 2 == 1, axis, points, FIGURE_8[i][0],
                published('8', axis, FIGURE_8[i][1])));
        }
        series.add(series("gcaps-window-suspend", PURPLE, false, axis, points, "gcaps-window-suspend", new double[0]));
        series.add(series("gcaps-window-busy", PURPLE, true, axis, points, "gcaps-window-busy", new double[0]));
        return new LineChart("Figure " + figure + ": schedulable task sets", axis.label(), "Schedulable sets (%)", 100,
            series, footers(axis));
    }

    private LineChart gain(final String figure, final Axis axis, final List<Map<String, Long>> points) {
        final List<LineChart.Series> series = new ArrayList<>();
        double most = 8;
        for (int i = 0; i < FIGURE_9.length; i++) {
            final String base = FIGURE_9[i][0];
            final double[] published = published('9', axis, FIGURE_9[i][1]);
            series.add(gainSeries(base, GPRIO, BLUE, i == 1, axis, points, published));
            series.add(gainSeries(base, OPA, PURPLE, i == 1, axis, points, new double[0]));
            for (final double value : published) {
                most = Math.max(most, value);
            }
        }
        for (final LineChart.Series s : series) {
            for (final double value : s.y()) {
                most = Math.max(most, value);
            }
        }
        return new LineChart("Figure " + figure + ": gain by GPU priority assignment", axis.label(),
            "Gain (percent points)", Math.ceil(most / 4) * 4, series, footers(axis));
    }

    private LineChart.Series gainSeries(final String base, final String suffix, final int colour, final boolean dashed,
        final Axis axis, final List<Map<String, Long>> points, final double[] published) {
        final double[] y = points.stream().mapToDouble(p -> percent(p, base + suffix) - percent(p, base)).toArray();
        return new LineChart.Series(base + suffix, colour, dashed, axis.labels(), y, published);
    }

    private LineChart.Series series(final String name, final int colour, final boolean dashed, final Axis axis,
        final List<Map<String, Long>> points, final String column, final double[] published) {
        return new LineChart.Series(name, colour, dashed, axis.labels(),
            points.stream().mapToDouble(p -> percent(p, column)).toArray(), published);
    }

    private static double[] published(final char figure, final Axis axis, final String column) {
        final double[] labels = axis.labels();
        final double[] values = new double[labels.length];
        for (int i = 0; i < labels.length; i++) {
            values[i] = PublishedFigures.value(figure, axis, labels[i], column);
        }
        return values;
    }

    private List<String> footers(final Axis axis) {
        final List<String> lines = new ArrayList<>();
        lines.add(sets + " sets per point, seed " + seed + ", "
            + (variant == Variant.AS_CODED ? "sets as the published program draws them"
                : "sets as the published text describes them"));
        if (axis == Axis.GPU_TO_CPU || axis == Axis.BEST_EFFORT) {
            lines.add("The published x labels are wrong: the published program ran with "
                + (axis == Axis.GPU_TO_CPU ? "half of each label" : "each label minus 0.1")
                + (variant == Variant.AS_CODED ? ", and so does this sweep." : "; this sweep takes them literally."));
        }
        return lines;
    }

    /** Compares our GCAPS curves with the published ones, in units of the sampling error. */
    private void writeComparison(final Map<Axis, List<Map<String, Long>>> done) throws IOException {
        final StringBuilder table = new StringBuilder();
        table.append("| figure | label | suspend: ours | published | difference / sigma | busy: ours | published "
            + "| difference / sigma |\n|---|---|---|---|---|---|---|---|\n");
        final Deviations deviations = new Deviations();
        for (final Map.Entry<Axis, List<Map<String, Long>>> entry : done.entrySet()) {
            final Axis axis = entry.getKey();
            final double[] labels = axis.labels();
            for (int i = 0; i < labels.length; i++) {
                table.append("| 8").append(axis.letter()).append(" | ").append(labels[i]);
                for (int column = 0; column < 2; column++) {
                    final double ours = percent(entry.getValue().get(i), FIGURE_8[column][0]);
                    final double theirs = PublishedFigures.value('8', axis, labels[i], FIGURE_8[column][1]);
                    final double sigmas = sigmas(ours, theirs);
                    table.append(String.format(Locale.ROOT, " | %.1f | %.1f | %+.1f", ours, theirs, sigmas));
                    deviations.add(sigmas);
                }
                table.append(" |\n");
            }
        }
        table.append(deviations.summary()).append(String.format(Locale.ROOT, "; root mean square %.2f sigma.%n%n",
            deviations.rootMeanSquare()));
        appendGains(table, done);
        ResultFile.write(directory.resolve("comparison.md"), table);
    }

    private void appendGains(final StringBuilder table, final Map<Axis, List<Map<String, Long>>> done) {
        table.append("| figure | label | suspend gain: ours | published | difference / sigma | frontier | busy "
            + "gain: ours "
            + "| published | difference / sigma | frontier |\n|---|---|---|---|---|---|---|---|---|---|\n");
        final Deviations deviations = new Deviations();
        for (final Map.Entry<Axis, List<Map<String, Long>>> entry : done.entrySet()) {
            final Axis axis = entry.getKey();
            final double[] labels = axis.labels();
            for (int i = 0; i < labels.length; i++) {
                table.append("| 9").append(axis.letter()).append(" | ").append(labels[i]);
                final Map<String, Long> point = entry.getValue().get(i);
                for (final String[] pair : FIGURE_9) {
                    final double base = percent(point, pair[0]);
                    final double ours = percent(point, pair[0] + GPRIO) - base;
                    final double theirs = PublishedFigures.value('9', axis, labels[i], pair[1]);
                    // the gain is itself a share of the sets: those that only the retry accepts
                    final double sigmas = sigmas(ours, theirs);
                    table.append(String.format(Locale.ROOT, " | %.1f | %.1f | %+.1f | %.1f", ours, theirs, sigmas,
                        percent(point, pair[0] + OPA) - base));
                    deviations.add(sigmas);
                }
                table.append(" |\n");
            }
        }
        table.append(deviations.summary()).append(String.format(Locale.ROOT, ".%n"));
    }

    /** Differences in units of their standard deviation. */
    private static final class Deviations {
        private double largest;
        private double squares;
        private int count;
        private int beyondTwo;

        void add(final double sigmas) {
            largest = Math.max(largest, Math.abs(sigmas));
            squares += sigmas * sigmas;
            beyondTwo += Math.abs(sigmas) > 2 ? 1 : 0;
            count++;
        }

        double rootMeanSquare() {
            return Math.sqrt(squares / Math.max(1, count));
        }

        String summary() {
            return String.format(Locale.ROOT, "%n%d comparisons; largest difference %.1f sigma; %d beyond 2 sigma",
                count, largest, beyondTwo);
        }
    }

    /**
     * Difference of two percentages in units of its standard deviation: both are samples, ours of {@code sets} and the
     * published one of 1,000 sets. The share is pooled and kept one set away from 0 and 1, where the normal
     * approximation would take one set in a thousand for a certainty; 0.1 points are added because the published value
     * was read off a figure.
     */
    private double sigmas(final double oursPercent, final double theirsPercent) {
        final double n = sets;
        final double m = PublishedFigures.SETS;
        final double pooled = (oursPercent * n + theirsPercent * m) / 100 / (n + m);
        final double p = Math.min(1 - 1 / m, Math.max(1 / m, pooled));
        final double sigma = 100 * Math.sqrt(p * (1 - p) * (1 / n + 1 / m)) + 0.1;
        return (oursPercent - theirsPercent) / sigma;
    }
}

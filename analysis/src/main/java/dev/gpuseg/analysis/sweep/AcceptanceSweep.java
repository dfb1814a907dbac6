/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Experiment;
import dev.gpuseg.analysis.generate.Experiment.Range;
import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.generate.TaskSetGenerator;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * How many sets of the published experiment each preemptive analysis accepts, at 18 points of its six axes, with the
 * priorities of the sets (rate monotonic) and no search. All analyses see the same sets.
 */
public final class AcceptanceSweep {
    private static final int POINT = 700;

    private final long seed;
    private final int sets;
    private final Path directory;
    private final SetCounter counter;

    /** A point of the experiment. */
    private record Point(String name, Experiment experiment) {
    }

    /**
     * A sweep.
     *
     * @param seed      of the sets
     * @param sets      per point, at least 1
     * @param directory receives {@code accepted.csv} and {@code accepted.md}
     * @param counter   counts the sets of each point; stays open
     */
    public AcceptanceSweep(final long seed, final int sets, final Path directory, final SetCounter counter) {
        this.seed = seed;
        this.sets = sets;
        this.directory = directory;
        this.counter = counter;
    }

    private static List<Point> points() {
        final List<Point> points = new ArrayList<>();
        final Experiment base = Experiment.published(Variant.AS_CODED);
        for (final double value : new double[] {0.1, 0.2, 0.3, 0.4, 0.5}) {
            points.add(new Point("utilisation " + value, base.withCpuUtilisation(Range.of(value))));
        }
        for (final double value : new double[] {0.1, 0.3, 0.5}) {
            points.add(new Point("GPU tasks " + value, base.withGpuRatio(Range.of(value))));
        }
        for (final double value : new double[] {0.2, 0.5, 0.8}) {
            points.add(new Point("best effort " + value, base.withTasksPerCpu(Range.of(6)).withBestEffortRatio(value)));
        }
        for (final int value : new int[] {1, 2, 6}) {
            points.add(new Point("CPUs " + value, base.withCpus(value)));
        }
        for (final int value : new int[] {4, 8, 12}) {
            points.add(new Point("tasks " + value, base.withTotalTasks(value)));
        }
        points.add(new Point("as published", base));
        return points;
    }

    /** The published bounds of preemptive windows, and every one of this project that needs no table. */
    static List<Analysis> analyses() {
        return Analyses.all().stream().filter(a -> a.description().model().preempts()
            && (a.claim() != Analysis.Claim.COMPARISON && a.claim() != Analysis.Claim.PROVEN_ELSEWHERE)).toList();
    }

    /** Number of sets of all points. */
    public long totalSets() {
        return (long) sets * points().size();
    }

    /**
     * Counts and writes the tables.
     *
     * @param progress receives the number of sets done
     * @return how many sets each of {@link #analyses} accepts, in its order
     * @throws IOException          if a file cannot be written
     * @throws InterruptedException if the thread is interrupted
     */
    public long[] run(final Progress progress) throws IOException, InterruptedException {
        final List<Analysis> analyses = analyses();
        final long[] total = new long[analyses.size()];
        final StringBuilder csv = new StringBuilder("point,sets");
        final StringBuilder table = new StringBuilder("| point ");
        for (final Analysis analysis : analyses) {
            csv.append(',').append(analysis.name());
            table.append("| ").append(analysis.name()).append(' ');
        }
        csv.append('\n');
        table.append("|\n|---").append("|---".repeat(analyses.size())).append("|\n");
        final List<Point> points = points();
        for (int p = 0; p < points.size(); p++) {
            final long[] counts = counter.count(new Accepted(seed, p), 0, sets, progress)
                .byName(analyses.stream().map(Analysis::name).toList()).values().stream().mapToLong(Long::longValue)
                .toArray();
            write(csv, table, points.get(p).name(), sets, counts);
            for (int a = 0; a < total.length; a++) {
                total[a] += counts[a];
            }
        }
        write(csv, table, "all " + totalSets(), totalSets(), total);
        ResultFile.write(directory.resolve("accepted.csv"), csv);
        ResultFile.write(directory.resolve("accepted.md"), table);
        return total;
    }

    /** The sets of one point, by its index. */
    private record Accepted(long seed, int index) implements SetWork {
        @Override
        public List<String> columns() {
            return analyses().stream().map(Analysis::name).toList();
        }

        @Override
        public SetJudge open() {
            final TaskSetGenerator generator = new TaskSetGenerator(points().get(index).experiment());
            final List<Analysis> analyses = analyses();
            return (k, counts) -> {
                final TaskSet set = generator.generate(seed, POINT + index, k);
                for (int a = 0; a < counts.length; a++) {
                    final Analysis analysis = analyses.get(a);
                    counts[a] += analysis.isSchedulable(PreparedSet.of(set.withMode(analysis.mode()))) ? 1 : 0;
                }
            };
        }
    }

    private static void write(final StringBuilder csv, final StringBuilder table, final String name, final long of,
        final long[] counts) {
        csv.append(name).append(',').append(of);
        table.append("| ").append(name).append(' ');
        for (final long count : counts) {
            csv.append(',').append(count);
            table.append("| ").append(count).append(' ');
        }
        csv.append('\n');
        table.append("|\n");
    }
}

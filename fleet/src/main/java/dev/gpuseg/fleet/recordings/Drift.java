/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import dev.gpuseg.analysis.generate.Seeds;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.commons.math3.special.Erf;

/**
 * Whether a task's responses differ between two versions. The jobs of one recording depend on each other (same load,
 * same phases, same temperature), so the unit is the recording: of each its median and its 99th percentile of a task.
 *
 * <p>Test: van Elteren's, which is Wilcoxon's rank sum within each robot, added over robots with weight 1 / (n + 1)
 * (P. van Elteren, Bull. Int. Stat. Inst. 37, 1960): a robot that is slow anyway does not count as a slow version. Two
 * sided, normal approximation, midranks and their correction for ties. Where no robot ran both versions, all robots
 * are one group, and the result says so: the robots' differences are then in it. All comparisons together are
 * corrected by Holm's method.
 *
 * <p>Assumptions: recordings are independent, and those of one robot and version are alike but for chance. The shift is
 * the ratio of the medians (after / before), averaged geometrically over robots; its interval comes from a bootstrap of
 * the recordings of each robot and version, with a fixed seed.
 *
 * @param before   version
 * @param after    version
 * @param compared one row per task and measure
 */
public record Drift(String before, String after, List<Compared> compared) {
    /** Significance of all comparisons together. */
    public static final double LEVEL = 0.05;
    private static final int FEWEST = 4;
    private static final int RESAMPLES = 1000;
    private static final double TAIL = 0.025;

    /** What is compared of each recording. */
    public enum Measure {
        /** Median of the responses. */
        MEDIAN("median"),
        /** 99th percentile of the responses. */
        P99("p99");

        private final String word;

        Measure(final String word) {
            this.word = word;
        }

        private long of(final Figures.OfRecording row) {
            return this == MEDIAN ? row.p50Ns() : row.p99Ns();
        }

        /** A word for tables. */
        public String word() {
            return word;
        }
    }

    /** What the comparison says. */
    public enum Verdict {
        /** Longer responses after. */
        SLOWER("slower"),
        /** Shorter responses after. */
        FASTER("faster"),
        /** Chance explains it. */
        NO_DIFFERENCE("no difference shown"),
        /** Fewer recordings than the approximation needs. */
        TOO_FEW("too few recordings");

        private final String word;

        Verdict(final String word) {
            this.word = word;
        }

        /** A few words for tables. */
        public String word() {
            return word;
        }
    }

    /**
     * A comparison.
     *
     * @param task       its name
     * @param measure    of each recording
     * @param nBefore    recordings that count
     * @param nAfter     recordings that count
     * @param robots     groups
     * @param byRobot    each robot is a group; false: all are one
     * @param beforeNs   median of the measure over recordings
     * @param afterNs    median of the measure over recordings
     * @param ratio      shift: after / before; NaN if there are too few
     * @param ratioLow   lower end of its 95 % interval
     * @param ratioHigh  upper end
     * @param p          of the test; 1 if there are too few
     * @param adjusted   p by Holm's method over all comparisons
     * @param verdict    at {@link #LEVEL} of the adjusted p
     */
    public record Compared(String task, Measure measure, int nBefore, int nAfter, int robots, boolean byRobot,
        long beforeNs, long afterNs, double ratio, double ratioLow, double ratioHigh, double p, double adjusted,
        Verdict verdict) {
        private Compared judged(final double holm) {
            final Verdict found = verdict == Verdict.TOO_FEW ? verdict : holm > LEVEL ? Verdict.NO_DIFFERENCE
                : ratio >= 1 ? Verdict.SLOWER : Verdict.FASTER;
            return new Compared(task, measure, nBefore, nAfter, robots, byRobot, beforeNs, afterNs, ratio, ratioLow,
                ratioHigh, p, holm, found);
        }
    }

    /** The values of one group under both versions. */
    private record Group(double[] before, double[] after) {
        double weight() {
            return (double) before.length * after.length / (before.length + after.length);
        }
    }

    /**
     * Compares.
     *
     * @param rows   of all recordings
     * @param before version
     * @param after  version
     * @return every task of which both versions completed jobs, by name
     */
    public static Drift of(final List<Figures.OfRecording> rows, final String before, final String after) {
        final TreeSet<String> tasks = new TreeSet<>();
        rows.forEach(row -> tasks.add(row.task()));
        final List<Compared> all = new ArrayList<>();
        for (final String task : tasks) {
            final List<Figures.OfRecording> ofTask = rows.stream().filter(row -> row.task().equals(task)
                && row.complete() > 0).toList();
            for (final Measure measure : Measure.values()) {
                final Compared compared = compare(task, measure, ofTask, before, after);
                if (compared.nBefore() > 0 && compared.nAfter() > 0) {
                    all.add(compared);
                }
            }
        }
        return new Drift(before, after, holm(all));
    }

    private static Compared compare(final String task, final Measure measure, final List<Figures.OfRecording> rows,
        final String before, final String after) {
        final List<Group> groups = groups(measure, rows, before, after, true);
        final boolean byRobot = !groups.isEmpty();
        if (!byRobot) {
            groups.addAll(groups(measure, rows, before, after, false));
        }
        final double[] allBefore = groups.stream().flatMapToDouble(g -> Arrays.stream(g.before())).sorted().toArray();
        final double[] allAfter = groups.stream().flatMapToDouble(g -> Arrays.stream(g.after())).sorted().toArray();
        final boolean few = allBefore.length < FEWEST || allAfter.length < FEWEST;
        double low = Double.NaN;
        double high = Double.NaN;
        if (!few) {
            final SplittableRandom random = Seeds.random(task.hashCode(), measure.ordinal(), 0);
            final double[] ratios = new double[RESAMPLES];
            for (int i = 0; i < RESAMPLES; i++) {
                ratios[i] = ratio(groups.stream().map(g -> new Group(resample(random, g.before()),
                    resample(random, g.after()))).toList());
            }
            Arrays.sort(ratios);
            low = ratios[(int) (TAIL * RESAMPLES)];
            high = ratios[RESAMPLES - 1 - (int) (TAIL * RESAMPLES)];
        }
        return new Compared(task, measure, allBefore.length, allAfter.length, groups.size(), byRobot,
            (long) median(allBefore), (long) median(allAfter), few ? Double.NaN : ratio(groups), low, high,
            few ? 1 : vanElteren(groups), 1, few ? Verdict.TOO_FEW : Verdict.NO_DIFFERENCE);
    }

    private static List<Group> groups(final Measure measure, final List<Figures.OfRecording> rows, final String before,
        final String after, final boolean byRobot) {
        final Map<String, List<List<Double>>> values = new TreeMap<>();
        for (final Figures.OfRecording row : rows) {
            final int side = row.version().equals(before) ? 0 : row.version().equals(after) ? 1 : -1;
            if (side >= 0) {
                values.computeIfAbsent(byRobot ? row.robot() : "", robot -> List.of(new ArrayList<>(),
                    new ArrayList<>())).get(side).add((double) Math.max(1, measure.of(row)));
            }
        }
        final List<Group> groups = new ArrayList<>();
        for (final List<List<Double>> sides : values.values()) {
            if (!sides.get(0).isEmpty() && !sides.get(1).isEmpty()) {
                groups.add(new Group(sorted(sides.get(0)), sorted(sides.get(1))));
            }
        }
        return groups;
    }

    private static double[] sorted(final List<Double> values) {
        return values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    }

    private static double[] resample(final SplittableRandom random, final double[] values) {
        final double[] drawn = new double[values.length];
        for (int i = 0; i < drawn.length; i++) {
            drawn[i] = values[random.nextInt(values.length)];
        }
        Arrays.sort(drawn);
        return drawn;
    }

    private static double median(final double[] sorted) {
        final int n = sorted.length;
        return n == 0 ? 0 : n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    }

    /** Geometric mean over groups of median after / median before. */
    private static double ratio(final List<Group> groups) {
        double sum = 0;
        double weights = 0;
        for (final Group group : groups) {
            sum += group.weight() * Math.log(median(group.after()) / median(group.before()));
            weights += group.weight();
        }
        return Math.exp(sum / weights);
    }

    /**
     * Two-sided p of van Elteren's test; with one group that of Wilcoxon's rank sum test.
     *
     * @param groups sorted values under both versions
     * @return 0..1; 1 if all values are equal
     */
    private static double vanElteren(final List<Group> groups) {
        double statistic = 0;
        double expected = 0;
        double variance = 0;
        for (final Group group : groups) {
            final double m = group.before().length;
            final double n = group.after().length;
            final double size = m + n;
            final double[] both = new double[(int) size];
            System.arraycopy(group.before(), 0, both, 0, group.before().length);
            System.arraycopy(group.after(), 0, both, group.before().length, group.after().length);
            Arrays.sort(both);
            double ranks = 0;
            double ties = 0;
            for (int i = 0; i < both.length;) {
                int end = i;
                while (end < both.length && both[end] == both[i]) {
                    end++;
                }
                final double length = end - i;
                ranks += (i + 1 + end) / 2.0 * occurrences(group.after(), both[i]);
                ties += length * length * length - length;
                i = end;
            }
            statistic += ranks / (size + 1);
            expected += n / 2;
            variance += m * n / (12 * (size + 1)) * (1 - ties / (size * size * size - size));
        }
        return variance <= 0 ? 1 : Erf.erfc(Math.abs(statistic - expected) / Math.sqrt(2 * variance));
    }

    private static long occurrences(final double[] values, final double of) {
        return Arrays.stream(values).filter(value -> value == of).count();
    }

    /** The k-th smallest p times the number of those not smaller, never falling, at most 1. */
    private static List<Compared> holm(final List<Compared> all) {
        final List<Compared> tested = new ArrayList<>(all);
        tested.removeIf(c -> c.verdict() == Verdict.TOO_FEW);
        tested.sort(Comparator.comparingDouble(Compared::p));
        final List<Compared> judged = new ArrayList<>();
        double largest = 0;
        for (int k = 0; k < tested.size(); k++) {
            largest = Math.max(largest, Math.min(1, tested.get(k).p() * (tested.size() - k)));
            judged.add(tested.get(k).judged(largest));
        }
        all.stream().filter(c -> c.verdict() == Verdict.TOO_FEW).forEach(judged::add);
        judged.sort(Comparator.comparing(Compared::task).thenComparing(Compared::measure));
        return judged;
    }
}

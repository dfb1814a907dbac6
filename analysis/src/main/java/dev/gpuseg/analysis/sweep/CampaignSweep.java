/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.generate.TaskSetFiles;
import dev.gpuseg.analysis.generate.TaskSetGenerator;
import dev.gpuseg.analysis.io.ResultFile;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Runs campaigns in steps whose results are stored on disk.
 *
 * <p>{@link #soundness} compares every bound with simulated responses on {@link LimitedSets}, one in four of
 * {@link WitnessSets}. {@link #gap} does so on
 * the published task sets, by utilisation: how often the mechanism for which a bound was published exceeds it, and how
 * many accepted sets soundness costs.
 */
public final class CampaignSweep {
    /** Columns of the table. */
    private static final int HEADINGS = 16;

    private final long seed;
    private final int runsPerSet;
    private final Path directory;
    private final SetCounter counter;
    private final int climbs;

    /**
     * A campaign.
     *
     * @param seed       of sets and runs
     * @param runsPerSet simulated runs for each set and comparison, at least 1
     * @param directory  receives the files; steps of an earlier campaign with the same numbers are used again
     * @param counter    counts the sets; stays open
     * @param climbs     further runs of a directed search for each set and comparison of {@link #soundness}, 0 or more
     */
    public CampaignSweep(final long seed, final int runsPerSet, final Path directory, final SetCounter counter,
        final int climbs) {
        this.seed = seed;
        this.runsPerSet = runsPerSet;
        this.directory = directory;
        this.counter = counter;
        this.climbs = climbs;
    }

    /**
     * The totals of a campaign.
     *
     * @param runs     simulated runs of claimed comparisons
     * @param exceeded sets in which a claimed bound was exceeded
     */
    public record Totals(long runs, long exceeded) {
    }

    /**
     * Compares bounds on small sets that try every feature.
     *
     * @param sets     how many sets
     * @param claimed  true for the bounds that claim to be sound only; false for all
     * @param only     names of analyses; empty for all
     * @param progress receives the number of sets done
     * @return totals of the claimed comparisons
     * @throws IllegalArgumentException if a name has no comparison left
     * @throws IOException          if a file cannot be written
     * @throws InterruptedException if the thread is interrupted; finished steps are kept
     */
    public Totals soundness(final int sets, final boolean claimed, final List<String> only, final Progress progress)
        throws IOException, InterruptedException {
        final List<Claim> claims = claims(claimed, only);
        final SetWork work = new Soundness(seed, runsPerSet, climbs, claimed, List.copyOf(only));
        final PointStore store = new PointStore(directory.resolve("points"));
        final List<String> columns = work.columns();
        Map<String, Long> sum = null;
        for (long from = 0; from < sets; from += counter.step()) {
            final long to = Math.min(sets, from + counter.step());
            final String key = (claimed ? "claimed-" : "soundness-")
                + (only.isEmpty() ? "" : String.join("-", only) + "-") + "seed" + seed + "-runs" + runsPerSet
                + (climbs == 0 ? "" : "-climb" + climbs) + "-"
                + from + "-" + to;
            Map<String, Long> step = store.load(key, columns);
            if (step == null) {
                final Tally tally = counter.count(work, from, to, progress);
                step = tally.byName(columns);
                write(tally.findings());   // before the step counts as done
                store.save(key, step);
            } else {
                progress.skip(to - from);
            }
            sum = merge(sum, step);
        }
        long runs = 0;
        long exceeded = 0;
        final StringBuilder csv = new StringBuilder("analysis,mechanism,claimed,sets,accepted,runs,"
            + "exceeded_sets,missed_sets,"
            + "p10_response_over_bound,p50_response_over_bound,p90_response_over_bound,"
            + "max_response_over_bound,runs_kept_ready,runs_anticipated,"
            + "runs_with_limits,runs_with_budgets,runs_with_throttled_cores\n");
        final StringBuilder table = new StringBuilder("| analysis | mechanism | claimed | accepted of " + sets
            + " | runs | sets with an exceeded bound | sets with a missed deadline "
            + "| largest response / bound of a task: "
            + "p10 | median | p90 | maximum | runs with idle contexts enabled "
            + "| runs with anticipation | runs with limits | runs with budgets | runs with throttled cores |\n"
            + "|---".repeat(HEADINGS) + "|\n");
        final List<Long> values = new ArrayList<>(sum.values());
        for (int c = 0; c < claims.size(); c++) {
            final Claim claim = claims.get(c);
            final List<Long> v = values.subList(c * Campaign.WIDTH, (c + 1) * Campaign.WIDTH);
            final String ratio = String.format(Locale.ROOT, "%.2f,%.2f,%.2f,%.6f", Campaign.quantile(v, 0.1),
                Campaign.quantile(v, 0.5), Campaign.quantile(v, 0.9), v.get(5) / 1e6);
            csv.append(String.format(Locale.ROOT, "%s,%s,%s,%d,%d,%d,%d,%d,%s,%d,%d,%d,%d,%d%n",
                claim.analysis().name(), claim.mechanism(), claim.claimed(), v.get(0), v.get(1), v.get(2), v.get(3),
                v.get(4), ratio, v.get(6), v.get(7), v.get(8), v.get(9), v.get(10)));
            table.append(String.format(Locale.ROOT, "| %s | %s | %s | %d | %d | %d | %d | %s | %d | %d | %d | %d "
                + "| %d |%n", claim.analysis().name(),
                claim.mechanism(), claim.claimed() ? "yes" : "no", v.get(1), v.get(2), v.get(3), v.get(4),
                ratio.replace(",", " | "), v.get(6), v.get(7), v.get(8), v.get(9), v.get(10)));
            if (claim.claimed()) {
                runs += v.get(2);
                exceeded += v.get(3);
            }
        }
        ResultFile.write(directory.resolve("soundness.csv"), csv);
        ResultFile.write(directory.resolve("soundness.md"), table);
        return new Totals(runs, exceeded);
    }

    /**
     * The comparisons of a campaign.
     *
     * @param claimed true for those that claim to be sound only
     * @param only    names of analyses; empty for all
     * @return the claims
     * @throws IllegalArgumentException if a name has none
     */
    public static List<Claim> claims(final boolean claimed, final List<String> only) {
        final List<Claim> claims = new ArrayList<>(Claim.all());
        claims.addAll(Claim.partitions());
        claims.addAll(Claim.turns());
        claims.removeIf(claim -> claimed && !claim.claimed());
        final List<String> names = claims.stream().map(claim -> claim.analysis().name()).distinct().toList();
        for (final String name : only) {
            if (!names.contains(name)) {
                throw new IllegalArgumentException("analysis '" + name + "' has no comparison here; known are "
                    + String.join(", ", names));
            }
        }
        claims.removeIf(claim -> !only.isEmpty() && !only.contains(claim.analysis().name()));
        return claims;
    }

    /**
     * Compares the published bounds with whole windows on the published task sets, by utilisation per core.
     *
     * @param sets     per point
     * @param variant  how sets are drawn
     * @param progress receives the number of sets done
     * @throws IOException          if a file cannot be written
     * @throws InterruptedException if the thread is interrupted; finished points are kept
     */
    public void gap(final int sets, final Variant variant, final Progress progress) throws IOException,
        InterruptedException {
        final List<Claim> claims = Claim.gap();
        final PointStore store = new PointStore(directory.resolve("points"));
        final StringBuilder csv = new StringBuilder("utilisation");
        final StringBuilder table = new StringBuilder("| utilisation per core ");
        for (final Claim claim : claims) {
            final String name = claim.analysis().name();
            csv.append(',').append(name).append("_accepted_pct,").append(name).append("_exceeded_pct,").append(name)
                .append("_missed_pct,").append(name).append("_max");
            table.append("| ").append(name).append(": accepted % | exceeded | missed | largest ");
        }
        csv.append('\n');
        table.append("|\n|---").append("|---|---|---|---".repeat(claims.size())).append("|\n");
        for (final double label : Axis.UTILISATION.labels()) {
            final SetWork work = new Gap(seed, runsPerSet, label, variant);
            final String key = String.format(Locale.ROOT, "gap-%s-seed%d-n%d-runs%d-%s", label, seed, sets,
                runsPerSet,
                variant.name().toLowerCase(Locale.ROOT));
            Map<String, Long> counts = store.load(key, work.columns());
            if (counts == null) {
                counts = counter.count(work, 0, sets, progress).byName(work.columns());
                store.save(key, counts);
            } else {
                progress.skip(sets);
            }
            final List<Long> values = new ArrayList<>(counts.values());
            csv.append(label);
            table.append("| ").append(label);
            for (int c = 0; c < claims.size(); c++) {
                final List<Long> v = values.subList(c * Campaign.WIDTH, (c + 1) * Campaign.WIDTH);
                csv.append(String.format(Locale.ROOT, ",%.2f,%.2f,%.2f,%.4f", percent(v.get(1), sets),
                    percent(v.get(3), v.get(1)), percent(v.get(4), v.get(1)), v.get(5) / 1e6));
                table.append(String.format(Locale.ROOT, " | %.1f | %.1f %% | %.1f %% | %.2f", percent(v.get(1),
                    sets),
                    percent(v.get(3), v.get(1)), percent(v.get(4), v.get(1)), v.get(5) / 1e6));
            }
            csv.append('\n');
            table.append(" |\n");
        }
        ResultFile.write(directory.resolve("gap.csv"), csv);
        ResultFile.write(directory.resolve("gap.md"), table);
    }

    private static double percent(final long part, final long whole) {
        return whole == 0 ? 0 : 100.0 * part / whole;
    }

    private static Map<String, Long> merge(final Map<String, Long> sum, final Map<String, Long> more) {
        if (sum == null) {
            return new LinkedHashMap<>(more);
        }
        more.forEach((column, value) -> sum.merge(column, value, column.startsWith(Tally.MAX)
            ? Math::max : Long::sum));
        return sum;
    }

    private void write(final List<Finding> findings) throws IOException {
        for (final Finding finding : findings) {
            final Path folder = Files.createDirectories(directory.resolve("exceeded"));
            ResultFile.write(folder.resolve(finding.name()), finding.text());
        }
    }

    /** Judges sets by a campaign of its own; each exceeded claim becomes a file for {@code simulate}. */
    private record CampaignJudge(Campaign campaign) implements SetJudge {
        @Override
        public void judge(final long k, final long[] counts) {
            campaign.judge(k, counts);
        }

        @Override
        public List<Finding> findings() {
            return campaign.excesses().stream().map(CampaignJudge::file).toList();
        }

        /** The set, with the options of the run as a comment. */
        private static Finding file(final Campaign.Excess excess) {
            final StringWriter text = new StringWriter();
            text.write("# " + excess.text() + "\n# " + excess.given() + "\n# " + excess.options()
                + (excess.arrivals().isEmpty() ? "" : "\n# first arrivals in ns: " + excess.arrivals()) + "\n");
            try {
                TaskSetFiles.write(excess.set(), TaskSetFiles.Format.YAML, text);
            } catch (final IOException e) {
                throw new UncheckedIOException(e);   // a string takes everything
            }
            return new Finding(excess.set().id() + "-" + excess.claim().analysis().name() + ".yaml", text.toString());
        }
    }

    /** The sets of {@link #soundness}. */
    private record Soundness(long seed, int runsPerSet, int climbs, boolean claimed, List<String> only)
        implements SetWork {
        @Override
        public List<String> columns() {
            return campaign().columns();
        }

        @Override
        public SetJudge open() {
            return new CampaignJudge(campaign());
        }

        private Campaign campaign() {
            return new Campaign(claims(claimed, only), k -> LimitedSets.mixed(seed, k), seed, runsPerSet, climbs);
        }
    }

    /** One point of {@link #gap}. */
    private record Gap(long seed, int runsPerSet, double label, Variant variant) implements SetWork {
        @Override
        public List<String> columns() {
            return campaign().columns();
        }

        @Override
        public SetJudge open() {
            return new CampaignJudge(campaign());
        }

        private Campaign campaign() {
            final TaskSetGenerator generator = new TaskSetGenerator(Axis.UTILISATION.experiment(label, variant));
            final int point = 100 + (int) Math.round(label * 10);
            return new Campaign(Claim.gap(), k -> generator.generate(seed, point, k), seed, runsPerSet);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.sweep.AcceptanceSweep;
import dev.gpuseg.analysis.sweep.Axis;
import dev.gpuseg.analysis.sweep.CampaignSweep;
import dev.gpuseg.analysis.sweep.FigureSweep;
import dev.gpuseg.analysis.sweep.Progress;
import dev.gpuseg.analysis.sweep.SetCounter;
import dev.gpuseg.analysis.sweep.TurnAcceptance;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import picocli.CommandLine.Option;

/**
 * What a sweep computes, as options of a command line. Who counts the sets is said by the command: {@code gpuseg sweep}
 * gives the threads of its process, {@code gpuseg-fleet} an engine with many machines.
 */
public final class SweepOptions {
    /** A comparison of bounds with simulated responses. */
    public static final String SOUNDNESS = "soundness";
    /** Instead of the names of analyses. */
    private static final String CLAIMED = "claimed";
    private static final List<String> CAMPAIGNS = List.of(SOUNDNESS, "gap", "accepted");

    @Option(names = "--sets", paramLabel = "N", defaultValue = "1000",
        description = "Task sets per point, 1..10000000; with soundness, task sets in all (default: ${DEFAULT-VALUE}).")
    private int sets;

    @Option(names = "--runs", paramLabel = "N", defaultValue = "5",
        description = "Simulated runs for each set and bound, 1..1000000 (default: ${DEFAULT-VALUE}).")
    private int runs;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1",
        description = "Seed of the random numbers (default: ${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--climb", paramLabel = "N", description = "With soundness: further runs of each set and bound, "
        + "which climb over arrivals and execution times towards long responses (default: 0).")
    private int climbs;

    @Option(names = "--analysis", paramLabel = "NAMES", split = ",",
        description = "With soundness: only these analyses, with commas; claimed are the bounds that claim to be sound "
            + "(default: all).")
    private List<String> analyses = List.of();

    @Option(names = "--out", paramLabel = "DIR", required = true, description = "Directory of the results.")
    private Path out;

    private final List<String> published = new ArrayList<>();

    /** Filled by the parser of the command line. */
    public SweepOptions() {
        // picocli sets the fields
    }

    /**
     * Checks the options.
     *
     * @param figures names of figures and campaigns
     * @throws IllegalArgumentException if one is wrong: a line with its name, its value and what it may be
     */
    public void check(final List<String> figures) {
        require("--sets", sets, 10_000_000);
        require("--runs", runs, 1_000_000);
        if (climbs < 0 || climbs > 1_000_000) {
            throw new IllegalArgumentException("--climb is " + climbs + "; it must be 0..1000000");
        }
        CampaignSweep.claims(claimedOnly(), named());
        for (final String figure : figures) {
            if (figure.equals("all")) {
                for (final char number : new char[] {'8', '9'}) {
                    for (final Axis axis : Axis.values()) {
                        published.add("" + number + axis.letter());
                    }
                }
            } else if (!CAMPAIGNS.contains(figure)) {
                try {
                    Axis.ofFigure(figure);
                } catch (final IllegalArgumentException e) {
                    throw new IllegalArgumentException(e.getMessage() + ", all, " + String.join(", ", CAMPAIGNS), e);
                }
                published.add(figure);
            }
        }
    }

    /**
     * Runs what {@link #check} has accepted.
     *
     * @param figures the same names
     * @param counters who counts the sets; asked once, when the directory is there
     * @param stdout  receives the results
     * @param stderr  receives what is wrong
     * @return exit status: 0 done, 1 failure, 3 a bound that claims to be sound was exceeded
     * @throws IOException          if a file cannot be written
     * @throws InterruptedException if the thread is interrupted; finished points are kept
     */
    public int run(final List<String> figures, final Supplier<SetCounter> counters, final PrintWriter stdout,
        final PrintWriter stderr) throws IOException, InterruptedException {
        try {
            Files.createDirectories(out);
        } catch (final IOException e) {
            stderr.println("sweep: " + out + ": cannot be created; choose another --out");
            return 1;
        }
        try (SetCounter counter = counters.get()) {
            return run(figures, counter, stdout);
        }
    }

    private int run(final List<String> figures, final SetCounter counter, final PrintWriter stdout)
        throws IOException, InterruptedException {
        final PrintStream shown = System.console() == null ? null : System.err;
        if (!published.isEmpty()) {
            final FigureSweep sweep = new FigureSweep(seed, sets, Variant.AS_CODED, out, counter);
            final Progress progress = new Progress(shown, "sets", sweep.totalSets(published));
            sweep.run(published, progress);
            progress.close();
        }
        final CampaignSweep campaign = new CampaignSweep(seed, runs, out, counter, climbs);
        if (figures.contains("gap")) {
            final Progress progress = new Progress(shown, "sets", (long) sets * Axis.UTILISATION.labels().length);
            campaign.gap(sets, Variant.AS_CODED, progress);
            progress.close();
        }
        if (figures.contains("accepted")) {
            final AcceptanceSweep sweep = new AcceptanceSweep(seed, sets, out, counter);
            final TurnAcceptance turns = new TurnAcceptance(seed, sets, out, counter);
            final Progress progress = new Progress(shown, "sets", sweep.totalSets() + turns.totalSets());
            sweep.run(progress);
            turns.run(progress);
            progress.close();
        }
        int exit = 0;
        if (figures.contains(SOUNDNESS)) {
            final Progress progress = new Progress(shown, "sets", sets);
            final CampaignSweep.Totals outcome = campaign.soundness(sets, claimedOnly(), named(), progress);
            progress.close();
            stdout.println("soundness: " + outcome.runs() + " simulated runs of sound bounds, "
                + outcome.exceeded() + " sets with an exceeded bound"
                + (outcome.exceeded() > 0 ? " (see " + out.resolve("exceeded") + ")" : ""));
            exit = outcome.exceeded() > 0 ? 3 : 0;
        }
        stdout.println("written to " + out);
        return exit;
    }

    private boolean claimedOnly() {
        return analyses.contains(CLAIMED);
    }

    private List<String> named() {
        return analyses.stream().filter(name -> !name.equals(CLAIMED)).toList();
    }

    private static void require(final String option, final int value, final int most) {
        if (value < 1 || value > most) {
            throw new IllegalArgumentException(option + " is " + value + "; it must be 1.." + most);
        }
    }
}

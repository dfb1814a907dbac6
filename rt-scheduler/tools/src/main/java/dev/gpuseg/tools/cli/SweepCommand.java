/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.sweep.AcceptanceSweep;
import dev.gpuseg.analysis.sweep.Axis;
import dev.gpuseg.analysis.sweep.CampaignSweep;
import dev.gpuseg.analysis.sweep.FigureSweep;
import dev.gpuseg.analysis.sweep.Progress;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code gpuseg sweep}: the published figures drawn again, and the comparison of bounds with simulated responses. */
@Command(name = "sweep", mixinStandardHelpOptions = true,
    description = {"Analyse or simulate many random task sets.",
        "8a..8f, 9a..9f: the published figures, as CSV and SVG with the published curves beside ours.",
        "soundness: every bound against simulated response times; gap: the published bounds on the real mechanism.",
        "accepted: how many of the same published sets each preemptive analysis accepts, at 18 points.",
        "A sweep can be interrupted and started again; finished points are kept in DIR/points.",
        "Exit status: 0 done, 1 failure, 2 wrong use, 3 a bound that claims to be sound was exceeded."})
final class SweepCommand implements Callable<Integer> {
    private static final List<String> CAMPAIGNS = List.of("soundness", "gap", "accepted");

    @Spec
    private CommandSpec spec;

    @Option(names = "--figure", paramLabel = "F", split = ",", required = true,
        description = "8a..8f, 9a..9f, all (these twelve), soundness, gap, accepted; several with "
            + "commas.")
    private List<String> figures;

    @Option(names = "--sets", paramLabel = "N", defaultValue = "1000",
        description = "Task sets per point, 1..10000000; with soundness, task sets in all (default: ${DEFAULT-VALUE}).")
    private int sets;

    @Option(names = "--runs", paramLabel = "N", defaultValue = "5",
        description = "Simulated runs for each set and bound, 1..1000000 (default: ${DEFAULT-VALUE}).")
    private int runs;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1",
        description = "Seed of the random numbers (default: ${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--variant", paramLabel = "V", defaultValue = "as-coded",
        description = "as-coded for the sets of the published program, as-published for those of its text (default: "
            + "${DEFAULT-VALUE}).")
    private String variant;

    @Option(names = "--threads", paramLabel = "N", description = "Number of threads, 1..1024 (default: all cores).")
    private Integer threads;

    @Option(names = "--climb", paramLabel = "N", description = "With soundness: further runs of each set and bound, "
        + "which climb over arrivals and execution times towards long responses (default: 0).")
    private int climbs;

    @Option(names = "--claimed", description = "With soundness: only the bounds that claim to be sound.")
    private boolean claimedOnly;

    @Option(names = "--quiet", description = "Show no progress.")
    private boolean quiet;

    @Option(names = "--out", paramLabel = "DIR", required = true, description = "Directory of the results.")
    private Path out;

    @Override
    public Integer call() throws IOException, InterruptedException {
        final List<String> published = new ArrayList<>();
        final Variant chosen;
        try {
            chosen = variant.equals("as-coded") ? Variant.AS_CODED : variant.equals("as-published")
                ? Variant.AS_PUBLISHED
                : null;
            if (chosen == null) {
                throw new IllegalArgumentException("--variant is '" + variant
                    + "'; it must be as-coded or as-published");
            }
            require("--sets", sets, 10_000_000);
            require("--runs", runs, 1_000_000);
            if (climbs < 0 || climbs > 1_000_000) {
                throw new IllegalArgumentException("--climb is " + climbs + "; it must be 0..1000000");
            }
            require("--threads", threads == null ? 1 : threads, 1024);
            for (final String figure : figures) {
                if (figure.equals("all")) {
                    for (final char number : new char[] {'8', '9'}) {
                        for (final Axis axis : Axis.values()) {
                            published.add("" + number + axis.letter());
                        }
                    }
                } else if (!CAMPAIGNS.contains(figure)) {
                    Axis.ofFigure(figure);
                    published.add(figure);
                }
            }
        } catch (final IllegalArgumentException e) {
            spec.commandLine().getErr().println("sweep: " + e.getMessage()
                + (e.getMessage().startsWith("figure") ? ", all, " + String.join(", ", CAMPAIGNS) : ""));
            return 2;
        }
        try {
            Files.createDirectories(out);
        } catch (final IOException e) {
            spec.commandLine().getErr().println("sweep: " + out + ": cannot be created; choose another --out");
            return 1;
        }
        final int workers = threads == null ? Runtime.getRuntime().availableProcessors() : threads;
        final PrintStream shown = quiet ? null : System.err;
        if (!published.isEmpty()) {
            final FigureSweep sweep = new FigureSweep(seed, sets, chosen, out, workers);
            final Progress progress = new Progress(shown, "sets", sweep.totalSets(published));
            sweep.run(published, progress);
            progress.close();
        }
        final CampaignSweep campaign = new CampaignSweep(seed, runs, out, workers, climbs);
        if (figures.contains("gap")) {
            final Progress progress = new Progress(shown, "sets", (long) sets * Axis.UTILISATION.labels().length);
            campaign.gap(sets, chosen, progress);
            progress.close();
        }
        if (figures.contains("accepted")) {
            final AcceptanceSweep sweep = new AcceptanceSweep(seed, sets, out);
            final Progress progress = new Progress(shown, "sets", sweep.totalSets());
            sweep.run(progress);
            progress.close();
        }
        int exit = 0;
        if (figures.contains("soundness")) {
            final Progress progress = new Progress(shown, "sets", sets);
            final CampaignSweep.Outcome outcome = campaign.soundness(sets, claimedOnly, progress);
            progress.close();
            spec.commandLine().getOut().println("soundness: " + outcome.runs() + " simulated runs of sound bounds, "
                + outcome.exceeded() + " sets with an exceeded bound"
                + (outcome.exceeded() > 0 ? " (see " + out.resolve("exceeded") + ")" : ""));
            exit = outcome.exceeded() > 0 ? 3 : 0;
        }
        spec.commandLine().getOut().println("written to " + out);
        return exit;
    }

    private static void require(final String option, final int value, final int most) {
        if (value < 1 || value > most) {
            throw new IllegalArgumentException(option + " is " + value + "; it must be 1.." + most);
        }
    }
}

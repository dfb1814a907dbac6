/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.cli;

import dev.gpuseg.fleet.engine.Engine;
import dev.gpuseg.fleet.recordings.FleetRecordings;
import dev.gpuseg.fleet.recordings.Outcome;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code gpuseg-fleet recordings}: from many recordings to tables and a report. */
@Command(name = "recordings", mixinStandardHelpOptions = true,
    description = {"Turn all *.gpuseg files below a directory into Parquet tables and one HTML report.",
        "Tables: recordings, jobs, segments, decisions, tasks. Report: response times, misses, chains and worst",
        "jobs by task, robot and version, and whether two versions differ.",
        "Robot and version come from directories robot=NAME and version=NAME, else from the labels of the recording",
        "(gpuseg trace record --label robot=NAME,version=NAME), else they are \"unknown\".",
        "Broken and truncated files are counted, named and left out.",
        "Exit status: 0 done, 1 failure, 2 wrong use."})
final class RecordingsCommand implements Callable<Integer> {
    private static final double NS_PER_S = 1e9;
    private static final int NAMED = 10;

    @Spec
    private CommandSpec spec;

    @Parameters(index = "0", paramLabel = "DIR", description = "Directory of the recordings.")
    private Path directory;

    @Option(names = "--out", paramLabel = "OUT", required = true,
        description = "New directory for the tables, report.html and report.json.")
    private Path out;

    @Option(names = "--compare", paramLabel = "BEFORE,AFTER", split = ",",
        description = "Two versions to compare (default: the last two, 2.9 before 2.10).")
    private List<String> compare;

    @Mixin
    private EngineOptions where;

    @Override
    public Integer call() throws IOException {
        if (compare != null && (compare.size() != 2 || compare.get(0).equals(compare.get(1)))) {
            spec.commandLine().getErr().println("recordings: --compare is " + String.join(",", compare)
                + "; it must be two different versions with a comma");
            return 2;
        }
        try {
            where.check();
        } catch (final IllegalArgumentException e) {
            spec.commandLine().getErr().println("recordings: " + e.getMessage());
            return 2;
        }
        final long startedNs = System.nanoTime();
        try (Engine engine = where.start("recordings")) {
            final FleetRecordings fleet = new FleetRecordings(engine, out);
            final long readyNs = System.nanoTime();
            final List<Outcome> outcomes = fleet.convert(directory);
            final long convertedNs = System.nanoTime();
            fleet.report(outcomes, compare == null ? null : compare.get(0), compare == null ? null : compare.get(1));
            say(outcomes, readyNs - startedNs, convertedNs - readyNs, System.nanoTime() - convertedNs);
        }
        return 0;
    }

    private void say(final List<Outcome> outcomes, final long startNs, final long convertNs, final long reportNs) {
        final PrintWriter to = spec.commandLine().getOut();
        final List<Outcome> bad = outcomes.stream().filter(o -> !o.isOk()).toList();
        final long bytes = outcomes.stream().mapToLong(Outcome::bytes).sum();
        to.printf(Locale.ROOT, "%d recordings, %.3f GB: %d jobs, %d segments, %d decisions%n",
            outcomes.size() - bad.size(), bytes / 1e9, outcomes.stream().mapToLong(Outcome::jobs).sum(),
            outcomes.stream().mapToLong(Outcome::segments).sum(), outcomes.stream().mapToLong(Outcome::decisions)
                .sum());
        to.println(bad.size() + " files left out" + (bad.isEmpty() ? "" : ":"));
        for (final Outcome one : bad.subList(0, Math.min(NAMED, bad.size()))) {
            to.println("  " + one.name() + ": " + one.status() + ": " + one.reason());
        }
        if (bad.size() > NAMED) {
            to.println("  and " + (bad.size() - NAMED) + " more; all are in report.html");
        }
        to.printf(Locale.ROOT, "engine started in %.1f s, tables in %.1f s (%.1f s for each GB), report in %.1f s%n",
            startNs / NS_PER_S, convertNs / NS_PER_S, bytes == 0 ? 0 : convertNs / (double) bytes,
            reportNs / NS_PER_S);
        to.println("written to " + out + " (open report.html)");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.process.DaemonConfig;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.tools.faults.Fault;
import dev.gpuseg.tools.faults.FaultRounds;
import dev.gpuseg.tools.faults.Round;
import dev.gpuseg.tools.faults.Tally;
import dev.gpuseg.tools.process.InterruptHook;
import dev.gpuseg.tools.process.MemoryDirectory;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The fault campaign. */
@Command(name = "faults", mixinStandardHelpOptions = true,
    description = "Inject faults on a simulated GPU: real processes are killed, stopped, and deprived of disk and "
        + "clock, in an order drawn from a seed. Exit status 0: no record was lost, no process hung, and no context "
        + "stayed disabled for longer than the watchdog's period after a fault; 1: otherwise. The watchdog reserves a "
        + "tenth of the period for its wake-up and its operations, so a slower machine fails here.")
final class FaultsCommand implements Callable<Integer> {
    private static final int MOST_ROUNDS = 100_000;
    private static final int MOST_ROUND = 1_000_000;
    private static final Pattern ROUNDS = Pattern.compile("([0-9]{1,7})(?:\\.\\.([0-9]{1,7}))?");
    private static final long NS_PER_MS = 1_000_000;

    @Spec
    private CommandSpec spec;

    @Option(names = "--rounds", paramLabel = "N|K..L",
        description = "Number of rounds, 1..100000, or which rounds of the seed, 1..1000000: 7..7 repeats one, "
            + "301..600 "
            + "continues a campaign. With as many rounds as there are faults, each fault occurs once (default: so "
            + "many).")
    private String rounds;

    @Option(names = "--seed", paramLabel = "S",
        description = "Seed; the same seed gives the same rounds (default: the time).")
    private Long seed;

    @Option(names = "--fault", paramLabel = "NAME", split = ",",
        description = "Only these faults: kill-client, kill-gpu-user, kill-daemon, kill-watchdog, stop-holder, "
            + "stop-client, stop-daemon, truncate-queue, full-disk, roll-under-load, upgrade-daemon, clock-step, "
            + "clock-foreign, reused-pid, fork, exec, infinite-kernel (default: all).")
    private List<String> faults = new ArrayList<>();

    @Option(names = "--hostile",
        description = "Attacks instead of accidents: a member of the group floods, forges, pretends and holds, beside "
            + "an honest client of another user, whose 99th percentile may be twice the undisturbed one at most (or "
            + "twice the one beside the control, which uses as much processor time and leaves the daemon alone). Needs "
            + "root to become these users. With --fault: flood-status, flood-commands, flood-connections, flood-opens, "
            + "flood-records, flood-processes, flood-contexts, hold-gpu, forge-memory, forge-files, fake-devices, "
            + "fifo-hog, kill-both, read-only, out-of-memory, full-disk.")
    private boolean hostile;

    @Option(names = "--watchdog-period", paramLabel = "DURATION", converter = DurationConverter.class,
        defaultValue = "100ms",
        description = "Period of the watchdog, 40ms..10s, or 0s: run the daemon without one, and the campaign must "
            + "fail "
            + "(default: ${DEFAULT-VALUE}).")
    private Duration period;

    @Option(names = "--out", paramLabel = "DIR",
        description = "Directory for journal and messages (default: a new temporary directory, deleted if the "
            + "campaign passes).")
    private Path out;

    @Option(names = "--json", description = "Print one JSON object and nothing else.")
    private boolean json;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (!period.isZero() && (period.toMillis() < 40 || period.toMillis() > 10_000)) {
            throw usage("--watchdog-period is " + period.toMillis() + "ms; use 40ms..10s, or 0s for no watchdog");
        }
        final long drawn = seed == null ? System.currentTimeMillis() : seed;
        final List<Round> plan = planned(chosen(), drawn);
        final boolean ownOut = out == null;
        final Path kept = ownOut ? Files.createTempDirectory("gpuseg-faults-") : Files.createDirectories(out);
        if (Files.exists(kept.resolve("journal"))) {
            throw usage("--out " + kept + " holds the journal of another run; name a new directory");
        }
        final Path base = MemoryDirectory.create("gpuseg-faults-");
        final boolean passed;
        final InterruptHook hook = InterruptHook.deleting(List.of(base));
        try (ScratchTree scratch = new ScratchTree(base)) {
            try {
                passed = campaign(plan, drawn, scratch.path(), kept);
            } finally {
                hook.remove();
            }
        }
        if (ownOut && passed) {
            RuntimeDirectory.deleteTree(kept);
        }
        return passed ? ExitCode.OK : ExitCode.FAILURE;
    }

    private List<Round> planned(final List<Fault> chosen, final long drawn) {
        final String asked = rounds == null ? Integer.toString(chosen.size()) : rounds;
        final Matcher range = ROUNDS.matcher(asked);
        if (!range.matches()) {
            throw usage("--rounds is " + asked + "; give a number such as 300, or two such as 301..600");
        }
        final int first = range.group(2) == null ? 1 : Integer.parseInt(range.group(1));
        final int last = Integer.parseInt(range.group(2) == null ? range.group(1) : range.group(2));
        if (first < 1 || last < first || last > MOST_ROUND || last - first >= MOST_ROUNDS) {
            throw usage("--rounds is " + asked + "; use 1.." + MOST_ROUNDS + " rounds with numbers of 1.."
                + MOST_ROUND);
        }
        return Round.plan(last, drawn, chosen).subList(first - 1, last);
    }

    private List<Fault> chosen() {
        final List<Fault> chosen = new ArrayList<>();
        try {
            for (final String name : faults) {
                chosen.add(Fault.labelled(name));
            }
        } catch (final IllegalArgumentException e) {
            throw usage(e.getMessage());
        }
        final List<Fault> known = hostile ? Fault.attacks() : Fault.accidents();
        for (final Fault fault : chosen) {
            if (!known.contains(fault)) {
                throw usage("--fault " + fault.label() + " is " + (hostile ? "an accident; leave out --hostile"
                    : "an attack; add --hostile"));
            }
        }
        return chosen.isEmpty() ? known : chosen;
    }

    private boolean campaign(final List<Round> plan, final long drawn, final Path base, final Path kept)
        throws IOException, InterruptedException, TimeoutException {
        final PrintWriter to = spec.commandLine().getOut();
        final Tally tally = new Tally(drawn);
        final List<String> atEnd;
        final ObjectNode result;
        final boolean fair;
        if (!json) {
            to.println("fault campaign on a SIMULATED GPU: " + plan.size() + " rounds, seed " + drawn
                + ", watchdog " + (period.isZero() ? "none" : period.toMillis() + " ms") + "; journal and messages: "
                + kept);
            to.flush();
        }
        try (FaultRounds played = new FaultRounds(base, kept, (int) period.toMillis(),
            hostile)) {
            for (final Round round : plan) {
                final Tally.RoundResult outcome = played.play(round);
                tally.add(outcome);
                report(outcome, to);
            }
            atEnd = played.finish();
            result = tally.asJson();
            played.describe(result);
            fair = !hostile || played.describeAttacks(result);
        }
        final boolean passed = fair && atEnd.isEmpty() && tally.holds(allowedMs() * NS_PER_MS);
        if (json) {
            to.println(result);
        } else {
            atEnd.forEach(problem -> to.println("at the end: " + problem));
            print(result, passed, to);
        }
        to.flush();
        return passed;
    }

    /** How long a freeze may last. */
    private long allowedMs() {
        return period.isZero() ? DaemonConfig.WATCHDOG_PERIOD_MS : period.toMillis();
    }

    private void report(final Tally.RoundResult outcome, final PrintWriter to) {
        final PrintWriter stream = json ? spec.commandLine().getErr() : to;
        if (!json) {
            stream.println(outcome.round() + ": " + (outcome.isInjected()
                ? String.format(Locale.ROOT, "%s, longest freeze %.1f ms", outcome.isSurvived() ? "survived"
                : "NOT SURVIVED", outcome.freezeNs() / 1e6) : "skipped: " + outcome.skipped()));
        } else if (!outcome.faults().isEmpty()) {
            stream.println(outcome.round());
        }
        outcome.faults().forEach(fault -> stream.println("    " + fault));
        stream.flush();
    }

    private void print(final ObjectNode result, final boolean passed, final PrintWriter to) {
        to.println();
        to.printf("%-18s %7s %9s %9s %14s %8s%s%n", "fault", "rounds", "injected", "survived", "freeze max ms",
            "mean ms",
            hostile ? "  honest p99 ms  of control" : "");
        for (final Map.Entry<String, JsonNode> entry : result.path("by_fault").properties()) {
            final JsonNode node = entry.getValue();
            to.printf(Locale.ROOT, "%-18s %7d %9d %9d %14.1f %8.0f%s  %s%n", entry.getKey(),
                node.path("rounds").asInt(),
                node.path("injected").asInt(), node.path("survived").asInt(),
                node.path("longest_freeze_ms").asDouble(), node.path("mean_ms").asDouble(),
                node.has("innocent_p99_ms")
                ? String.format(Locale.ROOT, "%15.2f %11.2f", node.path("innocent_p99_ms").asDouble(),
                node.path("control_p99_ms").asDouble()) : "",
                node.path("skipped").asText(""));
        }
        if (hostile) {
            to.printf(Locale.ROOT, "honest client: p99 %s under attack, %s undisturbed, %s beside the same processor "
                + "time without an attack; %d daemons exhausted%n", honest(result, "innocent_"),
                honest(result, "innocent_undisturbed_"), honest(result, "innocent_control_"),
                result.path("daemons_exhausted").asInt());
        }
        to.printf(Locale.ROOT, "%d daemons, at most %d rounds with one; it held at most %d descriptors and %d MiB more "
            + "than after its first round%n", result.path("daemons_started").asInt(),
            result.path("rounds_of_one_daemon_max").asInt(), result.path("descriptors_growth_max").asInt(),
            result.path("resident_growth_max_mib").asInt());
        to.printf(Locale.ROOT, "%d rounds, seed %d: %d injected, %d survived, %d lost, %d hung, longest freeze %.1f ms "
            + "(allowed %d), load average %.1f: %s%n", result.path("rounds").asInt(), result.path("seed").asLong(),
            result.path("injected").asInt(), result.path("survived").asInt(), result.path("lost").asLong(),
            result.path("hung").asInt(), result.path("longest_freeze_ms").asDouble(), allowedMs(),
            ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage(), passed ? "passed" : "FAILED");
    }

    private static String honest(final JsonNode result, final String prefix) {
        return String.format(Locale.ROOT, "%.2f ms (%d segments, %d misses)", result.path(prefix + "p99_ms").asDouble(),
            result.path(prefix + "segments").asLong(), result.path(prefix + "misses").asLong());
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.launch.PolicyHelp;
import dev.gpuseg.daemon.launch.PolicyJarOption;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.tools.demo.Replay;
import dev.gpuseg.tools.trace.RecordedTask;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.Trace;
import dev.gpuseg.tools.trace.TraceBuilder;
import dev.gpuseg.tools.trace.TraceStats;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** A recorded workload as load. */
@Command(name = "replay", mixinStandardHelpOptions = true,
    description = "Run the tasks of a recording again on a simulated GPU: one process per task, with the recorded "
        + "periods, offsets and median parts, under a real daemon. CPU and host parts sleep.",
    footer = "%nTo replay the decisions of the scheduler instead: gpuseg trace check --decisions.")
final class ReplayCommand implements Callable<Integer> {
    private static final double NS_PER_MS = 1e6;
    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "RECORDING", description = "Recording, or directory of a journal.")
    private Path file;

    @Option(names = "--duration", paramLabel = "DURATION", converter = DurationConverter.class, defaultValue = "10s",
        description = "How long jobs are released, 500ms..60min (default: ${DEFAULT-VALUE}).")
    private Duration duration;

    @Option(names = "--policy", paramLabel = "NAME",
        completionCandidates = PolicyHelp.class, description = "Policy of the daemon: "
            + "${COMPLETION-CANDIDATES} (default: fp, or the only one of --policy-jar).")
    private String policy;

    @Mixin
    private PolicyJarOption jar;

    @Option(names = "--out", paramLabel = "DIR",
        description = "Directory of the journal (default: a new temporary directory).")
    private Path out;

    @Option(names = "--json", description = "Print JSON; times are in nanoseconds.")
    private boolean json;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (duration.toMillis() < 500 || duration.toMinutes() > 60) {
            throw usage("--duration is " + duration.toMillis() + "ms; use 500ms..60min");
        }
        try (PolicySource policies = jar.open()) {
            policy = (policy == null ? policies.standard() : policies.catalog().create(policy)).name();
        } catch (final IllegalArgumentException e) {
            throw usage(e.getMessage());
        }
        final Trace recorded = TraceBuilder.read(Source.open(file));
        final List<RecordedTask> tasks = RecordedTask.of(recorded, true);
        final Path kept = out == null ? Files.createTempDirectory("gpuseg-replay-") : Files.createDirectories(out);
        if (Files.exists(kept.resolve("journal"))) {
            throw usage("--out " + kept + " holds the journal of another run; name a new directory");
        }
        new Replay(tasks, policy, jar.file(), duration).play(kept);
        final Trace replayed = TraceBuilder.read(Source.open(kept));
        report(recorded, replayed, kept);
        return ExitCode.OK;
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }

    private void report(final Trace recorded, final Trace replayed, final Path kept) throws IOException {
        final PrintWriter to = spec.commandLine().getOut();
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("simulated", true).put("policy", policy).put("journal", kept.resolve("journal").toString());
        if (!json) {
            to.printf("%-20s | %-35s | %-35s%n%-20s | %6s %6s %9s %9s  | %6s %6s %9s %9s%n", "",
                "recorded" + (recorded.isSimulated() ? " (simulated)" : ""), "replayed (SIMULATED GPU), " + policy,
                "task", "jobs", "misses", "p50 ms", "max ms", "jobs", "misses", "p50 ms", "max ms");
        }
        for (final TraceStats.Row row : TraceStats.of(replayed)) {
            if (!row.policy().equals(policy)) {
                continue;
            }
            TraceStats.Row before = null;
            for (final TraceStats.Row candidate : TraceStats.of(recorded)) {
                if (Trace.isEnforced(candidate.policy())
                    && candidate.task().replaceAll("[^A-Za-z0-9._-]", "_").equals(row.task())) {
                    before = candidate;
                }
            }
            if (before == null) {
                continue;
            }
            final ObjectNode node = root.withArray("tasks").addObject().put("name", row.task());
            put(node.putObject("recorded"), before);
            put(node.putObject("replayed"), row);
            if (!json) {
                to.printf(Locale.ROOT, "%-20s | %6d %6s %9.3f %9.3f  | %6d %6s %9.3f %9.3f%n", row.task(),
                    before.jobs(), misses(before), before.response().p50Ns() / NS_PER_MS,
                    before.response().maxNs() / NS_PER_MS, row.jobs(), misses(row),
                    row.response().p50Ns() / NS_PER_MS, row.response().maxNs() / NS_PER_MS);
            }
        }
        if (json) {
            final JsonNode result = root;
            to.println(new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(result));
        } else {
            to.println("journal: " + kept.resolve("journal"));
        }
        to.flush();
    }

    private static void put(final ObjectNode node, final TraceStats.Row row) {
        node.put("jobs", row.jobs()).put("misses", Math.max(0, row.misses())).put("p50_ns", row.response().p50Ns())
            .put("max_ns", row.response().maxNs());
    }

    private static String misses(final TraceStats.Row row) {
        return row.misses() < 0 ? "-" : Integer.toString(row.misses());
    }
}

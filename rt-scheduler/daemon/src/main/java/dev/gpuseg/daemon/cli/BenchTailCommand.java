/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The tail of begin to grant, and who made it. */
@Command(name = "tail", mixinStandardHelpOptions = true,
    description = "One spinning client at a fixed rate against a spinning daemon on a SIMULATED GPU: from the moment "
        + "at which a begin was due to its grant (so no omission is hidden), and a cause for every stall above 100 us. "
        + "Meant for a machine with a core each for client and dispatcher and some to spare; below four CPUs the "
        + "figures are indicative. --settings all compares sets of JVM options.")
final class BenchTailCommand implements Callable<Integer> {
    /** Sets of JVM options, each added to what the launcher gives. */
    private static final Map<String, List<String>> SETTINGS = new LinkedHashMap<>();

    static {
        SETTINGS.put("default", List.of());
        SETTINGS.put("no-perf-data", List.of("-XX:-UsePerfData"));
        SETTINGS.put("pre-touch", List.of("-XX:+AlwaysPreTouch"));
        SETTINGS.put("no-periodic-safepoints", List.of("-XX:+UnlockDiagnosticVMOptions",
            "-XX:GuaranteedSafepointInterval=0"));
        SETTINGS.put("huge-pages", List.of("-XX:+UseTransparentHugePages"));
        SETTINGS.put("c2-only", List.of("-XX:-TieredCompilation"));
        SETTINGS.put("together", List.of("-XX:-UsePerfData", "-XX:+AlwaysPreTouch",
            "-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=0", "-XX:+UseTransparentHugePages"));
    }

    private static final int LIMIT_S = 60;
    private static final int FEW_CPUS = 4;
    private static final int LISTED = 20;

    @Spec
    private CommandSpec spec;

    @Option(names = "--duration", paramLabel = "DURATION", converter = DurationConverter.class, defaultValue = "10s",
        description = "of each set, at least 1s (default: 10s)")
    private Duration duration;

    @Option(names = "--rate", paramLabel = "N", defaultValue = "10000",
        description = "begins per second, 1..100000 (default: 10000)")
    private int rate;

    @Option(names = "--cpu", paramLabel = "N", defaultValue = "1", description = "of the dispatcher (default: 1)")
    private int cpu;

    @Option(names = "--client-cpu", paramLabel = "N", defaultValue = "0", description = "of the client (default: 0)")
    private int clientCpu;

    @Option(names = "--priority", paramLabel = "N", defaultValue = "0",
        description = "SCHED_FIFO priority of the dispatcher, for a core that nobody else needs (default: 0, none)")
    private int priority;

    @Option(names = "--settings", paramLabel = "NAME", split = ",", defaultValue = "default",
        description = "default, no-perf-data, pre-touch, no-periodic-safepoints, huge-pages, c2-only, together, or all "
            + "(default: default)")
    private List<String> settings;

    @Option(names = "--json", description = "as JSON")
    private boolean json;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        final int cpus = Runtime.getRuntime().availableProcessors();
        if (duration.toSeconds() < 1 || rate < 1 || rate > 100_000 || cpu == clientCpu || cpu < 0 || clientCpu < 0
            || cpu >= cpus || clientCpu >= cpus) {
            throw usage("--duration is " + duration.toMillis() + "ms, --rate " + rate + ", --cpu " + cpu
                + ", --client-cpu " + clientCpu + "; use at least 1s, 1..100000 and two different CPUs of 0.."
                + (cpus - 1));
        }
        final List<String> chosen = settings.contains("all") ? List.copyOf(SETTINGS.keySet()) : settings;
        for (final String name : chosen) {
            if (!SETTINGS.containsKey(name)) {
                throw usage("--settings: \"" + name + "\" is unknown; use all or " + String.join(", ",
                    SETTINGS.keySet()));
            }
        }
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("simulated", true).put("cpus", cpus).put("indicative", cpus < FEW_CPUS).put("rate", rate);
        result.put("jdk", Runtime.version().toString());
        final PrintWriter out = spec.commandLine().getOut();
        for (final String name : chosen) {
            final ObjectNode one = measure(SETTINGS.get(name));
            result.withObject("/settings").set(name, one);
            if (!json) {
                print(name, one, cpus, out);
            }
        }
        if (json) {
            out.println(result);
        }
        out.flush();
        return ExitCode.OK;
    }

    private ObjectNode measure(final List<String> jvm) throws IOException, InterruptedException, TimeoutException {
        try (LoadRig rig = new LoadRig()) {
            final Path log = rig.errors().resolve("jvm.log");
            final List<String> options = new ArrayList<>(jvm);
            options.add("-Xlog:safepoint=info,gc=info,jit+compilation=debug:file=" + log + ":timenanos:filecount=0");
            final List<String> arguments = new ArrayList<>(List.of("--idle", "spin", "--cpu", Integer.toString(cpu),
                "--queue-size", "16MiB"));
            if (priority > 0) {
                arguments.addAll(List.of("--priority", Integer.toString(priority)));
            }
            rig.start(options, arguments);
            final Child client = rig.clients(List.of("--clients", "1", "--rate", Integer.toString(rate), "--duration",
                duration.toMillis() + "ms", "--warmup", "2s", "--priority", "99", "--wait", "spin", "--cpu",
                Integer.toString(clientCpu), "--stalls"));
            final long clientPid = childOf(client.pid());
            final JsonNode before = rig.status();
            final JsonNode seen;
            final JsonNode after;
            try (Evidence evidence = new Evidence(rig.daemon().pid(), clientPid)) {
                seen = LoadRig.result(client, LIMIT_S + (int) duration.toSeconds());
                after = rig.status();
                rig.stop();
                evidence.finish(log);
                return judged(seen, before, after, evidence);
            }
        }
    }

    private static long childOf(final long pid) throws InterruptedException {
        final long[] found = new long[1];
        FaultRig.await(() -> {
            found[0] = ProcessHandle.of(pid).flatMap(p -> p.children().findFirst()).map(ProcessHandle::pid).orElse(0L);
            return found[0] != 0;
        }, 1_000);
        if (found[0] == 0) {
            throw new IllegalStateException("gpuseg-bench-load has no client");
        }
        return found[0];
    }

    private static ObjectNode judged(final JsonNode seen, final JsonNode before, final JsonNode after,
        final Evidence evidence) {
        final ObjectNode one = JsonNodeFactory.instance.objectNode();
        one.set("due_to_grant_ns", seen.path("due_ns"));
        one.set("begin_to_grant_ns", seen.path("begin_ns"));
        one.put("allocated_bytes", after.path("daemon").path("hot_path_allocated_bytes").asLong()
            - before.path("daemon").path("hot_path_allocated_bytes").asLong());
        one.put("collections", evidence.collections()).put("safepoints", evidence.safepoints());
        one.put("stalls", seen.path("stalls_seen").asLong()).put("stalls_examined", seen.path("stalls").size());
        final Map<String, long[]> causes = new TreeMap<>();
        for (final JsonNode stall : seen.path("stalls")) {
            final long tookNs = stall.get(1).asLong();
            final long[] sum = causes.computeIfAbsent(evidence.cause(stall.get(0).asLong(), tookNs),
                key -> new long[2]);
            sum[0]++;
            sum[1] = Math.max(sum[1], tookNs);
        }
        final ObjectNode byCause = one.putObject("stalls_by_cause");
        causes.forEach((cause, sum) -> byCause.putObject(cause).put("count", sum[0]).put("longest_ns", sum[1]));
        return one;
    }

    private static void print(final String name, final ObjectNode one, final int cpus, final PrintWriter out) {
        out.println("settings " + name + ", SIMULATED GPU" + (cpus < FEW_CPUS ? ", indicative only: " + cpus + " CPUs"
            : ""));
        for (final String kind : List.of("due_to_grant_ns", "begin_to_grant_ns")) {
            final JsonNode v = one.path(kind);
            out.printf(Locale.ROOT, "  %-18s p50 %d, p99 %d, p99.9 %d, p99.99 %d, max %d (n %d)%n", kind,
                v.path("p50").asLong(), v.path("p99").asLong(), v.path("p99_9").asLong(), v.path("p99_99").asLong(),
                v.path("max").asLong(), v.path("n").asLong());
        }
        out.printf("  hot path allocated %d bytes, %d collections, %d safepoints; %d begins above 100 us, of the "
            + "first %d:%n",
            one.path("allocated_bytes").asLong(), one.path("collections").asInt(), one.path("safepoints").asInt(),
            one.path("stalls").asLong(), one.path("stalls_examined").asInt());
        int lines = 0;
        for (final Map.Entry<String, JsonNode> cause : one.path("stalls_by_cause").properties()) {
            if (lines++ < LISTED) {
                out.printf(Locale.ROOT, "    %-48s %6d, longest %.1f us%n", cause.getKey(),
                    cause.getValue().path("count").asLong(), cause.getValue().path("longest_ns").asLong() / 1e3);
            }
        }
        out.flush();
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

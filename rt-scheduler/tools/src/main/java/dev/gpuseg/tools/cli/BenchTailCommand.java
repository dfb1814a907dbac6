/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.tools.bench.Evidence;
import dev.gpuseg.tools.bench.LoadRig;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
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
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The tail of begin to grant, and who made it. */
@Command(name = "tail", mixinStandardHelpOptions = true,
    description = "One spinning client at a fixed rate against a spinning daemon on a SIMULATED GPU: from the moment "
        + "at which a begin was due to its grant (so no omission is hidden), and a cause for every stall above 100 us. "
        + "Meant for a machine with a core each for client and dispatcher and some to spare: the second highest CPU is "
        + "the client's, from five on the third highest one's work is only to see what the machine itself takes. Below "
        + "four CPUs the figures are indicative. --settings all compares sets of options of JVM and daemon.")
final class BenchTailCommand implements Callable<Integer> {
    /** Sets of options of JVM and daemon, each added to what the launcher gives. */
    private static final Map<String, Setting> SETTINGS = new LinkedHashMap<>();

    private record Setting(List<String> jvm, List<String> run, boolean fifo) {
        Setting(final String... jvm) {
            this(List.of(jvm), List.of(), true);
        }
    }

    static {
        SETTINGS.put("default", new Setting());
        SETTINGS.put("no-fifo", new Setting(List.of(), List.of(), false));
        SETTINGS.put("no-lock-memory", new Setting(List.of(), List.of("--no-lock-memory"), true));
        SETTINGS.put("no-perf-data", new Setting("-XX:-UsePerfData"));
        SETTINGS.put("pre-touch", new Setting("-XX:+AlwaysPreTouch"));
        SETTINGS.put("periodic-safepoints", new Setting("-XX:GuaranteedSafepointInterval=1000"));
        SETTINGS.put("z-collector", new Setting("-XX:-UseSerialGC", "-XX:+UseZGC"));
        SETTINGS.put("huge-pages", new Setting("-XX:+UseTransparentHugePages"));
        SETTINGS.put("c2-only", new Setting("-XX:-TieredCompilation"));
        SETTINGS.put("together", new Setting("-XX:-UsePerfData", "-XX:+AlwaysPreTouch",
            "-XX:+UseTransparentHugePages"));
    }

    private static final int LIMIT_S = 60;
    private static final int LISTED = 20;
    private static final int CPUS_WITH_WITNESS = 5;
    private static final long GOAL_P99_99_NS = 20_000;
    private static final long GOAL_MAX_NS = 200_000;

    @Spec
    private CommandSpec spec;

    @Mixin
    private BenchOptions form;

    @Option(names = "--rate", paramLabel = "N", defaultValue = "10000",
        description = "begins per second, 1..100000 (default: 10000)")
    private int rate;

    @Mixin
    private BenchCores cores;

    @Option(names = "--settings", paramLabel = "NAME", split = ",", defaultValue = "default",
        description = "default, no-fifo, no-lock-memory, no-perf-data, pre-touch, periodic-safepoints, z-collector, "
            + "huge-pages, c2-only, together, or all (default: default)")
    private List<String> settings;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        cores.check();
        if (form.durationMs() < 1_000 || rate < 1 || rate > 100_000 || cores.count() < 2) {
            throw usage("--duration is " + form.durationMs() + "ms, --rate " + rate + ", --cpus " + cores
                + "; use at least 1s, 1..100000 and two CPUs");
        }
        final List<String> chosen = settings.contains("all") ? List.copyOf(SETTINGS.keySet()) : settings;
        for (final String name : chosen) {
            if (!SETTINGS.containsKey(name)) {
                throw usage("--settings: \"" + name + "\" is unknown; use all or " + String.join(", ",
                    SETTINGS.keySet()));
            }
        }
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("simulated", true).put("cpus", cores.count()).put("indicative", !cores.enough()).put("rate", rate);
        result.put("dispatcher_cpu", cores.fromTop(0)).put("client_cpu", cores.fromTop(1));
        result.put("jdk", Runtime.version().toString()).put("kernel", System.getProperty("os.version"));
        final PrintWriter out = spec.commandLine().getOut();
        for (final String name : chosen) {
            final ObjectNode one = measure(SETTINGS.get(name));
            result.withObject("/settings").set(name, one);
            if (!form.json()) {
                print(name, one, out);
            }
        }
        if (form.json()) {
            out.println(result);
        }
        out.flush();
        return ExitCode.OK;
    }

    private ObjectNode measure(final Setting setting) throws IOException, InterruptedException, TimeoutException {
        try (LoadRig rig = new LoadRig()) {
            final Path log = rig.errors().resolve("jvm.log");
            final List<String> jvm = new ArrayList<>(setting.jvm);
            jvm.add("-Xlog:safepoint=info,gc=info,jit+compilation=debug:file=" + log + ":timenanos:filecount=0");
            final boolean witness = cores.count() >= CPUS_WITH_WITNESS;
            if (cores.enough()) {
                rig.confine(cores.below(witness ? 3 : 2));
            }
            final int priority = setting.fifo ? cores.priority() : 0;
            final List<String> run = new ArrayList<>(List.of("--idle", "spin", "--cpu",
                Integer.toString(cores.fromTop(0)), "--queue-size", "16MiB"));
            final List<String> client = new ArrayList<>(List.of("--clients", "1", "--rate", Integer.toString(rate),
                "--duration", form.durationMs() + "ms", "--warmup", "2s", "--priority", "99", "--wait", "spin",
                "--cpus", Integer.toString(cores.fromTop(1)), "--stalls"));
            if (priority > 0) {
                run.addAll(List.of("--priority", Integer.toString(priority)));
                client.addAll(List.of("--scheduling", "fifo:" + priority));
            }
            if (witness) {
                client.addAll(List.of("--witness", Integer.toString(cores.fromTop(2))));
            }
            run.addAll(setting.run);
            rig.start(jvm, run);
            final Child generator = rig.clients(client);
            final long clientPid = childOf(generator.pid());
            final JsonNode before = rig.status();
            try (Evidence evidence = new Evidence(rig.daemon().pid(), clientPid)) {
                final JsonNode seen = LoadRig.result(generator, LIMIT_S + (int) (form.durationMs() / 1000));
                final JsonNode after = rig.status();
                rig.stop();
                evidence.finish(log);
                final ObjectNode one = judged(seen, before, after, evidence);
                one.put("fifo", priority);
                evidence.stolen(cores.fromTop(0), cores.fromTop(1)).forEach(one::put);
                return one;
            }
        }
    }

    private static long childOf(final long pid) throws InterruptedException {
        final long[] found = new long[1];
        Polling.until(() -> {
            found[0] = ProcessHandle.of(pid).flatMap(p -> p.children()
                .min(java.util.Comparator.comparing(ProcessHandle::pid))).map(ProcessHandle::pid).orElse(0L);
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
        one.put("goal_p99_99", seen.path("begin_ns").path("p99_99").asLong() <= GOAL_P99_99_NS);
        one.put("goal_max", seen.path("begin_ns").path("max").asLong() <= GOAL_MAX_NS);
        final long allocated = hotPathBytes(after) - hotPathBytes(before);
        one.put("allocated_bytes", allocated).put("allocated_bytes_per_begin", (double) allocated
            / Math.max(1, seen.path("begins").asLong()));
        final long fromNs = seen.path("from_ns").asLong();
        one.put("collections", evidence.collections(fromNs)).put("safepoints", evidence.safepoints(fromNs));
        if (seen.has("witness")) {
            one.set("witness", seen.path("witness"));
        }
        one.put("stalls", seen.path("stalls_seen").asLong()).put("stalls_examined", seen.path("stalls").size());
        causes(seen.path("stalls"), evidence, one);
        return one;
    }

    private static long hotPathBytes(final JsonNode status) {
        return status.path("daemon").path("hot_path_allocated_bytes").asLong();
    }

    /** A begin that was due before the one before had its grant is late because of that one: the same cause. */
    private static void causes(final JsonNode stalls, final Evidence evidence, final ObjectNode one) {
        final Map<String, long[]> causes = new TreeMap<>();
        final List<ObjectNode> listed = new ArrayList<>();
        String cause = "";
        long endNs = Long.MIN_VALUE;
        for (final JsonNode stall : stalls) {
            final long dueNs = stall.get(0).asLong();
            final long tookNs = stall.get(1).asLong();
            final boolean first = dueNs >= endNs;
            if (first) {
                cause = evidence.cause(dueNs, tookNs, stall.get(2).asLong());
                listed.add(JsonNodeFactory.instance.objectNode().put("due_ns", dueNs).put("took_ns", tookNs)
                    .put("client_late_ns", stall.get(2).asLong()).put("cause", cause));
            }
            endNs = dueNs + tookNs;
            final long[] sum = causes.computeIfAbsent(cause, key -> new long[3]);
            sum[0]++;
            sum[1] += first ? 1 : 0;
            sum[2] = Math.max(sum[2], tookNs);
        }
        final ObjectNode byCause = one.putObject("stalls_by_cause");
        causes.forEach((name, sum) -> byCause.putObject(name).put("count", sum[0]).put("incidents", sum[1])
            .put("longest_ns", sum[2]));
        listed.sort(java.util.Comparator.comparing((ObjectNode stall) -> -stall.path("took_ns").asLong()));
        one.putArray("longest").addAll(listed.subList(0, Math.min(LISTED, listed.size())));
    }

    private void print(final String name, final ObjectNode one, final PrintWriter out) {
        out.println("settings " + name + ", SIMULATED GPU" + (cores.enough() ? "" : ", indicative only: "
            + cores.count() + " CPUs") + (one.path("fifo").asInt() > 0 ? ", SCHED_FIFO" : ""));
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
                out.printf(Locale.ROOT, "    %-58s %6d in %d incidents, longest %.1f us%n", cause.getKey(),
                    cause.getValue().path("count").asLong(), cause.getValue().path("incidents").asLong(),
                    cause.getValue().path("longest_ns").asLong() / 1e3);
            }
        }
        if (one.has("witness")) {
            out.printf(Locale.ROOT, "  a process that only reads the clock, on CPU %d: %d gaps above 100 us, longest "
                + "%.1f us%n", one.path("witness").path("cpu").asInt(), one.path("witness").path("gaps_above_100us")
                .asLong(), one.path("witness").path("gaps_above_10us_ns").path("max").asLong() / 1e3);
        }
        out.flush();
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.agent.NativePrograms;
import dev.gpuseg.daemon.ipc.RuntimeDirectory;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Latencies between application and daemon, with the machine's floor measured in the same run. */
@Command(name = "ipc", mixinStandardHelpOptions = true,
    description = "Measure begin, grant and end through a real daemon, and the floor of this machine.")
final class BenchIpcCommand implements Callable<Integer> {
    private static final int START_LIMIT_S = 30;
    private static final int RUN_LIMIT_S = 120;
    private static final int END_LIMIT_S = 10;
    private static final int SLEEPING_ROUNDS = 4_000;
    private static final int SLEEPING_WARM_UP = 400;
    private static final long SLEEPING_PACE_NS = 500_000;
    /** On two CPUs, both spinning, housekeeping may wait longer than a queue of 1 MiB lasts. */
    private static final String QUEUE_SIZE = "16MiB";
    private static final int PAIRS = 5;
    /** Rounds until the daemon's code is compiled; each pair has a daemon of its own. */
    private static final String WARM_UP = "150000";
    private static final double DIGITS = 1e4;
    private static final ObjectMapper JSON = new ObjectMapper();

    @Spec
    private CommandSpec spec;

    @Option(names = "--json", description = "as JSON")
    private boolean json;

    @Option(names = "--rounds", paramLabel = "N", defaultValue = "200000",
        description = "rounds of each measurement (default: ${DEFAULT-VALUE})")
    private int rounds;

    @Option(names = "--client-cpu", paramLabel = "N", defaultValue = "0",
        description = "CPU of the application (default: ${DEFAULT-VALUE})")
    private int clientCpu;

    @Option(names = "--daemon-cpu", paramLabel = "N", defaultValue = "1",
        description = "CPU of the daemon's dispatcher (default: ${DEFAULT-VALUE})")
    private int daemonCpu;

    private Path root;
    private Path errors;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        final int cpus = Runtime.getRuntime().availableProcessors();
        if (cpus < 2 || clientCpu == daemonCpu || clientCpu < 0 || clientCpu >= cpus || daemonCpu < 0
            || daemonCpu >= cpus) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--client-cpu is " + clientCpu
                + ", --daemon-cpu is " + daemonCpu + "; name two different CPUs of 0.." + (cpus - 1));
        }
        if (rounds < 1000 || rounds > 10_000_000) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--rounds is " + rounds
                + "; use 1000..10000000");
        }
        final Path memory = Path.of("/dev/shm");
        root = Files.isWritable(memory) ? Files.createTempDirectory(memory, "gpuseg-bench-")
            : Files.createTempDirectory("gpuseg-bench-");
        errors = root.resolve("errors");
        try {
            final ObjectNode result = measure();
            final PrintWriter out = spec.commandLine().getOut();
            if (json) {
                out.println(result);
            } else {
                print(result, out);
            }
            out.flush();
            return ExitCode.OK;
        } finally {
            RuntimeDirectory.deleteTree(root);
        }
    }

    /** Floor and begin, one right after the other: the speed of a shared machine changes within seconds. */
    private record Pair(JsonNode floor, JsonNode begin) {
        double ratio() {
            return begin.path("p50_ns").asDouble() / floor.path("p50_ns").asDouble();
        }
    }

    private ObjectNode measure() throws IOException, InterruptedException, TimeoutException {
        final List<Pair> pairs = new ArrayList<>();
        for (int i = 0; i < PAIRS; i++) {
            pairs.add(pair());
        }
        final JsonNode optimistic;
        final JsonNode end;
        final double allocated;
        try (Child gpu = startGpu(); Child daemon = startDaemon("spin")) {
            client(List.of("--warmup", WARM_UP, "--n", "1", "end"));
            final long[] before = allocation();
            optimistic = client(List.of("--n", Integer.toString(rounds), "optimistic")).get(0);
            end = client(List.of("--n", Integer.toString(rounds), "end")).get(0);   // a process registers once
            final long[] after = allocation();
            allocated = (after[0] - before[0]) / (double) Math.max(1, after[1] - before[1]);
            stop(daemon);
            stop(gpu);
        }
        final JsonNode sleeping;
        try (Child gpu = startGpu(); Child daemon = startDaemon("sleep")) {
            sleeping = client(List.of("--n", Integer.toString(SLEEPING_ROUNDS), "--warmup",
                Integer.toString(SLEEPING_WARM_UP), "--pace", Long.toString(SLEEPING_PACE_NS), "--wait", "sleep",
                "begin")).get(0);
            stop(daemon);
            stop(gpu);
        }
        final List<Pair> byRatio = new ArrayList<>(pairs);
        byRatio.sort(Comparator.comparingDouble(Pair::ratio));
        final Pair median = byRatio.get(PAIRS / 2);
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.set("floor_ns", latencies(median.floor()));
        result.set("begin_grant_ns", latencies(median.begin()));
        result.set("begin_grant_sleeping_ns", latencies(sleeping));
        result.set("begin_optimistic_ns", latencies(optimistic));
        result.set("end_ns", latencies(end));
        result.put("ratio_p50", rounded(median.ratio()));
        final ArrayNode all = result.putArray("pairs");
        for (final Pair pair : pairs) {
            all.addObject().put("floor_p50", pair.floor().path("p50_ns").asLong())
                .put("begin_p50", pair.begin().path("p50_ns").asLong())
                .put("begin_p99", pair.begin().path("p99_ns").asLong()).put("ratio_p50", rounded(pair.ratio()));
        }
        result.put("alloc_bytes_per_event", rounded(allocated));
        return result;
    }

    private Pair pair() throws IOException, InterruptedException, TimeoutException {
        final JsonNode floor = client(List.of("--peer-cpu", Integer.toString(daemonCpu), "--n",
            Integer.toString(rounds / PAIRS), "floor")).get(0);
        try (Child gpu = startGpu(); Child daemon = startDaemon("spin")) {
            final JsonNode begin = client(List.of("--warmup", WARM_UP, "--n", Integer.toString(rounds / PAIRS),
                "begin")).get(0);
            stop(daemon);
            stop(gpu);
            return new Pair(floor, begin);
        }
    }

    private static double rounded(final double value) {
        return Math.round(value * DIGITS) / DIGITS;
    }

    private static ObjectNode latencies(final JsonNode line) {
        final ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("p50", line.path("p50_ns").asLong());
        node.put("p99", line.path("p99_ns").asLong());
        node.put("p99_9", line.path("p999_ns").asLong());
        node.put("max", line.path("max_ns").asLong());
        return node;
    }

    private Child startGpu() throws InterruptedException {
        final Child gpu = Child.start("gpuseg-vgpu", List.of(NativePrograms.named("gpuseg-vgpu").toString(), "--dir",
            root.toString(), "--parent", Long.toString(ProcessHandle.current().pid())), errors);
        gpu.await("ready", START_LIMIT_S);
        return gpu;
    }

    private Child startDaemon(final String idle) throws InterruptedException {
        final Child daemon = Child.start("gpuseg run", Child.java(List.of("run", "--dir", root.toString(), "--policy",
            "fp", "--mechanism", "sim", "--idle", idle, "--cpu", Integer.toString(daemonCpu), "--queue-size",
            QUEUE_SIZE)), errors);
        daemon.await("ready", START_LIMIT_S);
        return daemon;
    }

    private static void stop(final Child child) throws InterruptedException, TimeoutException {
        child.terminate();
        child.awaitExit(END_LIMIT_S);
    }

    private List<JsonNode> client(final List<String> arguments) throws IOException, InterruptedException,
        TimeoutException {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-bench-ipc").toString(),
            "--dir", root.toString(), "--cpu", Integer.toString(clientCpu)));
        command.addAll(arguments);
        try (Child bench = Child.start("gpuseg-bench-ipc", command, errors)) {
            if (bench.awaitExit(RUN_LIMIT_S) != 0) {
                throw new IllegalStateException("gpuseg-bench-ipc failed: " + bench.said());
            }
            final List<JsonNode> lines = new ArrayList<>();
            for (final String line : bench.allLines()) {
                lines.add(JSON.readTree(line));
            }
            return lines;
        }
    }

    /** Bytes that the dispatcher's hot path has allocated, and records taken. */
    private long[] allocation() {
        final JsonNode status = AdminClient.ask(RuntimeDirectory.resolve(root.toString()),
            AdminClient.command("status"));
        long records = 0;
        for (final JsonNode counter : status.path("counters")) {
            if ("records".equals(counter.path("label").asText())) {
                records = counter.path("value").asLong();
            }
        }
        return new long[] {status.path("daemon").path("hot_path_allocated_bytes").asLong(), records};
    }

    private void print(final ObjectNode result, final PrintWriter out) {
        out.printf("%-28s %10s %10s %10s %10s%n", "ns", "p50", "p99", "p99.9", "max");
        for (final Map.Entry<String, JsonNode> field : result.properties()) {
            final JsonNode v = field.getValue();
            if (v.isObject()) {
                out.printf("%-28s %10d %10d %10d %10d%n", field.getKey(), v.path("p50").asLong(),
                    v.path("p99").asLong(), v.path("p99_9").asLong(), v.path("max").asLong());
            }
        }
        out.printf("%n%-28s %10s %10s %10s %10s%n", "begin after floor, ns", "floor p50", "begin p50", "begin p99",
            "ratio p50");
        int number = 0;
        for (final JsonNode pair : result.path("pairs")) {
            out.printf(Locale.ROOT, "%-28s %10d %10d %10d %10.2f%n", "pair " + ++number,
                pair.path("floor_p50").asLong(), pair.path("begin_p50").asLong(),
                pair.path("begin_p99").asLong(), pair.path("ratio_p50").asDouble());
        }
        out.printf(Locale.ROOT, "%nbegin to grant to return, p50, is %.2f times the floor (median of the pairs; "
            + "floor and begin above are of that pair); %.4f bytes allocated per event%n",
            result.path("ratio_p50").asDouble(),
            result.path("alloc_bytes_per_event").asDouble());
        out.println("CPUs: application " + clientCpu + ", dispatcher " + daemonCpu + " of "
            + Runtime.getRuntime().availableProcessors());
    }
}

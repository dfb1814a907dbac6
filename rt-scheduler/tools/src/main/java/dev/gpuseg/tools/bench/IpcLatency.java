/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.process.SimulatedMachine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeoutException;

/** Latencies between application and daemon, with the machine's floor measured in the same run. One thread. */
public final class IpcLatency implements AutoCloseable {
    private static final int RUN_LIMIT_S = 120;
    private static final int ROUNDS = 200_000;
    private static final int SLEEPING_ROUNDS = 4_000;
    private static final int SLEEPING_WARM_UP = 400;
    private static final long SLEEPING_PACE_NS = 500_000;
    /** On two CPUs, both spinning, housekeeping may wait longer than a queue of 1 MiB lasts. */
    private static final String QUEUE_SIZE = "16MiB";
    /** Rounds until the daemon's code is compiled; each pair has a daemon of its own. */
    private static final String WARM_UP = "150000";
    /** Of floor and begin; each has a daemon of its own. */
    private static final int PAIRS = 5;
    private static final double DIGITS = 1e4;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final int clientCpu;
    private final int daemonCpu;
    private final Path root;

    /**
     * Measures in a directory of its own.
     *
     * @param clientCpu CPU of the application
     * @param daemonCpu CPU of the dispatcher, another one
     * @throws IOException if the directory cannot be made
     */
    public IpcLatency(final int clientCpu, final int daemonCpu) throws IOException {
        this.clientCpu = clientCpu;
        this.daemonCpu = daemonCpu;
        root = MemoryDirectory.create("gpuseg-bench-");
    }

    /** Floor and begin, one right after the other: the speed of a shared machine changes within seconds. */
    private record Pair(JsonNode floor, JsonNode begin) {
        double ratio() {
            return begin.path("p50_ns").asDouble() / floor.path("p50_ns").asDouble();
        }
    }

    /**
     * Begin, grant and end through a daemon, and the floor: a bare exchange of a shared word between two C threads.
     *
     * @return the figures of the pair with the median ratio, and those of all pairs
     * @throws IOException          if a file cannot be read
     * @throws TimeoutException     if a process does not end
     */
    public ObjectNode measure() throws IOException, InterruptedException, TimeoutException {
        final List<Pair> measured = new ArrayList<>();
        for (int i = 0; i < PAIRS; i++) {
            measured.add(pair());
        }
        final JsonNode optimistic;
        final JsonNode end;
        final double allocated;
        try (SimulatedMachine machine = start("spin")) {
            client(List.of("--warmup", WARM_UP, "--n", "1", "end"));
            final long[] before = allocation(machine);
            optimistic = client(List.of("--n", Integer.toString(ROUNDS), "optimistic")).get(0);
            end = client(List.of("--n", Integer.toString(ROUNDS), "end")).get(0);   // a process registers once
            final long[] after = allocation(machine);
            allocated = (after[0] - before[0]) / (double) Math.max(1, after[1] - before[1]);
            stop(machine);
        }
        final JsonNode sleeping;
        try (SimulatedMachine machine = start("sleep")) {
            sleeping = client(List.of("--n", Integer.toString(SLEEPING_ROUNDS), "--warmup",
                Integer.toString(SLEEPING_WARM_UP), "--pace", Long.toString(SLEEPING_PACE_NS), "--wait", "sleep",
                "begin")).get(0);
            stop(machine);
        }
        final List<Pair> byRatio = new ArrayList<>(measured);
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
        for (final Pair pair : measured) {
            all.addObject().put("floor_p50", pair.floor().path("p50_ns").asLong())
                .put("begin_p50", pair.begin().path("p50_ns").asLong())
                .put("begin_p99", pair.begin().path("p99_ns").asLong()).put("ratio_p50", rounded(pair.ratio()));
        }
        result.put("alloc_bytes_per_event", rounded(allocated));
        return result;
    }

    private Pair pair() throws IOException, InterruptedException, TimeoutException {
        final JsonNode floor = client(List.of("--peer-cpu", Integer.toString(daemonCpu), "--n",
            Integer.toString(ROUNDS / PAIRS), "floor")).get(0);
        try (SimulatedMachine machine = start("spin")) {
            final JsonNode begin = client(List.of("--warmup", WARM_UP, "--n", Integer.toString(ROUNDS / PAIRS),
                "begin")).get(0);
            stop(machine);
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

    private SimulatedMachine start(final String idle) throws InterruptedException {
        final SimulatedMachine machine = new SimulatedMachine(root, root, false);
        try {
            machine.startGpu();
            final List<String> options = new ArrayList<>(List.of("--policy", "fp", "--idle", idle, "--cpu",
                Integer.toString(daemonCpu)));
            options.addAll(DaemonSettings.write(root.resolve("settings.yaml"), "queue-size: " + QUEUE_SIZE));
            machine.startDaemon(List.of(), options);
            return machine;
        } catch (final IllegalStateException | InterruptedException e) {
            machine.close();
            throw e;
        }
    }

    private static void stop(final SimulatedMachine machine) throws InterruptedException, TimeoutException {
        machine.stopDaemon();
        machine.stopGpu();
    }

    private List<JsonNode> client(final List<String> arguments) throws IOException, InterruptedException,
        TimeoutException {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-bench-ipc").toString(),
            "--dir", root.toString(), "--cpu", Integer.toString(clientCpu)));
        command.addAll(arguments);
        try (Child bench = Child.start("gpuseg-bench-ipc", command, root.resolve("client.err"))) {
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
    private static long[] allocation(final SimulatedMachine machine) {
        final JsonNode status = machine.status();
        return new long[] {status.path("daemon").path("hot_path_allocated_bytes").asLong(),
            AdminClient.counter(status, "records")};
    }

    @Override
    public void close() {
        RuntimeDirectory.deleteTree(root);
    }
}

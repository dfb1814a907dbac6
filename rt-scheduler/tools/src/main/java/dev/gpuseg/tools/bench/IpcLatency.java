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
import java.io.InputStream;
import java.net.URI;
import java.net.URLConnection;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Latencies between application and daemon, with the machine's floor measured in the same run. One thread. */
public final class IpcLatency implements AutoCloseable {
    private static final int RUN_LIMIT_S = 120;
    private static final int SLEEPING_ROUNDS = 4_000;
    private static final int SLEEPING_WARM_UP = 400;
    private static final long SLEEPING_PACE_NS = 500_000;
    /** On two CPUs, both spinning, housekeeping may wait longer than a queue of 1 MiB lasts. */
    private static final String QUEUE_SIZE = "16MiB";
    /** Rounds until the daemon's code is compiled; each pair has a daemon of its own. */
    private static final String WARM_UP = "150000";
    private static final double DIGITS = 1e4;
    private static final int METRICS_ROUNDS = 20_000;
    private static final int METRICS_WARM_UP = 2_000;
    private static final long METRICS_PACE_NS = 50_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final int clientCpu;
    private final int daemonCpu;
    private final int rounds;
    private final int pairs;
    private final Path root;

    /**
     * Measures in a directory of its own.
     *
     * @param clientCpu CPU of the application
     * @param daemonCpu CPU of the dispatcher, another one
     * @param rounds    of each measurement
     * @param pairs     of floor and begin, or of daemons with and without metrics
     * @throws IOException if the directory cannot be made
     */
    public IpcLatency(final int clientCpu, final int daemonCpu, final int rounds, final int pairs)
        throws IOException {
        this.clientCpu = clientCpu;
        this.daemonCpu = daemonCpu;
        this.rounds = rounds;
        this.pairs = pairs;
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
        for (int i = 0; i < pairs; i++) {
            measured.add(pair());
        }
        final JsonNode optimistic;
        final JsonNode end;
        final double allocated;
        try (SimulatedMachine machine = start("spin")) {
            client(List.of("--warmup", WARM_UP, "--n", "1", "end"));
            final long[] before = allocation(machine);
            optimistic = client(List.of("--n", Integer.toString(rounds), "optimistic")).get(0);
            end = client(List.of("--n", Integer.toString(rounds), "end")).get(0);   // a process registers once
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
        final Pair median = byRatio.get(pairs / 2);
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
            Integer.toString(rounds / pairs), "floor")).get(0);
        try (SimulatedMachine machine = start("spin")) {
            final JsonNode begin = client(List.of("--warmup", WARM_UP, "--n", Integer.toString(rounds / pairs),
                "begin")).get(0);
            stop(machine);
            return new Pair(floor, begin);
        }
    }

    // ---- what metrics cost ----------------------------------------------------------------------------------------

    /**
     * Begin and end with and without metrics that are scraped once a second, in alternating pairs.
     *
     * @return the figures of each pair, and the median ratios
     * @throws IOException          if a file cannot be read
     * @throws TimeoutException     if a process does not end
     */
    public ObjectNode measureMetrics() throws IOException, InterruptedException, TimeoutException {
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        final ArrayNode all = result.putArray("pairs");
        final Map<String, List<Double>> ratios = new TreeMap<>();
        long scrapes = 0;
        for (int i = 0; i < pairs; i++) {
            final boolean metricsFirst = i % 2 == 1;   // the second run may find a warmer machine
            final Map<Boolean, JsonNode> lines = new HashMap<>();
            for (final boolean with : new boolean[] {metricsFirst, !metricsFirst}) {
                final long[] taken = new long[1];
                lines.put(with, underMetrics(with, taken));
                scrapes += taken[0];
            }
            final ObjectNode pair = all.addObject();
            for (final String figure : List.of("begin_p50", "begin_p99", "end_p50", "end_p99")) {
                final double without = lines.get(false).path(figure).asDouble();
                final double with = lines.get(true).path(figure).asDouble();
                ratios.computeIfAbsent(figure, f -> new ArrayList<>()).add(with / without);
                pair.putObject(figure).put("without_ns", without).put("with_ns", with)
                    .put("ratio", rounded(with / without));
            }
        }
        ratios.forEach((figure, values) -> {
            values.sort(null);
            result.put(figure + "_ratio", rounded(values.get(pairs / 2)));
        });
        return result.put("scrapes", scrapes);
    }

    /** Begins that wait, and ends, at a pace that lasts for some scrapes. */
    private JsonNode underMetrics(final boolean with, final long[] scrapes) throws IOException, InterruptedException,
        TimeoutException {
        try (SimulatedMachine machine = with ? start("spin", "--metrics", "127.0.0.1:0") : start("spin")) {
            final String ready = machine.daemon().lastLine();
            final AtomicBoolean over = new AtomicBoolean();
            final Thread scraper = new Thread(() -> scrapes[0] = scrape(ready, over), "bench-scraper");
            if (with) {
                scraper.start();
            }
            final ObjectNode line = JsonNodeFactory.instance.objectNode();
            try {
                client(List.of("--warmup", WARM_UP, "--n", "1", "begin"));
                for (final String mode : List.of("begin", "end")) {
                    final JsonNode read = client(List.of("--n", Integer.toString(METRICS_ROUNDS), "--warmup",
                        Integer.toString(METRICS_WARM_UP), "--pace", Long.toString(METRICS_PACE_NS), mode)).get(0);
                    line.put(mode + "_p50", read.path("p50_ns").asLong()).put(mode + "_p99",
                        read.path("p99_ns").asLong());
                }
            } finally {
                over.set(true);
                scraper.join();
            }
            if (with && scrapes[0] == 0) {
                throw new IllegalStateException("metrics were not scraped; is another program using that address?");
            }
            stop(machine);
            return line;
        }
    }

    private static long scrape(final String ready, final AtomicBoolean over) {
        final Matcher at = Pattern.compile("metrics (127\\.0\\.0\\.1:[0-9]+)").matcher(ready);
        long scrapes = 0;
        while (at.find(0) && !over.get()) {
            try {
                final URLConnection connection = URI.create("http://" + at.group(1) + "/metrics").toURL()
                    .openConnection();
                try (InputStream in = connection.getInputStream()) {
                    scrapes += in.readAllBytes().length > 0 ? 1 : 0;
                }
                TimeUnit.SECONDS.sleep(1);
            } catch (final IOException e) {
                return scrapes;   // the caller sees that there were none
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
                return scrapes;
            }
        }
        return scrapes;
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

    private SimulatedMachine start(final String idle, final String... more) throws InterruptedException {
        final SimulatedMachine machine = new SimulatedMachine(root, root, false);
        try {
            machine.startGpu();
            final List<String> options = new ArrayList<>(List.of("--policy", "fp", "--idle", idle, "--cpu",
                Integer.toString(daemonCpu)));
            options.addAll(DaemonSettings.write(root.resolve("settings.yaml"), "queue-size: " + QUEUE_SIZE));
            options.addAll(Arrays.asList(more));
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

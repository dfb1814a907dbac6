/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.dispatch.NativePrograms;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.net.URI;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
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
    private static final int METRICS_ROUNDS = 20_000;
    private static final int METRICS_WARM_UP = 2_000;
    private static final long METRICS_PACE_NS = 50_000;
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

    @Option(names = "--metrics", description = "instead: begin and end with and without metrics that are scraped each "
        + "second, in alternating pairs; takes one to three minutes")
    private boolean metrics;

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
            final ObjectNode result = metrics ? measureMetrics() : measure();
            final PrintWriter out = spec.commandLine().getOut();
            if (json) {
                out.println(result);
            } else if (metrics) {
                printMetrics(result, out);
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

    // ---- what metrics cost ----------------------------------------------------------------------------------------

    private ObjectNode measureMetrics() throws IOException, InterruptedException, TimeoutException {
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        final ArrayNode all = result.putArray("pairs");
        final Map<String, List<Double>> ratios = new TreeMap<>();
        long scrapes = 0;
        for (int i = 0; i < PAIRS; i++) {
            final boolean metricsFirst = i % 2 == 1;   // whoever comes second may find a warmer machine
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
            result.put(figure + "_ratio", rounded(values.get(PAIRS / 2)));
        });
        return result.put("scrapes", scrapes);
    }

    /** Begins that wait, and ends, at a pace that lasts for some scrapes. */
    private JsonNode underMetrics(final boolean with, final long[] scrapes) throws IOException, InterruptedException,
        TimeoutException {
        try (Child gpu = startGpu(); Child daemon = with ? startDaemon("spin", "--metrics", "127.0.0.1:0")
            : startDaemon("spin")) {
            final AtomicBoolean over = new AtomicBoolean();
            final Thread scraper = new Thread(() -> scrapes[0] = scrape(daemon.lastLine(), over), "bench-scraper");
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
            stop(daemon);
            stop(gpu);
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

    private static void printMetrics(final ObjectNode result, final PrintWriter out) {
        out.printf("%-12s %12s %12s %8s%n", "ns", "without", "with metrics", "ratio");
        for (final JsonNode pair : result.path("pairs")) {
            for (final Map.Entry<String, JsonNode> figure : pair.properties()) {
                out.printf(Locale.ROOT, "%-12s %12.0f %12.0f %8.3f%n", figure.getKey(),
                    figure.getValue().path("without_ns").asDouble(), figure.getValue().path("with_ns").asDouble(),
                    figure.getValue().path("ratio").asDouble());
            }
        }
        out.printf(Locale.ROOT, "%nmedian of the pairs: begin p50 %.3f, p99 %.3f; end p50 %.3f, p99 %.3f; %d scrapes%n",
            result.path("begin_p50_ratio").asDouble(), result.path("begin_p99_ratio").asDouble(),
            result.path("end_p50_ratio").asDouble(), result.path("end_p99_ratio").asDouble(),
            result.path("scrapes").asLong());
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

    private Child startDaemon(final String idle, final String... more) throws InterruptedException {
        final List<String> arguments = new ArrayList<>(List.of("--dir", root.toString(), "--policy", "fp",
            "--mechanism", "sim", "--idle", idle, "--cpu", Integer.toString(daemonCpu), "--queue-size", QUEUE_SIZE));
        arguments.addAll(List.of(more));
        final Child daemon = Child.start("gpuseg run", JavaCommand.daemon(arguments), errors);
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
        return new long[] {status.path("daemon").path("hot_path_allocated_bytes").asLong(),
            AdminClient.counter(status, "records")};
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

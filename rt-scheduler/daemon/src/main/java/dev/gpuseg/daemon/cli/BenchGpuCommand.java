/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.ipc.RuntimeDirectory;
import dev.gpuseg.daemon.journal.EventKind;
import dev.gpuseg.daemon.journal.JournalReader;
import dev.gpuseg.daemon.mechanism.nvidia.NvidiaSurvey;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * Response of a real-time kernel against best-effort processes that never stop, for each way of protecting it, on this
 * machine's GPU. Every kernel's result is checked; the clocks are settled by five seconds of load first, and "alone" is
 * measured in that state.
 *
 * <p>Best-effort throughput kept = kernels finished while the strategy ran, over what the same processes do undisturbed
 * in the time outside segments.
 */
@Command(name = "gpu", mixinStandardHelpOptions = true,
    description = "Measure response times on this machine's NVIDIA GPU: alone, unprotected, and with each strategy.")
final class BenchGpuCommand implements Callable<Integer> {
    /** One way of protecting the real-time kernel. */
    enum Strategy {
        /** Nothing but the driver's time slicing. */
        NONE("default", "none", false),
        /** Long slice for the real-time context, no cost per segment. */
        SLICE("slice: RT 1 s", "none", false, "--slice-us", "1000000"),
        /** Long slice, and short ones for the others. */
        SLICES("slices: RT 1 s, others 500 us", "none", false, "--slice-us", "1000000", "--other-slice-us", "500"),
        /** The setting of GPreempt: starves the others where there are two or more. */
        GPREEMPT("GPreempt: RT 1 s, others 1 us", "none", false, "--slice-us", "1000000", "--other-slice-us", "1"),
        /** The bare driver calls, disable first. */
        BARE_BLOCKING("bare calls, blocking", "off-then-launch", false),
        /** The bare driver calls, launch first. */
        BARE_OPTIMISTIC("bare calls, optimistic", "launch-then-off", false),
        /** Through the daemon, begin waits. */
        BLOCKING("interrupt, blocking", "wait", true),
        /** Through the daemon, begin does not wait. */
        OPTIMISTIC("interrupt, optimistic", "segment", true),
        /** The same with a long slice. */
        OPTIMISTIC_SLICE("interrupt+slice, optimistic", "segment", true, "--slice-us", "1000000"),
        /** The begin is announced 2 ms ahead. */
        HINT("interrupt, hint 2 ms ahead", "segment", true, "--hint-ms", "2");

        private final String title;
        private final String mode;
        private final boolean daemon;
        private final List<String> options;

        Strategy(final String title, final String mode, final boolean daemon, final String... options) {
            this.title = title;
            this.mode = mode;
            this.daemon = daemon;
            this.options = List.of(options);
        }

        String title() {
            return title;
        }

        boolean namesOthers() {
            return mode.startsWith("off") || mode.startsWith("launch") || options.contains("--other-slice-us");
        }
    }

    private static final int START_LIMIT_S = 60;
    private static final long BASELINE_MS = 3_000;
    private static final double NS_PER_MS = 1e6;
    private static final double PERCENT = 100;
    private static final ObjectMapper JSON = new ObjectMapper();

    @Spec
    private CommandSpec spec;

    @Option(names = "--json", description = "as JSON")
    private boolean json;

    @Option(names = "--kernel", paramLabel = "MS", defaultValue = "5",
        description = "length of the real-time kernel, milliseconds (default: ${DEFAULT-VALUE})")
    private double kernelMs;

    @Option(names = "--other-kernel", paramLabel = "MS", defaultValue = "20",
        description = "length of the best-effort kernels, milliseconds (default: ${DEFAULT-VALUE})")
    private double otherMs;

    @Option(names = "--others", paramLabel = "N", split = ",", defaultValue = "1,3,7",
        description = "numbers of best-effort processes (default: ${DEFAULT-VALUE})")
    private List<Integer> others;

    @Option(names = "--strategies", paramLabel = "NAME", split = ",",
        description = "of ${COMPLETION-CANDIDATES} (default: all but GPREEMPT, which starves the others)")
    private List<Strategy> strategies = List.of(Strategy.NONE, Strategy.SLICE, Strategy.SLICES, Strategy.BARE_BLOCKING,
        Strategy.BARE_OPTIMISTIC, Strategy.BLOCKING, Strategy.OPTIMISTIC, Strategy.OPTIMISTIC_SLICE, Strategy.HINT);

    @Option(names = "--jobs", paramLabel = "N", defaultValue = "200",
        description = "real-time kernels per cell (default: ${DEFAULT-VALUE})")
    private int jobs;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1", description = "of the pauses (default: 1)")
    private int seed;

    @Option(names = "--out", paramLabel = "DIR", description = "record the run here: manifest, results, all samples")
    private Path out;

    @Option(names = "--idle", paramLabel = "spin|hybrid|sleep", defaultValue = "hybrid",
        description = "what the daemon's dispatcher does when nothing waits (default: ${DEFAULT-VALUE})")
    private String idle;

    @Option(names = "--user", paramLabel = "UID", defaultValue = "-1",
        description = "run the best-effort processes as this user (needs root and setpriv)")
    private int user;

    private Path root;
    private Path errors;
    private String perIteration;
    private CudaBench cuda;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (jobs < 20 || jobs > 100_000 || kernelMs <= 0 || otherMs <= 0
            || others.stream().anyMatch(n -> n < 1 || n > 14)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--jobs is " + jobs + ", --others " + others
                + "; use 20..100000 jobs, 1..14 processes and lengths above 0");
        }
        final NvidiaSurvey.Finding verdict = NvidiaSurvey.verdict();
        if (!verdict.good()) {
            throw new IllegalStateException("bench gpu: " + verdict.text());
        }
        final Path memory = Path.of("/dev/shm");
        root = Files.isWritable(memory) ? Files.createTempDirectory(memory, "gpuseg-bench-")
            : Files.createTempDirectory("gpuseg-bench-");
        errors = root.resolve("errors");
        cuda = new CudaBench(root, errors);
        if (out != null) {
            Files.createDirectories(out);
        }
        try {
            final ObjectNode result = measure();
            if (out != null) {
                Files.writeString(out.resolve("results.json"), result.toPrettyString() + "\n");
            }
            if (json) {
                spec.commandLine().getOut().println(result);
            } else {
                print(result);
            }
            return correct(result) ? ExitCode.OK : ExitCode.FAILURE;
        } finally {
            RuntimeDirectory.deleteTree(root);
        }
    }

    private static boolean correct(final ObjectNode result) {
        for (final JsonNode cell : result.path("cells")) {
            if (cell.path("wrong").asLong() != 0 || cell.path("others_wrong").asLong() != 0) {
                return false;
            }
        }
        return true;
    }

    private ObjectNode measure() throws IOException, InterruptedException, TimeoutException {
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("begun", Instant.now().toString());
        result.put("kernel_ms", kernelMs).put("other_kernel_ms", otherMs).put("jobs", jobs).put("seed", seed);
        result.put("driver", NvidiaSurvey.verdict().text());
        result.put("gpu_before", smi());
        perIteration = cuda.nsPerIteration();
        result.put("ns_per_iteration", Double.parseDouble(perIteration));
        final ObjectNode alone = realTime(Strategy.NONE, List.of(), "alone");
        result.set("alone", alone);
        result.put("gpu_loaded", smi());
        final ArrayNode cells = result.putArray("cells");
        for (final int count : others) {
            measureAgainst(count, alone.path("response_ns"), cells);
        }
        result.put("gpu_after", smi());
        result.put("ended", Instant.now().toString());
        return result;
    }

    private void measureAgainst(final int count, final JsonNode alone, final ArrayNode cells)
        throws IOException, InterruptedException, TimeoutException {
        final List<CudaBench.Other> running = new ArrayList<>();
        try {
            for (int i = 0; i < count; i++) {
                running.add(cuda.startOther(count + "-" + i, otherMs, perIteration, user));
            }
            for (final CudaBench.Other o : running) {
                o.awaitReady();
            }
            final double undisturbedPerNs = undisturbed(running);
            for (final boolean daemon : new boolean[] {false, true}) {
                final List<Strategy> now = strategies.stream().filter(s -> s.daemon == daemon)
                    .collect(Collectors.toList());
                if (now.isEmpty()) {
                    continue;
                }
                final int first = cells.size();
                try (Child gpuseg = daemon ? startDaemon() : null) {
                    for (final Strategy s : now) {
                        final ObjectNode cell = realTime(s, running, count + "-" + s.name().toLowerCase(Locale.ROOT));
                        final double outsideNs = cell.path("loop_ns").asDouble() - cell.path("windows_ns").asDouble();
                        cell.put("strategy", s.title).put("others", count);
                        cell.put("p99_to_alone", ratio(cell, alone, "p99"));
                        cell.put("p50_to_alone", ratio(cell, alone, "p50"));
                        cell.put("others_kept",
                            rounded(cell.path("other_kernels").asLong() / (undisturbedPerNs * outsideNs)));
                        cell.put("others_wrong", running.stream().mapToLong(CudaBench.Other::wrong).sum());
                        cells.add(cell);
                        spec.commandLine().getErr().println(text(count, s.title, cell,
                            cell.path("p99_to_alone").asDouble(), cell.path("others_kept").asDouble()));
                    }
                    if (gpuseg != null) {
                        gpuseg.terminate();
                        gpuseg.awaitExit(START_LIMIT_S);
                        final ObjectNode costs = enforcementCosts();
                        for (int i = first; i < cells.size(); i++) {
                            ((ObjectNode) cells.get(i)).set("enforcement_ns", costs);
                        }
                    }
                }
            }
        } finally {
            CudaBench.stop(running);
        }
    }

    private static double ratio(final JsonNode cell, final JsonNode alone, final String figure) {
        return rounded(cell.path("response_ns").path(figure).asDouble() / alone.path(figure).asDouble());
    }

    private static double rounded(final double value) {
        return Math.round(value * 1e4) / 1e4;
    }

    private double undisturbed(final List<CudaBench.Other> running) throws InterruptedException {
        final long before = running.stream().mapToLong(CudaBench.Other::kernels).sum();
        final long fromNs = System.nanoTime();
        Thread.sleep(BASELINE_MS);
        final long kernels = running.stream().mapToLong(CudaBench.Other::kernels).sum() - before;
        return kernels / (double) (System.nanoTime() - fromNs);
    }

    /** What taking work off the GPU took the daemon, from its own journal: one figure per driver call. */
    private ObjectNode enforcementCosts() {
        final java.util.TreeMap<Long, Long> calls = new java.util.TreeMap<>();
        JournalReader.forEach(root.resolve("run").resolve("journal"), event -> {
            if (event.kind() == EventKind.DISABLE) {
                calls.put(event.arg0(), event.arg1());   // contexts of one call share its times
            }
        });
        final long[] sorted = calls.values().stream().mapToLong(Long::longValue).sorted().toArray();
        final ObjectNode costs = JsonNodeFactory.instance.objectNode();
        costs.put("calls", sorted.length);
        if (sorted.length > 0) {
            costs.put("p50", sorted[sorted.length / 2]).put("p99", sorted[(int) (sorted.length * 0.99)])
                .put("max", sorted[sorted.length - 1]);
        }
        return costs;
    }

    private Child startDaemon() throws InterruptedException {
        final Child daemon = Child.start("gpuseg run", Child.java(List.of("run", "--dir",
            root.resolve("run").toString(), "--policy", "fp", "--mechanism", "nvidia", "--idle", idle)), errors);
        daemon.await("ready", START_LIMIT_S);
        Thread.sleep(500);   // it looks at the processes that run already
        return daemon;
    }

    private ObjectNode realTime(final Strategy strategy, final List<CudaBench.Other> running, final String name)
        throws IOException, InterruptedException, TimeoutException {
        final List<String> command = new ArrayList<>(List.of(CudaBench.program("rt"), "--mode", strategy.mode,
            "--kernel-ms", Double.toString(kernelMs), "--per", perIteration, "--jobs", Integer.toString(jobs), "--seed",
            Integer.toString(seed)));
        if (!running.isEmpty()) {
            command.addAll(List.of("--pages", running.stream().map(o -> o.file().toString())
                .collect(Collectors.joining(","))));
            if (strategy.namesOthers()) {
                command.addAll(List.of("--pids", running.stream().map(o -> Integer.toString(o.pid()))
                    .collect(Collectors.joining(","))));
            }
            command.addAll(strategy.options);
        }
        if (out != null) {
            command.addAll(List.of("--samples", out.resolve("samples-" + name + ".csv").toString()));
        }
        final List<String> withDir = new ArrayList<>(List.of("env", "GPUSEG_DIR=" + root.resolve("run")));
        withDir.addAll(command);
        return (ObjectNode) JSON.readTree(cuda.run(name, withDir));
    }

    private String smi() throws InterruptedException {
        try {
            return cuda.run("nvidia-smi", List.of("nvidia-smi",
                "--query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu", "--format=csv,noheader"));
        } catch (final IllegalStateException | TimeoutException e) {
            return "unknown: " + e.getMessage();
        }
    }

    private void print(final ObjectNode result) {
        final PrintWriter w = spec.commandLine().getOut();
        w.printf(Locale.ROOT, "GPU %s%n%s%n", result.path("gpu_loaded").asText(), result.path("driver").asText());
        w.printf(Locale.ROOT,
            "%.1f ms kernel, %d jobs per line, best-effort kernels of %.1f ms; all in milliseconds%n%n", kernelMs, jobs,
            otherMs);
        w.printf(Locale.ROOT, "%-3s %-32s %8s %8s %8s %9s %9s %9s%n", "BE", "strategy", "p50", "p99", "max",
            "p99/alone", "begin p50", "BE kept");
        line(w, 0, "alone", result.path("alone"), 1, Double.NaN);
        for (final JsonNode cell : result.path("cells")) {
            line(w, cell.path("others").asInt(), cell.path("strategy").asText(), cell,
                cell.path("p99_to_alone").asDouble(), cell.path("others_kept").asDouble());
        }
        final JsonNode costs = result.path("cells").path(result.path("cells").size() - 1).path("enforcement_ns");
        if (costs.has("p50")) {
            w.printf(Locale.ROOT,
                "%nenforcement by the daemon, last number of processes: p50 %.3f p99 %.3f ms a call%n",
                costs.path("p50").asLong() / NS_PER_MS, costs.path("p99").asLong() / NS_PER_MS);
        }
        w.flush();
    }

    private static void line(final PrintWriter w, final int count, final String name, final JsonNode cell,
        final double ratio, final double kept) {
        w.println(text(count, name, cell, ratio, kept));
    }

    private static String text(final int count, final String name, final JsonNode cell, final double ratio,
        final double kept) {
        final JsonNode r = cell.path("response_ns");
        return String.format(Locale.ROOT, "%-3d %-32s %8.3f %8.3f %8.3f %9.3f %9.4f %8s%%", count, name,
            r.path("p50").asLong() / NS_PER_MS, r.path("p99").asLong() / NS_PER_MS, r.path("max").asLong() / NS_PER_MS,
            ratio, cell.path("begin_ns").path("p50").asLong() / NS_PER_MS,
            Double.isNaN(kept) ? "-" : String.format(Locale.ROOT, "%.1f", kept * PERCENT));
    }
}

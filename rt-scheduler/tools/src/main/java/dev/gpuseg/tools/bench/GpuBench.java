/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.MemoryDirectory;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/** The GPU, the CUDA programs and the daemon, as the scenarios of {@code gpuseg bench gpu} use them. One thread. */
public final class GpuBench implements AutoCloseable {
    private static final int START_LIMIT_S = 60;
    private static final long BASELINE_MS = 3_000;
    private static final double DIGITS = 1e4;
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * What is measured.
     *
     * @param jobs       real-time jobs per cell
     * @param seed       of the pauses
     * @param pauseMs    shortest pause between jobs
     * @param strategies in the order of the table
     * @param idle       of the daemon's dispatcher
     * @param python     interpreter of the PyTorch scenarios
     * @param settleMs   after the start of a daemon
     * @param samples    directory for samples, or null: they are not kept
     */
    public record Plan(int jobs, int seed, double pauseMs, List<GpuStrategy> strategies, String idle,
        String python, int settleMs, Path samples) {
    }

    /** What is done while best-effort processes run. */
    interface Body {
        void run(List<CudaBench.Other> running) throws IOException, InterruptedException, TimeoutException;
    }

    /** What gives a cell. */
    interface Measurement {
        ObjectNode get() throws IOException, InterruptedException, TimeoutException;
    }

    /** A running daemon and its directory. */
    record Daemon(Child child, Path directory) implements AutoCloseable {
        /** Clean stop: the journal is whole afterwards. */
        Path journalAfterStop() throws InterruptedException, TimeoutException {
            child.terminate();
            child.awaitExit(START_LIMIT_S);
            return directory.resolve("journal");
        }

        @Override
        public void close() {
            child.close();
        }
    }

    private final Plan plan;
    private final PrintWriter progress;
    private final Runnable afterCell;
    private final Path root;
    private final CudaBench cuda;
    private final String perIteration;
    private final String smiBefore;
    private final Map<String, ObjectNode> alone = new HashMap<>();
    private int daemons;
    private int groups;

    /** Settles the clocks by five seconds of load; afterCell is called whenever there is a result more. */
    public GpuBench(final Plan plan, final PrintWriter progress, final Runnable afterCell)
        throws IOException, InterruptedException, TimeoutException {
        this.plan = plan;
        this.progress = progress;
        this.afterCell = afterCell;
        root = MemoryDirectory.create("gpuseg-bench-");
        cuda = new CudaBench(root);
        try {
            smiBefore = smi(cuda);
            perIteration = cuda.nsPerIteration();
        } catch (final IllegalStateException | InterruptedException | TimeoutException e) {
            close();
            throw e;
        }
    }

    Plan plan() {
        return plan;
    }

    public CudaBench cuda() {
        return cuda;
    }

    /** For files of this run; gone after it. */
    Path directory() {
        return root;
    }

    /** The GPU before the load that settles its clocks. */
    public String smiBefore() {
        return smiBefore;
    }

    public String perIteration() {
        return perIteration;
    }

    /** The kernel without anybody else; measured once for each set of options. */
    ObjectNode alone(final String name, final double kernelMs, final List<String> options)
        throws IOException, InterruptedException, TimeoutException {
        final String key = kernelMs + " " + options;
        ObjectNode cell = alone.get(key);
        if (cell == null) {
            final List<String> command = realTimeCommand("none", kernelMs, plan.jobs());
            command.addAll(options);
            cell = measured(name, command, null);
            alone.put(key, cell);
            say(name, cell);
        }
        return cell.deepCopy();
    }

    /** Runs best-effort processes meanwhile; their number and their wrong results go into the scenario's "checked". */
    void against(final int count, final double kernelMs, final ObjectNode scenario, final Body body)
        throws IOException, InterruptedException, TimeoutException {
        against(count, kernelMs, scenario, List.of(), body);
    }

    /** The same with a command before that of each of them. */
    void against(final int count, final double kernelMs, final ObjectNode scenario, final List<String> environment,
        final Body body) throws IOException, InterruptedException, TimeoutException {
        final List<CudaBench.Other> running = new ArrayList<>();
        final String group = "group-" + groups++;
        try {
            for (int i = 0; i < count; i++) {
                running.add(cuda.startOther(group + "-" + i, kernelMs, perIteration, -1, environment));
            }
            watch(running, scenario, body);
        } finally {
            CudaBench.close(running);
        }
    }

    /** One more best-effort process, on the GPU of this index. The caller stops it. */
    CudaBench.Other startOther(final String name, final double kernelMs, final int gpu) throws IOException {
        return cuda.startOther(name, kernelMs, perIteration, gpu);
    }

    /** The same with processes that were started already. They are stopped at the end. */
    void watch(final List<CudaBench.Other> running, final ObjectNode scenario, final Body body)
        throws IOException, InterruptedException, TimeoutException {
        try {
            for (final CudaBench.Other o : running) {
                o.awaitReady();
            }
            if (!scenario.has("gpu_loaded")) {
                scenario.put("gpu_loaded", smi(cuda));
            }
            body.run(running);
        } finally {
            CudaBench.stop(running);
        }
        final ArrayNode checked = scenario.withArray("checked");
        checked.addObject().put("others", running.size())
            .put("kernels", running.stream().mapToLong(CudaBench.Other::kernels).sum())
            .put("wrong", running.stream().mapToLong(CudaBench.Other::wrong).sum());
    }

    /** Kernels per nanosecond of undisturbed processes. */
    double undisturbedPerNs(final List<CudaBench.Other> running) throws InterruptedException {
        final long before = running.stream().mapToLong(CudaBench.Other::kernels).sum();
        final long fromNs = System.nanoTime();
        Thread.sleep(BASELINE_MS);
        final long kernels = running.stream().mapToLong(CudaBench.Other::kernels).sum() - before;
        return kernels / (double) (System.nanoTime() - fromNs);
    }

    Daemon startDaemon(final List<String> options) throws InterruptedException {
        final Path directory = root.resolve("run-" + daemons++);
        final List<String> arguments = new ArrayList<>(List.of("--dir", directory.toString(), "--policy", "fp",
            "--idle", plan.idle()));
        arguments.addAll(options);
        if (!options.contains("--mechanism")) {
            arguments.addAll(List.of("--mechanism", "nvidia"));
        }
        final Child daemon = Child.start("gpuseg run", JavaCommand.daemon(arguments),
            directory.resolveSibling(directory.getFileName() + "-errors"));
        try {
            daemon.await("ready", START_LIMIT_S);
            Thread.sleep(plan.settleMs());   // it looks at the processes that run already
        } catch (final IllegalStateException | InterruptedException e) {
            daemon.close();
            throw e;
        }
        return new Daemon(daemon, directory);
    }

    /** How gpuseg-bench-rt is called, without what is special to a cell. */
    List<String> realTimeCommand(final String mode, final double kernelMs, final int jobs) {
        return new ArrayList<>(List.of(CudaBench.program("rt"), "--mode", mode, "--kernel-ms",
            Double.toString(kernelMs), "--per", perIteration, "--jobs", Integer.toString(jobs), "--seed",
            Integer.toString(plan.seed()), "--pause-ms", Double.toString(plan.pauseMs())));
    }

    /** What makes it count what the others do meanwhile. */
    static List<String> pages(final List<CudaBench.Other> running) {
        return running.isEmpty() ? List.of()
            : List.of("--pages", running.stream().map(o -> o.file().toString()).collect(Collectors.joining(",")));
    }

    /** Puts {@code gpuseg exec} before a command; the task is called so. */
    static List<String> exec(final String task, final List<String> options, final List<String> command) {
        final List<String> all = new ArrayList<>(List.of(NativePrograms.ofClientLibrary("gpuseg-exec").toString(),
            "--name", task));
        all.addAll(options);
        all.add("--");
        all.addAll(command);
        return all;
    }

    /** Puts the directory of a daemon before a command. */
    static List<String> in(final Daemon daemon, final List<String> command) {
        if (daemon == null) {
            return command;
        }
        final List<String> all = new ArrayList<>(List.of("env", "GPUSEG_DIR=" + daemon.directory()));
        all.addAll(command);
        return all;
    }

    /** Runs the measured process with its samples kept, to its end. */
    ObjectNode measured(final String name, final List<String> command, final Daemon daemon)
        throws IOException, InterruptedException, TimeoutException {
        final List<String> all = new ArrayList<>(in(daemon, command));
        all.addAll(List.of("--samples", samples(name).toString()));
        final CudaBench.Answer answer = cuda.answer(name, all);
        final ObjectNode cell;
        try {
            final JsonNode said = JSON.readTree(answer.lastLine());
            if (!(said instanceof ObjectNode figures) || !said.has("response_ns")) {
                throw new IllegalStateException(name + " failed with status " + answer.status() + ": " + answer.said());
            }
            cell = figures;
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException(name + " failed with status " + answer.status() + ": " + answer.said(), e);
        }
        cell.put("exit_status", answer.status());
        if (plan.samples() != null) {
            cell.put("samples", samples(name).getFileName().toString());
        }
        return cell;
    }

    /** Where the samples of a cell are. */
    Path samples(final String name) {
        return (plan.samples() == null ? root : plan.samples()).resolve("samples-" + name + ".csv");
    }

    /** A cell that carries its name whatever happens; what goes wrong stands in it. */
    ObjectNode cell(final String strategy, final int others, final ArrayNode into,
        final Measurement measurement) throws IOException, InterruptedException {
        ObjectNode cell;
        try {
            cell = measurement.get();
        } catch (final IllegalStateException | TimeoutException e) {
            cell = into.objectNode().put("failed", e.getMessage());
        }
        cell.put("strategy", strategy).put("others", others);
        into.add(cell);
        say(others + " others, " + strategy, cell);
        afterCell.run();
        return cell;
    }

    /** Ratios to what the same process does alone, and what is left to the others outside of segments. */
    static void compare(final ObjectNode cell, final JsonNode alone, final double undisturbedPerNs) {
        cell.put("p50_to_alone", ratio(cell, alone, "p50")).put("p99_to_alone", ratio(cell, alone, "p99"))
            .put("max_to_alone", ratio(cell, alone, "max"));
        final double outsideNs = cell.path("loop_ns").asDouble() - cell.path("windows_ns").asDouble();
        if (undisturbedPerNs > 0) {
            cell.put("others_kept", rounded(cell.path("other_kernels").asLong() / (undisturbedPerNs * outsideNs)));
        }
    }

    /** A figure over that of the kernel alone; max over its p99: one outlier there must not flatter the others. */
    static double ratio(final JsonNode cell, final JsonNode alone, final String figure) {
        return rounded(cell.path("response_ns").path(figure).asDouble()
            / alone.path("response_ns").path("max".equals(figure) ? "p99" : figure).asDouble());
    }

    static double rounded(final double value) {
        return Math.round(value * DIGITS) / DIGITS;
    }

    private void say(final String what, final ObjectNode cell) {
        final double nsPerMs = 1e6;
        if (cell.has("response_ns")) {
            final JsonNode r = cell.path("response_ns");
            progress.printf(Locale.ROOT, "%-50s p50 %8.3f  p99 %8.3f  max %8.3f ms%n", what,
                r.path("p50").asLong() / nsPerMs, r.path("p99").asLong() / nsPerMs, r.path("max").asLong() / nsPerMs);
        } else if (cell.has("late_jobs")) {
            progress.printf(Locale.ROOT, "%-50s late jobs %d%n", what, cell.path("late_jobs").asLong());
        } else {
            progress.printf(Locale.ROOT, "%-50s %s%n", what,
                cell.has("failed") ? cell.path("failed").asText() : cell.path("not_run").asText());
        }
        progress.flush();
    }

    /** Name, driver, clocks and temperature, or why they are unknown. */
    public static String smi(final CudaBench cuda) throws InterruptedException {
        try {
            return cuda.run("nvidia-smi", List.of("nvidia-smi",
                "--query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu", "--format=csv,noheader"));
        } catch (final IllegalStateException | TimeoutException e) {
            return "unknown: " + e.getMessage();
        }
    }

    @Override
    public void close() {
        RuntimeDirectory.deleteTree(root);
    }
}

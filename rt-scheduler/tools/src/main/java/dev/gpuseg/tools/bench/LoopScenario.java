/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.tools.bench.PeriodicProcesses.Part;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeoutException;

/**
 * A control loop of 1 kHz beside a training, the decoder of a language model and large products, then with a task of
 * {@value #SHORT_MS} ms at 100 Hz that fills the GPU, then with one of {@value #LONG_MS} ms at 30 Hz besides: by the
 * driver, in MPS as it is and with limits, by {@code gpuseg run}, and by {@code gpuseg run --space}. Its responses
 * count from the time at which a tick was due; a tick is late if its response is longer than its period, and excused
 * if it is not without the time for which the CPU was away.
 */
final class LoopScenario implements GpuScenario {
    static final String NAME = "loop";
    private static final String LOOP = "loop";
    private static final String DRIVER = "driver";
    private static final double LOOP_MS = 0.1;
    private static final int LOOP_BLOCKS = 16;
    private static final int LOOP_PRIORITY = 90;
    private static final double SHORT_MS = 0.35;
    private static final int SHORT_KERNELS = 10;
    private static final double SHORT_PERIOD_MS = 10;
    private static final int SHORT_PRIORITY = 80;
    private static final double LONG_MS = 5;
    private static final double LONG_PERIOD_MS = 33.333;
    private static final int LONG_PRIORITY = 60;
    private static final String RESERVE = "12%";
    private static final String MPS_LIMIT = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30";
    private static final List<String> LOADS = List.of("train-vit", "llm", "products");
    private static final double NS_PER_S = 1e9;

    /** Where the programs run: what stands before their commands, and who schedules them. */
    private record Way(String title, List<String> before, List<String> beforeLoads, GpuBench.Daemon daemon,
        boolean isSpace) {
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        final Optional<String> obstacle = TorchScenario.obstacle(bench);
        if (obstacle.isPresent()) {
            into.put("not_run", obstacle.get());
            return;
        }
        final List<Part> parts = parts(bench);
        final ArrayNode alone = into.putObject("alone").putArray("tasks");
        into.putArray("cells");
        new PeriodicProcesses(bench, NAME).alone(parts, alone);
        final List<GpuStrategy> chosen = bench.plan().strategies();
        if (chosen.contains(GpuStrategy.NONE)) {
            beside(bench, into, parts, new Way(DRIVER, List.of(), List.of(), null, false));
            inMps(bench, into, parts);
        }
        if (chosen.contains(GpuStrategy.OPTIMISTIC)) {
            try (GpuBench.Daemon daemon = bench.startDaemon(List.of())) {
                beside(bench, into, parts, new Way("gpuseg", List.of(), List.of(), daemon, false));
            }
        }
        if (chosen.contains(GpuStrategy.EXEC)) {
            try (GpuBench.Daemon daemon = bench.startDaemon(List.of("--space", "--mechanism", "launch"))) {
                beside(bench, into, parts, new Way("gpuseg, space", List.of(), List.of(), daemon, true));
            }
        }
    }

    /** Each once; the loop's kernel is measured by itself, since so few blocks run faster than many. */
    private static List<Part> parts(final GpuBench bench) throws InterruptedException, TimeoutException {
        final String blocks = Integer.toString(LOOP_BLOCKS);
        final String per = bench.cuda().nsPerIteration("--blocks", blocks);
        return List.of(
            new Part(LOOP, LOOP_MS, 1, 1, LOOP_PRIORITY, "--blocks", blocks, "--watch", "--per", per),
            new Part("short", SHORT_MS, SHORT_KERNELS, SHORT_PERIOD_MS, SHORT_PRIORITY),
            new Part("long", LONG_MS, 1, LONG_PERIOD_MS, LONG_PRIORITY));
    }

    private static void inMps(final GpuBench bench, final ObjectNode into, final List<Part> parts)
        throws IOException, InterruptedException, TimeoutException {
        try (MpsServer mps = new MpsServer(bench.directory())) {
            final List<String> limited = new ArrayList<>(mps.environment());
            limited.add(MPS_LIMIT);
            beside(bench, into, parts, new Way("MPS", mps.environment(), mps.environment(), null, false));
            beside(bench, into, parts, new Way("MPS, 30 % each", mps.environment(), limited, null, false));
        } catch (final IllegalStateException e) {
            bench.cell("MPS", LOADS.size(), (ArrayNode) into.path("cells"), () -> {
                throw e;
            });
        }
    }

    /** Measures the loop, the loop and the short task, and all three, beside the loads. */
    private static void beside(final GpuBench bench, final ObjectNode into, final List<Part> parts, final Way way)
        throws IOException, InterruptedException, TimeoutException {
        final List<CudaBench.Other> loads = new ArrayList<>();
        try {
            for (final String load : LOADS) {
                loads.add(bench.cuda().startCounting(key(way, load), page -> before(way, way.beforeLoads, load,
                    List.of("--best-effort"), List.of(bench.plan().python(), TorchScenario.file(), load, "--page",
                        page.toString()))));
            }
            bench.watch(loads, into, running -> {
                for (int n = 1; n <= parts.size(); n++) {
                    cell(bench, into, parts.subList(0, n), way, running);
                }
            });
        } finally {
            CudaBench.close(loads);
        }
    }

    private static String key(final Way way, final String what) {
        return NAME + "-" + way.title.replaceAll("[^A-Za-z0-9]+", "-") + "-" + what;
    }

    /** A command as it is, or under {@code gpuseg exec} of the space. */
    private static List<String> before(final Way way, final List<String> environment, final String task,
        final List<String> options, final List<String> command) {
        if (way.isSpace) {
            return GpuBench.in(way.daemon, GpuBench.exec(task, options, command));
        }
        final List<String> all = new ArrayList<>(environment);
        all.addAll(command);
        return all;
    }

    private static void cell(final GpuBench bench, final ObjectNode into, final List<Part> parts, final Way way,
        final List<CudaBench.Other> running) throws IOException, InterruptedException {
        final ArrayNode cells = (ArrayNode) into.path("cells");
        final String title = way.title + (parts.size() == 1 ? "" : ", " + parts.get(parts.size() - 1).name() + " too");
        final PeriodicProcesses processes = new PeriodicProcesses(bench, NAME, way.before);
        bench.cell(title, running.size(), cells, () -> {
            final long[] jobs = running.stream().mapToLong(CudaBench.Other::kernels).toArray();
            final long[] wrong = running.stream().mapToLong(CudaBench.Other::wrong).toArray();
            final long fromNs = System.nanoTime();
            final ObjectNode cell = processes.together(key(way, Integer.toString(parts.size())), parts,
                into.path("alone").path("tasks"), way.daemon, way.isSpace ? LoopScenario::options : null, running);
            final double tookS = (System.nanoTime() - fromNs) / NS_PER_S;
            final ObjectNode loads = cell.putObject("loads");
            final ObjectNode loadsWrong = cell.putObject("loads_wrong");
            for (int i = 0; i < jobs.length; i++) {
                loads.put(LOADS.get(i), GpuBench.rounded((running.get(i).kernels() - jobs[i]) / tookS));
                loadsWrong.put(LOADS.get(i), running.get(i).wrong() - wrong[i]);
            }
            compare(cell, cells);
            return cell;
        });
    }

    /** What each load did, to what it did with the same tasks by the driver, where that was measured. */
    static void compare(final ObjectNode cell, final ArrayNode cells) {
        for (final JsonNode driver : cells) {
            if (driver.path("strategy").asText().startsWith(DRIVER)
                && driver.path("tasks").size() == cell.path("tasks").size()) {
                final ObjectNode to = cell.putObject("loads_to_driver");
                driver.path("loads").properties().stream().filter(load -> load.getValue().asDouble() > 0)
                    .forEach(load -> to.put(load.getKey(), GpuBench.rounded(
                        cell.path("loads").path(load.getKey()).asDouble() / load.getValue().asDouble())));
            }
        }
    }

    private static List<String> options(final Part part) {
        final List<String> options = new ArrayList<>(List.of("--priority", Integer.toString(part.priority()),
            "--period", Math.round(part.periodMs() * 1000) + "us"));
        if (part.name().equals(LOOP)) {
            options.addAll(List.of("--reserve", RESERVE));
        }
        return options;
    }
}

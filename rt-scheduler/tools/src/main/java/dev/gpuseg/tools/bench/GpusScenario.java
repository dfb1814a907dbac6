/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.mechanisms.nvidia.NvidiaSurvey;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeoutException;

/**
 * Two GPUs, one daemon: best-effort processes on both, a real-time task on the first, then one more of lower priority
 * on the second. A GPU's segments must not be felt on the other.
 */
final class GpusScenario implements GpuScenario {
    /** Added to the strategy's title in cells with a task on each GPU. */
    static final String BOTH = ", a task on each";

    private static final int GPUS = 2;
    private static final int OTHERS_PER_GPU = 2;
    private static final int FIRST_PRIORITY = 80;
    private static final int SECOND_PRIORITY = 10;
    private static final int MANY_JOBS = 100_000;
    private static final int LIMIT_S = 60;
    private static final List<GpuStrategy> STRATEGIES =
        List.of(GpuStrategy.NONE, GpuStrategy.OPTIMISTIC, GpuStrategy.BLOCKING);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final double kernelMs;
    private final double otherMs;

    GpusScenario(final double kernelMs, final double otherMs) {
        this.kernelMs = kernelMs;
        this.otherMs = otherMs;
    }

    @Override
    public String name() {
        return "gpus";
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        final int present = NvidiaSurvey.gpus();
        into.put("gpus", present);
        if (present < GPUS) {
            into.put("not_run", "it needs two GPUs, the driver lists " + present);
            return;
        }
        into.put("kernel_ms", kernelMs).put("other_kernel_ms", otherMs);
        final ObjectNode alone = bench.alone("gpus-alone-0", kernelMs, List.of("--gpu", "0"));
        into.set("alone", alone);
        final ObjectNode aloneSecond = bench.alone("gpus-alone-1", kernelMs, List.of("--gpu", "1"));
        into.set("alone_second", aloneSecond);
        final ArrayNode cells = into.putArray("cells");
        final List<CudaBench.Other> running = new ArrayList<>();
        try {
            for (int i = 0; i < GPUS * OTHERS_PER_GPU; i++) {
                running.add(bench.startOther("gpus-" + i, otherMs, i / OTHERS_PER_GPU));
            }
            bench.watch(running, into, all -> {
                final List<CudaBench.Other> second = all.subList(OTHERS_PER_GPU, all.size());
                final double rate = bench.undisturbedPerNs(second);
                for (final GpuStrategy s : STRATEGIES) {
                    if (bench.plan().strategies().contains(s)) {
                        measure(bench, s, second, rate, alone, aloneSecond, cells);
                    }
                }
            });
        } finally {
            CudaBench.close(running);
        }
    }

    private void measure(final GpuBench bench, final GpuStrategy s, final List<CudaBench.Other> onSecond,
        final double rate, final JsonNode alone, final JsonNode aloneSecond, final ArrayNode cells)
        throws IOException, InterruptedException {
        final List<String> options = s.needsDaemon() ? List.of("--gpus", Integer.toString(GPUS)) : null;
        try (GpuBench.Daemon daemon = s.needsDaemon() ? bench.startDaemon(options) : null) {
            bench.cell(s.title(), OTHERS_PER_GPU, cells, () -> {
                final ObjectNode cell = bench.measured(name(s, "one"), first(bench, s, "one", onSecond), daemon);
                GpuBench.compare(cell, alone, 0);
                return cell.put("other_gpu_kept", GpuBench.rounded(cell.path("other_kernels").asLong()
                    / (rate * cell.path("loop_ns").asDouble())));
            });
            bench.cell(s.title() + BOTH, OTHERS_PER_GPU, cells,
                () -> both(bench, s, daemon, alone, aloneSecond));
        } catch (final IllegalStateException e) {
            bench.cell(s.title(), OTHERS_PER_GPU, cells, () -> {
                throw e;
            });
        }
    }

    private String name(final GpuStrategy s, final String part) {
        return "gpus-" + s.name().toLowerCase(Locale.ROOT) + "-" + part;
    }

    private List<String> first(final GpuBench bench, final GpuStrategy s, final String part,
        final List<CudaBench.Other> counted) {
        final List<String> command = bench.realTimeCommand(s.mode(), kernelMs, bench.plan().jobs());
        command.addAll(List.of("--gpu", "0", "--priority", Integer.toString(FIRST_PRIORITY), "--name",
            name(s, part)));
        command.addAll(GpuBench.pages(counted));
        return command;
    }

    private ObjectNode both(final GpuBench bench, final GpuStrategy s, final GpuBench.Daemon daemon,
        final JsonNode alone, final JsonNode aloneSecond) throws IOException, InterruptedException, TimeoutException {
        final String secondName = name(s, "second");
        final List<String> command = bench.realTimeCommand(s.mode(), kernelMs, MANY_JOBS);
        command.addAll(List.of("--gpu", "1", "--priority", Integer.toString(SECOND_PRIORITY), "--name", secondName,
            "--samples", bench.samples(secondName).toString()));
        final List<CudaBench.Other> started = new ArrayList<>();
        try {
            final CudaBench.Other second = bench.cuda().startCounting(secondName, page -> {
                final List<String> all = new ArrayList<>(GpuBench.in(daemon, command));
                all.addAll(List.of("--own-page", page.toString(), "--gate"));
                return all;
            });
            started.add(second);
            final List<String> opening = first(bench, s, "first", List.of());
            opening.addAll(List.of("--open", second.file().toString()));
            final ObjectNode cell = bench.measured(name(s, "first"), opening, daemon);
            GpuBench.compare(cell, alone, 0);
            second.askToStop();
            final int status = second.child().awaitExit(LIMIT_S);
            final JsonNode said = JSON.readTree(second.child().lastLine());
            if (!(said instanceof ObjectNode other) || !said.has("response_ns")) {
                throw new IllegalStateException("the task on GPU 1 failed: " + second.child().said());
            }
            GpuBench.compare(other, aloneSecond, 0);
            other.put("exit_status", status);
            if (bench.plan().samples() != null) {
                other.put("samples", bench.samples(secondName).getFileName().toString());
            }
            cell.set("other_gpu", other);
            return cell;
        } finally {
            CudaBench.close(started);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeoutException;

/**
 * Two real-time levels: a process with short kernels and a higher priority against one with long kernels, almost
 * without pauses, whose own time slice is long. That long slice is what hurts without a scheduler.
 */
final class LevelsScenario implements GpuScenario {
    private static final double HIGH_MS = 5;
    private static final double LOW_MS = 50;
    private static final int HIGH = 80;
    private static final int LOW = 10;
    private static final String LOW_SLICE_US = "1000000";
    private static final int ALONE_JOBS = 30;
    private static final int MANY_JOBS = 100_000;
    private static final int LIMIT_S = 60;
    private static final List<GpuStrategy> STRATEGIES =
        List.of(GpuStrategy.NONE, GpuStrategy.OPTIMISTIC, GpuStrategy.BLOCKING);
    private static final ObjectMapper JSON = new ObjectMapper();

    @Override
    public String name() {
        return "levels";
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("high_kernel_ms", HIGH_MS).put("low_kernel_ms", LOW_MS).put("high_priority", HIGH)
            .put("low_priority", LOW).put("low_slice_us", LOW_SLICE_US);
        final ObjectNode alone = bench.alone("levels-alone", HIGH_MS, List.of());
        into.set("alone", alone);
        final List<String> lowAlone = bench.realTimeCommand("none", LOW_MS, ALONE_JOBS);
        lowAlone.addAll(lowPauses());
        final ObjectNode low = bench.measured("levels-low-alone", lowAlone, null);
        into.set("low_alone", low);
        into.put("gpu_loaded", GpuBench.smi(bench.cuda()));
        final ArrayNode cells = into.putArray("cells");
        for (final GpuStrategy s : STRATEGIES) {
            if (bench.plan().strategies().contains(s)) {
                bench.cell(s.title(), 1, cells, () -> pair(bench, s, alone, low));
            }
        }
    }

    private static List<String> lowPauses() {
        return List.of("--pause-ms", "5", "--jitter-ms", "0", "--slice-us", LOW_SLICE_US);
    }

    private static ObjectNode pair(final GpuBench bench, final GpuStrategy s, final JsonNode alone,
        final JsonNode lowAlone) throws IOException, InterruptedException, TimeoutException {
        final String name = "levels-" + s.name().toLowerCase(Locale.ROOT);
        final List<CudaBench.Other> lows = new ArrayList<>();
        try (GpuBench.Daemon daemon = s.needsDaemon() ? bench.startDaemon(s.daemonOptions()) : null) {
            final List<String> lowCommand = bench.realTimeCommand(s.mode(), LOW_MS, MANY_JOBS);
            lowCommand.addAll(lowPauses());
            lowCommand.addAll(List.of("--priority", Integer.toString(LOW), "--name", name + "-low", "--samples",
                bench.samples(name + "-low").toString()));
            final CudaBench.Other low = bench.cuda().startCounting(name, page -> {
                final List<String> all = new ArrayList<>(GpuBench.in(daemon, lowCommand));
                all.addAll(List.of("--own-page", page.toString(), "--gate"));
                return all;
            });
            lows.add(low);
            // without protection a job takes tens of times longer; the command is to end within minutes
            final int jobs = s == GpuStrategy.NONE ? Math.max(20, bench.plan().jobs() / 2) : bench.plan().jobs();
            final List<String> command = bench.realTimeCommand(s.mode(), HIGH_MS, jobs);
            // the lower one waits until this one is set up: its segments would make that take seconds
            command.addAll(List.of("--priority", Integer.toString(HIGH), "--name", name, "--open",
                low.file().toString()));
            final ObjectNode high = bench.measured(name, command, daemon);
            GpuBench.compare(high, alone, 0);
            low.askToStop();
            final int lowStatus = low.child().awaitExit(LIMIT_S);
            final JsonNode said = JSON.readTree(low.child().lastLine());
            if (!(said instanceof ObjectNode lowCell) || !said.has("response_ns")) {
                throw new IllegalStateException("the lower level failed: " + low.child().said());
            }
            GpuBench.compare(lowCell, lowAlone, 0);
            lowCell.put("exit_status", lowStatus);
            if (bench.plan().samples() != null) {
                lowCell.put("samples", bench.samples(name + "-low").getFileName().toString());
            }
            high.set("low", lowCell);
            return high;
        } finally {
            CudaBench.close(lows);
        }
    }
}

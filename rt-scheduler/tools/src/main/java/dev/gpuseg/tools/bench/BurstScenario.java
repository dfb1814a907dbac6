/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeoutException;

/** Segments back to back, and what disabling the others costs them. The response is that of the whole burst. */
final class BurstScenario implements GpuScenario {
    private static final double KERNEL_MS = 1;
    private static final double OTHER_MS = 20;
    private static final int OTHERS = 3;
    private static final List<String> BURST = List.of("--burst", "5", "--burst-gap-us", "200");

    @Override
    public String name() {
        return "burst";
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("kernel_ms", KERNEL_MS).put("other_kernel_ms", OTHER_MS).put("options", String.join(" ", BURST));
        final ObjectNode alone = bench.alone("burst-alone", KERNEL_MS, BURST);
        into.set("alone", alone);
        final ArrayNode cells = into.putArray("cells");
        bench.against(OTHERS, OTHER_MS, into, running -> {
            final double rate = bench.undisturbedPerNs(running);
            cell(bench, GpuStrategy.NONE.title(), "none", running, rate, alone, cells);
            cell(bench, GpuStrategy.OPTIMISTIC.title(), "segment", running, rate, alone, cells);
        });
    }

    private static void cell(final GpuBench bench, final String title, final String mode,
        final List<CudaBench.Other> running, final double rate, final ObjectNode alone, final ArrayNode cells)
        throws IOException, InterruptedException {
        final String name = "burst-" + OTHERS + "-" + mode;
        bench.cell(title, OTHERS, cells, () -> {
            try (GpuBench.Daemon daemon = mode.equals("none") ? null : bench.startDaemon(List.of())) {
                final List<String> command = bench.realTimeCommand(mode, KERNEL_MS, bench.plan().jobs());
                command.addAll(BURST);
                command.addAll(List.of("--name", name));
                command.addAll(GpuBench.pages(running));
                final ObjectNode cell = bench.measured(name, command, daemon);
                GpuBench.compare(cell, alone, rate);
                cell.put("later_p50_to_alone", GpuBench.rounded(cell.path("later_ns").path("p50").asDouble()
                    / alone.path("later_ns").path("p50").asDouble()));
                if (daemon != null) {
                    EnforcementCosts.describe(daemon.journalAfterStop(), name, bench.samples(name), cell);
                    cell.put("calls_per_job", GpuBench.rounded(cell.path("calls_ns").path("n").asDouble()
                        / cell.path("jobs").asDouble()));
                }
                return cell;
            }
        });
    }
}

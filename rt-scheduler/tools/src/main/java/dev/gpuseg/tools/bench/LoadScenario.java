/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/**
 * One real-time kernel against best-effort processes that never stop, for each strategy and number of them.
 *
 * <p>Best-effort throughput kept = kernels finished while the strategy ran, over what the same processes do undisturbed
 * in the time outside segments.
 *
 * @param name     of the scenario
 * @param kernelMs length of the real-time kernel
 * @param otherMs  length of the best-effort kernels
 * @param others   numbers of best-effort processes
 * @param strategies in the order of the table
 */
record LoadScenario(String name, double kernelMs, double otherMs, List<Integer> others,
    List<GpuStrategy> strategies) implements GpuScenario {
    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("kernel_ms", kernelMs).put("other_kernel_ms", otherMs);
        final ObjectNode alone = bench.alone(name + "-alone", kernelMs, List.of());
        into.set("alone", alone);
        final ArrayNode cells = into.putArray("cells");
        final ArrayNode enforcement = into.putArray("enforcement");
        for (final int count : others) {
            bench.against(count, otherMs, into, running -> {
                final int first = cells.size();
                final double rate = bench.undisturbedPerNs(running);
                for (final Map.Entry<List<String>, List<GpuStrategy>> group : groups(strategies)) {
                    measureGroup(bench, group.getKey(), group.getValue(), running, rate, alone, cells);
                }
                final ObjectNode costs = EnforcementCosts.compare(cells, first);
                if (!costs.isEmpty()) {
                    enforcement.add(costs.put("others", count));
                }
            });
        }
    }

    /** Strategies that can run under one daemon stand together; those without one come first. */
    private static Iterable<Map.Entry<List<String>, List<GpuStrategy>>> groups(final List<GpuStrategy> all) {
        final Map<List<String>, List<GpuStrategy>> groups = new LinkedHashMap<>();
        final List<GpuStrategy> bare = all.stream().filter(s -> !s.needsDaemon()).collect(Collectors.toList());
        if (!bare.isEmpty()) {
            groups.put(null, bare);
        }
        for (final GpuStrategy s : all) {
            if (s.needsDaemon()) {
                groups.computeIfAbsent(s.daemonOptions(), k -> new ArrayList<>()).add(s);
            }
        }
        return groups.entrySet();
    }

    private void measureGroup(final GpuBench bench, final List<String> daemonOptions,
        final List<GpuStrategy> group, final List<CudaBench.Other> running, final double rate,
        final JsonNode alone, final ArrayNode cells) throws IOException, InterruptedException, TimeoutException {
        GpuBench.Daemon daemon = null;
        try {
            if (daemonOptions != null) {
                try {
                    daemon = bench.startDaemon(daemonOptions);
                } catch (final IllegalStateException e) {
                    for (final GpuStrategy s : group) {
                        bench.cell(s.title(), running.size(), cells, () -> {
                            throw e;
                        });
                    }
                    return;
                }
            }
            final GpuBench.Daemon started = daemon;
            final Map<String, ObjectNode> held = new LinkedHashMap<>();
            for (final GpuStrategy s : group) {
                final String cellName = name + "-" + running.size() + "-" + s.name().toLowerCase(Locale.ROOT);
                final ObjectNode cell = bench.cell(s.title(), running.size(), cells, () -> {
                    final List<String> command = bench.realTimeCommand(s.mode(), kernelMs, bench.plan().jobs());
                    command.addAll(List.of("--name", cellName));
                    command.addAll(GpuBench.pages(running));
                    if (s.namesOthers()) {
                        command.addAll(List.of("--pids", running.stream().map(o -> Integer.toString(o.pid()))
                            .collect(Collectors.joining(","))));
                    }
                    command.addAll(s.options());
                    final ObjectNode measured = bench.measured(cellName, s != GpuStrategy.EXEC ? command
                        : GpuBench.exec(cellName, List.of("--priority", "80"), command), started);
                    GpuBench.compare(measured, alone, rate);
                    return measured.put("others_wrong", running.stream().mapToLong(CudaBench.Other::wrong).sum());
                });
                held.put(cellName, cell);
            }
            if (daemon != null) {
                final Path journal = daemon.journalAfterStop();
                for (final Map.Entry<String, ObjectNode> cell : held.entrySet()) {
                    if (cell.getValue().has("response_ns")) {
                        EnforcementCosts.describe(journal, cell.getKey(), bench.samples(cell.getKey()),
                            cell.getValue());
                    }
                }
            }
        } finally {
            if (daemon != null) {
                daemon.close();
            }
        }
    }
}

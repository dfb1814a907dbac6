/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;

/**
 * A periodic real-time task that gives no hints, against best-effort processes: what is gained if the daemon
 * anticipates its begins, by itself and with touches of the library, and what best-effort work loses by it.
 *
 * <p>The first two seconds are not measured: the daemon learns. Best-effort work to that without anticipation = kernels
 * in each nanosecond of the loop, over those of the cell in which the daemon anticipates nothing.
 *
 * @param job      of the task
 * @param otherMs  lengths of the best-effort kernels; the first kind is measured with every cell
 */
record PeriodicScenario(PeriodicJob job, List<Double> otherMs) implements GpuScenario {
    static final String DECLARED = "period declared";
    static final String LEARNED_TITLE = "period learned";
    static final String DECLARED_TOUCHED = "period declared, touched";
    static final String LEARNED_TOUCHED = "period learned, touched";
    static final String WITH_IDLE = "declared, 3 idle contexts more";
    /** In a title, before what the best-effort kernels take where they are not those of the first kind. */
    static final String AGAINST = ", BE ";
    private static final int OTHERS = 3;
    private static final int IDLE = 3;
    private static final String SEGMENT = "segment";
    private static final List<String> OFF = List.of("--anticipate", "off");
    private static final List<String> LEARNED = List.of("--anticipate", "learned");

    /**
     * One way of running it.
     *
     * @param title    in the table
     * @param key      in the names of files
     * @param strategy of the plan that stands for it
     * @param daemon   options of the daemon; null = none
     * @param options  of the real-time process
     * @param always   whether it is measured against every kind of best-effort kernels
     * @param idle     processes with an idle context besides
     */
    private record Way(String title, String key, GpuStrategy strategy, List<String> daemon, List<String> options,
        boolean always, int idle) {
    }

    private static final List<Way> WAYS = List.of(
        new Way("default", "none", GpuStrategy.NONE, null, List.of(), true, 0),
        new Way("not anticipated", "off", GpuStrategy.OPTIMISTIC, OFF, List.of(), true, 0),
        new Way("hint 1 ms ahead", "hint", GpuStrategy.HINT, OFF, List.of("--hint-ms", "1"), true, 0),
        new Way(DECLARED, "declared", GpuStrategy.OPTIMISTIC, LEARNED, List.of(), true, 0),
        new Way(LEARNED_TITLE, "learned", GpuStrategy.OPTIMISTIC, LEARNED, List.of("--undeclared"), true, 0),
        new Way(DECLARED_TOUCHED, "declared-touched", GpuStrategy.OPTIMISTIC, LEARNED,
            List.of(PeriodicJob.TOUCHES), true, 0),
        new Way(LEARNED_TOUCHED, "learned-touched", GpuStrategy.OPTIMISTIC, LEARNED,
            List.of(PeriodicJob.TOUCHES, "--undeclared"), true, 0),
        new Way("declared, jitter of +-2 ms", "jitter", GpuStrategy.OPTIMISTIC, LEARNED, List.of("--jitter-ms", "4"),
            false, 0),
        new Way("declared, then twice the period", "rare", GpuStrategy.OPTIMISTIC, LEARNED, List.of("--rare"), false,
            0),
        new Way(WITH_IDLE, "idle", GpuStrategy.OPTIMISTIC, LEARNED, List.of(), false, IDLE));

    @Override
    public String name() {
        return job.name();
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("kernel_ms", job.kernelMs()).put("kernels_per_job", job.kernels()).put("period_ms", job.periodMs())
            .put("other_kernel_ms", otherMs.get(0)).put("warm_jobs", job.warm());
        final ObjectNode alone = bench.measured(name() + "-alone", job.command(bench, "none", List.of()), null);
        into.set("alone", alone);
        final ArrayNode cells = into.putArray("cells");
        for (final double other : otherMs) {
            bench.against(OTHERS, other, into, running -> {
                double offPerNs = 0;
                for (final Map.Entry<List<String>, List<Way>> group : groups(bench).entrySet()) {
                    offPerNs = measureGroup(bench, group.getValue(), other, running, alone, cells, offPerNs);
                }
            });
        }
    }

    /** Ways that run under one daemon stand together, those without one come first. */
    private static Map<List<String>, List<Way>> groups(final GpuBench bench) {
        final Map<List<String>, List<Way>> groups = new LinkedHashMap<>();
        for (final Way way : WAYS) {
            if (bench.plan().strategies().contains(way.strategy())) {
                groups.computeIfAbsent(way.daemon(), k -> new ArrayList<>()).add(way);
            }
        }
        return groups;
    }

    private double measureGroup(final GpuBench bench, final List<Way> ways, final double other,
        final List<CudaBench.Other> running, final JsonNode alone, final ArrayNode cells, final double offBefore)
        throws IOException, InterruptedException, TimeoutException {
        final boolean first = other == otherMs.get(0);
        double offPerNs = offBefore;
        try (GpuBench.Daemon daemon = ways.get(0).daemon() == null ? null : bench.startDaemon(ways.get(0).daemon())) {
            for (final Way way : ways) {
                if (!first && !way.always()) {
                    continue;
                }
                final double basis = offPerNs;
                final ObjectNode cell = bench.cell(way.title() + (first ? "" : AGAINST + other + " ms"),
                    running.size() + way.idle(), cells, () -> measureWay(bench, way, other, running, daemon, alone,
                        basis));
                if (way.key().equals("off") && cell.has("response_ns")) {
                    offPerNs = perNs(cell);
                    cell.put("others_to_unanticipated", 1);
                }
            }
        }
        return offPerNs;
    }

    private ObjectNode measureWay(final GpuBench bench, final Way way, final double other,
        final List<CudaBench.Other> running, final GpuBench.Daemon daemon, final JsonNode alone, final double offPerNs)
        throws IOException, InterruptedException, TimeoutException {
        final String cellName = name() + "-" + other + "-" + way.key();
        final List<CudaBench.Other> idle = new ArrayList<>();
        try {
            for (int i = 0; i < way.idle(); i++) {
                idle.add(PeriodicJob.idle(bench, cellName + "-" + i));
            }
            awaitSetUp(idle);
            final List<String> command = job.command(bench, way.daemon() == null ? "none" : SEGMENT, way.options());
            command.addAll(List.of("--name", cellName));
            command.addAll(GpuBench.pages(running));
            final ObjectNode measured = bench.measured(cellName, command, daemon);
            GpuBench.compare(measured, alone, 0);
            if (offPerNs > 0) {
                measured.put("others_to_unanticipated", GpuBench.rounded(perNs(measured) / offPerNs));
            }
            return measured.put("others_wrong", running.stream().mapToLong(CudaBench.Other::wrong).sum());
        } finally {
            CudaBench.close(idle);
        }
    }

    static void awaitSetUp(final List<CudaBench.Other> waiting) throws InterruptedException {
        for (final CudaBench.Other process : waiting) {
            process.awaitSetUp();
        }
    }

    private static double perNs(final JsonNode cell) {
        return cell.path("other_kernels").asDouble() / cell.path("loop_ns").asDouble();
    }
}

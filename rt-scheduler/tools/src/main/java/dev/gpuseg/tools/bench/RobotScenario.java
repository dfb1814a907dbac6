/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * A robot on one GPU: ten periodic processes of different rank, 0.1 to 10 ms at 10 to 500 Hz, beside best-effort work.
 * For each: jobs that were late or left out, and the response against the same process alone.
 */
final class RobotScenario implements GpuScenario {
    private static final double OTHER_MS = 20;
    private static final int OTHERS = 3;
    private static final double WARM_MS = 2_000;
    /** For each job of the plan. */
    private static final double MS_PER_JOB = 100;
    private static final int ALONE_PART = 4;
    private static final int ALONE_JOBS_MIN = 20;
    private static final int LIMIT_S = 180;
    private static final double NS_PER_MS = 1e6;
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * A process.
     *
     * @param name     of its task
     * @param kernelMs length of a job
     * @param kernels  of which it consists
     * @param periodMs of the jobs; the deadline
     * @param priority 1..99
     */
    private record Part(String name, double kernelMs, int kernels, double periodMs, int priority) {
    }

    private static final List<Part> PARTS = List.of(
        new Part("servo", 0.1, 1, 2, 95),
        new Part("imu", 0.15, 2, 5, 90),
        new Part("control", 0.35, 10, 10, 85),
        new Part("grasp", 0.5, 5, 20, 80),
        new Part("lidar", 1, 5, 25, 75),
        new Part("stereo", 2, 4, 33.333, 70),
        new Part("detect", 4, 1, 40, 65),
        new Part("track", 5, 1, 50, 60),
        new Part("map", 8, 1, 100, 55),
        new Part("plan", 10, 1, 100, 50));

    /** A way of running it. */
    private record Way(String title, String key, GpuStrategy strategy, List<String> daemon) {
    }

    private static final List<Way> WAYS = List.of(
        new Way("default", "none", GpuStrategy.NONE, null),
        new Way("not anticipated", "off", GpuStrategy.OPTIMISTIC, List.of("--anticipate", "off")),
        new Way("anticipated", "declared", GpuStrategy.OPTIMISTIC, List.of("--anticipate", "declared")));

    @Override
    public String name() {
        return "robot";
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("other_kernel_ms", OTHER_MS);
        final ArrayNode alone = into.putObject("alone").putArray("tasks");
        for (final Part part : PARTS) {
            final String cellName = "robot-alone-" + part.name();
            final int jobs = Math.max(ALONE_JOBS_MIN, jobs(bench, part) / ALONE_PART);
            alone.add(bench.measured(cellName, command(bench, part, "none", jobs, 0), null).put("task", part.name()));
        }
        final ArrayNode cells = into.putArray("cells");
        bench.against(OTHERS, OTHER_MS, into, running -> {
            double offPerNs = 0;
            for (final Way way : WAYS) {
                if (!bench.plan().strategies().contains(way.strategy())) {
                    continue;
                }
                final double basis = offPerNs;
                final ObjectNode cell = bench.cell(way.title(), OTHERS, cells, () -> together(bench, way, running,
                    alone, basis));
                if (way.key().equals("off") && cell.has("others_per_ms")) {
                    offPerNs = cell.path("others_per_ms").asDouble();
                }
            }
        });
    }

    private static int jobs(final GpuBench bench, final Part part) {
        return (int) Math.ceil(bench.plan().jobs() * MS_PER_JOB / part.periodMs());
    }

    private static List<String> command(final GpuBench bench, final Part part, final String mode, final int jobs,
        final int warm) {
        final List<String> command = bench.realTimeCommand(mode, part.kernelMs(), jobs);
        command.addAll(List.of("--period-ms", Double.toString(part.periodMs()), "--graph",
            Integer.toString(part.kernels()), "--warm", Integer.toString(warm), "--jitter-ms", "0", "--priority",
            Integer.toString(part.priority())));
        return command;
    }

    private static ObjectNode together(final GpuBench bench, final Way way, final List<CudaBench.Other> running,
        final JsonNode alone, final double offPerMs) throws IOException, InterruptedException, TimeoutException {
        final List<CudaBench.Other> parts = new ArrayList<>();
        try (GpuBench.Daemon daemon = way.daemon() == null ? null : bench.startDaemon(way.daemon())) {
            for (final Part part : PARTS) {
                parts.add(start(bench, way, part, daemon));
            }
            PeriodicScenario.awaitSetUp(parts);
            final long kernelsBefore = kernels(running);
            final long fromNs = System.nanoTime();
            parts.forEach(CudaBench.Other::openGate);
            final ObjectNode cell = JSON.createObjectNode();
            final ArrayNode tasks = cell.putArray("tasks");
            long late = 0;
            for (int i = 0; i < PARTS.size(); i++) {
                final ObjectNode task = finished(bench, way, PARTS.get(i), parts.get(i), alone.get(i));
                late += task.path("missed").asLong() + task.path("skipped").asLong();
                tasks.add(task);
            }
            final double perMs = (kernels(running) - kernelsBefore) * NS_PER_MS / (System.nanoTime() - fromNs);
            cell.put("late_jobs", late).put("others_per_ms", perMs);
            if (offPerMs > 0) {
                cell.put("others_to_unanticipated", GpuBench.rounded(perMs / offPerMs));
            }
            return cell;
        } finally {
            CudaBench.close(parts);
        }
    }

    private static String cellName(final Way way, final Part part) {
        return "robot-" + way.key() + "-" + part.name();
    }

    private static CudaBench.Other start(final GpuBench bench, final Way way, final Part part,
        final GpuBench.Daemon daemon) throws IOException {
        final String cellName = cellName(way, part);
        final List<String> command = command(bench, part, way.daemon() == null ? "none" : "segment",
            jobs(bench, part), (int) Math.ceil(WARM_MS / part.periodMs()));
        command.addAll(List.of("--name", cellName, "--samples", bench.samples(cellName).toString()));
        return bench.cuda().startCounting(cellName, -1, page -> {
            final List<String> all = new ArrayList<>(GpuBench.in(daemon, command));
            all.addAll(List.of("--own-page", page.toString(), "--gate"));
            return all;
        });
    }

    private static ObjectNode finished(final GpuBench bench, final Way way, final Part part,
        final CudaBench.Other process, final JsonNode alone) throws InterruptedException, TimeoutException {
        final int status = process.child().awaitExit(LIMIT_S);
        try {
            if (!(JSON.readTree(process.child().lastLine()) instanceof ObjectNode task) || !task.has("response_ns")) {
                throw new IllegalStateException(cellName(way, part) + " failed with status " + status + ": "
                    + process.child().said());
            }
            GpuBench.compare(task, alone, 0);
            task.put("task", part.name()).put("priority", part.priority()).put("exit_status", status);
            if (bench.plan().samples() != null) {
                task.put("samples", bench.samples(cellName(way, part)).getFileName().toString());
            }
            return task;
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException(cellName(way, part) + " failed with status " + status + ": "
                + process.child().said(), e);
        }
    }

    private static long kernels(final List<CudaBench.Other> running) {
        return running.stream().mapToLong(CudaBench.Other::kernels).sum();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/**
 * Periodic real-time processes of different rank that run at the same time and begin their jobs together. All stay
 * until the last has done its jobs: while the driver frees a context, other jobs are late.
 */
final class PeriodicProcesses {
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
     * @param periodMs of the jobs
     * @param priority of its task
     * @param share    of the jobs that fit into the time of a cell, for processes that leave jobs out
     * @param options  more for gpuseg-bench-rt
     */
    record Part(String name, double kernelMs, int kernels, double periodMs, int priority, double share,
        List<String> options) {
        Part(final String name, final double kernelMs, final int kernels, final double periodMs, final int priority,
            final String... options) {
            this(name, kernelMs, kernels, periodMs, priority, 1, List.of(options));
        }
    }

    private final GpuBench bench;
    /** Of the scenario; names files. */
    private final String scenario;
    private final List<String> environment;

    PeriodicProcesses(final GpuBench bench, final String scenario) {
        this(bench, scenario, List.of());
    }

    /** With a command before that of each process that runs {@link #together} with others. */
    PeriodicProcesses(final GpuBench bench, final String scenario, final List<String> environment) {
        this.bench = bench;
        this.scenario = scenario;
        this.environment = environment;
    }

    /** Each by itself, with nobody else on the GPU and without a daemon. */
    void alone(final List<Part> parts, final ArrayNode into)
        throws IOException, InterruptedException, TimeoutException {
        for (final Part part : parts) {
            final int jobs = Math.max(ALONE_JOBS_MIN, jobs(part) / ALONE_PART);
            into.add(bench.measured(scenario + "-alone-" + part.name(), command(part, "none", jobs, 0), null)
                .put("task", part.name()));
        }
    }

    /**
     * All at the same time, with marks if there is a daemon, which is started for them.
     *
     * @param key     of the cell, in names of files
     * @param parts   the processes
     * @param alone   what {@link #alone} gave for processes of the same order
     * @param daemon  options of the daemon; null = none
     * @param running best-effort processes, whose kernels are counted
     * @return figures of each process, late jobs, kernels of the others; with a daemon what it kept free
     */
    ObjectNode together(final String key, final List<Part> parts, final JsonNode alone, final List<String> daemon,
        final List<CudaBench.Other> running) throws IOException, InterruptedException, TimeoutException {
        try (GpuBench.Daemon held = daemon == null ? null : bench.startDaemon(daemon)) {
            return together(key, parts, alone, held, null, running);
        }
    }

    /**
     * The same with a daemon that runs.
     *
     * @param held null = none
     * @param exec gives the options of {@code gpuseg exec} for each process; null = marks if there is a daemon
     */
    ObjectNode together(final String key, final List<Part> parts, final JsonNode alone, final GpuBench.Daemon held,
        final Function<Part, List<String>> exec, final List<CudaBench.Other> running)
        throws IOException, InterruptedException, TimeoutException {
        final List<CudaBench.Other> started = new ArrayList<>();
        try {
            for (final Part part : parts) {
                started.add(start(key, part, held, exec));
            }
            PeriodicScenario.awaitSetUp(started);
            final long kernelsBefore = kernels(running);
            final long fromNs = System.nanoTime();
            started.forEach(CudaBench.Other::openGate);
            for (final CudaBench.Other process : started) {
                process.awaitDone(LIMIT_S);
            }
            final double tookNs = System.nanoTime() - fromNs;
            final double othersPerMs = (kernels(running) - kernelsBefore) * NS_PER_MS / tookNs;
            final ObjectNode cell = JSON.createObjectNode();
            if (held != null) {
                figures(AdminClient.ask(RuntimeDirectory.find(held.directory().toString()),
                    AdminClient.command("status")), tookNs, cell);
            }
            started.forEach(CudaBench.Other::askToStop);
            final ArrayNode tasks = cell.putArray("tasks");
            long late = 0;
            for (int i = 0; i < parts.size(); i++) {
                final ObjectNode task = finished(key, parts.get(i), started.get(i), alone.get(i));
                late += task.path("missed").asLong() + task.path("skipped").asLong();
                tasks.add(task);
            }
            cell.put("late_jobs", late).put("others_per_ms", othersPerMs);
            return cell;
        } finally {
            CudaBench.close(started);
        }
    }

    /** What the daemon says of the whole cell. */
    private static void figures(final JsonNode status, final double tookNs, final ObjectNode cell) {
        for (final String name : List.of("anticipated", "anticipations_wasted", "anticipations_over_budget")) {
            cell.put(name, AdminClient.counter(status, name));
        }
        cell.put("kept_free_share", GpuBench.rounded(AdminClient.counter(status, "kept_free_ns") / tookNs));
    }

    private int jobs(final Part part) {
        return (int) Math.ceil(bench.plan().jobs() * MS_PER_JOB * part.share() / part.periodMs());
    }

    private List<String> command(final Part part, final String mode, final int jobs, final int warm) {
        final List<String> command = bench.realTimeCommand(mode, part.kernelMs(), jobs);
        command.addAll(List.of("--period-ms", Double.toString(part.periodMs()), "--graph",
            Integer.toString(part.kernels()), "--warm", Integer.toString(warm), "--jitter-ms", "0", "--priority",
            Integer.toString(part.priority())));
        command.addAll(part.options());
        return command;
    }

    private String cellName(final String key, final Part part) {
        return scenario + "-" + key + "-" + part.name();
    }

    private CudaBench.Other start(final String key, final Part part, final GpuBench.Daemon daemon,
        final Function<Part, List<String>> exec) throws IOException {
        final String cellName = cellName(key, part);
        final List<String> command = command(part, daemon == null || exec != null ? "none" : "segment", jobs(part),
            (int) Math.ceil(WARM_MS / part.periodMs()));
        command.addAll(List.of("--name", cellName, "--samples", bench.samples(cellName).toString()));
        final List<String> asTask = exec == null ? command : GpuBench.exec(cellName, exec.apply(part), command);
        return bench.cuda().startCounting(cellName, page -> {
            final List<String> all = new ArrayList<>(environment);
            all.addAll(GpuBench.in(daemon, asTask));
            all.addAll(List.of("--own-page", page.toString(), "--gate", "--stay"));
            return all;
        });
    }

    private ObjectNode finished(final String key, final Part part, final CudaBench.Other process, final JsonNode alone)
        throws InterruptedException, TimeoutException {
        final int status = process.child().awaitExit(LIMIT_S);
        final String cellName = cellName(key, part);
        try {
            if (!(JSON.readTree(process.child().lastLine()) instanceof ObjectNode task) || !task.has("response_ns")) {
                throw new IllegalStateException(cellName + " failed with status " + status + ": "
                    + process.child().said());
            }
            GpuBench.compare(task, alone, 0);
            task.put("task", part.name()).put("priority", part.priority()).put("exit_status", status);
            if (bench.plan().samples() != null) {
                task.put("samples", bench.samples(cellName).getFileName().toString());
            }
            return task;
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException(cellName + " failed with status " + status + ": "
                + process.child().said(), e);
        }
    }

    private static long kernels(final List<CudaBench.Other> running) {
        return running.stream().mapToLong(CudaBench.Other::kernels).sum();
    }
}

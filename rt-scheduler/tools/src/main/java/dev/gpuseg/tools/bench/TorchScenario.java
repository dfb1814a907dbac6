/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeoutException;

/**
 * A PyTorch program as users write it, beside three trainings: by the driver alone, marked by hand, and under
 * {@code gpuseg exec}. Under {@code exec} also without trainings: what that costs. In every cell the program must
 * compute what it computes alone.
 *
 * @param name     of the scenario
 * @param program  of {@code rt-scheduler/native/gpu-bench/workload.py}
 * @param periodMs of its jobs
 */
record TorchScenario(String name, String program, int periodMs) implements GpuScenario {
    private static final List<String> TRAININGS = List.of("train-cnn", "train-vit", "train-llm");
    private static final List<String> REAL_TIME = List.of("--priority", "80");
    private static final List<String> BEST_EFFORT = List.of("--best-effort");
    private static final String MARKS = "--marks";

    /** The trainings, and what they do undisturbed. */
    private record Load(List<CudaBench.Other> running, double perNs) {
        static final Load NONE = new Load(List.of(), 0);
    }

    /** Why programs of PyTorch cannot run here. */
    static Optional<String> obstacle(final GpuBench bench) throws InterruptedException, TimeoutException {
        final CudaBench.Answer answer;
        try {
            answer = bench.cuda().answer("python", List.of(bench.plan().python(), "-c",
                "import torch; print('CUDA ' + str(torch.cuda.is_available()))"));
        } catch (final IllegalStateException e) {
            return Optional.of(e.getMessage());
        }
        if (answer.status() != 0) {
            return Optional.of(bench.plan().python() + " has no torch; install it or name another --python");
        }
        return answer.lastLine().equals("CUDA True") ? Optional.empty()
            : Optional.of("torch of " + bench.plan().python() + " finds no GPU");
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        final Optional<String> obstacle = obstacle(bench);
        if (obstacle.isPresent()) {
            into.put("not_run", obstacle.get());
            return;
        }
        final List<GpuStrategy> chosen = bench.plan().strategies();
        into.put("program", program).put("period_ms", periodMs);
        into.set("alone", bench.measured(name + "-alone", workload(bench), null));
        into.putArray("cells");
        if (chosen.contains(GpuStrategy.EXEC)) {
            try (GpuBench.Daemon daemon = bench.startDaemon(GpuStrategy.EXEC.daemonOptions())) {
                underExec(bench, into, daemon, GpuStrategy.EXEC.title(), REAL_TIME, Load.NONE);
            }
        }
        beside(bench, into, null, load -> {
            if (chosen.contains(GpuStrategy.NONE)) {
                cell(bench, into, null, GpuStrategy.NONE.title(), workload(bench), load);
            }
            if (chosen.contains(GpuStrategy.OPTIMISTIC) || chosen.contains(GpuStrategy.EXEC)) {
                try (GpuBench.Daemon daemon = bench.startDaemon(List.of())) {
                    byDaemon(bench, into, daemon, load);
                }
            }
        });
        if (chosen.contains(GpuStrategy.HELD)) {   // only launches under exec can be held
            try (GpuBench.Daemon daemon = bench.startDaemon(GpuStrategy.HELD.daemonOptions())) {
                beside(bench, into, daemon,
                    load -> underExec(bench, into, daemon, GpuStrategy.HELD.title(), REAL_TIME, load));
            }
        }
    }

    private void byDaemon(final GpuBench bench, final ObjectNode into, final GpuBench.Daemon daemon, final Load load)
        throws IOException, InterruptedException {
        if (bench.plan().strategies().contains(GpuStrategy.OPTIMISTIC)) {
            final List<String> marked = workload(bench);
            marked.add(MARKS);
            cell(bench, into, daemon, GpuStrategy.OPTIMISTIC.title(), marked, load);
        }
        if (bench.plan().strategies().contains(GpuStrategy.EXEC)) {
            underExec(bench, into, daemon, GpuStrategy.EXEC.title(), REAL_TIME, load);
            final List<String> declared = new ArrayList<>(REAL_TIME);
            declared.addAll(List.of("--period", periodMs + "ms"));
            underExec(bench, into, daemon, GpuStrategy.EXEC.title() + ", period declared", declared, load);
        }
    }

    /** What is measured beside trainings. */
    private interface Beside {
        void run(Load load) throws IOException, InterruptedException, TimeoutException;
    }

    /** Runs the trainings meanwhile; under {@code exec} if there is a daemon. */
    private void beside(final GpuBench bench, final ObjectNode into, final GpuBench.Daemon daemon, final Beside body)
        throws IOException, InterruptedException, TimeoutException {
        final List<CudaBench.Other> trainings = new ArrayList<>();
        try {
            for (final String training : TRAININGS) {
                trainings.add(bench.cuda().startCounting(name + "-" + training, page -> {
                    final List<String> command = List.of(bench.plan().python(), file(), training, "--page",
                        page.toString());
                    return daemon == null ? command
                        : GpuBench.in(daemon, GpuBench.exec(training, BEST_EFFORT, command));
                }));
            }
            bench.watch(trainings, into, running -> body.run(new Load(running, bench.undisturbedPerNs(running))));
        } finally {
            CudaBench.close(trainings);
        }
    }

    private void underExec(final GpuBench bench, final ObjectNode into, final GpuBench.Daemon daemon,
        final String title, final List<String> options, final Load load) throws IOException, InterruptedException {
        cell(bench, into, daemon, title, GpuBench.exec(program, options, workload(bench)), load);
    }

    private void cell(final GpuBench bench, final ObjectNode into, final GpuBench.Daemon daemon, final String title,
        final List<String> command, final Load load) throws IOException, InterruptedException {
        final ArrayNode cells = into.withArray("cells");
        final JsonNode alone = into.path("alone");
        final List<String> all = new ArrayList<>(command);
        all.addAll(GpuBench.pages(load.running()));
        bench.cell(title, load.running().size(), cells, () -> {
            final ObjectNode cell = bench.measured(name + "-" + cells.size(), all, daemon);
            GpuBench.compare(cell, alone, load.perNs());
            if (!cell.path("digest").equals(alone.path("digest"))) {
                cell.put("wrong", cell.path("wrong").asLong() + 1);
            }
            return cell.put("others_wrong", load.running().stream().mapToLong(CudaBench.Other::wrong).sum());
        });
    }

    private List<String> workload(final GpuBench bench) {
        return new ArrayList<>(List.of(bench.plan().python(), file(), program, "--jobs",
            Integer.toString(bench.plan().jobs()), "--period", Integer.toString(periodMs)));
    }

    /** The programs. */
    static String file() {
        final String root = System.getProperty("gpuseg.root", "");
        return Path.of(root.isEmpty() ? "." : root, "rt-scheduler", "native", "gpu-bench", "workload.py").toString();
    }
}

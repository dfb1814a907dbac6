/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeoutException;

/** ResNet-50 inference against trainings, with the PyTorch programs of {@code segment-api/examples/cuda}. */
final class TorchScenario implements GpuScenario {
    private static final int TRAININGS = 3;
    private static final String TRAINING_S = "600";
    private static final List<GpuStrategy> STRATEGIES =
        List.of(GpuStrategy.NONE, GpuStrategy.OPTIMISTIC);

    @Override
    public String name() {
        return "pytorch";
    }

    /** Why it cannot run here, or empty. */
    private static String obstacle(final GpuBench bench) throws InterruptedException, TimeoutException {
        final CudaBench.Answer answer;
        try {
            answer = bench.cuda().answer("python", List.of(bench.plan().python(), "-c",
                "import torch, torchvision; print('CUDA ' + str(torch.cuda.is_available()))"));
        } catch (final IllegalStateException e) {
            return e.getMessage();
        }
        if (answer.status() != 0) {
            return bench.plan().python() + " has no torch and torchvision; install them or name another --python";
        }
        return answer.lastLine().equals("CUDA True") ? "" : "torch of " + bench.plan().python() + " finds no GPU";
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        final String obstacle = obstacle(bench);
        if (!obstacle.isEmpty()) {
            into.put("not_run", obstacle);
            return;
        }
        final ObjectNode alone = bench.measured("pytorch-alone", inference(bench, List.of("--plain")), null);
        into.set("alone", alone);
        final ArrayNode cells = into.putArray("cells");
        final List<CudaBench.Other> trainings = new ArrayList<>();
        try {
            for (int i = 0; i < TRAININGS; i++) {
                trainings.add(bench.cuda().startCounting("training-" + i, bench.plan().user(),
                    page -> List.of(bench.plan().python(), example("resnet_training.py"), "--page", page.toString(),
                        TRAINING_S)));
            }
            bench.watch(trainings, into, running -> {
                final double rate = bench.undisturbedPerNs(running);
                for (final GpuStrategy s : STRATEGIES) {
                    if (bench.plan().strategies().contains(s)) {
                        bench.cell(s.title(), TRAININGS, cells,
                            () -> against(bench, s, running, rate, alone));
                    }
                }
            });
        } finally {
            CudaBench.close(trainings);
        }
    }

    private static ObjectNode against(final GpuBench bench, final GpuStrategy s, final List<CudaBench.Other> running,
        final double rate, final ObjectNode alone) throws IOException, InterruptedException, TimeoutException {
        try (GpuBench.Daemon daemon = s.needsDaemon() ? bench.startDaemon(s.daemonOptions()) : null) {
            final List<String> options = new ArrayList<>(GpuBench.pages(running));
            if (daemon == null) {
                options.add("--plain");
            }
            final ObjectNode cell =
                bench.measured("pytorch-" + s.name().toLowerCase(Locale.ROOT), inference(bench, options), daemon);
            GpuBench.compare(cell, alone, rate);
            return cell.put("others_wrong", running.stream().mapToLong(CudaBench.Other::wrong).sum());
        }
    }

    private static List<String> inference(final GpuBench bench, final List<String> options) {
        final Path api = Path.of(root(), "segment-api");
        final List<String> command = new ArrayList<>(List.of("env", "PYTHONPATH=" + api.resolve("python"),
            "GPUSEG_LIBRARY=" + api.resolve("build/libgpuseg.so.0"), bench.plan().python(),
            example("resnet_inference.py"), Integer.toString(bench.plan().jobs()), "--json"));
        command.addAll(options);
        return command;
    }

    private static String root() {
        final String root = System.getProperty("gpuseg.root", "");
        return root.isEmpty() ? "." : root;
    }

    private static String example(final String name) {
        return Path.of(root(), "segment-api", "examples", "cuda", name).toString();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.process.InstanceLock;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.nvidia.NvidiaMachine;
import dev.gpuseg.mechanisms.nvidia.NvidiaSurvey;
import dev.gpuseg.tools.bench.CudaBench;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.MemoryDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/** A real NVIDIA GPU, with the CUDA programs of the bench. */
public final class NvidiaCalibration extends DaemonCosts {
    private static final int LIMIT_S = 60;
    /** A daemon warms up first, which takes as long as the machine is busy. */
    private static final int START_LIMIT_S = 180;
    private static final long RATE_MS = 3_000;
    private static final double KERNEL_MS = 1;
    private static final double OTHER_MS = 20;
    private static final long SETTLE_MS = 500;
    private static final double CHURN_KERNEL_MS = 0.5;
    /** From its start, so most of it is spent on making the context. */
    private static final String CHURN_S = "1";
    private static final double MS_PER_S = 1e3;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path root;
    private final CudaBench cuda;
    private final String perIteration;
    private final String idle;
    private final int held;
    private int number;
    private long timesliceNs;

    public NvidiaCalibration(final String idle, final int held) throws IOException, InterruptedException,
        TimeoutException {
        final MechanismVerdict verdict = NvidiaSurvey.verdict();
        if (!verdict.usable()) {
            throw new IllegalStateException("calibrate: " + verdict.reason());
        }
        InstanceLock.requireNoDaemon("nvidia");
        this.idle = idle;
        this.held = held;
        root = MemoryDirectory.create("gpuseg-calibrate-");
        cuda = new CudaBench(root);
        perIteration = cuda.nsPerIteration();
    }

    @Override
    public long[] responses(final Mode mode, final int jobs) throws IOException, InterruptedException,
        TimeoutException {
        final List<CudaBench.Other> others = others(mode == Mode.ALONE ? 0 : mode == Mode.SHARED ? 1 : held);
        final boolean scheduled = mode.isScheduled();
        final Path directory = root.resolve("run" + number);
        final Path samples = root.resolve("samples" + number++ + ".csv");
        try (Child daemon = scheduled ? daemon(directory, mode) : null;
            Disturbances disturbances = scheduled ? disturb() : null) {
            final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_DIR=" + directory,
                CudaBench.program("rt"), "--mode", !scheduled ? "none" : mode == Mode.BLOCKING ? "wait" : "segment",
                "--kernel-ms", Double.toString(KERNEL_MS), "--per", perIteration, "--jobs", Integer.toString(jobs),
                "--seed", "1", "--samples", samples.toString()));
            if (mode == Mode.TURNS) {
                command.addAll(List.of("--warm", Integer.toString(WARM)));
            }
            if (!others.isEmpty()) {
                command.addAll(List.of("--pages", others.stream().map(o -> o.file().toString())
                    .collect(Collectors.joining(","))));
            }
            if (JSON.readTree(cuda.run("measured process", command)).path("wrong").asLong() != 0) {
                throw new IllegalStateException("calibrate: kernels gave wrong results");
            }
            end(disturbances);
            if (daemon != null) {
                daemon.terminate();
                daemon.awaitExit(LIMIT_S);
                add(mode, RuntimeDirectory.resolve(directory.toString()).journal());
            }
            return Files.readAllLines(samples).stream().skip(1).mapToLong(line -> Long.parseLong(line.split(",")[0]))
                .toArray();
        } finally {
            CudaBench.stop(others);
        }
    }

    /** Each makes a context of its own, works for a moment and ends. */
    private Disturbances disturb() throws IOException {
        final int run = number;
        return churnPerSecond() == 0 ? null : new Disturbances(churnPerSecond(), i -> List.of(CudaBench.program("be"),
            root.resolve("churn" + run + "-" + i).toString(), Double.toString(CHURN_KERNEL_MS), perIteration, CHURN_S),
            Disturbances.find(Disturbances.MONITOR, System.getenv("PATH")));
    }

    private Child daemon(final Path directory, final Mode mode) throws IOException, InterruptedException {
        final List<String> options = new ArrayList<>(List.of("--dir", directory.toString(), "--mechanism", "nvidia",
            "--anticipate", "off", "--idle", idle));
        options.addAll(policy(root.resolve("policy-" + mode + ".yaml"), mode));
        final Child daemon = Child.start("gpuseg run", JavaCommand.daemon(options), root.resolve("errors"));
        daemon.await("ready", START_LIMIT_S);
        Thread.sleep(SETTLE_MS);   // it looks at the processes that run already
        return daemon;
    }

    private List<CudaBench.Other> others(final int count) throws IOException, InterruptedException {
        final List<CudaBench.Other> running = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            running.add(cuda.startOther(number + "-" + i, OTHER_MS, perIteration, -1));
        }
        for (final CudaBench.Other other : running) {
            other.awaitReady();
        }
        return running;
    }

    @Override
    public double rate(final int processes) throws IOException, InterruptedException, TimeoutException {
        final List<CudaBench.Other> running = others(processes);
        number++;
        try {
            timesliceNs = NvidiaSurvey.timesliceNs(running.get(0).pid());
            final long before = running.stream().mapToLong(CudaBench.Other::kernels).sum();
            final long fromNs = System.nanoTime();
            Thread.sleep(RATE_MS);
            final long kernels = running.stream().mapToLong(CudaBench.Other::kernels).sum() - before;
            return kernels / ((System.nanoTime() - fromNs) / 1e6) * MS_PER_S;
        } finally {
            CudaBench.stop(running);
        }
    }

    @Override
    public long timesliceNs() {
        return timesliceNs;
    }

    @Override
    public void describe(final ObjectNode into) {
        into.put("mechanism", "nvidia").put("simulated", !NvidiaSurvey.isRealDriver())
            .put("driver", NvidiaSurvey.verdict().reason())
            .put("driver_version", NvidiaMachine.driverVersion()).put("gpu", NvidiaMachine.modelNames());
    }

    @Override
    public void close() {
        RuntimeDirectory.deleteTree(root);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.sim.SimMechanism;
import dev.gpuseg.tools.demo.Workload;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.process.SimulatedMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The virtual GPU, with a daemon and tasks of its own. */
public final class SimCalibration extends DaemonCosts {
    private static final int LIMIT_S = 60;
    private static final long LEAD_NS = 300_000_000;
    private static final int RATE_MS = 2_000;
    private static final int OTHER_MS = 20;
    private static final int CHURN_MS = 200;
    private static final long NS_PER_MS = 1_000_000;
    private static final int PER_SECOND = 1_000_000_000;
    private static final String KERNEL = "gpu:0us+500us";

    private final Path root;
    private final Workload like;
    private final String idle;
    private final int held;
    private int number;

    public SimCalibration(final Workload like, final String idle, final int held) throws IOException {
        this.like = like;
        this.idle = idle;
        this.held = held;
        root = MemoryDirectory.create("gpuseg-calibrate-");
    }

    @Override
    public long[] responses(final Mode mode, final int jobs) throws IOException, InterruptedException,
        TimeoutException {
        final List<long[]> all = phase(mode, (jobs + warm(mode)) * KERNEL_EVERY_MS, KERNEL,
            mode == Mode.ALONE ? 0 : mode == Mode.SHARED ? 1 : held);
        return Arrays.copyOfRange(all.get(0), Math.min(warm(mode), all.get(0).length), all.get(0).length);
    }

    private static int warm(final Mode mode) {
        return mode == Mode.TURNS ? WARM : 0;
    }

    @Override
    public double rate(final int processes) throws IOException, InterruptedException, TimeoutException {
        final List<long[]> all = phase(Mode.SHARED, RATE_MS, "", processes);
        int kernels = 0;
        for (final long[] responses : all) {
            for (int i = 0; i < responses.length; i++) {
                // job i is released at i * OTHER_MS / 2; what is complete after the end does not count
                kernels += i * OTHER_MS / 2 * NS_PER_MS + responses[i] <= RATE_MS * NS_PER_MS ? 1 : 0;
            }
        }
        return kernels * (double) PER_SECOND / (RATE_MS * NS_PER_MS);
    }

    /** One run in a directory of its own; responses of the measured task (if any), then of each other. */
    private List<long[]> phase(final Mode mode, final int durationMs, final String measured, final int others)
        throws IOException, InterruptedException, TimeoutException {
        final Path directory = Files.createDirectories(root.resolve("run" + number++));
        final boolean scheduled = mode.isScheduled();
        try (SimulatedMachine machine = new SimulatedMachine(directory, directory, true)) {
            machine.startGpu(like.gpuOptions());
            final List<String> options = new ArrayList<>(List.of("--anticipate", "off", "--idle", idle));
            if (scheduled) {
                options.addAll(policy(directory.resolve("policy.yaml"), mode));
            } else {
                options.addAll(List.of("--policy", PolicyCatalog.builtIn().observing().name()));
            }
            options.addAll(DaemonSettings.write(directory.resolve("settings.yaml"),
                "optimistic: " + (mode != Mode.BLOCKING)));
            machine.startDaemon(mode == Mode.TURNS ? List.of("-D" + SimMechanism.SLICES_PROPERTY + "=true")
                : List.of(), options);
            final long startNs = System.nanoTime() + LEAD_NS;
            final List<Child> tasks = new ArrayList<>();
            if (!measured.isEmpty()) {
                tasks.add(task(machine, directory, "measured", 90, KERNEL_EVERY_MS + "ms", measured, startNs,
                    durationMs));
            }
            for (int i = 0; i < others; i++) {   // twice what the GPU can do: it is never idle
                tasks.add(task(machine, directory, "other" + i, 0, OTHER_MS / 2 + "ms", "gpu:0us+" + OTHER_MS + "ms",
                    startNs, durationMs));
            }
            final List<long[]> responses = new ArrayList<>();
            try (Disturbances disturbances = scheduled && churnPerSecond() > 0 ? disturb(directory)
                : null) {
                if (measured.isEmpty()) {
                    TimeUnit.NANOSECONDS.sleep(startNs + durationMs * NS_PER_MS - System.nanoTime());
                } else {
                    tasks.get(0).awaitExit(LIMIT_S + durationMs / 1000);
                }
                end(disturbances);
            }
            for (final Child other : measured.isEmpty() ? tasks : tasks.subList(1, tasks.size())) {
                other.terminate();   // what it has not done by now is of no interest
            }
            for (int i = 0; i < tasks.size(); i++) {
                if (tasks.get(i).awaitExit(LIMIT_S) != 0) {
                    throw new IllegalStateException("calibrate: " + tasks.get(i).said());
                }
                responses.add(read(directory.resolve("task-" + (measured.isEmpty() || i > 0
                    ? "other" + (measured.isEmpty() ? i : i - 1) : "measured") + ".csv")));
            }
            machine.stopDaemon();
            if (scheduled) {
                add(mode, RuntimeDirectory.resolve(directory.toString()).journal());
            }
            return responses;
        }
    }

    /** Each registers, opens a task, works for a moment and ends. No monitor knows a virtual GPU. */
    private Disturbances disturb(final Path directory) throws IOException {
        return new Disturbances(churnPerSecond(), i -> List.of(
            NativePrograms.named("gpuseg-demo-task").toString(), "--dir", directory.toString(), "--name",
            "churn" + i, "--period", "20ms", "--segments", "gpu:0us+1ms", "--cpu-mode", "sleep",
            "--duration", CHURN_MS + "ms"), null);
    }

    private static Child task(final SimulatedMachine machine, final Path directory, final String name,
        final int priority, final String period, final String segments, final long startNs, final int durationMs) {
        final List<String> command = new ArrayList<>(List.of("--priority", Integer.toString(priority), "--period",
            period, "--segments", segments, "--start-at", Long.toString(startNs), "--duration", durationMs + "ms",
            "--cpu-mode", "sleep", "--out", directory.resolve("task-" + name + ".csv").toString()));
        if (priority > 0) {
            command.addAll(List.of("--scheduling", "fifo:" + priority));
        }
        return machine.startTask(name, command);
    }

    private static long[] read(final Path file) throws IOException {
        return Files.readAllLines(file).stream().skip(1).mapToLong(line -> Long.parseLong(line.split(",")[1]))
            .toArray();
    }

    @Override
    public void describe(final ObjectNode into) {
        into.put("mechanism", "sim").put("simulated", true).put("driver", "virtual GPU, " + like.describeGpu())
            .put("driver_version", "").put("gpu", "virtual GPU");
    }

    @Override
    public void close() {
        RuntimeDirectory.deleteTree(root);
    }
}

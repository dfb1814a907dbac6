/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.dispatch.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.bench.EnforcementCosts;
import dev.gpuseg.tools.demo.Workload;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.RealTime;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The virtual GPU, with a daemon and tasks of its own. */
public final class SimCalibration implements CalibrationRig {
    private static final int LIMIT_S = 60;
    private static final long LEAD_NS = 300_000_000;
    private static final int PERIOD_MS = 40;
    private static final int RATE_MS = 2_000;
    private static final int OTHER_MS = 20;
    private static final long NS_PER_MS = 1_000_000;
    private static final int PER_SECOND = 1_000_000_000;
    private static final String KERNEL = "gpu:0us+500us";

    private final Path root;
    private final Workload like;
    private final List<Long> calls = new ArrayList<>();
    private final List<Long> returns = new ArrayList<>();
    private final String idle;
    private final int held;
    private int number;

    public SimCalibration(final Workload like, final String idle, final int held) throws IOException {
        this.like = like;
        this.idle = idle;
        this.held = held;
        final Path memory = Path.of("/dev/shm");
        root = Files.isWritable(memory) ? Files.createTempDirectory(memory, "gpuseg-calibrate-")
            : Files.createTempDirectory("gpuseg-calibrate-");
    }

    @Override
    public long[] responses(final Mode mode, final int jobs) throws IOException, InterruptedException,
        TimeoutException {
        final List<long[]> all = phase(mode, jobs * PERIOD_MS, KERNEL, mode == Mode.ALONE ? 0
            : mode == Mode.SHARED ? 1 : held);
        return all.get(0);
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
        final List<Child> children = new ArrayList<>();
        final boolean scheduled = mode == Mode.BLOCKING || mode == Mode.OPTIMISTIC;
        try {
            final List<String> vgpu = new ArrayList<>(List.of(NativePrograms.named("gpuseg-vgpu").toString(), "--dir",
                directory.toString(), "--scheduling", "fifo:98", "--parent",
                Long.toString(ProcessHandle.current().pid())));
            vgpu.addAll(like.gpuOptions());
            start(children, directory, "vgpu", vgpu).await("ready", LIMIT_S);
            final List<String> daemon = new ArrayList<>(List.of("--dir", directory.toString(), "--mechanism",
                "sim", "--idle", idle, "--policy",
                scheduled ? "fp" : "rr", mode == Mode.BLOCKING ? "--no-optimistic" : "--optimistic"));
            if (RealTime.isPermitted()) {
                daemon.addAll(List.of("--priority", "90"));
            }
            final Child daemonProcess = start(children, directory, "daemon", JavaCommand.daemon(daemon));
            daemonProcess.await("ready", LIMIT_S);
            final long startNs = System.nanoTime() + LEAD_NS;
            final List<Child> tasks = new ArrayList<>();
            if (!measured.isEmpty()) {
                tasks.add(task(children, directory, "measured", 90, PERIOD_MS + "ms", measured, startNs, durationMs));
            }
            for (int i = 0; i < others; i++) {   // twice what the GPU can do: it is never idle
                tasks.add(task(children, directory, "other" + i, 0, OTHER_MS / 2 + "ms", "gpu:0us+" + OTHER_MS + "ms",
                    startNs, durationMs));
            }
            final List<long[]> responses = new ArrayList<>();
            if (measured.isEmpty()) {
                TimeUnit.NANOSECONDS.sleep(startNs + durationMs * NS_PER_MS - System.nanoTime());
            } else {
                tasks.get(0).awaitExit(LIMIT_S + durationMs / 1000);
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
            daemonProcess.terminate();
            daemonProcess.awaitExit(LIMIT_S);
            if (scheduled) {
                final Path journal = RuntimeDirectory.resolve(directory.toString()).journal();
                JournalReader.forEach(journal, event -> {
                    if (event.kind() == EventKind.DISABLE || event.kind() == EventKind.ENABLE) {
                        calls.add(event.arg1());
                    }
                });
                returns.addAll(EnforcementCosts.returns(journal));
            }
            return responses;
        } finally {
            for (int i = children.size() - 1; i >= 0; i--) {
                children.get(i).close();
            }
        }
    }

    private static Child start(final List<Child> children, final Path directory, final String name,
        final List<String> command) {
        final Child child = Child.start(name, command, directory.resolve(name + ".err"));
        children.add(child);
        return child;
    }

    private static Child task(final List<Child> children, final Path directory, final String name, final int priority,
        final String period, final String segments, final long startNs, final int durationMs) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", directory.toString(), "--name", name, "--priority", Integer.toString(priority), "--period",
            period, "--segments", segments, "--start-at", Long.toString(startNs), "--duration", durationMs + "ms",
            "--cpu-mode", "sleep", "--out", directory.resolve("task-" + name + ".csv").toString()));
        if (priority > 0) {
            command.addAll(List.of("--scheduling", "fifo:" + priority));
        }
        return start(children, directory, name, command);
    }

    private static long[] read(final Path file) throws IOException {
        return Files.readAllLines(file).stream().skip(1).mapToLong(line -> Long.parseLong(line.split(",")[1]))
            .toArray();
    }

    @Override
    public long[] calls() {
        return calls.stream().mapToLong(Long::longValue).toArray();
    }

    @Override
    public long[] returns() {
        return returns.stream().mapToLong(Long::longValue).toArray();
    }

    @Override
    public void describe(final ObjectNode into) {
        into.put("mechanism", "sim").put("simulated", true).put("driver", "virtual GPU, " + like.describeGpu());
    }

    @Override
    public void close() {
        RuntimeDirectory.deleteTree(root);
    }
}

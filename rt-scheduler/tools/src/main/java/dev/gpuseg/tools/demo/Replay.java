/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.process.SimulatedMachine;
import dev.gpuseg.tools.trace.RecordedTask;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * Plays recorded tasks again on the virtual GPU, which has the settings of the GCAPS paper, as in the demo. CPU and
 * host parts sleep.
 *
 * @param tasks     what to play
 * @param policy    of the daemon
 * @param policyJar jar in which the daemon finds further policies, null = none
 * @param duration  how long jobs are released
 */
public record Replay(List<RecordedTask> tasks, String policy, Path policyJar, Duration duration) {
    private static final int END_LIMIT_S = 15;
    private static final long LEAD_NS = 600_000_000L;

    /**
     * Starts everything, waits for the end, ends everything.
     *
     * @param kept existing directory, gets the journal and the output of the processes
     * @throws IOException          if a directory cannot be made
     * @throws TimeoutException     if a process does not end
     */
    public void play(final Path kept) throws IOException, InterruptedException, TimeoutException {
        final Path root = MemoryDirectory.create("gpuseg-replay-");
        try (ScratchTree scratch = new ScratchTree(root);
            SimulatedMachine machine = new SimulatedMachine(scratch.path(), kept, true)) {
            machine.startGpu("--timeslice", "1024us", "--switch-cost", "200us", "--disable-cost", "600us",
                "--enable-cost", "200us");
            final List<String> options = new ArrayList<>(List.of("--policy", policy, "--journal",
                kept.resolve("journal").toString()));
            if (policyJar != null) {
                options.addAll(List.of("--policy-jar", policyJar.toAbsolutePath().toString()));
            }
            machine.startDaemon(options.toArray(new String[0]));
            final long startNs = System.nanoTime() + LEAD_NS;
            final List<Child> players = new ArrayList<>();
            for (final RecordedTask task : tasks) {
                players.add(machine.startTask(task.name(), options(task, startNs)));
            }
            for (final Child player : players) {
                if (player.awaitExit(END_LIMIT_S + 2 * (int) duration.toSeconds()) != 0) {
                    throw new IllegalStateException("a task failed: " + player.said());
                }
            }
            if (machine.stopDaemon() != 0) {
                throw new IllegalStateException("the daemon failed: " + machine.daemon().said());
            }
            machine.stopGpu();
        }
    }

    private List<String> options(final RecordedTask task, final long startNs) {
        final List<String> options = new ArrayList<>(List.of("--priority", Integer.toString(task.priority()),
            "--gpu-priority", Integer.toString(task.gpuPriority()), "--period", task.periodNs() + "ns", "--deadline",
            task.deadlineNs() + "ns", "--offset", task.offsetNs() + "ns", "--segments", task.segments(), "--start-at",
            Long.toString(startNs), "--duration", duration.toMillis() + "ms", "--cpu-mode", "sleep"));
        if (task.budgetNs() > 0) {
            options.addAll(List.of("--budget", task.budgetNs() + "ns"));
        }
        if (task.priority() > 0) {
            options.addAll(List.of("--scheduling", "fifo:" + task.priority()));
        }
        return options;
    }
}

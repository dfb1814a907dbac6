/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.process.Polling;
import dev.gpuseg.tools.process.SimulatedMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * How exactly weights and caps of best-effort work are kept: the shares of three endless tasks with weights 1:2:4, and
 * of one with a cap of 25 %, by the virtual GPU's own log. Simulated.
 *
 * @param durationMs of each interval in which shares are measured
 */
public record FairShares(long durationMs) {
    /** Longest turn. */
    public static final String QUANTUM = "10ms";
    private static final int[] WEIGHTS = {100, 200, 400};
    private static final double SUM_OF_WEIGHTS = 700;
    private static final double WEIGHT_LIMIT = 0.03;
    private static final double CAP = 0.25;
    private static final double CAP_LIMIT = 0.02;
    private static final long START_LIMIT_MS = 40_000;
    private static final long SETTLE_MS = 500;
    private static final long LOG_MS = 300;

    /**
     * Starts everything, measures, ends everything.
     *
     * @param into gets the shares and their largest errors
     * @return whether the errors are within 3 % (weights, relative) and 2 % (cap, of the GPU)
     * @throws IOException if a file cannot be written or read
     */
    public boolean measure(final ObjectNode into) throws IOException, InterruptedException {
        final Path root = MemoryDirectory.create("gpuseg-fair-");
        try (ScratchTree scratch = new ScratchTree(root);
            SimulatedMachine machine = new SimulatedMachine(scratch.path(), root, true)) {
            final Path log = root.resolve("vgpu.spans");
            final Path policy = Files.writeString(root.resolve("policy.yaml"), "sharing: turns\nquantum: " + QUANTUM
                + "\n");
            machine.startGpu("--log", log.toString());
            machine.startDaemon("--policy", "fp", "--policy-file", policy.toString());
            final List<Child> weighted = new ArrayList<>();
            for (final int weight : WEIGHTS) {
                weighted.add(endless(machine, "weight-" + weight, weight));
            }
            weights(into, shares(log, weighted));
            for (final Child child : weighted) {
                child.close();
            }
            final Child capped = endless(machine, "capped", WEIGHTS[0]);
            cap(machine, "capped", "25ms/100ms");
            final double alone = shares(log, List.of(capped))[0];
            final Child other = endless(machine, "other", WEIGHTS[0]);
            final double[] beside = shares(log, List.of(capped, other));
            into.put("cap_alone", alone).put("cap_beside_another", beside[0]).put("the_other", beside[1]);
            into.put("worst_cap_error", Math.max(Math.abs(alone - CAP), Math.abs(beside[0] - CAP)));
        }
        return into.path("worst_weight_error").asDouble() <= WEIGHT_LIMIT
            && into.path("worst_cap_error").asDouble() <= CAP_LIMIT;
    }

    private static void weights(final ObjectNode into, final double[] shares) {
        final double sum = shares[0] + shares[1] + shares[2];
        double worst = 0;
        for (int i = 0; i < shares.length; i++) {
            final double ideal = WEIGHTS[i] / SUM_OF_WEIGHTS;
            into.put("share_of_weight_" + WEIGHTS[i], shares[i] / sum);
            worst = Math.max(worst, Math.abs(shares[i] / sum / ideal - 1));
        }
        into.put("gpu_in_use", sum).put("worst_weight_error", worst);
    }

    private static Child endless(final SimulatedMachine machine, final String name, final int weight)
        throws InterruptedException {
        final Child child = machine.startTask(name, List.of("--priority", "0", "--period", "1000s", "--segments",
            "gpu:0ms+1000s", "--duration", "1000s", "--cpu-mode", "sleep", "--weight", Integer.toString(weight)));
        if (!Polling.until(() -> hasBegun(machine, name), START_LIMIT_MS)) {
            throw new IllegalStateException("task " + name + " does not begin: " + child.said());
        }
        return child;
    }

    private static boolean hasBegun(final SimulatedMachine machine, final String name) {
        for (final JsonNode task : machine.status().path("tasks")) {
            if (task.path("name").asText().equals(name)) {
                return List.of("running", "preempted").contains(task.path("state").asText());
            }
        }
        return false;
    }

    private static void cap(final SimulatedMachine machine, final String task, final String cap) {
        final ObjectNode request = AdminClient.command("policy");
        request.putObject("settings").putArray("tasks").addObject().put("task", task).put("cap", cap);
        AdminClient.ask(machine.directory(), request);
    }

    private double[] shares(final Path log, final List<Child> tasks) throws IOException, InterruptedException {
        TimeUnit.MILLISECONDS.sleep(SETTLE_MS);
        final long fromNs = System.nanoTime();
        TimeUnit.MILLISECONDS.sleep(durationMs);
        final long toNs = System.nanoTime();
        TimeUnit.MILLISECONDS.sleep(LOG_MS);   // the turn in progress is logged when it ends
        final double[] shares = new double[tasks.size()];
        for (int i = 0; i < shares.length; i++) {
            shares[i] = GpuShare.of(log, tasks.get(i).pid(), fromNs, toNs);
        }
        return shares;
    }
}

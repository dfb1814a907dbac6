/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.IntegerMath;
import java.util.List;
import java.util.Set;

/**
 * Key {@code amd} of a platform: the interface by which the daemon disables processes on an AMD GPU, and the cost of
 * one change. Epsilon and the stops caused by other processes follow from them ({@code docs/stalls.md}). A number that
 * is not given is unknown, and a needed number that is unknown is refused: this project has measured no AMD GPU.
 */
final class AmdCosts {
    /** Processes of one call of the kernel patch's device. */
    static final int BATCH = 64;

    /** What {@code interface} was called in profiles of earlier versions. */
    private static final Set<String> KEYS =
        Set.of("interface", "mode", "command", "change", "contexts", "queues", "foreign");
    private static final int MOST = 4096;
    private static final String HOW = "; measure the longest on this machine (kmod-patch/amdkfd reports its own) and "
        + "write it";

    private static final List<String> INTERFACES = List.of("agent", "gate", "kfd");
    private static final List<String> MODES = List.of("hws", "mes", "no-hws");

    private final Node node;
    private final String access;
    private final String mode;

    AmdCosts(final Node node) throws InvalidFileException {
        this.node = node.requireMapping(KEYS, "{interface: kfd, mode: hws, …}");
        access = word("interface", "how processes are disabled (gpuseg doctor says it)", INTERFACES);
        mode = word("mode", "how queues reach the hardware (gpuseg doctor says it)", MODES);
    }

    static boolean isUnknown(final Node value) {
        return value == null || "unknown".equals(value.text());
    }

    private String word(final String key, final String what, final List<String> known) throws InvalidFileException {
        final Node value = node.get(key);
        if (isUnknown(value)) {
            throw (value == null ? node : value).refusal("platform: amd: " + key + " is unknown: " + what
                + "; write one of " + String.join(", ", known));
        }
        if (value.text() == null || !known.contains(value.text())) {
            throw value.refuse("is " + value.show() + "; write one of " + String.join(", ", known));
        }
        return value.text();
    }

    /** A duration, here or elsewhere under platform, that must be known. */
    long required(final Node value, final String name, final String what) throws InvalidFileException {
        if (isUnknown(value)) {
            throw (value == null ? node : value).refusal("platform: " + name + " is unknown: " + what + HOW);
        }
        return value.durationNs();
    }

    private long time(final String key, final String what) throws InvalidFileException {
        return required(node.get(key), "amd: " + key, what);
    }

    private long count(final String key, final String what) throws InvalidFileException {
        final Node value = node.get(key);
        if (isUnknown(value)) {
            throw (value == null ? node : value).refusal("platform: amd: " + key + " is unknown: " + what
                + "; write the most that there can be, or write epsilon");
        }
        return value.integer(1, MOST);
    }

    private String unit() {
        return mode.equals("hws") ? "one unmapping of all queues of the GPU and mapping of a new runlist"
            : mode.equals("mes") ? "one message to the MES firmware, for one queue"
                : "one queue's HQD unloaded or loaded";
    }

    /** From the decision until the hardware obeys, where no measured epsilon is given. */
    long epsilonNs() throws InvalidFileException {
        if (access.equals("gate")) {
            return 0;
        }
        final long change = time("change", unit());
        final long command = time("command", "from a decision to the first change begun");
        final long contexts = count("contexts", "processes with queues on this GPU, unregistered ones included");
        final long changes;
        if (!mode.equals("hws") || access.equals("agent")) {
            changes = contexts * count("queues", "queues of one process that are switched");
        } else {
            changes = IntegerMath.ceilDiv(contexts, BATCH) + 1;   // the contexts to disable, then those to enable
        }
        return Math.addExact(command, Math.multiplyExact(changes, change));
    }

    /** Longest stop that a change of queues by another process causes; 0 = none. */
    long stallNs() throws InvalidFileException {
        return stallPeriodNs() == 0 ? 0 : time("change", unit());
    }

    /** Shortest time from one such change to the next; 0 = none. */
    long stallPeriodNs() throws InvalidFileException {
        if (!mode.equals("hws") && access.equals("gate")) {
            return 0;   // it changes its own queue only, and there are no updates to delay
        }
        final Node value = node.get("foreign");
        if (value != null && "none".equals(value.text())) {
            return 0;
        }
        return required(value, "amd: foreign", "any process that makes or destroys a queue, and any eviction by the "
            + "driver, " + (mode.equals("hws") ? "stops all queues of the GPU" : "can delay an update")
            + ": the shortest time between two of these, or none");
    }
}

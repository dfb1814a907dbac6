/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.IntegerMath;
import java.util.Set;

/**
 * Key {@code amd} of a platform: how the daemon takes processes off an AMD GPU, what one change costs, and so epsilon
 * and the stops that others cause. Derivation: {@code docs/stalls.md}. A number that is not given is unknown, and an
 * unknown number that is needed is refused: no AMD GPU was measured by this project.
 */
final class AmdCosts {
    /** Processes of one call of the kernel patch's device. */
    static final int BATCH = 64;

    private static final Set<String> KEYS =
        Set.of("interface", "mode", "command", "change", "contexts", "queues", "foreign");
    private static final int MOST = 4096;
    private static final String HOW = "; measure the longest on this machine (kmod-patch/amdkfd reports its own) and "
        + "write it";

    private final String file;
    private final Node node;
    private final String control;
    private final String mode;

    AmdCosts(final String file, final Node node) throws InvalidFileException {
        this.file = file;
        this.node = node;
        if (node.kind != Node.Kind.OBJECT) {
            throw refuse(node, "platform: amd is " + node.show()
                + "; write a mapping like {interface: kfd, mode: hws, …}");
        }
        for (final var field : node.fields.entrySet()) {
            if (!KEYS.contains(field.getKey())) {
                throw refuse(field.getValue(), "platform: amd: key '" + field.getKey() + "' is unknown; known are "
                    + "interface, mode, command, change, contexts, queues, foreign");
            }
        }
        control = word("interface", "how processes are disabled (gpuseg doctor says it)", Set.of("kfd", "debug", "criu",
            "agent", "gate"));
        mode = word("mode", "how queues reach the hardware (gpuseg doctor says it)", Set.of("hws", "no-hws", "mes"));
        if (control.equals("debug") && mode.equals("no-hws")) {
            throw refuse(node, "platform: amd: interface debug is refused by the driver in mode no-hws; use kfd, criu "
                + "or agent");
        }
    }

    private InvalidFileException refuse(final Node at, final String message) {
        return new InvalidFileException(file, at.line, message);
    }

    static boolean isUnknown(final Node value) {
        return value == null || "unknown".equals(value.text);
    }

    private String word(final String key, final String what, final Set<String> known) throws InvalidFileException {
        final Node value = node.fields.get(key);
        if (isUnknown(value)) {
            throw refuse(value == null ? node : value, "platform: amd: " + key + " is unknown: " + what
                + "; write one of " + String.join(", ", known.stream().sorted().toList()));
        }
        if (value.text == null || !known.contains(value.text)) {
            throw refuse(value, "platform: amd: " + key + " is " + value.show() + "; write one of "
                + String.join(", ", known.stream().sorted().toList()));
        }
        return value.text;
    }

    /** A duration, here or elsewhere under platform, that must be known. */
    long required(final Node value, final String name, final String what) throws InvalidFileException {
        if (isUnknown(value)) {
            throw refuse(value == null ? node : value, "platform: " + name + " is unknown: " + what + HOW);
        }
        try {
            return Durations.parse(value.text == null ? "" : value.text);
        } catch (final IllegalArgumentException e) {
            throw refuse(value, "platform: " + name + " " + e.getMessage());
        }
    }

    private long time(final String key, final String what) throws InvalidFileException {
        return required(node.fields.get(key), "amd: " + key, what);
    }

    private long count(final String key, final String what) throws InvalidFileException {
        final Node value = node.fields.get(key);
        if (isUnknown(value)) {
            throw refuse(value == null ? node : value, "platform: amd: " + key + " is unknown: " + what
                + "; write the most that there can be, or write epsilon");
        }
        if (value.text == null || !value.text.matches("[0-9]{1,4}") || Integer.parseInt(value.text) < 1
            || Integer.parseInt(value.text) > MOST) {
            throw refuse(value, "platform: amd: " + key + " is " + value.show() + "; it must be 1.." + MOST);
        }
        return Integer.parseInt(value.text);
    }

    private String unit() {
        return mode.equals("hws") ? "one unmapping of all queues of the GPU and mapping of a new runlist"
            : mode.equals("mes") ? "one message to the MES firmware, for one queue"
                : "one queue's HQD unloaded or loaded";
    }

    /** From the decision until the hardware obeys, where no measured epsilon is given. */
    long epsilonNs() throws InvalidFileException {
        if (control.equals("gate")) {
            return 0;
        }
        final long change = time("change", unit());
        final long command = time("command", "from a decision to the first change begun");
        final long contexts = count("contexts", "processes with queues on this GPU, unregistered ones included");
        final long changes;
        if (!mode.equals("hws") || control.equals("agent")) {
            changes = contexts * count("queues", "queues of one process that are switched");
        } else if (control.equals("kfd")) {
            changes = IntegerMath.ceilDiv(contexts, BATCH) + 1;   // those that go off, then those that come on
        } else {
            changes = contexts;
        }
        return Math.addExact(command, Math.multiplyExact(changes, change));
    }

    /** Longest stop that somebody else's change of queues causes; 0 = none. */
    long stallNs() throws InvalidFileException {
        return stallPeriodNs() == 0 ? 0 : time("change", unit());
    }

    /** Shortest time from one such change to the next; 0 = none. */
    long stallPeriodNs() throws InvalidFileException {
        if (!mode.equals("hws") && control.equals("gate")) {
            return 0;   // it touches its own queue, and there are no updates that it could hold up
        }
        final Node value = node.fields.get("foreign");
        if (value != null && "none".equals(value.text)) {
            return 0;
        }
        return required(value, "amd: foreign", "a queue that anybody makes or destroys, or the driver evicts, "
            + (mode.equals("hws") ? "stops all queues of the GPU" : "can hold up an update")
            + ": the shortest time between two of these, or none");
    }
}

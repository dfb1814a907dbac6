/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.util.List;
import java.util.Locale;

/** What a round of the campaign breaks. */
public enum Fault {
    /** SIGKILL to a client, real time or best effort. */
    KILL_CLIENT("kill -9 of a client", Step.ANY, Step.RESTING, Step.WAITING, Step.HOLDING, Step.KERNEL),
    /** SIGKILL to a process that uses the GPU and does not know the scheduler. */
    KILL_GPU_USER("kill -9 of a process that uses the GPU without the scheduler", Step.ANY, Step.KERNEL),
    /** SIGKILL to the daemon; another is started. */
    KILL_DAEMON("kill -9 of the daemon, restart", Step.ANY, Step.HELD, Step.STARTING, Step.REGISTERING),
    /** SIGKILL to the watchdog. */
    KILL_WATCHDOG("kill -9 of the watchdog", Step.ANY, Step.HELD),
    /** SIGSTOP to a client inside a segment: its budget ends the privilege. */
    STOP_HOLDER("SIGSTOP of a client that holds a grant", Step.HOLDING, Step.KERNEL),
    /** SIGSTOP to a client outside a segment. */
    STOP_CLIENT("SIGSTOP of a client that holds nothing", Step.RESTING, Step.WAITING),
    /** SIGSTOP to the daemon for longer than the watchdog's period. */
    STOP_DAEMON("SIGSTOP of the daemon, SIGCONT later", Step.ANY, Step.HELD),
    /** A client truncates its own queue. */
    TRUNCATE_QUEUE("truncation of a client's queue file", Step.ANY),
    /** The file system of runtime directory and journal is full for a while. */
    FULL_DISK("file system of runtime directory and journal full", Step.ANY, Step.REGISTERING),
    /** A client writes so fast that its queue rolls many times a second; every other time it is killed meanwhile. */
    ROLL_UNDER_LOAD("queue rolls under load", Step.ANY),
    /** The daemon stops cleanly and is started again while clients run. */
    UPGRADE_DAEMON("stop and start of the daemon while clients run", Step.ANY, Step.HELD),
    /** The wall clock of daemon and clients jumps. */
    CLOCK_STEP("step of CLOCK_REALTIME, as daemon and clients see it", Step.ANY),
    /** A client whose CLOCK_MONOTONIC is an hour ahead. */
    CLOCK_FOREIGN("client from a time namespace one hour ahead", Step.ANY),
    /** A new client gets the pid of a killed one. */
    REUSED_PID("pid of a killed client given to a new one", Step.KERNEL, Step.RESTING),
    /** A client forks and is killed while its child keeps its descriptors. */
    FORK("fork in a client, parent killed, child alive", Step.KERNEL, Step.WAITING, Step.RESTING),
    /** A client becomes another program. */
    EXEC("exec in a client", Step.KERNEL, Step.WAITING, Step.RESTING),
    /** A real-time client's kernel does not end. */
    INFINITE_KERNEL("infinite kernel of a real-time client", Step.KERNEL);

    private final String description;
    private final List<Step> steps;

    Fault(final String description, final Step... steps) {
        this.description = description;
        this.steps = List.of(steps);
    }

    /**
     * Its name on the command line and in results.
     *
     * @return for instance {@code kill-client}
     */
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /**
     * What is done.
     *
     * @return one line
     */
    public String description() {
        return description;
    }

    /**
     * When it may strike.
     *
     * @return at least one
     */
    public List<Step> steps() {
        return steps;
    }

    /**
     * The fault of a name.
     *
     * @param label as {@link #label}
     * @return the fault
     * @throws IllegalArgumentException if there is none, with all names
     */
    public static Fault labelled(final String label) {
        final StringBuilder known = new StringBuilder();
        for (final Fault fault : values()) {
            if (fault.label().equals(label)) {
                return fault;
            }
            known.append(known.length() == 0 ? "" : ", ").append(fault.label());
        }
        throw new IllegalArgumentException("fault \"" + label + "\" is unknown; use " + known);
    }
}

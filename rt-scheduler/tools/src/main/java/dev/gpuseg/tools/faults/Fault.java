/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** What a round of the campaign breaks; each says so itself. */
public enum Fault {
    /** SIGKILL to a client, real time or best effort. */
    KILL_CLIENT("kill -9 of a client", Step.ANY, Step.RESTING, Step.WAITING, Step.HOLDING, Step.KERNEL),
    KILL_GPU_USER("kill -9 of a process that uses the GPU without the scheduler", Step.ANY, Step.KERNEL),
    KILL_DAEMON("kill -9 of the daemon, restart", Step.ANY, Step.HELD, Step.STARTING, Step.REGISTERING),
    KILL_WATCHDOG("kill -9 of the watchdog", Step.ANY, Step.HELD),
    /** SIGSTOP to a client inside a segment: its budget ends the privilege. */
    STOP_HOLDER("SIGSTOP of a client that holds a grant", Step.HOLDING, Step.KERNEL),
    STOP_CLIENT("SIGSTOP of a client that holds nothing", Step.RESTING, Step.WAITING),
    /** SIGSTOP to the daemon for longer than the watchdog's period. */
    STOP_DAEMON("SIGSTOP of the daemon, SIGCONT later", Step.ANY, Step.HELD),
    TRUNCATE_QUEUE("truncation of a client's queue file", Step.ANY),
    FULL_DISK("file system of runtime directory and journal full", Step.ANY, Step.REGISTERING),
    /** A client writes so fast that its queue rolls many times a second; every other time it is killed meanwhile. */
    ROLL_UNDER_LOAD("queue rolls under load", Step.ANY),
    UPGRADE_DAEMON("stop and start of the daemon while clients run", Step.ANY, Step.HELD),
    CLOCK_STEP("step of CLOCK_REALTIME, as daemon and clients see it", Step.ANY),
    CLOCK_FOREIGN("client from a time namespace one hour ahead", Step.ANY),
    REUSED_PID("pid of a killed client given to a new one", Step.KERNEL, Step.RESTING),
    /** A client forks and is killed while its child keeps its descriptors. */
    FORK("fork in a client, parent killed, child alive", Step.KERNEL, Step.WAITING, Step.RESTING),
    EXEC("exec in a client", Step.KERNEL, Step.WAITING, Step.RESTING),
    INFINITE_KERNEL("infinite kernel of a real-time client", Step.KERNEL),

    // Attacks. Those that gpuseg-hostile makes have its names.
    FLOOD_STATUS("status requests without end, no answer is read", Kind.PROGRAM),
    FLOOD_COMMANDS("commands without end: of administrators, malformed, nested, huge", Kind.PROGRAM),
    FLOOD_CONNECTIONS("connections without end that say hello, half of it, or nonsense", Kind.PROGRAM),
    FLOOD_OPENS("requests to open tasks with drawn parameters and hostile names", Kind.PROGRAM),
    FLOOD_RECORDS("begins, ends, releases and hints without end", Kind.PROGRAM),
    FLOOD_PROCESSES("processes without end that register and are killed", Kind.PROGRAM),
    FLOOD_CONTEXTS("contexts without end, whose kernels do not end", Kind.PROGRAM),
    /** Segments of a member's highest priority that are not ended. */
    HOLD_GPU("segments that are begun and never ended", Kind.PROGRAM),
    FORGE_MEMORY("noise in the memory that is shared with the daemon", Kind.PROGRAM),
    FORGE_FILES("own files shortened, grown, emptied, replaced", Kind.PROGRAM),
    FAKE_DEVICES("fake devices, and commands as root, in an own namespace", Kind.PROGRAM),
    /** A thread that spins with a real-time priority below the daemon's. */
    FIFO_HOG("a SCHED_FIFO thread that keeps one processor", Kind.PROGRAM),
    /** SIGKILL to daemon and watchdog at once: nobody is left but the next daemon. */
    KILL_BOTH("kill -9 of daemon and watchdog at once, restart", Kind.DAEMON, Step.ANY, Step.HELD),
    HOLD_LOCKS("locks on whatever can be opened, kill -9 of the daemon, restart", Kind.DAEMON, Step.ANY),
    READ_ONLY("start on a read-only file system", Kind.DAEMON, Step.ANY),
    OUT_OF_MEMORY("a daemon in a control group with too little memory", Kind.DAEMON, Step.ANY, Step.HELD);

    private enum Kind {
        ACCIDENT,
        PROGRAM,
        DAEMON
    }

    private final String description;
    private final Kind kind;
    private final List<Step> steps;

    Fault(final String description, final Step... steps) {
        this(description, Kind.ACCIDENT, steps);
    }

    Fault(final String description, final Kind kind, final Step... steps) {
        this.description = description;
        this.kind = kind;
        this.steps = kind == Kind.PROGRAM ? List.of(Step.ANY) : List.of(steps);
    }

    /** What a robot must survive, in the order of this type. */
    public static List<Fault> accidents() {
        return Stream.of(values()).filter(fault -> fault.kind == Kind.ACCIDENT).toList();
    }

    /** What somebody may do to it, in the order of this type, with the accident that a user can cause. */
    public static List<Fault> attacks() {
        return Stream.of(values()).filter(fault -> fault.kind != Kind.ACCIDENT || fault == FULL_DISK).toList();
    }

    /** Whether it may happen without anybody's intent. */
    boolean isAccident() {
        return kind == Kind.ACCIDENT;
    }

    /** Whether {@code gpuseg-hostile} makes it. */
    boolean isProgram() {
        return kind == Kind.PROGRAM;
    }

    /** Whether there is a watchdog during it: otherwise nobody can enable what is disabled. */
    boolean isGuarded() {
        return this != KILL_BOTH;
    }

    /** Its name on the command line and in results: for instance {@code kill-client}. */
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** What is done. */
    public String description() {
        return description;
    }

    /** When it may strike: at least one. */
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

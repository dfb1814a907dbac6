/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

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
    INFINITE_KERNEL("infinite kernel of a real-time client", Step.KERNEL),

    // Attacks. Those that gpuseg-hostile makes have its names.
    /** Status requests on many connections, whose answers are not read. */
    FLOOD_STATUS("status requests without end, no answer is read", Kind.PROGRAM),
    /** Commands of administrators, malformed, nested and huge ones. */
    FLOOD_COMMANDS("commands without end: of administrators, malformed, nested, huge", Kind.PROGRAM),
    /** Connections that say hello, half of it, or nonsense, with descriptors that nobody asked for. */
    FLOOD_CONNECTIONS("connections without end that say hello, half of it, or nonsense", Kind.PROGRAM),
    /** Tasks with drawn parameters and hostile names. */
    FLOOD_OPENS("requests to open tasks with drawn parameters and hostile names", Kind.PROGRAM),
    /** Marks, job releases and announced begins as fast as they can be written. */
    FLOOD_RECORDS("begins, ends, releases and hints without end", Kind.PROGRAM),
    /** Processes that register and are killed. */
    FLOOD_PROCESSES("processes without end that register and are killed", Kind.PROGRAM),
    /** Processes that come and go, each with a context whose kernels do not end. */
    FLOOD_CONTEXTS("contexts without end, whose kernels do not end", Kind.PROGRAM),
    /** Segments of a member's highest priority that are not ended. */
    HOLD_GPU("segments that are begun and never ended", Kind.PROGRAM),
    /** Noise in session and queue. */
    FORGE_MEMORY("noise in the memory that is shared with the daemon", Kind.PROGRAM),
    /** The own files, shortened, grown, emptied, replaced. */
    FORGE_FILES("own files shortened, grown, emptied, replaced", Kind.PROGRAM),
    /** Root of an own namespace with files named like devices. */
    FAKE_DEVICES("fake devices, and commands as root, in an own namespace", Kind.PROGRAM),
    /** A thread that spins with a real-time priority below the daemon's. */
    FIFO_HOG("a SCHED_FIFO thread that keeps one processor", Kind.PROGRAM),
    /** SIGKILL to daemon and watchdog at once: nobody is left but the next daemon. */
    KILL_BOTH("kill -9 of daemon and watchdog at once, restart", Kind.DAEMON, Step.ANY, Step.HELD),
    /** A user waits for a lock on every file of the daemon that he can open, and the daemon is killed. */
    HOLD_LOCKS("locks on whatever can be opened, kill -9 of the daemon, restart", Kind.DAEMON, Step.ANY),
    /** A daemon is started on a read-only file system. */
    READ_ONLY("start on a read-only file system", Kind.DAEMON, Step.ANY),
    /** The next daemon has a control group with too little memory. */
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

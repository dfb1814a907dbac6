/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import dev.gpuseg.ipc.Abi;

/** Kinds of journal events; codes and meaning of the arguments: {@code enum gpuseg_event_kind} in gpuseg_abi.h. */
public enum EventKind {
    /** The daemon started; text: its configuration as JSON. */
    START(Abi.EVENT_START),
    /** Clean stop. */
    STOP(Abi.EVENT_STOP),
    /** A client registered; text: its name. arg0 = pid, arg1 = uid. */
    CLIENT_OPEN(Abi.EVENT_CLIENT_OPEN),
    /** A client left or died; arg0 = pid. */
    CLIENT_CLOSE(Abi.EVENT_CLIENT_CLOSE),
    /** A client was dropped; text: the reason. arg0 = poison code. */
    CLIENT_POISON(Abi.EVENT_CLIENT_POISON),
    /** A task was opened; text: its attributes as JSON. */
    TASK_OPEN(Abi.EVENT_TASK_OPEN),
    /** A task was closed. */
    TASK_CLOSE(Abi.EVENT_TASK_CLOSE),
    /** A job was released; arg0 = release ns, arg1 = time of its sample ns or 0, arg2 = its identity or 0. */
    RELEASE(Abi.EVENT_RELEASE),
    /** A segment was begun; arg0 = the client's time, arg1 = release ns, arg2 = absolute deadline ns. */
    BEGIN(Abi.EVENT_BEGIN),
    /** The grant word was written, or the begin was optimistic (flag). */
    GRANT(Abi.EVENT_GRANT),
    /** A segment was preempted; arg0 = task id of the segment that goes first. */
    PREEMPT(Abi.EVENT_PREEMPT),
    /** A segment was resumed. */
    RESUME(Abi.EVENT_RESUME),
    /** A segment ended; arg0 = the client's time, arg1 = device time ns or 0. */
    END(Abi.EVENT_END),
    /** A begin gave up; arg0 = the client's time. */
    CANCEL(Abi.EVENT_CANCEL),
    /** A job is complete; arg0 = the client's time, arg1 = response ns. */
    JOB_END(Abi.EVENT_JOB_END),
    /** A deadline passed; arg0 = the deadline. */
    MISS(Abi.EVENT_MISS),
    /** A budget passed; arg0 = the budget ns. */
    OVERRUN(Abi.EVENT_OVERRUN),
    /** arg0 = when the begin will be, ns. */
    HINT(Abi.EVENT_HINT),
    /** A context is disabled; arg0 = when the call began, arg1 = its cost ns, arg2 = when the core was told. */
    DISABLE(Abi.EVENT_DISABLE),
    /** A context is enabled; arguments as DISABLE. */
    ENABLE(Abi.EVENT_ENABLE),
    /** All contexts that must be disabled for this segment are disabled. */
    ENFORCED(Abi.EVENT_ENFORCED),
    /** Policy or parameter change; text: which. */
    POLICY(Abi.EVENT_POLICY),
    /** A duty cycle took longer than the threshold; arg0 = ns. */
    STALL(Abi.EVENT_STALL),
    /** The watchdog had released contexts; arg0 = its count, arg1 = when it first did in that silence or 0. */
    WATCHDOG(Abi.EVENT_WATCHDOG),
    /** The mechanism failed; text: how. */
    MECHANISM_ERROR(Abi.EVENT_MECHANISM_ERROR),
    /** The daemon's JVM paused; arg0 = when it began, arg1 = ns (in steps of 1 ms). */
    GC(Abi.EVENT_GC),
    /** The ring was full; arg0 = events lost, arg1 = sequence number of the first. */
    LOST(Abi.EVENT_LOST),
    /** Clocks, one reading; arg0 = CLOCK_MONOTONIC, arg1 = CLOCK_REALTIME; text: CLOCK_BOOTTIME, all ns, as JSON. */
    CLOCK(Abi.EVENT_CLOCK),
    /** A context is known; arg0 = pid, arg1 = {@code enum gpuseg_context_kind}; text: name of the process. */
    CONTEXT_OPEN(Abi.EVENT_CONTEXT_OPEN),
    /** A context became managed or unmanaged; arg1 = {@code enum gpuseg_context_kind}. */
    CONTEXT_KIND(Abi.EVENT_CONTEXT_KIND),
    /** A process has ended. */
    CONTEXT_CLOSE(Abi.EVENT_CONTEXT_CLOSE),
    /** A segment was chosen to run; the GRANT follows when the others are disabled. */
    DECIDED(Abi.EVENT_DECIDED),
    /** The effective priority changed: demoted, restored or set; arg0 = priority, arg1 = GPU priority. */
    PRIORITY(Abi.EVENT_PRIORITY),
    /** The daemon ended a segment. */
    FORCED_END(Abi.EVENT_FORCED_END),
    /** The scheduler acted on time without a change of segments: a turn passed on, a window opened or closed. */
    TIMER(Abi.EVENT_TIMER),
    /** Anticipation; flags = {@code enum gpuseg_anticipation}. */
    ANTICIPATE(Abi.EVENT_ANTICIPATE),
    /** What the task begins is best effort, or has its rank again; arg0 = 1 or 0, arg1 = account of its user. */
    SHARE(Abi.EVENT_SHARE),
    /** A job, a driver call or a wait took longer than admission believes; arg0 = that, arg1 = what it believes, ns. */
    BOUND(Abi.EVENT_BOUND),
    /** A job was skipped: released, and given up by its application; arg0 = the client's time. */
    JOB_CANCEL(Abi.EVENT_JOB_CANCEL);

    private static final EventKind[] BY_CODE;

    static {
        int last = 0;
        for (final EventKind kind : values()) {
            last = Math.max(last, kind.code);
        }
        BY_CODE = new EventKind[last + 1];
        for (final EventKind kind : values()) {
            BY_CODE[kind.code] = kind;
        }
    }

    private final short code;

    EventKind(final int code) {
        this.code = (short) code;
    }

    /** The number in the file; 1 or more. */
    public short code() {
        return code;
    }

    /**
     * The kind of a code.
     *
     * @param code number read from a journal
     * @return the kind, or null if this release does not know it
     */
    public static EventKind of(final int code) {
        return code > 0 && code < BY_CODE.length ? BY_CODE[code] : null;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * What no bound covers, whatever the analysis: events of the machine that the task model does not have. Every report
 * prints this list in these words. Counters are those of {@code gpuseg status} and of {@code gpuseg_events_total}; a
 * test compares their names with the daemon's.
 */
public enum OutOfModel {
    /** Clocks. */
    CLOCK("clock and power: GPU, memory or processors clocked lower than when the times were measured, beyond the "
        + "factor that the platform declares",
        "nothing; it sets no clock and reads none",
        "the clock: not seen (nvidia-smi -q -d CLOCK,PERFORMANCE); late work: counters bounds_broken, job_misses"),
    /** Copies and video. */
    ENGINES("copy and video engines: copies, encoding and decoding of other processes while a segment runs",
        "nothing by default; with nvidia-scope: all it disables channels of copy engines, too",
        "not seen"),
    /** Memory. */
    MEMORY("bandwidth and caches of memory that other engines, processors or devices use at the same time",
        "nothing",
        "not seen; late work: counters bounds_broken, job_misses"),
    /** Page faults. */
    PAGE_FAULTS("page faults of managed memory: a kernel thread of the driver, of normal priority, moves the pages",
        "nothing; the segment keeps the GPU while it waits, until its budget is used up",
        "not seen; a long segment: counter overruns"),
    /** Faults of the device. */
    FAULTS("ECC errors and GPU resets",
        "it counts the calls that fail and tries again; begins are granted without enforcement",
        "the error: not seen (lines with Xid in the kernel's log); failed calls: counters mechanism_errors, "
        + "grants_unenforced, alert GpusegEnforcementFailed"),
    /** Display servers. */
    PROTECTED("protected contexts: display servers, compositors, programs of protect, control groups with protect",
        "never disables them; they share the GPU with every segment",
        "by program: not seen; by control group: cgroups.groups in status --json"),
    /** The table of held contexts. */
    NUMBERS("contexts beyond the tables: the 257th that is to be disabled at a time, a process beyond 1,024 numbers",
        "leaves them enabled, or refuses the registration; begins are granted without enforcement",
        "journal event MECHANISM_ERROR \"held file is full\"; counters mechanism_errors, grants_unenforced, "
        + "contexts_unnumbered"),
    /** The driver refuses. */
    DISABLE("a context that the driver does not disable",
        "grants the begin all the same, and tries again",
        "counters mechanism_errors, grants_unenforced; journal event MECHANISM_ERROR; alert GpusegEnforcementFailed"),
    /** The driver's lock. */
    DRIVER_LOCK("a driver call of another process (start, end, monitor) that holds the driver's lock longer than "
        + "epsilon",
        "waits: its own call ends late, and what it should disable runs meanwhile",
        "gpuseg_enforcement_seconds, gpuseg_runlist_update_seconds, alert GpusegEnforcementSlow; finding enforcement "
        + "of trace check");

    private final String what;
    private final String daemon;
    private final String seen;

    OutOfModel(final String what, final String daemon, final String seen) {
        this.what = what;
        this.daemon = daemon;
        this.seen = seen;
    }

    /** What the bounds do not cover; without a full stop. */
    public String what() {
        return what;
    }

    /** What the daemon does when it happens; without a full stop. */
    public String daemon() {
        return daemon;
    }

    /** Where it is seen, or that it is not; without a full stop. */
    public String seen() {
        return seen;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.util.EnumSet;
import java.util.Set;

/** Everything that the daemon counts. The label is what {@code status} and every exporter print; it never changes. */
public enum Counter {
    /** Records taken. */
    RECORDS("records", "Records taken from client queues"),
    /** Segments begun. */
    BEGINS("begins", "Segments begun"),
    /** Optimistic begins. */
    OPTIMISTIC_BEGINS("optimistic_begins", "Begins that did not wait because the task was pre-granted"),
    /** Grants. */
    GRANTS("grants", "Segments granted"),
    /** Grants that waited for a disable. */
    GRANTS_AFTER_DISABLE("grants_after_disable", "Grants that waited until other contexts were disabled"),
    /** Grants without the disable that they needed. */
    GRANTS_UNENFORCED("grants_unenforced", "Grants given although the mechanism failed to disable another context"),
    /** Ends. */
    ENDS("ends", "Segments ended"),
    /** Cancelled begins. */
    CANCELS("cancels", "Begins that gave up before their grant"),
    /** Begins that timed out and went on. */
    PROCEEDED("proceeded", "Segments that went on without a grant after their timeout"),
    /** Preemptions. */
    PREEMPTIONS("preemptions", "Segments preempted by one of higher rank"),
    /** Resumptions. */
    RESUMES("resumes", "Preempted segments that were resumed"),
    /** Deadline misses. */
    DEADLINE_MISSES("deadline_misses", "Real-time segments whose absolute deadline passed before their end"),
    /** Jobs completed. */
    JOBS("jobs", "Jobs that ended; of a task that marks none, every segment is a job"),
    /** Jobs completed late. */
    JOB_MISSES("job_misses", "Jobs of real-time tasks that ended after their deadline, or were given up after it"),
    /** Jobs cancelled. */
    JOBS_SKIPPED("jobs_skipped", "Jobs that their application released and then skipped, without those that missed"),
    /** Proofs that do not hold. */
    BOUNDS_BROKEN("bounds_broken", "Jobs that took longer than the bound with which their task is admitted"),
    /** Constants that do not hold. */
    CONSTANTS_BROKEN("constants_broken",
        "Driver calls and waits of begins that took longer than the constants of the bounds"),
    /** Budget overruns. */
    OVERRUNS("overruns", "Segments that used up their budget; the overrun action of their task followed"),
    /** Tasks demoted with their user. */
    SHARES_USED_UP("shares_used_up",
        "Tasks demoted because real-time segments of their user used up his share of the GPU"),
    /** Begins refused after an overrun. */
    SKIPPED("skipped", "Begins refused because the previous segment overran and its task skips the next"),
    /** Context disables. */
    DISABLES("disables", "Contexts disabled"),
    /** Context enables. */
    ENABLES("enables", "Contexts enabled"),
    /** Failed operations. */
    MECHANISM_ERRORS("mechanism_errors", "Operations that the mechanism refused or did not answer"),
    /** Descriptors of strangers. */
    FOREIGN_DESCRIPTORS("foreign_descriptors",
        "Looks at a descriptor named like a device of the driver that was none; it was not used"),
    /** Processes ended. */
    CONTEXTS_BEYOND_LIMIT("contexts_beyond_limit",
        "Processes ended because their user has more with a GPU context than his limit says"),
    /** Processes that are not controlled. */
    CONTEXTS_UNNUMBERED("contexts_unnumbered",
        "Processes that were refused, or left enabled, because all 1024 context numbers were in use"),
    /** Releases by the watchdog. */
    WATCHDOG_RELEASES("watchdog_releases", "Times that the watchdog enabled held contexts under a live daemon"),
    /** Clients. */
    CLIENTS_OPENED("clients_opened", "Clients registered"),
    /** Clients gone. */
    CLIENTS_CLOSED("clients_closed", "Clients that left or died"),
    /** Records that wait. */
    RECORDS_DELAYED("records_delayed",
        "Times that a client's records had to wait because its user wrote more than limit records of limits.d"),
    /** Compilers that computed for long. */
    COMPILERS_ORDINARY("compilers_ordinary",
        "Times that a compiler of the JVM had used its allowance of real-time and became an ordinary thread"),
    /** Tasks. */
    TASKS_OPENED("tasks_opened", "Tasks opened"),
    /** Refused tasks. */
    TASKS_REFUSED("tasks_refused", "Task registrations refused"),
    /** Poisoned clients. */
    POISONED("poisoned", "Clients dropped because their shared memory or records were not valid"),
    /** Errors in handling one client. */
    CLIENT_ERRORS("client_errors", "Unexpected errors while handling one client; that client was dropped"),
    /** Errors elsewhere in the duty cycle. */
    CYCLE_ERRORS("cycle_errors", "Unexpected errors of the dispatcher that belong to no single client"),
    /** Hints for which lower work was disabled ahead of time. */
    HINTS_ACTED("hints_acted", "Hints for which lower work was disabled ahead of time"),
    /** Of these, without a begin within the time allowed. */
    HINTS_WASTED("hints_wasted", "Hints whose begin did not come in time after lower work was disabled"),
    /** Hints that are too early. */
    HINTS_BEYOND_LIMIT("hints_beyond_limit", "Hints ignored because their begin is further ahead than limit "
        + "hint_lead of their user"),
    /** Begins that followed from a period and for which lower work was disabled ahead of time. */
    ANTICIPATED("anticipated", "Begins forecast from a period for which lower work was disabled ahead of time"),
    /** Of these, without a begin within the time allowed. */
    ANTICIPATIONS_WASTED("anticipations_wasted",
        "Forecast begins that did not come in time after lower work was disabled"),
    /** Forecast begins for which nothing was done. */
    ANTICIPATIONS_OVER_BUDGET("anticipations_over_budget",
        "Forecast begins for which the anticipation budget did not allow to disable lower work"),
    /** Time without best-effort work. */
    KEPT_FREE_NS("kept_free_ns",
        "Time for which GPUs were reserved for expected begins, ns; for those that did not come, with "
        + "the cost of disabling"),
    /** Stalls. */
    STALLS("stalls", "Duty cycles of the dispatcher longer than 1 ms"),
    /** Longest duty cycle. */
    MAX_CYCLE_NS("max_cycle_ns", "Longest duty cycle of the dispatcher, ns"),
    /** Sleeps. */
    SLEEPS("sleeps", "Times the dispatcher went to sleep"),
    /** Pauses of the JVM. */
    GC_PAUSES("gc_pauses",
        "Stops of the daemon's JVM by its garbage collector; a collection of ZGC stops it three times or more"),
    /** Their time. */
    GC_PAUSE_NS("gc_pause_ns", "Total time of these stops, ns (each in steps of 1 ms)"),
    /** Lost journal events. */
    JOURNAL_DROPS("journal_drops", "Events not journaled because the ring was full");

    /** What never rises where all goes well. */
    private static final Set<Counter> TROUBLE = EnumSet.of(GRANTS_UNENFORCED, PROCEEDED, DEADLINE_MISSES, JOB_MISSES,
        BOUNDS_BROKEN, CONSTANTS_BROKEN, OVERRUNS, SHARES_USED_UP, SKIPPED, MECHANISM_ERRORS, FOREIGN_DESCRIPTORS,
        CONTEXTS_BEYOND_LIMIT, CONTEXTS_UNNUMBERED, WATCHDOG_RELEASES, RECORDS_DELAYED, TASKS_REFUSED, POISONED,
        CLIENT_ERRORS, CYCLE_ERRORS, HINTS_BEYOND_LIMIT, STALLS, JOURNAL_DROPS);

    private final String label;
    private final String description;

    Counter(final String label, final String description) {
        this.label = label;
        this.description = description;
    }

    /**
     * The stable name.
     *
     * @return lower case, words joined by an underscore
     */
    public String label() {
        return label;
    }

    /**
     * What is counted.
     *
     * @return one line
     */
    public String description() {
        return description;
    }

    /**
     * Whether it says that something went wrong. The others are shown only where all counters are.
     *
     * @return true if it stays 0 where all goes well
     */
    public boolean isTrouble() {
        return TROUBLE.contains(this);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/**
 * What counts as a job of a task, and as a miss. Dispatcher, {@link LiveModel} and the reader of recordings tell this
 * class what happened and show its figures, so that no two of them can disagree.
 *
 * <ul>
 *   <li>A job is what the application marks, from release to end. Of a task that marks none, every segment is a job: it
 *       is released at its begin. A withdrawn segment is none.</li>
 *   <li>A job of a real-time task misses if it ends later than its relative deadline after its release, or is given up
 *       (withdrawn, closed, followed by the next) after a segment's absolute deadline passed. While it goes on after
 *       that moment it is {@link #isOverdue overdue}; whether it missed is decided at its end, by the application's
 *       clock, because the daemon learns of the end later.</li>
 *   <li>A job that the application cancels is skipped: neither a job that ended nor a miss, unless a segment's absolute
 *       deadline passed before; then it missed, as any job that is given up.</li>
 *   <li>Best effort never misses.</li>
 * </ul>
 *
 * <p>Allocates nothing. Times are ns of CLOCK_MONOTONIC. Not thread-safe.
 */
public final class JobAccount {
    /** No job ended. */
    public static final long NONE = -1;

    private boolean marks;
    private boolean open;
    private boolean passed;
    private long releaseNs;
    private long jobs;
    private long misses;
    private long skipped;

    /** Nothing has happened yet. */
    public JobAccount() {
    }

    /** The application marked a release. */
    public void released(final long atNs) {
        marks = true;
        start(atNs);
    }

    /**
     * A segment began.
     *
     * @param beginNs  when the application called
     * @param statedNs the release that its begin carries, 0 = the application marked none
     */
    public void begun(final long beginNs, final long statedNs) {
        if (statedNs > 0 && !marks) {
            released(statedNs);   // marked before these events begin
        } else if (!marks) {
            start(beginNs);
        }
    }

    private void start(final long atNs) {
        giveUp();
        open = true;
        passed = false;
        releaseNs = atNs;
    }

    private void giveUp() {
        if (isOverdue()) {
            misses++;
        }
        open = false;
    }

    /** The absolute deadline of a segment passed before the daemon saw its end; priority 0 = best effort. */
    public void deadlinePassed(final int priority) {
        passed |= open && priority > 0;
    }

    /**
     * A segment ended.
     *
     * @param endNs      when the application called
     * @param priority   of the task, 0 = best effort
     * @param deadlineNs relative, 0 = none
     * @return response time of the job that ended with it, {@link #NONE} if none did
     */
    public long segmentEnded(final long endNs, final int priority, final long deadlineNs) {
        return marks || !open ? NONE : complete(Math.max(0, endNs - releaseNs), priority, deadlineNs);
    }

    /** A segment was withdrawn before its grant. */
    public void segmentWithdrawn() {
        if (!marks) {
            giveUp();
        }
    }

    /**
     * The application marked the end of a job.
     *
     * @param responseNs since its release
     * @param priority   of the task, 0 = best effort
     * @param deadlineNs relative, 0 = none
     * @return its response time, {@link #NONE} if none was released
     */
    public long jobEnded(final long responseNs, final int priority, final long deadlineNs) {
        return marks && open ? complete(responseNs, priority, deadlineNs) : NONE;
    }

    /** The application gave up a job that it had released. Nothing if none is open. */
    public void jobCancelled() {
        if (marks && open) {
            skipped += isOverdue() ? 0 : 1;
            giveUp();
        }
    }

    private long complete(final long responseNs, final int priority, final long deadlineNs) {
        open = false;
        jobs++;
        if (isLate(responseNs, priority, deadlineNs)) {
            misses++;
        }
        return responseNs;
    }

    /** The task was closed, or opened again; what it counted stays. */
    public void reopened() {
        giveUp();
        marks = false;
        passed = false;
    }

    /**
     * Whether a response is a miss.
     *
     * @param responseNs of a job
     * @param priority   of its task, 0 = best effort
     * @param deadlineNs relative, 0 = none
     * @return true if it is later than the deadline of a real-time task
     */
    public static boolean isLate(final long responseNs, final int priority, final long deadlineNs) {
        return priority > 0 && deadlineNs > 0 && responseNs > deadlineNs;
    }

    /** Whether the application marks its jobs: false while every segment is a job. */
    public boolean marks() {
        return marks;
    }

    /**
     * Whether a deadline of the present job, or of the last one, was seen to pass: true from that moment until the next
     * job.
     */
    public boolean isPassed() {
        return passed;
    }

    /** Whether the present job goes on after its deadline: true until it ends. */
    public boolean isOverdue() {
        return open && passed;
    }

    /** Jobs that ended. */
    public long jobs() {
        return jobs;
    }

    /** Jobs that missed. */
    public long misses() {
        return misses;
    }

    /** Jobs that the application cancelled, without those that missed. */
    public long skipped() {
        return skipped;
    }
}

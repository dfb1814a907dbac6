/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Optional;
import java.util.Set;

/**
 * Decides among begun segments of one GPU. A policy answers questions about segments that it is shown; it keeps no
 * reference to them, reads no clock, logs nothing and changes nothing, so that the same class runs live, in the
 * simulator and in tests. Answers must be functions of the arguments alone: they are asked anew at every event.
 *
 * <p>Partitions of time and classes of segments that may run together fit behind these questions; the scheduler has no
 * case for any policy. Weighted shares and caps of best-effort work hold under every policy that enforces and are no
 * policy's business.
 */
public interface Policy {
    /** The name used on the command line and in journals; a short constant name, such as {@code fp}. */
    String name();

    /**
     * The order in which segments are to be served. The scheduler itself breaks ties: earlier begin first, then lower
     * task id. Must be a weak order in which every real-time segment comes before every best-effort one, unless the
     * policy lets everything run beside everything.
     *
     * @param a a begun segment
     * @param b another begun segment
     * @return negative if a comes first, positive if b does, 0 for a tie
     */
    int compare(SegmentView a, SegmentView b);

    /**
     * Whether two segments may use the GPU at the same time. Asked of the leading segment and each other one, and of
     * segments that share a context. Must be symmetric.
     *
     * @param leader a begun segment
     * @param other  another begun segment
     * @return true if both may be granted
     */
    boolean mayRunBeside(SegmentView leader, SegmentView other);

    /**
     * Whether contexts without any begun segment may use the GPU while this segment leads.
     *
     * @param leader the policy's first among the begun segments of a GPU
     * @return false if the GPU is to be kept for the leader
     */
    boolean admitsBackground(SegmentView leader);

    /**
     * Decides about pre-grants (begins that need not wait): a task that begins at any later time, while this segment is
     * still begun, must be certain to come before it, if the task's GPU priority is higher than the returned bound.
     *
     * @param begun the best begun segment on the task's GPU, the task's own excepted
     * @return {@link Priority#BELOW_ALL} if every task may be pre-granted, {@link Priority#MAX} if none may, else the
     *     priority that a task must exceed
     */
    int pregrantCeiling(SegmentView begun);

    /**
     * Whether segments of two real-time tasks can have a GPU together, whatever they begin with.
     *
     * @param a GPU priority, 1..99
     * @param b GPU priority, 1..99
     * @return true if they can
     */
    default boolean runTogether(final int a, final int b) {
        return false;
    }

    /**
     * The policy that decides as this one does where {@link #runTogether} is false for all real-time tasks of a GPU, so
     * that its bounds at level 3 hold for them. Believed of built-in policies only.
     *
     * @return its name; empty if there is none but this one
     */
    default Optional<String> exclusiveAs() {
        return Optional.empty();
    }

    /**
     * Whether this policy ever disables a context or holds a begin back. If not, turns, caps and suspensions do not
     * apply either.
     *
     * @return false for a policy that only observes
     */
    default boolean enforces() {
        return true;
    }

    /**
     * Whether the answers of {@link #isOpen} depend on time.
     *
     * @return true if the scheduler has to ask {@link #isOpen}, {@link #lendsIdle} and {@link #nextChangeNs}
     */
    default boolean isTimed() {
        return false;
    }

    /**
     * Whether a partition may use the GPU now.
     *
     * @param partition 0 = tasks and processes that have none
     * @param nowNs     now
     * @return true if its segments and contexts take part
     */
    default boolean isOpen(final int partition, final long nowNs) {
        return true;
    }

    /**
     * Whether all partitions may use the GPU now if no segment of an open one is begun.
     *
     * @param nowNs now
     * @return true if idle windows are lent
     */
    default boolean lendsIdle(final long nowNs) {
        return false;
    }

    /**
     * When {@link #isOpen} or {@link #lendsIdle} will next give another answer.
     *
     * @param nowNs now
     * @return ns, later than now; {@link Long#MAX_VALUE} if never
     */
    default long nextChangeNs(final long nowNs) {
        return Time.NEVER;
    }

    /**
     * What this policy looks at, so that real-time tasks must declare it.
     *
     * @return a constant set; with the needs of a policy that this one contains
     */
    default Set<TaskNeed> needs() {
        return Set.of();
    }

    /**
     * The policy that orders segments apart from windows of time.
     *
     * @return this policy, or the one that decides inside a window
     */
    default Policy ordering() {
        return this;
    }

    /** The table of windows that {@link #isOpen} answers from; empty if there is none. */
    default Optional<TimePartitions> timetable() {
        return Optional.empty();
    }

    /** Name and parameters, for people; one line, such as {@code partitions (frame 100ms, inside fp)}. */
    default String describe() {
        return name();
    }
}

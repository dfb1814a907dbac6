/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Set;

/**
 * The begun real-time segment of the earliest absolute deadline has the GPU to itself; one without a deadline comes
 * after all that have one. Best-effort segments share the GPU when there is no real-time one. Stateless and
 * thread-safe.
 *
 * <p>Ties: of two equal deadlines the earlier begin goes first, then the lower task id, as under every policy. A
 * segment that runs is therefore never displaced by one of the same deadline that began later.
 *
 * <p>Overload: a deadline that has passed stays the segment's deadline. A late segment thus comes before all that are
 * in time and is finished first; the miss is reported when it happens. Under a lasting overload that makes one late
 * segment after the other (the domino effect); a budget with an action ({@link OverrunAction}) bounds what a late
 * segment can take from the others.
 *
 * <p>Pre-grants: the deadline of a segment that has not begun is not known, and grows while it does not begin; so no
 * task is certain to come before a begun real-time segment, and all are pre-granted only while there is none.
 */
public final class EarliestDeadlineFirst implements Policy {
    /** The name of this policy. */
    public static final String NAME = "edf";
    private static final Set<TaskNeed> NEEDS = Set.of(TaskNeed.DEADLINE);
    /** The only instance that anybody needs. */
    public static final EarliestDeadlineFirst INSTANCE = new EarliestDeadlineFirst();

    /** A policy without state. */
    public EarliestDeadlineFirst() {
        // nothing to set up
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Set<TaskNeed> needs() {
        return NEEDS;
    }

    @Override
    public int compare(final SegmentView a, final SegmentView b) {
        if (a.isRealTime() && b.isRealTime()) {
            return Long.compare(a.deadlineNs(), b.deadlineNs());
        }
        return a.isRealTime() ? -1 : b.isRealTime() ? 1 : 0;
    }

    @Override
    public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
        return !leader.isRealTime() && !other.isRealTime();
    }

    @Override
    public boolean admitsBackground(final SegmentView leader) {
        return !leader.isRealTime();
    }

    @Override
    public int pregrantCeiling(final SegmentView begun) {
        return begun.isRealTime() ? Priority.MAX : Priority.BELOW_ALL;
    }
}

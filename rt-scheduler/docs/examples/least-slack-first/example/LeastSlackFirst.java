/* SPDX-License-Identifier: Apache-2.0 */
package example;

import dev.gpuseg.core.Policy;
import dev.gpuseg.core.Priority;
import dev.gpuseg.core.SegmentView;
import dev.gpuseg.core.TaskNeed;
import java.util.Set;

/**
 * The begun real-time segment with the least slack has the GPU to itself. Slack is the time that is left until the
 * deadline, less the declared GPU time of the segment (its budget): deadline - now - budget. All slacks shrink alike
 * while time passes, so the order is that of deadline - budget, the latest start, and no clock is needed. The budget is
 * the declared one, not what is left of it: a segment keeps its place while it runs, and two cannot preempt each other
 * in turn. A segment without a deadline comes after all that have one.
 */
public final class LeastSlackFirst implements Policy {
    /** Makes the policy; {@code ServiceLoader} needs this constructor. */
    public LeastSlackFirst() {
        // nothing to set up
    }

    @Override
    public String name() {
        return "least-slack";
    }

    @Override
    public Set<TaskNeed> needs() {
        return Set.of(TaskNeed.DEADLINE, TaskNeed.BUDGET);
    }

    private static long latestStartNs(final SegmentView s) {
        return s.deadlineNs() == Long.MAX_VALUE ? Long.MAX_VALUE : s.deadlineNs() - s.budgetNs();
    }

    @Override
    public int compare(final SegmentView a, final SegmentView b) {
        if (a.isRealTime() && b.isRealTime()) {
            return Long.compare(latestStartNs(a), latestStartNs(b));
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

    /** A segment that begins later may have less slack than this one or more: no real-time segment can be sure. */
    @Override
    public int pregrantCeiling(final SegmentView begun) {
        return begun.isRealTime() ? Priority.MAX : Priority.BELOW_ALL;
    }
}

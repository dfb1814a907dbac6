/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Set;

/**
 * The begun segment of the highest GPU priority runs alone: the contexts that it outranks are disabled. Best-effort
 * segments share the GPU when there is no real-time one. Stateless and thread-safe.
 *
 * <p>Pre-grants: a task outranks every begun segment, now and later, exactly if its priority is higher than that of the
 * best one. An equal priority does not do: the earlier begin goes first.
 */
public final class FixedPriority implements Policy {
    /** The name of this policy. */
    public static final String NAME = "fp";
    private static final Set<TaskNeed> NEEDS = Set.of(TaskNeed.PRIORITY);
    /** The only instance that anybody needs. */
    public static final FixedPriority INSTANCE = new FixedPriority();

    /** A policy without state. */
    public FixedPriority() {
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
        return Priority.compareHigherFirst(a.gpuPriority(), b.gpuPriority());
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
        return begun.isRealTime() ? begun.gpuPriority() : Priority.BELOW_ALL;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Observes only: every begin is granted at once, nothing is ever disabled, and the driver shares the GPU
 * out as it would without a scheduler (round robin among contexts on most). Stateless and thread-safe.
 */
public final class RoundRobin implements Policy {
    /** The name of this policy. */
    public static final String NAME = "rr";
    /** The only instance that anybody needs. */
    public static final RoundRobin INSTANCE = new RoundRobin();

    /** A policy without state. */
    public RoundRobin() {
        // nothing to set up
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public boolean enforces() {
        return false;
    }

    @Override
    public int compare(final SegmentView a, final SegmentView b) {
        return 0;
    }

    @Override
    public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
        return true;
    }

    @Override
    public boolean admitsBackground(final SegmentView leader) {
        return true;
    }

    @Override
    public int pregrantCeiling(final SegmentView begun) {
        return Priority.BELOW_ALL;
    }
}

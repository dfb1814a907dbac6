/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import dev.gpuseg.core.Policy;
import dev.gpuseg.core.SegmentView;

/**
 * A policy without parameters under another name, for catalogues of tests.
 *
 * @param name under which it is known
 * @param real what answers
 */
public record RenamedPolicy(String name, Policy real) implements Policy {
    @Override
    public int compare(final SegmentView a, final SegmentView b) {
        return real.compare(a, b);
    }

    @Override
    public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
        return real.mayRunBeside(leader, other);
    }

    @Override
    public boolean admitsBackground(final SegmentView leader) {
        return real.admitsBackground(leader);
    }

    @Override
    public int pregrantCeiling(final SegmentView begun) {
        return real.pregrantCeiling(begun);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** The scheduler's tables of one GPU, filled by hand, for tests of the classes that decide from them. */
final class Tables {
    static final int MAX = 9;

    final SegmentTable segments = new SegmentTable(MAX);
    final ContextTable contexts = new ContextTable(MAX, MAX, 1);
    final FairShares shares = new FairShares(2 * (MAX + 1), 1);
    private long ticket;

    /** A context that may be disabled, in a group of its own. */
    void context(final int c) {
        contexts.add(c, 0, ContextKind.MANAGED);
        contexts.setSteerable(c, true);
        contexts.group[c] = c;
    }

    void task(final int t, final int c, final int priority) {
        if (!contexts.open[c]) {
            context(c);
        }
        segments.openTask(new TaskParameters(t, c, priority, 0, 0, 0, true));
        contexts.linkTask(c, t);
    }

    void begin(final int t, final long beginNs) {
        segments.beginSegment(t, ++ticket, 0, 0, beginNs, false);
    }

    /** It has the GPU. */
    void run(final int t) {
        segments.enterRunning(t, 1, false);
    }

    static int[] order(final int... tasks) {
        return tasks;
    }
}

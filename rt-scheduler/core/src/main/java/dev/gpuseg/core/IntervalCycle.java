/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Distances of begins that repeat after two or three: a job of two segments, or two periods in turn. The next distance
 * is that of one cycle ago. A begin that was left out counts as two distances. Integers only; allocates nothing after
 * construction.
 */
final class IntervalCycle {
    /** The longest cycle. */
    static final int LONGEST = 3;
    /** Distances that are compared with those of a cycle ago before a cycle is believed in. */
    static final int MATCHES = 5;

    private static final int KEPT = LONGEST + MATCHES;
    private static final int WINDOW = 64;
    private static final int MISFITS_MAX = 3;
    private static final int TOLERANCE_SHIFT = 3;

    private final long[] kept = new long[KEPT];
    private final SortedWindow errors = new SortedWindow(WINDOW);
    private int at;
    private int count;
    private int length;
    private int misfits;

    void clear() {
        count = 0;
        forget();
    }

    private void forget() {
        length = 0;
        misfits = 0;
        errors.clear();
    }

    /** Takes a begin that followed the one before; true if it came as the cycle says. */
    boolean add(final long ns) {
        if (length == 0) {
            push(ns);
            find();
            return false;
        }
        final long next = ago(length);
        final long both = next + ago(length - 1);
        if (isNear(ns, next)) {
            errors.add(ns - next);
            push(ns);
        } else if (isNear(ns, both)) {
            errors.add(ns - both);
            push(next);
            push(ns - next);
        } else {
            push(ns);
            if (++misfits >= MISFITS_MAX) {
                forget();
                find();
            }
            return false;
        }
        misfits = 0;
        return true;
    }

    private void push(final long ns) {
        kept[at] = ns;
        at = at + 1 == KEPT ? 0 : at + 1;
        count = Math.min(KEPT, count + 1);
    }

    /** The distance so many begins ago; 1 is the newest. */
    private long ago(final int begins) {
        return kept[(at - begins + KEPT) % KEPT];
    }

    private void find() {
        for (int candidate = 2; candidate <= LONGEST && length == 0; candidate++) {
            if (count >= candidate + MATCHES && repeats(candidate)) {
                length = candidate;
                for (int i = MATCHES; i >= 1; i--) {
                    errors.add(ago(i) - ago(i + candidate));
                }
            }
        }
    }

    private boolean repeats(final int candidate) {
        for (int i = 1; i <= MATCHES; i++) {
            if (!isNear(ago(i), ago(i + candidate))) {
                return false;
            }
        }
        return true;
    }

    private static boolean isNear(final long ns, final long expectedNs) {
        return Math.abs(ns - expectedNs) <= expectedNs >> TOLERANCE_SHIFT;
    }

    /** Whether there is a cycle. */
    boolean isKnown() {
        return length > 0;
    }

    /** From the newest begin to the one after so many others, ns. */
    long nextNs(final int others) {
        long sum = 0;
        for (int i = 0; i <= others; i++) {
            sum += ago(length - i % length);
        }
        return sum;
    }

    /** Mean distance of two begins, ns. */
    long meanNs() {
        return nextNs(length - 1) / length;
    }

    /** How much later than forecast the newest begins came; negative: earlier. */
    SortedWindow errors() {
        return errors;
    }
}

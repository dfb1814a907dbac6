/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * By how much the begins of one task cost more than was expected of them: means of the newest ones, expected and
 * measured. Integers only.
 */
final class ExpectedLoss {
    private static final int BEGINS = 64;
    /** Fewer say nothing. */
    private static final int BEGINS_MIN = 8;
    /** What is not measured any more is forgotten slowly. */
    private static final int FORGET_SHIFT = 8;
    private static final long ONE = SortedWindow.PERMILLE;
    private static final long LEAST = ONE / 2;
    private static final long MOST = 4 * ONE;

    private int begins;
    private long meanExpectedNs;
    private long meanSpentNs;
    private long factorPermille = ONE;
    private long expectedNs;
    private long spentNs;
    private boolean isServed;

    void reset() {
        begins = 0;
        meanExpectedNs = 0;
        meanSpentNs = 0;
        factorPermille = ONE;
        expectedNs = 0;
        spentNs = 0;
        isServed = false;
    }

    /** The begin that was planned last is anticipated. */
    void serve() {
        isServed = true;
    }

    /** Time was used for the begin that was planned last. */
    void spend(final long ns) {
        spentNs += ns;
    }

    /** The begin that was planned last is over, and the next one is planned. */
    void settle() {
        if (isServed && expectedNs > 0) {
            begins = Math.min(BEGINS, begins + 1);
            meanExpectedNs += (expectedNs - meanExpectedNs) / begins;
            meanSpentNs += (spentNs - meanSpentNs) / begins;
            if (begins >= BEGINS_MIN) {
                factorPermille = Math.max(LEAST, Math.min(MOST, ONE * meanSpentNs / Math.max(1, meanExpectedNs)));
            }
        }
        expectedNs = 0;
        spentNs = 0;
        isServed = false;
    }

    /** The planned begin is expected to cost so much, before {@link #scaled}. */
    void expect(final long ns) {
        expectedNs = ns;
    }

    /** The planned begin is not served, so nothing is measured. */
    void refuse() {
        if (factorPermille > ONE) {
            factorPermille -= Math.max(1, (factorPermille - ONE) >> FORGET_SHIFT);
        }
    }

    /** What a begin of which so much is expected costs. */
    long scaled(final long ns) {
        return ns * factorPermille / ONE;
    }
}

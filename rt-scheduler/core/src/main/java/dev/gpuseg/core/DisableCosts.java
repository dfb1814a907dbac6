/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * How long it took to disable contexts of one GPU, from the decision until the last of them was off: the newest
 * measurements, apart for different numbers of contexts. Until there are enough, what the mechanism states.
 */
final class DisableCosts {
    /** Added to what the mechanism states: two thread wake-ups and the jitter of sleeping threads. */
    static final long MARGIN_NS = 300_000;
    /** Fewer measurements say nothing about a quantile. */
    static final int SAMPLES_MIN = 8;
    /** What takes longer waited for something else. */
    static final long MAX_NS = 20_000_000;

    private static final int WINDOW = 64;
    private static final int CLASSES = 6;
    /** None took longer than a measurement that was ended: so much is added to it. */
    private static final int ENDED_SHIFT = 3;
    private static final int INT_BITS = 32;

    private final SortedWindow[] windows = new SortedWindow[CLASSES];
    private long statedNs;
    private long statedPerContextNs;

    DisableCosts() {
        for (int i = 0; i < CLASSES; i++) {
            windows[i] = new SortedWindow(WINDOW);
        }
    }

    /** What the mechanism states: the cost of one context, and of each further one, ns. */
    void state(final long disableNs, final long perContextNs) {
        statedNs = disableNs;
        statedPerContextNs = perContextNs;
    }

    /** Forgets what was measured. */
    void clear() {
        for (final SortedWindow window : windows) {
            window.clear();
        }
    }

    /** A measurement. */
    void add(final int contexts, final long costNs) {
        if (contexts > 0 && costNs >= 0 && costNs <= MAX_NS) {
            windows[classOf(contexts)].add(costNs);
        }
    }

    /**
     * A measurement that was ended after so long. It counts as the middle one of those that took longer: without it,
     * what takes long would be measured least.
     */
    void addAtLeast(final int contexts, final long endedNs) {
        final int known = known(contexts);
        if (known >= 0 && endedNs >= 0 && endedNs <= MAX_NS) {
            final long longer = windows[known].middleAbove(endedNs);
            windows[known].add(longer > 0 ? longer : endedNs + (endedNs >> ENDED_SHIFT));
        }
    }

    /** 1, 2, 3..4, 5..8, 9..16 contexts, more. */
    private static int classOf(final int contexts) {
        return Math.min(CLASSES - 1, INT_BITS - Integer.numberOfLeadingZeros(contexts - 1));
    }

    /** The class to ask: the own one, or the nearest smaller one, or the nearest larger one with measurements. */
    private int known(final int contexts) {
        final int own = classOf(contexts);
        for (int i = own; i >= 0; i--) {
            if (windows[i].size() >= SAMPLES_MIN) {
                return i;
            }
        }
        for (int i = own + 1; i < CLASSES; i++) {
            if (windows[i].size() >= SAMPLES_MIN) {
                return i;
            }
        }
        return -1;
    }

    /** Contexts that a smaller class lacks. */
    private long lackNs(final int contexts, final int known) {
        return statedPerContextNs * Math.max(0, contexts - (1 << known));
    }

    /** Whether as much as is kept was measured, for some number of contexts. */
    boolean isFull() {
        for (final SortedWindow window : windows) {
            if (window.size() == WINDOW) {
                return true;
            }
        }
        return false;
    }

    /** How long disabling so many contexts takes in so many of 1000 cases, ns. */
    long quantileNs(final int contexts, final int permille) {
        final int known = known(contexts);
        return known < 0 ? statedNs(contexts)
            : windows[known].quantile(permille) + lackNs(contexts, known);
    }

    /** How long it takes on average, ns. */
    long meanNs(final int contexts) {
        final int known = known(contexts);
        return known < 0 ? statedNs(contexts) - MARGIN_NS : windows[known].mean() + lackNs(contexts, known);
    }

    /** What the mechanism states, with the margin. */
    long statedNs(final int contexts) {
        return statedNs + statedPerContextNs * Math.max(0, contexts - 1) + MARGIN_NS;
    }
}

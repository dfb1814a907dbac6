/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.util.concurrent.atomic.AtomicLongArray;

/** The values of {@link Counter}. W: the dispatcher alone (opaque stores), R: any thread. */
public final class Counters {
    private final AtomicLongArray values = new AtomicLongArray(Counter.values().length);

    /**
     * Adds one. Dispatcher thread only.
     *
     * @param counter which
     */
    public void increment(final Counter counter) {
        add(counter, 1);
    }

    /**
     * Adds. Dispatcher thread only.
     *
     * @param counter which
     * @param delta   how much
     */
    void add(final Counter counter, final long delta) {
        final int i = counter.ordinal();
        values.setOpaque(i, values.getPlain(i) + delta);
    }

    /**
     * Replaces a value. Dispatcher thread only.
     *
     * @param counter which
     * @param value   the new value
     */
    public void set(final Counter counter, final long value) {
        values.setOpaque(counter.ordinal(), value);
    }

    /**
     * Reads a value. Any thread.
     *
     * @param counter which
     * @return its value, possibly a moment old
     */
    public long get(final Counter counter) {
        return values.getOpaque(counter.ordinal());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.core.Reservation;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Which contexts of one GPU are wanted on the hardware. W: the dispatcher, R: that GPU's enforcer.
 *
 * <p>A sequence lock: the version is odd while the dispatcher changes several contexts, so the enforcer never applies
 * half of a decision. The enforcer reads the newest state, not every state: bursts coalesce.
 */
public final class DesiredState implements Reservation.Target {
    private static final VarHandle VERSION;
    private static final int OFF = 1;
    private static final int SPARED = 2;
    private static final int RESTS = 4;

    static {
        try {
            VERSION = MethodHandles.lookup().findVarHandle(DesiredState.class, "version", long.class);
        } catch (final ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static final int NONE = -1;
    /** Looks for an even version without a rest. The dispatcher is between two stores for less, as long as it runs. */
    private static final int LOOKS = 200;
    private static final long REST_NS = 50_000;

    private final AtomicIntegerArray state;
    /** The context that the GPU is reserved for; counts only while no context is set off. */
    private final AtomicInteger reserved = new AtomicInteger(NONE);
    /** Those that {@link #spare} named. */
    private final int[] spared;
    private int sparedCount;
    @SuppressWarnings("unused")   // through VERSION
    private long version;
    private long open;

    /**
     * All contexts are enabled.
     *
     * @param contexts highest number and one
     */
    public DesiredState(final int contexts) {
        state = new AtomicIntegerArray(contexts);
        spared = new int[contexts];
    }

    /** How many numbers of contexts there are. */
    int contexts() {
        return state.length();
    }

    /** Dispatcher: sets one context; visible with the next {@link #commit}. */
    public void set(final int contextId, final boolean enabled) {
        change();
        final int kept = state.getPlain(contextId) & ~OFF;
        state.setOpaque(contextId, enabled ? kept : kept | OFF);
    }

    /** Dispatcher: a context is off besides whatever is set; visible with the next {@link #commit}. */
    public void rest(final int contextId, final boolean rests) {
        change();
        final int kept = state.getPlain(contextId) & ~RESTS;
        state.setOpaque(contextId, rests ? kept | RESTS : kept);
    }

    /**
     * Dispatcher: from the next {@link #commit} on, while no context is set off, all but this one and those that are
     * {@linkplain #spare spared} count as off. Not to be called while a reservation is in force.
     */
    @Override
    public void reserve(final int contextId) {
        change();
        reserved.setOpaque(contextId);
    }

    /** Dispatcher: the reservation in force does not concern this context. Once for each context. */
    @Override
    public void spare(final int contextId) {
        change();
        state.setOpaque(contextId, state.getPlain(contextId) | SPARED);
        spared[sparedCount++] = contextId;
    }

    /** Dispatcher: ends {@link #reserve}. */
    @Override
    public void unreserve() {
        if (reserved.getPlain() != NONE) {
            change();
            reserved.setOpaque(NONE);
            while (sparedCount > 0) {
                final int contextId = spared[--sparedCount];
                state.setOpaque(contextId, state.getPlain(contextId) & ~SPARED);
            }
        }
    }

    private void change() {
        if ((open & 1) == 0) {
            open++;
            VERSION.setOpaque(this, open);
            VarHandle.storeStoreFence();   // a reader that sees a change sees the odd version
        }
    }

    /**
     * Dispatcher: publishes what was set. A release store: a caller that then asks whether the enforcer sleeps needs a
     * full fence between ({@link SleepFlag#mustWake}).
     *
     * @return the version of the published state
     */
    public long commit() {
        if ((open & 1) == 1) {
            open++;
            VERSION.setRelease(this, open);   // pairs with the acquire in snapshot
        }
        return open;
    }

    /** Any thread: whether a state newer than this version is, or is about to be, published. */
    public boolean isNewerThan(final long seen) {
        return (long) VERSION.getAcquire(this) != seen;
    }

    /**
     * Enforcer: copies a consistent state.
     *
     * @param off receives true for each context that is wanted off the hardware
     * @return its version
     */
    public long snapshot(final boolean[] off) {
        for (int looks = 1;; looks++) {
            final long before = (long) VERSION.getAcquire(this);
            if ((before & 1) == 0) {
                boolean someOff = false;
                for (int i = 0; i < off.length; i++) {
                    off[i] = (state.getOpaque(i) & OFF) != 0;
                    someOff |= off[i];
                }
                final int free = reserved.getOpaque();
                if (free != NONE && !someOff) {
                    for (int i = 0; i < off.length; i++) {
                        off[i] |= i != free && (state.getOpaque(i) & SPARED) == 0;
                    }
                }
                for (int i = 0; i < off.length; i++) {
                    off[i] |= (state.getOpaque(i) & RESTS) != 0;
                }
                VarHandle.loadLoadFence();
                if ((long) VERSION.getOpaque(this) == before) {
                    return before;
                }
            }
            if (looks % LOOKS == 0) {
                LockSupport.parkNanos(this, REST_NS);   // it may need this processor: both have the same priority
            } else {
                Thread.onSpinWait();   // the dispatcher is between two stores
            }
        }
    }
}

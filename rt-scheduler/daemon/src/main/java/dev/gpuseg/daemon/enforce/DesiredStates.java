/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import java.util.ArrayList;
import java.util.List;

/**
 * Which contexts are wanted on each GPU: collects what one event changes, publishes it to the enforcers, and knows
 * whether all that was ever disabled is off. Dispatcher thread only. {@link #timeslice} and {@link #forget} give the
 * enforcer a command, which is allocated; the rest allocates nothing.
 */
public final class DesiredStates {
    private final Enforcement[] enforcers;
    private final boolean[] changed;
    private final boolean[] disabling;
    /** By GPU: version of the newest state that disables a context, or in which a reservation began or ended. */
    private final long[] disableVersion;
    private final List<Forgetter> forgetters = new ArrayList<>();

    public DesiredStates(final Enforcement[] enforcers) {
        this.enforcers = enforcers.clone();
        changed = new boolean[enforcers.length];
        disabling = new boolean[enforcers.length];
        disableVersion = new long[enforcers.length];
    }

    /** What is kept about a context is forgotten with it. */
    @FunctionalInterface
    public interface Forgetter {
        /** A context is gone, and its id may be used again. */
        void forget(int gpu, int contextId);
    }

    /** Names who is told of each context that is gone. Before the first event. */
    public void onForget(final Forgetter forgetter) {
        forgetters.add(forgetter);
    }

    /** How many GPUs there are. */
    public int gpus() {
        return enforcers.length;
    }

    /** What enforces on a GPU. */
    public Enforcement enforcer(final int gpu) {
        return enforcers[gpu];
    }

    /** A context is wanted on or off; takes effect with the next {@link #publish}. */
    public void set(final int gpu, final int contextId, final boolean enabled) {
        enforcers[gpu].desired().set(contextId, enabled);
        changed[gpu] = true;
        disabling[gpu] |= !enabled;
    }

    /** Asks for a length of a context's turn in the device's own round robin. */
    public void timeslice(final int gpu, final int contextId, final long timesliceNs) {
        enforcers[gpu].timeslice(contextId, timesliceNs);
    }

    /**
     * Publishes what was set, if anything was.
     *
     * @param reservationChanged whether a reservation began or ended, which may disable contexts
     */
    public void publish(final int gpu, final boolean reservationChanged) {
        if (!changed[gpu] && !reservationChanged) {
            return;
        }
        final long version = enforcers[gpu].desired().commit();
        if (disabling[gpu] || reservationChanged) {
            disableVersion[gpu] = version;
        }
        changed[gpu] = false;
        disabling[gpu] = false;
        enforcers[gpu].kick();
    }

    /** A context is gone: its id counts as wanted on, for the next context that gets it. */
    public void forget(final int gpu, final int contextId) {
        for (final Forgetter forgetter : forgetters) {
            forgetter.forget(gpu, contextId);
        }
        enforcers[gpu].desired().set(contextId, true);
        enforcers[gpu].desired().commit();
        enforcers[gpu].detach(contextId);   // wakes the enforcer
    }

    /** Version of the newest state that disables a context. */
    public long disableVersion(final int gpu) {
        return disableVersion[gpu];
    }

    /** Whether no context that any decision so far disabled is still on. */
    public boolean isSettled(final int gpu) {
        return enforcers[gpu].enforcedVersion() >= disableVersion[gpu];
    }
}

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
    /** By GPU, then context: set off. */
    private final boolean[][] off;
    private final int[] offCount;
    /** By GPU: contexts that are set off and not published yet, since a begin can do without. */
    private final int[][] pending;
    private final int[] pendingCount;
    /** By GPU, then context: the slices that shares and {@link #turnSlice} ask for, ns; 0 = none. */
    private final long[][] shareNs;
    private final long[][] turnNs;
    /** By GPU, then context: one whose slice is short, so that a begin can do without its disable. */
    private final boolean[][] yields;
    /** By GPU: version of the newest state that disables a context, or in which a reservation began or ended. */
    private final long[] disableVersion;
    private final List<Forgetter> forgetters = new ArrayList<>();

    public DesiredStates(final Enforcement[] enforcers) {
        this.enforcers = enforcers.clone();
        changed = new boolean[enforcers.length];
        disabling = new boolean[enforcers.length];
        off = new boolean[enforcers.length][];
        offCount = new int[enforcers.length];
        pending = new int[enforcers.length][];
        pendingCount = new int[enforcers.length];
        shareNs = new long[enforcers.length][];
        turnNs = new long[enforcers.length][];
        yields = new boolean[enforcers.length][];
        for (int g = 0; g < enforcers.length; g++) {
            final int contexts = enforcers[g].desired().contexts();
            off[g] = new boolean[contexts];
            pending[g] = new int[contexts];
            shareNs[g] = new long[contexts];
            turnNs[g] = new long[contexts];
            yields[g] = new boolean[contexts];
        }
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
        final boolean isNew = off[gpu][contextId] == enabled;
        if (isNew) {
            off[gpu][contextId] = !enabled;
            offCount[gpu] += enabled ? -1 : 1;
        }
        if (enabled && !withdraw(gpu, contextId)) {
            enforcers[gpu].desired().set(contextId, true);
            changed[gpu] = true;
        } else if (!enabled && isNew) {
            pending[gpu][pendingCount[gpu]++] = contextId;
        }
    }

    /** Forgets that a context was set off, if that was not published yet. */
    private boolean withdraw(final int gpu, final int contextId) {
        for (int i = 0; i < pendingCount[gpu]; i++) {
            if (pending[gpu][i] == contextId) {
                pending[gpu][i] = pending[gpu][--pendingCount[gpu]];
                return true;
            }
        }
        return false;
    }

    /** Whether a context is set off and stays on for now, see {@link #publish}. */
    public boolean hasUnpublished(final int gpu) {
        return pendingCount[gpu] > 0;
    }

    /** Whether a context is set off: best effort does not have the GPU, or not all of it. */
    public boolean hasDisabled(final int gpu) {
        return offCount[gpu] > 0;
    }

    /**
     * A best-effort context does not have the turn, or has it; takes effect with the next {@link #publish}. Nobody
     * waits for it: {@link #disableVersion} stays.
     */
    public void rest(final int gpu, final int contextId, final boolean rests) {
        enforcers[gpu].desired().rest(contextId, rests);
        changed[gpu] = true;
    }

    /** Asks for a length of a context's turn in the device's own round robin, for its share; 0 = none. */
    public void timeslice(final int gpu, final int contextId, final long timesliceNs) {
        ask(gpu, contextId, timesliceNs, turnNs[gpu][contextId]);
    }

    /**
     * As {@link #timeslice}, so that begins need not wait for a call; what a share asks for comes first.
     *
     * @param yieldsAtOnce its slice is short
     */
    public void turnSlice(final int gpu, final int contextId, final long timesliceNs, final boolean yieldsAtOnce) {
        yields[gpu][contextId] = yieldsAtOnce;
        ask(gpu, contextId, shareNs[gpu][contextId], timesliceNs);
    }

    private void ask(final int gpu, final int contextId, final long newShareNs, final long newTurnNs) {
        final long before = wantedNs(gpu, contextId);
        shareNs[gpu][contextId] = newShareNs;
        turnNs[gpu][contextId] = newTurnNs;
        if (wantedNs(gpu, contextId) != before) {
            enforcers[gpu].timeslice(contextId, wantedNs(gpu, contextId));
        }
    }

    private long wantedNs(final int gpu, final int contextId) {
        return shareNs[gpu][contextId] == 0 ? turnNs[gpu][contextId] : shareNs[gpu][contextId];
    }

    /**
     * Publishes what was set, if anything was.
     *
     * @param reservationChanged whether a reservation began or ended, which may disable contexts
     * @param later              contexts that yield ({@link #turnSlice}) and were set off stay on for now
     */
    public void publish(final int gpu, final boolean reservationChanged, final boolean later) {
        int kept = 0;
        for (int i = 0; i < pendingCount[gpu]; i++) {
            final int contextId = pending[gpu][i];
            if (later && yields[gpu][contextId]) {
                pending[gpu][kept++] = contextId;
            } else {
                enforcers[gpu].desired().set(contextId, false);
                changed[gpu] = true;
                disabling[gpu] = true;
            }
        }
        pendingCount[gpu] = kept;
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
        withdraw(gpu, contextId);
        if (off[gpu][contextId]) {
            off[gpu][contextId] = false;
            offCount[gpu]--;
        }
        shareNs[gpu][contextId] = 0;
        turnNs[gpu][contextId] = 0;
        yields[gpu][contextId] = false;
        enforcers[gpu].desired().set(contextId, true);
        enforcers[gpu].desired().rest(contextId, false);
        enforcers[gpu].desired().commit();
        enforcers[gpu].detach(contextId);   // wakes the enforcer
    }

    /** Version of the newest state that disables a context. */
    public long disableVersion(final int gpu) {
        return disableVersion[gpu];
    }

    /** Whether no context that any decision so far disabled is still on. */
    public boolean isSettled(final int gpu) {
        return pendingCount[gpu] == 0 && enforcers[gpu].enforcedVersion() >= disableVersion[gpu];
    }
}

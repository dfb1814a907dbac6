/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.Arrays;

/**
 * The time slices that contexts of one GPU have at the dispatcher's wish. A slice is written to the held file before it
 * is set, as a disable is: a dead daemon leaves no process with a slice that is not its own. Enforcer's thread only.
 */
final class WantedTimeslices {
    private final int gpu;
    private final Mechanism mechanism;
    private final HeldFile held;
    private final EnforcerResults results;
    /** 0 = its own. */
    private final long[] wantedNs;
    private final int[] heldIndex;
    /** Its slice could not be set. */
    private final boolean[] isMissing;

    WantedTimeslices(final int gpu, final Mechanism mechanism, final HeldFile held, final EnforcerResults results,
        final int contexts) {
        this.gpu = gpu;
        this.mechanism = mechanism;
        this.held = held;
        this.results = results;
        wantedNs = new long[contexts];
        heldIndex = new int[contexts];
        Arrays.fill(heldIndex, HeldFile.FULL);
        isMissing = new boolean[contexts];
    }

    /** Sets the slice of an attached context, ns; 0 = its own again. Nothing happens if the device has no slices. */
    void set(final ContextRef context, final long timesliceNs) {
        if (mechanism.capabilities().timeslice()) {
            wantedNs[context.contextId()] = timesliceNs;
            apply(context);
        }
    }

    /** What stands behind an attached context is more or less than before. */
    void setAgain(final ContextRef context) {
        if (isChanged(context.contextId())) {
            apply(context);
        }
    }

    /** Whether no slice that is wanted could not be set. */
    boolean areSet() {
        for (final boolean missing : isMissing) {
            if (missing) {
                return false;
            }
        }
        return true;
    }

    /** Gives an attached context its own slice again. */
    void restore(final ContextRef context) {
        if (isChanged(context.contextId())) {
            set(context, 0);
        }
    }

    /** Or perhaps so: it could not be given back. */
    private boolean isChanged(final int contextId) {
        return wantedNs[contextId] != 0 || heldIndex[contextId] != HeldFile.FULL;
    }

    /** The context is gone, and the mechanism has given its own slice back. */
    void forget(final int contextId) {
        wantedNs[contextId] = 0;
        isMissing[contextId] = false;
        if (heldIndex[contextId] != HeldFile.FULL) {
            held.release(heldIndex[contextId]);
            heldIndex[contextId] = HeldFile.FULL;
        }
    }

    private void apply(final ContextRef context) {
        final long timesliceNs = wantedNs[context.contextId()];
        isMissing[context.contextId()] = false;
        if (timesliceNs != 0 && mechanism.units(context) == 0) {
            return;   // without work there is nothing to set it on yet; setAgain follows
        }
        if (timesliceNs != 0 && !note(context)) {
            isMissing[context.contextId()] = true;
            return;
        }
        if (!mechanism.setTimeslice(context, timesliceNs)) {
            isMissing[context.contextId()] = true;
            results.error("timeslice of " + timesliceNs + " ns: " + mechanism.lastError());
        } else if (timesliceNs == 0) {
            forget(context.contextId());
        }
    }

    private boolean note(final ContextRef context) {
        final byte[] own = mechanism.timeslicePayload(context);
        if (own.length == 0) {
            return true;
        }
        final int contextId = context.contextId();
        final int before = heldIndex[contextId];
        final int noted = held.noteTimeslice(mechanism.id(), context.pid(), context.pidStartTicks(), gpu, contextId,
            System.nanoTime(), own);
        if (noted == HeldFile.FULL) {
            results.error("held file is full: the time slice of " + context + " is not changed");
            return false;
        }
        heldIndex[contextId] = noted;
        if (before != HeldFile.FULL) {
            held.release(before);
        }
        return true;
    }
}

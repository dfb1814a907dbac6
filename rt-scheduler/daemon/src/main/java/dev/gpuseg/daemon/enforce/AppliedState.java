/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.core.Reconciler;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.Arrays;

/**
 * The contexts of one GPU, and which {@link DesiredState} is applied to them: carries out what core's
 * {@link Reconciler} orders, with the mechanism and the held file, and publishes how far that is. W: the GPU's
 * enforcer, R: the dispatcher, and the daemon at its stop.
 */
final class AppliedState implements Reconciler.Effects {
    private static final long NOTHING_DISABLED = 0;
    private static final long NONE = -1;

    private final int gpu;
    private final Mechanism mechanism;
    private final HeldFile held;
    private final EnforcerResults results;
    private final ContextRef[] contexts;
    /** The entry of each context in the held file, {@link HeldFile#FULL} if it has none. */
    private final int[] heldIndex;
    private final ContextRef[] toDisable;
    private final ContextRef[] toEnable;
    /** When the last disable was done for which {@link #enforced} has not been called yet. */
    private long disabledNs = NOTHING_DISABLED;

    /** W enforcer (volatile), R dispatcher: every context off in the state of this version is off. */
    private volatile long enforcedVersion;
    /** At least one context that must be off is not, or perhaps not. Written before enforcedVersion. */
    private volatile boolean incomplete;
    /** W enforcer, R daemon at its stop: the newest version of which nothing is left to do. */
    private volatile long settledVersion;
    /** When enforcedVersion was reached. Written before it. */
    private volatile long enforcedNs;

    AppliedState(final int gpu, final Mechanism mechanism, final HeldFile held, final EnforcerResults results,
        final int contexts) {
        this.gpu = gpu;
        this.mechanism = mechanism;
        this.held = held;
        this.results = results;
        this.contexts = new ContextRef[contexts];
        heldIndex = new int[contexts];
        Arrays.fill(heldIndex, HeldFile.FULL);
        toDisable = new ContextRef[contexts];
        toEnable = new ContextRef[contexts];
    }

    // Any thread.

    long enforcedVersion() {
        return enforcedVersion;
    }

    long enforcedNs() {
        return enforcedNs;
    }

    boolean isIncomplete() {
        return incomplete;
    }

    long settledVersion() {
        return settledVersion;
    }

    // Enforcer.

    /** The context of this id; null if the mechanism has none. */
    ContextRef context(final int contextId) {
        return contexts[contextId];
    }

    /** The mechanism knows a context from now on. */
    void put(final ContextRef context) {
        contexts[context.contextId()] = context;
    }

    /** The mechanism no longer knows a context. Its entry in the held file is left to {@link Reconciler#detach}. */
    void remove(final int contextId) {
        contexts[contextId] = null;
    }

    /** What is disabled may be enabled by now: no state is enforced until it is applied again. */
    void released() {
        incomplete = true;
        enforcedVersion = NONE;
    }

    @Override
    public boolean hold(final int context) {
        final ContextRef c = contexts[context];
        final int before = heldIndex[context];
        final int index = held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), gpu, context, System.nanoTime(),
            mechanism.heldPayload(c));
        if (index == HeldFile.FULL) {
            results.error(before == HeldFile.FULL ? "held file is full: " + c + " stays enabled"
                : "held file is full: the entry of " + c + " does not name its newest channels");
            return false;
        }
        heldIndex[context] = index;
        if (before != HeldFile.FULL) {
            held.release(before);   // never without an entry
        }
        return true;
    }

    @Override
    public void clear(final int context) {
        held.release(heldIndex[context]);
        heldIndex[context] = HeldFile.FULL;
    }

    @Override
    public long apply(final int[] disable, final int disableCount, final int[] enable, final int enableCount) {
        for (int i = 0; i < disableCount; i++) {
            toDisable[i] = contexts[disable[i]];
        }
        for (int i = 0; i < enableCount; i++) {
            toEnable[i] = contexts[enable[i]];
        }
        mechanism.apply(toDisable, disableCount, toEnable, enableCount);
        final long nowNs = System.nanoTime();
        if (disableCount > 0) {
            disabledNs = nowNs;
        }
        return nowNs;
    }

    @Override
    public boolean succeeded(final int context) {
        return contexts[context].result() != ContextRef.SwitchResult.FAILED;
    }

    @Override
    public void disabled(final int context) {
        results.changed(contexts[context], true);
    }

    @Override
    public void enabled(final int context) {
        results.changed(contexts[context], false);
    }

    @Override
    public void failed() {
        results.error(mechanism.lastError());
    }

    @Override
    public void enforced(final long version, final boolean isIncomplete) {
        incomplete = isIncomplete;
        if (version != enforcedVersion) {
            enforcedNs = disabledNs == NOTHING_DISABLED ? System.nanoTime() : disabledNs;
            enforcedVersion = version;
            results.wakeDispatcher();   // before anything is enabled: grants wait for it
        }
        disabledNs = NOTHING_DISABLED;
    }

    @Override
    public void settled(final long version) {
        settledVersion = version;
    }
}

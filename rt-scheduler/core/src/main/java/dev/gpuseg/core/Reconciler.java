/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Reconciles the applied with the desired state of the contexts of one GPU. It decides what to disable and enable, and
 * in which order; what touches a device, a file or another thread happens behind {@link Effects}. The same class runs
 * in the daemon's enforcer, on its own thread, and in the simulator.
 *
 * <h2>The rule</h2>
 * It works from states, not from commands: each {@link #cycle} takes the newest desired state, so bursts coalesce.
 * <ol>
 * <li>Contexts to be disabled are written to the held file, then disabled.
 * <li>It reads the desired state again before it enables anything: a newer one may want more disabled.
 * <li>When nothing is left to disable, the state is <em>enforced</em>: grants may go out. Then contexts are enabled, in
 * the same cycle: if processes come and go all the time, there is something to disable anew in every cycle.
 * <li>When nothing is left to enable either, the state is <em>settled</em>.
 * </ol>
 * If a context cannot be disabled, the state counts as enforced but incomplete (grants do not wait for it: fail open),
 * and all is tried again after {@value #RETRY_NS} ns. After a failure a context may be disabled or not, whatever was
 * tried: it stays in the held file until an enable succeeds, and a state that wants it disabled disables it again.
 *
 * <p>Enables are put off <em>once</em>, by a context that cannot be disabled or is not attached yet. The next cycle
 * makes them: nobody keeps others off the device by what he does.
 *
 * <h2>Devices that change all at once</h2>
 * If the device takes disables and enables in one step, as a driver that rewrites its runlist does, a cycle asks for
 * both together, and the state is enforced when the step is done.
 *
 * <h2>Devices that take time</h2>
 * {@link Effects#apply} may answer {@link Effects#PENDING}; then {@link #complete} says when it is done, and cycles in
 * between do nothing.
 *
 * <p>Not thread-safe; starts nothing, reads no clock, and allocates nothing after construction.
 */
public final class Reconciler {
    /** After a failure the desired state is applied again this much later. */
    public static final long RETRY_NS = 10_000_000;
    private static final long NONE = -1;

    /** The desired state, perhaps written by another thread. */
    public interface Desired {
        /**
         * Whether there is another state than that of a version.
         *
         * @param version as {@link #snapshot} returned it, or -1
         * @return true if a newer one is, or is about to be, published
         */
        boolean isNewerThan(long version);

        /**
         * Copies a consistent state.
         *
         * @param off receives, for each context, whether it is to be disabled
         * @return its version, not negative
         */
        long snapshot(boolean[] off);

        /**
         * Whether contexts of the state that was just read still wait to be attached. It is then not called enforced,
         * and read again in the next cycle, after they were.
         *
         * @return false where contexts are attached before they are in any state
         */
        default boolean awaitsAttach() {
            return false;
        }
    }

    /** What follows. Calls come from {@link #cycle} and {@link #complete}, and must not call back. */
    public interface Effects {
        /** {@link #apply}: not done yet; {@link Reconciler#complete} follows. */
        long PENDING = -1;

        /**
         * Writes to the held file that a context is, or may be, disabled; an entry that the context has is replaced.
         *
         * @param context its id
         * @return false if there is no room; the context then stays enabled, and an older entry stays
         */
        boolean hold(int context);

        /**
         * Clears the context's entry in the held file: it is enabled, or gone.
         *
         * @param context its id
         */
        void clear(int context);

        /**
         * Changes the device. One of the counts is 0 unless the device changes all at once.
         *
         * @param disable      contexts to disable
         * @param disableCount how many
         * @param enable       contexts to enable
         * @param enableCount  how many
         * @return when it was done, ns; {@link #PENDING} if it is not
         */
        long apply(int[] disable, int disableCount, int[] enable, int enableCount);

        /**
         * Asked after the device changed.
         *
         * @param context one of those that were to change
         * @return false if it could not be changed
         */
        boolean succeeded(int context);

        /**
         * A context was disabled.
         *
         * @param context its id
         */
        void disabled(int context);

        /**
         * A context was enabled, and its entry in the held file cleared.
         *
         * @param context its id
         */
        void enabled(int context);

        /** At least one context could not be changed by the last {@link #apply}. */
        void failed();

        /**
         * Every context that a state wants disabled is disabled, or cannot be. May be called again for the same
         * version, and is if that makes it complete or incomplete.
         *
         * @param version    of the state
         * @param incomplete true if at least one could not be disabled
         */
        void enforced(long version, boolean incomplete);

        /**
         * Nothing of a state is left to do.
         *
         * @param version of the state
         */
        void settled(long version);
    }

    private final Desired desired;
    private final Effects effects;
    private final boolean atOnce;

    private final boolean[] attached;
    private final boolean[] off;
    /** It has an entry in the held file: it is disabled, or not known to be enabled. */
    private final boolean[] held;
    private final boolean[] wantedOff;
    private final int[] toDisable;
    private final int[] toEnable;
    private int disableCount;
    private int enableCount;
    private boolean lacksRoom;
    /** No context of the state that was read last waits to be attached. */
    private boolean isWhole = true;
    /** Enables were put off: the next ones are made. */
    private boolean hasPutOff;
    /** The next step leaves disables out: they have just failed. */
    private boolean enablesOnly;
    /** The version of the state whose disables they were. */
    private long triedVersion = NONE;

    private long appliedVersion = NONE;
    private long retryAtNs = Time.NEVER;
    private long pendingVersion = NONE;

    /**
     * A reconciler without contexts.
     *
     * @param maxContexts highest context id
     * @param atOnce      whether the device takes disables and enables in one step
     * @param desired     what is wanted
     * @param effects     what follows
     */
    public Reconciler(final int maxContexts, final boolean atOnce, final Desired desired, final Effects effects) {
        this.desired = desired;
        this.effects = effects;
        this.atOnce = atOnce;
        final int size = maxContexts + 1;
        attached = new boolean[size];
        off = new boolean[size];
        held = new boolean[size];
        wantedOff = new boolean[size];
        toDisable = new int[size];
        toEnable = new int[size];
    }

    /** Starts anew with the same contexts, all enabled and without entries in the held file. */
    public void reset() {
        Arrays.fill(off, false);
        Arrays.fill(held, false);
        retryAtNs = Time.NEVER;
        pendingVersion = NONE;
        hasPutOff = false;
        enablesOnly = false;
        invalidate();
    }

    /**
     * A context exists from now on; it is enabled.
     *
     * @param context its id
     */
    public void attach(final int context) {
        attached[context] = true;
        off[context] = false;
        invalidate();
    }

    /**
     * A context is gone; its entry in the held file is cleared.
     *
     * @param context its id
     */
    public void detach(final int context) {
        if (attached[context]) {
            attached[context] = false;
            off[context] = false;
            clear(context);
        }
        invalidate();
    }

    /** The desired state is to be applied in the next cycle, whether it is newer or not. */
    public void invalidate() {
        appliedVersion = NONE;
    }

    /**
     * The watchdog enabled what it found in the held file, or tried to. The entries stay: what must be disabled is
     * disabled again, and the rest is enabled.
     */
    public void released() {
        Arrays.fill(off, false);
        invalidate();
    }

    /**
     * What stands behind the contexts is more or less than what was changed before. All are written to the held file
     * anew, and the desired state is applied to all, enables included: the state of the new parts is not known.
     */
    public void changed() {
        for (int c = 0; c < attached.length; c++) {
            if (attached[c]) {
                held[c] |= effects.hold(c);
                off[c] = false;
            }
        }
        invalidate();
    }

    /**
     * Whether a context is attached.
     *
     * @param context its id
     * @return true between {@link #attach} and {@link #detach}
     */
    public boolean isAttached(final int context) {
        return attached[context];
    }

    /**
     * Whether a context is disabled for certain.
     *
     * @param context its id
     * @return false if it is enabled, or the last attempt to disable or to enable it failed
     */
    public boolean isOff(final int context) {
        return off[context];
    }

    /**
     * The version of the state of which nothing is left to do but what is tried again.
     *
     * @return the version, -1 if there is none
     */
    public long appliedVersion() {
        return appliedVersion;
    }

    /**
     * Whether the device is being changed.
     *
     * @return true from an {@link Effects#apply} that answered {@link Effects#PENDING} until {@link #complete}
     */
    public boolean isPending() {
        return pendingVersion != NONE;
    }

    /**
     * When a cycle has something to do, even if the desired state stays as it is: what failed is tried again.
     *
     * @return ns, {@link Long#MAX_VALUE} if there is nothing
     */
    public long dueNs() {
        return retryAtNs;
    }

    /**
     * One step.
     *
     * @param nowNs now
     * @return false if there was nothing to do
     */
    public boolean cycle(final long nowNs) {
        if (isPending() || !isDue(retryAtNs, nowNs) && !desired.isNewerThan(appliedVersion)) {
            return false;
        }
        retryAtNs = Time.NEVER;
        while (step(nowNs)) {
            continue;   // each disables a context more, or is the last
        }
        return true;
    }

    /** Disables or enables what the newest state wants; whether there may be something left to enable. */
    private boolean step(final long nowNs) {
        final long newest = desired.snapshot(wantedOff);
        final long version = enablesOnly ? triedVersion : newest;   // disables of a newer one are left
        isWhole = !desired.awaitsAttach();
        if (!isWhole && !hasPutOff) {
            hasPutOff = true;
            invalidate();
            return false;
        }
        collect();
        lacksRoom = false;
        if (disableCount > 0) {
            holdDisables(nowNs);
        } else if (!enablesOnly && (!atOnce || enableCount == 0)) {
            enforced(version, false);   // what is left to enable does not hold grants up
        }
        enablesOnly = false;
        if (disableCount + enableCount == 0) {
            if (lacksRoom) {
                enforced(version, true);
            }
            finish(version);
            return false;
        }
        final long doneNs = apply();
        pendingVersion = version;
        return doneNs != Effects.PENDING && end(doneNs);
    }

    private void enforced(final long version, final boolean incomplete) {
        if (isWhole) {
            effects.enforced(version, incomplete);
        }
    }

    /** What is to be enabled counts as disabled no more, even if that fails: it may have happened. */
    private long apply() {
        for (int i = 0; i < enableCount; i++) {
            off[toEnable[i]] = false;
        }
        return effects.apply(toDisable, disableCount, toEnable, enableCount);
    }

    private static boolean isDue(final long atNs, final long nowNs) {
        return atNs != Time.NEVER && nowNs - atNs >= 0;
    }

    /** What is to change; without enables if there is something to disable and the device does not do both at once. */
    private void collect() {
        int disables = 0;
        int enables = 0;
        for (int c = 0; c < attached.length; c++) {
            if (attached[c]) {
                if (!wantedOff[c]) {
                    if (held[c]) {
                        toEnable[enables++] = c;
                    }
                } else if (!off[c]) {
                    toDisable[disables++] = c;
                }
            }
        }
        disableCount = enablesOnly ? 0 : disables;
        enableCount = disableCount > 0 && !atOnce ? 0 : enables;
    }

    /** Leaves out those for which there is no room in the held file. */
    private void holdDisables(final long nowNs) {
        int n = 0;
        for (int i = 0; i < disableCount; i++) {
            final int c = toDisable[i];
            if (!held[c]) {
                held[c] = effects.hold(c);
            }
            if (held[c]) {
                toDisable[n++] = c;
            } else {
                lacksRoom = true;
                retryAtNs = Time.addSaturating(nowNs, RETRY_NS);
            }
        }
        disableCount = n;
    }

    /**
     * The device has been changed.
     *
     * @param nowNs when
     * @throws IllegalStateException if it was not being changed
     */
    public void complete(final long nowNs) {
        if (!isPending()) {
            throw new IllegalStateException("nothing is pending");
        }
        end(nowNs);
    }

    /** As {@link #step}. */
    private boolean end(final long nowNs) {
        final long version = pendingVersion;
        pendingVersion = NONE;
        final boolean wasDisabling = disableCount > 0 || lacksRoom;
        final boolean disablesFailed = finishDisables();
        final boolean enablesFailed = finishEnables();
        if (disablesFailed || enablesFailed) {
            effects.failed();
            retryAtNs = Time.addSaturating(nowNs, RETRY_NS);
        }
        final boolean incomplete = disablesFailed || lacksRoom;
        if (wasDisabling || atOnce) {
            enforced(version, incomplete);
        }
        if (atOnce || !wasDisabling) {
            finish(version);
            return false;
        }
        if (incomplete && !hasPutOff) {
            hasPutOff = true;
            appliedVersion = version;   // not settled: tried again later
            return false;
        }
        enablesOnly = incomplete;
        triedVersion = version;
        invalidate();   // look again: a newer state may want more disabled, and enables of this one are left
        return true;
    }

    private void finish(final long version) {
        hasPutOff = false;
        appliedVersion = isWhole ? version : NONE;
        if (isWhole && retryAtNs == Time.NEVER) {
            effects.settled(version);
        }
    }

    private boolean finishDisables() {
        boolean failed = false;
        for (int i = 0; i < disableCount; i++) {
            final int c = toDisable[i];
            if (!attached[c]) {
                continue;
            }
            if (effects.succeeded(c)) {
                off[c] = true;
                effects.disabled(c);
            } else {
                failed = true;
            }
        }
        return failed;
    }

    private boolean finishEnables() {
        boolean failed = false;
        for (int i = 0; i < enableCount; i++) {
            final int c = toEnable[i];
            if (!attached[c]) {
                continue;
            }
            if (effects.succeeded(c)) {
                clear(c);
                effects.enabled(c);
            } else {
                failed = true;
            }
        }
        return failed;
    }

    private void clear(final int context) {
        if (held[context]) {
            held[context] = false;
            effects.clear(context);
        }
    }

    /**
     * Tries once to enable all that is, or may be, disabled, whatever is desired: for the end of the daemon. The device
     * must answer at once.
     *
     * @return true if nothing is left to enable
     */
    public boolean enableAll() {
        Arrays.fill(wantedOff, false);
        lacksRoom = false;
        collect();
        if (enableCount > 0) {
            apply();
            if (finishEnables()) {
                effects.failed();
            }
        }
        invalidate();
        collect();
        return enableCount == 0;
    }
}

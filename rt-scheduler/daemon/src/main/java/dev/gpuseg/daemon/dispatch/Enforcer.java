/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.WatchdogPage;
import dev.gpuseg.ipc.platform.FaultBarrier;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;

/**
 * Brings one GPU from what is applied to what is desired, on a thread of its own, so that a slow device never holds up
 * the dispatcher.
 *
 * <p>It works from states, not from commands: it takes the newest desired state, disables what must go off, says so,
 * looks again, and enables only when nothing is left to disable. A context is written to the held file before it is
 * disabled and cleared after it is enabled. When the watchdog had to release contexts, the applied state is forgotten
 * and built again. A context that cannot be disabled does not hold up the grant (fail open): it is reported and tried
 * again.
 */
final class Enforcer implements Enforcement, Runnable {
    /** Result message: a context changed. Layout: id, 1 = off, began ns, done ns. */
    static final int CONTEXT = 1;
    /** Result message: the mechanism failed; UTF-8 text. */
    static final int ERROR = 2;
    /** Result message: the watchdog had released contexts. Layout: its count, the first time of that silence in ns. */
    static final int RELEASED = 3;

    /** Result message: the mechanism failed as it did before, see {@link #ERROR}. */
    static final int REPEATED_ERROR = 4;

    private static final int RESULTS_CAPACITY = 1 << 16;
    static final int OFF_OFFSET = 4;
    static final int BEGAN_OFFSET = 8;
    static final int DONE_OFFSET = 16;
    private static final int CONTEXT_BYTES = 24;
    private static final int ERROR_BYTES_MAX = 512;
    private static final long PARK_NS = 20_000_000;
    private static final long RETRY_NS = 10_000_000;
    private static final long SAME_ERROR_NS = 10_000_000_000L;
    private static final int FINAL_ATTEMPTS = 3;

    private final int gpu;
    private final int priority;
    private final IdleMode idle;
    private final Mechanism mechanism;
    private final HeldFile held;
    private WatchdogPage watchdog;
    private final Runnable wakeDispatcher;
    private final DesiredState desired;
    private final ManyToOneConcurrentLinkedQueue<Runnable> lifecycle = new ManyToOneConcurrentLinkedQueue<>();
    private final OneToOneRingBuffer results = new OneToOneRingBuffer(new UnsafeBuffer(
        ByteBuffer.allocateDirect(RESULTS_CAPACITY + RingBufferDescriptor.TRAILER_LENGTH)));
    private final ContextRef[] contexts;
    private final boolean[] off;
    private final int[] heldIndex;
    /** What the dispatcher wants of each context's time slice, 0 = its own. */
    private final long[] timesliceNs;
    private final int[] sliceIndex;
    private final boolean[] wantedOff;
    private final ContextRef[] toDisable;
    private final ContextRef[] toEnable;
    private long appliedVersion = -1;
    private long retryAtNs = Long.MAX_VALUE;
    private long releasesSeen;
    private String saidLast = "";
    private long saidLastNs;
    private long cycleNs;
    private Thread thread;

    private volatile boolean running = true;
    /** W enforcer (volatile), R dispatcher: every context off in the state of this version is off. */
    private volatile long enforcedVersion;
    /** At least one context that must be off could not be disabled. Written before enforcedVersion. */
    private volatile boolean incomplete;
    /** W enforcer, R daemon at its stop: the newest version of which nothing is left to do. */
    private volatile long settledVersion;
    /** When enforcedVersion was reached. Written before it. */
    private volatile long enforcedNs;
    private final SleepFlag parked = new SleepFlag();
    private volatile long resultsLost;

    /**
     * Wires an enforcer.
     *
     * @param gpu            index of its GPU
     * @param mechanism      the device; only this enforcer's thread calls it from {@link #run} on
     * @param held           where disabled contexts are written down
     * @param watchdog       the watchdog's page, or null without a watchdog
     * @param maxContexts    highest context id
     * @param priority       SCHED_FIFO priority of its thread, 0 = none; the dispatcher has the same
     * @param idle           what its thread does when nothing waits; waking it may take longer than the driver's call
     * @param wakeDispatcher called after every result
     */
    Enforcer(final int gpu, final Mechanism mechanism, final HeldFile held, final WatchdogPage watchdog,
        final int maxContexts, final int priority, final IdleMode idle, final Runnable wakeDispatcher) {
        this.priority = priority;
        this.idle = idle;
        this.gpu = gpu;
        this.mechanism = mechanism;
        this.held = held;
        this.watchdog = watchdog;
        this.wakeDispatcher = wakeDispatcher;
        final int size = maxContexts + 1;
        desired = new DesiredState(size);
        contexts = new ContextRef[size];
        off = new boolean[size];
        heldIndex = new int[size];
        Arrays.fill(heldIndex, HeldFile.FULL);
        timesliceNs = new long[size];
        sliceIndex = new int[size];
        Arrays.fill(sliceIndex, HeldFile.FULL);
        wantedOff = new boolean[size];
        toDisable = new ContextRef[size];
        toEnable = new ContextRef[size];
        releasesSeen = watchdog == null ? 0 : watchdog.releases();
    }

    // Dispatcher's side.

    @Override
    public DesiredState desired() {
        return desired;
    }

    @Override
    public Mechanism mechanism() {
        return mechanism;
    }

    @Override
    public void attach(final ContextRef context) {
        lifecycle.add(() -> onAttach(context));
        kick();
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        lifecycle.add(() -> {
            if (contexts[context.contextId()] == context) {
                mechanism.registered(context, registered);
            }
        });
        kick();
    }

    @Override
    public void detach(final int contextId) {
        lifecycle.add(() -> onDetach(contextId));
        kick();
    }

    @Override
    public void timeslice(final int contextId, final long wantedNs) {
        lifecycle.add(() -> onTimeslice(contextId, wantedNs));
        kick();
    }

    /** A watchdog was started anew. */
    void watchdog(final WatchdogPage page) {
        lifecycle.add(() -> {
            watchdog = page;
            releasesSeen = page.releases();
        });
        kick();
    }

    /** Wakes the thread if it is parked. After every {@link DesiredState#commit} and every lifecycle command. */
    @Override
    public boolean kick() {
        if (!parked.mustWake()) {
            return false;
        }
        try {
            LockSupport.unpark(thread);
        } catch (final InternalError e) {
            FaultBarrier.postpone(e);   // the dispatcher's, from reading a truncated file; its decision comes first
        }
        return true;
    }

    @Override
    public long enforcedVersion() {
        return enforcedVersion;
    }

    @Override
    public long enforcedNs() {
        return enforcedNs;
    }

    @Override
    public boolean isIncomplete() {
        return incomplete;
    }

    /** Any thread: everything desired is applied and nobody asked for more. */
    boolean isIdle() {
        return lifecycle.isEmpty() && !desired.isNewerThan(settledVersion);
    }

    @Override
    public int poll(final MessageHandler handler) {
        final int n = results.read(handler);
        return n == 0 && results.size() > 0 ? results.read(handler) : n;   // the first may have met the ring's end
    }

    long resultsLost() {
        return resultsLost;
    }

    // Its own thread.

    Thread start() {
        thread = new Thread(this, "gpuseg-enforcer-" + gpu);
        thread.start();
        return thread;
    }

    void stop() {
        running = false;
        LockSupport.unpark(thread);
    }

    @Override
    public void run() {
        if (priority > 0) {
            ThreadControl.realTime(priority);
        }
        long lastWorkNs = System.nanoTime();
        while (running) {
            final long nowNs = System.nanoTime();
            if (cycle(nowNs)) {
                lastWorkNs = nowNs;
            } else if (nowNs - lastWorkNs < idle.spinNs()) {
                Thread.onSpinWait();
            } else {
                if (announcePark()) {
                    LockSupport.parkNanos(this, PARK_NS);
                }
                unannouncePark();
            }
        }
        enableEverything();
    }

    /**
     * Says that the thread is going to park, then looks for work once more: {@link #kick} wakes it from now on.
     *
     * @return false if there is work, so that it must not park
     */
    boolean announcePark() {
        parked.announce();
        return running && lifecycle.isEmpty() && !desired.isNewerThan(appliedVersion);
    }

    /** The thread runs again. */
    void unannouncePark() {
        parked.clear();
    }

    /** One step; false if there was nothing to do. */
    boolean cycle(final long nowNs) {
        boolean worked = false;
        cycleNs = nowNs;
        for (Runnable command = lifecycle.poll(); command != null; command = lifecycle.poll()) {
            command.run();
            appliedVersion = -1;
            worked = true;
        }
        checkWatchdog();
        checkChanged();
        final boolean retry = nowNs - retryAtNs >= 0;
        if (!retry && !desired.isNewerThan(appliedVersion)) {
            return worked;
        }
        retryAtNs = Long.MAX_VALUE;
        final long version = desired.snapshot(wantedOff);
        if (!lifecycle.isEmpty()) {
            return true;   // a context of this state may still wait to be attached
        }
        final int disableCount = collect(toDisable, true);
        if (disableCount > 0) {
            disable(disableCount, version);
            return true;   // look again before enabling: a newer state may want more off
        }
        enforced(version, false);
        final int enableCount = collect(toEnable, false);
        if (enableCount > 0) {
            enable(enableCount);
        }
        appliedVersion = version;
        if (retryAtNs == Long.MAX_VALUE) {
            settledVersion = version;
        }
        return true;
    }

    private int collect(final ContextRef[] into, final boolean goOff) {
        int n = 0;
        for (int i = 0; i < contexts.length; i++) {
            // a held entry means: off, or not known to be on
            if (contexts[i] != null && wantedOff[i] == goOff && (goOff ? !off[i] : heldIndex[i] != HeldFile.FULL)) {
                into[n++] = contexts[i];
            }
        }
        return n;
    }

    private void disable(final int count, final long version) {
        int written = 0;
        boolean failed = false;
        for (int i = 0; i < count; i++) {
            final ContextRef c = toDisable[i];
            if (hold(c)) {
                toDisable[written++] = c;
            } else {
                failed = true;
                error("held file is full: " + c + " stays enabled");
            }
        }
        final int failures = written == 0 ? 0 : mechanism.apply(toDisable, written, toEnable, 0);
        for (int i = 0; i < written; i++) {
            final ContextRef c = toDisable[i];
            if (c.outcome() != ContextRef.Outcome.FAILED) {
                off[c.contextId()] = true;
                report(c, true);
            }   // else it may be off or not: it stays in the held file until an enable succeeds
        }
        if (failures > 0) {
            failed = true;
            error(mechanism.lastError());
        }
        if (failed) {
            retryAtNs = System.nanoTime() + RETRY_NS;
            appliedVersion = version;
        }
        enforced(version, failed);
    }

    private boolean hold(final ContextRef c) {
        if (heldIndex[c.contextId()] == HeldFile.FULL) {
            heldIndex[c.contextId()] = held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), gpu, c.contextId(),
                System.nanoTime(), mechanism.heldPayload(c));
        }
        return heldIndex[c.contextId()] >= 0;
    }

    private void unhold(final int contextId) {
        if (heldIndex[contextId] != HeldFile.FULL) {
            held.release(heldIndex[contextId]);
            heldIndex[contextId] = HeldFile.FULL;
        }
    }

    private void enable(final int count) {
        final int failures = mechanism.apply(toDisable, 0, toEnable, count);
        for (int i = 0; i < count; i++) {
            final ContextRef c = toEnable[i];
            if (c.outcome() != ContextRef.Outcome.FAILED) {
                off[c.contextId()] = false;
                unhold(c.contextId());
                report(c, false);
            }
        }
        if (failures > 0) {
            retryAtNs = System.nanoTime() + RETRY_NS;
            error(mechanism.lastError());
        }
        wakeDispatcher.run();
    }

    private void enforced(final long version, final boolean failed) {
        incomplete = failed;
        if (version != enforcedVersion) {
            enforcedNs = System.nanoTime();
            enforcedVersion = version;
            wakeDispatcher.run();
        }
    }

    private void checkWatchdog() {
        if (watchdog == null) {
            return;
        }
        final long releases = watchdog.releases();
        if (releases != releasesSeen) {
            releasesSeen = releases;
            Arrays.fill(off, false);   // the held entries stay: what must be off goes off again, the rest is enabled
            appliedVersion = -1;
            final int at = results.tryClaim(RELEASED, 2 * Long.BYTES);
            if (at > 0) {
                results.buffer().putLong(at, releases);
                results.buffer().putLong(at + Long.BYTES, watchdog.firstReleaseNs());
                results.commit(at);
            } else {
                resultsLost = resultsLost + 1;
            }
            wakeDispatcher.run();
        }
    }

    /**
     * What stands behind a context may be more or less than was switched before: write every context down anew and
     * apply the desired state to all, enabling too, for nobody knows in which state the new parts are.
     */
    private void checkChanged() {
        if (!mechanism.changed()) {
            return;
        }
        for (int i = 0; i < contexts.length; i++) {
            if (contexts[i] != null) {
                final int before = heldIndex[i];
                heldIndex[i] = HeldFile.FULL;
                if (!hold(contexts[i])) {
                    heldIndex[i] = before;   // better the old entry than none
                } else if (before != HeldFile.FULL) {
                    held.release(before);
                }
                off[i] = false;
            }
        }
        for (int i = 0; i < contexts.length; i++) {
            if (contexts[i] != null && timesliceNs[i] != 0) {
                applyTimeslice(i);
            }
        }
        appliedVersion = -1;
    }

    private void onAttach(final ContextRef context) {
        try {
            mechanism.attach(context);
            contexts[context.contextId()] = context;
            off[context.contextId()] = false;
        } catch (final MechanismException e) {
            error(e.getMessage());
        }
    }

    private void onTimeslice(final int contextId, final long wantedNs) {
        if (contexts[contextId] != null && mechanism.capabilities().timeslice()) {
            timesliceNs[contextId] = wantedNs;
            applyTimeslice(contextId);
        }
    }

    /** Written down before it is set, as a disable is: a dead daemon leaves nobody with a slice that is not its own. */
    private void applyTimeslice(final int contextId) {
        final ContextRef context = contexts[contextId];
        final long wantedNs = timesliceNs[contextId];
        if (wantedNs != 0 && mechanism.units(context) == 0) {
            return;   // nothing to set it on yet; checkChanged comes back
        }
        if (wantedNs != 0) {
            final byte[] own = mechanism.timeslicePayload(context);
            final int before = sliceIndex[contextId];
            if (own.length > 0) {
                final int noted = held.noteTimeslice(mechanism.id(), context.pid(), context.pidStartTicks(), gpu,
                    contextId, System.nanoTime(), own);
                if (noted == HeldFile.FULL) {
                    error("held file is full: the time slice of " + context + " is not changed");
                    return;
                }
                sliceIndex[contextId] = noted;
                if (before != HeldFile.FULL) {
                    held.release(before);
                }
            }
        }
        if (!mechanism.setTimeslice(context, wantedNs)) {
            error("timeslice of " + wantedNs + " ns: " + mechanism.lastError());
        } else if (wantedNs == 0) {
            forgetTimeslice(contextId);
        }
    }

    private void forgetTimeslice(final int contextId) {
        timesliceNs[contextId] = 0;
        if (sliceIndex[contextId] != HeldFile.FULL) {
            held.release(sliceIndex[contextId]);
            sliceIndex[contextId] = HeldFile.FULL;
        }
    }

    private void onDetach(final int contextId) {
        final ContextRef context = contexts[contextId];
        if (context != null) {
            off[contextId] = false;
            unhold(contextId);
            contexts[contextId] = null;
            mechanism.detach(context);   // gives its own time slices back, too
            forgetTimeslice(contextId);
        }
    }

    private void enableEverything() {
        for (int i = 0; i < contexts.length; i++) {
            if (contexts[i] != null && timesliceNs[i] != 0) {
                timesliceNs[i] = 0;
                applyTimeslice(i);
            }
        }
        for (int attempt = 0; attempt < FINAL_ATTEMPTS; attempt++) {
            Arrays.fill(wantedOff, false);
            final int count = collect(toEnable, false);
            if (count == 0) {
                return;
            }
            enable(count);
        }
    }

    private void report(final ContextRef c, final boolean isOff) {
        final int at = results.tryClaim(CONTEXT, CONTEXT_BYTES);
        if (at < 0) {
            resultsLost = resultsLost + 1;   // single writer; the state itself is not lost
            return;
        }
        final AtomicBuffer b = results.buffer();
        b.putInt(at, c.contextId());
        b.putInt(at + OFF_OFFSET, isOff ? 1 : 0);
        b.putLong(at + BEGAN_OFFSET, c.beganNs());
        b.putLong(at + DONE_OFFSET, c.doneNs());
        results.commit(at);
    }

    /** The same words again, as a rule every 10 ms, are only counted. */
    private void error(final String text) {
        if (text.equals(saidLast) && cycleNs - saidLastNs < SAME_ERROR_NS) {
            final int at = results.tryClaim(REPEATED_ERROR, Integer.BYTES);
            if (at < 0) {
                resultsLost = resultsLost + 1;
                return;
            }
            results.buffer().putInt(at, 0);
            results.commit(at);
            wakeDispatcher.run();
            return;
        }
        saidLast = text;
        saidLastNs = cycleNs;
        final byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        final int length = Math.max(1, Math.min(utf8.length, ERROR_BYTES_MAX));
        final int at = results.tryClaim(ERROR, length);
        if (at < 0) {
            resultsLost = resultsLost + 1;
            return;
        }
        results.buffer().putBytes(at, utf8, 0, Math.min(utf8.length, length));
        results.commit(at);
        wakeDispatcher.run();
    }
}

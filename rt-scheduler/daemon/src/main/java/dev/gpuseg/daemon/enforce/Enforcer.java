/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.core.Reconciler;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.WatchdogPage;
import dev.gpuseg.ipc.platform.FaultBarrier;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.observer.Alert;
import java.io.UncheckedIOException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;
import org.agrona.concurrent.MessageHandler;

/**
 * Brings one GPU from what is applied to what is desired, on a thread of its own, so that a slow device never holds up
 * the dispatcher.
 *
 * <p>What is disabled and enabled, in which order, and what follows a failure is decided by core's {@link Reconciler},
 * as in the simulator, and carried out by {@link AppliedState}. This class gives them a thread that parks when nothing
 * is to be done, tells them what happened to processes and what the watchdog released, and tries to enable everything
 * before it ends.
 */
public final class Enforcer implements Enforcement, Runnable {
    private static final long PARK_NS = 20_000_000;
    private static final long AFTER_ERROR_NS = 1_000_000;
    private static final int FINAL_ATTEMPTS = 3;

    private final int gpu;
    private final int priority;
    private final IdleMode idle;
    private final Mechanism mechanism;
    private WatchdogPage watchdog;
    private long releasesSeen;
    private final DesiredState desired;
    private final ManyToOneConcurrentLinkedQueue<Runnable> lifecycle = new ManyToOneConcurrentLinkedQueue<>();
    /** W dispatcher before it publishes a state with the context, and this thread: attaches in {@link #lifecycle}. */
    private final AtomicInteger attaching = new AtomicInteger();
    private final EnforcerResults results;
    private final WantedTimeslices timeslices;
    private final AppliedState applied;
    private final Reconciler reconciler;
    private final int maxContexts;
    private final SleepFlag parked = new SleepFlag();
    /** W any thread: until then the next change is looked out for; 0 = no change is expected. */
    private volatile long alertUntilNs;
    private Thread thread;
    /** W a thread of the mechanism, before {@link #kick}, and this one: {@link Mechanism#changed} is to be asked. */
    private volatile boolean mechanismChanged;

    private volatile boolean running = true;

    /**
     * Wires an enforcer.
     *
     * @param gpu            index of its GPU
     * @param mechanism      the device; from {@link #run} on only this thread calls it, but for what others may
     * @param held           where disabled contexts are written down
     * @param watchdog       the watchdog's page, or null without a watchdog
     * @param maxContexts    highest context id
     * @param priority       SCHED_FIFO priority of its thread, 0 = none; the dispatcher has the same
     * @param idle           what its thread does when nothing waits; waking it may take longer than the driver's call
     * @param wakeDispatcher called after every result
     */
    public Enforcer(final int gpu, final Mechanism mechanism, final HeldFile held, final WatchdogPage watchdog,
        final int maxContexts, final int priority, final IdleMode idle, final Runnable wakeDispatcher) {
        this.priority = priority;
        this.idle = idle;
        this.gpu = gpu;
        this.maxContexts = maxContexts;
        this.mechanism = mechanism;
        this.watchdog = watchdog;
        final int size = maxContexts + 1;
        desired = new DesiredState(size);
        results = new EnforcerResults(wakeDispatcher);
        timeslices = new WantedTimeslices(gpu, mechanism, held, results, size);
        applied = new AppliedState(gpu, mechanism, held, results, size);
        reconciler = new Reconciler(maxContexts, false, new Wanted(), applied);
        releasesSeen = watchdog == null ? 0 : watchdog.releases();
        mechanism.changeListener(() -> {
            mechanismChanged = true;
            kick();
        });
        mechanism.expectation(() -> {
            alertUntilNs = Alert.untilNs();
            kick();
        });
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
        attaching.incrementAndGet();
        lifecycle.add(() -> {
            attaching.decrementAndGet();
            onAttach(context);
        });
        kick();
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        lifecycle.add(() -> {
            if (applied.context(context.contextId()) == context) {
                mechanism.registered(context, registered);
            }
        });
        kick();
    }

    @Override
    public void joined(final ContextRef context, final Session session) {
        if (!mechanism.capabilities().holdsLaunches()) {
            return;
        }
        final LaunchHold word;
        try {
            word = LaunchHold.of(session, gpu);   // while the session is open
        } catch (final UncheckedIOException | IllegalStateException e) {
            lifecycle.add(() -> results.error(context + ": its launches cannot be held: " + e.getMessage()));
            kick();
            return;
        }
        lifecycle.add(() -> {
            if (applied.context(context.contextId()) == context) {
                mechanism.joined(context, session, word);
            } else {
                word.close();
            }
        });
        kick();
    }

    @Override
    public void left(final ContextRef context, final Session session) {
        if (!mechanism.capabilities().holdsLaunches()) {
            return;
        }
        lifecycle.add(() -> {
            if (applied.context(context.contextId()) == context) {
                mechanism.left(context, session);
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

    /**
     * Tells whether every time slice that was asked for before is set, where there is work to set it on. Any thread.
     *
     * @param told called on the enforcer's thread
     */
    public void whenSliced(final Consumer<Boolean> told) {
        lifecycle.add(() -> told.accept(timeslices.areSet()));
        kick();
    }

    /** A watchdog was started anew. The former one may have ended between a release and its count. */
    public void watchdog(final WatchdogPage page) {
        lifecycle.add(() -> {
            checkWatchdog();
            watchdog = page;
            releasesSeen = page.releases();
            released();
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
        return applied.enforcedVersion();
    }

    @Override
    public long enforcedNs() {
        return applied.enforcedNs();
    }

    @Override
    public boolean isIncomplete() {
        return applied.isIncomplete();
    }

    /** Any thread: everything desired is applied and nothing else was asked for. */
    public boolean isIdle() {
        return lifecycle.isEmpty() && !desired.isNewerThan(applied.settledVersion());
    }

    @Override
    public int poll(final MessageHandler handler) {
        return results.poll(handler);
    }

    // Its own thread.

    /** Starts the thread. */
    public Thread start() {
        thread = new Thread(this, "gpuseg-enforcer-" + gpu);
        thread.start();
        return thread;
    }

    /** Asks the thread to end. */
    public void stop() {
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
            if (cycleOrSay(nowNs)) {
                lastWorkNs = nowNs;
            } else if (nowNs - lastWorkNs < idle.spinNs() || Alert.lasts(alertUntilNs, nowNs)) {
                Thread.onSpinWait();
            } else {
                if (announcePark()) {
                    LockSupport.parkNanos(this, Math.min(PARK_NS, reconciler.dueNs() - nowNs));   // <= 0 does not park
                }
                unannouncePark();
            }
        }
        enableEverything();
    }

    /**
     * As {@link #cycle}. An error of ours is told, and all is applied anew: if the thread ended, what it has disabled
     * would stay so while the daemon lives.
     */
    private boolean cycleOrSay(final long nowNs) {
        try {
            return cycle(nowNs);
        } catch (final RuntimeException | InternalError e) {
            say(e);
            LockSupport.parkNanos(this, AFTER_ERROR_NS);
            return false;
        }
    }

    private void say(final Throwable error) {
        results.error("unexpected error of the enforcer: " + error);
        reconciler.invalidate();
        results.cycleEnds();
    }

    /**
     * Says that the thread is going to park, then looks for work once more: {@link #kick} wakes it from now on.
     *
     * @return false if there is work, so that it must not park
     */
    boolean announcePark() {
        parked.announce();
        return running && lifecycle.isEmpty() && !mechanismChanged
            && !desired.isNewerThan(reconciler.appliedVersion());
    }

    /** The thread runs again. */
    void unannouncePark() {
        parked.clear();
    }

    /** One step; false if there was nothing to do. */
    public boolean cycle(final long nowNs) {
        boolean worked = false;
        results.cycleBegins(nowNs);
        for (Runnable command = lifecycle.poll(); command != null; command = lifecycle.poll()) {
            command.run();
            reconciler.invalidate();   // the state may apply to something else now
            worked = true;
        }
        checkWatchdog();
        mechanismChanged = false;   // before the question: a change after it is announced again
        if (mechanism.changed()) {
            reconciler.changed();
            for (int i = 0; i <= maxContexts; i++) {
                if (applied.context(i) != null) {
                    timeslices.setAgain(applied.context(i));
                }
            }
        }
        worked |= reconciler.cycle(nowNs);
        results.cycleEnds();
        return worked;
    }

    private void checkWatchdog() {
        if (watchdog == null) {
            return;
        }
        final long releases = watchdog.releases();
        if (releases != releasesSeen) {
            releasesSeen = releases;
            released();
            results.released(releases, watchdog.firstReleaseNs());
        }
    }

    private void released() {
        mechanism.released();
        reconciler.released();
        applied.released();
    }

    private void onAttach(final ContextRef context) {
        try {
            mechanism.attach(context);
            applied.put(context);
            reconciler.attach(context.contextId());
        } catch (final MechanismException e) {
            results.error(e.getMessage());
        }
    }

    private void onTimeslice(final int contextId, final long wantedNs) {
        if (applied.context(contextId) != null) {
            timeslices.set(applied.context(contextId), wantedNs);
        }
    }

    private void onDetach(final int contextId) {
        final ContextRef context = applied.context(contextId);
        if (context != null) {
            applied.remove(contextId);
            mechanism.detach(context);   // gives its own time slices back, too
            timeslices.forget(contextId);
            reconciler.detach(contextId);   // clears its held entry, as the last thing: the mechanism may enable it
        }
    }

    private void enableEverything() {
        for (int i = 0; i <= maxContexts; i++) {
            if (applied.context(i) != null) {
                try {
                    timeslices.restore(applied.context(i));
                } catch (final RuntimeException | InternalError e) {
                    say(e);
                }
            }
        }
        boolean done = false;
        for (int attempt = 0; attempt < FINAL_ATTEMPTS && !done; attempt++) {
            try {
                done = reconciler.enableAll();
            } catch (final RuntimeException | InternalError e) {
                say(e);
            }
        }
        results.cycleEnds();
    }

    /** The dispatcher's newest state. */
    private final class Wanted implements Reconciler.Desired {
        @Override
        public boolean isNewerThan(final long version) {
            return desired.isNewerThan(version);
        }

        @Override
        public long snapshot(final boolean[] off) {
            return desired.snapshot(off);
        }

        @Override
        public boolean awaitsAttach() {
            return attaching.get() > 0;
        }
    }
}

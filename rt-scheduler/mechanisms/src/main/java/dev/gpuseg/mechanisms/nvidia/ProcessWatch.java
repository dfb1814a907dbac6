/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ProcEntries;
import dev.gpuseg.mechanisms.ProcessListener;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.SystemCalls;
import dev.gpuseg.mechanisms.observer.ArrivalLog;
import dev.gpuseg.mechanisms.observer.Observation;
import dev.gpuseg.mechanisms.observer.ObservationListener;
import dev.gpuseg.mechanisms.observer.Observer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.agrona.collections.Long2LongHashMap;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;

/**
 * The thread that follows other processes: it finds the channels of attached processes when they appear, has the
 * descriptors of dead ones closed at once (a duplicate of its descriptor keeps a dead process's GPU memory allocated),
 * and announces processes that have work on the GPU and were never attached.
 *
 * <p>Where an {@link Observer} works, it learns of opens, objects and ends as they happen, and asks RM whose the client
 * is: nothing is searched in a process of which everything was seen. Otherwise it learns of new processes from
 * inotify on the control device (an open wakes it) and, where that does not work, from a walk through /proc every
 * 250 ms. Then a process is announced once it has made its channels and one refresh has seen them; refreshes are 20 to
 * 160 ms apart while it is new. Nobody sees then when it has its channels scheduled, so it is taken to have done so
 * when a refresh finds its channels as the one before did; and once, a second later, where the observer works.
 */
final class ProcessWatch implements Runnable, ObservationListener {
    private static final long MS = 1_000_000;
    static final long REFRESH_MIN_NS = 20 * MS;
    private static final long REFRESH_MAX_NS = 2_000 * MS;
    private static final long REFRESH_WITHOUT_DRIVER_NS = 100 * MS;
    private static final long REFRESH_KNOWN_NS = 1_000 * MS;
    private static final long REFRESH_YOUNG_NS = 100 * MS;
    private static final long YOUNG_NS = 5_000 * MS;
    private static final long REFRESH_OBSERVED_NS = 10_000 * MS;
    private static final long CONFIRM_NS = 1_000 * MS;
    private static final long WALK_NS = 250 * MS;
    private static final long WALK_NOTIFIED_NS = 5_000 * MS;
    private static final long WALK_GAP_NS = 20 * MS;
    private static final long PROTECTED_AGAIN_NS = 3_000 * MS;
    private static final int ANCESTORS_MAX = 8;
    private static final int JOIN_MS = 2_000;
    private static final int SCHEDULED_MOST = 16;
    private static final int TAKEN_AT_ONCE = 1_024;

    private final int gpu;
    private final Protection protection;
    private final ControlCloser closer;
    private final Runnable onChange;
    private final Runnable onExpectation;
    private final MpsRule mps;
    private final Observer observer;
    private final RmControl rm = new RmControl();
    private final RmScan scan;
    private final Runnable serveObserved = this::serveObserved;
    private final RmProcess.OlderProcesses olderThan = this::olderThan;
    private final OpenFiles olderFiles = new OpenFiles();
    private final WatchBell bell = new WatchBell();
    private final ManyToOneConcurrentLinkedQueue<WatchedProcess> arrivals = new ManyToOneConcurrentLinkedQueue<>();
    private final ManyToOneConcurrentLinkedQueue<Observation> observations = new ManyToOneConcurrentLinkedQueue<>();
    private final WatchedProcesses watched = new WatchedProcesses();
    private final Map<Integer, ObservedProcess> observed = new HashMap<>();
    /** By pid. */
    private final Long2LongHashMap protectedUntilNs = new Long2LongHashMap(Long.MIN_VALUE);
    private final PollSet polled = new PollSet();
    private final byte[] scratch = new byte[4096];
    private final int ownPid = ProcessStatus.pid();
    private final ProcEntries processes = new ProcEntries();
    private final ControlSearch controls = new ControlSearch();
    /** Of the present wait: the processes whose pidfds are polled, in that order, and those that have ended. */
    private final List<WatchedProcess> order = new ArrayList<>();
    private final List<WatchedProcess> ended = new ArrayList<>();
    private final ArrivalLog log = ArrivalLog.ofProperty();
    private final int inotify;
    /** The process that is being searched now, or null. */
    private WatchedProcess searched;
    private long nextWalkNs;
    private boolean opened;
    private volatile boolean interrupted;
    private volatile ProcessListener listener;
    private volatile boolean running = true;
    private volatile String lastError = "";
    private Thread thread;

    ProcessWatch(final int gpu, final GpuIndex gpus, final Scope scope, final Protection protection,
        final Object lock, final Runnable onChange, final Runnable onExpectation, final Path proc,
        final Observer observer) {
        this.observer = observer;
        this.gpu = gpu;
        scan = new RmScan(gpus, scope, rm);
        this.protection = protection;
        closer = ControlCloser.ofThread(gpu, lock, error -> lastError = error);
        this.onChange = onChange;
        this.onExpectation = onExpectation;
        mps = new MpsRule(proc);
        inotify = Files.exists(Path.of(RmProcess.CONTROL_DEVICE)) ? DriverCalls.watchOpens(RmProcess.CONTROL_DEVICE)
            : -1;
    }

    void start() {
        observer.listen(this);
        thread = new Thread(this, "gpuseg-nvidia-watch-" + gpu);
        thread.setDaemon(true);
        thread.start();
    }

    void stop() {
        observer.forget(this);
        running = false;
        bell.ring();
        try {
            thread.join(JOIN_MS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!thread.isAlive()) {
            bell.close();   // not by the thread: it can end before it is rung above
        }
    }

    /** Begins to announce processes that were never attached. Any thread. */
    void listener(final ProcessListener to) {
        listener = to;
        bell.ring();
    }

    /** Begins to follow a process. Any thread. */
    WatchedProcess attach(final int pid, final long startTicks) {
        final WatchedProcess known = watched.find(pid);
        if (known != null && known.startTicks == startTicks && !known.attached) {
            known.attached = true;   // its channels are known; if it has just ended, it has none
            return known;
        }
        final WatchedProcess p = new WatchedProcess(pid, startTicks, System.nanoTime());
        p.attached = true;
        arrivals.add(p);
        bell.ring();
        return p;
    }

    /** Ends following a process. Any thread. */
    void detach(final WatchedProcess p) {
        p.detached = true;
        bell.ring();
    }

    /** Its process registered, or its last registration ended. Any thread. */
    void registered(final WatchedProcess p, final boolean registered) {
        p.registered = registered;
        bell.ring();
    }

    /** Something known of a process was wrong: refresh all of it, now. Any thread. */
    void invalidate(final WatchedProcess p) {
        final RmProcess process = p.process;
        if (process != null) {
            process.invalidate();
        }
        bell.ring();
    }

    /** All its channels have just been disabled. The enforcer's thread. */
    void disabled(final WatchedProcess p) {
        log.note("disabled", p.pid);
    }

    /** A step of the enforcer's, for the log. Any thread. */
    void note(final String what) {
        log.note(what, 0);
    }

    String lastError() {
        return lastError;
    }

    @Override
    public void observed(final Observation what) {
        if (what.kind() == Observation.Kind.SCHEDULES) {
            final RmProcess process = processOf(what);
            if (process != null && process.hasUnscheduled()) {
                onExpectation.run();
            }
        } else if (what.kind() != Observation.Kind.WORK
            && (what.kind() != Observation.Kind.OPEN || what.engine() == Observation.NVIDIA)) {
            if (what.kind() == Observation.Kind.SCHEDULED) {
                scheduled(what);
            }
            observations.add(what);
            bell.ring();
        }
    }

    private RmProcess processOf(final Observation what) {
        final WatchedProcess p = watched.find(what.pid());
        return p == null || p.startTicks != what.startTicks() ? null : p.process;
    }

    /** The channels that a process made can run from now on: what must be disabled is told at once. */
    private void scheduled(final Observation what) {
        final RmProcess process = processOf(what);
        if (process != null
            && process.publishScheduled(new RmContext.Scheduled(what.client(), what.handle(), what.timeNs()))) {
            log.note("told", what.pid());
            onChange.run();
        }
    }

    @Override
    public void interrupted() {
        interrupted = true;
        bell.ring();
    }

    @Override
    public void run() {
        while (running) {
            try {
                cycle();
            } catch (final RuntimeException e) {
                lastError = "watch of GPU processes: " + e;
            }
        }
        watched.list().forEach(this::close);
        closer.stop();
        if (inotify >= 0) {
            SystemCalls.closeOnce(inotify);
        }
        log.close();
    }

    private void cycle() {
        awaitDeaths();
        for (int i = 0; i < ended.size(); i++) {
            final WatchedProcess p = ended.get(i);
            p.dead = true;
            close(p);
            onChange.run();
        }
        final boolean woken = bell.answer();
        takeArrivals();
        takeObservations();
        applyMpsRule();   // before refreshes that may take long: a new task's segment may have begun
        final long nowNs = System.nanoTime();
        int next = 0;
        while (next < watched.list().size()) {
            final WatchedProcess p = watched.list().get(next);
            if (p.detached || p.dead && !p.attached) {
                close(p);
                watched.remove(next);
                continue;
            }
            next++;
            if (!p.dead && (nowNs - p.nextRefreshNs >= 0 || woken && p.process == null)
                || woken && p.process != null && p.process.isStale()) {
                refresh(p, nowNs);
            }
        }
        applyMpsRule();
        if (listener != null && (opened || nowNs - nextWalkNs >= 0)) {
            walk(nowNs);
        }
    }

    private void takeArrivals() {
        for (WatchedProcess p = arrivals.poll(); p != null; p = arrivals.poll()) {
            final WatchedProcess known = watched.put(p);
            if (known != null) {
                p.process = known.process;
                known.process = null;
                p.mpsServer = known.mpsServer;
                p.exemption = known.exemption;
                p.announced = true;
                p.scheduled.addAll(known.scheduled);
                p.newTimeslices.putAll(known.newTimeslices);
                p.observed = known.observed;
                onChange.run();   // it was attached without channels
            } else {
                final ObservedProcess seen = observed.get(p.pid);
                p.observed = seen != null && seen.startTicks() == p.startTicks && seen.isWhole() ? seen : null;
            }
        }
    }

    private void takeObservations() {
        if (interrupted) {
            interrupted = false;
            observed.clear();
            watched.list().forEach(this::search);
            nextWalkNs = System.nanoTime();
        }
        takeSome();
    }

    /** A process can make many: the others are looked at between. */
    private void takeSome() {
        Observation o = observations.poll();
        for (int i = 1; o != null; i++) {
            take(o);
            o = i < TAKEN_AT_ONCE ? observations.poll() : null;
        }
        if (!observations.isEmpty()) {
            bell.ring();
        }
    }

    private void take(final Observation o) {
        final WatchedProcess p = watched.get(o.pid());
        log.record(o);
        if (o.kind() == Observation.Kind.EXIT) {
            observed.remove(o.pid());   // the pidfd reports the end of what is followed, unless it was never opened
            if (p != null && p.startTicks == o.startTicks() && p.process == null) {
                p.dead = true;
                onChange.run();
            }
            return;
        }
        ObservedProcess seen = observed.get(o.pid());
        if (seen == null || seen.startTicks() != o.startTicks()) {
            if (o.kind() == Observation.Kind.CLOSE || o.kind() == Observation.Kind.EXEC) {
                return;   // of another driver's device
            }
            seen = new ObservedProcess(o);
            observed.put(o.pid(), seen);
        }
        seen.take(o);
        if (o.kind() == Observation.Kind.SCHEDULED || o.kind() == Observation.Kind.TIMESLICE) {
            if (p != null && p.startTicks == o.startTicks()) {
                if (o.kind() == Observation.Kind.SCHEDULED) {
                    scheduled(p, new RmContext.Scheduled(o.client(), o.handle(), o.timeNs()));
                } else {
                    sliced(p, o);
                }
            }
            return;
        }
        if (p != null && p.startTicks == o.startTicks()) {
            news(p, seen);
        } else if ((p == null || p.dead) && listener != null && o.pid() != ownPid
            && !protectedUntilNs.containsKey(o.pid())) {
            final WatchedProcess followed = follow(o.pid(), o.startTicks(), System.nanoTime());
            if (followed != null) {
                news(followed, seen);
            }
        }
    }

    /** Its channels run from now on, whatever was done to them before: the enforcer disables them, or does so again. */
    private void scheduled(final WatchedProcess p, final RmContext.Scheduled what) {
        if (p.scheduled.size() >= SCHEDULED_MOST) {
            p.scheduled.clear();
            p.scheduled.add(RmContext.Scheduled.ANY);
        } else {
            p.scheduled.add(what);
        }
        if (p.observed != null && p.process != null && p != searched) {
            p.nextRefreshNs = System.nanoTime();
        }
        onChange.run();
    }

    /** It has a slice of its own now, whatever was chosen for it: the enforcer remembers this one and chooses again. */
    private void sliced(final WatchedProcess p, final Observation o) {
        final Long key = RmTimeslices.key(o.client(), o.handle());
        if (p.newTimeslices.size() < SCHEDULED_MOST || p.newTimeslices.containsKey(key)) {
            p.newTimeslices.put(key, Integer.toUnsignedLong(o.parent()));
            onChange.run();
        }
    }

    private void news(final WatchedProcess p, final ObservedProcess seen) {
        if (seen.isWhole()) {
            p.observed = seen;
            p.nextRefreshNs = System.nanoTime();
        } else if (p.observed != null) {
            search(p);
        } else if (p.process == null || p.process.context(gpu) == null) {
            p.periodNs = REFRESH_MIN_NS;
            p.nextRefreshNs = Math.min(p.nextRefreshNs, System.nanoTime() + REFRESH_MIN_NS);
        }
    }

    /** What was seen of a process is not all: it is searched from now on. */
    private void search(final WatchedProcess p) {
        log.note("searched", p.pid);
        if (p.observed != null) {
            p.observed = null;
            if (p.process != null) {
                p.process.invalidate();
            }
        }
        p.periodNs = REFRESH_MIN_NS;
        p.nextRefreshNs = System.nanoTime();
    }

    private void applyMpsRule() {
        if (mps.update(watched.list())) {
            onChange.run();
        }
    }

    /** Waits for a death, an open of the device, a request or the next refresh. Those that have ended are listed. */
    private void awaitDeaths() {
        order.clear();
        ended.clear();
        final long nowNs = System.nanoTime();
        long wakeNs = nowNs + REFRESH_KNOWN_NS;
        polled.clear();
        polled.add(bell.fd());
        final int opens = inotify >= 0 ? polled.add(inotify) : -1;
        int first = -1;
        for (int i = 0; i < watched.list().size(); i++) {
            final WatchedProcess p = watched.list().get(i);
            final int index = p.process == null ? -1 : polled.add(p.process.pidfd());
            if (index >= 0) {
                first = first < 0 ? index : first;
                order.add(p);
            }
            if (!p.dead && p.nextRefreshNs - wakeNs < 0) {
                wakeNs = p.nextRefreshNs;
            }
        }
        if (listener != null && nextWalkNs - wakeNs < 0) {
            wakeNs = nextWalkNs;
        }
        if (opened) {
            wakeNs = nowNs + WALK_GAP_NS;
        }
        final long leftNs = wakeNs - nowNs;
        if (polled.await(leftNs <= 0 ? 0 : (int) ((leftNs + MS - 1) / MS))) {
            if (opens >= 0 && polled.isReady(opens)) {
                noteOpen();
            }
            for (int i = 0; i < order.size(); i++) {
                if (polled.isReady(first + i)) {
                    ended.add(order.get(i));
                }
            }
        }
    }

    /** A process opened the device: those that have no context yet are refreshed soon. */
    private void noteOpen() {
        DriverCalls.drain(inotify, scratch);
        if (observer.isLive()) {
            return;   // it tells more
        }
        opened = true;
        for (int i = 0; i < watched.list().size(); i++) {
            final WatchedProcess p = watched.list().get(i);
            if (!p.dead && (p.process == null || p.process.context(gpu) == null)) {
                p.nextRefreshNs = System.nanoTime() + REFRESH_MIN_NS;
                p.periodNs = REFRESH_MIN_NS;
            }
        }
    }

    private void refresh(final WatchedProcess p, final long nowNs) {
        log.note("asking", p.pid);
        examine(p, nowNs);
        log.note("asked", p.pid);
    }

    private void examine(final WatchedProcess p, final long nowNs) {
        if (p.process == null) {
            p.process = RmProcess.open(p.pid, scan, serveObserved);
            // after pidfd_open the pid names one process: is it the one that was meant?
            if (p.process == null || !ProcessStatus.isAlive(p.pid, p.startTicks)) {
                p.dead = true;
                close(p);
                onChange.run();
                return;
            }
        }
        final RmProcess.Result found;
        if (p.observed == null) {
            searched = p;
            try {
                found = p.process.refresh(nowNs, closer, olderThan);
            } finally {
                searched = null;
            }
        } else {
            found = p.process.refreshObserved(nowNs, closer, olderThan, p.observed);
        }
        if (p.observed != null && !p.observed.isWhole()) {
            search(p);
            return;
        }
        switch (found) {
            case CHANGED:
                p.periodNs = REFRESH_MIN_NS;
                if (p.observed == null) {
                    p.confirmNs = nowNs - p.sinceNs >= YOUNG_NS ? 0 : nowNs;
                }
                log.note("known", p.pid);
                onChange.run();
                break;
            case REFUSED:
                lastError = p.process.refusal();
                break;
            case UNCHANGED:
                if (p.observed == null && p.confirmNs != 0 && nowNs - p.confirmNs >= 0) {
                    p.confirmNs = 0;
                    scheduled(p, RmContext.Scheduled.ANY);
                }
                break;
            default:
                break;   // the pidfd reports a process that is ending
        }
        if (p.observed != null) {
            awaitScheduling(p, nowNs);
        }
        announce(p);
        p.withoutOwnChannels = mps.usesCudaWithoutChannels(p.process);
        if (found == RmProcess.Result.GONE) {   // shows no descriptors; its pidfd reports its end
            p.nextRefreshNs = nowNs + p.periodNs;
            p.periodNs = Math.min(REFRESH_MAX_NS, 2 * p.periodNs);
        } else if (p.observed != null
            || p.process.hasNoWork() && !p.process.usesDriver() && observer.sawWhole(p.startTicks)) {
            p.nextRefreshNs = nowNs + (p.observed != null && p.observed.hasNews() ? 0
                : p.process.isStale() ? REFRESH_MIN_NS : p.confirmNs != 0 ? Math.max(0, p.confirmNs - nowNs)
                : REFRESH_OBSERVED_NS);
        } else if (p.process.context(gpu) != null) {
            p.nextRefreshNs = nowNs + (nowNs - p.sinceNs < YOUNG_NS ? REFRESH_YOUNG_NS : REFRESH_KNOWN_NS);
        } else if (!p.process.usesDriver() && found != RmProcess.Result.REFUSED) {
            p.nextRefreshNs = nowNs + REFRESH_WITHOUT_DRIVER_NS;
            p.periodNs = REFRESH_MIN_NS;
        } else {
            p.nextRefreshNs = nowNs + p.periodNs;
            p.periodNs = Math.min(REFRESH_MAX_NS, 2 * p.periodNs);
        }
    }

    /** While one process is searched: those of which the observer tells something are served. */
    private void serveObserved() {
        if (observations.isEmpty()) {
            return;
        }
        takeSome();
        final long nowNs = System.nanoTime();
        for (int i = 0; i < watched.list().size(); i++) {
            final WatchedProcess p = watched.list().get(i);
            if (p != searched && p.observed != null && !p.dead && !p.detached && nowNs - p.nextRefreshNs >= 0) {
                refresh(p, nowNs);   // asks a few questions, searches nothing
            }
        }
    }

    /** Channels that are never seen scheduled count as scheduled after a while, in case nobody saw it. */
    private void awaitScheduling(final WatchedProcess p, final long nowNs) {
        if (!p.process.hasUnscheduled()) {
            p.confirmNs = 0;
        } else if (p.confirmNs == 0) {
            p.confirmNs = nowNs + CONFIRM_NS;
        } else if (nowNs - p.confirmNs >= 0) {
            p.confirmNs = 0;
            p.observed.assumeScheduled();
            if (p.process.refreshObserved(nowNs, closer, olderThan, p.observed) == RmProcess.Result.CHANGED) {
                onChange.run();
            }
        }
    }

    /**
     * Ancestors and all older processes that are followed; of those that started in the same tick (10 ms) the one of
     * the lower pid is the older. Only asked when a process has a new descriptor.
     */
    private OpenFiles olderThan(final int pid) {
        olderFiles.clear();
        final long ticks = ProcessStatus.startTicks(pid);
        int ancestor = ProcessStatus.parent(pid);
        for (int i = 0; i < ANCESTORS_MAX && ancestor > 1; i++) {
            if (ancestor != ownPid) {
                olderFiles.addOf(ancestor);
            }
            ancestor = ProcessStatus.parent(ancestor);
        }
        for (int i = 0; i < watched.list().size(); i++) {
            final WatchedProcess p = watched.list().get(i);
            if (p.process != null && (p.startTicks < ticks || p.startTicks == ticks && p.pid < pid)) {
                p.process.addFilesTo(olderFiles);
            }
        }
        return olderFiles;
    }

    private void announce(final WatchedProcess p) {
        final ProcessListener to = listener;
        if (!p.attached && !p.announced && to != null && p.process.preparesFor(gpu)) {
            p.announced = true;
            log.note("announced", p.pid);
            to.found(p.pid, p.startTicks, ProcessStatus.commandName(p.pid));
        }
    }

    private void close(final WatchedProcess p) {
        final RmProcess process = p.process;
        if (process != null) {
            process.close(closer, () -> p.process = null, p.dead ? process.context(gpu) : null);
        }
    }

    /** Searches /proc for processes that have the control device open and are not followed yet. */
    private void walk(final long nowNs) {
        opened = false;
        nextWalkNs = nowNs + (inotify >= 0 || observer.isLive() ? WALK_NOTIFIED_NS : WALK_NS);
        if (!protectedUntilNs.isEmpty()) {
            protectedUntilNs.values().removeIf(untilNs -> nowNs - untilNs >= 0);
        }
        try (ProcEntries list = processes) {
            list.openProcesses();
            while (list.next()) {
                final int pid = list.number();
                if (pid != ownPid && watched.get(pid) == null && !protectedUntilNs.containsKey(pid)
                    && controls.finds(pid)) {
                    follow(pid, ProcessStatus.startTicks(pid), nowNs);
                }
            }
        } catch (final IOException e) {
            lastError = "/proc cannot be read: " + e.getMessage() + "; unmanaged processes are not noticed";
        }
    }

    /** Null if the process must not be touched, or has ended. */
    private WatchedProcess follow(final int pid, final long startTicks, final long nowNs) {
        if (protection.covers(pid)) {
            protectedUntilNs.put(pid, nowNs + PROTECTED_AGAIN_NS);   // asked again in case the pid is reused
            return null;
        }
        if (startTicks == 0) {
            return null;
        }
        final WatchedProcess p = new WatchedProcess(pid, startTicks, nowNs);
        watched.put(p);
        return p;
    }
}

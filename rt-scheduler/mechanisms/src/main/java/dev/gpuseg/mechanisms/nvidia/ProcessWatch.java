/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ProcessListener;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.agrona.BufferUtil;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;

/**
 * The thread that keeps the picture of other processes up to date: it finds the channels of attached processes when
 * they appear, lets go of the dead at once (a duplicate of its descriptor keeps a dead process's GPU memory alive), and
 * announces processes with work on the GPU that nobody attached.
 *
 * <p>It learns of new ones from inotify on the control device (an open wakes it) and, where that does not work, from a
 * walk through /proc every 250 ms. Between the first open and the announcement lie the time the process takes to make
 * its channels and at most one look (20 to 160 ms while it is new).
 */
final class ProcessWatch implements Runnable {
    private static final long MS = 1_000_000;
    private static final long LOOK_MIN_NS = 20 * MS;
    private static final long LOOK_MAX_NS = 2_000 * MS;
    private static final long LOOK_WITHOUT_DRIVER_NS = 100 * MS;
    private static final long LOOK_KNOWN_NS = 1_000 * MS;
    private static final long LOOK_YOUNG_NS = 100 * MS;
    private static final long YOUNG_NS = 5_000 * MS;
    private static final long WALK_NS = 250 * MS;
    private static final long WALK_WITH_INOTIFY_NS = 5_000 * MS;
    private static final long WALK_GAP_NS = 20 * MS;
    private static final long STRANGER_NS = 3_000 * MS;
    private static final int ANCESTORS_MAX = 8;
    private static final String MPS_SERVER = "nvidia-cuda-mps-server";
    private static final int POLLFDS_MAX = 1024;
    private static final int POLLFD_BYTES = 8;
    private static final short POLLIN = 1;

    /** Why a process must not be taken off. */
    record Stay(int server, int client, boolean clientHasChannels) {
    }

    /** One process that is looked at. The mechanism reads {@link #process}. */
    static final class Tracked {
        final int pid;
        final long startTicks;
        /** W watch thread, under the lock when it becomes null; R enforcer. Null = gone or not opened yet. */
        volatile RmProcess process;
        /** W watch thread, R enforcer: the pidfd has reported death. */
        volatile boolean dead;
        volatile boolean detached;
        /** Enforcer only: what was disabled last and not enabled since; its channels, not today's, must come back. */
        RmContext disabled;
        /** Enforcer, under the lock: time slices before they were changed, us, by client and channel group. */
        final Map<Long, Long> ownTimeslicesUs = new HashMap<>();
        /** W watch thread, R enforcer, dispatcher: its channels carry the work of other processes. */
        volatile boolean mpsServer;
        /** W watch thread, R enforcer, dispatcher: see {@link ProcessWatch#lookForMps}. */
        volatile Stay stay;
        /** W enforcer, R watch thread: its process may have tasks. */
        volatile boolean registered;
        /** Null until the first look. */
        private MpsPipe pipe;
        /** Uses CUDA, as it seems, without channels of its own. */
        private boolean withoutOwn;
        private final long sinceNs;
        private boolean attached;
        private boolean announced;
        private long nextLookNs;
        private long periodNs = LOOK_MIN_NS;

        Tracked(final int pid, final long startTicks, final long nowNs) {
            this.pid = pid;
            this.startTicks = startTicks;
            sinceNs = nowNs;
            nextLookNs = nowNs;
        }
    }

    private final int gpu;
    private final GpuIndex gpus;
    private final Scope scope;
    private final Protection protection;
    private final Object lock;
    private final Runnable onChange;
    private final RmControl rm = new RmControl();
    private final WatchBell bell = new WatchBell();
    private final ManyToOneConcurrentLinkedQueue<Tracked> arrivals = new ManyToOneConcurrentLinkedQueue<>();
    private final Map<Integer, Tracked> tracked = new HashMap<>();
    private final Map<Integer, Long> strangers = new HashMap<>();
    private final ByteBuffer pollfds =
        ByteBuffer.allocateDirect(POLLFDS_MAX * POLLFD_BYTES).order(ByteOrder.nativeOrder());
    private final byte[] scratch = new byte[4096];
    private final int ownPid = ProcessStatus.pid();
    private final int inotify;
    private final Path proc;
    private boolean mpsRuns;
    private long nextWalkNs;
    private boolean opened;
    private volatile ProcessListener listener;
    private volatile boolean running = true;
    private volatile String lastError = "";
    private Thread thread;

    ProcessWatch(final int gpu, final GpuIndex gpus, final Scope scope, final Protection protection,
        final Object lock, final Runnable onChange, final Path proc) {
        this.proc = proc;
        this.gpu = gpu;
        this.gpus = gpus;
        this.scope = scope;
        this.protection = protection;
        this.lock = lock;
        this.onChange = onChange;
        inotify = Files.exists(Path.of(RmProcess.CONTROL_DEVICE)) ? DriverCalls.watchOpens(RmProcess.CONTROL_DEVICE)
            : -1;
    }

    void start() {
        thread = new Thread(this, "gpuseg-nvidia-watch-" + gpu);
        thread.setDaemon(true);
        thread.start();
    }

    void stop() {
        running = false;
        bell.ring();
        try {
            thread.join(2_000);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Begins to announce processes that nobody attached. Any thread. */
    void listener(final ProcessListener to) {
        listener = to;
        bell.ring();
    }

    /** Begins to look at a process. Any thread. */
    Tracked attach(final int pid, final long startTicks) {
        final Tracked t = new Tracked(pid, startTicks, System.nanoTime());
        t.attached = true;
        arrivals.add(t);
        bell.ring();
        return t;
    }

    /** Lets go of a process. Any thread. */
    void detach(final Tracked t) {
        t.detached = true;
        bell.ring();
    }

    /** Its process registered, or is only found from now on. Any thread. */
    void registered(final Tracked t, final boolean registered) {
        t.registered = registered;
        bell.ring();
    }

    /** Something known of a process turned out wrong: look at all of it again, now. Any thread. */
    void distrust(final Tracked t) {
        final RmProcess p = t.process;
        if (p != null) {
            p.distrust();
        }
        bell.ring();
    }

    String lastError() {
        return lastError;
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
        for (final Tracked t : tracked.values()) {
            close(t);
        }
        if (inotify >= 0) {
            SystemCalls.closeOnce(inotify);
        }
        bell.close();
    }

    private void cycle() {
        final List<Tracked> polled = await();
        for (final Tracked t : polled) {
            t.dead = true;
            enable(t);
            close(t);
            onChange.run();
        }
        final boolean rung = bell.answer();
        for (Tracked t = arrivals.poll(); t != null; t = arrivals.poll()) {
            final Tracked known = tracked.put(t.pid, t);
            if (known != null) {
                t.process = known.process;
                known.process = null;
                t.mpsServer = known.mpsServer;
                t.stay = known.stay;
                t.announced = true;
            }
        }
        lookForMps();   // before looks that may take long: a new task's segment may have begun
        final long nowNs = System.nanoTime();
        final Iterator<Tracked> each = tracked.values().iterator();
        while (each.hasNext()) {
            final Tracked t = each.next();
            if (t.detached) {
                close(t);
                each.remove();
            } else if (t.dead && !t.attached) {
                each.remove();
            } else if (!t.dead && (nowNs - t.nextLookNs >= 0 || rung && t.process == null)) {
                look(t, nowNs);
            } else if (rung && t.process != null && t.process.isDistrusted()) {
                look(t, nowNs);
            }
        }
        lookForMps();
        if (listener != null && (opened || nowNs - nextWalkNs >= 0)) {
            walk(nowNs);
        }
    }

    /**
     * A server's work and that of its clients hang together, and nothing outside of them tells how: while one of the
     * clients registered, it may be the one for whose segment the others would be taken off, so that nothing would run
     * and nobody would end the segment. The server and all its clients then stay on.
     */
    private void lookForMps() {
        final List<Tracked> servers = new ArrayList<>();
        for (final Tracked t : tracked.values()) {
            if (t.pipe == null && !t.dead) {   // once: it is that of its start
                t.pipe = MpsPipe.of(proc, t.pid);
                t.mpsServer = MPS_SERVER.equals(ProcessStatus.programName(t.pid));
            }
            if (t.mpsServer && !t.dead && !t.detached) {
                servers.add(t);
            }
        }
        mpsRuns = !servers.isEmpty();
        final Map<Integer, Stay> stays = new HashMap<>();
        for (final Tracked server : servers) {
            final Stay stay = stay(server);
            if (stay != null) {
                stays.put(server.pid, stay);
                for (final Tracked t : tracked.values()) {
                    if (!t.mpsServer && (t.registered && t.withoutOwn || t.pipe != null && t.pipe.mayBe(server.pipe))) {
                        stays.putIfAbsent(t.pid, stay);
                    }
                }
            }
        }
        boolean changes = false;
        for (final Tracked t : tracked.values()) {
            final Stay stay = stays.get(t.pid);
            if (!Objects.equals(stay, t.stay)) {
                t.stay = stay;
                changes = true;
            }
        }
        if (changes) {
            onChange.run();
        }
    }

    /** Because of the first client that registered; null if there is none. */
    private Stay stay(final Tracked server) {
        Tracked client = null;
        for (final Tracked t : tracked.values()) {
            if (t.registered && !t.dead && !t.detached && !t.mpsServer && (client == null || t.pid < client.pid)
                && (t.withoutOwn || t.pipe != null && t.pipe.mayBe(server.pipe))) {
                client = t;
            }
        }
        return client == null ? null : new Stay(server.pid, client.pid, !client.withoutOwn);
    }

    private static boolean mapsCuda(final int pid) {
        try (Stream<String> lines = Files.lines(Path.of("/proc/" + pid + "/maps"), StandardCharsets.ISO_8859_1)) {
            return lines.anyMatch(line -> line.contains("/libcuda.so"));
        } catch (final IOException | UncheckedIOException e) {
            return false;   // it ended meanwhile, or it is not ours to look at
        }
    }

    /** Waits for a death, an open, a request or the next look; returns the dead. */
    private List<Tracked> await() {
        final List<Tracked> order = new ArrayList<>();
        final long nowNs = System.nanoTime();
        long wakeNs = nowNs + LOOK_KNOWN_NS;
        int n = 0;
        putPollfd(n++, bell.fd());
        if (inotify >= 0) {
            putPollfd(n++, inotify);
        }
        final int first = n;
        for (final Tracked t : tracked.values()) {
            if (t.process != null && n < POLLFDS_MAX) {
                putPollfd(n++, t.process.pidfd());
                order.add(t);
            }
            if (!t.dead && t.nextLookNs - wakeNs < 0) {
                wakeNs = t.nextLookNs;
            }
        }
        if (listener != null && nextWalkNs - wakeNs < 0) {
            wakeNs = nextWalkNs;
        }
        if (opened) {
            wakeNs = nowNs + WALK_GAP_NS;
        }
        final long leftNs = wakeNs - nowNs;
        final int ready = DriverCalls.poll(BufferUtil.address(pollfds), n,
            leftNs <= 0 ? 0 : (int) ((leftNs + MS - 1) / MS));
        final List<Tracked> dead = new ArrayList<>();
        if (ready > 0) {
            if (inotify >= 0 && revents(1) != 0) {
                DriverCalls.drain(inotify, scratch);
                opened = true;
                for (final Tracked t : tracked.values()) {
                    if (!t.dead && (t.process == null || t.process.context(gpu) == null)) {
                        t.nextLookNs = System.nanoTime() + LOOK_MIN_NS;
                        t.periodNs = LOOK_MIN_NS;
                    }
                }
            }
            for (int i = 0; i < order.size(); i++) {
                if (revents(first + i) != 0) {
                    dead.add(order.get(i));
                }
            }
        }
        return dead;
    }

    private void putPollfd(final int i, final int fd) {
        pollfds.putInt(i * POLLFD_BYTES, fd).putShort(i * POLLFD_BYTES + 4, POLLIN)
            .putShort(i * POLLFD_BYTES + 6, (short) 0);
    }

    private int revents(final int i) {
        return pollfds.getShort(i * POLLFD_BYTES + 6);
    }

    private void look(final Tracked t, final long nowNs) {
        if (t.process == null) {
            t.process = RmProcess.open(t.pid, gpus, scope, rm);
            // after pidfd_open the pid names one process: is it the one that was meant?
            if (t.process == null || !ProcessStatus.isAlive(t.pid, t.startTicks)) {
                t.dead = true;
                close(t);
                onChange.run();
                return;
            }
        }
        final RmProcess.Look found = t.process.refresh(nowNs, lock, this::elders);
        switch (found) {
            case CHANGED:
                t.periodNs = LOOK_MIN_NS;
                announce(t);
                onChange.run();
                break;
            case REFUSED:
                lastError = t.process.refusal();
                break;
            default:
                break;   // a process that is going is reported by its pidfd
        }
        t.withoutOwn = t.process.hasNoWork() && (t.process.usesDriver() || mpsRuns && mapsCuda(t.pid));
        if (t.process.context(gpu) != null) {
            t.nextLookNs = nowNs + (nowNs - t.sinceNs < YOUNG_NS ? LOOK_YOUNG_NS : LOOK_KNOWN_NS);
        } else if (!t.process.usesDriver() && found != RmProcess.Look.REFUSED) {
            t.nextLookNs = nowNs + LOOK_WITHOUT_DRIVER_NS;
            t.periodNs = LOOK_MIN_NS;
        } else {
            t.nextLookNs = nowNs + t.periodNs;
            t.periodNs = Math.min(LOOK_MAX_NS, 2 * t.periodNs);
        }
    }

    /** Ancestors, and whatever else is known and older. Only asked when a process has a descriptor that is new. */
    private Map<Integer, List<Integer>> elders(final int pid) {
        final Map<Integer, List<Integer>> found = new HashMap<>();
        final long ticks = ProcessStatus.startTicks(pid);
        int ancestor = ProcessStatus.parent(pid);
        for (int i = 0; i < ANCESTORS_MAX && ancestor > 1; i++) {
            if (ancestor != ownPid) {
                found.put(ancestor, RmProcess.controlDescriptors(ancestor));
            }
            ancestor = ProcessStatus.parent(ancestor);
        }
        for (final Tracked t : tracked.values()) {
            if (t.pid != pid && t.process != null && t.startTicks < ticks) {
                found.putIfAbsent(t.pid, t.process.descriptors());
            }
        }
        return found;
    }

    private void announce(final Tracked t) {
        final ProcessListener to = listener;
        if (!t.attached && !t.announced && to != null && t.process.context(gpu) != null) {
            t.announced = true;
            to.found(t.pid, t.startTicks, ProcessStatus.commandName(t.pid));
        }
    }

    /**
     * A dead process's channels live on while we hold its descriptor. They are enabled before it is closed, so that the
     * driver takes down channels in the state in which it finds those of any process that was killed.
     */
    private void enable(final Tracked t) {
        final RmProcess p = t.process;
        final RmContext c = p == null ? null : p.context(gpu);
        if (c == null) {
            return;
        }
        for (int k = 0; k < c.channelCount();) {
            rm.clear();
            while (k < c.channelCount() && rm.size() < RmControl.BATCH_MAX) {
                rm.add(c.channelClient(k), c.channel(k));
                k++;
            }
            final int status = rm.switchChannels(c.file().fd(), c.client(), c.subdevice(), false);
            if (status != RmStatus.OK) {
                lastError = "channels of dead pid " + t.pid + " could not be enabled: " + RmStatus.name(status);
            }
        }
    }

    private void close(final Tracked t) {
        final RmProcess p = t.process;
        if (p != null) {
            synchronized (lock) {
                t.process = null;
                p.close();
            }
        }
    }

    /** Looks through /proc for processes that have the control device open and are not looked at yet. */
    private void walk(final long nowNs) {
        opened = false;
        nextWalkNs = nowNs + (inotify >= 0 ? WALK_WITH_INOTIFY_NS : WALK_NS);
        strangers.values().removeIf(untilNs -> nowNs - untilNs >= 0);
        try (DirectoryStream<Path> list = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            for (final Path p : list) {
                final int pid = Integer.parseInt(p.getFileName().toString());
                if (pid != ownPid && !tracked.containsKey(pid) && !strangers.containsKey(pid)
                    && !RmProcess.controlDescriptors(pid).isEmpty()) {
                    meet(pid, nowNs);
                }
            }
        } catch (final IOException | DirectoryIteratorException e) {
            lastError = "/proc cannot be read: " + e.getMessage() + "; unmanaged processes are not noticed";
        }
    }

    private void meet(final int pid, final long nowNs) {
        if (protection.covers(pid)) {
            strangers.put(pid, nowNs + STRANGER_NS);   // never touched; asked again in case the pid is reused
            return;
        }
        final long ticks = ProcessStatus.startTicks(pid);
        if (ticks != 0) {
            tracked.put(pid, new Tracked(pid, ticks, nowNs));
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import dev.gpuseg.mechanisms.Layouts;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The daemon's end of gpuseg-observer. A thread reads its records and passes them to the mechanisms. If the observer
 * ends, the mechanisms are told and scan, and it is started or connected to again, after 1 s at first and 60 s at most.
 *
 * <p>The observer is either a child of this process, which then needs the observer's capabilities, or a service of its
 * own at a socket. Any thread may call any method.
 */
public final class Observer implements AutoCloseable {
    private static final long FIRST_WAIT_MS = 1_000;
    private static final long LAST_WAIT_MS = 60_000;
    private static final long CLOSE_WAIT_MS = 2_000;
    static final int VERSION = Layouts.OBSERVER_VERSION;
    private static final int BUFFER_BYTES = 1024 * Observation.BYTES;

    /** Where records come from. */
    @FunctionalInterface
    interface Source {
        /** Starts or connects. Closing the stream ends what was started. */
        InputStream open() throws IOException;
    }

    private final Source source;
    private final String origin;
    private final List<ObservationListener> listeners = new CopyOnWriteArrayList<>();
    private final GroupAccounts accounts = new GroupAccounts();
    private final AtomicLong records = new AtomicLong();
    private final AtomicLong lost = new AtomicLong();
    private final AtomicLong restarts = new AtomicLong();
    private final CountDownLatch first = new CountDownLatch(1);
    private volatile boolean running = true;
    /** What began after this is seen whole, CLOCK_BOOTTIME ns; {@link Long#MAX_VALUE} while nothing is seen. */
    private volatile long wholeFromNs = Long.MAX_VALUE;
    private volatile String problem;
    private volatile InputStream stream;
    private Thread thread;
    /** Its thread only; 0 = it may sleep. */
    private long alertUntilNs;

    private Observer(final Source source, final String origin, final String problem) {
        this.source = source;
        this.origin = origin;
        this.problem = problem;
    }

    /**
     * No observer.
     *
     * @param reason why, one line
     * @return an object that never reports anything
     */
    public static Observer none(final String reason) {
        return new Observer(null, "", reason);
    }

    /**
     * Starts gpuseg-observer as a child.
     *
     * @param program its path
     * @param options of its command line
     * @return the observer; it may not see anything yet, see {@link #await}
     */
    public static Observer start(final Path program, final List<String> options) {
        return new Observer(() -> ObserverSource.child(program, options), program.toString(), "").started();
    }

    /**
     * Connects to gpuseg-observer, which runs as a service.
     *
     * @param socket its path
     * @return the observer; it may not see anything yet, see {@link #await}
     */
    public static Observer connect(final Path socket) {
        return new Observer(() -> ObserverSource.socket(socket), socket.toString(), "").started();
    }

    /**
     * Chooses: the service if its socket exists, else the program.
     *
     * @param socket  of the service
     * @param program of the checkout or package
     * @param options of the program's command line
     * @return the observer
     */
    public static Observer open(final Path socket, final Path program, final List<String> options) {
        return Files.exists(socket) ? connect(socket) : start(program, options);
    }

    /**
     * Whether the service is there. It notices nothing of this, and serves its daemon on.
     *
     * @param socket its path
     * @return why not, one line; empty if it listens
     */
    public static String refusal(final Path socket) {
        try {
            ObserverSource.connect(socket).close();
            return "";
        } catch (final IOException e) {
            return e.getMessage();
        }
    }

    /** With another source, for tests. */
    static Observer of(final Source source, final String origin) {
        return new Observer(source, origin, "").started();
    }

    private Observer started() {
        thread = new Thread(this::run, "gpuseg-observer");
        thread.setDaemon(true);
        thread.start();
        return this;
    }

    /**
     * Waits until the observer sees, or has failed once.
     *
     * @param millis at most this long
     * @return whether it sees
     */
    public boolean await(final long millis) {
        try {
            if (source != null) {
                first.await(millis, TimeUnit.MILLISECONDS);
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return isLive();
    }

    /**
     * Adds a receiver, for the life of this object.
     *
     * @param listener called for every record from now on
     */
    public void listen(final ObservationListener listener) {
        listeners.add(listener);
    }

    /**
     * Removes a receiver.
     *
     * @param listener as it was added
     */
    public void forget(final ObservationListener listener) {
        listeners.remove(listener);
    }

    /** Whether processes are observed now; false without an observer, and until it runs again after it ended. */
    public boolean isLive() {
        return wholeFromNs != Long.MAX_VALUE;
    }

    /**
     * Whether everything that a process ever did with a GPU was seen.
     *
     * @param startTicks field 22 of its /proc/pid/stat
     * @return false if it may be older than the observer or than a loss
     */
    public boolean sawWhole(final long startTicks) {
        final long from = wholeFromNs;
        return from != Long.MAX_VALUE && startTicks >= Observation.ticksAfter(from);
    }

    /** Why nothing is observed; one line; empty while it works. */
    public String problem() {
        return problem;
    }

    /** Program or socket; empty if there is none. */
    public String origin() {
        return origin;
    }

    /** Records so far; from 0. */
    public long records() {
        return records.get();
    }

    /** Records that were lost; each loss is answered by a scan. From 0. */
    public long lost() {
        return lost.get();
    }

    /** How often the observer ended and was started again; from 0. */
    public long restarts() {
        return restarts.get();
    }

    /**
     * The account of a control group.
     *
     * @param cgroup inode of its directory
     * @return null if no process of it has used a GPU, or it was removed
     */
    public GroupAccount account(final long cgroup) {
        return accounts.get(cgroup);
    }

    /** How many accounts there are. */
    int accountCount() {
        return accounts.size();
    }

    private void run() {
        long waitMs = FIRST_WAIT_MS;
        while (running) {
            try (InputStream in = source.open()) {
                stream = in;
                if (running) {
                    read(in);
                }
                problem = origin + " has ended";
            } catch (final IOException e) {
                problem = e.getMessage();
            }
            stream = null;
            waitMs = isLive() ? FIRST_WAIT_MS : Math.min(LAST_WAIT_MS, 2 * waitMs);
            wholeFromNs = Long.MAX_VALUE;
            listeners.forEach(ObservationListener::interrupted);
            first.countDown();
            pause(waitMs);
            restarts.incrementAndGet();
        }
    }

    private void pause(final long millis) {
        try {
            if (running) {
                TimeUnit.MILLISECONDS.sleep(millis);
            }
        } catch (final InterruptedException e) {
            // closed
        }
    }

    private void read(final InputStream in) throws IOException {
        final byte[] bytes = new byte[BUFFER_BYTES];
        final ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        int have = 0;
        for (int n = in.read(bytes, 0, bytes.length); n > 0; n = in.read(bytes, have, bytes.length - have)) {
            have += n;
            int at = 0;
            for (; have - at >= Observation.BYTES; at += Observation.BYTES) {
                take(buffer, at);
            }
            System.arraycopy(bytes, at, bytes, 0, have - at);
            have -= at;
            while (Alert.lasts(alertUntilNs, System.nanoTime()) && in.available() == 0) {
                Thread.onSpinWait();
            }
        }
    }

    private void take(final ByteBuffer b, final int at) throws IOException {
        final Observation.Kind kind = Observation.kind(b, at);
        if (kind == null) {
            throw new IOException(origin + " sends records of another version; install both from one build");
        }
        records.incrementAndGet();
        final Observation record = Observation.read(b, at, wholeFromNs, System.nanoTime());
        switch (kind) {
            case HELLO -> {
                if (record.handle() != VERSION) {
                    throw new IOException(origin + " has version " + record.handle() + ", this daemon " + VERSION
                        + "; install both from one build");
                }
                accounts.clear();   // those that exist follow
                wholeFromNs = Observation.startNs(b, at);
                problem = "";
                first.countDown();
            }
            case LOST -> {
                lost.addAndGet(Integer.toUnsignedLong(record.handle()));
                wholeFromNs = Observation.startNs(b, at);
                listeners.forEach(ObservationListener::interrupted);
            }
            case GROUP -> accounts.put(GroupAccount.read(b, at));
            case GROUP_GONE -> accounts.remove(GroupAccount.read(b, at).cgroup());
            default -> {
                if (kind == Observation.Kind.SCHEDULES) {
                    alertUntilNs = Alert.untilNs();
                } else if (kind == Observation.Kind.SCHEDULED) {
                    alertUntilNs = 0;
                }
                listeners.forEach(l -> l.observed(record));
            }
        }
    }

    @Override
    public void close() {
        running = false;
        if (thread == null) {
            return;
        }
        final InputStream in = stream;
        try {
            if (in != null) {
                in.close();
            }
            thread.interrupt();
            thread.join(CLOSE_WAIT_MS);
        } catch (final IOException e) {
            problem = "close: " + e.getMessage();
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

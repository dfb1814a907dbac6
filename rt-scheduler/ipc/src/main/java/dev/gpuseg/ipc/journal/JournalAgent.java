/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.collections.ArrayUtil;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Moves events from the ring into the Chronicle queue, on a thread of its own, so that a failing disk does not affect
 * the dispatcher. While the file system is full, events stay in the ring and are retried ten times a second; the
 * dispatcher counts those that do not fit as dropped. After any other error the journal stops: later events are counted
 * in {@link #lost()} and discarded. {@link #failure()} reports both.
 */
public final class JournalAgent implements Agent, AutoCloseable {
    /** Smallest cap of a journal, bytes: 1 MiB. */
    public static final long BYTES_MIN = 1L << 20;

    private static final int BATCH = 256;
    private static final long RETRY_NS = 100_000_000;
    private static final EventTap[] NO_TAPS = {};

    private final JournalRing ring;
    private final JournalWriter writer;
    private final MessageHandler handler = this::onMessage;
    private volatile long written;
    private volatile long lost;
    private volatile String failure = "";
    private final JournalEvent event = new JournalEvent();
    /** Replaced, never changed, so that iterating allocates nothing. */
    private volatile EventTap[] taps = NO_TAPS;
    private final Object tapLock = new Object();
    private volatile String tapFailure = "";
    /** Taken from the ring and not written yet: the file system is full. Oldest first; at most a batch. */
    private final Deque<byte[]> waiting = new ArrayDeque<>();
    private long retryAtNs;
    private boolean stopped;

    /**
     * Opens the journal and appends the events that an earlier daemon left in the ring.
     *
     * @param ring      where events come from
     * @param directory the Chronicle queue's directory, created if missing
     * @param maxBytes  cap of the whole journal, at least 1 MiB
     */
    public JournalAgent(final JournalRing ring, final Path directory, final long maxBytes) {
        this.ring = ring;
        writer = new JournalWriter(directory, maxBytes);
        drain();
    }

    @Override
    public int doWork() {
        if (!waiting.isEmpty() && (System.nanoTime() - retryAtNs < 0 || !retry())) {
            return 0;
        }
        return ring.read(handler, BATCH);
    }

    private boolean retry() {
        while (!waiting.isEmpty()) {
            final byte[] oldest = waiting.peek();
            if (!write(new UnsafeBuffer(oldest), 0, oldest.length)) {
                return false;
            }
            waiting.remove();
        }
        failure = "";
        return true;
    }

    /**
     * Appends the events that are in the ring now, and perhaps some later ones, but ends, however fast more are
     * written; what is left stays in the ring for the next daemon. None while the file system is full.
     */
    public void drain() {
        if (!waiting.isEmpty() && !retry()) {
            lost = lost + waiting.size();   // called at the end, so there is no retry
            waiting.clear();
            stopped = true;
        }
        final long end = ring.writtenTo();
        long before;
        do {
            before = ring.readTo();
            ring.read(handler, BATCH);   // 0 also where the ring wraps: then the padding was consumed
        } while (ring.readTo() - before > 0 && ring.readTo() - end < 0);
    }

    /**
     * Adds a receiver of every event from now on, whether it can be written or not. Any thread.
     *
     * @param tap called on this agent's thread
     */
    public void addTap(final EventTap tap) {
        synchronized (tapLock) {
            taps = ArrayUtil.add(taps, tap);
        }
    }

    /**
     * Removes a tap. Any thread; one more call may be in progress.
     *
     * @param tap one that was added
     */
    public void removeTap(final EventTap tap) {
        synchronized (tapLock) {
            taps = ArrayUtil.remove(taps, tap);
        }
    }

    private void onMessage(final int type, final MutableDirectBuffer buffer, final int offset, final int length) {
        append(buffer, offset, length);
        final EventTap[] now = taps;
        if (now.length > 0 && length >= JournalEvent.BYTES) {
            event.decode(buffer, offset, length);
            for (final EventTap tap : now) {
                show(tap);
            }
        }
    }

    private void show(final EventTap tap) {
        try {
            tap.onEvent(event);
        } catch (final RuntimeException e) {
            removeTap(tap);
            tapFailure = tap + " was removed at event " + event.seq() + ": " + e;
        }
    }

    /**
     * Which tap was removed because it threw. Any thread.
     *
     * @return one line, empty while all work
     */
    public String tapFailure() {
        return tapFailure;
    }

    private void append(final DirectBuffer buffer, final int offset, final int length) {
        if (length < JournalEvent.BYTES || stopped) {
            lost = lost + 1;   // single writer
        } else if (!waiting.isEmpty() || !write(buffer, offset, length)) {
            final byte[] copy = new byte[length];
            buffer.getBytes(offset, copy);
            waiting.add(copy);
        }
    }

    /** False: not now, the file system is full. */
    private boolean write(final DirectBuffer buffer, final int offset, final int length) {
        try {
            writer.append(buffer, offset, length);
            written = written + 1;
        } catch (final SystemCallException e) {
            if (e.errno() == Errno.ENOSPC || e.errno() == Errno.EDQUOT) {
                retryAtNs = System.nanoTime() + RETRY_NS;
                failure = "journal waits after " + written + " events: " + e.getMessage() + "; free space";
                return false;
            }
            stop(e);
        } catch (final RuntimeException | InternalError e) {
            stop(e);
        }
        return true;
    }

    private void stop(final Throwable e) {
        lost = lost + 1;
        stopped = true;
        failure = "journal stopped after " + written + " events: " + e + "; repair it and restart the daemon";
    }

    /**
     * Events appended. Any thread.
     *
     * @return count since start
     */
    public long written() {
        return written;
    }

    /**
     * Events discarded after an error. Any thread.
     *
     * @return count since start
     */
    public long lost() {
        return lost;
    }

    /**
     * Why the journal stopped or waits. Any thread.
     *
     * @return one line, empty while it works
     */
    public String failure() {
        return failure;
    }

    @Override
    public String roleName() {
        return "gpuseg-journal";
    }

    @Override
    public void onClose() {
        drain();
        writer.close();
    }

    @Override
    public void close() {
        onClose();
    }
}

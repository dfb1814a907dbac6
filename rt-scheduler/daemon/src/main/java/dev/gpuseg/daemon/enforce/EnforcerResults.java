/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.mechanisms.ContextRef;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;

/**
 * What an enforcer tells the dispatcher, for its journal, its counters and the scheduler. W: the enforcer, R: the
 * dispatcher. A result for which there is no room is dropped and counted: the state that it describes is not lost.
 */
public final class EnforcerResults {
    /** A context changed. Layout: id, 1 = disabled, began ns, done ns. */
    public static final int CONTEXT = 1;
    /** The mechanism failed; UTF-8 text. */
    static final int ERROR = 2;
    /** The watchdog had released contexts. Layout: its count, the first time of that silence in ns. */
    public static final int RELEASED = 3;
    /** The mechanism failed as it did before, see {@link #ERROR}. */
    public static final int REPEATED_ERROR = 4;

    /** Where a message has the state. */
    public static final int OFF_OFFSET = 4;
    /** Where a message has the begin of the call. */
    public static final int BEGAN_OFFSET = 8;
    /** Where a message has the end of the call. */
    public static final int DONE_OFFSET = 16;

    private static final int CAPACITY = 1 << 16;
    private static final int CONTEXT_BYTES = 24;
    private static final int ERROR_BYTES_MAX = 512;
    private static final long SAME_ERROR_NS = 10_000_000_000L;

    private final OneToOneRingBuffer ring = new OneToOneRingBuffer(new UnsafeBuffer(
        ByteBuffer.allocateDirect(CAPACITY + RingBufferDescriptor.TRAILER_LENGTH)));
    private final Runnable wakeDispatcher;
    /** Something was written since the dispatcher was woken last. */
    private boolean unannounced;
    private long cycleNs;
    private String saidLast = "";
    private long saidLastNs;
    private long lost;

    EnforcerResults(final Runnable wakeDispatcher) {
        this.wakeDispatcher = wakeDispatcher;
    }

    /** Dispatcher: takes results. */
    int poll(final MessageHandler handler) {
        final int n = ring.read(handler);
        return n == 0 && ring.size() > 0 ? ring.read(handler) : n;   // the first may have met the ring's end
    }

    /** Enforcer: what follows belongs to the cycle that began then. */
    void cycleBegins(final long nowNs) {
        cycleNs = nowNs;
    }

    /** Enforcer: nothing more follows; the dispatcher is woken if it may not have heard of all. */
    void cycleEnds() {
        if (unannounced) {
            wakeDispatcher();
        }
    }

    /** Enforcer: wakes the dispatcher, which takes the results. One system call if it sleeps. */
    void wakeDispatcher() {
        unannounced = false;
        wakeDispatcher.run();
    }

    /** Enforcer: a context was disabled or enabled. More may follow, so the dispatcher is woken later. */
    void changed(final ContextRef context, final boolean isOff) {
        final int at = claim(CONTEXT, CONTEXT_BYTES);
        if (at < 0) {
            return;
        }
        final AtomicBuffer b = ring.buffer();
        b.putInt(at, context.contextId());
        b.putInt(at + OFF_OFFSET, isOff ? 1 : 0);
        b.putLong(at + BEGAN_OFFSET, context.beganNs());
        b.putLong(at + DONE_OFFSET, context.doneNs());
        ring.commit(at);
        unannounced = true;
    }

    /** Enforcer: the watchdog has released contexts. */
    void released(final long releases, final long firstReleaseNs) {
        final int at = claim(RELEASED, 2 * Long.BYTES);
        if (at > 0) {
            ring.buffer().putLong(at, releases);
            ring.buffer().putLong(at + Long.BYTES, firstReleaseNs);
            ring.commit(at);
        }
        wakeDispatcher();
    }

    /** Enforcer: something failed. The same words again, as a rule every 10 ms, are only counted. */
    void error(final String text) {
        if (text.equals(saidLast) && cycleNs - saidLastNs < SAME_ERROR_NS) {
            final int at = claim(REPEATED_ERROR, Integer.BYTES);
            if (at > 0) {
                ring.buffer().putInt(at, 0);
                ring.commit(at);
            }
        } else {
            saidLast = text;
            saidLastNs = cycleNs;
            write(text);
        }
        wakeDispatcher();
    }

    /** Returns where to write a result; negative if there is no room. */
    private int claim(final int type, final int length) {
        if (lost > 0) {
            sayLost();
        }
        final int at = ring.tryClaim(type, length);
        if (at < 0) {
            lost++;
        }
        return at;
    }

    /** Once there is room for it. Only then is a text made: results must not allocate while the ring stays full. */
    private void sayLost() {
        if (ring.size() <= CAPACITY / 2) {
            final long n = lost;
            lost = 0;
            write(n + " results of the enforcer were dropped: the dispatcher did not take them in time");
        }
    }

    private void write(final String text) {
        final byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        final int length = Math.max(1, Math.min(utf8.length, ERROR_BYTES_MAX));
        final int at = ring.tryClaim(ERROR, length);
        if (at < 0) {
            lost++;
            return;
        }
        ring.buffer().putBytes(at, utf8, 0, Math.min(utf8.length, length));
        ring.commit(at);
    }
}

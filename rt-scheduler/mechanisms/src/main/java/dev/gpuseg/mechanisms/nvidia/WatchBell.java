/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.EventFd;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Wakes the watch's thread with one system call, however many threads ring before it answers.
 *
 * <p>The thread empties the descriptor first and clears the flag then. The other way round a ring between the two
 * steps loses its signal and leaves the flag set: no thread would signal again, and the thread would sleep beside a
 * process that was just attached, until its next look (up to 1 s). Store, then look: see ADR 30.
 */
final class WatchBell implements AutoCloseable {
    private final EventFd signal = new EventFd();
    private final AtomicBoolean rung = new AtomicBoolean();

    int fd() {
        return signal.fd();
    }

    /** Makes the thread look. Any thread, after it has published what is to be seen. */
    void ring() {
        if (!rung.getAndSet(true)) {
            signal.signal();
        }
    }

    /** The thread is going to look. Returns whether it was rung since the last answer. */
    boolean answer() {
        signal.drain();
        return rung.getAndSet(false);   // the look that follows sees what was published before such a ring
    }

    @Override
    public void close() {
        signal.close();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * A descriptor that one thread closes while others may use it. A number that was closed may belong to another file at
 * once, so the last use closes it, and a later one is refused. Thread-safe; never waits.
 */
final class SharedDescriptor implements AutoCloseable {
    private static final int CLOSED = Integer.MIN_VALUE;

    private final int fd;
    /** Uses that have begun and not ended; plus {@link #CLOSED} from the close on. */
    private final AtomicInteger uses = new AtomicInteger();

    SharedDescriptor(final int fd) {
        this.fd = fd;
    }

    /** The number. */
    int fd() {
        return fd;
    }

    /** Begins a use; false: it is closed. After true {@link #leave} must follow. */
    boolean enter() {
        int n = uses.get();
        while (n >= 0 && !uses.compareAndSet(n, n + 1)) {
            n = uses.get();
        }
        return n >= 0;
    }

    /** Ends a use. */
    void leave() {
        if (uses.decrementAndGet() == CLOSED) {
            Descriptor.close(fd);
        }
    }

    /** Refuses new uses; the last of the present ones closes the descriptor. The second time it does nothing. */
    @Override
    public void close() {
        if (uses.getAndUpdate(n -> n < 0 ? n : n + CLOSED) == 0) {
            Descriptor.close(fd);
        }
    }
}

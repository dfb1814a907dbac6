/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/**
 * A counter in the kernel that wakes its waiters. {@link #signal} may be called by any thread, {@link #drain}
 * by one. Neither allocates. A signal after the close does nothing; the thread that drains closes.
 */
public final class EventFd implements AutoCloseable {
    private static final int EFD_CLOEXEC = 0x80000;
    private static final int EFD_NONBLOCK = 0x800;

    private final SharedDescriptor counter;
    private final ByteBuffer one = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder()).putLong(0, 1);
    private final ByteBuffer count = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    private final long oneAddress = BufferUtil.address(one);
    private final long countAddress = BufferUtil.address(count);

    /** Creates a counter of 0, non-blocking, close-on-exec. */
    public EventFd() {
        final int fd = LibC.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0) {
            throw new SystemCallException("eventfd", "0", Native.getLastError());
        }
        counter = new SharedDescriptor(fd);
    }

    /**
     * The descriptor, for {@link Epoll#add} or for sending to a client. Stays owned by this object.
     *
     * @return the number
     */
    public int fd() {
        return counter.fd();
    }

    /** Adds 1 and wakes the waiter. A full counter (2^64 - 2 signals unread) already wakes, so that is no error. */
    public void signal() {
        if (!counter.enter()) {
            return;
        }
        try {
            if (LibC.write(counter.fd(), oneAddress, 8) != 8) {
                final int errno = Native.getLastError();
                if (errno != Errno.EAGAIN) {
                    throw new SystemCallException("write", "eventfd " + counter.fd(), errno);
                }
            }
        } finally {
            counter.leave();
        }
    }

    /** Resets the counter and returns how often it had been signalled, 0 = not at all. */
    public long drain() {
        return LibC.read(counter.fd(), countAddress, 8) == 8 ? count.getLong(0) : 0;
    }

    @Override
    public void close() {
        counter.close();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/**
 * A counter in the kernel that wakes its waiters. {@link #signal} may be called by any thread, {@link #drain}
 * by one. Neither allocates.
 */
public final class EventFd implements AutoCloseable {
    private static final int EFD_CLOEXEC = 0x80000;
    private static final int EFD_NONBLOCK = 0x800;

    private final int fd;
    private final ByteBuffer one = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder()).putLong(0, 1);
    private final ByteBuffer count = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    private final long oneAddress = BufferUtil.address(one);
    private final long countAddress = BufferUtil.address(count);

    /** Creates a counter of 0, non-blocking, close-on-exec. */
    public EventFd() {
        fd = LibC.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0) {
            throw new SystemCallException("eventfd", "0", Native.getLastError());
        }
    }

    /**
     * The descriptor, for {@link Epoll#add} or for sending to a client. Stays owned by this object.
     *
     * @return the number
     */
    public int fd() {
        return fd;
    }

    /** Adds 1 and wakes the waiter. A full counter (2^64 - 2 signals unread) already wakes, so that is no error. */
    public void signal() {
        if (LibC.write(fd, oneAddress, 8) != 8) {
            final int errno = Native.getLastError();
            if (errno != Errno.EAGAIN) {
                throw new SystemCallException("write", "eventfd " + fd, errno);
            }
        }
    }

    /** Resets the counter and returns how often it had been signalled, 0 = not at all. */
    public long drain() {
        return LibC.read(fd, countAddress, 8) == 8 ? count.getLong(0) : 0;
    }

    @Override
    public void close() {
        Descriptor.close(fd);
    }
}

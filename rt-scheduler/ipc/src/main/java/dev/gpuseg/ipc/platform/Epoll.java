/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/** Descriptors to wait for, each with a token of the caller's. One thread waits; nothing is allocated per wait. */
public final class Epoll implements AutoCloseable {
    /** Readable, also at end of stream and when a process behind a pidfd has died. */
    public static final int IN = 1;
    /** Writable. */
    public static final int OUT = 4;
    /** Error condition; always reported. */
    public static final int ERR = 8;
    /** Peer hung up; always reported. */
    public static final int HUP = 0x10;
    /** Peer will send no more. */
    public static final int RDHUP = 0x2000;

    /** Flag of {@link #add}: report an event once, although its cause lasts (EPOLLET). */
    public static final int EDGE = 1 << 31;
    private static final int EPOLL_CLOEXEC = 0x80000;
    private static final int CTL_ADD = 1;
    private static final int CTL_DEL = 2;
    private static final int CTL_MOD = 3;
    // struct epoll_event is packed on x86-64 alone
    private static final int EVENT_BYTES = LibC.ARM64 ? 16 : 12;
    private static final int DATA_OFFSET = LibC.ARM64 ? 8 : 4;

    private final int fd;
    private final int capacity;
    private final ByteBuffer events;
    private final long eventsAddress;
    private final ByteBuffer change = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());

    /**
     * Creates an empty set.
     *
     * @param capacity most events reported by one wait, positive
     */
    public Epoll(final int capacity) {
        this.capacity = capacity;
        events = ByteBuffer.allocateDirect(capacity * EVENT_BYTES).order(ByteOrder.nativeOrder());
        eventsAddress = BufferUtil.address(events);
        fd = LibC.epollCreate1(EPOLL_CLOEXEC);
        if (fd < 0) {
            throw new SystemCallException("epoll_create1", "EPOLL_CLOEXEC", Native.getLastError());
        }
    }

    /**
     * Adds a descriptor, level-triggered.
     *
     * @param target the descriptor
     * @param mask   for example {@link #IN}
     * @param token  returned by {@link #token} when it is ready
     */
    public void add(final int target, final int mask, final long token) {
        control(CTL_ADD, "ADD", target, mask, token);
    }

    /**
     * Changes what a descriptor is waited for.
     *
     * @param target the descriptor
     * @param mask   for example {@link #IN}
     * @param token  returned by {@link #token} when it is ready
     */
    public void modify(final int target, final int mask, final long token) {
        control(CTL_MOD, "MOD", target, mask, token);
    }

    private void control(final int operation, final String name, final int target, final int mask, final long token) {
        change.putInt(0, mask).putLong(DATA_OFFSET, token);
        if (LibC.epollCtl(fd, operation, target, BufferUtil.address(change)) < 0) {
            throw new SystemCallException("epoll_ctl", name + ", " + target, Native.getLastError());
        }
    }

    /**
     * Removes a descriptor; to be called before it is closed.
     *
     * @param target the descriptor
     */
    public void remove(final int target) {
        if (LibC.epollCtl(fd, CTL_DEL, target, 0) < 0) {
            throw new SystemCallException("epoll_ctl", "DEL, " + target, Native.getLastError());
        }
    }

    /**
     * Waits until something is ready.
     *
     * @param timeoutMs milliseconds, 0 = do not wait, -1 = for ever
     * @return how many are ready; 0 after the timeout or a signal
     */
    public int await(final int timeoutMs) {
        final int n = LibC.epollWait(fd, eventsAddress, capacity, timeoutMs);
        if (n < 0) {
            final int errno = Native.getLastError();
            if (errno != Errno.EINTR) {
                throw new SystemCallException("epoll_wait", Integer.toString(fd), errno);
            }
            return 0;
        }
        return n;
    }

    /**
     * The token of a ready descriptor.
     *
     * @param index 0 .. result of {@link #await} - 1
     * @return as given to {@link #add}
     */
    public long token(final int index) {
        return events.getLong(index * EVENT_BYTES + DATA_OFFSET);
    }

    /**
     * What is ready.
     *
     * @param index 0 .. result of {@link #await} - 1
     * @return mask of {@link #IN}, {@link #ERR}, {@link #HUP}, {@link #RDHUP}
     */
    public int ready(final int index) {
        return events.getInt(index * EVENT_BYTES);
    }

    @Override
    public void close() {
        Descriptor.close(fd);
    }
}

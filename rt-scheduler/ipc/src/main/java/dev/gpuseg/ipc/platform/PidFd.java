/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;

/** A handle of a process, valid even when its pid is reused. Readable (for {@link Epoll}) once the process is dead. */
public final class PidFd implements AutoCloseable {
    private final int fd;

    private PidFd(final int fd) {
        this.fd = fd;
    }

    /**
     * Opens a handle.
     *
     * @param pid the process
     * @return the handle
     * @throws SystemCallException with ESRCH if it has already ended
     */
    public static PidFd open(final int pid) {
        final long fd = LibC.syscall(LibC.SYS_PIDFD_OPEN, pid, 0, 0, 0, 0, 0);
        if (fd < 0) {
            throw new SystemCallException("pidfd_open", Integer.toString(pid), Native.getLastError());
        }
        return new PidFd((int) fd);
    }

    /**
     * Opens a handle of exactly the process that connected a socket, even if its pid has been reused meanwhile.
     *
     * @param socket an accepted connection
     * @return the handle, null before Linux 6.5
     * @throws SystemCallException with ESRCH if that process has already ended
     */
    static PidFd ofPeer(final SeqPacketSocket socket) {
        final int fd = socket.peerPidFd();
        return fd >= 0 ? new PidFd(fd) : null;
    }

    /** Whether the process is dead (perhaps not yet waited for by its parent). */
    public boolean isDead() {
        try (Epoll epoll = new Epoll(1)) {
            epoll.add(fd, Epoll.IN, 0);
            return epoll.await(0) > 0;
        }
    }

    /** The descriptor, close-on-exec; stays owned by this object. */
    public int fd() {
        return fd;
    }

    /**
     * Sends a signal to exactly this process.
     *
     * @param signal for example 9
     * @return false if it has already ended
     */
    public boolean signal(final int signal) {
        if (LibC.syscall(LibC.SYS_PIDFD_SEND_SIGNAL, fd, signal, 0, 0, 0, 0) == 0) {
            return true;
        }
        final int errno = Native.getLastError();
        if (errno == Errno.ESRCH) {
            return false;
        }
        throw new SystemCallException("pidfd_send_signal", fd + ", " + signal, errno);
    }

    @Override
    public void close() {
        Descriptor.close(fd);
    }
}

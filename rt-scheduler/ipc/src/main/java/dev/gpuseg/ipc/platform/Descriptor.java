/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.nio.file.Path;

/** Operations on numbered file descriptors. A descriptor is a plain {@code int}; its owner closes it exactly once. */
public final class Descriptor {
    /** A stop and its end interrupt once each. */
    private static final int ALLOCATE_TRIES = 1_000;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_DUPFD_CLOEXEC = 1030;
    private static final int F_SEAL_SEAL = 1;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int O_RDWR = 2;
    private static final int O_CLOEXEC = 0x80000;
    private static final int O_NOFOLLOW = LibC.ARM64 ? 0x8000 : 0x20000;

    private Descriptor() {
    }

    /**
     * Creates an anonymous memory file of fixed size: it can be neither shrunk nor grown afterwards, so a mapping of
     * it can never fault.
     *
     * @param name  shown in /proc, at most 249 bytes
     * @param bytes its size
     * @return the descriptor, close-on-exec
     */
    public static int createSealedMemory(final String name, final long bytes) {
        final int fd = LibC.memfdCreate(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0) {
            throw new SystemCallException("memfd_create", '"' + name + '"', Native.getLastError());
        }
        if (LibC.ftruncate(fd, bytes) < 0) {
            final int errno = Native.getLastError();
            LibC.close(fd);
            throw new SystemCallException("ftruncate", name + ", " + bytes, errno);
        }
        if (LibC.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
            final int errno = Native.getLastError();
            LibC.close(fd);
            throw new SystemCallException("fcntl", name + ", F_ADD_SEALS", errno);
        }
        return fd;
    }

    /**
     * A path under which this process can open the same file again.
     *
     * @param fd an open descriptor
     * @return {@code /proc/self/fd/N}
     */
    public static Path path(final int fd) {
        return Path.of("/proc/self/fd/" + fd);
    }

    /**
     * Reserves space for a file so that writing to a mapping of it cannot fail later (it would arrive as SIGBUS).
     *
     * @param path   an existing file, grown if it is smaller
     * @param length bytes from the beginning
     * @throws SystemCallException with ENOSPC where the file system is full
     */
    public static void allocate(final Path path, final long length) {
        final int fd = LibC.open(path.toString(), O_RDWR | O_CLOEXEC, 0);
        if (fd < 0) {
            throw new SystemCallException("open", path.toString(), Native.getLastError());
        }
        int errno;
        int tries = 0;
        do {   // Linux 6.1 gives up for any signal, also for a stop
            errno = LibC.posixFallocate(fd, 0, length);
        } while (errno == Errno.EINTR && ++tries < ALLOCATE_TRIES);
        LibC.close(fd);
        if (errno != 0) {
            throw new SystemCallException("posix_fallocate", path + ", " + length, errno);
        }
    }

    /**
     * Opens an existing file for reading and writing.
     *
     * @param path the file; a symbolic link is refused
     * @return the descriptor, close-on-exec
     */
    public static int openToWrite(final Path path) {
        final int fd = LibC.open(path.toString(), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
        if (fd < 0) {
            throw new SystemCallException("open", path.toString(), Native.getLastError());
        }
        return fd;
    }

    /**
     * Another descriptor of the same open file.
     *
     * @param fd an open descriptor
     * @return the duplicate, close-on-exec
     * @throws SystemCallException with EMFILE when this process has no descriptors left
     */
    public static int duplicate(final int fd) {
        final int duplicate = LibC.fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (duplicate < 0) {
            throw new SystemCallException("fcntl", fd + ", F_DUPFD_CLOEXEC", Native.getLastError());
        }
        return duplicate;
    }

    /**
     * Closes a descriptor. Errors other than EBADF are ignored: Linux has released the number in any case.
     *
     * @param fd the descriptor
     */
    public static void close(final int fd) {
        if (LibC.close(fd) < 0 && Native.getLastError() == Errno.EBADF) {
            throw new SystemCallException("close", Integer.toString(fd), Errno.EBADF);
        }
    }
}

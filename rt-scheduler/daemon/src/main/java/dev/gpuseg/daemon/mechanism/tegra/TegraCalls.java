/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.mechanism.tegra;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;

/**
 * The system calls of this package. They come from the C library, or from the library that property
 * {@value #LIBRARY_PROPERTY} names: the stand-in exports the same functions. Addresses travel as {@code long}.
 */
final class TegraCalls {
    /** Path of a library to take ioctl, open and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.tegra.library";
    static final int EBADF = 9;
    private static final int O_RDWR = 2;
    private static final int O_CLOEXEC = 0x80000;
    private static final int SYS_PIDFD_OPEN = 434;
    private static final int SYS_PIDFD_GETFD = 438;

    static {
        Native.register(Driver.class, NativeLibrary.getInstance(System.getProperty(LIBRARY_PROPERTY, "c")));
        Native.register(LibC.class, NativeLibrary.getInstance(Platform.C_LIBRARY_NAME));
    }

    /** What the stand-in replaces. */
    private static final class Driver {
        static native int ioctl(int fd, long request, long argument);

        static native int open(String path, int flags, int mode);

        static native long readlink(String path, byte[] buffer, long size);
    }

    private static final class LibC {
        static native long syscall(long number, long a, long b, long c, long d, long e, long f);

        static native int close(int fd);
    }

    private TegraCalls() {
    }

    /** Takes ioctl, open and readlink from another library from now on; for tests, while no mechanism is open. */
    static void use(final String library) {
        Native.register(Driver.class, NativeLibrary.getInstance(library));
    }

    /** 0 or more: what ioctl returned; negative: -errno. */
    static int ioctl(final int fd, final long request, final long argument) {
        final int result = Driver.ioctl(fd, request, argument);
        return result < 0 ? -Native.getLastError() : result;
    }

    /** A descriptor or -errno. */
    static int open(final String path) {
        final int fd = Driver.open(path, O_RDWR | O_CLOEXEC, 0);
        return fd < 0 ? -Native.getLastError() : fd;
    }

    /** Bytes of the target or -errno. */
    static int readlink(final String path, final byte[] buffer) {
        final long n = Driver.readlink(path, buffer, buffer.length);
        return n < 0 ? -Native.getLastError() : (int) n;
    }

    /** A descriptor or -errno. */
    static int pidfdOpen(final int pid) {
        final long fd = LibC.syscall(SYS_PIDFD_OPEN, pid, 0, 0, 0, 0, 0);
        return fd < 0 ? -Native.getLastError() : (int) fd;
    }

    /** A duplicate of another process's descriptor, close-on-exec, or -errno. */
    static int pidfdGetfd(final int pidfd, final int remoteFd) {
        final long fd = LibC.syscall(SYS_PIDFD_GETFD, pidfd, remoteFd, 0, 0, 0, 0);
        return fd < 0 ? -Native.getLastError() : (int) fd;
    }

    static void close(final int fd) {
        if (LibC.close(fd) < 0 && Native.getLastError() == EBADF) {
            throw new IllegalStateException("descriptor " + fd + " was closed twice");
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.mechanism.nvidia;

import com.sun.jna.FunctionMapper;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import java.util.Locale;
import java.util.Map;

/**
 * The system calls of this package. They come from the C library, or from the library that property
 * {@value #LIBRARY_PROPERTY} names: the RM stand-in exports the same functions. Addresses travel as {@code long}.
 */
final class DriverCalls {
    /** Path of a library to take ioctl, open and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.nvidia.library";
    static final int O_RDWR = 2;
    static final int O_CLOEXEC = 0x80000;
    static final int ESRCH = 3;
    static final int EINTR = 4;
    static final int EBADF = 9;
    static final int EAGAIN = 11;
    private static final int SYS_KCMP = "aarch64".equals(System.getProperty("os.arch")) ? 272 : 312;
    private static final int KCMP_FILE = 0;
    private static final int IN_OPEN = 0x20;
    private static final int IN_NONBLOCK = 0x800;
    private static final int SYS_PIDFD_OPEN = 434;
    private static final int SYS_PIDFD_GETFD = 438;

    static {
        Native.register(Driver.class, NativeLibrary.getInstance(System.getProperty(LIBRARY_PROPERTY, "c")));
        final FunctionMapper underscores = (library, method) ->
            method.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
        Native.register(LibC.class, NativeLibrary.getInstance(Platform.C_LIBRARY_NAME,
            Map.of(Library.OPTION_FUNCTION_MAPPER, underscores)));
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

        static native int poll(long fds, long count, int timeoutMs);

        static native int inotifyInit1(int flags);

        static native int inotifyAddWatch(int fd, String path, int mask);

        static native long read(int fd, byte[] buffer, long size);
    }

    private DriverCalls() {
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

    /** 0: both descriptors are the same open file; positive: they are not; negative: -errno. */
    static int compareFiles(final int pid, final int fd, final int otherPid, final int otherFd) {
        final long result = LibC.syscall(SYS_KCMP, pid, otherPid, KCMP_FILE, fd, otherFd, 0);
        return result < 0 ? -Native.getLastError() : (int) result;
    }

    /** How many are ready, 0 after the timeout or a signal. */
    static int poll(final long pollfds, final int count, final int timeoutMs) {
        return Math.max(0, LibC.poll(pollfds, count, timeoutMs));
    }

    /** A descriptor that becomes readable when somebody opens the path, or -errno. */
    static int watchOpens(final String path) {
        final int fd = LibC.inotifyInit1(O_CLOEXEC | IN_NONBLOCK);
        if (fd < 0) {
            return -Native.getLastError();
        }
        if (LibC.inotifyAddWatch(fd, path, IN_OPEN) < 0) {
            final int errno = Native.getLastError();
            close(fd);
            return -errno;
        }
        return fd;
    }

    /** Reads away what waits in a non-blocking descriptor. */
    static void drain(final int fd, final byte[] buffer) {
        while (LibC.read(fd, buffer, buffer.length) > 0) {
            continue;
        }
    }

    static void close(final int fd) {
        if (LibC.close(fd) < 0 && Native.getLastError() == EBADF) {
            throw new IllegalStateException("descriptor " + fd + " was closed twice");
        }
    }
}

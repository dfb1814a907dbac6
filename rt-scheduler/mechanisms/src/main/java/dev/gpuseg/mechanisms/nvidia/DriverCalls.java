/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import com.sun.jna.FunctionMapper;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.SystemCalls;
import java.util.Locale;
import java.util.Map;

/**
 * The system calls of this package. They come from the C library, or from the library that property
 * {@value #LIBRARY_PROPERTY} names: the RM stand-in exports the same functions. Addresses travel as {@code long}.
 */
final class DriverCalls {
    /** Path of a library to take ioctl, open and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.nvidia.library";
    private static final int O_CLOEXEC = 0x80000;
    static final int ESRCH = Errno.ESRCH;
    static final int EINTR = Errno.EINTR;
    static final int EBADF = Errno.EBADF;
    static final int EAGAIN = Errno.EAGAIN;
    private static final int SYS_KCMP = "aarch64".equals(System.getProperty("os.arch")) ? 272 : 312;
    private static final int KCMP_FILE = 0;
    private static final int IN_OPEN = 0x20;
    private static final int IN_NONBLOCK = 0x800;

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
        return SystemCalls.result(Driver.ioctl(fd, request, argument));
    }

    /** A descriptor or -errno. */
    static int open(final String path) {
        return SystemCalls.result(Driver.open(path, SystemCalls.READ_WRITE, 0));
    }

    /** Bytes of the target or -errno. */
    static int readlink(final String path, final byte[] buffer) {
        return SystemCalls.result(Driver.readlink(path, buffer, buffer.length));
    }

    /** 0: both descriptors are the same open file; positive: they are not; negative: -errno. */
    static int compareFiles(final int pid, final int fd, final int otherPid, final int otherFd) {
        return SystemCalls.call(SYS_KCMP, pid, otherPid, KCMP_FILE, fd, otherFd);
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
            SystemCalls.closeOnce(fd);
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
}

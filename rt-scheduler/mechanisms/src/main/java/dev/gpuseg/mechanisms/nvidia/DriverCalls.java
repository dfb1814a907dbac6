/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import com.sun.jna.FunctionMapper;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.gpuseg.mechanisms.DriverLibrary;
import dev.gpuseg.mechanisms.SystemCalls;
import java.util.Locale;
import java.util.Map;

/** The system calls by which this package reaches RM, or the stand-in that the property names. */
final class DriverCalls {
    /** Path of a library to take ioctl, open and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.nvidia.library";
    static final DriverLibrary DRIVER = new DriverLibrary(LIBRARY_PROPERTY, new Functions());
    private static final int O_CLOEXEC = 0x80000;
    private static final int SYS_KCMP = "aarch64".equals(System.getProperty("os.arch")) ? 272 : 312;
    private static final int KCMP_FILE = 0;
    private static final int IN_OPEN = 0x20;
    private static final int IN_NONBLOCK = 0x800;

    static {
        final FunctionMapper underscores = (library, method) ->
            method.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
        Native.register(LibC.class, NativeLibrary.getInstance(Platform.C_LIBRARY_NAME,
            Map.of(Library.OPTION_FUNCTION_MAPPER, underscores)));
    }

    private static final class Functions implements DriverLibrary.Functions {
        @Override
        public native int ioctl(int fd, long request, long argument);

        @Override
        public native int open(String path, int flags, int mode);

        @Override
        public native long readlink(long path, byte[] buffer, long size);
    }

    private static final class LibC {
        static native int poll(long fds, long count, int timeoutMs);

        static native int inotifyInit1(int flags);

        static native int inotifyAddWatch(int fd, String path, int mask);

        static native long read(int fd, byte[] buffer, long size);
    }

    private DriverCalls() {
    }

    /** 0: both descriptors refer to the same open file; positive: they do not; negative: -errno. */
    static int compareFiles(final int pid, final int fd, final int otherPid, final int otherFd) {
        return SystemCalls.call(SYS_KCMP, pid, otherPid, KCMP_FILE, fd, otherFd);
    }

    /** How many are ready, 0 after the timeout or a signal. */
    static int poll(final long pollfds, final int count, final int timeoutMs) {
        return Math.max(0, LibC.poll(pollfds, count, timeoutMs));
    }

    /** A descriptor that becomes readable when a process opens the path, or -errno. */
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

    /** Reads and discards everything from a non-blocking descriptor. */
    static void drain(final int fd, final byte[] buffer) {
        while (LibC.read(fd, buffer, buffer.length) > 0) {
            continue;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.mechanism.amd;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;

/**
 * The system calls of this package. They come from the C library, or from the library that property
 * {@value #LIBRARY_PROPERTY} names: the stand-in exports the same functions. Addresses travel as {@code long}.
 */
final class AmdCalls {
    /** Path of a library to take ioctl, open, close and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.amd.library";
    private static volatile boolean replaced = System.getProperty(LIBRARY_PROPERTY) != null;
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

        static native int close(int fd);

        static native long readlink(String path, byte[] buffer, long size);
    }

    private static final class LibC {
        static native long syscall(long number, long a, long b, long c, long d, long e, long f);

        static native long ptrace(long request, long pid, long address, long data);

        static native int waitpid(int pid, int[] status, int options);
    }

    private AmdCalls() {
    }

    /** Takes ioctl, open, close and readlink from another library from now on; for tests, while none is open. */
    static void use(final String library) {
        Native.register(Driver.class, NativeLibrary.getInstance(library));
        replaced = !Platform.C_LIBRARY_NAME.equals(library);
    }

    /** Whether another library than libc answers. */
    static boolean isReplaced() {
        return replaced;
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

    static void close(final int fd) {
        Driver.close(fd);   // whatever it answers, the number is free
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

    /** 0 or -errno. The calling thread becomes, or must be, the tracer. */
    static int ptrace(final long request, final int pid, final long data) {
        return LibC.ptrace(request, pid, 0, data) < 0 ? -Native.getLastError() : 0;
    }

    /** The pid if there is news of it, 0 if there is none, or -errno. */
    static int waitpid(final int pid, final int[] status, final int options) {
        final int result = LibC.waitpid(pid, status, options);
        return result < 0 ? -Native.getLastError() : result;
    }
}

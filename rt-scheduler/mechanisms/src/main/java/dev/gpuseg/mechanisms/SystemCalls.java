/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.gpuseg.ipc.platform.Errno;

/**
 * What the mechanisms that reach into drivers ask of the kernel itself, with -errno in place of -1. What their
 * stand-ins replace (ioctl, open, readlink) each of them maps for itself; {@link #result(int)} is for these too. Any
 * thread.
 */
public final class SystemCalls {
    /** Flags of open: read and write, closed on exec. */
    public static final int READ_WRITE = 0x80002;
    private static final int SYS_PIDFD_OPEN = 434;
    private static final int SYS_PIDFD_GETFD = 438;

    /** Not of the outer class, whose first use may lie between a failed call and the look at its errno. */
    private static final class LibC {
        static {
            Native.register(LibC.class, NativeLibrary.getInstance(Platform.C_LIBRARY_NAME));
        }

        static native long syscall(long number, long a, long b, long c, long d, long e, long f);

        static native int close(int fd);
    }

    private SystemCalls() {
    }

    /**
     * What a mapped function returned, right after it did, on the same thread.
     *
     * @param returned negative = it failed and errno says why
     * @return what was returned, or -errno
     */
    public static int result(final int returned) {
        return returned < 0 ? -Native.getLastError() : returned;
    }

    /**
     * The same for a function that returns a long.
     *
     * @param returned negative = it failed and errno says why
     * @return what was returned, or -errno
     */
    public static int result(final long returned) {
        return returned < 0 ? -Native.getLastError() : (int) returned;
    }

    /**
     * Any system call of up to five arguments.
     *
     * @param number of the call on this machine
     * @param a      first argument
     * @param b      second
     * @param c      third
     * @param d      fourth
     * @param e      fifth
     * @return what it returned, or -errno
     */
    public static int call(final long number, final long a, final long b, final long c, final long d, final long e) {
        return result(LibC.syscall(number, a, b, c, d, e, 0));
    }

    /**
     * A handle of a process.
     *
     * @param pid the process
     * @return a descriptor or -errno
     */
    public static int pidfdOpen(final int pid) {
        return call(SYS_PIDFD_OPEN, pid, 0, 0, 0, 0);
    }

    /**
     * A duplicate of another process's descriptor, close-on-exec.
     *
     * @param pidfd    handle of that process
     * @param remoteFd its number there
     * @return a descriptor or -errno
     */
    public static int pidfdGetfd(final int pidfd, final int remoteFd) {
        return call(SYS_PIDFD_GETFD, pidfd, remoteFd, 0, 0, 0);
    }

    /**
     * Closes a descriptor of ours.
     *
     * @param fd its number
     * @throws IllegalStateException if it is not open: another owner may have got the number meanwhile
     */
    public static void closeOnce(final int fd) {
        if (LibC.close(fd) < 0 && Native.getLastError() == Errno.EBADF) {
            throw new IllegalStateException("descriptor " + fd + " was closed twice");
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.gpuseg.ipc.platform.Errno;

/**
 * System calls of the mechanisms that no stand-in replaces; errors are returned as -errno. For those that a stand-in
 * replaces see {@link DriverLibrary}. Any thread.
 */
public final class SystemCalls {
    /** Flags of open: read and write, closed on exec. */
    public static final int READ_WRITE = 0x80002;
    private static final int SYS_PIDFD_OPEN = 434;
    private static final int SYS_PIDFD_GETFD = 438;

    /** Not in the outer class: its initialisation could come between a failed call and the reading of its errno. */
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
     * Converts the result of a mapped function. To be called right after it, on the same thread.
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
     * Closes a descriptor of this process.
     *
     * @param fd its number
     * @throws IllegalStateException if it is not open: then the number may have got another owner
     */
    public static void closeOnce(final int fd) {
        if (LibC.close(fd) < 0 && Native.getLastError() == Errno.EBADF) {
            throw new IllegalStateException("descriptor " + fd + " was closed twice");
        }
    }
}

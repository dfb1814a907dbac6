/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.gpuseg.mechanisms.DriverLibrary;
import dev.gpuseg.mechanisms.SystemCalls;

/** The system calls by which this package reaches KFD, or the stand-in that the property names. */
final class AmdCalls {
    /** Path of a library to take ioctl, open, close and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.amd.library";
    private static final Functions FUNCTIONS = new Functions();
    static final DriverLibrary DRIVER = new DriverLibrary(LIBRARY_PROPERTY, FUNCTIONS);

    static {
        Native.register(LibC.class, NativeLibrary.getInstance(Platform.C_LIBRARY_NAME));
    }

    private static final class Functions implements DriverLibrary.Functions {
        @Override
        public native int ioctl(int fd, long request, long argument);

        @Override
        public native int open(String path, int flags, int mode);

        @Override
        public native long readlink(long path, byte[] buffer, long size);

        native int close(int fd);   // releases holds, so the stand-in must see it
    }

    private static final class LibC {
        static native long ptrace(long request, long pid, long address, long data);

        static native int waitpid(int pid, int[] status, int options);
    }

    private AmdCalls() {
    }

    static void close(final int fd) {
        FUNCTIONS.close(fd);   // the number is free, whatever the result
    }

    /** 0 or -errno. The calling thread becomes, or must be, the tracer. */
    static int ptrace(final long request, final int pid, final long data) {
        return Math.min(0, SystemCalls.result(LibC.ptrace(request, pid, 0, data)));
    }

    /** The pid if its state has changed, 0 if not, or -errno. */
    static int waitpid(final int pid, final int[] status, final int options) {
        return SystemCalls.result(LibC.waitpid(pid, status, options));
    }
}

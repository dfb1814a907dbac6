/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.SystemCalls;

/**
 * The system calls of this package. They come from the C library, or from the library that property
 * {@value #LIBRARY_PROPERTY} names: the stand-in exports the same functions. Addresses travel as {@code long}.
 */
final class TegraCalls {
    /** Path of a library to take ioctl, open and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.tegra.library";
    static final int EBADF = Errno.EBADF;

    static {
        Native.register(Driver.class, NativeLibrary.getInstance(System.getProperty(LIBRARY_PROPERTY, "c")));
    }

    /** What the stand-in replaces. */
    private static final class Driver {
        static native int ioctl(int fd, long request, long argument);

        static native int open(String path, int flags, int mode);

        static native long readlink(String path, byte[] buffer, long size);
    }

    private TegraCalls() {
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
}

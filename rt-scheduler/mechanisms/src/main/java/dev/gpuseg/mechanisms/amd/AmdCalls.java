/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.gpuseg.mechanisms.SystemCalls;

/**
 * The system calls of this package. They come from the C library, or from the library that property
 * {@value #LIBRARY_PROPERTY} names: the stand-in exports the same functions. Addresses are passed as {@code long}.
 */
final class AmdCalls {
    /** Path of a library to take ioctl, open, close and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.amd.library";
    private static volatile boolean replaced = System.getProperty(LIBRARY_PROPERTY) != null;

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
        static native long ptrace(long request, long pid, long address, long data);

        static native int waitpid(int pid, int[] status, int options);
    }

    private AmdCalls() {
    }

    /** Binds ioctl, open, close and readlink to another library. For tests, while no mechanism is open. */
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
        return SystemCalls.result(Driver.ioctl(fd, request, argument));
    }

    /** A descriptor or -errno. */
    static int open(final String path) {
        return SystemCalls.result(Driver.open(path, SystemCalls.READ_WRITE, 0));
    }

    static void close(final int fd) {
        Driver.close(fd);   // the number is free, whatever the result
    }

    /** Bytes of the target or -errno. */
    static int readlink(final String path, final byte[] buffer) {
        return SystemCalls.result(Driver.readlink(path, buffer, buffer.length));
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

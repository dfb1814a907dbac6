/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import com.sun.jna.Function;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;

/**
 * ioctl, open and readlink as a driver's package calls them: those of the C library, or of a stand-in that exports the
 * same functions. Addresses are passed as {@code long}; errors are returned as -errno. Any thread.
 */
public final class DriverLibrary {
    /** The functions. JNA binds native methods by class, so each package declares a class of its own with these. */
    public interface Functions {
        /**
         * ioctl(2).
         *
         * @param fd       descriptor
         * @param request  its number
         * @param argument address
         * @return negative: it failed, and errno says why
         */
        int ioctl(int fd, long request, long argument);

        /**
         * open(2).
         *
         * @param path  the file
         * @param flags of open
         * @param mode  unused
         * @return a descriptor; negative: it failed, and errno says why
         */
        int open(String path, int flags, int mode);

        /**
         * readlink(2).
         *
         * @param path   address of the link
         * @param buffer receives the target
         * @param size   of the buffer
         * @return bytes; negative: it failed, and errno says why
         */
        long readlink(long path, byte[] buffer, long size);
    }

    /** What a stand-in says of a link in /proc: see rt-scheduler/native/common/device_file.h. */
    private static final String OWNS = "gpuseg_standin_owns";

    private final Functions functions;
    private volatile boolean replaced;
    private volatile Function owns;

    /**
     * Binds the functions.
     *
     * @param property  system property that names a stand-in; the C library is used if it is not set
     * @param functions an object whose class declares them as native methods
     */
    public DriverLibrary(final String property, final Functions functions) {
        this.functions = functions;
        use(System.getProperty(property, Platform.C_LIBRARY_NAME));
    }

    /**
     * Binds the functions to another library. For tests, while no mechanism is open.
     *
     * @param library path or name
     */
    public void use(final String library) {
        Native.register(functions.getClass(), NativeLibrary.getInstance(library));
        replaced = !Platform.C_LIBRARY_NAME.equals(library);
        owns = replaced ? NativeLibrary.getInstance(library).getFunction(OWNS) : null;
    }

    /** Whether a stand-in answers in place of the C library. */
    public boolean isReplaced() {
        return replaced;
    }

    /**
     * Whether a link in /proc leads to a file that a stand-in made. Never true where the C library is used: only who
     * starts this process can name a stand-in.
     *
     * @param link address of the path
     * @return true if its ioctl serves that file
     */
    boolean owns(final long link) {
        final Function function = owns;
        return function != null && function.invokeInt(new Object[] {link}) == 1;
    }

    /**
     * ioctl(2).
     *
     * @param fd       descriptor
     * @param request  its number
     * @param argument address
     * @return 0 or more: what ioctl returned; negative: -errno
     */
    public int ioctl(final int fd, final long request, final long argument) {
        return SystemCalls.result(functions.ioctl(fd, request, argument));
    }

    /**
     * Opens a file for reading and writing, closed on exec.
     *
     * @param path the file
     * @return a descriptor or -errno
     */
    public int open(final String path) {
        return SystemCalls.result(functions.open(path, SystemCalls.READ_WRITE, 0));
    }

    /**
     * readlink(2).
     *
     * @param path   address of the link, which ends with 0
     * @param buffer receives the target
     * @return bytes of the target, or -errno
     */
    public int readlink(final long path, final byte[] buffer) {
        return SystemCalls.result(functions.readlink(path, buffer, buffer.length));
    }
}

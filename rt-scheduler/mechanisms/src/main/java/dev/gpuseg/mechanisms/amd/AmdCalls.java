/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.mechanisms.DriverLibrary;

/** The system calls by which this package reaches KFD, or the stand-in that the property names. */
final class AmdCalls {
    /** Path of a library to take ioctl, open, close and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.amd.library";
    private static final Functions FUNCTIONS = new Functions();
    static final DriverLibrary DRIVER = new DriverLibrary(LIBRARY_PROPERTY, FUNCTIONS);

    private static final class Functions implements DriverLibrary.Functions {
        @Override
        public native int ioctl(int fd, long request, long argument);

        @Override
        public native int open(String path, int flags, int mode);

        @Override
        public native long readlink(long path, byte[] buffer, long size);

        native int close(int fd);   // releases holds, so the stand-in must see it
    }

    private AmdCalls() {
    }

    static void close(final int fd) {
        FUNCTIONS.close(fd);   // the number is free, whatever the result
    }
}

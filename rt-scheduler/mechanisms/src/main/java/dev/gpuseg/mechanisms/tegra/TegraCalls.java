/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.mechanisms.DriverLibrary;

/** The system calls by which this package reaches nvgpu, or the stand-in that the property names. */
final class TegraCalls {
    /** Path of a library to take ioctl, open and readlink from instead of libc. */
    static final String LIBRARY_PROPERTY = "gpuseg.tegra.library";
    static final DriverLibrary DRIVER = new DriverLibrary(LIBRARY_PROPERTY, new Functions());

    private static final class Functions implements DriverLibrary.Functions {
        @Override
        public native int ioctl(int fd, long request, long argument);

        @Override
        public native int open(String path, int flags, int mode);

        @Override
        public native long readlink(long path, byte[] buffer, long size);
    }

    private TegraCalls() {
    }
}

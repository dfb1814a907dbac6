/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.Descriptor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.agrona.BufferUtil;

/**
 * What kind of file a path leads to, without opening it. The server of a file (FUSE) is not asked, because it may never
 * answer ({@code AT_STATX_DONT_SYNC}); stat, access and close would ask it. Any thread.
 *
 * @param status 0, or -errno
 * @param mode   type bits of {@code st_mode}
 * @param number of a device, see {@link #number(int, int)}
 * @param system number of the file system
 */
record FileIdentity(int status, int mode, long number, long system) {
    /** No device, and no file system. */
    static final long NONE = -1;
    private static final boolean ARM64 = "aarch64".equals(System.getProperty("os.arch"));
    private static final int SYS_STATX = ARM64 ? 291 : 332;
    private static final int SYS_MEMFD_CREATE = ARM64 ? 279 : 319;
    private static final int MFD_CLOEXEC = 1;
    private static final int AT_FDCWD = -100;
    private static final int AT_STATX_DONT_SYNC = 0x4000;
    private static final int STATX_TYPE = 1;
    private static final int STATX_BYTES = 256;
    private static final int MODE_OFFSET = 28;
    private static final int NUMBER_OFFSET = 128;
    private static final int SYSTEM_OFFSET = 136;
    private static final int TYPE_MASK = 0xf000;
    private static final int CHARACTER_DEVICE = 0x2000;
    private static final int REGULAR = 0x8000;
    private static final int PATH_MAX = 4096;
    private static final ByteBuffer PATH = ByteBuffer.allocateDirect(PATH_MAX);
    private static final ByteBuffer RESULT = ByteBuffer.allocateDirect(STATX_BYTES).order(ByteOrder.nativeOrder());
    private static final long PATH_ADDRESS = BufferUtil.address(PATH);
    private static final long RESULT_ADDRESS = BufferUtil.address(RESULT);
    private static long memory = NONE;

    /** Major and minor number in one word. */
    static long number(final int major, final int minor) {
        return (long) major << Integer.SIZE | minor & 0xffffffffL;
    }

    /** Looks at a file; links are followed. */
    static synchronized FileIdentity of(final String path) {
        final byte[] bytes = path.getBytes(StandardCharsets.UTF_8);
        if (bytes.length >= PATH_MAX) {
            throw new IllegalArgumentException("a path has " + bytes.length + " bytes, at most " + (PATH_MAX - 1));
        }
        PATH.put(0, bytes).put(bytes.length, (byte) 0);
        return of(PATH_ADDRESS);
    }

    /** The same of a path that ends with 0 at an address. */
    static synchronized FileIdentity of(final long path) {
        final int status = SystemCalls.call(SYS_STATX, AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE,
            RESULT_ADDRESS);
        return new FileIdentity(status, RESULT.getShort(MODE_OFFSET) & TYPE_MASK, resultAt(NUMBER_OFFSET),
            resultAt(SYSTEM_OFFSET));
    }

    private static long resultAt(final int offset) {
        return number(RESULT.getInt(offset), RESULT.getInt(offset + Integer.BYTES));
    }

    /** Whether it is the character device of this number. */
    boolean isDevice(final long expected) {
        return status == 0 && mode == CHARACTER_DEVICE && expected != NONE && number == expected;
    }

    /** Whether it is a character device at all. */
    boolean isCharacterDevice() {
        return status == 0 && mode == CHARACTER_DEVICE;
    }

    /** Whether it is a memory file: these are the only files of their file system, any other may have such a name. */
    boolean isMemory() {
        return status == 0 && mode == REGULAR && memory() != NONE && system == memory();
    }

    private static synchronized long memory() {
        if (memory == NONE) {
            PATH.put(0, (byte) 'x').put(1, (byte) 0);
            final int fd = SystemCalls.call(SYS_MEMFD_CREATE, PATH_ADDRESS, MFD_CLOEXEC, 0, 0, 0);
            if (fd >= 0) {
                memory = of(Descriptor.path(fd).toString()).system();
                SystemCalls.closeOnce(fd);
            }
        }
        return memory;
    }
}

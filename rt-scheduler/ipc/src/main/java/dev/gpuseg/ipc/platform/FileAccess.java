/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import org.agrona.BufferUtil;

/** Ownership and mode of files, and free space. */
public final class FileAccess {
    private static final int STATFS_BYTES = 120;
    private static final int STATX_BYTES = 256;
    private static final int AT_FDCWD = -100;
    private static final int AT_SYMLINK_NOFOLLOW = 0x100;
    private static final int STATX_BLOCKS = 0x400;
    private static final int STX_BLOCKS_OFFSET = 48;
    private static final int BLOCK_BYTES = 512;
    private static final int FLOCK_BYTES = 32;
    private static final int O_RDWR = 2;
    private static final int O_NOFOLLOW = LibC.ARM64 ? 0x8000 : 0x20000;
    private static final int O_CLOEXEC = 0x80000;
    private static final int F_GETLK = 5;
    private static final short F_RDLCK = 0;
    private static final short F_WRLCK = 1;

    private FileAccess() {
    }

    /**
     * Gives a file to a user and a group (symbolic links are not followed).
     *
     * @param path the file
     * @param uid  user, -1 = unchanged
     * @param gid  group, -1 = unchanged
     */
    public static void chown(final Path path, final int uid, final int gid) {
        if (LibC.lchown(path.toString(), uid, gid) < 0) {
            throw new SystemCallException("lchown", path + ", " + uid + ", " + gid, Native.getLastError());
        }
    }

    /**
     * Sets the permission bits, independent of the umask.
     *
     * @param path the file
     * @param mode for example 0700 (octal)
     */
    public static void chmod(final Path path, final int mode) {
        if (LibC.chmod(path.toString(), mode) < 0) {
            throw new SystemCallException("chmod", path + ", 0" + Integer.toOctalString(mode), Native.getLastError());
        }
    }

    /**
     * Space that an unprivileged process may still use.
     *
     * @param path any file of the file system
     * @return bytes
     */
    public static long freeBytes(final Path path) {
        final ByteBuffer buffer = ByteBuffer.allocateDirect(STATFS_BYTES).order(ByteOrder.nativeOrder());
        if (LibC.statfs(path.toString(), BufferUtil.address(buffer)) < 0) {
            throw new SystemCallException("statfs", path.toString(), Native.getLastError());
        }
        // struct statfs: f_type, f_bsize, f_blocks, f_bfree, f_bavail, ... (longs)
        return buffer.getLong(8) * buffer.getLong(32);
    }

    /**
     * Space that a file takes of its file system: less than its length where it has holes.
     *
     * @param path a file; a link is not followed
     * @return bytes
     */
    public static long takenBytes(final Path path) {
        final ByteBuffer buffer = ByteBuffer.allocateDirect(STATX_BYTES).order(ByteOrder.nativeOrder());
        if (LibC.statx(AT_FDCWD, path.toString(), AT_SYMLINK_NOFOLLOW, STATX_BLOCKS, BufferUtil.address(buffer)) < 0) {
            throw new SystemCallException("statx", path.toString(), Native.getLastError());
        }
        return buffer.getLong(STX_BLOCKS_OFFSET) * BLOCK_BYTES;
    }

    /**
     * Sets the permission bits that files and directories which this process and its children make do not have.
     *
     * @param mask as umask(2)
     * @return the bits that it replaces
     */
    public static int umask(final int mask) {
        return LibC.umask(mask);
    }

    /**
     * Whether another process has locked a file for writing (fcntl). Who may only read a file can lock it for reading
     * at most, so that says nothing.
     *
     * @param path a file; a link is not followed
     * @return false also if there is none
     */
    public static boolean isLockedForWriting(final Path path) {
        final int fd = LibC.open(path.toString(), O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0) {
            final int errno = Native.getLastError();
            if (errno == Errno.ENOENT || errno == Errno.ELOOP) {
                return false;
            }
            throw new SystemCallException("open", path.toString(), errno);
        }
        try {
            final ByteBuffer lock = ByteBuffer.allocateDirect(FLOCK_BYTES).order(ByteOrder.nativeOrder());
            lock.putShort(0, F_RDLCK);   // which only a lock for writing is in the way of
            if (LibC.fcntl(fd, F_GETLK, BufferUtil.address(lock)) < 0) {
                throw new SystemCallException("fcntl", path + ", F_GETLK", Native.getLastError());
            }
            return lock.getShort(0) == F_WRLCK;
        } finally {
            Descriptor.close(fd);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.BufferUtil;

/** The stock driver's device, /dev/kfd. */
final class KfdFile {
    static final String PATH = "/dev/kfd";
    private static final long GET_VERSION = 0x80084b01L;
    private static final int MAJOR = 1;
    /** Result of {@link #duplicate}: the process has several descriptors of the device; one may be inherited. */
    static final int SEVERAL = -76;

    private KfdFile() {
    }

    /** Minor number of KFD's ABI 1, or -errno; 0 for another ABI. */
    static int version(final int fd) {
        final ByteBuffer argument = ByteBuffer.allocateDirect(2 * Integer.BYTES).order(ByteOrder.nativeOrder());
        final int rc = AmdCalls.ioctl(fd, GET_VERSION, BufferUtil.address(argument));
        return rc < 0 ? rc : argument.getInt(0) == MAJOR ? argument.getInt(Integer.BYTES) : 0;
    }

    /** A duplicate of a process's only descriptor of it, or -errno, or {@link #SEVERAL}. */
    static int duplicate(final AmdProcess p) {
        final int pidfd = SystemCalls.pidfdOpen(p.pid());
        if (pidfd < 0) {
            return pidfd;
        }
        try {
            // after pidfd_open the pid names one process: is it the one that was meant?
            return p.isAlive() ? duplicate(p.pid(), pidfd) : -Errno.ESRCH;
        } finally {
            AmdCalls.close(pidfd);
        }
    }

    private static int duplicate(final int pid, final int pidfd) {
        final byte[] target = new byte[64];
        int remote = -1;
        try (DirectoryStream<Path> list = Files.newDirectoryStream(Path.of("/proc/" + pid + "/fd"))) {
            for (final Path p : list) {
                final int n = AmdCalls.readlink(p.toString(), target);
                if (n > 0 && PATH.equals(new String(target, 0, n, StandardCharsets.ISO_8859_1))) {
                    if (remote >= 0) {
                        return SEVERAL;
                    }
                    remote = Integer.parseInt(p.getFileName().toString());
                }
            }
        } catch (final IOException | DirectoryIteratorException e) {
            return -Errno.ENOENT;   // it ended, or may not be examined: the caller says what is needed
        }
        return remote < 0 ? -Errno.ENOENT : SystemCalls.pidfdGetfd(pidfd, remote);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.DeviceFile;
import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.agrona.BufferUtil;

/** The stock driver's device, /dev/kfd. */
final class KfdFile {
    static final String PATH = Layouts.AMD_KFD_DEVICE;
    private static final DeviceFile DEVICE = DeviceFile.ofDriver(AmdCalls.DRIVER, 0, "kfd");
    private static final int MAJOR = 1;
    /** Result of {@link #duplicate}: the process has several descriptors of the device; one may be inherited. */
    static final int SEVERAL = -76;

    private KfdFile() {
    }

    /** Minor number of KFD's ABI 1, or -errno; 0 for another ABI. */
    static int version(final int fd) {
        final ByteBuffer argument = ByteBuffer.allocateDirect(Layouts.AmdVersion.SIZE).order(ByteOrder.nativeOrder());
        final int rc = AmdCalls.DRIVER.ioctl(fd, Layouts.AMD_GET_VERSION, BufferUtil.address(argument));
        return rc < 0 ? rc : argument.getInt(Layouts.AmdVersion.MAJOR_OFFSET) == MAJOR
            ? argument.getInt(Layouts.AmdVersion.MINOR_OFFSET) : 0;
    }

    /** A duplicate of a process's only descriptor of it, or -errno, or {@link #SEVERAL}. */
    static int duplicate(final AmdProcess p) {
        final int pidfd = RemoteDescriptors.openProcess(p.pid(), p.startTicks());
        if (pidfd < 0) {
            return pidfd;
        }
        final List<Integer> found = new ArrayList<>();
        try {
            RemoteDescriptors.visit(p.pid(), AmdCalls.DRIVER, link -> {
                if (link.is(PATH) && DEVICE.leadsTo(p.pid(), link.fd(), PATH)) {
                    found.add(link.fd());
                }
                return found.size() < 2;
            });
            return found.isEmpty() ? -Errno.ENOENT
                : found.size() > 1 ? SEVERAL : DEVICE.duplicate(p.pid(), pidfd, found.get(0), PATH);
        } catch (final IOException e) {
            return -Errno.ENOENT;   // it ended, or may not be examined: the caller says what is needed
        } finally {
            SystemCalls.closeOnce(pidfd);
        }
    }
}

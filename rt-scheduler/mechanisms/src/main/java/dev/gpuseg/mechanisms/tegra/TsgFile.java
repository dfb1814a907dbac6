/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.SystemCalls;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/**
 * A duplicate of a TSG's descriptor, and the only commands that are ever issued on one. The caller must know from /proc
 * that the descriptor is a TSG, because 'T' is also the type of terminal ioctls. Used by one thread at a time.
 */
final class TsgFile {
    private final int fd;
    private final int remoteFd;
    private final ByteBuffer argument =
        ByteBuffer.allocateDirect(Layouts.TegraTimeslice.SIZE).order(ByteOrder.nativeOrder());
    private int originalUs;
    /** Or perhaps so. */
    private boolean disabled;
    /** For certain: both commands were done, and no other program has enabled it since. */
    private boolean certain;

    TsgFile(final int fd, final int remoteFd) {
        this.fd = fd;
        this.remoteFd = remoteFd;
    }

    int remoteFd() {
        return remoteFd;
    }

    /** Removes it from the runlist and preempts what runs. 0 or -errno; after a failure it is enabled again. */
    int disable() {
        if (certain) {
            return 0;
        }
        disabled = true;
        int rc = TegraCalls.DRIVER.ioctl(fd, Layouts.TEGRA_DISABLE, 0);
        if (rc >= 0) {
            rc = TegraCalls.DRIVER.ioctl(fd, Layouts.TEGRA_PREEMPT, 0);
        }
        certain = rc >= 0;
        if (rc < 0) {
            enable();
        }
        return Math.min(rc, 0);
    }

    /** Another program may have enabled it. */
    void released() {
        certain = false;
    }

    /** 0 or -errno. Always issued, because another process may have disabled it. */
    int enable() {
        certain = false;
        final int rc = TegraCalls.DRIVER.ioctl(fd, Layouts.TEGRA_ENABLE, 0);
        disabled &= rc < 0;
        return Math.min(rc, 0);
    }

    boolean disabled() {
        return disabled;
    }

    /** Microseconds or -errno. */
    int timesliceUs() {
        argument.putInt(Layouts.TegraTimeslice.TIMESLICE_US_OFFSET, 0)
            .putInt(Layouts.TegraTimeslice.RESERVED_OFFSET, 0);
        final int rc = TegraCalls.DRIVER.ioctl(fd, Layouts.TEGRA_GET_TIMESLICE, BufferUtil.address(argument));
        return rc < 0 ? rc : argument.getInt(Layouts.TegraTimeslice.TIMESLICE_US_OFFSET);
    }

    /** 0 = restores the value before the first change. Returns 0 or -errno. */
    int setTimesliceUs(final int us) {
        if (us == 0 && originalUs == 0) {
            return 0;
        }
        if (originalUs == 0) {
            final int now = timesliceUs();
            if (now < 0) {
                return now;
            }
            originalUs = now;
        }
        argument.putInt(Layouts.TegraTimeslice.TIMESLICE_US_OFFSET, us == 0 ? originalUs : us)
            .putInt(Layouts.TegraTimeslice.RESERVED_OFFSET, 0);
        final int rc = TegraCalls.DRIVER.ioctl(fd, Layouts.TEGRA_SET_TIMESLICE, BufferUtil.address(argument));
        if (rc >= 0 && us == 0) {
            originalUs = 0;
        }
        return Math.min(rc, 0);
    }

    void close() {
        SystemCalls.closeOnce(fd);
    }
}

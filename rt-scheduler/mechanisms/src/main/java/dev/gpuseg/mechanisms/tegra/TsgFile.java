/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.mechanisms.SystemCalls;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/**
 * A duplicate of a TSG's descriptor, and the only commands that are ever issued on one. The caller must know from /proc
 * that the descriptor is a TSG, because 'T' is also the type of terminal ioctls. Used by one thread at a time.
 */
final class TsgFile {
    private static final long ENABLE = 0x5403;
    private static final long DISABLE = 0x5404;
    private static final long PREEMPT = 0x5405;
    private static final long SET_TIMESLICE = 0x40085409L;
    private static final long GET_TIMESLICE = 0x8008540aL;

    private final int fd;
    private final int remoteFd;
    private final ByteBuffer argument = ByteBuffer.allocateDirect(2 * Integer.BYTES).order(ByteOrder.nativeOrder());
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
        int rc = TegraCalls.DRIVER.ioctl(fd, DISABLE, 0);
        if (rc >= 0) {
            rc = TegraCalls.DRIVER.ioctl(fd, PREEMPT, 0);
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
        final int rc = TegraCalls.DRIVER.ioctl(fd, ENABLE, 0);
        disabled &= rc < 0;
        return Math.min(rc, 0);
    }

    boolean disabled() {
        return disabled;
    }

    /** Microseconds or -errno. */
    int timesliceUs() {
        argument.putInt(0, 0).putInt(Integer.BYTES, 0);
        final int rc = TegraCalls.DRIVER.ioctl(fd, GET_TIMESLICE, BufferUtil.address(argument));
        return rc < 0 ? rc : argument.getInt(0);
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
        argument.putInt(0, us == 0 ? originalUs : us).putInt(Integer.BYTES, 0);
        final int rc = TegraCalls.DRIVER.ioctl(fd, SET_TIMESLICE, BufferUtil.address(argument));
        if (rc >= 0 && us == 0) {
            originalUs = 0;
        }
        return Math.min(rc, 0);
    }

    void close() {
        SystemCalls.closeOnce(fd);
    }
}

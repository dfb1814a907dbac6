/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.Layouts;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;
import org.agrona.BufferUtil;

/**
 * The checkpoint's pause: PROCESS_INFO evicts all queues of a process, UNPAUSE restores them. Both are called by the
 * process's tracer through a duplicate of the process's own /dev/kfd, and strictly alternate: in Linux 6.1 a second
 * PROCESS_INFO evicts once more, and one UNPAUSE then leaves the queues evicted permanently. A PROCESS_INFO that fails
 * has restored them.
 *
 * <p>A process without queues is never paused: in 6.1, and in mode NO_HWS of 6.12, UNPAUSE of a process that has no
 * address space on some GPU yet dereferences a null pointer. For the same reason, and because all GPUs of the process
 * are paused, this class works on machines with one GPU only.
 */
final class CheckpointControl extends TracingControl {
    private static final int BYTES = Layouts.AmdCriu.SIZE;

    private final ByteBuffer argument = ByteBuffer.allocateDirect(BYTES).order(ByteOrder.nativeOrder());
    private final Map<AmdProcess, Integer> fds = new HashMap<>();       // tracer's thread
    private final Map<AmdProcess, Boolean> paused = new HashMap<>();    // tracer's thread

    @Override
    public ControlInterface controlInterface() {
        return ControlInterface.CRIU;
    }

    @Override
    int suspendQueues(final AmdProcess p) {
        if (paused.getOrDefault(p, false)) {
            return 0;
        }
        final int fd = descriptor(p);
        if (fd < 0) {
            return fd;
        }
        final int rc = operate(fd, Layouts.AMD_CRIU_PROCESS_INFO);
        if (rc == -Errno.EACCES) {
            p.result(rc, "CAP_CHECKPOINT_RESTORE is missing");
        }
        if (rc == 0) {
            paused.put(p, true);
        }
        return rc;
    }

    @Override
    int resumeQueues(final AmdProcess p) {
        if (!paused.getOrDefault(p, false)) {
            return 0;
        }
        final int rc = operate(fds.get(p), Layouts.AMD_CRIU_UNPAUSE);
        if (rc == 0 || rc == -Errno.EINVAL) {   // the watchdog has unpaused it already
            paused.remove(p);
            return 0;
        }
        return rc;
    }

    private int operate(final int fd, final int op) {
        for (int at = 0; at < BYTES; at += Long.BYTES) {
            argument.putLong(at, 0);
        }
        argument.putInt(Layouts.AmdCriu.OP_OFFSET, op);
        return Math.min(0, AmdCalls.DRIVER.ioctl(fd, Layouts.AMD_CRIU_OP, BufferUtil.address(argument)));
    }

    private int descriptor(final AmdProcess p) {
        final Integer known = fds.get(p);
        if (known != null) {
            return known;
        }
        final int seized = tracer().seize(p.pid());
        if (seized < 0) {
            p.result(seized, "it cannot be traced; run the daemon with CAP_SYS_PTRACE, and stop its debugger");
            return p.isAlive() ? seized : -Errno.ESRCH;
        }
        final int fd = KfdFile.duplicate(p);
        if (fd == KfdFile.SEVERAL) {
            // an inherited one would pause the parent, perhaps for a second time
            p.result(fd, "it has several descriptors of /dev/kfd, and one may be inherited; close that after fork");
        } else if (fd < 0) {
            p.result(fd, "its /dev/kfd cannot be duplicated; run the daemon with CAP_SYS_PTRACE");
        } else {
            fds.put(p, fd);
        }
        return fd;
    }

    @Override
    void discard(final AmdProcess p) {
        final Integer fd = fds.remove(p);
        if (fd != null) {
            AmdCalls.close(fd);
        }
        paused.remove(p);
    }

    @Override
    void discardAll() {
        fds.values().forEach(AmdCalls::close);
        fds.clear();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.MechanismException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.agrona.BufferUtil;

/**
 * The debugger's suspend: SUSPEND_QUEUES and RESUME_QUEUES of DBG_TRAP, by queue. Each process needs ENABLE once, which
 * makes this process its only debugger, and must have called RUNTIME_ENABLE, as ROCm's runtime does at start. The
 * driver skips a queue that it reports as new until a snapshot has acknowledged it. When this process ends, the kernel
 * resumes all queues.
 */
final class DebuggerControl extends TracingControl {
    private static final long DBG_TRAP = 0xc0204b26L;
    private static final int BYTES = 32;
    private static final int ENABLE = 0;
    private static final int DISABLE = 1;
    private static final int SUSPEND = 6;
    private static final int RESUME = 7;
    private static final int SNAPSHOT = 13;
    private static final long NEW_QUEUE = 1L << 30;
    private static final int INVALID = 1 << 31;
    private static final int ERROR = 1 << 30;
    private static final int ENTRY_BYTES = 64;
    private static final int QUEUES_MAX = 512;

    private final int kfd;
    private final int events;
    private final ByteBuffer argument = ByteBuffer.allocateDirect(BYTES).order(ByteOrder.nativeOrder());
    private final ByteBuffer ids = ByteBuffer.allocateDirect(QUEUES_MAX * Integer.BYTES)
        .order(ByteOrder.nativeOrder());
    private final ByteBuffer snapshot = ByteBuffer.allocateDirect(QUEUES_MAX * ENTRY_BYTES)
        .order(ByteOrder.nativeOrder());
    private final Set<AmdProcess> enabled = new HashSet<>();                   // tracer's thread
    private final Map<AmdProcess, Set<Integer>> suspended = new HashMap<>();   // tracer's thread

    /**
     * Opens the driver's device.
     *
     * @throws MechanismException if it cannot be opened
     */
    static DebuggerControl open() {
        final int kfd = AmdCalls.DRIVER.open(KfdFile.PATH);
        if (kfd < 0) {
            throw new MechanismException(KfdFile.PATH + " cannot be opened any more (errno " + -kfd
                + "); run gpuseg doctor");
        }
        final int events = AmdCalls.DRIVER.open("/dev/null");
        if (events < 0) {
            AmdCalls.close(kfd);
            throw new MechanismException("/dev/null cannot be opened (errno " + -events + "); mount /dev");
        }
        return new DebuggerControl(kfd, events);
    }

    /** Owns both descriptors from now on: that of /dev/kfd, and one that may be written. */
    private DebuggerControl(final int kfd, final int events) {
        this.kfd = kfd;
        this.events = events;
    }

    @Override
    public ControlInterface controlInterface() {
        return ControlInterface.DEBUG;
    }

    @Override
    int suspendQueues(final AmdProcess p) {
        final int ready = enable(p);
        if (ready < 0) {
            return ready;
        }
        final Set<Integer> done = suspended.computeIfAbsent(p, key -> new TreeSet<>());
        final Set<Integer> open = new TreeSet<>();
        p.queues().stream().map(AmdSysfs.Queue::id).filter(id -> !done.contains(id)).limit(QUEUES_MAX)
            .forEach(open::add);
        int rc = open.isEmpty() ? 0 : suspend(p, open, done);
        if (rc == 0 && !open.isEmpty()) {   // new or destroyed ones: acknowledge and try once more
            start(p, SNAPSHOT).putLong(8, NEW_QUEUE).putLong(16, BufferUtil.address(snapshot));
            argument.putInt(24, QUEUES_MAX).putInt(28, ENTRY_BYTES);
            rc = issue();
            rc = rc < 0 ? rc : suspend(p, open, done);
        }
        if (rc == -Errno.EPERM) {
            p.result(rc, "its runtime has not called RUNTIME_ENABLE, or another process debugs it");
        }
        return rc;
    }

    private int enable(final AmdProcess p) {
        if (enabled.contains(p)) {
            return 0;
        }
        int rc = tracer().seize(p.pid());
        if (rc < 0) {
            p.result(rc, "it cannot be traced; run the daemon with CAP_SYS_PTRACE, and stop its debugger");
            return p.isAlive() ? rc : -Errno.ESRCH;
        }
        if (!p.isAlive()) {
            return -Errno.ESRCH;
        }
        start(p, ENABLE).putInt(28, events);
        rc = issue();
        if (rc < 0) {
            p.result(rc, rc == -Errno.EALREADY ? "a debugger is attached to its GPU work"
                : "DBG_TRAP ENABLE was refused");
            return rc;
        }
        enabled.add(p);
        return 0;
    }

    /** Moves the queues that were suspended from {@code open} to {@code done}. */
    private int suspend(final AmdProcess p, final Set<Integer> open, final Set<Integer> done) {
        fill(open);
        start(p, SUSPEND).putLong(16, BufferUtil.address(ids)).putInt(24, open.size());
        final int rc = issue();
        if (rc < 0) {
            return rc;
        }
        boolean error = false;
        for (int i = 0, n = open.size(); i < n; i++) {
            final int answer = ids.getInt(i * Integer.BYTES);
            error |= (answer & ERROR) != 0;
            if ((answer & (INVALID | ERROR)) == 0) {
                done.add(answer);
            }
        }
        open.removeAll(done);
        return error ? -Errno.EIO : 0;
    }

    @Override
    int resumeQueues(final AmdProcess p) {
        final Set<Integer> done = suspended.get(p);
        if (done == null || done.isEmpty()) {
            return 0;
        }
        fill(done);
        start(p, RESUME).putLong(8, BufferUtil.address(ids)).putInt(16, done.size());
        final int rc = issue();
        if (rc < 0) {
            return rc;
        }
        boolean error = false;
        for (int i = 0; i < done.size(); i++) {
            error |= (ids.getInt(i * Integer.BYTES) & ERROR) != 0;
        }
        if (!error) {
            done.clear();   // an invalid one was destroyed
        }
        return error ? -Errno.EIO : 0;
    }

    private void fill(final Set<Integer> of) {
        int i = 0;
        for (final int id : of) {
            ids.putInt(i, id);
            i += Integer.BYTES;
        }
    }

    private ByteBuffer start(final AmdProcess p, final int op) {
        for (int at = 0; at < BYTES; at += Long.BYTES) {
            argument.putLong(at, 0);
        }
        return argument.putInt(0, p.pid()).putInt(Integer.BYTES, op);
    }

    private int issue() {
        return AmdCalls.DRIVER.ioctl(kfd, DBG_TRAP, BufferUtil.address(argument));
    }

    @Override
    void discard(final AmdProcess p) {
        suspended.remove(p);
        if (enabled.remove(p) && p.isAlive()) {
            start(p, DISABLE);
            issue();   // resumes its queues; the end of this process does the same
        }
    }

    @Override
    void discardAll() {
        for (final AmdProcess p : enabled.toArray(AmdProcess[]::new)) {
            discard(p);
        }
        AmdCalls.close(events);
        AmdCalls.close(kfd);
    }
}

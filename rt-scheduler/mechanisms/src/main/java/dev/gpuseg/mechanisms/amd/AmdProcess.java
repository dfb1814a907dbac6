/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.mechanisms.AttachedProcess;
import java.util.List;

/** One attached process: its queues as the scan thread found them, and the result of its last disable or enable. */
final class AmdProcess extends AttachedProcess {
    private volatile List<AmdSysfs.Queue> queues = List.of();
    private volatile int result;
    private volatile String reason = "";

    AmdProcess(final int pid, final long startTicks) {
        super(pid, startTicks);
    }

    @Override
    protected boolean hasWork() {
        return !queues.isEmpty();
    }

    /** Its queues on the mechanism's GPU that enforcement acts on. */
    List<AmdSysfs.Queue> queues() {
        return queues;
    }

    /** Sets what a scan found. True if the queues have changed. */
    boolean queues(final List<AmdSysfs.Queue> now) {
        if (now.equals(queues)) {
            return false;
        }
        queues = List.copyOf(now);
        return true;
    }

    /** Result of the last disable or enable: 0 or -errno. */
    int result() {
        return result;
    }

    /** Why the last disable or enable failed; may be empty. */
    String reason() {
        return reason;
    }

    void result(final int value, final String why) {
        result = value;
        reason = why;
    }
}

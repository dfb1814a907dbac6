/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.util.List;

/** One attached process: what the watch thread knows of it, and what became of its last switch. */
final class AmdProcess {
    private final int pid;
    private final long startTicks;
    private volatile List<AmdSysfs.Queue> queues = List.of();
    private volatile boolean elsewhere;
    private volatile int result;
    private volatile String reason = "";

    AmdProcess(final int pid, final long startTicks) {
        this.pid = pid;
        this.startTicks = startTicks;
    }

    int pid() {
        return pid;
    }

    long startTicks() {
        return startTicks;
    }

    boolean isAlive() {
        return ProcessStatus.isAlive(pid, startTicks);
    }

    /** Those on the mechanism's GPU that are to be switched. */
    List<AmdSysfs.Queue> queues() {
        return queues;
    }

    /** True if they are others than before. */
    boolean queues(final List<AmdSysfs.Queue> now, final boolean hasOthers) {
        elsewhere = hasOthers;
        if (now.equals(queues)) {
            return false;
        }
        queues = List.copyOf(now);
        return true;
    }

    /** Whether it has queues on another GPU too. */
    boolean elsewhere() {
        return elsewhere;
    }

    /** Of the last switch: 0 or -errno. */
    int result() {
        return result;
    }

    /** Why the last switch failed, in words; may be empty. */
    String reason() {
        return reason;
    }

    void result(final int value, final String why) {
        result = value;
        reason = why;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.ProcessStatus;

/** A process that was attached to a {@link ScanningMechanism}. Its identity is fixed. */
public abstract class AttachedProcess {
    private final int pid;
    private final long startTicks;

    /**
     * Names a process.
     *
     * @param pid        its pid
     * @param startTicks field 22 of /proc/pid/stat: distinguishes a reused pid
     */
    protected AttachedProcess(final int pid, final long startTicks) {
        this.pid = pid;
        this.startTicks = startTicks;
    }

    /** The pid of the process. */
    public final int pid() {
        return pid;
    }

    /** When it started; field 22 of /proc/pid/stat, clock ticks since boot. */
    public final long startTicks() {
        return startTicks;
    }

    /** Whether it still runs; false if it has ended or the pid belongs to another process now. */
    public final boolean isAlive() {
        return ProcessStatus.isAlive(pid, startTicks);
    }

    /**
     * Whether the last scan found something to disable. Called on the scan thread.
     *
     * @return false while it has no channels or queues yet
     */
    protected abstract boolean hasWork();
}

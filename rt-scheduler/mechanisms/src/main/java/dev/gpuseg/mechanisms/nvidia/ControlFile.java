/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.SystemCalls;

/**
 * A duplicate of an application's descriptor of the control device. While it is open, RM keeps the application's
 * clients, and with them its memory on the GPU, even if the application is dead. So it must be closed as soon as the
 * process has ended or has closed its own.
 */
final class ControlFile {
    private final int fd;
    private final int remoteFd;
    private boolean used = true;
    /** In how many full refreshes no client was found in it. */
    private int emptyRefreshes;

    ControlFile(final int fd, final int remoteFd) {
        this.fd = fd;
        this.remoteFd = remoteFd;
    }

    /** Its number in this process. */
    int fd() {
        return fd;
    }

    /** Its number in the application. */
    int remoteFd() {
        return remoteFd;
    }

    /** Whether the application still has the same open file under that number. True if the kernel does not say. */
    boolean stillOpenIn(final int pid) {
        final int result = DriverCalls.compareFiles((int) ProcessHandle.current().pid(), fd, pid, remoteFd);
        return result == 0 || result < 0 && result != -Errno.EBADF && result != -Errno.ESRCH;
    }

    /** No client was found in it once more. How often that was. */
    int countEmptyRefresh() {
        return ++emptyRefreshes;
    }

    /** Whether it may be used. Under the lock of {@link ControlCloser}, as long as it is used. */
    boolean isOpen() {
        return used;
    }

    /** Must not be used any more. Under that lock. */
    void retire() {
        used = false;
    }

    /** Closes the descriptor, once it is retired. RM may take long, see {@link ControlCloser}. */
    void close() {
        SystemCalls.closeOnce(fd);
    }
}

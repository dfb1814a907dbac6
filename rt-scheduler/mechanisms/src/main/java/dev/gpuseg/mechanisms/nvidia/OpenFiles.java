/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.RemoteDescriptors;
import java.io.IOException;
import org.agrona.collections.IntArrayList;

/** Descriptors of the control device in several processes. Kept: cleared and filled again. Not thread-safe. */
final class OpenFiles implements RemoteDescriptors.Visitor {
    private final IntArrayList pids = new IntArrayList();
    private final IntArrayList fds = new IntArrayList();
    private int visited;

    void clear() {
        pids.clear();
        fds.clear();
    }

    void add(final int pid, final int fd) {
        pids.addInt(pid);
        fds.addInt(fd);
    }

    /** Adds those of any process; none if it has ended or may not be examined. */
    void addOf(final int pid) {
        final int before = pids.size();
        visited = pid;
        try {
            RemoteDescriptors.visit(pid, DriverCalls.DRIVER, this);
        } catch (final IOException e) {
            while (pids.size() > before) {
                pids.popInt();
                fds.popInt();
            }
        }
    }

    @Override
    public boolean visit(final RemoteDescriptors.Link link) {
        if (RmProcess.isControl(visited, link)) {
            add(visited, link.fd());
        }
        return true;
    }

    /** Numbers of the descriptors, each in its process. */
    IntArrayList numbers() {
        return fds;
    }

    /** Whether a descriptor of a process is one of these open files. */
    boolean contain(final int pid, final int fd) {
        for (int i = 0; i < pids.size(); i++) {
            if (DriverCalls.compareFiles(pids.getInt(i), fds.getInt(i), pid, fd) == 0) {
                return true;
            }
        }
        return false;
    }
}

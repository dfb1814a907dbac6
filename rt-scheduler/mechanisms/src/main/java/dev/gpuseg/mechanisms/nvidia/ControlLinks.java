/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.DeviceFile;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import java.io.IOException;
import org.agrona.collections.IntArrayList;
import org.agrona.collections.IntHashSet;

/**
 * Those descriptors of a process that matter: of the control device, and of the list that the preloaded library keeps.
 * Reads one process after another into memory that is kept. Not thread-safe.
 */
final class ControlLinks implements RemoteDescriptors.Visitor {
    private final IntArrayList controls = new IntArrayList();
    private final IntHashSet isControl = new IntHashSet();
    private final IntArrayList reports = new IntArrayList();
    private int pid;

    /**
     * Reads the descriptors of a process.
     *
     * @throws IOException if it has ended or may not be examined; then it has none here
     */
    void read(final int ofPid) throws IOException {
        clear();
        pid = ofPid;
        try {
            RemoteDescriptors.visit(pid, DriverCalls.DRIVER, this);
        } catch (final IOException e) {
            clear();
            throw e;
        }
    }

    private void clear() {
        controls.clear();
        isControl.clear();
        reports.clear();
    }

    @Override
    public boolean visit(final RemoteDescriptors.Link link) {
        if (RmProcess.isControl(pid, link)) {
            controls.addInt(link.fd());
            isControl.add(link.fd());
        } else if (link.startsWith(CaptureReport.LINK_PREFIX) && DeviceFile.isMemory(pid, link.fd())) {
            reports.addInt(link.fd());
        }
        return true;
    }

    boolean isEmpty() {
        return controls.isEmpty() && reports.isEmpty();
    }

    /** Descriptors of the control device, in the order in which the kernel names them. */
    IntArrayList controls() {
        return controls;
    }

    boolean isControl(final int fd) {
        return isControl.contains(fd);
    }

    /** Descriptors of what has a report's name. */
    IntArrayList reports() {
        return reports;
    }
}

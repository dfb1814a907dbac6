/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.RemoteDescriptors;
import java.io.IOException;

/** Whether any process has a control descriptor. Allocates nothing for a process that has none. Not thread-safe. */
final class ControlSearch implements RemoteDescriptors.Visitor {
    private int pid;
    private boolean found;

    /** False also if the process has ended or may not be examined. */
    boolean finds(final int ofPid) {
        pid = ofPid;
        found = false;
        try {
            RemoteDescriptors.visit(pid, DriverCalls.DRIVER, this);
        } catch (final IOException e) {
            return false;
        }
        return found;
    }

    @Override
    public boolean visit(final RemoteDescriptors.Link link) {
        found = RmProcess.isControl(pid, link);
        return !found;
    }
}

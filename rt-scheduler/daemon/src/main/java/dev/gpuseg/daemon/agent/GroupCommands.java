/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

import dev.gpuseg.daemon.cgroup.GroupRule;
import dev.gpuseg.daemon.cgroup.GroupSink;
import dev.gpuseg.daemon.cgroup.ProcessView;

/** Carries what rules say of control groups to the dispatcher's thread. */
final class GroupCommands implements GroupSink {
    private final DispatcherAgent dispatcher;

    GroupCommands(final DispatcherAgent dispatcher) {
        this.dispatcher = dispatcher;
    }

    @Override
    public void define(final int groupId, final GroupRule rule) {
        // the scheduler of this release has no shares; the daemon says so at start
    }

    @Override
    public void assign(final ProcessView process, final int groupId, final boolean isProtected) {
        dispatcher.submit(() -> dispatcher.protect(process.pid(), process.startTicks(), isProtected));
    }
}

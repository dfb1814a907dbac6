/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.daemon.cgroup.GroupRule;
import dev.gpuseg.daemon.cgroup.GroupSink;
import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import java.util.HashSet;
import java.util.Set;

/**
 * Carries what rules say of control groups to the dispatcher's thread. Control groups of the usual weight without a cap
 * are no groups to the scheduler: each of their processes counts for itself. Follower's thread only.
 */
final class GroupCommands implements GroupSink {
    private final DispatcherAgent dispatcher;
    /** Groups whose rule says something of weight or cap. */
    private final Set<Integer> ruled = new HashSet<>();

    GroupCommands(final DispatcherAgent dispatcher) {
        this.dispatcher = dispatcher;
    }

    @Override
    public void define(final int groupId, final GroupRule rule) {
        final boolean says = rule.weight() != GroupRule.DEFAULT_WEIGHT || rule.quotaNs() > 0;
        final boolean said = says ? !ruled.add(groupId) : ruled.remove(groupId);
        if (says || said) {
            dispatcher.submit(() -> {
                dispatcher.policy().setWeight(groupId, rule.weight());
                dispatcher.policy().setCap(groupId, rule.quotaNs(), rule.periodNs());
            });
        }
    }

    @Override
    public void assign(final ProcessView process, final int groupId, final boolean isProtected) {
        final int group = ruled.contains(groupId) ? groupId : SegmentScheduler.NONE;
        dispatcher.submit(() -> {
            dispatcher.policy().setProcessGroup(process.pid(), process.startTicks(), group);
            dispatcher.processes().protect(process.pid(), process.startTicks(), isProtected);
        });
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.RoundRobin;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.daemon.enforce.FakeMechanism;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PolicyControlTest {
    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final PolicyControl control = rig.policy;

    private static PolicySettings sharing(final Sharing sharing, final long quantumNs) {
        return new PolicySettings(null, sharing, quantumNs, List.of(), List.of(), "");
    }

    private static PolicySettings policy(final Policy policy) {
        return new PolicySettings(policy, null, 0, List.of(), List.of(),
            "{\"policy\":\"" + policy.name() + "\"}");
    }

    private static PolicySettings rule(final String task, final int weight, final OverrunAction overrun) {
        return new PolicySettings(null, null, 0, List.of(new PolicySettings.TaskRule(task,
            new PolicySettings.Share(weight, -1, 0), overrun, -1, -1)), List.of(), "");
    }

    private static void refuses(final PolicyControl control, final PolicySettings settings, final String why) {
        final IllegalArgumentException e =
            assertThrows(IllegalArgumentException.class, () -> control.requireUsable(settings));
        assertTrue(e.getMessage().contains(why), e.getMessage());
    }

    private List<String> lines() {
        final List<String> lines = new ArrayList<>();
        control.describe(lines::add);
        return lines;
    }

    @Test
    void shouldRefuseAPolicyThatHoldsSegmentsBackWhereNothingCan() {
        rig.enforcer.mechanism.capabilities = FakeMechanism.level(Capabilities.OBSERVE, false);
        refuses(control, policy(FixedPriority.INSTANCE), "only observes");
        control.requireUsable(policy(RoundRobin.INSTANCE));
    }

    @Test
    void shouldRefuseTimeSlicesThatTheDeviceCannotSet() {
        rig.enforcer.mechanism.capabilities = FakeMechanism.level(Capabilities.INTERRUPT, false);
        refuses(control, sharing(Sharing.TIMESLICES, 0), "use turns");
        control.requireUsable(sharing(Sharing.TURNS, 0));
        rig.enforcer.mechanism.capabilities = FakeMechanism.level(Capabilities.INTERRUPT, true);
        control.requireUsable(sharing(Sharing.TIMESLICES, 0));
    }

    @Test
    void shouldChangeNothingMoreOnceTheDaemonStops() {
        final TaskEntry low = rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(low, 1, true);
        rig.begin(high, 1, true);
        assertFalse(control.isStopping());
        control.stop();
        assertTrue(control.isStopping());
        assertEquals(List.of(), rig.enforcer.off(), "all contexts are enabled");
        final int events = rig.events.events.size();
        control.apply(policy(FixedPriority.INSTANCE));
        assertEquals(events, rig.events.events.size());
        assertEquals(List.of(), rig.enforcer.off());
    }

    @Test
    void shouldPutThePolicyIntoSchedulerStatusPageAndJournal() {
        control.apply(policy(EarliestDeadlineFirst.INSTANCE));
        assertEquals("edf", rig.scheduler.policy().name());
        assertEquals(List.of("edf"), rig.shownPolicies);
        assertEquals(EventKind.POLICY, rig.events.events.get(0).kind());
        assertTrue(rig.events.texts().get(0).contains("edf"), rig.events.texts().toString());
        control.apply(policy(FixedPriority.INSTANCE));
        assertEquals(List.of("edf", "fp"), rig.shownPolicies);
        assertTrue(rig.events.texts().contains("policy fp"), rig.events.texts().toString());
    }

    @Test
    void shouldTakeTheUsualQuantumWhereNoneIsSaid() {
        control.apply(sharing(Sharing.TIMESLICES, 0));
        assertTrue(lines().contains("sharing timeslices, quantum " + Durations.format(PolicySettings.TIMESLICE_NS)));
        control.apply(sharing(Sharing.TURNS, 3_000_000));
        assertTrue(lines().contains("sharing turns, quantum 3ms"), lines().toString());
        assertEquals(3_000_000, rig.events.last().arg1());
    }

    @Test
    void shouldApplyRulesToOpenTasksOfThatNameAndToThoseThatOpenLater() {
        final TaskEntry open = rig.task(1, 10);
        final TaskEntry other = rig.task(2, 10);
        control.apply(rule("task1", 300, OverrunAction.SUSPEND));
        control.apply(rule("task3", 0, OverrunAction.NOTIFY));
        assertEquals(OverrunAction.SUSPEND, rig.scheduler.overrunAction(open.id));
        assertEquals(300, rig.scheduler.weight(rig.scheduler.ownGroup(open.contextId)));
        assertEquals(OverrunAction.DEMOTE, rig.scheduler.overrunAction(other.id));
        final TaskEntry later = rig.task(3, 10);
        control.applyRule(later);
        assertEquals(OverrunAction.NOTIFY, rig.scheduler.overrunAction(later.id));
        rig.forget();
        control.applyRule(other);
        assertEquals(List.of(), rig.events.events, "nothing was said about it");
    }

    @Test
    void shouldKeepOfAnEarlierRuleWhatALaterOneDoesNotSay() {
        control.apply(rule("task1", 300, OverrunAction.SUSPEND));
        control.apply(rule("task1", 0, OverrunAction.NOTIFY));
        final TaskEntry task = rig.task(1, 10);
        control.applyRule(task);
        assertEquals(300, rig.scheduler.weight(rig.scheduler.ownGroup(task.contextId)));
        assertEquals(OverrunAction.NOTIFY, rig.scheduler.overrunAction(task.id));
    }

    @Test
    void shouldCapAndWeighGroups() {
        control.setWeight(7, 50);
        assertEquals(50, rig.scheduler.weight(7));
        assertEquals("group 7 weight 50", rig.events.last().text());
        control.setCap(7, 2_000_000, 10_000_000);
        assertEquals(2_000_000, rig.scheduler.quotaNs(7));
        control.setCap(7, 0, 10_000_000);
        assertEquals("group 7 no cap", rig.events.last().text());
        control.apply(new PolicySettings(null, null, 0, List.of(),
            List.of(new PolicySettings.GroupRule(6, new PolicySettings.Share(40, -1, 0))), ""));
        assertTrue(lines().contains("group 6 weight 40"), lines().toString());
    }

    @Test
    void shouldGroupTheContextsOfAProcess() {
        assertFalse(control.setGroup(DispatchRig.CONTEXTS, 5), "there is no such context");
        assertFalse(control.setProcessGroup(4711, 0, 5), "there is no such process");
        rig.processes.addUnmanaged(4711, 99, "stranger");
        assertFalse(control.setProcessGroup(4711, 98, 5), "another process had that pid");
        assertTrue(control.setProcessGroup(4711, 99, 5));
        final int[] context = new int[1];
        rig.processes.forEach(process -> context[0] = process.contexts[0]);
        assertEquals(5, rig.scheduler.group(context[0]));
        rig.forget();
        assertTrue(control.setProcessGroup(4711, 0, 5));
        assertEquals(List.of(), rig.events.events, "it is there already");
        assertTrue(control.setProcessGroup(4711, 0, SegmentScheduler.NONE));
        assertEquals(rig.scheduler.ownGroup(context[0]), rig.scheduler.group(context[0]));
    }

    @Test
    void shouldSetPrioritiesByNameOrId() {
        final TaskEntry task = rig.task(1, 10);
        rig.task(2, 15);
        rig.forget(task);
        final List<String> told = new ArrayList<>();
        assertEquals(-2, control.setPriority(0, "nobody", 30, 30, told::add), "ENOENT");
        assertEquals(-2, control.setPriority(5, "task1", 30, 30, told::add), "an id comes before a name");
        assertEquals(List.of(), told);
        assertEquals(0, control.setPriority(0, "task1", 30, 31, told::add));
        assertEquals(List.of("task 1 \"task1\" priority 30 gpu_priority 31"), told);
        assertEquals(30, task.priority);
        assertEquals(31, task.gpuPriority);
        assertEquals(List.of(EventKind.PRIORITY, EventKind.POLICY), rig.events.kinds());
        rig.begin(task, 1, true);
        assertTrue(rig.enforcer.off().contains(2), "it counts for the scheduler, too");
    }

    @Test
    void shouldTellAReplayWhatHoldsFromTheStart() {
        control.started();
        assertEquals(List.of("keep ready true", "disabling on GPU 0 takes 0 ns and 0 ns for each further context",
            "anticipate declared, budget 50000 ppm"), rig.events.texts());
        assertEquals(1, rig.events.events.get(0).arg0());
        rig.events.events.clear();
        control.apply(new PolicySettings(null, null, 0, List.of(), List.of(), "what was said"));
        assertEquals(List.of("settings what was said"), rig.events.texts());
        assertTrue(lines().contains("anticipate declared, budget 5 % of best-effort time"));
    }

    @Test
    void shouldDescribeProcessesAndTasks() {
        rig.processes.addUnmanaged(4711, 99, "stranger");
        rig.task(2, 10);
        assertTrue(lines().contains("policy fp"));
        assertTrue(lines().contains("process 4711 \"stranger\" weight 100"), lines().toString());
        assertTrue(lines().contains("task 2 \"task2\" overrun demote, partition 0"), lines().toString());
    }
}

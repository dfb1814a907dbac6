/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.BestEffortTurns;
import dev.gpuseg.core.CallChoice;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.ipc.journal.EventKind;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TurnsTest {
    private static final long MS = 1_000_000;
    private static final long SHORT = GpuTurns.SHORT_NS;
    private static final long LOWER = GpuTurns.LOWER_NS;
    private static final long LONG = GpuTurns.LONG_NS;

    private DispatchRig rig = rig(1, true);
    private long nowNs;
    private long ticket;

    private static DispatchRig rig(final int gpus, final boolean slicesBoundWaits) {
        return new DispatchRig(PolicyCatalog.builtIn().create("fp"), true, gpus, slicesBoundWaits);
    }

    /** A process that is found; its context is the next number. */
    private void found(final int pid) {
        rig.processes.addUnmanaged(pid, 1, "process" + pid);
    }

    /** A process with a task; its context is the next number. */
    private TaskEntry task(final int id, final int priority) {
        return task(id, priority, 0);
    }

    private TaskEntry task(final int id, final int priority, final int account) {
        return task(id, priority, account, 0);
    }

    private TaskEntry task(final int id, final int priority, final int account, final int gpu) {
        final Client client = new Client(id, 1000 + id, 0, 0, 1, "robot" + id, null, null, null);
        return task(id, priority, account, gpu, client, rig.processes.register(client));
    }

    private TaskEntry task(final int id, final int priority, final int account, final int gpu, final Client client,
        final ProcessEntry process) {
        return task(id, priority, account, gpu, client, process, 0, 0);
    }

    private TaskEntry task(final int id, final int priority, final int account, final int gpu, final Client client,
        final ProcessEntry process, final long deadlineNs, final long budgetNs) {
        final int contextId = process.contexts[gpu];
        final TaskEntry task = new TaskEntry(id, new ClientEntry(client, process, null), new FakeSlot(), contextId,
            new TaskOpen(id, id, "task" + id, priority, priority, gpu, true, 0, deadlineNs, budgetNs));
        rig.tasks.add(task);
        rig.scheduler.addTask(new TaskParameters(id, contextId, priority, priority, 0, 0, true, OverrunAction.NOTIFY, 0,
            0).inAccount(account));
        rig.anticipation.open(task);
        rig.decisions.settle();
        return task;
    }

    /** A command of another thread ran this much later. */
    private void look(final long laterMs) {
        nowNs += laterMs * MS;
        rig.clock.set(nowNs);
        rig.turns.refresh(rig.processes);
        rig.at(nowNs);
    }

    /** All processes are old and none came lately. */
    private void settle() {
        look(1);
        look(3000);
    }

    private List<Integer> off() {
        return rig.enforcer.off();
    }

    private void pass(final long ns) {
        nowNs += ns;
        rig.at(nowNs);
    }

    /** A segment of this length; what was off at its begin and after its half. */
    private String segment(final TaskEntry task, final long ns) {
        rig.begin(task, ++ticket, false);
        final String atBegin = off().toString();
        pass(ns / 2);
        final String later = off().toString();
        pass(ns - ns / 2);
        rig.end(task, ticket);
        return atBegin + later;
    }

    /** Segments that are shorter without the call, until that is known. */
    private void tryBoth(final TaskEntry task) {
        for (int i = 0; i < 2 * CallChoice.TRIALS; i++) {
            pass(20 * MS);
            segment(task, i % 2 == 0 ? 6 * MS : 5 * MS);
        }
        pass(20 * MS);
    }

    /** Two processes, and a task whose segments go without the call. */
    private TaskEntry withoutCalls() {
        found(1);
        found(2);
        final TaskEntry task = task(3, 50);
        settle();
        tryBoth(task);
        return task;
    }

    @Test
    void shouldTakeTurnsOnlyWhileARealTimeTaskIsOpen() {
        found(1);
        found(2);
        settle();
        assertEquals(List.of(), off());
        assertFalse(rig.turns.isInUse());
        final TaskEntry task = task(3, 50);
        look(1);
        assertTrue(rig.turns.isInUse());
        assertEquals(List.of(2), off());
        pass(BestEffortTurns.TURN_NS);
        assertEquals(List.of(1), off());
        rig.scheduler.removeTask(task.id, nowNs);
        look(1);
        assertEquals(List.of(), off());
        assertFalse(rig.turns.isInUse());
    }

    @Test
    void shouldGiveBestEffortAndLowerTasksShortSlicesAndTheHighestALongOne() {
        found(1);
        task(2, 50);
        task(3, 80);
        task(4, 80);
        task(5, 0);
        rig.enforcer.calls.clear();
        settle();
        assertEquals(List.of("timeslice 1 " + SHORT, "timeslice 2 " + LOWER, "timeslice 3 " + LONG,
            "timeslice 4 " + LONG, "timeslice 5 " + SHORT), slices());
        rig.enforcer.calls.clear();
        look(1);
        assertEquals(List.of(), slices(), "nothing is asked for twice");
    }

    @Test
    void shouldGiveNoLongSliceToAUserWhoseShareIsLimited() {
        found(1);
        rig.scheduler.setShare(1, 50, nowNs);
        task(2, 80, 1);
        task(3, 80);
        rig.enforcer.calls.clear();
        settle();
        assertEquals(List.of("timeslice 1 " + SHORT, "timeslice 3 " + LONG), slices());
    }

    @Test
    void shouldLeaveOutTheIdleTheYoungThoseWithoutChannelsAndTheProtected() {
        found(1);
        found(2);
        found(3);
        task(8, 50);
        settle();
        found(5);   // young
        rig.processes.idle(1, 1, true);
        rig.processes.protect(2, 1, true);
        look(1);
        assertEquals(List.of(), off(), "only 3 is left, and it need not rest");
        look(2000);
        assertEquals(List.of(3), off(), "5 is no longer young, and 3 had more than a turn");
        rig.enforcer.mechanism.units = 0;
        look(1);
        assertEquals(List.of(), off());
    }

    /** A process with this many channels on each of two GPUs. */
    private void foundOn(final int pid, final int onFirst, final int onSecond) {
        rig.enforcers[0].mechanism.units = 0;   // others have none
        rig.enforcers[1].mechanism.units = 0;
        found(pid);
        rig.enforcers[0].mechanism.unitsOf.put(pid, onFirst);
        rig.enforcers[1].mechanism.unitsOf.put(pid, onSecond);
    }

    /** Contexts of a process are numbered GPU by GPU: those of process n are 2n - 1 and 2n. */
    @Test
    void shouldTakeTurnsOnEachGpuByItself() {
        rig = rig(2, true);
        foundOn(1, 3, 0);
        foundOn(2, 3, 0);
        foundOn(3, 0, 3);
        foundOn(4, 0, 3);
        final TaskEntry first = task(5, 50);
        settle();
        assertEquals(List.of(3), off());
        assertEquals(List.of(), rig.enforcers[1].off(), "no real-time task is open there");
        final TaskEntry second = task(6, 50, 0, 1);
        settle();
        assertEquals(1, off().size());
        assertEquals(1, rig.enforcers[1].off().size());
        final List<Integer> firstOff = off();
        final List<Integer> secondOff = rig.enforcers[1].off();
        rig.begin(first, ++ticket, false);
        pass(BestEffortTurns.TURN_NS);
        assertTrue(off().containsAll(List.of(1, 3)), "a segment has the GPU");
        assertNotEquals(secondOff, rig.enforcers[1].off(), "the other GPU's turn ended meanwhile");
        rig.end(first, ticket);
        assertEquals(firstOff, off(), "the segment's time is not that of the turn");
        pass(BestEffortTurns.TURN_NS);
        assertNotEquals(firstOff, off());
        rig.scheduler.removeTask(second.id, nowNs);
        look(1);
        assertEquals(List.of(), rig.enforcers[1].off());
        assertTrue(rig.turns.isInUse());
    }

    /** It would wait through the turns of all. Segments beside it get the call, as it stays enabled. */
    @Test
    void shouldLeaveOutAProcessThatWorksOnSeveralGpus() {
        rig = rig(2, true);
        foundOn(1, 3, 0);
        foundOn(2, 3, 0);
        final TaskEntry task = task(3, 50);
        settle();
        tryBoth(task);
        final String without = segment(task, 5 * MS);
        assertTrue(List.of("[1][1]", "[3][3]").contains(without), without);
        foundOn(4, 3, 3);
        settle();
        assertEquals(1, off().size(), "the two others take turns");
        assertEquals("[1, 3, 7][1, 3, 7]", segment(task, 5 * MS));
        rig.enforcers[1].mechanism.unitsOf.put(4, 0);
        settle();
        assertEquals(2, off().size(), "it takes turns as well");
    }

    @Test
    void shouldDoNothingOfTheKindWhereItIsNotPossible() {
        rig = rig(1, false);
        found(1);
        found(2);
        task(3, 50);
        settle();
        assertEquals(List.of(), off());
        rig = rig(1, true);
        rig.turns.allow(false, Map.of());
        found(1);
        found(2);
        task(3, 50);
        settle();
        assertEquals(List.of(), off());
        rig = rig(1, true);
        task(1, 50);
        rig.enforcer.mechanism.capabilities = rig.enforcer.mechanism.capabilities.withHeldLaunches();
        final Turns held = new Turns(rig.scheduler, rig.desired, rig.tasks, 1, rig.clock);
        held.refresh(rig.processes);
        assertFalse(held.isInUse());
    }

    /** The segment that went without the call gets it at once, and no slice delays it. */
    @Test
    void shouldChangeToCallsInTheMidstOfASegmentAndLeaveTheSlices() {
        final TaskEntry task = withoutCalls();
        rig.begin(task, ++ticket, false);
        assertEquals(1, off().size(), "the other process has the turn, without a call");
        rig.enforcer.calls.clear();
        rig.turns.allow(false, Map.of());
        look(0);
        rig.decisions.settle();
        assertEquals(List.of(1, 2), off());
        assertFalse(rig.turns.isInUse());
        pass(5 * MS);
        rig.end(task, ticket);
        assertEquals(List.of(), off(), "nobody rests");
        found(4);
        look(3000);
        assertEquals(List.of(), slices(), "not of a newcomer either");
        rig.begin(task, ++ticket, false);
        assertEquals(List.of(1, 2, 4), off(), "by calls, at once");
        pass(5 * MS);
        rig.end(task, ticket);
        rig.scheduler.removeTask(task.id, nowNs);
        look(1);
        assertEquals(List.of("timeslice 1 0", "timeslice 2 0", "timeslice 3 0"), slices());
    }

    @Test
    void shouldTakeTurnsAgainWhenItIsAllowed() {
        found(1);
        found(2);
        settle();
        rig.turns.allow(false, Map.of());
        final TaskEntry task = task(3, 50);
        look(1);
        assertEquals(List.of(), off());
        assertEquals(List.of(), slices());
        rig.turns.allow(true, Map.of());
        look(1);
        assertEquals(List.of(2), off());
        assertEquals(List.of("timeslice 1 " + SHORT, "timeslice 2 " + SHORT, "timeslice 3 " + LONG), slices());
        rig.scheduler.removeTask(task.id, nowNs);
    }

    /** By which admission proves their bounds: of each task its own, of another real-time one by rank. */
    @Test
    void shouldGiveTheContextsOfTasksTheSlicesThatAreAskedFor() {
        rig = new DispatchRig(PolicyCatalog.builtIn().create("classes", Map.of("class_width", 99)), true, 1, true);
        found(1);
        final TaskEntry high = task(2, 50);
        final TaskEntry low = task(3, 40);
        task(4, 30);
        task(5, 0);
        rig.turns.allow(true, Map.of("task2", 900 * MS, "task3", 7 * MS, "task5", 3 * MS));
        settle();
        assertEquals(List.of("timeslice 1 " + SHORT, "timeslice 2 " + 900 * MS, "timeslice 3 " + 7 * MS, "timeslice 4 "
            + LOWER, "timeslice 5 " + SHORT), slices());
        rig.begin(low, ++ticket, false);
        rig.begin(high, ++ticket, false);
        pass(MS);
        assertEquals(List.of(1, 5), off(), "best effort is off, and nobody else");
        rig.end(high, ticket);
        rig.end(low, ticket - 1);
        rig.scheduler.removeTask(low.id, nowNs);
        rig.enforcer.calls.clear();
        look(1);
        assertEquals(List.of("timeslice 3 " + SHORT), slices(), "it is best effort now");
    }

    /** A task with a deadline and a budget; its context is the next number. */
    private TaskEntry declared(final int id, final long deadlineMs, final long budgetMs) {
        final Client client = new Client(id, 1000 + id, 0, 0, 1, "robot" + id, null, null, null);
        final ProcessEntry process = rig.processes.register(client);
        return task(id, 50, 0, 0, client, process, deadlineMs * MS, budgetMs * MS);
    }

    /** The mechanism says so often, once a second, that the GPU works for this part of the time; how often news. */
    private int worked(final int percent, final int times) {
        int news = 0;
        for (int i = 0; i < times; i++) {
            nowNs += 1000 * MS;
            rig.clock.set(nowNs);
            news += rig.turns.busy(0, percent) ? 1 : 0;
            look(0);
        }
        return news;
    }

    private static final int LOOKS = 4;   // the first has nothing to compare with

    @Test
    void shouldShareTheGpuTogetherWhereTurnsLeaveItIdle() {
        found(1);
        found(2);
        declared(3, 33, 5);
        settle();
        assertEquals(1, off().size());
        assertTrue(rig.turns.asksHowBusy(0));
        rig.enforcer.calls.clear();
        assertEquals(1, worked(36, LOOKS));
        assertTrue(rig.turns.isTogether(0));
        assertEquals(List.of(), off());
        assertEquals(List.of("timeslice 1 " + GpuTurns.TOGETHER_NS, "timeslice 2 " + GpuTurns.TOGETHER_NS), slices());
        assertEquals(0, worked(90, 30), "together they do not fill it");
        assertEquals(1, worked(100, 3));
        assertFalse(rig.turns.isTogether(0));
        assertEquals(1, off().size());
        assertEquals(0, worked(72, 30), "one alone uses most of it");
        assertFalse(rig.turns.isTogether(0));
    }

    @Test
    void shouldTakeTurnsWhereADeadlineDoesNotBearTheWaitForAll() {
        found(1);
        found(2);
        final TaskEntry undeclared = task(3, 50);
        settle();
        assertFalse(rig.turns.asksHowBusy(0));
        assertEquals(0, worked(10, LOOKS));
        rig.tasks.remove(undeclared);
        rig.scheduler.removeTask(undeclared.id, nowNs);
        declared(4, 33, 5);
        settle();
        worked(10, LOOKS);
        assertTrue(rig.turns.isTogether(0));
        final TaskEntry tight = declared(5, 16, 5);   // 11 ms: a quarter is less than 1 ms for each of three
        look(1);
        assertFalse(rig.turns.isTogether(0), "at once");
        assertEquals(2, off().size());
        rig.tasks.remove(tight);
        rig.scheduler.removeTask(tight.id, nowNs);
        look(1);
        assertTrue(rig.turns.isTogether(0), "what was found of the programs holds");
        assertEquals(List.of(), off());
        declared(6, 17, 5);   // 12 ms; the one before is best effort, and young
        look(1);
        assertTrue(rig.turns.isTogether(0));
        look(3000);
        assertFalse(rig.turns.isTogether(0), "it would be the fourth to wait for");
    }

    @Test
    void shouldTakeTurnsWhereBoundsAreProven() {
        rig.turns.allow(true, Map.of());
        found(1);
        found(2);
        declared(3, 33, 5);
        settle();
        assertFalse(rig.turns.asksHowBusy(0));
        assertEquals(0, worked(10, LOOKS));
        assertEquals(1, off().size());
    }

    /** Best effort is not to blame for a GPU that is idle while it is kept for others. */
    @Test
    void shouldCountOnlyTheTimeThatBestEffortHas() {
        found(1);
        found(2);
        final TaskEntry task = declared(3, 33, 5);
        settle();
        for (int i = 0; i < 10; i++) {   // half of each second is a segment's: 20 of 50 % are best effort's
            pass(500 * MS);
            rig.begin(task, ++ticket, true);
            pass(500 * MS);
            rig.end(task, ticket);
            rig.turns.busy(0, i < 5 ? 80 : 70);
            look(0);
            assertEquals(i >= 7, rig.turns.isTogether(0), "look " + i);
        }
    }

    @Test
    void shouldGoWithoutCallsAlsoTogether() {
        found(1);
        found(2);
        final TaskEntry task = declared(3, 33, 5);
        settle();
        worked(10, LOOKS);
        tryBoth(task);
        assertEquals("[][]", segment(task, 5 * MS), "nobody rests, and nobody is disabled");
        pass(20 * MS);
        worked(100, 30);
        assertFalse(rig.turns.isTogether(0));
        pass(20 * MS);
        assertEquals("[1, 2][1, 2]", segment(task, 5 * MS), "it is tried anew, with the call first");
    }

    private List<String> slices() {
        return rig.enforcer.calls.stream().filter(c -> c.startsWith("timeslice")).toList();
    }

    @Test
    void shouldStopWhereSharesAreKeptBySlicesAndWhenTheDaemonStops() {
        found(1);
        found(2);
        task(3, 50);
        settle();
        assertEquals(List.of(2), off());
        rig.policy.apply(new PolicySettings(null, Sharing.TIMESLICES, 0, List.of(), List.of(), "{}"));
        look(1);
        assertEquals(List.of(), off());
        rig.policy.apply(new PolicySettings(null, Sharing.TURNS, 0, List.of(), List.of(), "{}"));
        look(1);
        assertEquals(1, off().size());
        rig.policy.stop();
        look(1);
        assertEquals(List.of(), off());
    }

    @Test
    void shouldMakeNoCallForSegmentsThatAreShorterWithout() {
        found(1);
        found(2);
        final TaskEntry task = task(3, 50);
        settle();
        for (int i = 0; i < 2 * CallChoice.TRIALS; i++) {
            pass(20 * MS);
            final boolean with = "[1, 2][1, 2]".equals(segment(task, i % 2 == 0 ? 6 * MS : 5 * MS));
            assertEquals(i % 2 == 0, with, "segment " + i);
        }
        pass(20 * MS);
        assertTrue(List.of("[1][1]", "[2][2]").contains(segment(task, 5 * MS)), "one rests, nobody is disabled");
        pass(20 * MS);
        rig.begin(task, ++ticket, false);
        assertEquals(1, off().size());
        pass(12 * MS + 1);
        assertEquals(List.of(1, 2), off(), "it takes longer than twice the longest");
        rig.end(task, ticket);
        assertEquals(1, off().size());
    }

    @Test
    void shouldCallASegmentEnforcedOnlyWhenTheOthersAreOff() {
        final TaskEntry task = withoutCalls();
        rig.enforcer.enforce(nowNs);
        rig.begin(task, ++ticket, false);
        rig.events.events.clear();
        assertEquals(0, rig.grants.poll(0, rig.enforcer.enforcedVersion()), "they are on");
        pass(12 * MS + 1);
        assertEquals(0, rig.grants.poll(0, rig.enforcer.enforcedVersion()), "they are to be disabled only now");
        rig.enforcer.enforce(nowNs);
        assertEquals(1, rig.grants.poll(0, rig.enforcer.enforcedVersion()));
        assertEquals(List.of(EventKind.ENFORCED), rig.events.kinds());
    }

    @Test
    void shouldCallForASegmentThatWaitsAndWhereAProcessCameJustNow() {
        final TaskEntry task = withoutCalls();
        assertEquals(0, rig.enforcer.off().size() - 1);
        rig.begin(task, ++ticket, true);
        assertEquals(List.of(1, 2), off());
        pass(MS);
        rig.end(task, ticket);
        found(7);
        look(1);
        pass(20 * MS);
        assertEquals("[1, 2, 4][1, 2, 4]", segment(task, 5 * MS));
        pass(GpuTurns.UNREST_NS);
        assertFalse(segment(task, 5 * MS).startsWith("[1, 2"), "quiet again");
    }

    /** The call would come after their end, and disturb whatever runs then. */
    @Test
    void shouldNotCallForShortSegmentsWhereAProcessCameJustNow() {
        final TaskEntry task = withoutCalls();
        segment(task, MS / 2);
        found(7);
        look(1);
        pass(20 * MS);
        assertFalse(segment(task, MS / 2).startsWith("[1, 2"), "over before the call");
        pass(20 * MS);
        assertTrue(segment(task, 5 * MS).endsWith("[1, 2, 4]"), "this one is not: it gets the call late");
        for (int i = 0; i < 8; i++) {   // the short ones are forgotten
            pass(20 * MS);
            segment(task, 5 * MS);
        }
        pass(20 * MS);
        assertEquals("[1, 2, 4][1, 2, 4]", segment(task, 5 * MS));
    }

    /** A segment of this length that begins while a lower task has the GPU; what was off beside it. */
    private List<Integer> preempting(final TaskEntry low, final TaskEntry high, final long ns) {
        pass(20 * MS);
        final long lowTicket = ++ticket;
        rig.begin(low, lowTicket, false);
        pass(MS);
        rig.begin(high, ++ticket, false);
        final List<Integer> off = off();
        pass(ns);
        rig.end(high, ticket);
        pass(MS);
        rig.end(low, lowTicket);
        return off;
    }

    @Test
    void shouldLeaveALowerTaskToItsSliceWhereSegmentsAreShorterThen() {
        found(1);
        final TaskEntry low = task(2, 40);
        final TaskEntry high = task(3, 50);
        settle();
        for (int i = 0; i < 2 * CallChoice.TRIALS; i++) {
            final boolean with = i % 2 == 0;
            assertEquals(with ? List.of(1, 2) : List.of(1), preempting(low, high, with ? 6 * MS : 5 * MS), "" + i);
        }
        rig.enforcer.calls.clear();
        rig.begin(low, ++ticket, false);
        rig.enforcer.calls.clear();
        final long lowTicket = ticket;
        rig.begin(high, ++ticket, false);
        pass(5 * MS);
        assertEquals(List.of(1), off(), "the GPU changes to who has the long slice by itself");
        rig.end(high, ticket);
        assertEquals(List.of(), rig.enforcer.calls, "no call was made, so none is to be undone");
        rig.begin(high, ++ticket, false);
        pass(12 * MS + 1);
        assertEquals(List.of(1, 2), off(), "it takes longer than twice the longest");
        rig.end(high, ticket);
        rig.end(low, lowTicket);
        assertEquals(List.of(), off());
    }

    @Test
    void shouldDisableALowerTaskWhereSegmentsAreLongerOtherwise() {
        final TaskEntry low = task(1, 40);
        final TaskEntry high = task(2, 50);
        settle();
        for (int i = 0; i < 2 * CallChoice.TRIALS; i++) {
            preempting(low, high, i % 2 == 0 ? 5 * MS : 6 * MS);
        }
        for (int i = 0; i < CallChoice.TRIALS; i++) {
            assertEquals(List.of(1), preempting(low, high, 5 * MS), "segment " + i);
        }
    }

    /** Two tasks whose segments are shorter where the lower one is left to its slice. */
    private void learned(final TaskEntry low, final TaskEntry high) {
        settle();
        for (int i = 0; i < 2 * CallChoice.TRIALS; i++) {
            preempting(low, high, i % 2 == 0 ? 6 * MS : 5 * MS);
        }
        assertEquals(List.of(), preempting(low, high, 5 * MS));
    }

    @Test
    void shouldDisableALowerTaskForASegmentThatWaits() {
        final TaskEntry low = task(1, 40);
        final TaskEntry high = task(2, 50);
        learned(low, high);
        rig.begin(low, ++ticket, false);
        rig.begin(high, ++ticket, true);
        assertEquals(List.of(1), off());
    }

    /** Who has the lowest rank would have as much of the GPU as who comes next. */
    @Test
    void shouldDisableALowerTaskForOneThatIsNotTheHighest() {
        final TaskEntry lowest = task(1, 30);
        final TaskEntry middle = task(2, 40);
        learned(lowest, middle);
        rig.enforcer.calls.clear();
        final TaskEntry high = task(3, 50);
        settle();
        assertEquals(List.of("timeslice 2 " + LOWER, "timeslice 3 " + LONG), slices());
        rig.begin(lowest, ++ticket, false);
        rig.begin(middle, ++ticket, false);
        assertEquals(List.of(1), off());
        final long highTicket = ++ticket;
        rig.begin(high, highTicket, false);
        assertEquals(List.of(1, 2), off(), "its first segment with the call");
        rig.end(high, highTicket);
        assertEquals(List.of(1), off());
    }

    @Test
    void shouldDisableALowerTaskWhereTheHighestHasNoLongSlice() {
        final TaskEntry low = task(1, 40);
        final TaskEntry high = task(2, 50, 2);
        learned(low, high);
        rig.scheduler.setShare(2, 50, nowNs);
        look(1);
        rig.begin(low, ++ticket, false);
        rig.begin(high, ++ticket, false);
        assertEquals(List.of(1), off());
    }

    @Test
    void shouldGiveLowerTasksTheirOwnSlicesBack() {
        final TaskEntry low = task(1, 40);
        final TaskEntry high = task(2, 50);
        settle();
        rig.enforcer.calls.clear();
        rig.scheduler.removeTask(high.id, nowNs);
        look(1);
        assertEquals(List.of("timeslice 1 " + LONG, "timeslice 2 " + SHORT), slices(), "it is the highest now");
        rig.enforcer.calls.clear();
        rig.scheduler.removeTask(low.id, nowNs);
        look(1);
        assertEquals(List.of("timeslice 1 0", "timeslice 2 0"), slices());
    }

    /** Its length says nothing of calls: it waits until the other one has ended. */
    @Test
    void shouldLearnNothingFromALowTaskOfTheHighestProcessThatPreemptsNobody() {
        final TaskEntry middle = task(1, 40);
        final TaskEntry high = task(2, 50);
        final TaskEntry low = task(3, 30, 0, 0, high.client.client, high.client.process);
        settle();
        for (int i = 0; i < 4 * CallChoice.TRIALS; i++) {
            pass(20 * MS);
            final long middleTicket = ++ticket;
            rig.begin(middle, middleTicket, false);
            rig.begin(low, ++ticket, false);
            assertFalse(low.isTrial, "segment " + i);
            rig.end(middle, middleTicket);
            rig.end(low, ticket);
        }
        assertFalse(low.calls.isChosen());
    }

    /** Beside a short slice best effort would have too much of the GPU. */
    @Test
    void shouldCallAtOnceForTasksThatAreNotTheHighest() {
        found(1);
        found(2);
        final TaskEntry low = task(3, 40);
        task(4, 50);
        settle();
        for (int i = 0; i < 3 * CallChoice.TRIALS; i++) {
            pass(20 * MS);
            assertEquals("[1, 2][1, 2]", segment(low, 5 * MS), "segment " + i);
        }
    }

    @Test
    void shouldCallAtOnceForTasksOfEqualRank() {
        found(1);
        final TaskEntry low = task(2, 40);
        task(3, 50);
        final TaskEntry high = task(4, 50);
        settle();
        tryBoth(high);
        rig.begin(high, ++ticket, false);
        assertEquals(List.of(3), off(), "3 has a long slice; 1 and 2 yield");
        rig.end(high, ticket);
        final long lowTicket = ++ticket;
        rig.begin(low, lowTicket, true);
        rig.begin(high, ++ticket, true);
        assertEquals(List.of(1, 2, 3), off(), "one that waits gets the call");
        rig.end(high, ticket);
        rig.end(low, lowTicket);
    }
}

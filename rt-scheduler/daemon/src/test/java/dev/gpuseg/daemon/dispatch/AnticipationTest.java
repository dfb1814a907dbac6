/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.RoundRobin;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.enforce.FakeEnforcement;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Expected begins from what clients do to what enforcers, counters and journal see. */
class AnticipationTest {
    private static final long AT_NS = 100_000_000;
    private static final long DISABLE_NS = 500_000;
    private static final long PER_CONTEXT_NS = 10_000;
    private static final long MARGIN_NS = 300_000;
    /** One context to disable. */
    private static final long LEAD_NS = DISABLE_NS + MARGIN_NS;
    private static final long PERIOD_NS = 10_000_000;
    private static final long NEVER = Long.MAX_VALUE;
    private static final int BEGINS = 12;

    private final DispatchRig rig = rig(new DispatchRig(FixedPriority.INSTANCE));
    private final TaskEntry low = rig.task(1, 10);
    private final TaskEntry middle = rig.task(2, 20);
    private final TaskEntry high = rig.task(3, 30);

    private static DispatchRig rig(final DispatchRig rig) {
        for (final FakeEnforcement enforcer : rig.enforcers) {
            enforcer.mechanism.capabilities =
                new Capabilities(Capabilities.INTERRUPT, DISABLE_NS, PER_CONTEXT_NS, 0, 0, 64, true, "process");
        }
        rig.anticipation.started();
        return rig;
    }

    /** Of the contexts that there are. */
    private List<Integer> off() {
        return rig.enforcer.off().stream().filter(c -> c <= high.contextId).toList();
    }

    private void poll(final long nowNs) {
        rig.clock.set(nowNs);
        if (rig.anticipation.poll(nowNs) > 0) {
            rig.decisions.settle();
        }
    }

    private long journaled(final int what) {
        return rig.events.events.stream()
            .filter(e -> e.kind() == EventKind.ANTICIPATE && e.flags() == what).count();
    }

    /** Begins once in each period, for 1 ms; what follows is due after the last. Returns when the next should come. */
    private long play(final TaskEntry task, final int begins) {
        for (int i = 1; i <= begins; i++) {
            final long atNs = i * PERIOD_NS;
            while (rig.anticipation.nextNs() < atNs) {
                poll(rig.anticipation.nextNs());
                rig.enforcer.enforce(rig.clock.nowNs());
                rig.anticipation.enforced(0, rig.enforcer.enforcedVersion());
            }
            rig.clock.set(atNs);
            rig.begin(task, i, true);
            rig.clock.set(atNs + 1_000_000);
            rig.end(task, i);
        }
        return (begins + 1) * PERIOD_NS;
    }

    private TaskEntry periodic(final int id, final int priority) {
        return rig.task(id, new TaskOpen(id, id, "periodic" + id, priority, priority, 0, true, PERIOD_NS, PERIOD_NS,
            0));
    }

    // ---- hints of the program ----------------------------------------------------------------------------------

    @Test
    void shouldIgnoreHintsThatNothingCanBeDoneFor() {
        final TaskEntry bestEffort = rig.task(4, 0);
        rig.anticipation.hint(bestEffort, AT_NS);
        assertEquals(NEVER, rig.anticipation.nextNs(), "best effort preempts nothing");
        final DispatchRig gate = rig(new DispatchRig(FixedPriority.INSTANCE, false, 1));
        gate.anticipation.hint(gate.task(1, 10), AT_NS);
        assertEquals(NEVER, gate.anticipation.nextNs(), "a gate disables nothing");
        final DispatchRig observer = rig(new DispatchRig(RoundRobin.INSTANCE));
        observer.anticipation.hint(observer.task(1, 10), AT_NS);
        assertEquals(NEVER, observer.anticipation.nextNs(), "the policy disables nothing");
    }

    @Test
    void shouldServeTheHigherOfTwoHintsThatAreDue() {
        rig.anticipation.hint(high, AT_NS);
        rig.anticipation.hint(middle, AT_NS - LEAD_NS);
        poll(AT_NS - 2 * LEAD_NS);
        assertEquals(List.of(1), off(), "of the middle one");
        poll(AT_NS - LEAD_NS);
        assertEquals(List.of(1, 2), off(), "of the high one");
        rig.begin(high, 1, true);
        rig.end(high, 1);
        assertEquals(List.of(1), off(), "the middle one may still come");
    }

    @Test
    void shouldDisableLowerWorkAsLongBeforeTheBeginAsThatTakes() {
        rig.anticipation.hint(middle, AT_NS);
        assertEquals(AT_NS - LEAD_NS, rig.anticipation.nextNs());
        poll(AT_NS - LEAD_NS - 1);
        assertEquals(List.of(), rig.enforcer.off());
        poll(AT_NS - LEAD_NS);
        assertEquals(List.of(1), off(), "the higher task's context stays enabled");
        assertEquals(1, rig.count(Counter.HINTS_ACTED));
        assertEquals(1, journaled(Abi.ANTICIPATION_ACTED));
    }

    @Test
    void shouldEnableItAgainWhenTheBeginDoesNotCome() {
        rig.anticipation.hint(middle, AT_NS);
        poll(AT_NS);
        assertEquals(AT_NS + Anticipator.LATE_MIN_NS, rig.anticipation.nextNs(), "it may be late by 1 ms at least");
        poll(AT_NS + Anticipator.LATE_MIN_NS);
        assertEquals(List.of(), rig.enforcer.off());
        assertEquals(1, rig.count(Counter.HINTS_WASTED));
        assertEquals(NEVER, rig.anticipation.nextNs());
    }

    @Test
    void shouldActNoMoreOnceTheBeginCame() {
        rig.anticipation.hint(middle, AT_NS);
        poll(AT_NS);
        rig.begin(middle, 1, true);
        assertEquals(List.of(1), off(), "for the segment now");
        assertEquals(NEVER, rig.anticipation.nextNs());
        rig.end(middle, 1);
        assertEquals(List.of(), rig.enforcer.off());
        assertEquals(0, rig.count(Counter.HINTS_WASTED));
    }

    @Test
    void shouldPreemptNoRunningSegmentForOneThatHasNotBegun() {
        rig.begin(low, 1, true);
        rig.anticipation.hint(high, AT_NS);
        poll(AT_NS);
        assertEquals(List.of(), rig.enforcer.off());
        rig.end(low, 1);
        assertEquals(List.of(1, 2), off(), "it may still come, and now nobody runs");
    }

    @Test
    void shouldFollowTheLaterOfTwoHintsOfOneTask() {
        rig.anticipation.hint(middle, AT_NS);
        poll(AT_NS);
        rig.anticipation.hint(middle, 2 * AT_NS);
        rig.decisions.settle();
        assertEquals(List.of(), rig.enforcer.off(), "until its time");
        assertEquals(2 * AT_NS - LEAD_NS, rig.anticipation.nextNs());
    }

    @Test
    void shouldForgetTheHintOfATaskThatIsClosed() {
        rig.anticipation.hint(middle, AT_NS);
        rig.anticipation.close(low);
        assertEquals(AT_NS - LEAD_NS, rig.anticipation.nextNs(), "another's");
        rig.anticipation.close(middle);
        assertEquals(NEVER, rig.anticipation.nextNs());
    }

    @Test
    void shouldSayTheNextTimeOfAllGpus() {
        final DispatchRig two = rig(new DispatchRig(FixedPriority.INSTANCE, true, 2));
        final TaskEntry onFirst = two.task(1, 10);
        two.anticipation.hint(onFirst, AT_NS);
        two.scheduler.addContext(7, 1, ContextKind.MANAGED);
        final TaskEntry onSecond = two.taskOf(onFirst, 2, 7, 1);
        two.anticipation.hint(onSecond, AT_NS / 2);
        assertEquals(AT_NS / 2 - LEAD_NS, two.anticipation.nextNs());
    }

    private static long toldExpected(final TaskEntry task) {
        return DispatchRig.told(task).stream().filter("expected"::equals).count();
    }

    @Test
    void shouldTellNoClientWhereBoundsAreProven() {
        rig.anticipation.saysNothing();
        rig.anticipation.hint(middle, AT_NS);
        poll(AT_NS - LEAD_NS);
        rig.enforcer.enforce(rig.clock.nowNs());
        rig.decisions.settle();
        assertEquals(0, toldExpected(middle));
        assertEquals(List.of(1), off(), "it is anticipated nevertheless");
    }

    @Test
    void shouldTellTheClientOfAnExpectedBeginWhenItIsDecidedAndWhenItIsEnforced() {
        rig.anticipation.hint(middle, AT_NS);
        assertEquals(0, toldExpected(middle), "not due yet");
        poll(AT_NS - LEAD_NS);
        assertEquals(1, toldExpected(middle));
        rig.decisions.settle();
        assertEquals(1, toldExpected(middle), "nothing has changed");
        rig.enforcer.enforce(rig.clock.nowNs());
        rig.anticipation.enforced(0, rig.enforcer.enforcedVersion());
        assertEquals(2, toldExpected(middle));
        rig.begin(middle, 1, true);
        rig.enforcer.enforce(rig.clock.nowNs());
        rig.anticipation.enforced(0, rig.enforcer.enforcedVersion());
        rig.end(middle, 1);
        assertEquals(2, toldExpected(middle), "it came");
        assertEquals(0, toldExpected(low) + toldExpected(high), "nobody else is told");
    }

    @Test
    void shouldTellNoClientOfAnExpectedBeginWhileARealTimeSegmentRuns() {
        rig.begin(low, 1, true);
        rig.anticipation.hint(high, AT_NS);
        poll(AT_NS);
        rig.enforcer.enforce(rig.clock.nowNs());
        rig.anticipation.enforced(0, rig.enforcer.enforcedVersion());
        assertEquals(0, toldExpected(high));
        rig.end(low, 1);
        assertEquals(1, toldExpected(high), "it may still come");
    }

    @Test
    void shouldTellTheClientOfEachBeginThatIsAnticipatedAndOfNoOther() {
        rig.policy.apply(new PolicySettings(null, null, 0, new PolicySettings.Ahead(null, 20), List.of(),
            List.of(), ""));
        final TaskEntry task = periodic(4, 40);
        play(task, BEGINS);
        assertTrue(task.anticipated > 0);
        assertEquals(2 * task.anticipated, toldExpected(task), "decided and enforced");
    }

    // ---- from a declared period ------------------------------------------------------------------------------------

    @Test
    void shouldDisableLowerWorkAheadOfTheBeginsOfAPeriodicTask() {
        // here disabling takes no time, so that the GPU is reserved for the whole lead
        rig.policy.apply(new PolicySettings(null, null, 0, new PolicySettings.Ahead(null, 20), List.of(),
            List.of(), ""));
        final TaskEntry task = periodic(4, 40);
        final long nextNs = play(task, BEGINS);
        assertEquals(nextNs - LEAD_NS - 2 * PER_CONTEXT_NS, rig.anticipation.nextNs());
        poll(rig.anticipation.nextNs());
        assertEquals(List.of(1, 2, 3), off());
        assertTrue(rig.count(Counter.ANTICIPATED) > 0);
        assertEquals(rig.count(Counter.ANTICIPATED), task.anticipated);
        assertEquals(task.anticipated, journaled(Abi.ANTICIPATION_ACTED));
        assertTrue(task.reservedNs > 0);
        assertEquals(0, rig.count(Counter.HINTS_ACTED));
    }

    @Test
    void shouldWaitForABeginThatIsLateNoLongerThanTheBudgetAllows() {
        // as above: of each begin the whole lead is spent
        rig.policy.apply(new PolicySettings(null, null, 0, new PolicySettings.Ahead(null, 20), List.of(),
            List.of(), ""));
        final TaskEntry task = periodic(4, 40);
        final long stoppedNs = play(task, BEGINS);
        while (rig.anticipation.nextNs() < stoppedNs + 100 * PERIOD_NS) {
            poll(rig.anticipation.nextNs());
        }
        assertEquals(List.of(), rig.enforcer.off());
        assertEquals(NEVER, rig.anticipation.nextNs(), "it is not expected any more");
        assertEquals(rig.count(Counter.ANTICIPATIONS_WASTED), task.anticipationsWasted);
        assertTrue(task.anticipationsWasted >= 1 && task.anticipationsWasted <= 3, "" + task.anticipationsWasted);
        assertEquals(task.anticipationsWasted, journaled(Abi.ANTICIPATION_WASTED));
    }

    @Test
    void shouldAnticipateNothingWhereItIsSwitchedOff() {
        rig.policy.apply(new PolicySettings(null, null, 0, new PolicySettings.Ahead(Anticipate.OFF, -1),
            List.of(), List.of(), ""));
        final TaskEntry task = periodic(4, 40);
        play(task, BEGINS);
        assertEquals(NEVER, rig.anticipation.nextNs());
        assertEquals(0, rig.count(Counter.ANTICIPATED));
        assertEquals(0, toldExpected(task));
    }

    @Test
    void shouldAnticipateATaskThatIsNamedAlthoughTheOthersAreNot() {
        rig.policy.apply(new PolicySettings(null, null, 0, new PolicySettings.Ahead(Anticipate.OFF, -1),
            List.of(new PolicySettings.TaskRule("periodic4", new PolicySettings.Share(0, -1, 0), null, -1, -1,
            Anticipate.DECLARED)), List.of(), ""));
        final TaskEntry task = periodic(4, 40);
        rig.policy.applyRule(task);
        play(task, BEGINS);
        assertTrue(rig.count(Counter.ANTICIPATED) > 0);
    }

    @Test
    void shouldCountBeginsForWhichThereIsNoBudget() {
        rig.policy.apply(new PolicySettings(null, null, 0, new PolicySettings.Ahead(null, 0), List.of(),
            List.of(), ""));
        final TaskEntry task = periodic(4, 40);
        play(task, BEGINS);
        assertEquals(0, rig.count(Counter.ANTICIPATED));
        assertTrue(task.anticipationsOverBudget > 0);
        assertEquals(rig.count(Counter.ANTICIPATIONS_OVER_BUDGET), task.anticipationsOverBudget);
        assertEquals(task.anticipationsOverBudget, journaled(Abi.ANTICIPATION_OVER_BUDGET));
        assertEquals(0, task.reservedNs);
    }
}

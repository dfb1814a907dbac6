/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static dev.gpuseg.daemon.dispatch.DispatchRig.told;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.ipc.journal.EventKind;
import java.util.List;
import org.junit.jupiter.api.Test;

class DecisionApplierTest {
    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);

    @Test
    void shouldTellNothingToATaskThatWasClosedWithinTheSameEvent() {
        final TaskEntry task = rig.task(1, 10);
        rig.scheduler.begin(task.id, 1, 0, 0, false, 1, 1);
        rig.tasks.remove(task);
        rig.decisions.settle();
        assertEquals(List.of(), told(task));
        assertEquals(List.of(), rig.events.events);
    }

    @Test
    void shouldAnswerBeforeAnythingIsJournaled() {
        final TaskEntry task = rig.task(1, 10);
        rig.scheduler.begin(task.id, 5, 0, 0, false, 1, 1);
        rig.decisions.answer();
        assertTrue(told(task).contains("granted 5"));
        assertEquals(List.of(), rig.events.events);
        rig.decisions.record();
        assertEquals(List.of(EventKind.GRANT, EventKind.ENFORCED), rig.events.kinds());
    }

    @Test
    void shouldDoNothingTwice() {
        final TaskEntry task = rig.task(1, 10);
        rig.begin(task, 5, true);
        final List<String> before = List.copyOf(told(task));
        final int events = rig.events.events.size();
        rig.decisions.settle();
        assertEquals(before, told(task));
        assertEquals(events, rig.events.events.size());
    }

    @Test
    void shouldShowAndCountAPreemptionAndTheResumption() {
        final TaskEntry low = rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(low, 1, true);
        rig.forget(low, high);
        rig.begin(high, 2, true);
        assertEquals(List.of("preemption counted", "preempted"),
            told(low).stream().filter(text -> text.startsWith("preempt")).toList());
        assertEquals(1, low.preemptions);
        assertEquals(1, rig.count(Counter.PREEMPTIONS));
        assertEquals(EventKind.PREEMPT, rig.events.events.get(0).kind());
        assertEquals(high.id, rig.events.events.get(0).arg0());
        rig.enforcer.enforce(1);
        rig.grants.poll(0, rig.enforcer.enforcedVersion());
        rig.forget(low, high);
        rig.end(high, 2);
        assertTrue(told(low).contains("running"), told(low).toString());
        assertEquals(1, rig.count(Counter.RESUMES));
        assertTrue(rig.events.kinds().contains(EventKind.RESUME));
    }

    @Test
    void shouldWritePreGrants() {
        final TaskEntry low = rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, 1, true);
        assertTrue(told(low).contains("pregrant false"), told(low).toString());
        rig.end(high, 1);
        assertTrue(told(low).contains("pregrant true"));
        assertFalse(rig.events.texts().stream().anyMatch(text -> text.contains("pregrant")), "no event");
    }

    @Test
    void shouldCountMissesAndOverruns() {
        final TaskEntry late = rig.task(1, new TaskOpen(1, 1, "late", 10, 10, 0, true, 0, 50, 80,
            OverrunAction.NOTIFY, 0, 0, 0, 0));
        rig.begin(late, 3, true);
        rig.at(1_000);
        assertEquals(1, rig.count(Counter.DEADLINE_MISSES));
        assertEquals(1, rig.count(Counter.OVERRUNS));
        assertEquals(1, late.overruns);
        assertTrue(told(late).containsAll(List.of("miss counted", "overrun counted")), told(late).toString());
        assertTrue(rig.events.kinds().containsAll(List.of(EventKind.MISS, EventKind.OVERRUN)));
    }

    @Test
    void shouldGiveTimeSlicesToTheEnforcerAtOnce() {
        final Decisions decisions = new Decisions(rig.desired);
        decisions.onTimeslice(0, 4, 500);
        assertEquals(List.of("timeslice 4 500"), rig.enforcer.calls);
        assertEquals(0, decisions.count());
    }

    @Test
    void shouldKeepMoreDecisionsThanAnyEventHadBefore() {
        final Decisions decisions = new Decisions(rig.desired);
        for (int i = 0; i < 1_000; i++) {
            decisions.onPreempt(0, i, 2L * i, 3 * i);
        }
        assertEquals(1_000, decisions.count());
        for (int i = 0; i < 1_000; i++) {
            assertEquals(Decisions.PREEMPT, decisions.kind(i));
            assertEquals(i, decisions.task(i));
            assertEquals(2L * i, decisions.ticket(i));
            assertEquals(3L * i, decisions.argument(i));
        }
        decisions.clear();
        assertEquals(0, decisions.count());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.Reservation;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.enforce.DesiredState;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A hint reserves the GPU for one context: with the scheduler that decides, into what enforcers read. */
class ReservationTest {
    private static final int LOW = 1;
    private static final int MIDDLE = 2;
    private static final int HIGH = 3;
    private static final int BYSTANDER = 4;
    private static final int CONTEXTS = 5;
    private static final long TICKET = 1;

    private final DesiredState desired = new DesiredState(CONTEXTS);
    private final SegmentScheduler scheduler = new SegmentScheduler(
        new SchedulerConfig(FixedPriority.INSTANCE, 1, CONTEXTS, CONTEXTS, true, true, Unmanaged.BEST_EFFORT),
        new ToDesired());
    private final Reservation reservation = new Reservation(scheduler, desired, 0, CONTEXTS);

    /** Three processes with a task each and one without; ids of contexts and tasks are the same. */
    private void machine(final boolean keepReady) {
        scheduler.setKeepReady(keepReady, 0);
        for (int id = LOW; id <= BYSTANDER; id++) {
            scheduler.addContext(id, 0, ContextKind.MANAGED);
        }
        for (int id = LOW; id <= HIGH; id++) {
            scheduler.addTask(new TaskParameters(id, id, 10 * id, 0, 0, 0, true));
        }
    }

    /** Which contexts an enforcer would disable now; context 0 has no process. */
    private List<Integer> off() {
        reservation.follow();
        desired.commit();
        final boolean[] off = new boolean[CONTEXTS];
        desired.snapshot(off);
        return IntStream.rangeClosed(LOW, BYSTANDER).filter(c -> off[c]).boxed().toList();
    }

    private void begin(final int task, final boolean waits) {
        scheduler.begin(task, TICKET, 0, 0, !waits, 1, 1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldTakeLowerWorkOffUntilTheBeginOfTheHintDoesNotCome(final boolean keepReady) {
        machine(keepReady);
        assertEquals(List.of(), off());
        reservation.start(HIGH, HIGH);
        assertEquals(List.of(LOW, MIDDLE, BYSTANDER), off());
        reservation.end();
        assertEquals(List.of(), off());
    }

    @Test
    void shouldSpareWhomTheBeginOfTheHintWillLeaveOn() {
        machine(true);
        reservation.start(MIDDLE, MIDDLE);
        assertEquals(List.of(LOW, BYSTANDER), off());
        reservation.end();
        begin(MIDDLE, true);
        assertEquals(List.of(LOW, BYSTANDER), off(), "as its segment does");
    }

    @Test
    void shouldTakeEverybodyElseOffWhereContextsAreNotKeptReady() {
        machine(false);
        reservation.start(MIDDLE, MIDDLE);
        assertEquals(List.of(LOW, HIGH, BYSTANDER), off());
    }

    /** With keep-ready no context need be off while a segment runs: all others outrank it. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldNotTakeARunningSegmentOffForOneThatHasNotBegun(final boolean waits) {
        machine(true);
        scheduler.removeContext(BYSTANDER, 1);
        reservation.start(HIGH, HIGH);
        assertTrue(off().contains(LOW));
        begin(LOW, waits);
        assertEquals(List.of(), off());
        assertTrue(reservation.isActive(), "the begin is still expected");
        scheduler.end(LOW, TICKET, 2);
        assertTrue(off().contains(LOW), "as before");
    }

    @Test
    void shouldKeepNothingForATaskWhoseHintWasReplaced() {
        machine(true);
        reservation.start(LOW, LOW);
        assertEquals(List.of(BYSTANDER), off());
        reservation.end();
        reservation.start(HIGH, HIGH);
        assertEquals(List.of(LOW, MIDDLE, BYSTANDER), off());
    }

    @Test
    void shouldPublishOnlyChanges() {
        machine(true);
        off();
        final long version = desired.commit();
        assertFalse(reservation.follow());
        assertFalse(desired.isNewerThan(version));
        reservation.start(HIGH, HIGH);
        assertTrue(reservation.follow());
        assertTrue(desired.isNewerThan(version));
        assertFalse(reservation.follow());
    }

    @Test
    void shouldKeepTheOwnStateOfASparedContext() {
        machine(true);
        reservation.start(MIDDLE, MIDDLE);
        reservation.follow();
        desired.set(HIGH, false);
        assertEquals(List.of(HIGH), off(), "a reservation counts while no context is set off");
        desired.set(HIGH, true);
        assertEquals(List.of(LOW, BYSTANDER), off(), "and the context is spared as before");
        reservation.end();
        assertEquals(List.of(), off());
    }

    /** What the daemon's log of decisions does with contexts. */
    private final class ToDesired implements DecisionSink {
        @Override
        public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
            desired.set(contextId, enabled);
        }

        @Override
        public void onPreempt(final int gpu, final int taskId, final long ticket, final int byTaskId) {
            // contexts are what is looked at
        }

        @Override
        public void onResume(final int gpu, final int taskId, final long ticket) {
            // the same
        }

        @Override
        public void onGrant(final int gpu, final int taskId, final long ticket) {
            // the same
        }

        @Override
        public void onPregrant(final int taskId, final boolean pregranted) {
            // the same
        }

        @Override
        public void onDeadlineMiss(final int taskId, final long ticket, final long deadlineNs) {
            // the same
        }

        @Override
        public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
            // the same
        }
    }
}

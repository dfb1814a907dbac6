/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A task of 100 Hz beside a program with kernels of about 1.8 ms, one after the other, where only launches can be held:
 * expected begins are ahead of the end of what is in flight, as far as the budget allows.
 */
@Timeout(60)
class DrainAnticipationTest {
    private static final long US = 1_000;
    private static final long STEP_NS = 10 * US;
    private static final long PERIOD_NS = 10_000 * US;
    private static final long SEGMENT_NS = 400 * US;
    private static final int WARM = 100;
    private static final int BEGINS = 300;
    private static final int PERIODIC = 1;
    private static final int BEST_EFFORT = 2;

    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final Random random = new Random(20261123);
    private final TaskEntry task;
    private final FakeSlot slot;
    private long nowNs = 1;
    /** When the kernel that is in flight ends. */
    private long endNs;
    private boolean held;
    private long kernels;

    DrainAnticipationTest() {
        rig.enforcer.mechanism.capabilities =
            new Capabilities(Capabilities.GATE, 0, 0, 0, 0, 64, false, "process", true);
        rig.anticipation.started();
        task = rig.task(PERIODIC,
            new TaskOpen(PERIODIC, PERIODIC, "periodic", 80, 80, 0, true, PERIOD_NS, PERIOD_NS, 0));
        final TaskEntry other = rig.task(BEST_EFFORT, 0);
        rig.begin(other, 1, false);
        slot = (FakeSlot) other.slot;
    }

    private void budget(final Anticipate anticipate, final int percent) {
        rig.policy.apply(new PolicySettings(null, null, 0, new PolicySettings.Ahead(anticipate, percent),
            List.of(), List.of(), ""));
    }

    /** One step of all: the program, the enforcer, the dispatcher. */
    private void step() {
        nowNs += STEP_NS;
        rig.clock.set(nowNs);
        if (slot.inFlight && nowNs >= endNs) {
            slot.drainedNs = endNs;
            slot.inFlight = false;
        }
        if (!slot.inFlight && !held) {
            slot.inFlight = true;
            endNs = nowNs + (1500 + random.nextInt(600)) * US;
            kernels++;
        }
        final boolean off = rig.enforcer.off().contains(BEST_EFFORT);
        if (off != held) {
            held = off;
            rig.anticipation.applied(0, BEST_EFFORT, off, nowNs);
        }
        rig.enforcer.enforce(nowNs);
        rig.anticipation.enforced(0, rig.enforcer.enforcedVersion());
        if (rig.anticipation.poll(nowNs) > 0) {
            rig.decisions.settle();
        }
    }

    private void until(final long atNs) {
        while (nowNs < atNs) {
            step();
        }
    }

    /** What the begins found in flight. */
    private record Found(long meanNs, long percentLate, long reservedPermille, long kernelsEachSecond) {}

    private Found play() {
        long sum = 0;
        long late = 0;
        long reservedNs = 0;
        long kernelsBefore = 0;
        for (int i = 1; i <= BEGINS; i++) {
            until(i * PERIOD_NS);
            if (i == WARM) {
                reservedNs = task.reservedNs;
                kernelsBefore = kernels;
            }
            final long waitNs = slot.inFlight ? Math.max(0, endNs - nowNs) : 0;
            sum += i > WARM ? waitNs : 0;
            late += i > WARM && waitNs > 200 * US ? 1 : 0;
            rig.begin(task, i, false);
            until(nowNs + Math.max(SEGMENT_NS, waitNs + SEGMENT_NS));
            rig.end(task, i);
        }
        final int n = BEGINS - WARM;
        return new Found(sum / n, late * 100 / n, (task.reservedNs - reservedNs) * 1000 / (n * PERIOD_NS),
            (kernels - kernelsBefore) * 1_000_000_000 / (n * PERIOD_NS));
    }

    @Test
    void shouldFindWorkInFlightAtMostBeginsWithoutAnticipation() {
        budget(Anticipate.OFF, 10);
        final Found found = play();
        assertTrue(found.percentLate > 70, found.toString());
        assertEquals(0, found.reservedPermille);
    }

    @Test
    void shouldFindTheGpuFreeIfTheBudgetCoversHalfAKernel() {
        budget(Anticipate.DECLARED, 20);
        final Found found = play();
        assertTrue(found.percentLate <= 3, found.toString());
        assertTrue(found.meanNs < 30 * US, found.toString());
        assertTrue(found.reservedPermille > 50 && found.reservedPermille <= 200, found.toString());
    }

    @Test
    void shouldKeepTheBudgetAndFindLessInFlightWithASmallOne() {
        budget(Anticipate.DECLARED, 8);
        final Found found = play();
        assertTrue(found.reservedPermille <= 80, found.toString());
        assertTrue(found.percentLate < 60 && found.percentLate > 5, found.toString());
    }

    @Test
    void shouldJournalWhatTheDrainTook() {
        play();
        final long costs = rig.events.events.stream()
            .filter(e -> e.flags() == Abi.ANTICIPATION_COST && e.arg2() == 1 && e.arg1() - e.arg0() > 300 * US).count();
        assertTrue(costs > BEGINS / 4, costs + " of " + BEGINS);
    }
}

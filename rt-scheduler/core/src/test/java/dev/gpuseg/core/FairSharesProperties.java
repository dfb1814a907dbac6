/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Shares and caps under random weights, groups, real-time intrusions and late timers. */
class FairSharesProperties {
    private static final long MS = 1_000_000;
    private static final int TASKS = 5;
    private static final int REAL_TIME = 9;

    // All tries of a property share one instance: set anew by machine().
    private OnTime sink;
    private long nowNs;
    private long ticket;

    private SegmentScheduler machine(final boolean preemptive) {
        sink = new OnTime();
        nowNs = 1;
        ticket = 0;
        final SegmentScheduler s = new SegmentScheduler(
            new SchedulerConfig(FixedPriority.INSTANCE, 1, 31, 31, preemptive, true, Unmanaged.BEST_EFFORT), sink);
        for (int c = 1; c <= TASKS; c++) {
            s.addContext(c, 0, ContextKind.MANAGED);
            s.addTask(new TaskParameters(c, c, 0, 0, 0, 0, true));
        }
        s.addContext(REAL_TIME, 0, ContextKind.MANAGED);
        s.addTask(new TaskParameters(REAL_TIME, REAL_TIME, 50, 0, 0, 0, true));
        return s;
    }

    private void run(final SegmentScheduler s, final long forNs, final long lateNs) {
        final long untilNs = nowNs + forNs;
        while (s.nextTimerNs() <= untilNs) {
            step(s, Math.min(untilNs, s.nextTimerNs() + lateNs));
        }
        step(s, untilNs);
    }

    private void step(final SegmentScheduler s, final long atNs) {
        nowNs = atNs;
        sink.until(nowNs);
        s.onTimer(nowNs);
    }

    // Every group always wants the GPU: none is ever more than some quanta away from its share.
    @Property(tries = 150)
    void shouldGiveEveryGroupItsShare(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final SegmentScheduler s = machine(true);
        final long quantumNs = MS * random.nextInt(1, 20);
        s.setSharing(Sharing.TURNS, quantumNs, nowNs);
        final int[] group = new int[TASKS + 1];
        final int[] weight = new int[4];
        for (int g = 0; g < weight.length; g++) {
            weight[g] = random.nextInt(50, 800);
            s.setWeight(g, weight[g], nowNs);
        }
        final Set<Integer> used = new HashSet<>();
        for (int c = 1; c <= TASKS; c++) {
            group[c] = random.nextInt(weight.length);
            used.add(group[c]);
            s.setGroup(c, group[c], nowNs);
            s.begin(c, ++ticket, 0, 0, false, nowNs, nowNs);
        }
        sink.until(nowNs);
        sink.reset();
        long bestEffortNs = 0;
        for (int i = 0; i < 400; i++) {
            final long pieceNs = random.nextLong(1, 3 * quantumNs);
            run(s, pieceNs, 0);
            bestEffortNs += pieceNs;
            if (random.nextInt(3) == 0) {
                s.begin(REAL_TIME, ++ticket, 0, 0, false, nowNs, nowNs);
                assertEquals(0, sink.count(1, TASKS + 1), "real time first");
                run(s, random.nextLong(1, quantumNs), 0);
                s.end(REAL_TIME, ticket, nowNs);
            }
        }
        final long total = used.stream().mapToLong(g -> weight[g]).sum();
        for (int c = 1; c <= TASKS && used.size() > 1; c++) {
            final double ideal = (double) bestEffortNs * weight[group[c]] / total;
            if (takesTurns(used, weight, group)) {
                assertEquals(ideal, sink.onNs[c], 8.0 * quantumNs, "context " + c);
            }
        }
    }

    private static boolean takesTurns(final Set<Integer> used, final int[] weight, final int[] group) {
        return used.stream().mapToDouble(g -> (double) weight[g] / Arrays.stream(group).skip(1).filter(x -> x == g)
            .count()).distinct().count() > 1;
    }

    // Whatever happens, no period of any cap is exceeded by more than the timers were late, and work is conserved.
    @Property(tries = 150)
    void shouldKeepCapsAndConserveWork(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final SegmentScheduler s = machine(true);
        final long periodNs = 20 * MS;
        final long[] quotaNs = new long[TASKS + 1];
        for (int c = 1; c <= TASKS; c++) {
            quotaNs[c] = random.nextInt(2) == 0 ? 0 : MS * random.nextInt(1, 20);
            s.setCap(s.ownGroup(c), quotaNs[c], periodNs, nowNs);
            s.setWeight(s.ownGroup(c), random.nextInt(1, 1000), nowNs);
        }
        final long startNs = nowNs;
        final boolean[] begun = new boolean[32];
        final long[] ran = new long[TASKS + 1];
        final long[] ranTotal = new long[TASKS + 1];
        final long lateNs = 50_000;
        while (nowNs - startNs < 40 * periodNs) {
            final int t = random.nextInt(6) == 0 ? REAL_TIME : random.nextInt(1, TASKS + 1);
            if (begun[t]) {
                s.end(t, s.ticket(t), nowNs);
            } else {
                s.begin(t, ++ticket, 0, 0, false, nowNs, nowNs);
            }
            begun[t] = !begun[t];
            long leftNs = random.nextLong(1, 4 * MS);
            while (leftNs > 0) {
                check(s, begun);
                // step to the next timer, the next period or the end of this piece
                final long toPeriodNs = periodNs - (nowNs - startNs) % periodNs;
                final long stepNs = Math.max(1, Math.min(Math.min(leftNs, toPeriodNs),
                    Math.max(1, s.nextTimerNs() + random.nextLong(lateNs) - nowNs)));
                for (int c = 1; c <= TASKS; c++) {
                    if (begun[c] && s.state(c) == SegmentState.RUNNING) {
                        ran[c] += stepNs;
                        ranTotal[c] += stepNs;
                    }
                }
                step(s, nowNs + stepNs);
                leftNs -= stepNs;
                if ((nowNs - startNs) % periodNs == 0) {
                    for (int c = 1; c <= TASKS; c++) {
                        assertTrue(quotaNs[c] == 0 || ran[c] <= quotaNs[c] + 2 * lateNs, "cap of " + c);
                        ran[c] = 0;
                    }
                }
            }
        }
        for (int c = 1; c <= TASKS; c++) {
            assertTrue(quotaNs[c] == 0 || ranTotal[c] <= 41 * quotaNs[c] + 2 * lateNs, "overuse is paid back by " + c);
        }
    }

    private static int[] states(final SegmentScheduler s) {
        final int[] states = new int[TASKS + 1];
        for (int c = 1; c <= TASKS; c++) {
            states[c] = s.state(c);
        }
        return states;
    }

    private void check(final SegmentScheduler s, final boolean[] begun) {
        int running = 0;
        boolean uncapped = false;
        for (int c = 1; c <= TASKS; c++) {
            final boolean runs = s.state(c) == SegmentState.RUNNING;
            running += runs ? 1 : 0;
            uncapped |= begun[c] && s.quotaNs(s.ownGroup(c)) == 0;
            assertTrue(!runs || sink.on[c], "who runs is on");
            assertTrue(!begun[c] || runs || !sink.on[c], "whose turn it is not is off");
        }
        if (begun[REAL_TIME]) {
            assertEquals(SegmentState.RUNNING, s.state(REAL_TIME), "real time first");
            assertEquals(0, running);
        } else {
            assertTrue(running > 0 || !uncapped, "the GPU is not idle while a group without a cap waits");
        }
    }

    // A gate displaces nothing, whatever weights and caps say.
    @Property(tries = 50)
    void shouldDisplaceNothingAtTheGate(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final SegmentScheduler s = machine(false);
        for (int c = 1; c <= TASKS; c++) {
            s.setWeight(s.ownGroup(c), random.nextInt(1, 1000), nowNs);
            s.setCap(s.ownGroup(c), random.nextInt(2) * 5 * MS, 20 * MS, nowNs);
        }
        final boolean[] begun = new boolean[32];
        for (int i = 0; i < 300; i++) {
            final int t = random.nextInt(1, TASKS + 1);
            final int[] before = states(s);
            if (begun[t]) {
                s.end(t, s.ticket(t), nowNs);
                before[t] = SegmentState.IDLE;
            } else {
                s.begin(t, ++ticket, 0, 0, false, nowNs, nowNs);
            }
            begun[t] = !begun[t];
            run(s, random.nextLong(1, 4 * MS), 0);
            for (int c = 1; c <= TASKS; c++) {
                assertTrue(before[c] != SegmentState.RUNNING || s.state(c) == SegmentState.RUNNING);
                assertTrue(sink.on[c]);
            }
        }
    }
}

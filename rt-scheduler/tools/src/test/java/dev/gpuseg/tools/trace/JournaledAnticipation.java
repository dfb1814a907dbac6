/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.Reservation;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalRing;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * The part of a {@link JournaledRun} that concerns expected begins: which tasks begin when, and an {@link Anticipator}
 * that is told in the dispatcher's order, with its decisions journaled as the dispatcher does.
 *
 * <pre>
 *   task   GPU   begins
 *   1      0     without a pattern
 *   7      0     soon after each end of task 1: a chain
 *   2      1     in a period that it declares
 *   4      1     at two distances in turn: a cycle
 * </pre>
 */
final class JournaledAnticipation implements Anticipator.Sink {
    /** The task whose begins follow from the end of another one only. */
    static final int CHAINED = 7;
    /** The task whose begins follow from distances only. */
    static final int CYCLIC = 4;
    private static final int FIRST = 1;
    private static final int PERIODIC = 2;
    private static final List<Integer> PATTERNED = List.of(FIRST, CHAINED, PERIODIC, CYCLIC);
    private static final int SIZE = 16;
    private static final long US = 1_000;
    private static final long MS = 1_000_000;
    private static final long PERIOD_NS = 9 * MS;
    private static final long COST_NS = 300 * US;
    private static final long SEGMENT_NS = 400 * US;
    private static final int[] BUDGETS = {0, 50_000, Anticipator.PPM};

    /** Decided, not journaled yet. */
    private record Decided(int what, int gpu, int task, long arg0, long arg1, long arg2) {
    }

    /** A GPU, whose contexts take a while to be disabled. */
    private static final class Gpu implements Reservation.Target {
        private long sinceNs;
        private boolean reserved;

        @Override
        public void reserve(final int contextId) {
            reserved = true;
            sinceNs = 0;
        }

        @Override
        public void spare(final int contextId) {
            // which contexts they are is of no meaning here
        }

        @Override
        public void unreserve() {
            reserved = false;
        }
    }

    private final JournalRing ring;
    private final Random random;
    private final Anticipator anticipator;
    private final Gpu[] gpus = new Gpu[JournaledRun.GPUS];
    private final List<Decided> decided = new ArrayList<>();
    private final long[] beginNs = new long[SIZE];
    private final long[] endNs = new long[SIZE];
    private Anticipate mode = Anticipate.LEARNED;
    private int budgetPpm = Anticipator.PPM;
    private boolean odd;

    JournaledAnticipation(final JournalRing ring, final SchedulerConfig sizes, final SegmentScheduler scheduler,
        final long seed) {
        this.ring = ring;
        random = new Random(seed);
        for (int g = 0; g < gpus.length; g++) {
            gpus[g] = new Gpu();
        }
        anticipator = new Anticipator(sizes, scheduler, gpus, this);
        for (int g = 0; g < gpus.length; g++) {
            anticipator.stateCost(g, COST_NS, 0);
            text(g, COST_NS, 0, "disabling on GPU " + g + " takes " + COST_NS + " ns and 0 ns for each further context",
                1);
        }
        set(1);
        for (final int t : PATTERNED) {
            beginNs[t] = t == CHAINED ? Long.MAX_VALUE : MS;
            endNs[t] = Long.MAX_VALUE;
        }
    }

    private void text(final int gpu, final long arg0, final long arg1, final String text, final long nowNs) {
        assertTrue(ring.writeText(EventKind.POLICY, nowNs, gpu, 0, 0, 0, arg0, arg1, text));
    }

    private void set(final long nowNs) {
        anticipator.setMode(mode);
        anticipator.setBudget(budgetPpm);
        text(0, mode.ordinal(), budgetPpm, "anticipate " + mode.label() + ", budget " + budgetPpm + " ppm", nowNs);
    }

    /** 0 = none. */
    static long declaredNs(final int t) {
        return t == PERIODIC ? PERIOD_NS : 0;
    }

    // ---- what happens when -----------------------------------------------------------------------------------------

    /** When something is due. */
    long nextNs() {
        long nextNs = anticipator.nextNs();
        for (final int t : PATTERNED) {
            nextNs = Math.min(nextNs, Math.min(beginNs[t], endNs[t]));
        }
        return nextNs;
    }

    /** The task that begins now, the negative of one that ends now; 0 = none. */
    int due(final long nowNs) {
        for (final int t : PATTERNED) {
            if (endNs[t] <= nowNs) {
                endNs[t] = Long.MAX_VALUE;
                if (t == FIRST && random.nextInt(8) != 0) {
                    beginNs[CHAINED] = nowNs + 500 * US + random.nextLong(50 * US);
                }
                return -t;
            }
            if (beginNs[t] <= nowNs) {
                endNs[t] = nowNs + SEGMENT_NS;
                beginNs[t] = next(t, beginNs[t]);
                return t;
            }
        }
        return 0;
    }

    private long next(final int t, final long fromNs) {
        switch (t) {
            case FIRST:
                return fromNs + 3 * MS + random.nextLong(6 * MS);
            case PERIODIC:
                return fromNs + PERIOD_NS;
            case CYCLIC:
                odd = !odd;
                return fromNs + (odd ? 3 * MS : 7 * MS);
            default:
                return Long.MAX_VALUE;
        }
    }

    /** A task that has no pattern. */
    int other(final int tasks) {
        int t = FIRST;
        while (PATTERNED.contains(t)) {
            t = 1 + random.nextInt(tasks);
        }
        return t;
    }

    /** Some setting, or a hint. The caller settles. */
    void change(final int t, final long nowNs) {
        switch (random.nextInt(8)) {
            case 0 -> {
                mode = random.nextInt(4) == 0 ? Anticipate.DECLARED : Anticipate.LEARNED;
                set(nowNs);
            }
            case 1 -> {
                budgetPpm = BUDGETS[random.nextInt(BUDGETS.length)];
                set(nowNs);
            }
            case 2 -> {
                final Anticipate wish = random.nextInt(4) == 0 ? Anticipate.OFF : Anticipate.LEARNED;
                final int of = PATTERNED.get(random.nextInt(PATTERNED.size()));
                anticipator.setWish(of, wish, nowNs);
                text(0, of, wish.ordinal(), "anticipation of task " + of + " is " + wish.label(), nowNs);
            }
            default -> {
                final long atNs = nowNs + random.nextLong(3 * MS);
                assertTrue(ring.write(EventKind.HINT, nowNs, 0, 0, t, 0, 0, 0, atNs, 0, 0));
                anticipator.hint(t, atNs, nowNs);
            }
        }
    }

    // ---- in the dispatcher's order ---------------------------------------------------------------------------------

    void open(final int t, final int gpu, final int contextId, final int priority) {
        anticipator.open(t, gpu, contextId, priority, declaredNs(t));
    }

    void ranked(final int t, final int priority, final long nowNs) {
        anticipator.setRank(t, priority, nowNs);
    }

    void close(final int t, final long nowNs) {
        anticipator.close(t, nowNs);
    }

    void closed(final int t, final long nowNs) {
        follow(nowNs);
        decided.removeIf(decision -> decision.task == t);
    }

    void begin(final int t, final long nowNs) {
        anticipator.begin(t, nowNs);
    }

    void learn(final int t, final long atNs, final long nowNs) {
        anticipator.learn(t, atNs, atNs, nowNs);
    }

    void end(final int t, final long nowNs) {
        anticipator.end(t, nowNs);
    }

    void follow(final long nowNs) {
        for (int g = 0; g < gpus.length; g++) {
            anticipator.follow(g, nowNs);
        }
    }

    /** What was to be disabled is, some steps later. */
    void enforced(final long nowNs) {
        for (int g = 0; g < gpus.length; g++) {
            if (gpus[g].reserved && gpus[g].sinceNs == 0) {
                gpus[g].sinceNs = nowNs;
            } else if (gpus[g].reserved && gpus[g].sinceNs > 0) {
                assertTrue(ring.write(EventKind.ANTICIPATE, nowNs, g, Abi.ANTICIPATION_COST, 0, 0, 0, 0,
                    gpus[g].sinceNs, nowNs, 1));
                anticipator.enforced(g, 1, gpus[g].sinceNs, nowNs);
                gpus[g].sinceNs = -1;
            }
        }
    }

    /** Whether something was due; then the caller settles. */
    boolean poll(final long nowNs) {
        if (anticipator.nextNs() > nowNs) {
            return false;
        }
        anticipator.onTimer(nowNs);
        assertTrue(ring.write(EventKind.ANTICIPATE, nowNs, 0, Abi.ANTICIPATION_DUE, 0, 0, 0, 0, 0, 0, 0));
        return true;
    }

    void record(final long nowNs) {
        for (final Decided one : decided) {
            assertTrue(ring.write(EventKind.ANTICIPATE, nowNs, one.gpu, one.what, one.task, 0, 0, 0, one.arg0, one.arg1,
                one.arg2));
        }
        decided.clear();
    }

    @Override
    public void onAnticipated(final int gpu, final int taskId, final long expectedNs, final long leadNs,
        final boolean isHint) {
        decided.add(new Decided(Abi.ANTICIPATION_ACTED, gpu, taskId, expectedNs, leadNs, isHint ? 1 : 0));
    }

    @Override
    public void onWasted(final int gpu, final int taskId, final boolean isHint) {
        decided.add(new Decided(Abi.ANTICIPATION_WASTED, gpu, taskId, 0, 0, isHint ? 1 : 0));
    }

    @Override
    public void onOverBudget(final int gpu, final int taskId) {
        decided.add(new Decided(Abi.ANTICIPATION_OVER_BUDGET, gpu, taskId, 0, 0, 0));
    }

    @Override
    public void onReserved(final int gpu, final int taskId, final long ns) {
        decided.add(new Decided(Abi.ANTICIPATION_RESERVED, gpu, taskId, ns, 0, 0));
    }
}

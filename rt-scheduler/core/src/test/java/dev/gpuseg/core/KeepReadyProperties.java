/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import java.util.TreeSet;
import java.util.function.ToIntFunction;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * A scheduler that keeps contexts ready beside one that does not, given the same events of every kind: it decides the
 * same about segments, pre-grants and timers, and has the ready contexts on in addition.
 */
class KeepReadyProperties {
    private static final int GPUS = 2;
    private static final int TASKS = 10;
    private static final int CONTEXTS = 8;
    private static final int STEPS = 200;
    private static final int EVENTS = 60;
    private static final long CAP_NS = SegmentScheduler.PERIOD_MIN_NS;

    /** Knows which contexts are off by what it was told, and is told nothing twice. */
    private static final class Told extends Recorder {
        private final TreeSet<Integer> off = new TreeSet<>();

        @Override
        public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
            assertTrue(enabled ? off.remove(contextId) : off.add(contextId), "context " + contextId + ", "
                + enabled + " was known");
        }
    }

    private final Told plainTold = new Told();
    private final Told readyTold = new Told();
    private final int[] contextOf = new int[TASKS];
    private final int[] gpuPriority = new int[TASKS];
    private final boolean[] known = new boolean[CONTEXTS];
    private final ContextKind[] kindOf = new ContextKind[CONTEXTS];
    private Random random;
    private SegmentScheduler plain;
    private SegmentScheduler ready;
    private Policy policy;
    private long nowNs;
    private int keptReady;
    private int keptReadyHigh;

    @Property(tries = 1000)
    void keepingReadyChangesNothingButThatReadyContextsAreOn(@ForAll final long seed) {
        new KeepReadyProperties().run(seed);   // the instance is the same for all tries
    }

    /** Without this the property could hold because no context ever stays on. */
    @Example
    void contextsAreReadyOftenAlsoOfHighPriorities() {
        int all = 0;
        int high = 0;
        for (int seed = 0; seed < 100; seed++) {
            final KeepReadyProperties one = new KeepReadyProperties();
            one.run(seed);
            all += one.keptReady;
            high += one.keptReadyHigh;
        }
        assertTrue(all > 1000 && high > 500, all + " contexts stayed on, " + high + " of priority 64 and higher");
    }

    private void run(final long seed) {
        random = new Random(seed);
        policy = FixedPriority.INSTANCE;
        nowNs = 1;
        plain = scheduler(plainTold);
        ready = scheduler(readyTold);
        ready.setKeepReady(true, nowNs);
        for (int c = 0; c < CONTEXTS; c++) {
            addContext(c);
        }
        for (int t = 0; t < TASKS; t++) {
            addTask(t);
        }
        for (int i = 0; i < STEPS; i++) {
            nowNs += 1 + random.nextInt(30);
            event();
            compare();
        }
    }

    private static SegmentScheduler scheduler(final DecisionSink sink) {
        return new SegmentScheduler(new SchedulerConfig(FixedPriority.INSTANCE, GPUS, TASKS, CONTEXTS, true, true,
            Unmanaged.BEST_EFFORT), sink);
    }

    private int both(final ToIntFunction<SegmentScheduler> event) {
        final int outcome = event.applyAsInt(plain);
        assertEquals(outcome, event.applyAsInt(ready));
        return outcome;
    }

    private void event() {
        final int t = random.nextInt(TASKS);
        final int c = random.nextInt(CONTEXTS);
        switch (random.nextInt(EVENTS)) {
            case 0, 1, 2 -> {
                final int priority = priority();
                final int higher = priority == 0 || random.nextBoolean() ? 0 : 1 + random.nextInt(99);
                both(s -> s.setPriority(t, priority, higher, nowNs) ? 1 : 0);
                gpuPriority[t] = higher == 0 ? priority : higher;
            }
            case 3, 4 -> {
                final OverrunAction action = OverrunAction.values()[random.nextInt(4)];
                both(s -> s.setOverrunAction(t, action, nowNs) ? 1 : 0);
            }
            case 5, 6, 7 -> {
                both(s -> s.removeTask(t, nowNs) ? 1 : 0);
                addTask(t);
            }
            case 8, 9 -> kind(c);
            case 10 -> {
                both(s -> s.removeContext(c, nowNs) ? 1 : 0);
                share(c, 0, false);   // its weight went with it; the other GPU would learn that at its next event
                known[c] = false;
                plainTold.off.remove(c);
                readyTold.off.remove(c);
            }
            case 11, 12 -> addContext(c);
            case 13 -> setPolicy(random.nextBoolean() ? 0 : random.nextInt(9));
            case 14 -> both(s -> s.removeTask(t, nowNs) ? 1 : 0);
            case 15 -> share(c, random.nextInt(3), known[c]);
            case 16, 17 -> {
                for (int i = 0; i < 3 * CONTEXTS; i++) {
                    share(i / 3, i % 3, false);
                }
            }
            case 18, 19, 20, 21, 22 -> {
                plain.onTimer(nowNs);
                ready.onTimer(nowNs);
            }
            default -> segment(t);
        }
    }

    /** Weight, cap or group of a context becomes unusual, or usual again. */
    private void share(final int c, final int what, final boolean unusual) {
        final int weight = unusual ? 1 + random.nextInt(9) : SegmentScheduler.WEIGHT_DEFAULT;
        final long quotaNs = unusual ? 1 + random.nextInt((int) CAP_NS) : 0;
        both(s -> {
            if (what == 0) {
                s.setWeight(s.ownGroup(c), weight, nowNs);
            } else if (what == 1) {
                s.setCap(s.ownGroup(c), quotaNs, CAP_NS, nowNs);
            } else {
                s.setGroup(c, unusual ? 0 : SegmentScheduler.NONE, nowNs);
            }
            return 0;
        });
    }

    private void segment(final int t) {
        if (plain.state(t) == SegmentState.IDLE) {
            final boolean ahead = plain.isPregranted(t) ? random.nextInt(4) > 0 : random.nextInt(6) == 0;
            both(s -> s.begin(t, nowNs, 0, 0, ahead, nowNs, nowNs));
        } else if (random.nextInt(3) > 0) {
            both(s -> s.end(t, s.ticket(t), nowNs));
        }
    }

    private int priority() {
        return random.nextInt(4) == 0 ? 0 : 1 + random.nextInt(99);
    }

    private void addTask(final int t) {
        final int c = random.nextInt(CONTEXTS);
        if (!known[c] || plain.isOpen(t) || kindOf[c] == ContextKind.UNMANAGED) {
            return;
        }
        final TaskParameters p = new TaskParameters(t, c, priority(), 0, random.nextInt(2) * 100L,
            random.nextInt(2) * 60L, random.nextInt(5) > 0)
            .onOverrun(OverrunAction.values()[random.nextInt(4)]).inPartition(c % 3);
        contextOf[t] = c;
        gpuPriority[t] = p.gpuPriority();
        plain.addTask(p);
        ready.addTask(p);
    }

    private void addContext(final int c) {
        if (!known[c]) {
            known[c] = true;
            kindOf[c] = random.nextInt(6) == 0 ? ContextKind.UNMANAGED : ContextKind.MANAGED;
            plain.addContext(c, c % GPUS, kindOf[c]);
            ready.addContext(c, c % GPUS, kindOf[c]);
        }
    }

    private void kind(final int c) {
        final ContextKind kind = ContextKind.values()[random.nextInt(ContextKind.values().length)];
        if (known[c] && (kind != ContextKind.UNMANAGED || openTasks(c) == 0)) {
            kindOf[c] = kind;
            plain.setContextKind(c, kind);
            ready.setContextKind(c, kind);
        }
    }

    private void setPolicy(final int which) {
        policy = which < 4 ? FixedPriority.INSTANCE : which < 6 ? new HighestClassFirst(1 + random.nextInt(30))
            : which == 6 ? EarliestDeadlineFirst.INSTANCE : which == 7 ? RoundRobin.INSTANCE
            : History.policyNamed("partitions-fp");
        plain.setPolicy(policy, nowNs);
        ready.setPolicy(policy, nowNs);
    }

    private int openTasks(final int c) {
        int n = 0;
        for (int t = 0; t < TASKS; t++) {
            n += plain.isOpen(t) && contextOf[t] == c ? 1 : 0;
        }
        return n;
    }

    private void compare() {
        assertEquals(plain.nextTimerNs(), ready.nextTimerNs());
        assertEquals(plainTold.take(), readyTold.take(), "all but contexts, call by call");
        for (int t = 0; t < TASKS; t++) {
            assertEquals(plain.state(t), ready.state(t), "task " + t);
            assertEquals(plain.isPregranted(t), ready.isPregranted(t), "pre-grant of task " + t);
        }
        for (int gpu = 0; gpu < GPUS; gpu++) {
            assertEquals(plain.runningTask(gpu), ready.runningTask(gpu));
        }
        for (int c = 0; c < CONTEXTS; c++) {
            final boolean isReady = known[c] && isInForce(c % GPUS) && mayBeginAtOnce(c);
            assertEquals(plain.contextDesired(c) || isReady, ready.contextDesired(c), "context " + c);
            assertEquals(!plain.contextDesired(c), plainTold.off.contains(c), "context " + c + " as told");
            assertEquals(!ready.contextDesired(c), readyTold.off.contains(c), "context " + c + " as told");
        }
    }

    /** Some segment is begun, and nothing but the policy's order holds anybody back. */
    private boolean isInForce(final int gpu) {
        boolean gated = policy.isTimed();
        for (int c = 0; c < CONTEXTS; c++) {
            final int own = plain.ownGroup(c);
            gated |= plain.weight(own) != SegmentScheduler.WEIGHT_DEFAULT || plain.quotaNs(own) > 0
                || known[c] && plain.group(c) != own;
        }
        for (int t = 0; t < TASKS; t++) {
            gated |= plain.isSuspended(t) && contextOf[t] % GPUS == gpu;
        }
        return plain.begunCount(gpu) > 0 && !gated;
    }

    /** The context's only task is idle and need not wait. */
    private boolean mayBeginAtOnce(final int c) {
        for (int t = 0; t < TASKS && openTasks(c) == 1; t++) {
            if (plain.isOpen(t) && contextOf[t] == c) {
                final boolean may = plain.state(t) == SegmentState.IDLE && plain.isPregranted(t);
                final boolean counts = may && !plain.contextDesired(c);
                keptReady += counts ? 1 : 0;
                keptReadyHigh += counts && isHigh(t) ? 1 : 0;
                return may;
            }
        }
        return false;
    }

    /** In the second word of the priorities in use. */
    private boolean isHigh(final int t) {
        return gpuPriority[t] >= Long.SIZE;
    }
}

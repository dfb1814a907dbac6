/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.trace;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.ipc.Abi;
import dev.gpuseg.daemon.journal.EventKind;
import dev.gpuseg.daemon.journal.JournalAgent;
import dev.gpuseg.daemon.journal.JournalRing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;

/**
 * A journal of any run, written in the daemon's order (an input, then what was decided of it; some grants later), gives
 * the same decisions again.
 */
class DecisionReplayProperties {
    private static final int TASKS = 8;
    private static final int CONTEXTS = 4;
    private static final long BUDGET_NS = 40;
    private static final long DEADLINE_NS = 90;
    private static final int STEPS = 400;
    private static final int CHOICES = 100_000;

    /** Drives a scheduler and journals as the dispatcher does. */
    private static final class Run implements DecisionSink {
        private final JournalRing ring;
        private final SegmentScheduler scheduler;
        private final List<Runnable> decided = new ArrayList<>();
        private final List<long[]> toldLater = new ArrayList<>();
        private final long[] ticket = new long[TASKS + 1];
        private boolean late;
        private long nowNs = 1;

        Run(final JournalRing ring, final String policy, final boolean preemptive) {
            this.ring = ring;
            scheduler = new SegmentScheduler(new SchedulerConfig(Policy.named(policy), 1, TASKS, CONTEXTS, preemptive,
                true, Unmanaged.BEST_EFFORT), this);
            final ObjectNode start = JsonNodeFactory.instance.objectNode();
            start.put("policy", policy).put("gpus", 1).put("tasks_max", TASKS).put("contexts_max", CONTEXTS)
                .put("preemptive", preemptive).put("optimistic", true).put("unmanaged", "best-effort");
            ring.writeText(EventKind.START, nowNs, 0, 0, 0, 0, 0, 0, start.toString());
            for (int c = 1; c <= CONTEXTS; c++) {
                scheduler.addContext(c, 0, ContextKind.MANAGED);
                ring.writeText(EventKind.CONTEXT_OPEN, nowNs, 0, 0, c, 0, c, ContextKind.MANAGED.ordinal(), "c" + c);
            }
            for (int t = 1; t <= TASKS; t++) {
                open(t);
            }
        }

        private void open(final int t) {
            final int priority = t % 3 == 0 ? 0 : 10 * t;
            scheduler.addTask(new TaskParameters(t, 1 + t % CONTEXTS, priority, 0, DEADLINE_NS, t % 2 * BUDGET_NS,
                true).onOverrun(OverrunAction.DEMOTE));
            ring.writeText(EventKind.TASK_OPEN, nowNs, 0, t, 1 + t % CONTEXTS, 0, priority, 0,
                "{\"name\":\"t" + t + "\",\"priority\":" + priority + ",\"gpu_priority\":" + priority
                    + ",\"deadline_ns\":" + DEADLINE_NS + ",\"budget_ns\":" + t % 2 * BUDGET_NS
                    + ",\"on_overrun\":\"demote\",\"optimistic\":true}");
            ticket[t] = 0;
        }

        private void write(final EventKind kind, final int flags, final int t, final long of, final long arg0,
            final long arg1, final long arg2) {
            assertTrue(ring.write(kind, nowNs, 0, flags, t, of, 1 + t % CONTEXTS, 0, arg0, arg1, arg2));
        }

        private void record() {
            final List<Runnable> all = List.copyOf(decided);
            decided.clear();
            all.forEach(Runnable::run);
        }

        void step(final int choice) {
            nowNs += choice % 17;
            late = choice % 5 == 0;
            final int t = 1 + choice / 7 % TASKS;
            final int what = choice / 100 % 10;
            if (!toldLater.isEmpty() && choice % 3 == 0) {
                final long[] told = toldLater.remove(0);
                write(EventKind.GRANT, 0, (int) told[0], told[1], 0, 0, 0);
            }
            if (what < 4) {
                begin(t, choice);
            } else if (what < 7) {
                end(t, what == 6);
            } else if (what == 7) {
                scheduler.onTimer(nowNs);
                record();
            } else if (what == 8) {
                final Policy policy = Policy.named(List.of("fp", "edf", "rr").get(choice % 3));
                scheduler.setPolicy(policy, nowNs);
                ring.writeText(EventKind.POLICY, nowNs, 0, 0, 0, 0, 0, 0, "policy " + policy.name());
                record();
            } else {
                scheduler.removeTask(t, nowNs);
                decided.removeIf(r -> ((Later) r).task == t);
                toldLater.removeIf(told -> told[0] == t);
                write(EventKind.TASK_CLOSE, 0, t, 0, 0, 0, 0);
                record();
                open(t);
            }
        }

        private void begin(final int t, final int choice) {
            final boolean optimistic = scheduler.isPregranted(t) && choice % 2 == 0;
            final long next = ticket[t] + 1;
            if (scheduler.begin(t, next, nowNs - 1, 0, optimistic, nowNs - 1, nowNs) == Outcome.ACCEPTED) {
                ticket[t] = next;
                write(EventKind.BEGIN, optimistic ? Abi.FLAG_OPTIMISTIC : 0, t, next, nowNs - 1, nowNs - 1,
                    scheduler.deadlineNs(t));
            }
            record();
        }

        private void end(final int t, final boolean cancelled) {
            if (scheduler.state(t) != SegmentState.IDLE) {
                scheduler.end(t, ticket[t], nowNs);
                toldLater.removeIf(told -> told[0] == t);
                write(cancelled ? EventKind.CANCEL : EventKind.END, 0, t, ticket[t], nowNs, 0, 0);
            }
            record();
        }

        /** A decision whose event is written after that of its cause. */
        private final class Later implements Runnable {
            private final int task;
            private final Runnable writes;

            Later(final int task, final Runnable writes) {
                this.task = task;
                this.writes = writes;
            }

            @Override
            public void run() {
                writes.run();
            }
        }

        @Override
        public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
            // not journaled
        }

        @Override
        public void onPregrant(final int taskId, final boolean pregranted) {
            // not journaled
        }

        @Override
        public void onPreempt(final int gpu, final int t, final long of, final int by) {
            decided.add(new Later(t, () -> write(EventKind.PREEMPT, 0, t, of, by, 0, 0)));
        }

        @Override
        public void onResume(final int gpu, final int t, final long of) {
            decided.add(new Later(t, () -> write(EventKind.RESUME, 0, t, of, 0, 0, 0)));
        }

        @Override
        public void onGrant(final int gpu, final int t, final long of) {
            final boolean waits = late;
            decided.add(new Later(t, () -> {
                write(waits ? EventKind.DECIDED : EventKind.GRANT, 0, t, of, 0, 0, 0);
                if (waits) {
                    toldLater.add(new long[] {t, of});
                }
            }));
        }

        @Override
        public void onDeadlineMiss(final int t, final long of, final long deadlineNs) {
            decided.add(new Later(t, () -> write(EventKind.MISS, 0, t, of, deadlineNs, 0, 0)));
        }

        @Override
        public void onOverrun(final int t, final long of, final long budgetNs) {
            decided.add(new Later(t, () -> {
                write(EventKind.OVERRUN, 0, t, of, budgetNs, 0, 0);
                toldLater.removeIf(told -> told[0] == t && scheduler.ticket(t) != of);   // the gate ended it
            }));
        }
    }

    @Property(tries = 25, shrinking = ShrinkingMode.OFF)
    void shouldDecideTheSameAgain(@ForAll final long seed, @ForAll final boolean preemptive,
        @ForAll final boolean edf) throws IOException {
        final Path directory = Files.createTempDirectory("gpuseg-replay-test-");
        try {
            try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 20);
                JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 22)) {
                final Run run = new Run(ring, edf ? "edf" : "fp", preemptive);
                final Random random = new Random(seed);
                for (int i = 0; i < STEPS; i++) {
                    run.step(random.nextInt(CHOICES));
                }
                agent.drain();
            }
            final DecisionReplay.Result result = DecisionReplay.of(Source.open(directory.resolve("journal")));
            assertTrue(result.agrees(), result::toString);
            assertTrue(result.decisions() > 20 && result.inputs() > 100, result::toString);
        } finally {
            dev.gpuseg.daemon.ipc.RuntimeDirectory.deleteTree(directory);
        }
    }
}

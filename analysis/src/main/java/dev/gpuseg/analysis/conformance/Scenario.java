/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import dev.gpuseg.core.TaskParameters;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;

/**
 * One machine with eight tasks, each in a context of its own, and what happens to them. The tasks follow from the seed
 * alone, so that events can be left out without changing anything else.
 *
 * @param seed       of tasks and events
 * @param preemptive whether contexts can be disabled
 * @param optimistic whether tasks are pre-granted
 * @param keepReady  whether contexts of idle tasks above the ceiling stay enabled
 * @param events     in order of time
 */
record Scenario(long seed, boolean preemptive, boolean optimistic, boolean keepReady, List<Event> events) {
    static final int TASKS = 8;
    private static final int[] PRIORITIES = {0, 10, 10, 20, 30, 99};
    private static final int PARTITIONS = 3;

    /** What can happen. */
    enum Kind {
        BEGIN, END, PRIORITY, DEATH, TIMER
    }

    /**
     * One event.
     *
     * @param kind       what happens
     * @param task       1..{@link #TASKS}
     * @param stepNs     since the event before
     * @param deadlineNs begin: from now, 0 = none
     * @param priority   the new one of a PRIORITY event
     */
    record Event(Kind kind, int task, long stepNs, long deadlineNs, int priority) {
        @Override
        public String toString() {
            final String what = "+" + stepNs + " ns: ";
            return switch (kind) {
                case BEGIN -> what + "task " + task + " begins" + (deadlineNs == 0 ? ""
                    : ", deadline in " + deadlineNs + " ns");
                case END -> what + "task " + task + " ends";
                case PRIORITY -> what + "task " + task + " gets priority " + priority;
                case DEATH -> what + "the process of task " + task + " dies and starts again";
                case TIMER -> what + "timer";
            };
        }
    }

    static Scenario random(final long seed, final int length) {
        final SplittableRandom random = new SplittableRandom(~seed);
        final List<Event> events = new ArrayList<>(length);
        for (int i = 0; i < length; i++) {
            final int pick = random.nextInt(100);
            final Kind kind = pick < 50 ? Kind.BEGIN : pick < 82 ? Kind.END : pick < 90 ? Kind.PRIORITY
                : pick < 95 ? Kind.DEATH : Kind.TIMER;
            events.add(new Event(kind, 1 + random.nextInt(TASKS), random.nextInt(4) == 0 ? 0 : random.nextLong(20),
                random.nextInt(3) == 0 ? 0 : 10 * (1 + random.nextLong(12)),
                PRIORITIES[random.nextInt(PRIORITIES.length)]));
        }
        final boolean preemptive = random.nextInt(4) > 0;
        return new Scenario(seed, preemptive, random.nextInt(3) > 0, random.nextBoolean(), events);
    }

    /** The tasks, index 0 unused. */
    TaskParameters[] tasks() {
        final SplittableRandom random = new SplittableRandom(seed);
        final TaskParameters[] tasks = new TaskParameters[TASKS + 1];
        for (int t = 1; t <= TASKS; t++) {
            final int priority = PRIORITIES[random.nextInt(PRIORITIES.length)];
            tasks[t] = new TaskParameters(t, t, priority, 0, 0, random.nextInt(3) * 15L, random.nextInt(4) > 0)
                .inPartition(random.nextInt(PARTITIONS));
        }
        return tasks;
    }

    Scenario with(final List<Event> other) {
        return new Scenario(seed, preemptive, optimistic, keepReady, other);
    }

    /** Everything that is needed to see it again. */
    String text() {
        final TaskParameters[] tasks = tasks();
        final String who = events.stream().map(Event::task).distinct().sorted().map(t -> "task " + t + " (priority "
            + tasks[t].priority() + (tasks[t].budgetNs() == 0 ? "" : ", budget " + tasks[t].budgetNs() + " ns")
            + (tasks[t].partition() == 0 ? "" : ", partition " + tasks[t].partition()) + ")")
            .collect(Collectors.joining(", "));
        return "seed " + seed + (preemptive ? "" : ", gate") + (optimistic ? "" : ", no pre-grants") + "; " + who + "; "
            + events.stream().map(Event::toString).collect(Collectors.joining("; "));
    }
}

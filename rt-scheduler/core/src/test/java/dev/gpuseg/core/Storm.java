/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** A storm of random events without garbage: everything that an event needs is prepared or primitive. */
final class Storm {
    private static final int KINDS = 100;

    private final SegmentScheduler scheduler;
    private final TaskParameters[] parameters;
    private final int tasks;
    private final int contexts;
    private final int gpus;
    private final Policy[] policies = {FixedPriority.INSTANCE, EarliestDeadlineFirst.INSTANCE, RoundRobin.INSTANCE};
    private final long[] lastTicket;
    private long random;
    private long nowNs = 1;

    Storm(final SegmentScheduler scheduler, final int gpus, final int contexts, final int tasks, final long seed) {
        this.scheduler = scheduler;
        this.gpus = gpus;
        this.contexts = contexts;
        this.tasks = tasks;
        random = seed;
        lastTicket = new long[tasks];
        parameters = new TaskParameters[tasks];
        for (int c = 0; c < contexts; c++) {
            scheduler.addContext(c, c % gpus, ContextKind.MANAGED);
        }
        for (int t = 0; t < tasks; t++) {
            final int priority = next(3) == 0 ? 0 : 1 + next(99);
            parameters[t] = new TaskParameters(t, t % contexts, priority, 0, next(2) * 5000L, next(2) * 300L,
                next(4) != 0);
            scheduler.addTask(parameters[t]);
        }
    }

    /** One random event. */
    void event() {
        nowNs += next(100);
        final int kind = next(KINDS);
        final int t = next(tasks);
        if (kind < 45) {
            scheduler.begin(t, ++lastTicket[t], 0, 0, scheduler.isPregranted(t), nowNs, nowNs);
        } else if (kind < 80) {
            final int running = scheduler.runningTask(next(gpus));
            if (running >= 0) {
                scheduler.end(running, scheduler.ticket(running), nowNs);
            }
        } else if (kind < 90) {
            scheduler.cancel(t, scheduler.ticket(t), nowNs);
        } else if (kind < 94) {
            scheduler.onTimer(Math.min(nowNs, scheduler.nextTimerNs()));
        } else if (kind < 96) {
            scheduler.setPriority(t, next(100), 0, nowNs);
        } else if (kind < 98) {
            scheduler.removeTask(t, nowNs);
            scheduler.addTask(parameters[t]);
            lastTicket[t] = 0;
        } else if (kind == 98) {
            restart(next(contexts));
        } else {
            scheduler.setPolicy(policies[next(policies.length)], nowNs);
        }
    }

    /** The process of a context dies and starts again. */
    private void restart(final int c) {
        scheduler.removeContext(c, nowNs);
        scheduler.addContext(c, c % gpus, ContextKind.MANAGED);
        for (int t = c; t < tasks; t += contexts) {
            scheduler.addTask(parameters[t]);
            lastTicket[t] = 0;
        }
    }

    private int next(final int bound) {
        random ^= random << 13;
        random ^= random >>> 7;
        random ^= random << 17;
        return (int) ((random >>> 33) % bound);
    }
}

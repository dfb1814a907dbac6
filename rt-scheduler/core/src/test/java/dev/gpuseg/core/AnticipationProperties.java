/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * Real-time work is not delayed by forecasts, however wrong they are: the same begins and ends, at the same times, with
 * and without anticipation. Declared periods lie, cycles change, chains break, begins drift and stop.
 */
class AnticipationProperties {
    private static final int TASKS = 3;
    private static final int BYSTANDER = TASKS + 1;
    private static final int IDS = TASKS + 2;
    private static final int JOBS = 120;
    private static final long MS = 1_000_000;
    private static final int ALL = 0;

    /** A begin or an end of a task; the ticket is the number of the job. */
    private record Event(long atNs, int task, long ticket, boolean begins) {
    }

    /** What one run did: decisions in their order, when each segment became the first and when it was alone. */
    private static final class Run implements DecisionSink, Reservation.Target, Anticipator.Sink {
        private final SchedulerConfig config =
            new SchedulerConfig(FixedPriority.INSTANCE, 1, IDS, IDS, true, true, Unmanaged.BEST_EFFORT);
        private final SegmentScheduler scheduler = new SegmentScheduler(config, this);
        private final Anticipator anticipator =
            new Anticipator(config, scheduler, new Reservation.Target[] {this}, this);
        private final long costNs;
        private final List<String> decisions = new ArrayList<>();
        private final List<String> anticipations = new ArrayList<>();
        private final Map<String, Long> firstNs = new HashMap<>();
        private final Map<String, Long> aloneNs = new HashMap<>();
        private long nowNs;
        /** The task that has the GPU, with its job; 0 = none. */
        private int holder;
        private final long[] open = new long[IDS];
        private int reserved;
        private int applied;
        private int target;
        private long sinceNs;
        private long doneNs = Time.NEVER;
        private long keptNs;
        /** For how long a task had the GPU, and since when one has. */
        private long servedNs;
        private long servedSinceNs = Time.NEVER;
        private long longestKeptNs;
        private int acted;

        Run(final Anticipate mode, final int ppm, final long costNs, final long[] declaredNs) {
            this.costNs = costNs;
            scheduler.setKeepReady(false, 0);
            anticipator.setMode(mode);
            anticipator.setBudget(ppm);
            anticipator.stateCost(0, costNs, 0);
            scheduler.addContext(BYSTANDER, 0, ContextKind.MANAGED);
            for (int t = 1; t <= TASKS; t++) {
                scheduler.addContext(t, 0, ContextKind.MANAGED);
                scheduler.addTask(new TaskParameters(t, t, 90 - 20 * t, 0, 0, 0, true));
                anticipator.open(t, 0, t, 90 - 20 * t, declaredNs[t]);
            }
        }

        void play(final List<Event> events) {
            for (final Event event : events) {
                until(event.atNs);
                nowNs = event.atNs;
                if (event.begins) {
                    anticipator.begin(event.task, nowNs);
                    open[event.task] = event.ticket;
                    scheduler.begin(event.task, event.ticket, 0, 0, true, nowNs, nowNs);
                } else {
                    open[event.task] = 0;
                    scheduler.end(event.task, event.ticket, nowNs);
                    anticipator.end(event.task, nowNs);
                }
                settle();
                if (event.begins) {
                    anticipator.learn(event.task, nowNs, 0, nowNs);
                    settle();
                }
            }
        }

        private void until(final long atNs) {
            while (Math.min(anticipator.nextNs(), doneNs) < atNs) {
                nowNs = Math.max(nowNs, Math.min(anticipator.nextNs(), doneNs));
                if (doneNs <= nowNs) {
                    doneNs = Time.NEVER;
                    applied = target;
                    if (applied != ALL && applied == desired()) {
                        anticipator.enforced(0, 1, sinceNs, nowNs);
                    }
                } else {
                    anticipator.onTimer(nowNs);
                }
                settle();
            }
        }

        /** Follows what was decided, and starts the next update if one is due and none is in progress. */
        private void settle() {
            anticipator.follow(0, nowNs);
            holder = 0;
            for (int t = TASKS; t >= 1; t--) {
                holder = open[t] != 0 ? t : holder;   // task 1 has the highest rank
            }
            if ((holder != 0) != (servedSinceNs != Time.NEVER)) {
                servedNs += holder == 0 ? nowNs - servedSinceNs : 0;
                servedSinceNs = holder == 0 ? Time.NEVER : nowNs;
            }
            if (doneNs == Time.NEVER && applied != desired()) {
                target = desired();
                sinceNs = nowNs;
                doneNs = nowNs + costNs;
            }
            if (holder != 0) {
                final String job = holder + "/" + open[holder];
                firstNs.putIfAbsent(job, nowNs);
                if (applied == holder && doneNs == Time.NEVER) {
                    aloneNs.putIfAbsent(job, nowNs);
                }
            }
        }

        private int desired() {
            return holder != 0 ? holder : reserved;
        }

        @Override
        public void reserve(final int contextId) {
            reserved = contextId;
        }

        @Override
        public void spare(final int contextId) {
            // every other context is disabled here
        }

        @Override
        public void unreserve() {
            reserved = ALL;
        }

        private void note(final String what, final long... numbers) {
            final StringBuilder line = new StringBuilder(what).append(' ').append(nowNs);
            for (final long number : numbers) {
                line.append(' ').append(number);
            }
            decisions.add(line.toString());
        }

        @Override
        public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
            note("context", contextId, enabled ? 1 : 0);
        }

        @Override
        public void onPreempt(final int gpu, final int taskId, final long ticket, final int byTaskId) {
            note("preempt", taskId, ticket, byTaskId);
        }

        @Override
        public void onResume(final int gpu, final int taskId, final long ticket) {
            note("resume", taskId, ticket);
        }

        @Override
        public void onGrant(final int gpu, final int taskId, final long ticket) {
            note("grant", taskId, ticket);
        }

        @Override
        public void onPregrant(final int taskId, final boolean pregranted) {
            note("pregrant", taskId, pregranted ? 1 : 0);
        }

        @Override
        public void onDeadlineMiss(final int taskId, final long ticket, final long deadlineNs) {
            note("miss", taskId, ticket);
        }

        @Override
        public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
            note("overrun", taskId, ticket);
        }

        @Override
        public void onAnticipated(final int gpu, final int taskId, final long expectedNs, final long leadNs,
            final boolean isHint) {
            acted++;
            anticipations.add("expect " + nowNs + " " + taskId + " " + expectedNs + " " + leadNs);
        }

        @Override
        public void onWasted(final int gpu, final int taskId, final boolean isHint) {
            anticipations.add("wasted " + nowNs + " " + taskId);
        }

        @Override
        public void onOverBudget(final int gpu, final int taskId) {
            anticipations.add("over " + nowNs + " " + taskId);
        }

        @Override
        public void onReserved(final int gpu, final int taskId, final long ns) {
            keptNs += ns;
            longestKeptNs = Math.max(longestKeptNs, ns);
            anticipations.add("kept " + nowNs + " " + taskId + " " + ns);
        }
    }

    /**
     * Windows of the three tasks, each at least one update long, in the order of time: a drifting period; two distances
     * in turn, then others; what follows the end of the second task, or does not.
     */
    private static List<Event> events(final SplittableRandom random, final long costNs) {
        final List<Event> all = new ArrayList<>();
        final List<Long> ends = new ArrayList<>();
        final long periodNs = 4 * MS + random.nextLong(20 * MS);
        final long driftNs = random.nextLong(-periodNs / 200, periodNs / 200 + 1);
        long atNs = 20 * MS;
        for (int job = 1; job <= JOBS; job++) {
            final long endNs = atNs + costNs + random.nextLong(costNs);
            add(all, 1, job, atNs, endNs);
            final boolean stops = job % 40 == 39;
            atNs = Math.max(endNs + 1, atNs + periodNs + driftNs
                + (random.nextInt(4) == 0 ? random.nextLong(2 * MS) : 0)
                + (stops ? random.nextLong(50 * periodNs) : 0));
        }
        final long[] gaps = {3 * MS + random.nextLong(10 * MS), 3 * MS + random.nextLong(30 * MS)};
        atNs = 21 * MS;
        for (int job = 1; job <= JOBS; job++) {
            final long endNs = atNs + costNs + random.nextLong(2 * costNs);
            add(all, 2, job, atNs, endNs);
            ends.add(endNs);
            if (job == JOBS / 2) {
                gaps[random.nextInt(2)] = 3 * MS + random.nextLong(20 * MS);
            }
            atNs = Math.max(endNs + 1, atNs + gaps[job % 2] + random.nextLong(MS / 5));
        }
        final long delayNs = random.nextLong(3 * MS);
        long freeNs = 0;
        for (int job = 1; job <= JOBS; job++) {
            final long beginNs = ends.get(job - 1) + delayNs + random.nextLong(MS / 4);
            if (beginNs > freeNs && random.nextInt(8) != 0) {
                freeNs = beginNs + costNs + random.nextLong(costNs);
                add(all, 3, job, beginNs, freeNs);
            }
        }
        all.sort(Comparator.comparingLong(Event::atNs).thenComparing(Event::begins).thenComparingInt(Event::task));
        return all;
    }

    private static void add(final List<Event> all, final int task, final long ticket, final long beginNs,
        final long endNs) {
        all.add(new Event(beginNs, task, ticket, true));
        all.add(new Event(endNs, task, ticket, false));
    }

    /** The declared periods are made up. */
    private static Run run(final long seed, final Anticipate mode, final int ppm) {
        final SplittableRandom random = new SplittableRandom(seed);
        final long costNs = 100_000 + random.nextLong(MS);
        final long[] declaredNs = new long[IDS];
        for (int t = 1; t <= TASKS; t++) {
            declaredNs[t] = random.nextBoolean() ? 0 : 2 * MS + random.nextLong(30 * MS);
        }
        final Run run = new Run(mode, ppm, costNs, declaredNs);
        run.play(events(random, costNs));
        return run;
    }

    /** The scheduler grants, preempts and resumes the same segments at the same times. */
    @Property(tries = 200)
    void shouldDecideTheSameWhateverIsExpected(@ForAll final long seed) {
        final Run without = run(seed, Anticipate.OFF, 0);
        assertEquals(0, without.acted);
        assertEquals(without.decisions, run(seed, Anticipate.LEARNED, Anticipator.PPM).decisions);
        assertEquals(without.decisions, run(seed, Anticipate.DECLARED, Anticipator.BUDGET_DEFAULT_PPM).decisions);
    }

    /**
     * From the moment at which a segment is the first of its GPU until it is alone: at most two updates, and at most
     * one update more than without anticipation. Without, an update for an earlier segment of its task can serve it;
     * then the time counts that an update of its own would have taken.
     */
    @Property(tries = 200)
    void shouldDelayNoSegmentByMoreThanTheUpdateInProgress(@ForAll final long seed) {
        final Run without = run(seed, Anticipate.OFF, 0);
        final Run with = run(seed, Anticipate.LEARNED, Anticipator.PPM);
        assertEquals(without.firstNs, with.firstNs);
        for (final Map.Entry<String, Long> job : with.firstNs.entrySet()) {
            final Long before = without.aloneNs.get(job.getKey());
            final Long after = with.aloneNs.get(job.getKey());
            final String what = "segment " + job.getKey() + ", first at " + job.getValue() + ", alone at " + after
                + ", without anticipation at " + before + ", one update takes " + with.costNs;
            assertTrue(after == null || before == null
                || after <= Math.max(before, job.getValue() + with.costNs) + with.costNs, what);
            assertTrue(after == null || !hadItAtOnce(with, job) || after <= job.getValue() + 2 * with.costNs, what);
        }
    }

    /** Whether nobody of higher rank came between. */
    private static boolean hadItAtOnce(final Run run, final Map.Entry<String, Long> job) {
        for (final Map.Entry<String, Long> other : run.firstNs.entrySet()) {
            if (other.getValue() > job.getValue() && run.aloneNs.get(job.getKey()) > other.getValue()) {
                return false;
            }
        }
        return true;
    }

    /** Of the time that real-time segments leave. */
    @Property(tries = 200)
    void shouldKeepTheBudgetWhateverIsExpected(@ForAll final long seed) {
        for (final int ppm : new int[] {5_000, 50_000, 300_000}) {
            final Run run = run(seed, Anticipate.LEARNED, ppm);
            final long allowedNs = (run.nowNs - run.servedNs) / Anticipator.PPM * ppm + ppm;
            assertTrue(run.keptNs <= allowedNs + TASKS * run.longestKeptNs, () -> run.keptNs + " ns with " + allowedNs
                + " allowed, the longest " + run.longestKeptNs);
        }
    }

    /** Chains and cycles among them. */
    @Property(tries = 50)
    void shouldAnticipateTheSameAgain(@ForAll final long seed) {
        assertEquals(run(seed, Anticipate.LEARNED, Anticipator.BUDGET_DEFAULT_PPM).anticipations,
            run(seed, Anticipate.LEARNED, Anticipator.BUDGET_DEFAULT_PPM).anticipations);
    }

    /** The properties are about something. */
    @Example
    void shouldAnticipateOftenAndInVain() {
        int acted = 0;
        long wasted = 0;
        int earlier = 0;
        int later = 0;
        for (int seed = 0; seed < 20; seed++) {
            final Run without = run(seed, Anticipate.OFF, 0);
            final Run with = run(seed, Anticipate.LEARNED, Anticipator.PPM);
            acted += with.acted;
            wasted += with.anticipations.stream().filter(line -> line.startsWith("wasted")).count();
            for (final Map.Entry<String, Long> job : with.aloneNs.entrySet()) {
                final Long before = without.aloneNs.get(job.getKey());
                earlier += before != null && job.getValue() < before ? 1 : 0;
                later += before != null && job.getValue() > before ? 1 : 0;
            }
        }
        assertTrue(acted > 1_000 && wasted > 100 && earlier > 500 && later > 0, acted + " anticipated, " + wasted
            + " in vain, " + earlier + " segments earlier, " + later + " later");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;
import java.util.Objects;

/**
 * Decides for which expected begins lower work is disabled ahead of time, and when. A driver's call can take as long as
 * a short segment; made before the begin it costs the segment nothing. A begin is expected because the program
 * gave a hint of it ({@link #hint}), or because it is forecast from the task's period and its begins so far ({@link
 * Anticipate}). The GPU is then <em>reserved</em> for it: nobody else has it.
 *
 * <h2>When</h2>
 * The lead is a quantile of the measured cost of disabling as many contexts as would have to go, ahead of begins once
 * that was measured, plus what the newest begins came before their forecast. The GPU is reserved until the begin, or
 * until the latest of the newest begins would have come. While a real-time segment runs nothing is disabled for a begin
 * that is only expected, and contexts that the begin would leave enabled stay enabled ({@link Reservation}). Of several
 * expected begins of a GPU, the one of highest rank counts; among equals the one that is expected first.
 *
 * <h2>After a segment</h2>
 * If a begin is due so soon after the end of a segment that enabling the others would not be done before they are to be
 * disabled again, they stay disabled. With {@link Anticipate#LEARNED} they also stay disabled after the end of a
 * segment if most of the newest begins of its task followed the end before within twice the cost of disabling (segments
 * back to back), for as long as most of these took.
 *
 * <h2>After another task</h2>
 * With {@link Anticipate#LEARNED} a begin can also be expected from the end of another task's segment ({@link
 * ChainForecast}), if the task has no period, or its begins follow that end more closely than its period. If the begin
 * usually follows sooner than the others could be enabled and disabled again, they stay disabled after that end.
 *
 * <h2>Budget</h2>
 * While the GPU is reserved, from the end of the disabling to the begin, no best-effort work runs. That time, and the
 * cost of a disabling in vain, may be a share of the time that best-effort work would have without anticipation ({@link
 * #setBudget}): the time in which no real-time segment runs, less what changes to and from them take. The highest rank
 * goes first ({@link ReservationBudget}): for each task the highest quantile is chosen with which its loss fits into
 * what the claims of the tasks before it leave. What is expected is corrected by what the newest begins did
 * cost ({@link ExpectedLoss}), and a higher quantile than the last one is chosen only if it fits with a
 * sixteenth to spare. A begin for which none fits, or whose task has spent its savings, is not anticipated, and {@link
 * Sink#onOverBudget} tells of it. Hints are outside of the budget: the share of their account pays for them
 * ({@link SegmentScheduler#chargeHints}).
 *
 * <h2>Use</h2>
 * The caller tells it of tasks, begins, costs and time, in the order in which the scheduler hears of them, and calls
 * {@link #follow} after each event. It has no other input, so equal calls give equal decisions. Times are ns of
 * CLOCK_MONOTONIC. Not thread-safe; no event allocates.
 */
public final class Anticipator {
    /** How late a begin may come after its hint, at least, ns. */
    public static final long LATE_MIN_NS = 1_000_000;
    /** The budget that is usual: 5 % of best-effort time. */
    public static final int BUDGET_DEFAULT_PPM = 50_000;
    /** All of it. */
    public static final int PPM = 1_000_000;

    private static final int NONE = SegmentScheduler.NONE;
    private static final long NEVER = Time.NEVER;
    /** A begin may come this much later than any of the newest ones, at least. */
    private static final long GRACE_MIN_NS = 200_000;
    /** Quantiles of cost and begins, in permille of the cases that are met; the first that the budget allows counts. */
    private static final int[] LEVELS = {1000, 980, 950, 900, 800, 700, 600, 500};
    /** A higher level than the last one has to fit with so much of what is left to spare. */
    private static final int SPARE_SHIFT = 4;
    /** So many begins after the newest measurement ahead of one, those are too old. */
    private static final int AHEAD_OLD = 256;
    private static final int MISS_SHIFT = 4;
    private static final int GAPS = 16;
    private static final int GAPS_MIN = 8;
    private static final int HALF = 500;
    /** A burst of three segments has two short distances of three. */
    private static final int MOST = 600;
    private static final int SLACK_SHIFT = 2;

    /** What was decided; for counters and journal. Must not call back. */
    public interface Sink {
        /**
         * Lower work is disabled for an expected begin from now on, as far as no real-time segment runs.
         *
         * @param gpu        index
         * @param taskId     whose begin
         * @param expectedNs when
         * @param leadNs     how long before it the disabling was due
         * @param isHint  whether the program gave a hint of it
         */
        void onAnticipated(int gpu, int taskId, long expectedNs, long leadNs, boolean isHint);

        /**
         * The begin did not come in time: lower work is enabled again.
         *
         * @param gpu       index
         * @param taskId    whose begin
         * @param isHint whether the program gave a hint of it
         */
        void onWasted(int gpu, int taskId, boolean isHint);

        /**
         * A begin is expected, but the budget does not allow to anticipate it.
         *
         * @param gpu    index
         * @param taskId whose begin
         */
        void onOverBudget(int gpu, int taskId);

        /**
         * The GPU was reserved, and the reservation ended.
         *
         * @param gpu    index
         * @param taskId for whom
         * @param ns     how long; of a begin that did not come with the cost of disabling
         */
        void onReserved(int gpu, int taskId, long ns);
    }

    private enum Phase { IDLE, PLANNED, OPEN, REFUSED }

    /** Why a begin is expected. All sources lead to {@link #plan}; none but a begin or a hint replaces a hint. */
    private enum Source {
        /** The begins so far, and the period. */
        FORECAST(true, true),
        /** The end of another task's segment. */
        CHAIN(true, true),
        /** Most begins follow the end before at once. */
        FOLLOW_UP(true, false),
        /** The program gave a hint of it. */
        HINT(false, false);

        /** The budget pays for the time for which the GPU is reserved; else the share of the task's account. */
        private final boolean onBudget;
        /** Whether the begin comes says how good the forecasts are. */
        private final boolean isForecast;

        Source(final boolean onBudget, final boolean isForecast) {
            this.onBudget = onBudget;
            this.isForecast = isForecast;
        }
    }

    private final SegmentScheduler scheduler;
    private final Sink sink;
    private final Reservation[] reservations;
    private final DisableCosts[] costs;
    /** Of disabling ahead of a begin: while its program launches work, the same can take longer. */
    private final DisableCosts[] aheadCosts;
    /** Measurements in a row that were none of these. */
    private final int[] notAhead;
    private final int maxTasks;

    // by task
    private final boolean[] isOpen;
    private final int[] gpuOf;
    private final int[] contextOf;
    private final int[] rank;
    private final long[] declaredNs;
    private final Anticipate[] wish;
    /** Counted in {@link #forecastable}. */
    private final boolean[] isForecastable;
    private final BeginForecast[] forecasts;
    private final ChainForecast[] chains;
    /** The task after whose ends this one begins, and the list of those that follow a task; NONE ends it. */
    private final int[] follows;
    private final int[] firstFollower;
    private final int[] nextFollower;
    private final Phase[] phase;
    /** Of the begin that is expected; of no meaning while none is. */
    private final Source[] source;
    /** From the end of a segment to the next begin of its task. */
    private final SortedWindow[] gaps;
    /** When the newest segment ended, 0 if one is begun or none was. */
    private final long[] endedNs;
    private final long[] expectedNs;
    private final long[] fromNs;
    private final long[] untilNs;
    /** Index of the level that was chosen last; past the last one if none fitted. */
    private final int[] level;
    private final ExpectedLoss[] losses;
    /** Share of the expected begins that did not come, 0..1000 permille, of about the last sixteen. */
    private final int[] missPermille;

    // by GPU
    private final TimerHeap timers;
    private final int[][] tasksOf;
    private final int[] taskCount;
    /** Real-time tasks that ended last, the newest first, each once. */
    private final int[][] recent;
    private final long[][] recentNs;
    private final int[] recentCount;
    /** The task for which the GPU is reserved, or would be if no real-time segment ran. */
    private final int[] reservedFor;
    /** Since when the GPU is reserved and all others are disabled, {@link Time#NEVER} if it is not. */
    private final long[] freeSinceNs;
    /** Since when the reservation in force is. */
    private final long[] reservedSinceNs;
    private final int[] heldFor;
    private final Source[] heldSource;
    /** How late the newest reservation was; part of the cost, so that the next one is earlier. */
    private final long[] lateNs;
    private final ReservationBudget[] budgets;
    /** How many contexts were disabled last. */
    private final int[] disabledLast;
    /** Tasks whose begins may be forecast; without any nothing is reserved on the budget. */
    private final int[] forecastable;

    private Anticipate mode = Anticipate.OFF;
    private long budgetPpm = BUDGET_DEFAULT_PPM;

    /**
     * Without tasks, and for hints only until {@link #setMode}.
     *
     * @param config    of the scheduler
     * @param scheduler decides what runs
     * @param targets   where contexts are disabled, one for each GPU
     * @param sink      receives what was decided
     */
    public Anticipator(final SchedulerConfig config, final SegmentScheduler scheduler,
        final Reservation.Target[] targets, final Sink sink) {
        this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
        this.sink = Objects.requireNonNull(sink, "sink");
        final int gpus = config.gpuCount();
        maxTasks = config.maxTasks();
        reservations = new Reservation[gpus];
        costs = new DisableCosts[gpus];
        aheadCosts = new DisableCosts[gpus];
        budgets = new ReservationBudget[gpus];
        for (int g = 0; g < gpus; g++) {
            reservations[g] = new Reservation(scheduler, targets[g], g, config.maxContexts() + 1);
            costs[g] = new DisableCosts();
            aheadCosts[g] = new DisableCosts();
            budgets[g] = new ReservationBudget(BUDGET_DEFAULT_PPM, maxTasks);
        }
        final int size = maxTasks + 1;
        isOpen = new boolean[size];
        gpuOf = new int[size];
        contextOf = new int[size];
        rank = new int[size];
        declaredNs = new long[size];
        wish = new Anticipate[size];
        isForecastable = new boolean[size];
        forecasts = new BeginForecast[size];
        chains = new ChainForecast[size];
        follows = new int[size];
        firstFollower = new int[size];
        nextFollower = new int[size];
        Arrays.fill(follows, NONE);
        Arrays.fill(firstFollower, NONE);
        phase = new Phase[size];
        Arrays.fill(phase, Phase.IDLE);
        source = new Source[size];
        Arrays.fill(source, Source.FORECAST);
        gaps = new SortedWindow[size];
        endedNs = new long[size];
        expectedNs = new long[size];
        fromNs = new long[size];
        untilNs = new long[size];
        level = new int[size];
        losses = new ExpectedLoss[size];
        missPermille = new int[size];
        timers = new TimerHeap(maxTasks);
        tasksOf = new int[gpus][size];
        taskCount = new int[gpus];
        recent = new int[gpus][ChainForecast.RECENT];
        recentNs = new long[gpus][ChainForecast.RECENT];
        recentCount = new int[gpus];
        reservedFor = new int[gpus];
        Arrays.fill(reservedFor, NONE);
        freeSinceNs = new long[gpus];
        Arrays.fill(freeSinceNs, NEVER);
        notAhead = new int[gpus];
        reservedSinceNs = new long[gpus];
        heldFor = new int[gpus];
        heldSource = new Source[gpus];
        lateNs = new long[gpus];
        disabledLast = new int[gpus];
        Arrays.fill(disabledLast, 1);
        forecastable = new int[gpus];
    }

    // ---- settings --------------------------------------------------------------------------------------------------

    /**
     * What holds for tasks that were given no wish of their own. Initially {@link Anticipate#OFF}.
     *
     * @param newMode from now on
     */
    public void setMode(final Anticipate newMode) {
        if (mode == Objects.requireNonNull(newMode, "newMode")) {
            return;
        }
        mode = newMode;
        for (int t = 0; t <= maxTasks; t++) {
            if (isOpen[t] && wish[t] == null) {
                restart(t);
            }
        }
    }

    /**
     * How much best-effort time anticipation may use, each GPU by itself. Initially {@value #BUDGET_DEFAULT_PPM} ppm.
     *
     * @param ppm 0..{@value #PPM} of the time that best-effort work would have without anticipation
     * @throws IllegalArgumentException if it is out of range
     */
    public void setBudget(final int ppm) {
        if (ppm < 0 || ppm > PPM) {
            throw new IllegalArgumentException("anticipation budget is " + ppm + " ppm; it must be 0.." + PPM);
        }
        if (budgetPpm != ppm) {
            budgetPpm = ppm;
            for (final ReservationBudget budget : budgets) {
                budget.setPpm(ppm);
            }
        }
    }

    /**
     * What the mechanism states about the cost of disabling; used until enough was measured.
     *
     * @param gpu          index
     * @param disableNs    of one context, ns
     * @param perContextNs of each further one, ns
     */
    public void stateCost(final int gpu, final long disableNs, final long perContextNs) {
        costs[gpu].state(disableNs, perContextNs);
        aheadCosts[gpu].state(disableNs, perContextNs);
    }

    // ---- tasks -----------------------------------------------------------------------------------------------------

    /**
     * A task was opened. May allocate.
     *
     * @param taskId      0..{@link SchedulerConfig#maxTasks()}
     * @param gpu         index
     * @param contextId   its context
     * @param gpuPriority 0 best effort, never anticipated; 1..99
     * @param periodNs    declared, 0 = none
     */
    public void open(final int taskId, final int gpu, final int contextId, final int gpuPriority,
        final long periodNs) {
        isOpen[taskId] = true;
        gpuOf[taskId] = gpu;
        contextOf[taskId] = contextId;
        rank[taskId] = gpuPriority;
        declaredNs[taskId] = periodNs;
        wish[taskId] = null;
        tasksOf[gpu][taskCount[gpu]++] = taskId;
        if (forecasts[taskId] == null) {
            forecasts[taskId] = new BeginForecast();
            gaps[taskId] = new SortedWindow(GAPS);
            chains[taskId] = new ChainForecast();
            losses[taskId] = new ExpectedLoss();
        }
        gaps[taskId].clear();
        endedNs[taskId] = 0;
        restart(taskId);
    }

    /**
     * A task was closed. {@link #follow} is to be called.
     *
     * @param taskId an open task
     * @param nowNs  now
     */
    public void close(final int taskId, final long nowNs) {
        if (!isOpen[taskId]) {
            return;
        }
        drop(taskId, nowNs);
        isOpen[taskId] = false;
        countForecastable(taskId, false);
        final int gpu = gpuOf[taskId];
        final int[] list = tasksOf[gpu];
        unlink(taskId);
        chains[taskId].reset();
        removeRecent(gpu, taskId);
        for (int i = 0; i < taskCount[gpu]; i++) {
            chains[list[i]].forget(taskId);
            link(list[i]);
        }
        int at = 0;
        while (list[at] != taskId) {
            at++;
        }
        list[at] = list[--taskCount[gpu]];
    }

    /**
     * What holds for one task, whatever {@link #setMode} says.
     *
     * @param taskId an open task
     * @param own    its wish; null = none
     * @param nowNs  now
     */
    public void setWish(final int taskId, final Anticipate own, final long nowNs) {
        if (isOpen[taskId] && wish[taskId] != own) {
            drop(taskId, nowNs);
            wish[taskId] = own;
            restart(taskId);
        }
    }

    /**
     * The rank of a task changed.
     *
     * @param taskId      an open task
     * @param gpuPriority 0..99
     * @param nowNs       now
     */
    public void setRank(final int taskId, final int gpuPriority, final long nowNs) {
        if (isOpen[taskId] && rank[taskId] != gpuPriority) {
            if (!Priority.isRealTime(gpuPriority)) {
                drop(taskId, nowNs);
            }
            rank[taskId] = gpuPriority;
            if (isForecastable[taskId]) {
                budgets[gpuOf[taskId]].setRank(taskId, gpuPriority);
            }
        }
    }

    private void restart(final int t) {
        final Anticipate holds = wish[t] == null ? mode : wish[t];
        unlink(t);
        chains[t].reset();
        forecasts[t].reset(holds == Anticipate.OFF ? 0 : declaredNs[t], holds == Anticipate.LEARNED);
        countForecastable(t, holds == Anticipate.LEARNED || holds == Anticipate.DECLARED && declaredNs[t] > 0);
        missPermille[t] = 0;
        level[t] = 0;
        losses[t].reset();
        if (source[t] != Source.HINT && phase[t] == Phase.PLANNED) {
            phase[t] = Phase.IDLE;
            timers.set(t, NEVER);
        }
    }

    private void countForecastable(final int t, final boolean now) {
        if (now == isForecastable[t]) {
            return;
        }
        isForecastable[t] = now;
        forecastable[gpuOf[t]] += now ? 1 : -1;
        if (now) {
            budgets[gpuOf[t]].add(t, rank[t]);
        } else {
            budgets[gpuOf[t]].remove(t);
        }
    }

    /** No begin of this task is expected any more. */
    private void drop(final int t, final long nowNs) {
        final int gpu = gpuOf[t];
        phase[t] = Phase.IDLE;
        source[t] = Source.FORECAST;
        timers.set(t, NEVER);
        if (reservedFor[gpu] == t) {
            choose(gpu, nowNs);
        }
    }

    // ---- events ----------------------------------------------------------------------------------------------------

    /**
     * A program says when its next begin will be. Replaces what was expected of the task. {@link #follow} is to be
     * called.
     *
     * @param taskId an open task
     * @param atNs   when
     * @param nowNs  now
     */
    public void hint(final int taskId, final long atNs, final long nowNs) {
        if (!isOpen[taskId] || !Priority.isRealTime(rank[taskId]) || scheduler.isSpent(taskId)
            || !scheduler.mayReserve(gpuOf[taskId])) {
            return;
        }
        drop(taskId, nowNs);
        final long leadNs = costs[gpuOf[taskId]].statedNs(Math.max(1, scheduler.disabledBy(taskId)));
        plan(taskId, Source.HINT, atNs, leadNs, atNs + Math.max(leadNs, LATE_MIN_NS), nowNs);
    }

    /**
     * A segment begins: the expected begin came, or one that was not expected. Before {@link #follow}: what the
     * scheduler decides of the begin and the end of the reservation are one change. Not if the scheduler refuses it.
     *
     * @param taskId a task
     * @param nowNs  now
     */
    public void begin(final int taskId, final long nowNs) {
        if (isOpen[taskId] && phase[taskId] != Phase.IDLE) {
            if (source[taskId].isForecast) {
                missPermille[taskId] -= missPermille[taskId] >> MISS_SHIFT;
            }
            overtake(taskId, nowNs);
            drop(taskId, nowNs);
        }
    }

    /** A begin that comes while others are being disabled for it ends that measurement. */
    private void overtake(final int t, final long nowNs) {
        final int gpu = gpuOf[t];
        if (reservedFor[gpu] == t && reservations[gpu].isInForce() && freeSinceNs[gpu] == NEVER) {
            aheadCosts[gpu].addAtLeast(Math.max(1, scheduler.disabledBy(t)),
                nowNs - reservedSinceNs[gpu] + lateNs[gpu]);
        }
    }

    /**
     * Learns from a begin and plans the next. After the scheduler was told, so that nobody waits for it.
     *
     * @param taskId    a task
     * @param beginNs   when its program began
     * @param releaseNs when its job was released, 0 = not marked
     * @param nowNs     now
     */
    public void learn(final int taskId, final long beginNs, final long releaseNs, final long nowNs) {
        if (!isOpen[taskId] || !Priority.isRealTime(rank[taskId])) {
            return;
        }
        forecasts[taskId].begin(beginNs, releaseNs);
        if (isLearned(taskId)) {
            final int gpu = gpuOf[taskId];
            chains[taskId].begin(taskId, beginNs, recent[gpu], recentNs[gpu], recentCount[gpu]);
            link(taskId);
        }
        if (endedNs[taskId] > 0) {
            gaps[taskId].add(Math.max(0, beginNs - endedNs[taskId]));
            endedNs[taskId] = 0;
        }
        if (phase[taskId] == Phase.IDLE) {
            forecast(taskId, nowNs);
        }
    }

    /**
     * A segment ended. After the scheduler was told, and before {@link #follow}: what stays disabled is not enabled in
     * between.
     *
     * @param taskId a task
     * @param nowNs  now
     */
    public void end(final int taskId, final long nowNs) {
        if (!isOpen[taskId] || !Priority.isRealTime(rank[taskId])) {
            return;
        }
        endedNs[taskId] = nowNs;
        final int gpu = gpuOf[taskId];
        addRecent(gpu, taskId, nowNs);
        for (int t = firstFollower[taskId]; t != NONE; t = nextFollower[t]) {
            chain(t, nowNs);
        }
        if (scheduler.mayReserve(gpu) && !scheduler.isRealTime(scheduler.runningTask(gpu))) {
            followUp(taskId, nowNs);
            bridge(gpu, nowNs);
        }
    }

    /** Segments of a task that follow one another at once: the others stay disabled between them. */
    private void followUp(final int t, final long nowNs) {
        final int gpu = gpuOf[t];
        final int contexts = scheduler.disabledBy(t);
        if (!isLearned(t) || source[t] == Source.HINT || contexts <= 0 || scheduler.isSpent(t)
            || gaps[t].size() < GAPS_MIN) {
            return;
        }
        final long holdNs = gaps[t].quantile(MOST);
        if (holdNs > 2 * costs[gpu].meanNs(contexts) || !budgets[gpu].isLeft(t, nowNs)) {
            return;
        }
        drop(t, nowNs);
        losses[t].expect(0);   // what it costs says nothing about forecasts
        final long usualNs = gaps[t].quantile(HALF);
        plan(t, Source.FOLLOW_UP, nowNs + usualNs, usualNs, nowNs + holdNs + (holdNs >> SLACK_SHIFT) + GRACE_MIN_NS,
            nowNs);
        expect(t, nowNs);
    }

    private boolean isLearned(final int t) {
        return (wish[t] == null ? mode : wish[t]) == Anticipate.LEARNED;
    }

    /** The task after whose ends a task begins may be another one now. */
    private void link(final int t) {
        final int predecessor = chains[t].predecessor();
        if (predecessor != follows[t]) {
            unlink(t);
            if (predecessor != NONE) {
                follows[t] = predecessor;
                nextFollower[t] = firstFollower[predecessor];
                firstFollower[predecessor] = t;
            }
        }
    }

    private void unlink(final int t) {
        final int predecessor = follows[t];
        if (predecessor == NONE) {
            return;
        }
        follows[t] = NONE;
        if (firstFollower[predecessor] == t) {
            firstFollower[predecessor] = nextFollower[t];
            return;
        }
        int before = firstFollower[predecessor];
        while (nextFollower[before] != t) {
            before = nextFollower[before];
        }
        nextFollower[before] = nextFollower[t];
    }

    private void addRecent(final int gpu, final int t, final long atNs) {
        removeRecent(gpu, t);
        final int kept = Math.min(recentCount[gpu], ChainForecast.RECENT - 1);
        System.arraycopy(recent[gpu], 0, recent[gpu], 1, kept);
        System.arraycopy(recentNs[gpu], 0, recentNs[gpu], 1, kept);
        recent[gpu][0] = t;
        recentNs[gpu][0] = atNs;
        recentCount[gpu] = kept + 1;
    }

    private void removeRecent(final int gpu, final int t) {
        int n = 0;
        for (int i = 0; i < recentCount[gpu]; i++) {
            if (recent[gpu][i] != t) {
                recent[gpu][n] = recent[gpu][i];
                recentNs[gpu][n++] = recentNs[gpu][i];
            }
        }
        recentCount[gpu] = n;
    }

    /** Whether a task's begins are expected from the ends of another one. */
    private boolean isByChain(final int t) {
        return follows[t] != NONE
            && (!forecasts[t].isReady() || 2 * chains[t].spreadNs() < forecasts[t].spreadNs());
    }

    /** The predecessor of a task ended. */
    private void chain(final int t, final long endNs) {
        if (!Priority.isRealTime(rank[t]) || source[t] == Source.HINT || phase[t] == Phase.OPEN
            || scheduler.state(t) != SegmentState.IDLE || !isByChain(t)) {
            return;
        }
        drop(t, endNs);
        planBy(t, Source.CHAIN, endNs, chains[t].delays(), chains[t].periodNs(), endNs);
    }

    /** Begins that are due before the others would be enabled. */
    private void bridge(final int gpu, final long nowNs) {
        final int[] list = tasksOf[gpu];
        for (int i = 0; i < taskCount[gpu]; i++) {
            final int t = list[i];
            if (phase[t] == Phase.PLANNED && expectedNs[t] != NEVER && source[t] != Source.HINT
                && fromNs[t] - nowNs <= costs[gpu].meanNs(Math.max(1, scheduler.disabledBy(t)))) {
                expect(t, nowNs);
            }
        }
    }

    /**
     * All contexts that were to be disabled are disabled.
     *
     * @param gpu        index
     * @param contexts   how many were disabled; 0 if they were so before
     * @param sinceNs    when that was decided
     * @param enforcedNs when the last one was disabled
     */
    public void enforced(final int gpu, final int contexts, final long sinceNs, final long enforcedNs) {
        final boolean isFree = reservations[gpu].isInForce();
        disabledLast[gpu] = contexts > 0 ? contexts : disabledLast[gpu];
        costs[gpu].add(contexts, enforcedNs - sinceNs + (isFree ? lateNs[gpu] : 0));
        if (isFree) {
            aheadCosts[gpu].add(contexts, enforcedNs - sinceNs + lateNs[gpu]);
            notAhead[gpu] = 0;
        } else if (++notAhead[gpu] == AHEAD_OLD) {
            aheadCosts[gpu].clear();
        }
        lateNs[gpu] = 0;
        if (isFree && freeSinceNs[gpu] == NEVER) {
            disabled(gpu, enforcedNs);
            lend(gpu, enforcedNs);
        }
    }

    private void disabled(final int gpu, final long sinceNs) {
        freeSinceNs[gpu] = sinceNs;
        heldFor[gpu] = reservedFor[gpu];
        heldSource[gpu] = source[reservedFor[gpu]];
    }

    /**
     * Whether a GPU is reserved for an expected begin; lower work may still be about to be disabled.
     *
     * @param gpu index
     * @return false while a real-time segment runs, or if no begin is expected
     */
    public boolean isReserved(final int gpu) {
        return reservations[gpu].isInForce();
    }

    /**
     * For which task a GPU is reserved.
     *
     * @param gpu index
     * @return its id, {@link SegmentScheduler#NONE} where {@link #isReserved} says no
     */
    public int reservedFor(final int gpu) {
        return isReserved(gpu) ? reservedFor[gpu] : NONE;
    }

    /** When {@link #onTimer} has something to do; ns, {@link Long#MAX_VALUE} if nothing is expected. */
    public long nextNs() {
        return timers.nextNs();
    }

    /**
     * Acts on what is due. {@link #follow} is to be called if there was something.
     *
     * @param nowNs now
     * @return how many begins were due, or overdue
     */
    public int onTimer(final long nowNs) {
        int due = 0;
        while (timers.nextNs() <= nowNs) {
            final int t = timers.next();
            if (phase[t] == Phase.PLANNED) {
                expect(t, nowNs);
            } else {
                overdue(t, nowNs);
            }
            due++;
        }
        return due;
    }

    /**
     * Follows what the scheduler decided, after each event.
     *
     * @param gpu   index
     * @param nowNs now
     * @return whether its target was told something, so that it has to take effect
     */
    public boolean follow(final int gpu, final long nowNs) {
        final boolean changed = reservations[gpu].follow();
        if (!reservations[gpu].isInForce()) {
            charge(gpu, nowNs, 0);
        } else if (changed) {
            reservedSinceNs[gpu] = nowNs;
        }
        lend(gpu, nowNs);
        return changed;
    }

    // ---- steps -----------------------------------------------------------------------------------------------------

    private void plan(final int t, final Source of, final long atNs, final long leadNs, final long lastNs,
        final long nowNs) {
        source[t] = of;
        phase[t] = Phase.PLANNED;
        expectedNs[t] = atNs;
        fromNs[t] = Math.max(nowNs, atNs - leadNs);
        untilNs[t] = lastNs;
        timers.set(t, fromNs[t]);
    }

    /** Plans the begin that follows from the begins so far, if one does. */
    private void forecast(final int t, final long nowNs) {
        if (isByChain(t)) {
            return;   // the end of the predecessor says when
        }
        final BeginForecast forecast = forecasts[t];
        if (forecast.isReady()) {
            planBy(t, Source.FORECAST, forecast.expectedNs(), forecast.errors(), forecast.periodNs(), nowNs);
        }
    }

    /**
     * Plans a begin that is expected at a time plus one of the newest errors.
     *
     * @param of       why it is expected
     * @param expected without any error, ns
     * @param errors   by how much the newest begins came later
     * @param periodNs usual distance of begins
     */
    private void planBy(final int t, final Source of, final long expected, final SortedWindow errors,
        final long periodNs, final long nowNs) {
        final int gpu = gpuOf[t];
        losses[t].settle();
        final int contexts = scheduler.mayReserve(gpu) && !scheduler.isSpent(t) ? scheduler.disabledBy(t) : 0;
        if (contexts <= 0) {
            return;   // nobody to disable
        }
        final ReservationBudget budget = budgets[gpu];
        final DisableCosts ahead = aheadCosts[gpu].isFull() ? aheadCosts[gpu] : costs[gpu];
        final long meanCostNs = ahead.meanNs(contexts);
        final long graceNs = Math.max(costs[gpu].meanNs(contexts), GRACE_MIN_NS);
        final long latestNs = errors.quantile(SortedWindow.PERMILLE);
        final long left = budget.leftPpm(t, nowNs);
        long costNs = 0;
        long earliestNs = 0;
        boolean fits = false;
        for (int i = 0; i < LEVELS.length && !fits; i++) {
            costNs = ahead.quantileNs(contexts, LEVELS[i]);
            earliestNs = errors.quantile(SortedWindow.PERMILLE - LEVELS[i]);
            final long metNs = errors.meanAbove(earliestNs - (costNs - meanCostNs));
            final long missedNs = latestNs + graceNs - earliestNs + meanCostNs;
            final long lossNs = metNs + missedNs * missPermille[t] / SortedWindow.PERMILLE;
            final long needPpm = losses[t].scaled(lossNs) * PPM / periodNs;
            fits = needPpm <= left - (i < level[t] ? left >> SPARE_SHIFT : 0);
            if (fits) {
                level[t] = i;
                losses[t].expect(lossNs);
                budget.claim(t, needPpm, periodNs, nowNs);
            }
        }
        plan(t, of, expected + earliestNs, costNs, expected + latestNs + graceNs, nowNs);
        if (!fits) {
            level[t] = LEVELS.length;
            losses[t].refuse();
            budget.claim(t, 0, periodNs, nowNs);
            expectedNs[t] = NEVER;   // known to be refused
        }
    }

    private void expect(final int t, final long nowNs) {
        final int gpu = gpuOf[t];
        timers.set(t, Math.max(untilNs[t], nowNs + 1));
        if (source[t].onBudget && (expectedNs[t] == NEVER || !budgets[gpu].isLeft(t, nowNs))) {
            phase[t] = Phase.REFUSED;
            sink.onOverBudget(gpu, t);
            return;
        }
        phase[t] = Phase.OPEN;
        losses[t].serve();
        choose(gpu, nowNs);
        if (reservedFor[gpu] == t) {
            lateNs[gpu] = Math.max(0, nowNs - fromNs[t]);
        }
    }

    private void overdue(final int t, final long nowNs) {
        final int gpu = gpuOf[t];
        final boolean wasReserved = reservedFor[gpu] == t;
        final Source of = source[t];
        if (wasReserved) {
            sink.onWasted(gpu, t, of == Source.HINT);
            // after a segment the others would have been enabled once, as they are now
            charge(gpu, nowNs, freeSinceNs[gpu] == NEVER || of == Source.FOLLOW_UP ? 0
                : costs[gpu].meanNs(Math.max(1, scheduler.disabledBy(t))));
        }
        drop(t, nowNs);
        if (of.isForecast) {
            missPermille[t] += (SortedWindow.PERMILLE - missPermille[t]) >> MISS_SHIFT;
            if (of == Source.CHAIN) {
                chains[t].missed();
                link(t);
            } else {
                forecasts[t].missed();
            }
        }
        forecast(t, nowNs);
    }

    /** For which of the begins that may come now the GPU is reserved. */
    private void choose(final int gpu, final long nowNs) {
        final int[] list = tasksOf[gpu];
        int best = NONE;
        for (int i = 0; i < taskCount[gpu]; i++) {
            final int t = list[i];
            if (phase[t] == Phase.OPEN && (best == NONE || isBefore(t, best))) {
                best = t;
            }
        }
        if (best == reservedFor[gpu]) {
            return;
        }
        final boolean wasFree = freeSinceNs[gpu] != NEVER;
        charge(gpu, nowNs, 0);
        reservedFor[gpu] = best;
        if (best == NONE) {
            reservations[gpu].end();
        } else {
            reservations[gpu].start(best, contextOf[best]);
            if (wasFree) {
                disabled(gpu, nowNs);
            }
            sink.onAnticipated(gpu, best, expectedNs[best], expectedNs[best] - fromNs[best],
                source[best] == Source.HINT);
        }
    }

    private boolean isBefore(final int t, final int other) {
        return rank[t] != rank[other] ? Priority.isHigherThan(rank[t], rank[other])
            : expectedNs[t] < expectedNs[other];
    }

    // ---- budget ----------------------------------------------------------------------------------------------------

    /** The GPU is not reserved any more, or for another task. */
    private void charge(final int gpu, final long nowNs, final long inVainNs) {
        if (freeSinceNs[gpu] == NEVER) {
            return;
        }
        final int t = heldFor[gpu];
        final long lossNs = Math.max(0, nowNs - freeSinceNs[gpu]) + inVainNs;
        freeSinceNs[gpu] = NEVER;
        if (lossNs > 0) {
            if (heldSource[gpu].onBudget) {
                budgets[gpu].spend(t, lossNs, nowNs);
                losses[t].spend(lossNs);
            } else {
                scheduler.chargeReservation(t, lossNs, nowNs);
            }
            sink.onReserved(gpu, t, lossNs);
        }
    }

    /** Follows whether best-effort work has the GPU, or would have if it was not reserved. */
    private void lend(final int gpu, final long nowNs) {
        if (forecastable[gpu] == 0) {
            return;   // two changes in each segment that nobody would ask for
        }
        final boolean isReserved = reservations[gpu].isInForce();
        final boolean isLent = !scheduler.isRealTime(scheduler.runningTask(gpu))
            && (!isReserved || freeSinceNs[gpu] != NEVER);
        if (isLent != budgets[gpu].isLent()) {
            // enabling is not measured; it takes about as long as disabling the same
            final long fromNs = isLent && !isReserved ? nowNs + costs[gpu].meanNs(disabledLast[gpu]) : nowNs;
            budgets[gpu].lend(isLent, fromNs, nowNs);
        }
    }
}

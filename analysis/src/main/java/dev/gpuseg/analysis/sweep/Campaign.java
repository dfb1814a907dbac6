/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.sim.DeadlockException;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.HostWork;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import dev.gpuseg.analysis.sim.Simulator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongFunction;

/**
 * Compares bounds with simulated responses over many sets. For every set and every claim whose analysis accepts the
 * set, some runs are simulated with random offsets, arrivals, execution times and mechanism details; a response above
 * the bound, in a run without a missed deadline of a task that has no bound, is an excess.
 */
public final class Campaign {
    private static final int SIMULATION_POINT = 2_000;
    private static final int CONDITIONS_POINT = 4_000;
    private static final int KEPT = 200;
    private static final long PPM_OF_ONE = 1_000_000;
    /** Steps of a climb for one task. */
    private static final int CLIMB = 50;
    private static final String[] MEASURES = {"sets", "accepted", "runs", "exceeded sets", "missed sets"};
    private static final int PPM = MEASURES.length;
    private static final int KEPT_READY = PPM + 1;
    private static final int ANTICIPATED = KEPT_READY + 1;
    private static final int LIMITED = ANTICIPATED + 1;
    private static final int BUDGETED = LIMITED + 1;
    private static final int THROTTLED = BUDGETED + 1;
    /** Of each bounded task, the largest response / bound, in steps of 1 / {@link #RATIOS}; the last: 1 and more. */
    static final int RATIO = THROTTLED + 1;
    static final int RATIOS = 50;
    /** Columns of a claim. */
    static final int WIDTH = RATIO + RATIOS + 1;
    private static final int KEEP_READY_OF = 8;
    /** None in one run of four, the usual budget, a large one, no limit. */
    private static final int[] ANTICIPATION_PPM = {0, 50_000, 300_000, 1_000_000};

    private final List<Claim> claims;
    private final LongFunction<TaskSet> sets;
    private final long seed;
    private final int runsPerSet;
    private final int climbs;
    private final Conditions conditions;
    private final Queue<Excess> excesses = new ConcurrentLinkedQueue<>();

    /** What may not be exceeded. */
    public enum Limit {
        /** The bound of a response. */
        RESPONSE("a job took %3$d ns, its bound is %2$d ns"),
        /** The least budget of a task: a window within its declared times used more. */
        BUDGET("a window used more than %2$d ns, its least budget"),
        /** What real-time threads of a core may need in a period of the kernel (T1). */
        CORE("real-time threads used more than %2$d ns, what T1 says they need");

        private final String text;

        Limit(final String text) {
            this.text = text;
        }
    }

    /**
     * A limit that was exceeded in a run.
     *
     * @param claim    the comparison
     * @param set      the set
     * @param limit    what was exceeded
     * @param name     of the task, or of the core
     * @param boundNs  the limit
     * @param seenNs   the response; of other limits one nanosecond more than the limit
     * @param options  the run
     * @param arrivals first arrival of each task, ns; empty: as the options say
     * @param given    budgets and throttling of the run, for a reader
     */
    public record Excess(Claim claim, TaskSet set, Limit limit, String name, long boundNs, long seenNs,
        SimulationOptions options, List<Long> arrivals, String given) {
        /** What happened, in one line. */
        public String text() {
            return claim.title() + ": " + name + ": " + String.format(Locale.ROOT, limit.text, name, boundNs, seenNs);
        }
    }

    /**
     * A campaign.
     *
     * @param claims     what to compare
     * @param sets       set number k, a function of k alone
     * @param seed       of the runs
     * @param runsPerSet runs for each set and mechanism, at least 1
     */
    public Campaign(final List<Claim> claims, final LongFunction<TaskSet> sets, final long seed, final int runsPerSet) {
        this(claims, sets, seed, runsPerSet, 0);
    }

    /**
     * A campaign with a directed search after the random runs: a hill climb over first arrivals, execution times and
     * details of the mechanism towards a long response of one task.
     *
     * @param claims     what to compare
     * @param sets       set number k, a function of k alone
     * @param seed       of the runs
     * @param runsPerSet random runs for each set and mechanism, at least 1
     * @param climbs     further runs of the search, 0 or more
     */
    public Campaign(final List<Claim> claims, final LongFunction<TaskSet> sets, final long seed, final int runsPerSet,
        final int climbs) {
        this(claims, sets, seed, runsPerSet, climbs, new Conditions());
    }

    /** As above, with what is claimed of budgets and cores. */
    Campaign(final List<Claim> claims, final LongFunction<TaskSet> sets, final long seed, final int runsPerSet,
        final int climbs, final Conditions conditions) {
        this.climbs = climbs;
        this.conditions = conditions;
        this.claims = List.copyOf(claims);
        this.sets = sets;
        this.seed = seed;
        this.runsPerSet = runsPerSet;
    }

    /**
     * Columns of the counts. For each claim: the sets, the accepted ones, the runs, the accepted sets in which a bound
     * was exceeded, those in which a deadline was missed, the largest response in parts per million of its bound, and
     * the runs in which contexts of idle tasks stayed enabled (fixed priorities with optimistic begins only), those in
     * which a begin was anticipated, those of sets with limits, those in which windows had least budgets, those in
     * which cores were throttled, and how many tasks with a bound have their largest response / bound in each step
     * of 2 %.
     *
     * @return names, in a fixed order
     */
    public List<String> columns() {
        final List<String> columns = new ArrayList<>();
        for (final Claim claim : claims) {
            for (final String measure : MEASURES) {
                columns.add(measure + " of " + claim.title());
            }
            columns.add(Tally.MAX + "ppm of " + claim.title());
            columns.add("kept ready of " + claim.title());
            columns.add("anticipated of " + claim.title());
            columns.add("limited of " + claim.title());
            columns.add("budgeted of " + claim.title());
            columns.add("throttled of " + claim.title());
            for (int k = 0; k <= RATIOS; k++) {
                columns.add("ratio " + k + " of " + claim.title());
            }
        }
        return columns;
    }

    /** Responses above a bound that claims to be sound, at most a few hundred; in no particular order. */
    public List<Excess> excesses() {
        return List.copyOf(excesses);
    }

    /**
     * Judges sets one after the other on the calling thread.
     *
     * @param from first set
     * @param to   one after the last set
     * @return counts by column
     */
    public Map<String, Long> run(final long from, final long to) {
        final List<String> columns = columns();
        final long[] counts = new long[columns.size()];
        for (long k = from; k < to; k++) {
            judge(k, counts);
        }
        final Map<String, Long> result = new LinkedHashMap<>();
        for (int i = 0; i < counts.length; i++) {
            result.put(columns.get(i), counts[i]);
        }
        return result;
    }

    /**
     * Judges one set.
     *
     * @param k      its number
     * @param counts one for each of {@link #columns}, changed; the maxima are replaced by larger ones
     */
    public void judge(final long k, final long[] counts) {
        final TaskSet drawn = sets.apply(k);
        final Map<Claim.Simulated, Simulator[]> simulators = new LinkedHashMap<>();
        for (int c = 0; c < claims.size(); c++) {
            final Claim claim = claims.get(c);
            final TaskSet set = claim.setOf(drawn, seed, k);
            final int at = c * WIDTH;
            final WaitMode mode = claim.analysis().mode();
            counts[at]++;
            if (!claim.conflict(set.withMode(mode)).isEmpty()) {
                continue;   // equal priorities of threads that spin for one GPU, stops that the bounds do not contain
            }
            final AnalysisResult result = claim.analysisOf(set).analyse(set.withMode(mode));
            if (!result.schedulable()) {
                continue;
            }
            counts[at + 1]++;
            final Simulator[] byMode = simulators.computeIfAbsent(claim.mechanism(), m -> new Simulator[2]);
            if (byMode[mode.ordinal()] == null) {
                byMode[mode.ordinal()] = new Simulator(set.withMode(mode));
            }
            claim.configure(set, byMode[mode.ordinal()]);
            compare(claim, set.withMode(mode), result, byMode[mode.ordinal()], k, counts, at);
        }
    }

    private void compare(final Claim claim, final TaskSet set, final AnalysisResult result, final Simulator simulator,
        final long k, final long[] counts, final int at) {
        final Tested outcome = new Tested(claim, set, result, k);
        // every claim about one mechanism is compared with the same runs
        final SplittableRandom random = Seeds.random(seed, SIMULATION_POINT + claim.mechanism().number(), k);
        for (int run = 0; run < runsPerSet; run++) {
            outcome.run(simulator, draw(random, claim.mechanism(), set), null);
        }
        climb(outcome, simulator, random);
        counts[at + 2] += outcome.runs;
        counts[at + 3] += outcome.exceeded ? 1 : 0;
        counts[at + 4] += outcome.missed ? 1 : 0;
        counts[at + PPM] = Math.max(counts[at + PPM], outcome.largestPpm);
        counts[at + KEPT_READY] += outcome.keptReady;
        counts[at + ANTICIPATED] += outcome.anticipated;
        counts[at + LIMITED] += LimitedSets.isLimited(set) ? outcome.runs : 0;
        counts[at + BUDGETED] += outcome.budgeted;
        counts[at + THROTTLED] += outcome.throttled;
        for (int i = 0; i < outcome.largestOf.length; i++) {
            if (result.tasks().get(i).wcrtNs() != null) {
                counts[at + RATIO + (int) Math.min(RATIOS, outcome.largestOf[i] / (PPM_OF_ONE / RATIOS))]++;
            }
        }
    }

    /**
     * Climbs for the task that is farthest from its bound: changes one thing at a time and keeps what does not shorten
     * its response.
     */
    private void climb(final Tested outcome, final Simulator simulator, final SplittableRandom random) {
        int target = 0;
        for (int step = 0; step < climbs; step++) {
            if (step % CLIMB == 0) {
                target = outcome.farthest();
            }
            final long[] start = outcome.arrivalsOf[target];
            final boolean fresh = start == null || random.nextInt(6) == 0;
            final SimulationOptions options = fresh || random.nextInt(8) == 0
                ? steady(random, outcome) : outcome.optionsOf[target];
            outcome.run(simulator, options, !fresh ? mutate(random, outcome.set, start)
                : random.nextBoolean() ? drawArrivals(random, outcome.set) : meet(random, outcome.set, target));
        }
        simulator.setFirstArrivals(null);
    }

    /** A run in which little is random, so that a small change of the arrivals changes little. */
    private static SimulationOptions steady(final SplittableRandom random, final Tested outcome) {
        final SimulationOptions drawn = draw(random, outcome.claim.mechanism(), outcome.set);
        return random.nextInt(4) == 0 ? drawn : drawn.with(Arrivals.PERIODIC, Offsets.SYNCHRONOUS, Execution.WORST,
            Jitter.RANDOM).with(random.nextInt(3) == 0 ? HostWork.ANYWHERE : HostWork.FIRST);
    }

    private static long[] drawArrivals(final SplittableRandom random, final TaskSet set) {
        return set.tasks().stream().mapToLong(task -> random.nextLong(task.periodNs())).toArray();
    }

    /**
     * Arrivals of which a critical instant is likely: the others arrive with the target, begin their first windows with
     * its first one (a nanosecond before it or after it, too), or have the second of two close jobs then.
     */
    private static long[] meet(final SplittableRandom random, final TaskSet set, final int target) {
        long longest = 0;
        for (final Task task : set.tasks()) {
            longest = Math.max(longest, task.periodNs());
        }
        final long window = longest + leadNs(set.tasks().get(target));
        final long[] arrivals = new long[set.tasks().size()];
        for (int i = 0; i < arrivals.length; i++) {
            final Task task = set.tasks().get(i);
            final long meeting = window - leadNs(task) + random.nextInt(3) - 1;
            final int kind = random.nextInt(4);
            arrivals[i] = Math.max(0, i == target || kind == 0 ? longest : kind == 1 ? meeting
                : kind == 2 ? meeting + (task.cpuNs() + task.gpuNs()) * random.nextInt(2) - task.periodNs()
                : random.nextLong(2 * task.periodNs()));
        }
        return arrivals;
    }

    /** CPU work of a job before its first window; all of it if there is none. */
    private static long leadNs(final Task task) {
        long lead = 0;
        for (final Segment segment : task.segments()) {
            if (segment instanceof Segment.Cpu cpu) {
                lead += cpu.durationNs();
            } else {
                return lead;
            }
        }
        return lead;
    }

    /** Moves one task far, a little, or to the arrival of another one, or just after it. */
    private static long[] mutate(final SplittableRandom random, final TaskSet set, final long[] arrivals) {
        final long[] changed = arrivals.clone();
        final int task = random.nextInt(changed.length);
        final long period = set.tasks().get(task).periodNs();
        final int kind = random.nextInt(3);
        changed[task] = kind == 0 ? random.nextLong(period)
            : kind == 1 ? Math.max(0, changed[task] + random.nextLong(period / 20 + 2) - period / 40)
            : arrivals[random.nextInt(changed.length)] + random.nextInt(2);
        return changed;
    }

    /** What the runs of one set say about one claim. */
    private final class Tested {
        private final Claim claim;
        private final TaskSet set;
        private final AnalysisResult result;
        private long runs;
        private long keptReady;
        private long anticipated;
        private long budgeted;
        private long throttled;
        private long largestPpm;
        private final long[] largestOf;
        /** Of the run with the longest response of each task since the climb began. */
        private final long[] climbedOf;
        private final long[][] arrivalsOf;
        private final SimulationOptions[] optionsOf;
        private boolean exceeded;
        private boolean missed;
        /** Chooses what a run is given; other choices do not depend on it. */
        private final SplittableRandom random;
        private final long periodNs;
        private final long[] runtimesNs;
        /** By whether begins are optimistic; of those that are known. */
        private final long[][] budgetsNs = new long[2][];
        private final boolean[] hasBudgets = new boolean[2];

        Tested(final Claim claim, final TaskSet set, final AnalysisResult result, final long k) {
            this.claim = claim;
            this.set = set;
            this.result = result;
            largestOf = new long[set.tasks().size()];
            climbedOf = new long[largestOf.length];
            arrivalsOf = new long[largestOf.length][];
            optionsOf = new SimulationOptions[largestOf.length];
            random = Seeds.random(seed, CONDITIONS_POINT + claim.mechanism().number(), k);
            periodNs = Conditions.drawPeriod(random, set);
            runtimesNs = conditions.runtimes(claim, set, periodNs);
        }

        private long[] budgets(final boolean optimistic) {
            final int at = optimistic ? 1 : 0;
            if (!hasBudgets[at]) {
                hasBudgets[at] = true;
                budgetsNs[at] = conditions.budgets(claim, set, result, optimistic);
            }
            return budgetsNs[at];
        }

        /** The task with a bound whose longest response is farthest from it. */
        int farthest() {
            int farthest = 0;
            for (int i = 0; i < largestOf.length; i++) {
                final boolean bounded = result.tasks().get(i).wcrtNs() != null;
                if (bounded && (result.tasks().get(farthest).wcrtNs() == null || largestOf[i] < largestOf[farthest])) {
                    farthest = i;
                }
            }
            return farthest;
        }

        void run(final Simulator simulator, final SimulationOptions options, final long[] firstArrivals) {
            simulator.setFirstArrivals(firstArrivals);
            final int kind = random.nextInt(4);
            final Conditions.Given given = new Conditions.Given((kind & 1) == 0 ? null : budgets(options.optimistic()),
                periodNs, (kind & 2) == 0 ? null : runtimesNs);
            simulator.setBudgets(given.budgetsNs());
            simulator.setThrottling(periodNs, given.runtimesNs());
            try {
                simulator.execute(options);
            } catch (final DeadlockException e) {
                if (options.cpuPolicy() == SimulationOptions.CpuPolicy.EDF && e.hasTiedDeadlines()) {
                    return;   // E3 does not hold: the run says nothing of a bound that assumes it, and does not count
                }
                throw e;
            }
            runs++;
            keptReady += keepsReady(options) ? 1 : 0;
            anticipated += simulator.anticipated() > 0 ? 1 : 0;
            budgeted += given.budgetsNs() != null ? 1 : 0;
            throttled += given.runtimesNs() != null ? 1 : 0;
            missed |= simulator.anyRealTimeMiss();
            for (int i = 0; given.budgetsNs() != null && i < largestOf.length; i++) {
                if (simulator.overruns(i) > 0) {
                    exceeds(Limit.BUDGET, set.tasks().get(i).name(), given.budgetsNs()[i], given.budgetsNs()[i] + 1,
                        options, firstArrivals, given);
                }
            }
            for (int c = 0; given.runtimesNs() != null && c < given.runtimesNs().length; c++) {
                if (simulator.throttled(c) > 0) {
                    exceeds(Limit.CORE, "core " + (c + 1), given.runtimesNs()[c], given.runtimesNs()[c] + 1, options,
                        firstArrivals, given);
                }
            }
            for (int i = 0; i < largestOf.length; i++) {
                final Long bound = result.tasks().get(i).wcrtNs();
                if (bound == null) {
                    continue;
                }
                final long seen = simulator.maxResponseNs(i);
                final long ppm = bound == 0 ? seen == 0 ? 0 : Long.MAX_VALUE
                    : (long) Math.ceil((double) seen / bound * PPM_OF_ONE);
                largestPpm = Math.max(largestPpm, ppm);
                largestOf[i] = Math.max(largestOf[i], ppm);
                if (firstArrivals != null && ppm >= climbedOf[i]) {
                    climbedOf[i] = ppm;
                    arrivalsOf[i] = firstArrivals;
                    optionsOf[i] = options;
                }
                if (seen > bound) {
                    exceeds(Limit.RESPONSE, set.tasks().get(i).name(), bound, seen, options, firstArrivals, given);
                }
            }
        }

        /** The first excess of a set is kept. */
        private void exceeds(final Limit limit, final String name, final long bound, final long seen,
            final SimulationOptions options, final long[] firstArrivals, final Conditions.Given given) {
            if (!exceeded && claim.claimed() && excesses.size() < KEPT) {
                excesses.add(new Excess(claim, set, limit, name, bound, seen, options,
                    firstArrivals == null ? List.of() : Arrays.stream(firstArrivals).boxed().toList(),
                    given.toString()));
            }
            exceeded = true;
        }
    }

    /**
     * A quantile of the largest response / bound of a task, over all tasks of accepted sets.
     *
     * @param counts of one claim
     * @param share  0..1
     * @return lower end of the step that contains it; 0 if there are no tasks
     */
    static double quantile(final List<Long> counts, final double share) {
        final long all = counts.subList(RATIO, RATIO + RATIOS + 1).stream().mapToLong(Long::longValue).sum();
        long left = (long) Math.ceil(share * all);
        for (int k = 0; k <= RATIOS && all > 0; k++) {
            left -= counts.get(RATIO + k);
            if (left <= 0) {
                return (double) k / RATIOS;
            }
        }
        return 0;
    }

    private static boolean keepsReady(final SimulationOptions options) {
        return options.keepReady() && options.optimistic() && options.scheduler() == Scheduler.FP;
    }

    private static SimulationOptions draw(final SplittableRandom random, final Claim.Simulated mechanism,
        final TaskSet set) {
        long longest = 0;
        for (final var task : set.tasks()) {
            longest = Math.max(longest, task.periodNs());
        }
        final boolean optimistic = random.nextBoolean();
        final Update update = random.nextBoolean() ? Update.STALL : Update.SHARE;
        final Arrivals arrivals = random.nextBoolean() ? Arrivals.PERIODIC : Arrivals.SPORADIC;
        final Offsets offsets = random.nextInt(3) == 0 ? Offsets.SYNCHRONOUS : Offsets.RANDOM;
        final Execution execution = random.nextInt(4) == 0 ? Execution.RANDOM : Execution.WORST;
        final long duration = longest * (2 + random.nextInt(6));
        final Hold hold = mechanism.hold();
        final long seed = random.nextLong();
        // has no effect if begins wait or under EDF; mostly true where it has one
        final boolean keepReady = random.nextInt(KEEP_READY_OF) != 0;
        return new SimulationOptions(mechanism.scheduler(), mechanism.cpuPolicy(), hold, optimistic, keepReady, update,
            arrivals, offsets, execution, Jitter.RANDOM, random.nextBoolean() ? HostWork.FIRST : HostWork.ANYWHERE,
            ANTICIPATION_PPM[(int) (seed >>> 1) & ANTICIPATION_PPM.length - 1], duration, seed);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.BestEffortTurns;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.PolicyParameter;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import java.util.Arrays;
import java.util.List;

/**
 * Simulates one task set. All decisions about the GPU are those of the live {@link SegmentScheduler}, and all decisions
 * about what to disable and enable are those of the live {@link dev.gpuseg.core.Reconciler}; the classes around this
 * one model the rest of the world. See {@code analysis/docs/simulator.md} for every assumption.
 *
 * <p>Time is {@code long} nanoseconds and exact. A run is a function of set, options and seed. Simultaneous events:
 * what ends comes before what arrives, and zero-length work of the thread that has the core is done at once. An
 * instance may be used for many runs, one after the other; it is not thread-safe.
 */
public final class Simulator {
    private final SimulatedSet set;
    private final Run run;
    private SegmentScheduler scheduler;
    private Anticipator anticipator;
    private long anticipated;

    private long[] firstArrivalNs;
    private Policy chosenPolicy;
    private long[] slicesNs;
    private long[] leastNs;
    private final int[] partition;
    private final int[] weight;
    private final long[] budgetNs;
    private final long[] quotaNs;
    private final long[] capPeriodNs;
    private final OverrunAction[] overrun;

    /**
     * Prepares a set.
     *
     * @param set every task with a core
     * @throws InvalidModelException if a core is missing, or the set is beyond the limits of the scheduler core
     */
    public Simulator(final TaskSet set) {
        this.set = new SimulatedSet(set);
        run = new Run(this.set);
        final int n = this.set.taskCount;
        partition = new int[n];
        weight = new int[n];
        budgetNs = new long[n];
        quotaNs = new long[n];
        capPeriodNs = new long[n];
        overrun = new OverrunAction[n];
        Arrays.fill(overrun, OverrunAction.DEMOTE);
    }

    /**
     * Names the policy of the schedulers that need one, for the following runs: {@link
     * SimulationOptions.Scheduler#POLICY}, and those whose policy has parameters.
     *
     * @param policy a policy with its parameters; null = that of the scheduler's name, with its defaults
     */
    public void setPolicy(final Policy policy) {
        chosenPolicy = policy;
    }

    /**
     * Gives a task what a policy file can say of it, for the following runs.
     *
     * @param task      index in file order
     * @param inside    time partition, 0 = none
     * @param budget    longest time that a segment may hold the GPU, ns; 0 = none
     * @param action    what follows when it is used up
     * @param ofWeight  share of best-effort time, 1..10000; 0 = the usual one
     * @param quota     cap of best-effort time in each period, ns; 0 = none
     * @param capPeriod its period, ns
     */
    public void setAttributes(final int task, final int inside, final long budget, final OverrunAction action,
        final int ofWeight, final long quota, final long capPeriod) {
        partition[task] = inside;
        budgetNs[task] = budget;
        overrun[task] = action;
        weight[task] = ofWeight;
        quotaNs[task] = quota;
        capPeriodNs[task] = capPeriod;
    }

    /**
     * Budgets for the following runs, whatever {@link #setAttributes} says of them. A window that uses more is demoted,
     * at a gate it is only counted.
     *
     * @param ns of each task, in the order of the set, 0 = none; null = as the attributes say
     */
    public void setBudgets(final long[] ns) {
        leastNs = ns == null ? null : ns.clone();
    }

    /**
     * Lets the kernel throttle cores in the following runs: real-time threads that have used so much of a core in one
     * of its periods have it no more until the next one begins. Where the first period begins is drawn.
     *
     * @param periodNs  of all cores, positive
     * @param runtimeNs of each core; {@link Long#MAX_VALUE} = it is never throttled. Null = none is
     */
    public void setThrottling(final long periodNs, final long[] runtimeNs) {
        run.cores.throttling(periodNs, runtimeNs);
    }

    /**
     * How often windows of a task used up more than their budget in the last run.
     *
     * @param task index in the set
     * @return their number
     */
    public long overruns(final int task) {
        return run.observations.overruns[task];
    }

    /**
     * How often a core was throttled in the last run.
     *
     * @param cpu index of the core, from 0
     * @return number of its periods in which it was
     */
    public long throttled(final int cpu) {
        return run.cores.throttled(cpu);
    }

    /**
     * Fixes the first arrivals of the following runs, whatever their options say.
     *
     * @param atNs first arrival of each task, in the order of the set, 0 or more; null = as the options say
     * @throws IllegalArgumentException if the number of times is not that of the tasks, or one is negative
     */
    public void setFirstArrivals(final long[] atNs) {
        if (atNs != null) {
            if (atNs.length != set.taskCount) {
                throw new IllegalArgumentException("there are " + atNs.length + " first arrivals for " + set.taskCount
                    + " tasks; give one for each");
            }
            for (final long at : atNs) {
                if (at < 0) {
                    throw new IllegalArgumentException("a first arrival is " + at + " ns; it must be 0 or more");
                }
            }
        }
        firstArrivalNs = atNs == null ? null : atNs.clone();
    }

    /**
     * Time slices of the contexts of real-time tasks, for the following runs with {@link SimulationOptions.Hold#TURNS}.
     *
     * @param ns of each task, in the order of the set; null = the long one that the daemon gives to the highest
     * @throws IllegalArgumentException if the number of slices is not that of the tasks
     */
    public void setSlices(final long[] ns) {
        if (ns != null && ns.length != set.taskCount) {
            throw new IllegalArgumentException("there are " + ns.length + " time slices for " + set.taskCount
                + " tasks; give one for each");
        }
        slicesNs = ns == null ? null : ns.clone();
    }

    private void slice(final SimulationOptions.Scheduler decides) {
        if (decides != SimulationOptions.Scheduler.RR) {
            throw new InvalidModelException("hold turns goes with scheduler rr, not with " + decides.word()
                + "; by turns no segment holds the GPU");
        }
        if (set.limits.turns() == null) {
            throw new InvalidModelException("platform: turns is missing; write turns: {slice: 100us, contexts: 2}");
        }
        for (final Gpu gpu : set.declared.gpus()) {
            if (gpu.stallNs() > 0) {
                throw new InvalidModelException("platform: stall is not simulated together with turns; leave one of "
                    + "them out");
            }
        }
        final long[] slices = new long[set.taskCount];
        for (int i = 0; i < slices.length; i++) {
            slices[i] = !set.realTime[i] ? set.limits.turns().sliceNs()
                : slicesNs == null || slicesNs[i] == 0 ? BestEffortTurns.LONG_SLICE_NS : slicesNs[i];
        }
        run.device.slices(slices);
    }

    /**
     * Names a receiver of what a daemon would journal, for the following runs.
     *
     * @param sink receives every event; null = nobody
     */
    public void setEvents(final EventSink sink) {
        run.journal = sink;
    }

    /**
     * Runs once.
     *
     * @param what  scheduler, mechanism, load, duration, seed
     * @param sink  receives the schedule, or null
     * @return what was observed
     * @throws InvalidModelException if a scheduler by priority is asked for and a task has none
     */
    public SimulationResult run(final SimulationOptions what, final TraceSink sink) {
        execute(what, sink);
        return new SimulationResult(what, set.set.id(), run.observations.all(), run.events, run.enforcers.updates(),
            run.nowNs, run.chains == null ? List.of() : run.chains.all());
    }

    /**
     * Runs once without building a result: for campaigns. Read the outcome with {@link #maxResponseNs} and
     * {@link #anyRealTimeMiss}.
     *
     * @param what scheduler, mechanism, load, duration, seed
     * @throws InvalidModelException if a scheduler by priority is asked for and a task has none
     */
    public void execute(final SimulationOptions what) {
        execute(what, null);
    }

    /**
     * Longest response seen in the last run.
     *
     * @param task index in the set
     * @return nanoseconds; of an unfinished job its age at the end; 0 if no job arrived
     */
    public long maxResponseNs(final int task) {
        return run.observations.maxResponseNs[task];
    }

    /**
     * Misses of a task in the last run.
     *
     * @param task index in the set
     * @return most misses among any so many consecutive jobs as its limit says; without a limit all misses
     */
    public long mostMisses(final int task) {
        return run.observations.mostMisses(task);
    }

    /**
     * Longest reaction time of a chain seen in the last run.
     *
     * @param chain index in the set
     * @return nanoseconds, 0 if none was seen
     */
    public long maxReactionNs(final int chain) {
        return run.chains.maxReactionNs(chain);
    }

    /**
     * Largest data age of a chain seen in the last run.
     *
     * @param chain index in the set
     * @return nanoseconds, 0 if there was no output
     */
    public long maxAgeNs(final int chain) {
        return run.chains.maxAgeNs(chain);
    }

    /**
     * How often lower work was disabled ahead of a begin in the last run.
     *
     * @return begins for which it was, whether they came or not
     */
    public long anticipated() {
        return anticipator == null ? 0 : anticipated;
    }

    /** Whether a real-time task missed a deadline in the last run that it may not miss. */
    public boolean anyRealTimeMiss() {
        return run.observations.anyRealTimeMiss();
    }

    private void execute(final SimulationOptions what, final TraceSink sink) {
        reset(what, sink);
        long longest = what.durationNs();
        for (final long period : set.periodNs) {
            longest = Math.max(longest, 10 * period);
        }
        final long limitNs = Math.addExact(what.durationNs(), longest);
        final EventQueue queue = run.queue;
        boolean live = true;
        while (live) {
            final long timer = Math.min(scheduler.nextTimerNs(), run.segments.nextAnticipatedNs());
            final long next = Math.min(queue.firstNs(), timer);
            if (queue.firstNs() == EventQueue.NEVER && run.threads.allIdle()) {
                live = false;   // windows of partitions open and close for ever
            } else if (next == EventQueue.NEVER) {
                run.threads.requireRest();
                live = false;
            } else if (next > limitNs) {
                run.nowNs = limitNs;
                live = false;
            } else {
                run.nowNs = next;
                onTime(next, timer <= next);
            }
        }
        finish();
    }

    /** All that happens at one time. */
    private void onTime(final long nowNs, final boolean timer) {
        final EventQueue queue = run.queue;
        if (timer) {
            if (scheduler.nextTimerNs() <= nowNs) {
                scheduler.onTimer(nowNs);
                run.enforcers.enforceAll();
            }
            if (run.segments.nextAnticipatedNs() <= nowNs) {
                run.segments.anticipate();
            }
            settle();
        }
        while (queue.firstNs() == nowNs && queue.first() < run.taskSource) {
            onEvent(queue.poll());
            settle();
        }
        boolean released = false;
        while (queue.firstNs() == nowNs && queue.first() >= run.taskSource) {
            run.arrivals.onRelease(queue.poll() - run.taskSource);
            released = true;
        }
        if (released) {
            settle();
        }
    }

    private void onEvent(final int source) {
        run.events++;
        if (source < run.gpuSource) {
            run.enforcers.onUpdateComplete(source);
        } else if (source < run.stallSource) {
            run.device.touch(source - run.gpuSource);
        } else if (source < run.newcomerSource) {
            run.device.onStall(source - run.stallSource);
        } else if (source < run.idleSource) {
            run.newcomers.onEvent(source - run.newcomerSource);
        } else if (source < run.cpuSource) {
            run.threads.onIdleEnd(source - run.idleSource);
        } else {
            run.cores.touchCore(source - run.cpuSource);
        }
    }

    /** Brings cores and GPUs to rest at the present time. */
    private void settle() {
        boolean moved = true;
        while (moved) {
            moved = run.device.settle() | run.cores.settle();
        }
    }

    private void reset(final SimulationOptions what, final TraceSink sink) {
        run.reset(what, sink);
        final Policy policy = policyOf(what.scheduler());
        final boolean preemptive = what.scheduler().preemptive() && policy.enforces();
        run.cores.preemptive(preemptive);
        if (what.hold() == SimulationOptions.Hold.TURNS) {
            slice(what.scheduler());
        }
        run.device.sharesAlways(!policy.enforces());
        run.device.switchesItself(!preemptive && what.hold() != SimulationOptions.Hold.BOOST);
        final SchedulerConfig config = new SchedulerConfig(policy, set.gpuCount, set.taskCount, set.taskCount,
            preemptive, what.optimistic(), Unmanaged.BEST_EFFORT);
        scheduler = new SegmentScheduler(config, run.segments);
        scheduler.countFromGrants();
        run.segments.scheduler(scheduler);
        anticipator = what.anticipationPpm() == 0 ? null : anticipator(config, what.anticipationPpm());
        run.segments.anticipator(anticipator);
        run.enforcers.anticipator(anticipator);
        scheduler.setKeepReady(what.keepReady(), 0);
        final boolean byPriority = what.cpuPolicy() == SimulationOptions.CpuPolicy.FP
            || policy.needs().contains(TaskNeed.PRIORITY);
        for (int i = 0; i < set.taskCount; i++) {
            if (byPriority && set.realTime[i] && set.priority[i] == 0) {
                throw new InvalidModelException("task \"" + set.nameOf(i)
                    + "\": priority is missing; write priority: 1..99 or let gpuseg analyze --assign choose");
            }
            if (set.gpuOf[i] >= 0) {
                addTask(i);
            }
            if (run.chains != null && run.chains.isReleasedByEvent(i)) {
                continue;   // the end of another job releases it
            }
            run.arrivals.schedule(i, firstArrivalNs != null ? firstArrivalNs[i] : run.arrivals.drawFirst(i));
        }
        run.device.startStalls();
        if (what.hold() != SimulationOptions.Hold.TURNS) {   // there new contexts are contexts
            run.newcomers.start(preemptive);
        }
    }

    /** One context for each process and GPU. */
    private void addTask(final int i) {
        final boolean realTime = set.realTime[i];
        final int context = set.contextOf[i] + 1;
        if (context == i + 1) {
            scheduler.addContext(context, set.gpuOf[i], ContextKind.MANAGED);
        }
        // under a policy that does not look at priorities any real-time one will do
        scheduler.addTask(new TaskParameters(i + 1, context, realTime ? Math.max(1, set.priority[i]) : 0,
            realTime ? set.gpuPriority[i] : 0, set.deadlineNs[i], leastNs == null ? budgetNs[i] : leastNs[i],
            run.options.optimistic(), leastNs == null ? overrun[i] : actionOf(run.options.scheduler()), 0,
            partition[i]));
        if (anticipator != null) {
            anticipator.open(i + 1, set.gpuOf[i], context, realTime ? Math.max(1, set.gpuPriority[i]) : 0,
                set.periodNs[i]);
        }
        if (weight[i] > 0) {
            scheduler.setWeight(scheduler.ownGroup(context), weight[i], 0);
        }
        if (quotaNs[i] > 0) {
            scheduler.setCap(scheduler.ownGroup(context), quotaNs[i], capPeriodNs[i], 0);
        }
    }

    /** A gate would end a segment whose thread goes on. */
    private static OverrunAction actionOf(final SimulationOptions.Scheduler decides) {
        return decides.preemptive() ? OverrunAction.DEMOTE : OverrunAction.NOTIFY;
    }

    /** As the daemon's, which knows the costs of updates only from those that it made and what the mechanism says. */
    private Anticipator anticipator(final SchedulerConfig config, final int budgetPpm) {
        anticipated = 0;
        final Anticipator made = new Anticipator(config, scheduler, run.enforcers.targets(), new Anticipator.Sink() {
            @Override
            public void onAnticipated(final int gpu, final int taskId, final long expectedNs, final long leadNs,
                final boolean isHint) {
                anticipated++;
            }

            @Override
            public void onWasted(final int gpu, final int taskId, final boolean isHint) {
                // only responses are judged
            }

            @Override
            public void onOverBudget(final int gpu, final int taskId) {
                // only responses are judged
            }

            @Override
            public void onReserved(final int gpu, final int taskId, final long ns) {
                // only responses are judged
            }
        });
        made.setMode(Anticipate.LEARNED);
        made.setBudget(budgetPpm);
        for (int g = 0; g < set.gpuCount; g++) {
            made.stateCost(g, set.epsilonNs[g], 0);
        }
        return made;
    }

    private Policy policyOf(final SimulationOptions.Scheduler decides) {
        final String name = decides.policy();
        if (chosenPolicy != null && (name.isEmpty() || name.equals(chosenPolicy.name()))) {
            return chosenPolicy;
        }
        if (name.isEmpty()) {
            throw new IllegalArgumentException("scheduler " + decides.word() + ": no policy is given; name one");
        }
        final PolicyDescription row = PolicyCatalog.builtIn().get(name);
        if (!row.hasDefaults()) {
            throw new IllegalArgumentException("scheduler " + decides.word() + ": no "
                + row.parameters().stream().filter(PolicyParameter::isRequired).findFirst().orElseThrow().name()
                + " is given; name a policy file with policy: " + name);
        }
        return PolicyCatalog.builtIn().create(name);
    }

    private void finish() {
        run.threads.finish();
        if (run.trace != null) {
            run.cores.finish();
            run.device.finish();
            run.segments.finish();
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.Outcome;
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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Simulates one task set. All decisions about the GPU are those of the live {@link SegmentScheduler}, driven through
 * its public interface; this class models the world around it. See {@code analysis/docs/simulator.md} for every
 * assumption.
 *
 * <p>Time is {@code long} nanoseconds and exact. A run is a function of set, options and seed. Simultaneous events:
 * what ends comes before what arrives, and zero-length work of the thread that has the core is done at once. An
 * instance may be used for many runs, one after the other; it is not thread-safe.
 */
public final class Simulator implements DecisionSink {
    private static final byte IDLE = 0;
    private static final byte CPU = 1;
    private static final byte WAIT_GRANT = 2;
    private static final byte HOST = 3;
    private static final byte HOST_OVERLAP = 4;
    private static final byte WAIT_DEVICE = 5;
    private static final byte END = 6;

    private static final byte SEGMENT_NONE = 0;
    private static final byte SEGMENT_WAITING = 1;
    private static final byte SEGMENT_RUNNING = 2;
    private static final byte SEGMENT_PREEMPTED = 3;

    private final TaskSet set;
    private final boolean busy;
    private final int taskCount;
    private final int cpuCount;
    private final int gpuCount;

    // the set as arrays
    private final int[] cpuOf;
    private final int[] gpuOf;
    private final boolean[] realTime;
    private final int[] priority;
    private final int[] gpuPriority;
    private final long[] periodNs;
    private final long[] deadlineNs;
    private final long[] jitterNs;
    private final int[][] cpuTasks;
    private final int[][] gpuTasks;
    /** Segment k of task i is at segmentStart[i] + k: CPU segments have gpuSegment false and their length in hostNs. */
    private final int[] segmentStart;
    private final boolean[] gpuSegment;
    private final long[] hostNs;
    private final long[] overlapNs;
    private final long[] deviceNs;
    private final long[] epsilonNs;
    private final long[] thetaNs;
    private final long[] timesliceNs;
    private final long[] stallNs;
    private final long[] stallPeriodNs;

    // run
    private long[] firstArrivalNs;
    private SimulationOptions options;
    private SegmentScheduler scheduler;
    private Policy chosenPolicy;
    private final int[] partition;
    private final int[] weight;
    private final long[] budgetNs;
    private final long[] quotaNs;
    private final long[] capPeriodNs;
    private final OverrunAction[] overrun;
    private TraceSink trace;
    private SplittableRandom random;
    private boolean enforced;
    /** The policy only observes: contexts share the GPU whatever is begun. */
    private boolean sharesAlways;
    private long nowNs;
    private long events;
    private long updates;
    private boolean anyPending;

    // threads
    private final byte[] phase;
    private final int[] segment;
    private final long[] work;
    private final boolean[] deviceDone;
    private final long[] arrivalNs;
    private final boolean[] worstCaseJob;
    private final long[][] backlog;
    private final int[] backlogHead;
    private final int[] backlogSize;
    private final long[] nextArrivalNs;
    private final long[] nextReleaseNs;

    // segments
    private final byte[] segmentState;
    private final long[] segmentSinceNs;
    private final long[] beginNs;
    private final long[] ticket;
    private final boolean[] pregranted;
    private final boolean[] granted;
    private final boolean[] grantDue;
    private final long[] grantGeneration;

    // cores
    private final int[] onCpu;
    private final long[] cpuSinceNs;
    private final boolean[] cpuDirty;

    // enforcers
    private final boolean[] desired;
    private final boolean[] applied;
    private final boolean[] target;
    private final int[] differing;
    private final boolean[] updating;
    private final long[] updateSinceNs;
    private final long[] generation;
    private final long[] updateGeneration;
    private final long[] appliedGeneration;

    // GPUs
    private final int[][] turn;
    private final int[] turnSize;
    private final long[] deviceWork;
    private final int[] onGpu;
    private final boolean[] switching;
    private final long[] gpuSinceNs;
    private final long[] sliceEndNs;
    private final int[] lastOnGpu;
    private final boolean[] gpuDirty;
    private final boolean[] stalled;
    private final long[] stallSinceNs;
    private final long[] stallEndNs;
    private final long[] updateEndNs;

    // event sources: updates, GPUs, stops of GPUs, cores, arrivals
    private final EventQueue queue;
    private final int gpuSource;
    private final int stallSource;
    private final int cpuSource;
    private final int taskSource;

    // results
    private final long[] jobs;
    private final long[] completed;
    private final long[] misses;
    private final long[] maxResponseNs;
    private final long[] sumResponseNs;
    private final long[] worstArrivalNs;
    private final long[] preemptions;
    private final long[] maxGrantWaitNs;

    /**
     * Prepares a set.
     *
     * @param set every task with a core
     * @throws InvalidModelException if a core is missing, or the set is beyond the limits of the scheduler core
     */
    public Simulator(final TaskSet set) {
        this.set = set;
        busy = set.mode() == WaitMode.BUSY;
        taskCount = set.tasks().size();
        cpuCount = set.platform().cpus();
        gpuCount = Math.max(1, set.platform().gpus().size());
        if (gpuCount > SchedulerConfig.GPUS_MAX) {
            throw new InvalidModelException("platform: there are " + gpuCount + " GPUs; the scheduler serves at most "
                + SchedulerConfig.GPUS_MAX);
        }
        final int n = taskCount;
        cpuOf = new int[n];
        gpuOf = new int[n];
        realTime = new boolean[n];
        priority = new int[n];
        gpuPriority = new int[n];
        periodNs = new long[n];
        deadlineNs = new long[n];
        jitterNs = new long[n];
        partition = new int[n];
        weight = new int[n];
        budgetNs = new long[n];
        quotaNs = new long[n];
        capPeriodNs = new long[n];
        overrun = new OverrunAction[n];
        Arrays.fill(overrun, OverrunAction.DEMOTE);
        segmentStart = new int[n + 1];
        int segments = 0;
        for (int i = 0; i < n; i++) {
            segments += set.tasks().get(i).segments().size();
        }
        gpuSegment = new boolean[segments];
        hostNs = new long[segments];
        overlapNs = new long[segments];
        deviceNs = new long[segments];
        final int[] tasksOfCpu = new int[cpuCount];
        final int[] tasksOfGpu = new int[gpuCount];
        int next = 0;
        for (int i = 0; i < n; i++) {
            final Task task = set.tasks().get(i);
            if (task.cpu() == 0) {
                throw new InvalidModelException("task \"" + task.name() + "\": cpu is missing; write cpu: 1.."
                    + cpuCount);
            }
            cpuOf[i] = task.cpu() - 1;
            realTime[i] = !task.bestEffort();
            priority[i] = task.priority();
            gpuPriority[i] = task.gpuPriority();
            periodNs[i] = task.periodNs();
            deadlineNs[i] = task.deadlineNs();
            jitterNs[i] = task.jitterNs();
            tasksOfCpu[cpuOf[i]]++;
            gpuOf[i] = task.gpuSegmentCount() > 0 ? task.gpu() : -1;
            if (gpuOf[i] >= 0) {
                tasksOfGpu[gpuOf[i]]++;
            }
            segmentStart[i] = next;
            for (final Segment part : task.segments()) {
                if (part instanceof Segment.Gpu g) {
                    gpuSegment[next] = true;
                    // alone: the device part starts when this much of the host part is done, the rest runs beside it
                    hostNs[next] = g.totalNs() - g.deviceNs();
                    overlapNs[next] = g.hostNs() - hostNs[next];
                    deviceNs[next] = g.deviceNs();
                } else if (part instanceof Segment.Cpu c) {
                    hostNs[next] = c.durationNs();
                }
                next++;
            }
        }
        segmentStart[n] = next;
        cpuTasks = group(cpuOf, tasksOfCpu);
        gpuTasks = group(gpuOf, tasksOfGpu);
        epsilonNs = new long[gpuCount];
        thetaNs = new long[gpuCount];
        timesliceNs = new long[gpuCount];
        stallNs = new long[gpuCount];
        stallPeriodNs = new long[gpuCount];
        for (int g = 0; g < set.platform().gpus().size(); g++) {
            final Gpu gpu = set.platform().gpus().get(g);
            epsilonNs[g] = gpu.epsilonNs();
            thetaNs[g] = gpu.thetaNs();
            timesliceNs[g] = gpu.timesliceNs();
            stallNs[g] = gpu.stallNs();
            stallPeriodNs[g] = gpu.stallPeriodNs();
        }
        phase = new byte[n];
        segment = new int[n];
        work = new long[n];
        deviceDone = new boolean[n];
        arrivalNs = new long[n];
        worstCaseJob = new boolean[n];
        backlog = new long[n][2];
        backlogHead = new int[n];
        backlogSize = new int[n];
        nextArrivalNs = new long[n];
        nextReleaseNs = new long[n];
        segmentState = new byte[n];
        segmentSinceNs = new long[n];
        beginNs = new long[n];
        ticket = new long[n];
        pregranted = new boolean[n];
        granted = new boolean[n];
        grantDue = new boolean[n];
        grantGeneration = new long[n];
        onCpu = new int[cpuCount];
        cpuSinceNs = new long[cpuCount];
        cpuDirty = new boolean[cpuCount];
        desired = new boolean[n];
        applied = new boolean[n];
        target = new boolean[n];
        differing = new int[gpuCount];
        updating = new boolean[gpuCount];
        updateSinceNs = new long[gpuCount];
        generation = new long[gpuCount];
        updateGeneration = new long[gpuCount];
        appliedGeneration = new long[gpuCount];
        turn = new int[gpuCount][];
        for (int g = 0; g < gpuCount; g++) {
            turn[g] = new int[gpuTasks[g].length];
        }
        turnSize = new int[gpuCount];
        deviceWork = new long[n];
        onGpu = new int[gpuCount];
        switching = new boolean[gpuCount];
        gpuSinceNs = new long[gpuCount];
        sliceEndNs = new long[gpuCount];
        lastOnGpu = new int[gpuCount];
        gpuDirty = new boolean[gpuCount];
        stalled = new boolean[gpuCount];
        stallSinceNs = new long[gpuCount];
        stallEndNs = new long[gpuCount];
        updateEndNs = new long[gpuCount];
        gpuSource = gpuCount;
        stallSource = 2 * gpuCount;
        cpuSource = 3 * gpuCount;
        taskSource = cpuSource + cpuCount;
        queue = new EventQueue(taskSource + n);
        jobs = new long[n];
        completed = new long[n];
        misses = new long[n];
        maxResponseNs = new long[n];
        sumResponseNs = new long[n];
        worstArrivalNs = new long[n];
        preemptions = new long[n];
        maxGrantWaitNs = new long[n];
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
     * Fixes the first arrivals of the following runs, whatever their options say.
     *
     * @param atNs first arrival of each task, in the order of the set, 0 or more; null = as the options say
     * @throws IllegalArgumentException if the number of times is not that of the tasks, or one is negative
     */
    public void setFirstArrivals(final long[] atNs) {
        if (atNs != null) {
            if (atNs.length != taskCount) {
                throw new IllegalArgumentException("there are " + atNs.length + " first arrivals for " + taskCount
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
     * Runs once.
     *
     * @param what  scheduler, mechanism, load, duration, seed
     * @param sink  receives the schedule, or null
     * @return what was observed
     * @throws InvalidModelException if a scheduler by priority is asked for and a task has none
     */
    public SimulationResult run(final SimulationOptions what, final TraceSink sink) {
        execute(what, sink);
        final List<SimulationResult.TaskObservation> observations = new ArrayList<>(taskCount);
        for (int i = 0; i < taskCount; i++) {
            observations.add(new SimulationResult.TaskObservation(set.tasks().get(i).name(), !realTime[i],
                deadlineNs[i], jobs[i], completed[i], misses[i], maxResponseNs[i],
                completed[i] == 0 ? 0 : sumResponseNs[i] / completed[i], worstArrivalNs[i], preemptions[i],
                maxGrantWaitNs[i]));
        }
        return new SimulationResult(what, set.id(), observations, events, updates, nowNs);
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
        return maxResponseNs[task];
    }

    /**
     * Whether a real-time task missed a deadline in the last run.
     *
     * @return true if so
     */
    public boolean anyRealTimeMiss() {
        for (int i = 0; i < taskCount; i++) {
            if (realTime[i] && misses[i] > 0) {
                return true;
            }
        }
        return false;
    }

    private void execute(final SimulationOptions what, final TraceSink sink) {
        reset(what, sink);
        long longest = what.durationNs();
        for (final long period : periodNs) {
            longest = Math.max(longest, 10 * period);
        }
        final long limitNs = Math.addExact(what.durationNs(), longest);
        boolean live = true;
        while (live) {
            final long timer = scheduler.nextTimerNs();
            final long next = Math.min(queue.firstNs(), timer);
            if (queue.firstNs() == EventQueue.NEVER && isAtRest()) {
                live = false;   // windows of partitions open and close for ever
            } else if (next == EventQueue.NEVER) {
                requireRest();
                live = false;
            } else if (next > limitNs) {
                nowNs = limitNs;
                live = false;
            } else {
                nowNs = next;
                if (timer <= next) {
                    scheduler.onTimer(next);
                    afterDecision();
                    settle();
                }
                while (queue.firstNs() == next && queue.first() < taskSource) {
                    onEvent(queue.poll());
                    settle();
                }
                boolean released = false;
                while (queue.firstNs() == next && queue.first() >= taskSource) {
                    onRelease(queue.poll() - taskSource);
                    released = true;
                }
                if (released) {
                    settle();
                }
            }
        }
        finish();
    }

    private boolean isAtRest() {
        for (int i = 0; i < taskCount; i++) {
            if (phase[i] != IDLE) {
                return false;
            }
        }
        return true;
    }

    /** Without a further event every job must be done; otherwise somebody waits for a grant that never comes. */
    private void requireRest() {
        for (int i = 0; i < taskCount; i++) {
            if (phase[i] != IDLE) {
                throw new IllegalStateException("deadlock at " + nowNs + " ns: task \"" + set.tasks().get(i).name()
                    + "\" waits in phase " + phase[i] + " and nothing will happen");
            }
        }
    }

    private void reset(final SimulationOptions what, final TraceSink sink) {
        options = what;
        trace = sink;
        random = new SplittableRandom(what.seed());
        nowNs = 0;
        events = 0;
        updates = 0;
        anyPending = false;
        queue.clear();
        Arrays.fill(phase, IDLE);
        Arrays.fill(segmentState, SEGMENT_NONE);
        Arrays.fill(ticket, 0);
        Arrays.fill(pregranted, false);
        Arrays.fill(granted, false);
        Arrays.fill(grantDue, false);
        Arrays.fill(backlogHead, 0);
        Arrays.fill(backlogSize, 0);
        Arrays.fill(onCpu, -1);
        Arrays.fill(cpuDirty, false);
        Arrays.fill(desired, true);
        Arrays.fill(applied, true);
        Arrays.fill(differing, 0);
        Arrays.fill(updating, false);
        Arrays.fill(generation, 0);
        Arrays.fill(appliedGeneration, 0);
        Arrays.fill(cpuSinceNs, 0);
        Arrays.fill(gpuSinceNs, 0);
        Arrays.fill(turnSize, 0);
        Arrays.fill(deviceWork, 0);
        Arrays.fill(onGpu, -1);
        Arrays.fill(switching, false);
        Arrays.fill(lastOnGpu, -1);
        Arrays.fill(gpuDirty, false);
        Arrays.fill(stalled, false);
        Arrays.fill(jobs, 0);
        Arrays.fill(completed, 0);
        Arrays.fill(misses, 0);
        Arrays.fill(maxResponseNs, 0);
        Arrays.fill(sumResponseNs, 0);
        Arrays.fill(worstArrivalNs, -1);
        Arrays.fill(preemptions, 0);
        Arrays.fill(maxGrantWaitNs, 0);
        final Policy policy = policyOf(what.scheduler());
        enforced = what.scheduler().preemptive() && policy.enforces();
        sharesAlways = !policy.enforces();
        scheduler = new SegmentScheduler(new SchedulerConfig(policy, gpuCount, taskCount, taskCount, enforced,
            what.optimistic(), Unmanaged.BEST_EFFORT), this);
        scheduler.setKeepReady(what.keepReady(), 0);
        final boolean byPriority = what.cpuPolicy() == SimulationOptions.CpuPolicy.FP
            || policy.needs().contains(TaskNeed.PRIORITY);
        for (int i = 0; i < taskCount; i++) {
            if (byPriority && realTime[i] && priority[i] == 0) {
                throw new InvalidModelException("task \"" + set.tasks().get(i).name()
                    + "\": priority is missing; write priority: 1..99 or let --assign choose");
            }
            if (gpuOf[i] >= 0) {
                // one process, hence one context, per task; under EDF any real-time priority will do
                scheduler.addContext(i + 1, gpuOf[i], ContextKind.MANAGED);
                scheduler.addTask(new TaskParameters(i + 1, i + 1, realTime[i] ? Math.max(1, priority[i]) : 0,
                    realTime[i] ? gpuPriority[i] : 0, deadlineNs[i], budgetNs[i], what.optimistic(), overrun[i], 0,
                    partition[i]));
                if (weight[i] > 0) {
                    scheduler.setWeight(scheduler.ownGroup(i + 1), weight[i], 0);
                }
                if (quotaNs[i] > 0) {
                    scheduler.setCap(scheduler.ownGroup(i + 1), quotaNs[i], capPeriodNs[i], 0);
                }
            }
            scheduleArrival(i, firstArrivalNs != null ? firstArrivalNs[i]
                : what.offsets() == SimulationOptions.Offsets.SYNCHRONOUS ? 0 : random.nextLong(periodNs[i]));
        }
        for (int g = 0; g < gpuCount; g++) {
            if (stallNs[g] > 0) {
                scheduleStall(g, random.nextLong(stallPeriodNs[g]));
            }
        }
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

    private void scheduleArrival(final int task, final long atNs) {
        nextArrivalNs[task] = atNs;
        if (atNs >= options.durationNs()) {
            return;
        }
        long late = 0;
        if (jitterNs[task] > 0 && options.jitter() == SimulationOptions.Jitter.RANDOM) {
            final int kind = random.nextInt(3);
            late = kind == 0 ? 0 : kind == 1 ? jitterNs[task] : random.nextLong(jitterNs[task] + 1);
        }
        nextReleaseNs[task] = Math.addExact(atNs, late);
        queue.set(taskSource + task, nextReleaseNs[task]);
    }

    private void onRelease(final int task) {
        events++;
        jobs[task]++;
        final long arrival = nextArrivalNs[task];
        if (phase[task] == IDLE) {
            startJob(task, arrival);
        } else {
            pushBacklog(task, arrival);
        }
        long gap = periodNs[task];
        if (options.arrivals() == SimulationOptions.Arrivals.SPORADIC && random.nextInt(4) != 0) {
            gap += random.nextLong(periodNs[task] / 2 + 1);
        }
        scheduleArrival(task, Math.addExact(arrival, gap));
    }

    private void startJob(final int task, final long arrival) {
        arrivalNs[task] = arrival;
        worstCaseJob[task] = options.execution() == SimulationOptions.Execution.WORST || random.nextInt(4) == 0;
        segment[task] = segmentStart[task] - 1;
        nextSegment(task);
    }

    private long draw(final int task, final long worstNs) {
        return worstCaseJob[task] || worstNs == 0 ? worstNs : random.nextLong(worstNs + 1);
    }

    /** Goes to the next segment; for the first one the thread need not have the core yet. */
    private void nextSegment(final int task) {
        final int next = segment[task] + 1;
        segment[task] = next;
        cpuDirty[cpuOf[task]] = true;
        if (next == segmentStart[task + 1]) {
            endJob(task);
        } else if (!gpuSegment[next]) {
            phase[task] = CPU;
            work[task] = draw(task, hostNs[next]);
        } else {
            // begin needs the core: zero-length work in front of the segment
            phase[task] = CPU;
            work[task] = 0;
        }
    }

    private void onEvent(final int source) {
        events++;
        if (source < gpuSource) {
            onUpdateComplete(source);
        } else if (source < stallSource) {
            gpuDirty[source - gpuSource] = true;
        } else if (source < cpuSource) {
            onStall(source - stallSource);
        } else {
            cpuDirty[source - cpuSource] = true;
        }
    }

    /** Brings cores and GPUs to rest at the present time. */
    private void settle() {
        boolean moved = true;
        while (moved) {
            moved = false;
            for (int g = 0; g < gpuCount; g++) {
                if (gpuDirty[g]) {
                    gpuDirty[g] = false;
                    settleGpu(g);
                    moved = true;
                }
            }
            for (int c = 0; c < cpuCount; c++) {
                if (cpuDirty[c]) {
                    cpuDirty[c] = false;
                    settleCpu(c);
                    moved = true;
                }
            }
        }
    }

    // ---- cores ----

    private boolean runnable(final int task) {
        switch (phase[task]) {
            case CPU:
            case HOST:
            case HOST_OVERLAP:
            case END:
                return true;
            case WAIT_GRANT:
                // the library sleeps in begin; the published model spins from begin to end
                return busy && options.hold() == SimulationOptions.Hold.ABSTRACT;
            case WAIT_DEVICE:
                return busy;
            default:
                return false;
        }
    }

    private boolean spinning(final int task) {
        return phase[task] == WAIT_GRANT || phase[task] == WAIT_DEVICE;
    }

    /**
     * From the moment it holds its GPU (its update is complete) until it ends or loses it; best-effort threads only
     * where they cannot lose it. With a ceiling: from begin to end, real-time threads only.
     */
    private boolean boosted(final int task) {
        if (options.hold() == SimulationOptions.Hold.CEILING) {
            return realTime[task] && (phase[task] == HOST || phase[task] == HOST_OVERLAP || phase[task] == WAIT_DEVICE
                || phase[task] == END);
        }
        return options.hold() == SimulationOptions.Hold.BOOST && segmentState[task] == SEGMENT_RUNNING
            && grantGeneration[task] <= appliedGeneration[gpuOf[task]] && (realTime[task] || !enforced)
            && (phase[task] == HOST || phase[task] == HOST_OVERLAP
            || phase[task] == WAIT_DEVICE || phase[task] == END);
    }

    /** True if a goes before b on their core. */
    private boolean cpuBefore(final int a, final int b) {
        final boolean boostedA = boosted(a);
        final boolean boostedB = boosted(b);
        if (boostedA != boostedB) {
            return boostedA;
        }
        if (realTime[a] != realTime[b]) {
            return realTime[a];
        }
        if (options.cpuPolicy() == SimulationOptions.CpuPolicy.FP) {
            if (priority[a] != priority[b]) {
                return priority[a] > priority[b];
            }
        } else if (realTime[a]) {
            final long deadlineA = arrivalNs[a] + deadlineNs[a];
            final long deadlineB = arrivalNs[b] + deadlineNs[b];
            if (deadlineA != deadlineB) {
                return deadlineA < deadlineB;
            }
        }
        return arrivalNs[a] != arrivalNs[b] ? arrivalNs[a] < arrivalNs[b] : a < b;
    }

    private void settleCpu(final int cpu) {
        accountCpu(cpu);
        while (true) {
            int best = -1;
            for (final int task : cpuTasks[cpu]) {
                if (runnable(task) && (best < 0 || cpuBefore(task, best))) {
                    best = task;
                }
            }
            onCpu[cpu] = best;
            if (best < 0 || spinning(best)) {
                queue.set(cpuSource + cpu, EventQueue.NEVER);
                return;
            }
            if (work[best] > 0) {
                queue.set(cpuSource + cpu, Math.addExact(nowNs, work[best]));
                return;
            }
            step(best);
        }
    }

    /** Books what the thread on a core did up to now; called before its phase changes. */
    private void accountCpu(final int cpu) {
        final int task = onCpu[cpu];
        final long since = cpuSinceNs[cpu];
        cpuSinceNs[cpu] = nowNs;
        if (task < 0 || since == nowNs) {
            return;
        }
        final boolean spins = spinning(task);
        if (!spins) {
            work[task] -= nowNs - since;
        }
        if (trace != null) {
            trace.onCpu(cpu + 1, task, spins ? TraceSink.Activity.SPIN
                : phase[task] == CPU ? TraceSink.Activity.CPU : TraceSink.Activity.HOST, since, nowNs);
        }
    }

    /** The thread has the core and no work left in its phase: it does what comes next. */
    private void step(final int task) {
        switch (phase[task]) {
            case CPU:
                if (gpuSegment[segment[task]]) {
                    startWindow(task);
                } else {
                    nextSegment(task);
                }
                break;
            case HOST:
                if (options.hold() == SimulationOptions.Hold.ABSTRACT) {
                    begin(task);
                    if (granted[task]) {
                        launch(task);
                    } else {
                        phase[task] = WAIT_GRANT;
                    }
                } else {
                    launch(task);
                }
                break;
            case HOST_OVERLAP:
                if (!deviceDone[task]) {
                    phase[task] = WAIT_DEVICE;
                } else if (options.hold() == SimulationOptions.Hold.ABSTRACT) {
                    nextSegment(task);
                } else {
                    end(task);
                    nextSegment(task);
                }
                break;
            case END:
                if (options.hold() != SimulationOptions.Hold.ABSTRACT) {
                    end(task);
                }
                nextSegment(task);
                break;
            default:
                throw new IllegalStateException("task " + task + " has the core in phase " + phase[task]);
        }
    }

    private void startWindow(final int task) {
        final int s = segment[task];
        if (options.hold() == SimulationOptions.Hold.ABSTRACT) {
            phase[task] = HOST;
            work[task] = draw(task, hostNs[s]);
            return;
        }
        begin(task);
        if (granted[task]) {
            phase[task] = HOST;
            work[task] = draw(task, hostNs[s]);
        } else {
            phase[task] = WAIT_GRANT;
        }
    }

    private void launch(final int task) {
        final int s = segment[task];
        final int gpu = gpuOf[task];
        phase[task] = HOST_OVERLAP;
        work[task] = draw(task, overlapNs[s]);
        deviceWork[task] = draw(task, deviceNs[s]);
        deviceDone[task] = deviceWork[task] == 0;
        if (!deviceDone[task]) {
            turn[gpu][turnSize[gpu]] = task;
            turnSize[gpu]++;
            gpuDirty[gpu] = true;
        } else if (options.hold() == SimulationOptions.Hold.ABSTRACT) {
            end(task);
        }
    }

    private void onDeviceDone(final int task) {
        deviceDone[task] = true;
        if (options.hold() == SimulationOptions.Hold.ABSTRACT) {
            end(task);
        }
        if (phase[task] == WAIT_DEVICE) {
            accountCpu(cpuOf[task]);
            phase[task] = END;
            work[task] = 0;
            cpuDirty[cpuOf[task]] = true;
        }
    }

    private void endJob(final int task) {
        final long response = nowNs - arrivalNs[task];
        final boolean missed = response > deadlineNs[task];
        completed[task]++;
        sumResponseNs[task] += response;
        observe(task, response);
        if (missed) {
            misses[task]++;
        }
        if (trace != null) {
            trace.onJob(task, arrivalNs[task], nowNs, missed);
        }
        phase[task] = IDLE;
        cpuDirty[cpuOf[task]] = true;
        if (backlogSize[task] > 0) {
            startJob(task, popBacklog(task));
        }
    }

    private void observe(final int task, final long response) {
        if (response > maxResponseNs[task] || worstArrivalNs[task] < 0) {
            maxResponseNs[task] = response;
            worstArrivalNs[task] = arrivalNs[task];
        }
    }

    private void pushBacklog(final int task, final long arrival) {
        long[] ring = backlog[task];
        if (backlogSize[task] == ring.length) {
            final long[] larger = new long[ring.length * 2];
            for (int k = 0; k < ring.length; k++) {
                larger[k] = ring[(backlogHead[task] + k) % ring.length];
            }
            ring = larger;
            backlog[task] = ring;
            backlogHead[task] = 0;
        }
        ring[(backlogHead[task] + backlogSize[task]) % ring.length] = arrival;
        backlogSize[task]++;
    }

    private long popBacklog(final int task) {
        final long[] ring = backlog[task];
        final long arrival = ring[backlogHead[task]];
        backlogHead[task] = (backlogHead[task] + 1) % ring.length;
        backlogSize[task]--;
        return arrival;
    }

    // ---- segments: calls to the scheduler core, and its decisions ----

    private void begin(final int task) {
        final boolean atOnce = options.optimistic() && pregranted[task];
        ticket[task]++;
        granted[task] = atOnce;
        grantDue[task] = false;
        beginNs[task] = nowNs;
        segmentState[task] = SEGMENT_WAITING;
        segmentSinceNs[task] = nowNs;
        require(scheduler.begin(task + 1, ticket[task], arrivalNs[task], arrivalNs[task] + deadlineNs[task], atOnce,
            nowNs, nowNs), "begin", task);
        afterDecision();
    }

    private void end(final int task) {
        changeState(task, SEGMENT_NONE);
        require(scheduler.end(task + 1, ticket[task], nowNs), "end", task);
        afterDecision();
    }

    private void require(final int outcome, final String what, final int task) {
        if (outcome != Outcome.ACCEPTED) {
            throw new IllegalStateException(what + " of task \"" + set.tasks().get(task).name() + "\" at " + nowNs
                + " ns was refused: " + Outcome.name(outcome));
        }
    }

    private void changeState(final int task, final byte state) {
        if (trace != null && nowNs > segmentSinceNs[task]) {
            if (segmentState[task] == SEGMENT_WAITING) {
                trace.onSegment(gpuOf[task], task, TraceSink.Activity.WAITING, segmentSinceNs[task], nowNs);
            } else if (segmentState[task] == SEGMENT_RUNNING) {
                trace.onSegment(gpuOf[task], task, TraceSink.Activity.HOLDING, segmentSinceNs[task], nowNs);
            } else if (segmentState[task] == SEGMENT_PREEMPTED) {
                trace.onSegment(gpuOf[task], task, TraceSink.Activity.PREEMPTED, segmentSinceNs[task], nowNs);
            }
        }
        segmentState[task] = state;
        segmentSinceNs[task] = nowNs;
        // a boost begins or ends
        cpuDirty[cpuOf[task]] = true;
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        final int task = contextId - 1;
        if (desired[task] != enabled) {
            desired[task] = enabled;
            differing[gpu] += enabled == applied[task] ? -1 : 1;
            generation[gpu]++;
        }
    }

    @Override
    public void onPreempt(final int gpu, final int taskId, final long segmentTicket, final int byTaskId) {
        preemptions[taskId - 1]++;
        changeState(taskId - 1, SEGMENT_PREEMPTED);
    }

    @Override
    public void onResume(final int gpu, final int taskId, final long segmentTicket) {
        changeState(taskId - 1, SEGMENT_RUNNING);
        grantGeneration[taskId - 1] = generation[gpu];
    }

    @Override
    public void onGrant(final int gpu, final int taskId, final long segmentTicket) {
        final int task = taskId - 1;
        changeState(task, SEGMENT_RUNNING);
        grantGeneration[task] = generation[gpu];
        if (!granted[task]) {
            grantDue[task] = true;
            anyPending = true;
        }
    }

    @Override
    public void onPregrant(final int taskId, final boolean may) {
        pregranted[taskId - 1] = may;
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long segmentTicket, final long missedNs) {
        // jobs are what the simulator judges; a segment that is late belongs to a job that will be
    }

    @Override
    public void onOverrun(final int taskId, final long segmentTicket, final long budgetNs) {
        // what follows arrives as decisions of its own
    }

    private void afterDecision() {
        for (int g = 0; g < gpuCount; g++) {
            enforce(g);
        }
    }

    // ---- enforcers: one per GPU, one update at a time, from applied towards desired state ----

    private void enforce(final int gpu) {
        while (!updating[gpu] && differing[gpu] > 0) {
            for (final int task : gpuTasks[gpu]) {
                target[task] = desired[task];
            }
            updating[gpu] = true;
            updateSinceNs[gpu] = nowNs;
            updateGeneration[gpu] = generation[gpu];
            updates++;
            final long cost = options.execution() == SimulationOptions.Execution.WORST || random.nextInt(4) == 0
                ? epsilonNs[gpu] : random.nextLong(epsilonNs[gpu] + 1);
            gpuDirty[gpu] = true;
            if (cost == 0) {
                apply(gpu);
            } else {
                updateEndNs[gpu] = Math.addExact(nowNs, cost) + (stalled[gpu] ? stallEndNs[gpu] - nowNs : 0);
                queue.set(gpu, updateEndNs[gpu]);
            }
        }
        if (!updating[gpu]) {
            setApplied(gpu, generation[gpu]);
        }
        deliverGrants(gpu);
    }

    private void onUpdateComplete(final int gpu) {
        if (trace != null) {
            trace.onGpu(gpu, -1, TraceSink.Activity.UPDATE, updateSinceNs[gpu], nowNs);
        }
        // who was on the hardware until now has worked until now
        accountGpu(gpu);
        apply(gpu);
        deliverGrants(gpu);
        enforce(gpu);
    }

    // ---- stops of a GPU that the scheduler does not cause: nobody is served, an update in progress waits ----

    private void scheduleStall(final int gpu, final long atNs) {
        queue.set(stallSource + gpu, atNs <= options.durationNs() ? atNs : EventQueue.NEVER);
    }

    private void onStall(final int gpu) {
        accountGpu(gpu);
        gpuDirty[gpu] = true;
        stalled[gpu] = !stalled[gpu];
        if (stalled[gpu]) {
            final long length = options.execution() == SimulationOptions.Execution.WORST || random.nextInt(4) == 0
                ? stallNs[gpu] : 1 + random.nextLong(stallNs[gpu]);
            stallSinceNs[gpu] = nowNs;
            stallEndNs[gpu] = Math.addExact(nowNs, length);
            queue.set(stallSource + gpu, stallEndNs[gpu]);
            if (updating[gpu]) {
                updateEndNs[gpu] = Math.addExact(updateEndNs[gpu], length);
                queue.set(gpu, updateEndNs[gpu]);
            }
        } else {
            final long late = random.nextInt(4) == 0 ? random.nextLong(stallPeriodNs[gpu]) : 0;
            scheduleStall(gpu, Math.addExact(stallSinceNs[gpu] + stallPeriodNs[gpu], late));
        }
    }

    private void apply(final int gpu) {
        int different = 0;
        for (final int task : gpuTasks[gpu]) {
            applied[task] = target[task];
            if (applied[task] != desired[task]) {
                different++;
            }
        }
        differing[gpu] = different;
        updating[gpu] = false;
        setApplied(gpu, updateGeneration[gpu]);
        // the switch to whoever comes next is part of epsilon, one in progress included
        lastOnGpu[gpu] = -1;
        if (switching[gpu]) {
            switching[gpu] = false;
            sliceEndNs[gpu] = nowNs + timesliceNs[gpu];
        }
        gpuDirty[gpu] = true;
    }

    private void setApplied(final int gpu, final long reached) {
        if (appliedGeneration[gpu] != reached) {
            appliedGeneration[gpu] = reached;
            if (options.hold() == SimulationOptions.Hold.BOOST) {
                for (final int task : gpuTasks[gpu]) {
                    cpuDirty[cpuOf[task]] = true;
                }
            }
        }
    }

    private void deliverGrants(final int gpu) {
        if (!anyPending) {
            return;
        }
        for (final int task : gpuTasks[gpu]) {
            if (grantDue[task] && grantGeneration[task] <= appliedGeneration[gpu]) {
                grantDue[task] = false;
                granted[task] = true;
                maxGrantWaitNs[task] = Math.max(maxGrantWaitNs[task], nowNs - beginNs[task]);
                if (phase[task] == WAIT_GRANT) {
                    accountCpu(cpuOf[task]);
                    if (options.hold() == SimulationOptions.Hold.ABSTRACT) {
                        launch(task);
                    } else {
                        phase[task] = HOST;
                        work[task] = draw(task, hostNs[segment[task]]);
                    }
                    cpuDirty[cpuOf[task]] = true;
                }
            }
        }
        anyPending = false;
        for (int i = 0; i < taskCount && !anyPending; i++) {
            anyPending = grantDue[i];
        }
    }

    // ---- GPUs: whoever is on the hardware and has work, in turns ----

    private boolean eligible(final int gpu, final int task) {
        return applied[task] && !stalled[gpu] && !(updating[gpu] && options.update() == SimulationOptions.Update.STALL);
    }

    private void accountGpu(final int gpu) {
        final int task = onGpu[gpu];
        final long since = gpuSinceNs[gpu];
        gpuSinceNs[gpu] = nowNs;
        if (task < 0 || since == nowNs) {
            return;
        }
        if (!switching[gpu]) {
            deviceWork[task] -= nowNs - since;
        }
        if (trace != null) {
            trace.onGpu(gpu, task, switching[gpu] ? TraceSink.Activity.SWITCH : TraceSink.Activity.DEVICE, since,
                nowNs);
        }
    }

    private void settleGpu(final int gpu) {
        accountGpu(gpu);
        int current = onGpu[gpu];
        final boolean occupied = current >= 0;
        if (current >= 0 && deviceWork[current] == 0) {
            final int done = current;
            leaveTurn(gpu, done);
            onGpu[gpu] = -1;
            current = -1;
            onDeviceDone(done);
        }
        if (current >= 0 && !eligible(gpu, current)) {
            switching[gpu] = false;
            onGpu[gpu] = -1;
            current = -1;
        }
        int candidates = 0;
        for (int k = 0; k < turnSize[gpu]; k++) {
            if (eligible(gpu, turn[gpu][k])) {
                candidates++;
            }
        }
        if (current >= 0) {
            if (switching[gpu]) {
                if (nowNs < sliceEndNs[gpu] - timesliceNs[gpu]) {
                    queue.set(gpuSource + gpu, sliceEndNs[gpu] - timesliceNs[gpu]);
                    return;
                }
                switching[gpu] = false;
            }
            if (sliceEndNs[gpu] < nowNs) {
                // it was alone: slices went by without a switch
                final long gone = (nowNs - sliceEndNs[gpu] + timesliceNs[gpu] - 1) / timesliceNs[gpu];
                sliceEndNs[gpu] += gone * timesliceNs[gpu];
            }
            if (candidates == 1 || nowNs < sliceEndNs[gpu]) {
                schedule(gpu, current, candidates);
                return;
            }
            leaveTurn(gpu, current);
            turn[gpu][turnSize[gpu]] = current;
            turnSize[gpu]++;
        }
        if (candidates == 0) {
            onGpu[gpu] = -1;
            queue.set(gpuSource + gpu, EventQueue.NEVER);
            return;
        }
        int next = -1;
        for (int k = 0; k < turnSize[gpu] && next < 0; k++) {
            if (eligible(gpu, turn[gpu][k])) {
                next = turn[gpu][k];
            }
        }
        onGpu[gpu] = next;
        // the first switch to a segment that has the GPU to itself is part of its measured device part (and, where
        // contexts are taken off, of epsilon); between contexts that share the GPU, each switch costs theta
        final boolean shared = occupied || sharesAlways;
        final boolean pays = shared && lastOnGpu[gpu] >= 0 && lastOnGpu[gpu] != next && thetaNs[gpu] > 0;
        lastOnGpu[gpu] = next;
        if (pays) {
            switching[gpu] = true;
            sliceEndNs[gpu] = nowNs + thetaNs[gpu] + timesliceNs[gpu];
            queue.set(gpuSource + gpu, nowNs + thetaNs[gpu]);
        } else {
            switching[gpu] = false;
            sliceEndNs[gpu] = nowNs + timesliceNs[gpu];
            schedule(gpu, next, candidates);
        }
    }

    private void schedule(final int gpu, final int task, final int candidates) {
        final long done = Math.addExact(nowNs, deviceWork[task]);
        queue.set(gpuSource + gpu, candidates > 1 ? Math.min(done, sliceEndNs[gpu]) : done);
    }

    private void leaveTurn(final int gpu, final int task) {
        final int[] order = turn[gpu];
        int at = 0;
        while (order[at] != task) {
            at++;
        }
        turnSize[gpu]--;
        System.arraycopy(order, at + 1, order, at, turnSize[gpu] - at);
    }

    // ---- end of the run ----

    private void finish() {
        for (int i = 0; i < taskCount; i++) {
            if (phase[i] != IDLE) {
                final long age = nowNs - arrivalNs[i];
                observe(i, age);
                if (age > deadlineNs[i]) {
                    misses[i]++;
                }
                for (int k = 0; k < backlogSize[i]; k++) {
                    if (nowNs - backlog[i][(backlogHead[i] + k) % backlog[i].length] > deadlineNs[i]) {
                        misses[i]++;
                    }
                }
            }
        }
        if (trace != null) {
            for (int c = 0; c < cpuCount; c++) {
                accountCpu(c);
            }
            for (int g = 0; g < gpuCount; g++) {
                accountGpu(g);
            }
            for (int i = 0; i < taskCount; i++) {
                changeState(i, SEGMENT_NONE);
            }
        }
    }

    private static int[][] group(final int[] of, final int[] sizes) {
        final int[][] groups = new int[sizes.length][];
        for (int k = 0; k < sizes.length; k++) {
            groups[k] = new int[sizes[k]];
        }
        final int[] filled = new int[sizes.length];
        for (int i = 0; i < of.length; i++) {
            if (of[i] >= 0) {
                groups[of[i]][filled[of[i]]++] = i;
            }
        }
        return groups;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.core.Anticipator;
import java.util.Locale;
import java.util.Objects;

/**
 * What is simulated, apart from the task set.
 *
 * @param scheduler  the scheduler of the GPU
 * @param cpuPolicy  how each core picks its thread
 * @param hold       which part of a GPU segment holds the GPU
 * @param optimistic true if begin returns at once where the scheduler core pre-granted it
 * @param keepReady  true if contexts of idle pre-granted tasks stay enabled while a segment runs, as
 *                   {@code gpuseg run} has it; ignored if not optimistic
 * @param update     what the GPU does while its runlist is rewritten
 * @param arrivals   distance of the arrivals
 * @param offsets    first arrivals
 * @param execution  execution times, and costs of the updates
 * @param jitter     release jitter
 * @param hostWork   where in its window a segment needs the core
 * @param anticipationPpm the share of best-effort time for which the GPU may be kept free for begins that are forecast
 *                   from periods, declared or not; 0 = none is anticipated
 * @param durationNs arrivals happen in [0, duration); the run goes on until what arrived is done, at most for another
 *                   duration or ten times the longest period, whichever is longer
 * @param seed       of the random choices
 */
public record SimulationOptions(Scheduler scheduler, CpuPolicy cpuPolicy, Hold hold, boolean optimistic,
    boolean keepReady, Update update, Arrivals arrivals, Offsets offsets, Execution execution, Jitter jitter,
    HostWork hostWork, int anticipationPpm, long durationNs, long seed) {

    /** Longest duration: 10,000 s. */
    public static final long MAX_DURATION_NS = 10_000_000_000_000L;

    /** What decides about the GPU: a policy, and whether it can preempt. */
    public enum Scheduler {
        /** Fixed priorities, enforced by disabling contexts. */
        FP("fp", true),
        /** Earliest deadline first, enforced likewise. */
        EDF("edf", true),
        /** The default driver: everything is granted, contexts share the GPU in time slices. */
        RR("rr", false),
        /** Fixed priorities at begin only: a granted segment is never preempted. */
        GATE("fp", false),
        /** Earliest deadline first at begin only. */
        GATE_EDF("edf", false),
        /** Fixed priorities; segments of equal priority run together. */
        CLASSES("classes", true),
        /** Time partitions; {@link Simulator#setPolicy} says which. */
        PARTITIONS("partitions", true),
        /** Whatever policy {@link Simulator#setPolicy} names. */
        POLICY("", true),
        /** The same at begin only. */
        GATE_POLICY("", false);

        private final String policy;
        private final boolean preemptive;

        Scheduler(final String policy, final boolean preemptive) {
            this.policy = policy;
            this.preemptive = preemptive;
        }

        /** The policy that decides; its name in the catalogue, empty if {@link Simulator#setPolicy} names it. */
        public String policy() {
            return policy;
        }

        /** Whether contexts are disabled; false if a granted segment is never preempted. */
        public boolean preemptive() {
            return preemptive;
        }

        /**
         * The word of the command line.
         *
         * @return {@code fp}, {@code edf}, {@code rr}, {@code gate}, {@code gate-edf}, {@code classes},
         *     {@code partitions}, {@code policy} or {@code gate-policy}
         */
        public String word() {
            return SimulationOptions.word(this);
        }
    }

    /** How each core picks its thread; preemptive, partitioned. */
    public enum CpuPolicy {
        /** Fixed priorities. */
        FP,
        /** Earliest absolute deadline of the job. */
        EDF
    }

    /** Which part of a GPU segment holds the GPU, and how its host part is scheduled. */
    public enum Hold {
        /** From begin to end, host part included, host part at the thread's own priority: the published mechanism. */
        WINDOW,
        /** As window; while the segment is granted, its host part runs above every other thread of the core. */
        BOOST,
        /** The device part alone, and the end needs no core: the model of the published equations. */
        ABSTRACT,
        /** As boost, but from begin to end, also while another segment has the GPU: what libgpuseg does. */
        CEILING,
        /** None: contexts of real-time tasks have long time slices, and best effort takes turns with short ones. */
        TURNS
    }

    /** What the GPU does while its runlist is rewritten. */
    public enum Update {
        /** Nothing advances on it: the worst case. */
        STALL,
        /** Enabled contexts go on, in time slices, until the update is complete. */
        SHARE
    }

    /** Distance of the arrivals of a task. */
    public enum Arrivals {
        /** Exactly one period. */
        PERIODIC,
        /** One period, and at random up to half a period more. */
        SPORADIC
    }

    /** First arrivals. */
    public enum Offsets {
        /** All tasks at time 0. */
        SYNCHRONOUS,
        /** At random within the first period of each task. */
        RANDOM
    }

    /** Execution times. */
    public enum Execution {
        /** Every part takes its worst case. */
        WORST,
        /** Every part takes a random share of its worst case; one job in four all of it. Updates likewise. */
        RANDOM
    }

    /** Release jitter of the tasks that declare one. */
    public enum Jitter {
        /** None. */
        NONE,
        /** At random: none, all, or anything between. */
        RANDOM
    }

    /**
     * Where in its window a segment needs the core; where parts overlap ({@code total}), as {@link #FIRST}. Also when a
     * job waits for its declared blocking.
     */
    public enum HostWork {
        /** Before the device part; the job waits for all of its blocking when it begins. */
        FIRST,
        /** Before it, after it, or some before and the rest after it, at random for each window; blocking in parts. */
        ANYWHERE
    }

    /** Validates. */
    public SimulationOptions {
        Objects.requireNonNull(scheduler);
        Objects.requireNonNull(cpuPolicy);
        Objects.requireNonNull(hold);
        Objects.requireNonNull(update);
        Objects.requireNonNull(arrivals);
        Objects.requireNonNull(offsets);
        Objects.requireNonNull(execution);
        Objects.requireNonNull(jitter);
        Objects.requireNonNull(hostWork);
        if (anticipationPpm < 0 || anticipationPpm > Anticipator.PPM) {
            throw new IllegalArgumentException("anticipation budget is " + anticipationPpm + " ppm; it must be 0.."
                + Anticipator.PPM);
        }
        if (durationNs <= 0 || durationNs > MAX_DURATION_NS) {
            throw new IllegalArgumentException("duration is " + durationNs + " ns; it must be 1ns..10000s");
        }
    }

    /**
     * The usual run: fixed priorities on cores and GPU, whole windows, begins that wait, synchronous periodic arrivals,
     * worst-case execution times, maximal cost of updates.
     *
     * @param durationNs how long jobs arrive
     * @return the options
     */
    public static SimulationOptions ofDurationNs(final long durationNs) {
        return new SimulationOptions(Scheduler.FP, CpuPolicy.FP, Hold.WINDOW, false, true, Update.STALL,
            Arrivals.PERIODIC, Offsets.SYNCHRONOUS, Execution.WORST, Jitter.NONE, HostWork.FIRST, 0,
            durationNs, 1);
    }

    /**
     * The same with other deciders.
     *
     * @param newScheduler of the GPU
     * @param newCpuPolicy of the cores
     * @return the changed copy
     */
    public SimulationOptions with(final Scheduler newScheduler, final CpuPolicy newCpuPolicy) {
        return new SimulationOptions(newScheduler, newCpuPolicy, hold, optimistic, keepReady, update, arrivals,
            offsets, execution, jitter, hostWork, anticipationPpm, durationNs, seed);
    }

    /**
     * The same with another mechanism.
     *
     * @param newHold       what holds the GPU
     * @param newOptimistic whether a pre-granted begin returns at once
     * @param newUpdate     what the GPU does during an update
     * @return the changed copy
     */
    public SimulationOptions with(final Hold newHold, final boolean newOptimistic, final Update newUpdate) {
        return new SimulationOptions(scheduler, cpuPolicy, newHold, newOptimistic, keepReady, newUpdate, arrivals,
            offsets, execution, jitter, hostWork, anticipationPpm, durationNs, seed);
    }

    /**
     * The same with another treatment of idle tasks' contexts.
     *
     * @param keep whether contexts of idle pre-granted tasks stay enabled while a segment runs
     * @return the changed copy
     */
    public SimulationOptions keepingReady(final boolean keep) {
        return new SimulationOptions(scheduler, cpuPolicy, hold, optimistic, keep, update, arrivals, offsets, execution,
            jitter, hostWork, anticipationPpm, durationNs, seed);
    }

    /**
     * The same with another load.
     *
     * @param newArrivals  distance of arrivals
     * @param newOffsets   first arrivals
     * @param newExecution execution times
     * @param newJitter    release jitter
     * @return the changed copy
     */
    public SimulationOptions with(final Arrivals newArrivals, final Offsets newOffsets, final Execution newExecution,
        final Jitter newJitter) {
        return new SimulationOptions(scheduler, cpuPolicy, hold, optimistic, keepReady, update, newArrivals,
            newOffsets, newExecution, newJitter, hostWork, anticipationPpm, durationNs, seed);
    }

    /** A copy with another seed of all random choices. */
    public SimulationOptions withSeed(final long newSeed) {
        return new SimulationOptions(scheduler, cpuPolicy, hold, optimistic, keepReady, update, arrivals, offsets,
            execution, jitter, hostWork, anticipationPpm, durationNs, newSeed);
    }

    /** A copy in which segments need the core elsewhere in their window. */
    public SimulationOptions with(final HostWork newHostWork) {
        return new SimulationOptions(scheduler, cpuPolicy, hold, optimistic, keepReady, update, arrivals, offsets,
            execution, jitter, newHostWork, anticipationPpm, durationNs, seed);
    }

    /**
     * The same with anticipation.
     *
     * @param ppm the share of best-effort time for which the GPU may be kept free, 0 = no anticipation
     * @return the changed copy
     */
    public SimulationOptions anticipating(final int ppm) {
        return new SimulationOptions(scheduler, cpuPolicy, hold, optimistic, keepReady, update, arrivals, offsets,
            execution, jitter, hostWork, ppm, durationNs, seed);
    }

    /**
     * Options without anticipation.
     *
     * @param scheduler  as above
     * @param cpuPolicy  as above
     * @param hold       as above
     * @param optimistic as above
     * @param keepReady  as above
     * @param update     as above
     * @param arrivals   as above
     * @param offsets    as above
     * @param execution  as above
     * @param jitter     as above
     * @param hostWork   as above
     * @param durationNs as above
     * @param seed       as above
     */
    public SimulationOptions(final Scheduler scheduler, final CpuPolicy cpuPolicy, final Hold hold,
        final boolean optimistic, final boolean keepReady, final Update update, final Arrivals arrivals,
        final Offsets offsets, final Execution execution, final Jitter jitter, final HostWork hostWork,
        final long durationNs, final long seed) {
        this(scheduler, cpuPolicy, hold, optimistic, keepReady, update, arrivals, offsets, execution, jitter, hostWork,
            0, durationNs, seed);
    }

    static String word(final Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}

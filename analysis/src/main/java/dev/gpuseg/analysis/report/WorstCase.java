/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Model;
import dev.gpuseg.analysis.rta.TurnSlices;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import dev.gpuseg.analysis.sim.SimulationResult;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.analysis.sim.TraceSink;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The worst of many simulated runs: the one in which a real-time job came closest to its deadline, or exceeded it by
 * most.
 *
 * @param set           what ran
 * @param options       the run
 * @param runs          how many runs were tried
 * @param maxResponseNs longest response of each task over all runs
 * @param task          index of the task whose job was worst, -1 if no real-time job ran
 * @param arrivalNs     arrival of that job
 * @param responseNs    its response
 * @param intervals     the schedule around that job
 * @param fromNs        start of what is shown
 * @param toNs          end of what is shown
 */
public record WorstCase(TaskSet set, SimulationOptions options, int runs, List<Long> maxResponseNs, int task,
    long arrivalNs, long responseNs, List<Interval> intervals, long fromNs, long toNs) {
    private static final long MAX_RUN_NS = 20_000_000_000L;

    /** The row of the chart that an interval belongs to. */
    public enum Lane {
        /** A core. */
        CPU,
        /** A GPU. */
        GPU,
        /** The state of a segment. */
        SEGMENT,
        /** A whole job, from arrival to end. */
        JOB
    }

    /**
     * Something that took time.
     *
     * @param lane     what it belongs to
     * @param resource core (from 1) or GPU (from 0); for a job 1 if it missed its deadline
     * @param task     index of the task, -1 for an update
     * @param activity what was done; null for a job
     * @param fromNs   start
     * @param toNs     end
     */
    public record Interval(Lane lane, int resource, int task, TraceSink.Activity activity, long fromNs, long toNs) {
    }

    /** Copies the lists. */
    public WorstCase {
        maxResponseNs = List.copyOf(maxResponseNs);
        intervals = List.copyOf(intervals);
    }

    /**
     * The run to compare with the bounds of an analysis. Where a bound assumes that a task holds the GPU only while its
     * device part runs, whole windows are simulated nevertheless: no existing mechanism releases the GPU earlier.
     *
     * @param model      the schedule that the analysis describes
     * @param optimistic whether pre-granted begins return at once, where the model preempts
     * @param durationNs of a run
     * @return options of a synchronous, periodic worst-case run
     */
    public static SimulationOptions mechanismOf(final Model model, final boolean optimistic, final long durationNs) {
        final boolean returnsAtOnce = optimistic && model.preempts();
        return SimulationOptions.ofDurationNs(durationNs).with(model.scheduler(), model.cores())
            .with(model.hold() == Hold.ABSTRACT ? Hold.WINDOW : model.hold(), returnsAtOnce,
                returnsAtOnce ? Update.SHARE : Update.STALL);
    }

    /**
     * Simulates.
     *
     * @param set       every task with a core, real-time tasks with priorities
     * @param mechanism what to simulate; arrivals, offsets, times and seed are replaced
     * @param runs      how many runs, at least 1; the first is synchronous and periodic with worst-case times
     * @param seed      of the others
     * @return the worst run
     */
    public static WorstCase search(final TaskSet set, final SimulationOptions mechanism, final int runs,
        final long seed) {
        final Simulator simulator = new Simulator(set);
        if (mechanism.hold() == Hold.TURNS) {
            simulator.setSlices(TurnSlices.of(set));
        }
        final Long[] longest = new Long[set.tasks().size()];
        Arrays.fill(longest, 0L);
        SimulationOptions worst = null;
        int worstTask = -1;
        double worstShare = -1;
        for (int run = 0; run < runs; run++) {
            final SimulationOptions options = run == 0 ? mechanism
                : mechanism.with(run % 3 == 0 ? Arrivals.SPORADIC : Arrivals.PERIODIC, Offsets.RANDOM, Execution.WORST,
                    Jitter.RANDOM).withSeed(seed + run);
            simulator.execute(options);
            for (int i = 0; i < longest.length; i++) {
                final Task task = set.tasks().get(i);
                final long seen = simulator.maxResponseNs(i);
                longest[i] = Math.max(longest[i], seen);
                final double share = (double) seen / task.deadlineNs();
                if (!task.bestEffort() && share > worstShare) {
                    worstShare = share;
                    worst = options;
                    worstTask = i;
                }
            }
        }
        return trace(simulator, set, worst == null ? mechanism : worst, runs, List.of(longest), worstTask);
    }

    /**
     * How long a run should be for a set: ten of its longest periods, at most 20 s.
     *
     * @param set a set
     * @return nanoseconds
     */
    public static long usualDurationNs(final TaskSet set) {
        long longest = 0;
        for (final Task task : set.tasks()) {
            longest = Math.max(longest, task.periodNs());
        }
        return Math.min(longest > MAX_RUN_NS / 10 ? MAX_RUN_NS : 10 * longest, MAX_RUN_NS);
    }

    private static WorstCase trace(final Simulator simulator, final TaskSet set, final SimulationOptions options,
        final int runs, final List<Long> longest, final int task) {
        final List<Interval> all = new ArrayList<>();
        final SimulationResult result = simulator.run(options, new Recorder(all));
        final SimulationResult.TaskObservation seen = result.tasks().get(Math.max(0, task));
        final long arrival = Math.max(0, seen.worstArrivalNs());
        final long response = seen.maxResponseNs();
        final long margin = Math.max(response / 4, 1);
        final long from = Math.max(0, arrival - margin);
        final long to = Math.min(result.endNs(), Math.max(arrival + response + margin, from + 1));
        final List<Interval> shown = new ArrayList<>();
        for (final Interval interval : all) {
            if (interval.toNs() >= from && interval.fromNs() <= to) {
                shown.add(interval);
            }
        }
        return new WorstCase(set, options, runs, longest, task, arrival, response, shown, from, Math.max(to, from + 1));
    }

    private record Recorder(List<Interval> intervals) implements TraceSink {
        @Override
        public void onCpu(final int cpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            intervals.add(new Interval(Lane.CPU, cpu, task, activity, fromNs, toNs));
        }

        @Override
        public void onGpu(final int gpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            intervals.add(new Interval(Lane.GPU, gpu, task, activity, fromNs, toNs));
        }

        @Override
        public void onSegment(final int gpu, final int task, final Activity activity, final long fromNs,
            final long toNs) {
            intervals.add(new Interval(Lane.SEGMENT, gpu, task, activity, fromNs, toNs));
        }

        @Override
        public void onJob(final int task, final long arrivalNs, final long endNs, final boolean missed) {
            intervals.add(new Interval(Lane.JOB, missed ? 1 : 0, task, null, arrivalNs, endNs));
        }
    }
}

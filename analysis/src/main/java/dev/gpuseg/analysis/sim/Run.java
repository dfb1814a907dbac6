/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.PlatformLimits;
import java.util.SplittableRandom;

/**
 * What the parts of one simulation share: the set, the options, the time, the random choices, the pending events, and
 * each other. The simulator wires it once and starts it anew for each run.
 */
final class Run {
    final SimulatedSet set;
    /**
     * Event sources in the order of simultaneous events: updates, GPUs, stops of GPUs, new contexts, idle parts, cores,
     * arrivals.
     */
    final EventQueue queue;
    final int gpuSource;
    final int stallSource;
    final int newcomerSource;
    final int idleSource;
    final int cpuSource;
    final int taskSource;

    final Observations observations;
    final Threads threads;
    final Cores cores;
    final Arrivals arrivals;
    final Segments segments;
    final EnforcerModel enforcers;
    final Device device;
    final Newcomers newcomers;
    /** Null if the set has no chains. */
    final ChainObserver chains;

    SimulationOptions options;
    TraceSink trace;
    /** What a daemon would journal; null = nobody listens. */
    EventSink journal;
    SplittableRandom random;
    long nowNs;
    long events;
    /** The device part alone holds the GPU: {@link SimulationOptions.Hold#ABSTRACT}. */
    boolean isAbstract;
    /** Every part takes its worst case. */
    private boolean worst;

    Run(final SimulatedSet set) {
        this.set = set;
        gpuSource = set.gpuCount;
        stallSource = 2 * set.gpuCount;
        newcomerSource = 3 * set.gpuCount;
        idleSource = 4 * set.gpuCount;
        cpuSource = idleSource + set.taskCount;
        taskSource = cpuSource + set.cpuCount;
        queue = new EventQueue(taskSource + set.taskCount);
        observations = new Observations(set);
        threads = new Threads(this);
        cores = new Cores(this);
        arrivals = new Arrivals(this);
        segments = new Segments(this);
        enforcers = new EnforcerModel(this);
        device = new Device(this);
        newcomers = new Newcomers(this);
        chains = set.set.chains().isEmpty() ? null : new ChainObserver(set.set);
    }

    void reset(final SimulationOptions what, final TraceSink sink) {
        options = what;
        trace = sink;
        random = new SplittableRandom(what.seed());
        nowNs = 0;
        events = 0;
        isAbstract = what.hold() == SimulationOptions.Hold.ABSTRACT;
        worst = what.execution() == SimulationOptions.Execution.WORST;
        queue.clear();
        observations.reset();
        threads.reset();
        cores.reset();
        arrivals.reset();
        segments.reset();
        enforcers.reset();
        device.reset();
        newcomers.reset();
        if (chains != null) {
            chains.reset();
        }
    }

    /** How long a device part takes: at the lowest clock in the worst case, else at any above it. */
    long atClock(final long declaredNs) {
        final int lowest = set.clockPermille;
        if (lowest == PlatformLimits.CLOCK_MIN || declaredNs == 0) {
            return declaredNs;
        }
        final int permille = drawsWorst() ? lowest
            : PlatformLimits.CLOCK_MIN + random.nextInt(lowest - PlatformLimits.CLOCK_MIN + 1);
        return IntegerMath.ceilDiv(Math.multiplyExact(declaredNs, (long) permille), PlatformLimits.CLOCK_MIN);
    }

    /** A duration that is not a task's own: the worst case always, or in one case of four. */
    boolean drawsWorst() {
        return worst || random.nextInt(4) == 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** The time slices that give best-effort groups their shares ({@link Sharing#TIMESLICES}). */
final class TimeSlices {
    private static final long MIN_NS = 10_000;

    private final ContextTable contexts;
    private final FairShares shares;
    private final DecisionSink sink;
    private final boolean preemptive;
    private final int gpus;
    private final long[] timesliceNs;
    private long baseTimesliceNs;
    private boolean hasTimeslices;

    TimeSlices(final ContextTable contexts, final FairShares shares,
        final DecisionSink sink, final SchedulerConfig config) {
        this.contexts = contexts;
        this.shares = shares;
        this.sink = sink;
        preemptive = config.preemptive();
        gpus = config.gpuCount();
        timesliceNs = new long[config.maxContexts() + 1];
    }

    /** A context is new and has its own slice. */
    void reset(final int c) {
        timesliceNs[c] = 0;
    }

    /** The slice of a context of the default weight that is alone in its group; 0 = shares are not kept by slices. */
    void base(final long ns) {
        baseTimesliceNs = ns;
    }

    /** Rare: when weights, groups or contexts change. */
    void refresh() {
        if (!preemptive || !hasTimeslices
            && (baseTimesliceNs == 0 || shares.sharing() == Sharing.TURNS)) {
            return;
        }
        hasTimeslices = false;
        for (int gpu = 0; gpu < gpus; gpu++) {
            for (int i = 0; i < contexts.steerableCount(gpu); i++) {
                final int c = contexts.steerable(gpu, i);
                int members = 0;
                for (int j = 0; j < contexts.steerableCount(gpu); j++) {
                    members += contexts.group[contexts.steerable(gpu, j)] == contexts.group[c] ? 1 : 0;
                }
                final int weight = shares.weight(contexts.group[c]);
                final long wanted = baseTimesliceNs == 0 || !shares.isInUse() || shares.sharing() == Sharing.TURNS ? 0
                    : Math.max(MIN_NS, baseTimesliceNs * weight / FairShares.WEIGHT_DEFAULT / members);
                hasTimeslices |= wanted != 0;
                if (timesliceNs[c] != wanted) {
                    timesliceNs[c] = wanted;
                    sink.onTimeslice(gpu, c, wanted);
                }
            }
        }
    }
}

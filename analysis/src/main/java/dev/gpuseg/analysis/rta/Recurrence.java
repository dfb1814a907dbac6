/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.InvalidModelException;
import java.util.Arrays;

/**
 * The least fixed point of {@code w = base + sum_k n_k(w) * c_k + extra(w)} with
 * {@code n_k(w) = min(cap_k, ceil((w + J_k) / T_k))}, in integers.
 *
 * <p>A source remembers up to which w its count is valid, so that a step divides only where a new job arrives: the
 * division dominates the cost. A step may update w before it is complete, because every partial sum stays at or below
 * the least fixed point. Reused from task to task; not thread-safe. Not final: tests leave terms out.
 */
class Recurrence {
    static final int OWN = 0;
    static final int JITTER = 1;
    static final int PREEMPTION = 2;
    static final int INTERFERENCE = 3;
    static final int INTERLEAVING = 4;
    static final int BLOCKING = 5;
    static final int OVERHEAD = 6;
    static final int KINDS = 7;

    /** Result of {@link #solve}: the iteration passed the limit. */
    static final long EXCEEDED = -1;

    /** With periods of nanoseconds and deadlines of months, the iteration ends with a message, not never. */
    private static final int MAX_STEPS = 2_000_000;

    /** A part of the recurrence that is not a sum of arrivals times costs. */
    interface Extra {
        /**
         * Value at w; must not decrease with w.
         *
         * @param w  length of the interval in nanoseconds
         * @param at the sources with their counts at w
         * @return nanoseconds, 0 or more
         */
        long at(long w, Recurrence at);

        /**
         * Which part of the last value is blocking by work of lower priority; the rest is of the kind given with it.
         *
         * @return nanoseconds, at most the last value
         */
        default long blockingPart() {
            return 0;
        }
    }

    /** Duration of a demand on a resource that is available part of the time. */
    interface Stretch {
        /**
         * Time for a demand: at least the demand itself, and monotone in it.
         *
         * @param demandNs nanoseconds, 0 or more
         * @return nanoseconds; {@link Long#MAX_VALUE} = never
         */
        long timeFor(long demandNs);
    }

    private long[] period;
    private long[] jitter;
    private long[] cost;
    private long[] gpuShare;
    private long[] cap;
    private long[] jobs;
    private long[] until;
    private int[] kind;
    private int size;
    private final long[] base = new long[KINDS];
    private Extra extra;
    private int extraKind;
    private long extraValue;
    private Stretch stretch;
    private long stretched;
    private long passedAt = EXCEEDED;

    Recurrence(final int capacity) {
        period = new long[capacity];
        jitter = new long[capacity];
        cost = new long[capacity];
        gpuShare = new long[capacity];
        cap = new long[capacity];
        jobs = new long[capacity];
        until = new long[capacity];
        kind = new int[capacity];
    }

    void reset() {
        size = 0;
        extra = null;
        extraValue = 0;
        stretch = null;
        stretched = 0;
        passedAt = EXCEEDED;
        Arrays.fill(base, 0);
    }

    void addBase(final int baseKind, final long ns) {
        base[baseKind] = Math.addExact(base[baseKind], ns);
    }

    void setExtra(final Extra newExtra, final int newKind) {
        extra = newExtra;
        extraKind = newKind;
    }

    /** From now on solves for the least w that is at least the time that the right-hand side at w takes. */
    void setStretch(final Stretch newStretch) {
        stretch = newStretch;
    }

    /** Adds a source; returns its index for {@link #jobsOf}. A cost of 0 is kept, so that indices stay dense. */
    int add(final int sourceKind, final long sourcePeriod, final long sourceJitter, final long sourceCost) {
        return add(sourceKind, sourcePeriod, sourceJitter, sourceCost, 0, Long.MAX_VALUE);
    }

    /**
     * Adds a source.
     *
     * @param gpuPart part of the cost that the terms report as interference whatever the kind
     * @param maximum most jobs that count
     */
    int add(final int sourceKind, final long sourcePeriod, final long sourceJitter, final long sourceCost,
        final long gpuPart, final long maximum) {
        if (size == period.length) {
            grow();
        }
        period[size] = sourcePeriod;
        jitter[size] = Math.max(0, sourceJitter);
        cost[size] = sourceCost;
        gpuShare[size] = gpuPart;
        cap[size] = maximum;
        kind[size] = sourceKind;
        return size++;
    }

    /** Jobs of a source in the interval of the last evaluation. */
    long jobsOf(final int source) {
        return jobs[source];
    }

    /**
     * Solves for the least fixed point.
     *
     * @param limit give up as soon as w passes it
     * @return w, or {@link #EXCEEDED}
     */
    long solve(final long limit) {
        try {
            return iterate(limit);
        } catch (final ArithmeticException e) {
            // A sum above 2^63 ns lies above every deadline (at most 2^53 ns).
            return EXCEEDED;
        }
    }

    private long iterate(final long limit) {
        long fixed = 0;
        for (int k = 0; k < KINDS; k++) {
            fixed = Math.addExact(fixed, base[k]);
        }
        for (int k = 0; k < size; k++) {
            jobs[k] = 0;
            until[k] = -1;
        }
        extraValue = 0;
        long sum = fixed;
        long w = timeFor(sum);
        if (w > limit) {
            return passed(w);
        }
        for (int step = 0; step < MAX_STEPS; step++) {
            boolean changed = false;
            for (int k = 0; k < size; k++) {
                if (w > until[k]) {
                    sum = Math.addExact(sum, advance(k, w));
                    changed = true;
                    w = Math.max(w, sum);
                    if (w > limit) {
                        return passed(w);
                    }
                }
            }
            if (!changed && extra != null) {
                final long value = extra.at(w, this);
                if (value > extraValue) {
                    sum = Math.addExact(sum, value - extraValue);
                    extraValue = value;
                    changed = true;
                }
            }
            if (changed) {
                w = timeFor(sum);
                if (w > limit) {
                    return passed(w);
                }
            } else {
                stretched = w - sum;
                return w;
            }
        }
        throw new InvalidModelException("the iteration did not converge in " + MAX_STEPS
            + " steps (periods far shorter than deadlines); use coarser periods");
    }

    private long passed(final long w) {
        passedAt = w;
        return EXCEEDED;
    }

    private long timeFor(final long demand) {
        return stretch == null ? demand : stretch.timeFor(demand);
    }

    /** Brings source k to its count at w; returns the cost of the new jobs. */
    private long advance(final int k, final long w) {
        final long before = jobs[k];
        // A job without work still waits for those that arrive with it: the interval is never empty.
        final long arrived = IntegerMath.ceilDiv(Math.max(1, w) + jitter[k], period[k]);
        if (arrived >= cap[k]) {
            jobs[k] = cap[k];
            until[k] = Long.MAX_VALUE;
        } else {
            jobs[k] = arrived;
            until[k] = arrived * period[k] - jitter[k];
        }
        return Math.multiplyExact(jobs[k] - before, cost[k]);
    }

    /** Parts of the last fixed point. */
    Terms terms() {
        final long[] parts = base.clone();
        for (int k = 0; k < size; k++) {
            parts[kind[k]] += jobs[k] * (cost[k] - gpuShare[k]);
            parts[INTERFERENCE] += jobs[k] * gpuShare[k];
        }
        final long blocking = extra == null ? 0 : extra.blockingPart();
        parts[extraKind] += extraValue - blocking;
        parts[BLOCKING] += blocking;
        parts[INTERLEAVING] += stretched;
        return new Terms(parts[OWN], parts[JITTER], parts[PREEMPTION], parts[INTERFERENCE], parts[INTERLEAVING],
            parts[BLOCKING], parts[OVERHEAD]);
    }

    /**
     * Parts of the right-hand side at the w with which the iteration passed the limit. It grows with w, so every fixed
     * point is at least their sum.
     *
     * @param jitterNs to add as release jitter
     * @return null if the last solution did not pass the limit, or if the sum exceeds 2^63 ns
     */
    Terms passedTerms(final long jitterNs) {
        if (passedAt == EXCEEDED || passedAt == Long.MAX_VALUE) {
            return null;
        }
        try {
            for (int k = 0; k < size; k++) {
                if (passedAt > until[k]) {
                    advance(k, passedAt);
                }
            }
            if (extra != null) {
                extraValue = Math.max(extraValue, extra.at(passedAt, this));
            }
            final Terms demand = terms();
            final long time = timeFor(demand.totalNs());
            if (time == Long.MAX_VALUE || time < passedAt) {   // never served; a part exceeds 2^63 ns
                return null;
            }
            return new Terms(demand.ownNs(), Math.addExact(demand.jitterNs(), jitterNs), demand.preemptionNs(),
                demand.interferenceNs(), demand.interleavingNs() + time - demand.totalNs(), demand.blockingNs(),
                demand.overheadNs());
        } catch (final ArithmeticException e) {
            return null;
        }
    }

    private void grow() {
        final int capacity = Math.max(8, period.length * 2);
        period = Arrays.copyOf(period, capacity);
        jitter = Arrays.copyOf(jitter, capacity);
        cost = Arrays.copyOf(cost, capacity);
        gpuShare = Arrays.copyOf(gpuShare, capacity);
        cap = Arrays.copyOf(cap, capacity);
        jobs = Arrays.copyOf(jobs, capacity);
        until = Arrays.copyOf(until, capacity);
        kind = Arrays.copyOf(kind, capacity);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.ArrayList;
import java.util.List;

/**
 * How rarely a task needs the times that it declares. A job that needs more than the typical share of them is an
 * overload job.
 *
 * @param periodNs       least distance of the arrivals of two overload jobs, nanoseconds
 * @param typicalPercent what every other job needs at most of each declared time, in percent, 0..99
 */
public record Overload(long periodNs, int typicalPercent) {
    private static final long WHOLE = 100;

    /** Checks the numbers. */
    public Overload {
        Task.requireTime("period", periodNs);
        if (typicalPercent < 0 || typicalPercent >= WHOLE) {
            throw new InvalidModelException("typical is " + typicalPercent + "; it must be 0..99, in percent of the "
                + "declared times");
        }
    }

    /**
     * What a typical job needs of a time, for a bound.
     *
     * @param ns declared, nanoseconds
     * @return rounded up
     */
    public long typicalNs(final long ns) {
        return IntegerMath.ceilDiv(Math.multiplyExact(ns, (long) typicalPercent), WHOLE);
    }

    /**
     * What a typical job of a simulation takes of a time at most.
     *
     * @param ns declared, nanoseconds
     * @return rounded down, so that parts of a segment never add up to more than its typical total
     */
    public long simulatedNs(final long ns) {
        return Math.multiplyExact(ns, (long) typicalPercent) / WHOLE;
    }

    /**
     * The segments of a typical job.
     *
     * @param segments as declared
     * @return as many, each with typical times
     */
    public List<Segment> typical(final List<Segment> segments) {
        final List<Segment> all = new ArrayList<>();
        for (final Segment segment : segments) {
            all.add(segment instanceof Segment.Gpu gpu ? new Segment.Gpu(typicalNs(gpu.hostNs()),
                typicalNs(gpu.deviceNs()), typicalNs(gpu.totalNs()), gpu.bursts())
                : new Segment.Cpu(typicalNs(((Segment.Cpu) segment).durationNs())));
        }
        return all;
    }
}

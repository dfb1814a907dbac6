/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/** One stretch of a job: on its CPU core alone, or between begin and end of GPU use. Times in nanoseconds. */
public sealed interface Segment permits Segment.Cpu, Segment.Gpu {
    /**
     * Work on the core outside any window.
     *
     * @param durationNs worst case, 0 or more
     */
    record Cpu(long durationNs) implements Segment {
        /** Validates the range. */
        public Cpu {
            Task.requireTime("cpu segment", durationNs);
        }
    }

    /**
     * A window: from begin to end.
     *
     * @param hostNs   worst case of the part that needs the core (launches, driver calls): G^m
     * @param deviceNs worst case of the part that needs the GPU alone: G^e
     * @param totalNs  worst case of the whole when alone: less than host + device where the two overlap, more where
     *                 the window contains time that needs neither; at least the longer of the two
     * @param bursts   how often at most the device part becomes ready again after the GPU had nothing of it left,
     *                 its first time included: 1 = it is launched as one piece, or ahead; 1..{@link #MAX_BURSTS}
     */
    record Gpu(long hostNs, long deviceNs, long totalNs, int bursts) implements Segment {
        /** Most bursts of a window. */
        public static final int MAX_BURSTS = 1_000_000;
        private static final int WHOLE = 100;

        /**
         * A window whose device part is one burst.
         *
         * @param hostNs   as above
         * @param deviceNs as above
         * @param totalNs  as above
         */
        public Gpu(final long hostNs, final long deviceNs, final long totalNs) {
            this(hostNs, deviceNs, totalNs, 1);
        }

        /** A copy with another number of bursts. */
        public Gpu withBursts(final int newBursts) {
            return new Gpu(hostNs, deviceNs, totalNs, newBursts);
        }

        /** Validates ranges and the relation of the three. */
        public Gpu {
            Task.requireTime("gpu segment: host", hostNs);
            Task.requireTime("gpu segment: device", deviceNs);
            Task.requireTime("gpu segment: total", totalNs);
            if (bursts < 1 || bursts > MAX_BURSTS) {
                throw new InvalidModelException("gpu segment: bursts is " + bursts + "; it must be 1.." + MAX_BURSTS);
            }
            if (totalNs < Math.max(hostNs, deviceNs)) {
                throw new InvalidModelException("gpu segment: total is " + Durations.format(totalNs)
                    + ", less than its longer part " + Durations.format(Math.max(hostNs, deviceNs))
                    + "; raise total or leave it out");
            }
        }

        /**
         * Longest duration of the window when interruptions destroy the overlap of its parts.
         *
         * @return {@code max(total, host + device)} in nanoseconds
         */
        public long spanNs() {
            return Math.max(totalNs, Math.addExact(hostNs, deviceNs));
        }

        /**
         * The window as long as it may take on a platform: first its device part at the lowest clock, then all of it
         * beside other work.
         *
         * @param platform whose clock and slowdown by work beside it count
         * @return each time longer by so much, rounded up
         */
        public Gpu slowed(final Platform platform) {
            final int clock = Math.max(0, platform.limits().clockPermille() - PlatformLimits.CLOCK_MIN);
            final long device = slower(deviceNs, clock, PlatformLimits.CLOCK_MIN);
            final int percent = platform.space().slowdownPercent();
            return new Gpu(slower(hostNs, percent, WHOLE), slower(device, percent, WHOLE),
                slower(Math.addExact(totalNs, device - deviceNs), percent, WHOLE), bursts);
        }

        /** A copy whose device part comes later by a time, in which the segment has the GPU; nanoseconds. */
        Gpu delayed(final long ns) {
            return new Gpu(hostNs, Math.addExact(deviceNs, ns), Math.addExact(totalNs, ns), bursts);
        }

        private static long slower(final long ns, final int more, final int whole) {
            return more == 0 ? ns : IntegerMath.ceilDiv(Math.multiplyExact(ns, (long) whole + more), whole);
        }

        /**
         * Host and device part one after the other.
         *
         * @param hostNs   host part
         * @param deviceNs device part
         */
        public Gpu(final long hostNs, final long deviceNs) {
            this(hostNs, deviceNs, Math.addExact(hostNs, deviceNs));
        }
    }
}

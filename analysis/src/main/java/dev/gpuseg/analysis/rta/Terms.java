/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * The parts of a response-time bound, in nanoseconds. Their sum is the bound.
 *
 * @param ownNs          the task's own C + G
 * @param jitterNs       its own release jitter
 * @param preemptionNs   CPU work of other tasks on its core
 * @param interferenceNs GPU use by tasks that go before it (direct, or through a busy-waiting task of its core)
 * @param interleavingNs time slices of others, where the GPU is shared in turns
 * @param blockingNs     waiting for lower-priority work: updates, locks, boosted host parts, declared blocking
 * @param overheadNs     updates of the task's own segments
 */
public record Terms(long ownNs, long jitterNs, long preemptionNs, long interferenceNs, long interleavingNs,
    long blockingNs, long overheadNs) {
    /** The bound: the sum of the parts. */
    public long totalNs() {
        return Math.addExact(Math.addExact(Math.addExact(ownNs, jitterNs), Math.addExact(preemptionNs,
            interferenceNs)),
            Math.addExact(Math.addExact(interleavingNs, blockingNs), overheadNs));
    }
}

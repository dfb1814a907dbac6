/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Which contexts are held back whatever the policy's order says: those whose time partition is closed, those with a
 * suspended segment and, while best effort has the GPU, those of groups that do not have the turn or have used up their
 * cap ({@code rt-scheduler/docs/adr/0021-shares-and-partitions.md}). The answer stands in {@link ContextTable#blocked}.
 */
final class HeldBack {
    private final SegmentTable segments;
    private final ContextTable contexts;
    private final FairShares shares;
    /** Suspended segments of each GPU. */
    private final int[] suspendedCount;
    private Policy policy;

    HeldBack(final SegmentTable segments, final ContextTable contexts, final FairShares shares, final int gpus,
        final Policy policy) {
        this.segments = segments;
        this.contexts = contexts;
        this.shares = shares;
        this.policy = policy;
        suspendedCount = new int[gpus];
    }

    void policy(final Policy newPolicy) {
        policy = newPolicy;
    }

    /** Whether any context of a GPU can be held back. If not, a decision need not look at each of them. */
    boolean isPossible(final int gpu) {
        return policy.enforces() && (policy.isTimed() || shares.isInUse() || suspendedCount[gpu] > 0);
    }

    /** From now on a begun segment's context is held back, until {@link #letGo}. */
    void suspend(final int t) {
        final int c = segments.contextId[t];
        segments.suspended[t] = true;
        contexts.suspended[c]++;
        suspendedCount[contexts.gpu[c]]++;
    }

    /** Ends {@link #suspend}; nothing if the segment is not suspended. */
    void letGo(final int t) {
        if (segments.suspended[t]) {
            final int c = segments.contextId[t];
            segments.suspended[t] = false;
            contexts.suspended[c]--;
            suspendedCount[contexts.gpu[c]]--;
        }
    }

    /** First step of a decision: closed partitions and suspended contexts. All others are let go. */
    void byTime(final int gpu, final int[] order, final int count, final long decision, final long nowNs) {
        boolean lent = policy.isTimed() && policy.lendsIdle(nowNs);
        for (int i = 0; i < count; i++) {
            final int c = segments.contextId[order[i]];
            contexts.begunIn[c] = decision;
            lent = lent && (contexts.suspended[c] > 0 || !policy.isOpen(contexts.partition[c], nowNs));
        }
        for (int i = 0; i < count; i++) {
            byTime(segments.contextId[order[i]], lent, nowNs);
        }
        for (int i = 0; i < contexts.steerableCount(gpu); i++) {
            byTime(contexts.steerable(gpu, i), lent, nowNs);
        }
    }

    private void byTime(final int c, final boolean lent, final long nowNs) {
        contexts.blocked[c] = contexts.suspended[c] > 0
            || policy.isTimed() && !lent && !policy.isOpen(contexts.partition[c], nowNs);
    }

    /** Second step, if best effort has the GPU: of those that are let go, the groups whose turn it is not. */
    void byTurn(final int gpu, final long decision, final long nowNs) {
        if (!shares.isInUse()) {
            shares.leaveOff(gpu);
            return;
        }
        final int n = contexts.steerableCount(gpu);
        shares.startRound(gpu);
        for (int i = 0; i < n; i++) {
            final int c = contexts.steerable(gpu, i);
            if (!contexts.blocked[c] && (contexts.begunIn[c] == decision
                || contexts.kind[c] == ContextKind.UNMANAGED)) {
                shares.compete(gpu, contexts.group[c]);
            }
        }
        shares.endRound(gpu, nowNs);
        for (int i = 0; i < n; i++) {
            final int c = contexts.steerable(gpu, i);
            if (!contexts.blocked[c]) {
                contexts.blocked[c] = !shares.isOn(gpu, contexts.group[c], nowNs);
            }
        }
    }

    /** Nobody of a GPU is held back any more, and turns are forgotten. */
    void letAllGo(final int gpu) {
        shares.leaveOff(gpu);
        contexts.unblockAll(gpu);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** A sink that folds everything it is told into one number, and counts. */
final class DigestSink implements DecisionSink {
    long calls;
    long digest = 17;

    private void fold(final int kind, final long a, final long b, final long c) {
        calls++;
        digest = (((digest * 31 + kind) * 31 + a) * 31 + b) * 1_000_003 + c;
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        fold(enabled ? 1 : 2, gpu, contextId, 0);
    }

    @Override
    public void onPreempt(final int gpu, final int taskId, final long ticket, final int byTaskId) {
        fold(3, gpu * 100_000L + taskId, ticket, byTaskId);
    }

    @Override
    public void onResume(final int gpu, final int taskId, final long ticket) {
        fold(4, gpu, taskId, ticket);
    }

    @Override
    public void onGrant(final int gpu, final int taskId, final long ticket) {
        fold(5, gpu, taskId, ticket);
    }

    @Override
    public void onPregrant(final int taskId, final boolean pregranted) {
        fold(pregranted ? 6 : 7, taskId, 0, 0);
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long ticket, final long deadlineNs) {
        fold(8, taskId, ticket, deadlineNs);
    }

    @Override
    public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
        fold(9, taskId, ticket, budgetNs);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** Looks at no decision; a test overrides what it looks at. */
class SilentSink implements DecisionSink {
    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        // not looked at
    }

    @Override
    public void onPreempt(final int gpu, final int taskId, final long ticket, final int byTaskId) {
        // not looked at
    }

    @Override
    public void onResume(final int gpu, final int taskId, final long ticket) {
        // not looked at
    }

    @Override
    public void onGrant(final int gpu, final int taskId, final long ticket) {
        // not looked at
    }

    @Override
    public void onPregrant(final int taskId, final boolean pregranted) {
        // not looked at
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long ticket, final long deadlineNs) {
        // not looked at
    }

    @Override
    public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
        // not looked at
    }
}

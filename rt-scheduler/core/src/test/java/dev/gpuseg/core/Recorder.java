/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.ArrayList;
import java.util.List;

/** A sink that remembers what it was told. */
class Recorder implements DecisionSink {
    final List<Call> calls = new ArrayList<>();

    List<Call> take() {
        final List<Call> taken = List.copyOf(calls);
        calls.clear();
        return taken;
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        calls.add(Call.desired(gpu, contextId, enabled));
    }

    @Override
    public void onPreempt(final int gpu, final int taskId, final long ticket, final int byTaskId) {
        calls.add(new Call(Call.Kind.PREEMPT, gpu, taskId, ticket, byTaskId));
    }

    @Override
    public void onResume(final int gpu, final int taskId, final long ticket) {
        calls.add(new Call(Call.Kind.RESUME, gpu, taskId, ticket, 0));
    }

    @Override
    public void onGrant(final int gpu, final int taskId, final long ticket) {
        calls.add(new Call(Call.Kind.GRANT, gpu, taskId, ticket, 0));
    }

    @Override
    public void onPregrant(final int taskId, final boolean pregranted) {
        calls.add(Call.pregrant(taskId, pregranted));
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long ticket, final long deadlineNs) {
        calls.add(new Call(Call.Kind.MISS, -1, taskId, ticket, deadlineNs));
    }

    @Override
    public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
        calls.add(new Call(Call.Kind.OVERRUN, -1, taskId, ticket, budgetNs));
    }
}

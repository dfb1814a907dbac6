/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.daemon.enforce.DesiredStates;
import java.util.Arrays;

/**
 * What the scheduler decided in one event. Contexts and time slices go to {@link DesiredStates} at once; what concerns
 * segments is kept in order, so that the words that clients wait for are written before everything else. Grows when an
 * event decides more than any before it; after that nothing is allocated.
 */
final class Decisions implements DecisionSink {
    static final int PREEMPT = 1;
    static final int RESUME = 2;
    static final int GRANT = 3;
    static final int PREGRANT = 4;
    static final int MISS = 5;
    static final int OVERRUN = 6;
    static final int SHARE = 7;

    private static final int INITIAL = 64;

    private final DesiredStates desired;
    private int count;
    private byte[] kind = new byte[INITIAL];
    private int[] gpu = new int[INITIAL];
    private int[] task = new int[INITIAL];
    private long[] ticket = new long[INITIAL];
    private long[] argument = new long[INITIAL];

    Decisions(final DesiredStates desired) {
        this.desired = desired;
    }

    @Override
    public void onContextDesired(final int onGpu, final int contextId, final boolean enabled) {
        desired.set(onGpu, contextId, enabled);
    }

    @Override
    public void onPreempt(final int onGpu, final int taskId, final long ofTicket, final int byTaskId) {
        add(PREEMPT, onGpu, taskId, ofTicket, byTaskId);
    }

    @Override
    public void onResume(final int onGpu, final int taskId, final long ofTicket) {
        add(RESUME, onGpu, taskId, ofTicket, 0);
    }

    @Override
    public void onGrant(final int onGpu, final int taskId, final long ofTicket) {
        add(GRANT, onGpu, taskId, ofTicket, 0);
    }

    @Override
    public void onPregrant(final int taskId, final boolean pregranted) {
        add(PREGRANT, 0, taskId, 0, pregranted ? 1 : 0);
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long ofTicket, final long deadlineNs) {
        add(MISS, 0, taskId, ofTicket, deadlineNs);
    }

    @Override
    public void onOverrun(final int taskId, final long ofTicket, final long budgetNs) {
        add(OVERRUN, 0, taskId, ofTicket, budgetNs);
    }

    @Override
    public void onShare(final int taskId, final boolean spent) {
        add(SHARE, 0, taskId, 0, spent ? 1 : 0);
    }

    @Override
    public void onTimeslice(final int onGpu, final int contextId, final long timesliceNs) {
        desired.timeslice(onGpu, contextId, timesliceNs);
    }

    private void add(final int what, final int onGpu, final int taskId, final long ofTicket, final long arg) {
        if (count == kind.length) {
            final int size = 2 * count;
            kind = Arrays.copyOf(kind, size);
            gpu = Arrays.copyOf(gpu, size);
            task = Arrays.copyOf(task, size);
            ticket = Arrays.copyOf(ticket, size);
            argument = Arrays.copyOf(argument, size);
        }
        kind[count] = (byte) what;
        gpu[count] = onGpu;
        task[count] = taskId;
        ticket[count] = ofTicket;
        argument[count] = arg;
        count++;
    }

    int count() {
        return count;
    }

    int kind(final int i) {
        return kind[i];
    }

    int gpu(final int i) {
        return gpu[i];
    }

    int task(final int i) {
        return task[i];
    }

    long ticket(final int i) {
        return ticket[i];
    }

    long argument(final int i) {
        return argument[i];
    }

    void clear() {
        count = 0;
    }
}

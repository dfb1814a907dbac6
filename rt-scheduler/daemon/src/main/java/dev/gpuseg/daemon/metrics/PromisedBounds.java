/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The bounds with which tasks are admitted, and how often a job took longer. Admission states them, the dispatcher
 * compares every job as it ends. A bound that is broken says that a hypothesis of the proof does not hold here.
 *
 * <p>The same of the constants that the bounds were computed with: the longest driver call, and the longest update of a
 * GPU, which is what a begin that is enforced by calls waits for at most. Each call and each such wait is compared
 * while the bounds are by calls: those by turns hold however long a call takes.
 *
 * <p>While a task is open its bound only grows: when another one is closed, bounds become shorter, but jobs that it has
 * delayed go on, and delay others. The longer bound holds for the rest of the set as well.
 *
 * <p>The dispatcher also says which tasks have begun without waiting, which those that share a process must not
 * ({@code analysis/docs/processes.md}, C4).
 *
 * <p>Thread-safe; allocates nothing after it was made. Times in ns.
 */
public final class PromisedBounds {
    private final AtomicLongArray boundNs;
    private final AtomicIntegerArray unasked;   // 1: a segment of the task with this id was begun without waiting
    private final AtomicLong broken = new AtomicLong();
    private volatile int lastTask;
    private volatile long lastResponseNs;
    private volatile long lastBoundNs;
    /** By GPU; set once, before any call. */
    private volatile long[] callNs = {};
    private volatile long[] waitNs = {};
    private volatile boolean areByCalls = true;
    private final AtomicLong constantsBroken = new AtomicLong();
    private volatile long lastTookNs;
    private volatile long lastConstantNs;
    private volatile boolean lastWasWait;

    /**
     * No task has a bound.
     *
     * @param maxTasks the highest id of a task
     */
    public PromisedBounds(final int maxTasks) {
        boundNs = new AtomicLongArray(maxTasks + 1);
        unasked = new AtomicIntegerArray(maxTasks + 1);
    }

    /**
     * From now on a task has this bound, or the longer one that it has.
     *
     * @param task id, 1..maxTasks
     * @param ns   its bound
     */
    public void promise(final int task, final long ns) {
        boundNs.accumulateAndGet(task, ns, Math::max);
    }

    /**
     * From now on a task has no bound: it is closed, or nothing is proven of it.
     *
     * @param task id, 1..maxTasks
     */
    public void withdraw(final int task) {
        boundNs.set(task, 0);
    }

    /**
     * The bound of a task.
     *
     * @param task id, 1..maxTasks
     * @return ns; 0 = none
     */
    public long of(final int task) {
        return boundNs.get(task);
    }

    /**
     * A job ended. One thread.
     *
     * @param task       id of its task, 1..maxTasks
     * @param responseNs its response time
     * @return the bound that it broke; 0 if it broke none
     */
    public long ended(final int task, final long responseNs) {
        final long bound = boundNs.get(task);
        if (bound == 0 || responseNs <= bound) {
            return 0;
        }
        lastTask = task;
        lastResponseNs = responseNs;
        lastBoundNs = bound;
        broken.incrementAndGet();
        return bound;
    }

    /**
     * The constants of the proof, by GPU. Before the first client.
     *
     * @param longestCallNs  longest driver call
     * @param longestWaitNs  longest update: from the decision until all that a segment preempts is disabled
     */
    public void constants(final long[] longestCallNs, final long[] longestWaitNs) {
        callNs = longestCallNs.clone();
        waitNs = longestWaitNs.clone();
    }

    /**
     * By what the bounds are from now on. Any thread.
     *
     * @param calls by calls, else by turns
     */
    public void byCalls(final boolean calls) {
        areByCalls = calls;
    }

    /**
     * A driver call ended. One thread, that of {@link #ended}.
     *
     * @param gpu    its GPU
     * @param tookNs how long it took
     * @return the constant that it broke; 0 if it broke none, or none is known
     */
    public long called(final int gpu, final long tookNs) {
        return compare(callNs, gpu, tookNs, false);
    }

    /**
     * What a segment preempts is disabled. One thread, that of {@link #ended}.
     *
     * @param gpu      its GPU
     * @param waitedNs since the decision
     * @return the constant that this broke; 0 if it broke none, or none is known
     */
    public long waited(final int gpu, final long waitedNs) {
        return compare(waitNs, gpu, waitedNs, true);
    }

    private long compare(final long[] constants, final int gpu, final long tookNs, final boolean isWait) {
        final long most = gpu < constants.length ? constants[gpu] : 0;
        if (most == 0 || tookNs <= most || !areByCalls) {
            return 0;
        }
        lastTookNs = tookNs;
        lastConstantNs = most;
        lastWasWait = isWait;
        constantsBroken.incrementAndGet();
        return most;
    }

    /** Calls and waits that took longer than their constant, since the daemon's start. */
    public long constantsBroken() {
        return constantsBroken.get();
    }

    /** What the last of them took, ns; may change between this and the next two. */
    public long lastTookNs() {
        return lastTookNs;
    }

    /** Its constant, ns. */
    public long lastConstantNs() {
        return lastConstantNs;
    }

    /** Whether it was the wait of a begin; else a driver call. */
    public boolean lastWasWait() {
        return lastWasWait;
    }

    /**
     * A task was opened, and has begun nothing. Before its client knows.
     *
     * @param task id, 1..maxTasks
     */
    public void opened(final int task) {
        unasked.set(task, 0);
    }

    /**
     * A task began a segment without waiting: it was pre-granted.
     *
     * @param task id, 1..maxTasks
     */
    public void beganUnasked(final int task) {
        unasked.set(task, 1);
    }

    /**
     * Whether a task has begun a segment without waiting since it was opened.
     *
     * @param task id, 1..maxTasks
     * @return true if it has
     */
    public boolean hasBegunUnasked(final int task) {
        return unasked.get(task) != 0;
    }

    /** Jobs that took longer than their bound, since the daemon's start. */
    public long broken() {
        return broken.get();
    }

    /** Id of the task whose bound was broken last, 0 = none was; may change between this and the next two. */
    public int lastTask() {
        return lastTask;
    }

    /** Response time of that job, ns. */
    public long lastResponseNs() {
        return lastResponseNs;
    }

    /** Its bound, ns. */
    public long lastBoundNs() {
        return lastBoundNs;
    }
}

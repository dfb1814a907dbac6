/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.Overload;
import java.util.Arrays;

/** The threads of the tasks: in which phase of which segment each one is, and what it does next. */
final class Threads {
    private static final byte IDLE = 0;
    private static final byte CPU = 1;
    private static final byte WAIT_GRANT = 2;
    private static final byte HOST = 3;
    private static final byte HOST_OVERLAP = 4;
    private static final byte WAIT_DEVICE = 5;
    private static final byte END = 6;
    private static final byte IDLE_PART = 7;
    private static final byte BLOCKED = 8;

    private final Run run;
    private final SimulatedSet set;
    private final boolean[] gpuSegment;
    private final int[] segmentStart;
    private final byte[] phase;
    private final int[] segment;
    private final long[] work;
    private final boolean[] deviceDone;
    /** Host work that the window needs after its device part. */
    private final long[] afterNs;
    /** What the job still waits for its declared blocking. */
    private final long[] blockingNs;
    /** CPU work of the segment after a wait that interrupts it. */
    private final long[] restNs;
    /** What follows a wait: the segment, the rest of it, or the end of the job. */
    private final boolean[] resumes;
    private final long[] arrivalNs;
    private final boolean[] worstCaseJob;
    /** Whether the job needs no more than the typical share of its declared times. */
    private final boolean[] typicalJob;
    /** Arrival of the last overload job, -1 = none. */
    private final long[] overloadNs;
    private boolean anywhere;
    /** Whether the job of a task has had its core. */
    private final boolean[] started;
    /** Whether a thread in a phase can use its core. */
    private final boolean[] runs = new boolean[BLOCKED + 1];

    Threads(final Run run) {
        this.run = run;
        set = run.set;
        gpuSegment = set.gpuSegment;
        segmentStart = set.segmentStart;
        final int n = set.taskCount;
        phase = new byte[n];
        segment = new int[n];
        work = new long[n];
        deviceDone = new boolean[n];
        afterNs = new long[n];
        blockingNs = new long[n];
        restNs = new long[n];
        resumes = new boolean[n];
        arrivalNs = new long[n];
        worstCaseJob = new boolean[n];
        typicalJob = new boolean[n];
        overloadNs = new long[n];
        started = new boolean[n];
    }

    void reset() {
        Arrays.fill(phase, IDLE);
        Arrays.fill(afterNs, 0);
        Arrays.fill(overloadNs, -1);
        Arrays.fill(blockingNs, 0);
        Arrays.fill(restNs, 0);
        Arrays.fill(runs, true);
        anywhere = run.options.hostWork() == SimulationOptions.HostWork.ANYWHERE && !run.isAbstract;
        runs[IDLE] = false;
        runs[BLOCKED] = false;
        // the library sleeps in begin; the published model spins from begin to end
        runs[WAIT_GRANT] = set.busy && run.isAbstract;
        runs[WAIT_DEVICE] = set.busy;
        runs[IDLE_PART] = set.busy;
    }

    // ---- questions ----

    boolean isIdle(final int task) {
        return phase[task] == IDLE;
    }

    boolean allIdle() {
        return firstBusy() < 0;
    }

    /** A task whose job is not done, -1 if there is none. */
    private int firstBusy() {
        for (int i = 0; i < phase.length; i++) {
            if (phase[i] != IDLE) {
                return i;
            }
        }
        return -1;
    }

    /** Without a further event every job must be done; otherwise one waits for a grant that never comes. */
    void requireRest() {
        final int task = firstBusy();
        if (task >= 0) {
            throw new DeadlockException("deadlock at " + run.nowNs + " ns: task \"" + set.nameOf(task)
                + "\" waits in phase " + phase[task] + " and nothing will happen", hasTiedDeadlines());
        }
    }

    /** Whether two jobs that spin for one GPU on one core have the same absolute deadline, inside their windows. */
    private boolean hasTiedDeadlines() {
        for (int a = 0; a < phase.length && set.busy; a++) {
            for (int b = 0; b < a; b++) {
                if (phase[a] > CPU && phase[b] > CPU && phase[a] != BLOCKED && phase[b] != BLOCKED
                    && set.cpuOf[a] == set.cpuOf[b] && set.gpuOf[a] == set.gpuOf[b]
                    && arrivalNs[a] + set.deadlineNs[a] == arrivalNs[b] + set.deadlineNs[b]) {
                    return true;
                }
            }
        }
        return false;
    }

    boolean isRunnable(final int task) {
        return runs[phase[task]];
    }

    boolean isSpinning(final int task) {
        return phase[task] == WAIT_GRANT || phase[task] == WAIT_DEVICE || phase[task] == IDLE_PART;
    }

    boolean isInCpuSegment(final int task) {
        return phase[task] == CPU;
    }

    /** Between grant and end. */
    boolean isInWindow(final int task) {
        return phase[task] == HOST || phase[task] == HOST_OVERLAP || phase[task] == WAIT_DEVICE || phase[task] == END
            || phase[task] == IDLE_PART;
    }

    long arrivalNs(final int task) {
        return arrivalNs[task];
    }

    /** What is left of the phase on the core. */
    long workNs(final int task) {
        return work[task];
    }

    void worked(final int task, final long ns) {
        work[task] -= ns;
    }

    // ---- jobs ----

    void startJob(final int task, final long arrival) {
        arrivalNs[task] = arrival;
        started[task] = false;
        worstCaseJob[task] = run.drawsWorst();
        typicalJob[task] = !overloads(task, arrival);
        segment[task] = segmentStart[task] - 1;
        blockingNs[task] = draw(task, set.blockingNs[task]);
        nextSegment(task);
    }

    /** Mostly as soon as it may again; a task that overloads with every job always. */
    private boolean overloads(final int task, final long arrival) {
        final Overload overload = set.overload[task];
        if (overload == null || overload.periodNs() <= set.periodNs[task]) {
            return true;
        }
        final boolean may = overloadNs[task] < 0 || arrival - overloadNs[task] >= overload.periodNs();
        if (!may || run.random.nextInt(4) == 0) {
            return false;
        }
        overloadNs[task] = arrival;
        return true;
    }

    private long draw(final int task, final long declaredNs) {
        final long worstNs = typicalJob[task] ? set.overload[task].simulatedNs(declaredNs) : declaredNs;
        return worstCaseJob[task] || worstNs == 0 ? worstNs : run.random.nextLong(worstNs + 1);
    }

    /** Goes to the next segment; for the first one the thread need not have the core yet. */
    private void nextSegment(final int task) {
        final int next = segment[task] + 1;
        segment[task] = next;
        run.cores.touch(task);
        if (blockingNs[task] > 0 && blocks(task, next == segmentStart[task + 1])) {
            return;
        }
        if (next == segmentStart[task + 1]) {
            endJob(task);
        } else {
            enter(task);
        }
    }

    private void enter(final int task) {
        // begin needs the core: zero-length work in front of the segment
        phase[task] = CPU;
        work[task] = gpuSegment[segment[task]] ? 0 : draw(task, set.hostNs[segment[task]]);
        if (blockingNs[task] > 0 && work[task] > 0 && run.random.nextBoolean()) {
            restNs[task] = work[task] - run.random.nextLong(work[task]);
            work[task] -= restNs[task];
        }
    }

    /**
     * Waits for some of the declared blocking: all of it at once when the job begins, or with host work anywhere at
     * random in parts between segments and inside of those that need the core alone, the rest at the end.
     */
    private boolean blocks(final int task, final boolean last) {
        long ns = blockingNs[task];
        if (anywhere && !last) {
            final int kind = run.random.nextInt(3);
            ns = kind == 0 ? 0 : kind == 1 ? ns : run.random.nextLong(ns + 1);
        }
        if (ns == 0) {
            return false;
        }
        blockingNs[task] -= ns;
        phase[task] = BLOCKED;
        resumes[task] = false;
        run.queue.set(run.idleSource + task, Math.addExact(run.nowNs, ns));
        return true;
    }

    /** What the job has waited for is there. */
    private void onBlockingEnd(final int task) {
        run.cores.accountOf(task);
        if (resumes[task] || segment[task] == segmentStart[task + 1]) {
            phase[task] = CPU;   // the rest of the segment; the end of the job needs the core, too
            work[task] = restNs[task];
            restNs[task] = 0;
        } else {
            enter(task);
        }
        run.cores.touch(task);
    }

    /** The thread has its core and no work left before a wait, a begin, or the next segment. */
    private void stepCpu(final int task) {
        if (segment[task] == segmentStart[task + 1]) {
            endJob(task);
        } else if (restNs[task] > 0) {
            if (blockingNs[task] > 0 && blocks(task, false)) {
                resumes[task] = true;
            } else {
                work[task] = restNs[task];
                restNs[task] = 0;
            }
            run.cores.touch(task);
        } else if (gpuSegment[segment[task]]) {
            startWindow(task);
        } else {
            nextSegment(task);
        }
    }

    private void endJob(final int task) {
        final boolean missed = run.observations.ended(task, arrivalNs[task], run.nowNs);
        if (run.trace != null) {
            run.trace.onJob(task, arrivalNs[task], run.nowNs, missed);
        }
        if (run.journal != null) {
            run.journal.onJobEnded(task, run.nowNs - arrivalNs[task], run.nowNs);
        }
        phase[task] = IDLE;
        run.cores.touch(task);
        if (run.chains != null) {
            run.chains.ends(task, run.nowNs);
            for (final int successor : run.chains.releasedBy(task)) {
                run.arrivals.onEvent(successor);
            }
        }
        if (run.arrivals.isWaiting(task)) {
            startJob(task, run.arrivals.pop(task));
        }
    }

    // ---- steps ----

    /** The thread gets its core; it may have had it before. */
    void onCore(final int task) {
        if (!started[task]) {
            started[task] = true;
            if (run.chains != null) {
                run.chains.starts(task, run.nowNs);
            }
            if (run.journal != null) {
                run.journal.onRelease(task, arrivalNs[task], run.chains == null ? ChainObserver.NOTHING
                    : run.chains.sampleNs(task), run.nowNs);
            }
        }
    }

    /** The thread has the core and no work left in its phase: it does what comes next. */
    void step(final int task) {
        switch (phase[task]) {
            case CPU:
                stepCpu(task);
                break;
            case HOST:
                final long idleNs = draw(task, set.idleNs[segment[task]]);
                if (idleNs > 0) {
                    phase[task] = IDLE_PART;
                    run.queue.set(run.idleSource + task, Math.addExact(run.nowNs, idleNs));
                } else {
                    hostDone(task);
                }
                break;
            case HOST_OVERLAP:
                if (!deviceDone[task]) {
                    phase[task] = WAIT_DEVICE;
                } else {
                    toEnd(task);
                }
                break;
            case END:
                endWindow(task);
                break;
            default:
                throw new IllegalStateException("task " + task + " has the core in phase " + phase[task]);
        }
    }

    private void startWindow(final int task) {
        if (run.isAbstract) {
            startHost(task);
            return;
        }
        run.segments.begin(task);
        if (run.segments.isGranted(task)) {
            startHost(task);
        } else {
            phase[task] = WAIT_GRANT;
        }
    }

    private void startHost(final int task) {
        phase[task] = HOST;
        work[task] = draw(task, set.hostNs[segment[task]]);
        if (anywhere && set.overlapNs[segment[task]] == 0 && work[task] > 0) {
            final int kind = run.random.nextInt(3);
            afterNs[task] = kind == 0 ? 0 : kind == 1 ? work[task] : run.random.nextLong(work[task] + 1);
            work[task] -= afterNs[task];
        }
    }

    /** What is left of the window needs the core: the rest of its host work, and the end. */
    private void toEnd(final int task) {
        phase[task] = END;
        work[task] = afterNs[task];
        afterNs[task] = 0;
    }

    /** The first part of the host work is done, and so is the idle part that follows it. */
    private void hostDone(final int task) {
        if (run.isAbstract) {
            run.segments.begin(task);
            if (run.segments.isGranted(task)) {
                launch(task);
            } else {
                phase[task] = WAIT_GRANT;
            }
        } else {
            launch(task);
        }
    }

    /**
     * The thread has neither used its core nor the GPU: it waited for its declared blocking, or what follows is the
     * device part, which needs no core.
     */
    void onIdleEnd(final int task) {
        if (phase[task] == BLOCKED) {
            onBlockingEnd(task);
            return;
        }
        run.cores.accountOf(task);
        hostDone(task);
        if (phase[task] == HOST_OVERLAP) {
            if (deviceDone[task]) {
                toEnd(task);
            } else {
                phase[task] = WAIT_DEVICE;
            }
        }
        run.cores.touch(task);
    }

    private void launch(final int task) {
        final int s = segment[task];
        phase[task] = HOST_OVERLAP;
        work[task] = draw(task, set.overlapNs[s]);
        final long deviceNs = run.atClock(draw(task, set.deviceNs[s]));
        deviceDone[task] = deviceNs == 0;
        if (!deviceDone[task]) {
            run.device.launch(task, deviceNs, set.bursts[s]);
        } else if (run.isAbstract) {
            run.segments.end(task);
        }
    }

    /** The host part is done, and the device part as well. */
    private void endWindow(final int task) {
        if (!run.isAbstract) {
            run.segments.end(task);
            run.cores.boostEnds(task);
        }
        nextSegment(task);
    }

    void onDeviceDone(final int task) {
        deviceDone[task] = true;
        if (run.isAbstract) {
            run.segments.end(task);
        }
        if (phase[task] == WAIT_DEVICE) {
            run.cores.accountOf(task);
            toEnd(task);
            run.cores.touch(task);
        }
    }

    /** The grant of its segment is delivered. */
    void onGranted(final int task) {
        if (phase[task] == WAIT_GRANT) {
            run.cores.accountOf(task);
            if (run.isAbstract) {
                launch(task);
            } else {
                startHost(task);
            }
            run.cores.touch(task);
        }
    }

    /** The run is over: unfinished jobs count with their age. */
    void finish() {
        for (int i = 0; i < phase.length; i++) {
            if (phase[i] != IDLE) {
                run.observations.unfinished(i, arrivalNs[i], run.nowNs);
                run.arrivals.finish(i);
            }
        }
    }
}

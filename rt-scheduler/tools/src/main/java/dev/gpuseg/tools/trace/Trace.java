/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.daemon.metrics.JobAccount;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What happened, put together from events: tasks with their jobs and segments, contexts with the times in which they
 * were off the hardware, and marks. Times are ns of CLOCK_MONOTONIC. Read-only once built; {@link TraceBuilder} builds
 * it.
 */
public final class Trace {
    /** From (inclusive) to (exclusive). */
    public record Span(long fromNs, long toNs) {
        long lengthNs() {
            return toNs - fromNs;
        }
    }

    /** A policy in force; {@code fromSeq} is the event that set it. */
    public record Phase(String policy, long fromNs, long toNs) {
    }

    /** A preemption: the task that took over. */
    public record Preemption(long timeNs, Task by) {
    }

    /** Something that happened at a time and is no segment's; {@code kind} is the event kind's name. */
    public record Mark(String kind, long timeNs, long durationNs, int gpu, Task task, String text) {
    }

    /** Sequence numbers that are missing. */
    public record Gap(long afterSeq, long beforeSeq, long timeNs) {
        long count() {
            return beforeSeq - afterSeq - 1;
        }
    }

    /** Clocks read together; {@code boottimeNs} is 0 if it was not read. */
    public record Clock(long monotonicNs, long realtimeNs, long boottimeNs, long uncertaintyNs) {
    }

    /** One segment, from begin to end. Times are 0 where it did not come so far. */
    public static final class Segment {
        final Task task;
        final long ticket;
        final long seq;
        final String policy;
        final boolean optimistic;
        final long beginNs;
        final long receivedNs;
        final long releaseNs;
        final long deadlineNs;
        long decidedNs;
        long grantNs;
        long enforcedNs;
        long endNs;
        long deviceNs;
        boolean cancelled;
        boolean forced;
        boolean aborted;
        long missNs;
        long overrunNs;
        /** When it had the GPU by decision; several where it was preempted. */
        final List<Span> holds = new ArrayList<>();
        /** GPU time by the daemon's events, divided equally while several segments might run. */
        double busyNs;
        boolean running;
        double shareAtStartNs;
        final List<Preemption> preemptions = new ArrayList<>();
        Job job;
        long holdFromNs;

        Segment(final Task task, final long ticket, final long seq, final String policy, final boolean optimistic,
            final long beginNs, final long receivedNs, final long releaseNs, final long deadlineNs) {
            this.task = task;
            this.ticket = ticket;
            this.seq = seq;
            this.policy = policy;
            this.optimistic = optimistic;
            this.beginNs = beginNs;
            this.receivedNs = receivedNs;
            this.releaseNs = releaseNs;
            this.deadlineNs = deadlineNs;
        }

        /** Its end was seen and it was not given up. */
        boolean isComplete() {
            return endNs != 0 && !cancelled && !aborted;
        }

        /** From begin until the application could go on. */
        long waitNs() {
            return optimistic || grantNs == 0 ? 0 : Math.max(0, grantNs - beginNs);
        }

        /** When the application went on. */
        long goNs() {
            return optimistic || grantNs == 0 ? beginNs : grantNs;
        }

        /** Time between going on and end in which it had the GPU. */
        long heldNs() {
            long sum = 0;
            for (final Span hold : holds) {
                sum += Math.max(0, Math.min(hold.toNs(), endNs == 0 ? hold.toNs() : endNs)
                    - Math.max(hold.fromNs(), goNs()));
            }
            return sum;
        }
    }

    /** One job: released, some segments, complete. */
    public static final class Job {
        final Task task;
        final int number;
        final long releaseNs;
        /** The application said so; otherwise a job is a segment. */
        final boolean marked;
        long endNs;
        long responseNs;
        /** When the sample that it works on was taken; 0 = the application did not say. */
        long stampNs;
        /** Which sample that is, by a word that its messages carry; 0 = the application did not say. */
        long sample;
        final List<Segment> segments = new ArrayList<>();
        String policy;
        /** Which start of a daemon it came after, from 1; 0 = the start is not in the trace. */
        final int run;
        /** The process that released it. */
        final int pid;
        /** A segment's absolute deadline passed before the daemon saw its end. */
        boolean passed;
        /** It was given up: withdrawn, closed, or followed by the next without an end. */
        boolean givenUp;
        /** Its application cancelled it; it is given up, too. */
        boolean cancelled;

        Job(final Task task, final int number, final long releaseNs, final boolean marked, final String policy,
            final int run) {
            this.task = task;
            this.number = number;
            this.releaseNs = releaseNs;
            this.marked = marked;
            this.policy = policy;
            this.run = run;
            pid = task.pid;
        }

        boolean isComplete() {
            return endNs != 0;
        }

        /** By the rule of {@link JobAccount}. */
        boolean isLate() {
            return isComplete() ? JobAccount.isLate(responseNs, task.priority, task.deadlineNs) : givenUp && passed;
        }

        /** By the rule of {@link JobAccount}. */
        boolean isSkipped() {
            return cancelled && !isLate();
        }
    }

    /** A task of that name; where it was opened several times one after the other, all of them. */
    public static final class Task {
        final int row;
        final String name;
        int id;
        int priority;
        int gpuPriority;
        int gpu;
        int contextId;
        int clientId;
        int pid;
        long periodNs;
        long deadlineNs;
        long budgetNs;
        String onOverrun = "demote";
        boolean open;
        /** How many jobs. */
        int released;
        final List<Segment> segments = new ArrayList<>();
        final List<Job> jobs = new ArrayList<>();
        Segment begun;
        Job current;
        /** What counts as a job; the same class that the daemon shows figures of. */
        final JobAccount account = new JobAccount();
        /** The share of its user is used up: what it begins is best effort. */
        boolean spent;
        final TreeMap<Long, Integer> ranks = new TreeMap<>();

        Task(final int row, final String name) {
            this.row = row;
            this.name = name;
        }

        /** Its unique name in the trace. */
        public String name() {
            return name;
        }

        boolean isRealTime() {
            return priority > 0;
        }

        /** GPU priority of what it begins now. */
        int rank() {
            return spent ? 0 : gpuPriority;
        }

        /** GPU priority that counted at a time; a demotion makes it 0. */
        int rankAt(final long timeNs) {
            final Map.Entry<Long, Integer> entry = ranks.floorEntry(timeNs);
            return entry == null ? gpuPriority : entry.getValue();
        }
    }

    /** A process on a GPU. */
    public static final class Context {
        final int id;
        final int gpu;
        final int pid;
        final String name;
        String kind;
        final long openNs;
        long closeNs;
        long offSinceNs;
        final List<Span> off = new ArrayList<>();

        Context(final int id, final int gpu, final int pid, final String name, final String kind, final long openNs) {
            this.id = id;
            this.gpu = gpu;
            this.pid = pid;
            this.name = name;
            this.kind = kind;
            this.openNs = openNs;
        }
    }

    String title = "";
    String mechanism = "unknown";
    String levelName = "";
    String consequence = "";
    boolean simulated;
    /** The longest operation that disabled a context, also ahead of a begin; 0 if there was none. */
    long longestDisableNs;
    boolean preemptive = true;
    int gpus = 1;
    /** Of the machine that recorded it. */
    int cpus = Runtime.getRuntime().availableProcessors();
    long events;
    long firstNs;
    long lastNs;
    final List<Task> tasks = new ArrayList<>();
    final List<Context> contexts = new ArrayList<>();
    final List<Mark> marks = new ArrayList<>();
    final List<Gap> gaps = new ArrayList<>();
    final List<Phase> phases = new ArrayList<>();
    final List<Clock> clocks = new ArrayList<>();
    final Map<String, Long> counts = new TreeMap<>();
    /** Of another tool; null if none were given. */
    Kernels kernels;

    Trace() {
    }

    /** Tasks in the order in which they were first opened, a live list. */
    public List<Task> tasks() {
        return tasks;
    }

    /** Whether the GPU was the virtual one: true if nothing here says anything of hardware. */
    public boolean isSimulated() {
        return simulated;
    }

    /** How many events are missing: sum over all gaps. */
    public long lost() {
        long sum = 0;
        for (final Gap gap : gaps) {
            sum += gap.count();
        }
        return sum;
    }

    /**
     * Whether decisions were enforced while a policy was in force (empty if none was). Of one from a jar that is
     * assumed.
     */
    public static boolean isEnforced(final String policy) {
        return !policy.isEmpty()
            && PolicyCatalog.builtIn().find(policy).map(PolicyDescription::enforces).orElse(true);
    }
}

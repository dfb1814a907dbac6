/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The jobs, segments and decisions of a recording as rows of tables, handed over one by one while it is read. Times are
 * ns of CLOCK_MONOTONIC of the machine that recorded, durations ns. Stateless.
 *
 * <p>A chain is known by what its jobs carry, which sample it is ({@code gpuseg_job_release_sample}), or else its stamp
 * ({@code gpuseg_job_release_stamped}): the task that released a job with it first took the sample, every later task
 * with the same works on it. Stamps that each process converts for itself differ, so they need the former.
 */
public final class RecordingRows {
    /** Samples that are remembered at once; one that comes back after so many others counts as new. */
    private static final int SAMPLES = 4096;

    /**
     * A job.
     *
     * @param task        its name
     * @param number      among the jobs of its task, from 1
     * @param priority    1..99, 0 = best effort
     * @param gpu         index
     * @param policy      in force at its release
     * @param state       {@code complete}, {@code skipped}, {@code given-up} or {@code open}
     * @param releaseNs   when
     * @param responseNs  release to end; -1 if it is not complete
     * @param deadlineNs  relative; 0 = none
     * @param late        it missed its deadline
     * @param segments    begun
     * @param preemptions of its segments
     * @param waitNs      of its segments from begin until the application could go on
     * @param heldNs      its segments had the GPU
     * @param source      task that took the sample on which it works; null = it carries neither sample nor stamp
     * @param ageNs       end less stamp; -1 if it is not complete or carries no stamp
     */
    public record Job(String task, int number, int priority, int gpu, String policy, String state, long releaseNs,
        long responseNs, long deadlineNs, boolean late, int segments, int preemptions, long waitNs, long heldNs,
        String source, long ageNs) {
    }

    /**
     * A segment. Times are 0 where it did not come so far.
     *
     * @param task        its task
     * @param job         number of the job; 0 = none is known
     * @param ticket      number among the segments of its client's task
     * @param gpu         index
     * @param contextId   of its process
     * @param policy      in force at its begin
     * @param state       {@code complete}, {@code cancelled}, {@code aborted} or {@code open}
     * @param optimistic  the application went on without waiting
     * @param forced      the daemon ended it
     * @param beginNs     when the application called
     * @param decidedNs   when it was chosen
     * @param grantNs     when it was granted
     * @param enforcedNs  when the others were disabled
     * @param endNs       when the application called
     * @param waitNs      from begin until the application could go on
     * @param heldNs      it had the GPU
     * @param deviceNs    as the application measured; 0 = it did not
     * @param preemptions how many
     * @param deadlineNs  absolute
     */
    public record Segment(String task, int job, long ticket, int gpu, int contextId, String policy, String state,
        boolean optimistic, boolean forced, long beginNs, long decidedNs, long grantNs, long enforcedNs, long endNs,
        long waitNs, long heldNs, long deviceNs, int preemptions, long deadlineNs) {
    }

    /**
     * A decision of the scheduler, or what the hardware did about it.
     *
     * @param seq       number of the event
     * @param timeNs    when
     * @param kind      name of the event kind
     * @param gpu       index
     * @param task      whom it concerns; null = no task
     * @param ticket    of its segment; 0 = none
     * @param contextId of its process; 0 = none
     * @param byTask    who goes first, of a PREEMPT; else null
     * @param valueNs   DISABLE and ENABLE: cost; MISS: the deadline; OVERRUN: the budget; else 0
     */
    public record Decision(long seq, long timeNs, String kind, int gpu, String task, long ticket, int contextId,
        String byTask, long valueNs) {
    }

    /**
     * What is said of the whole recording.
     *
     * @param events     in it
     * @param lostEvents that are missing
     * @param durationNs from the first event to the last
     * @param mechanism  of the last daemon
     * @param simulated  whether the GPU was the virtual one
     */
    public record Summary(long events, long lostEvents, long durationNs, String mechanism, boolean simulated) {
    }

    /** Receives rows. One thread. */
    public interface Sink {
        /**
         * A job is over, or the recording ends.
         *
         * @param job the row
         * @throws IOException if it cannot be kept
         */
        void job(Job job) throws IOException;

        /**
         * A segment is over, or the recording ends.
         *
         * @param segment the row
         * @throws IOException if it cannot be kept
         */
        void segment(Segment segment) throws IOException;

        /**
         * A decision.
         *
         * @param decision the row
         * @throws IOException if it cannot be kept
         */
        void decision(Decision decision) throws IOException;
    }

    private RecordingRows() {
    }

    /**
     * Reads a recording. The memory needed depends on its tasks and contexts, not on its length.
     *
     * @param source the recording
     * @param sink   receives the rows
     * @return what is said of the whole
     * @throws IOException if it cannot be read, is damaged, or the sink fails
     */
    public static Summary read(final Source source, final Sink sink) throws IOException {
        final Reader reader = new Reader(sink);
        final TraceBuilder.Streamed streamed = TraceBuilder.stream(source, reader);
        reader.rethrow();
        final Trace trace = streamed.trace();
        return new Summary(trace.events, streamed.lostEvents(), trace.lastNs - trace.firstNs, trace.mechanism,
            trace.simulated);
    }

    /** By stamp or sample: the task that released a job with it first. */
    private static final class Sources extends LinkedHashMap<Long, String> {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(final Map.Entry<Long, String> eldest) {
            return size() > SAMPLES;
        }
    }

    /** Makes rows of what the builder hands over. */
    private static final class Reader implements TraceBuilder.Listener {
        private final Sink sink;
        private IOException failure;
        private final Sources byStamp = new Sources();
        private final Sources bySample = new Sources();
        /** By task id: its name, for decisions that name another task. */
        private final Map<Integer, String> names = new LinkedHashMap<>();

        Reader(final Sink sink) {
            this.sink = sink;
        }

        /** The handler of events cannot throw what the sink throws: reading goes on to the end without rows. */
        void rethrow() throws IOException {
            if (failure != null) {
                throw failure;
            }
        }

        @Override
        public void onRelease(final Trace.Job job) {
            if (job.stampNs > 0) {
                byStamp.putIfAbsent(job.stampNs, job.task.name);
            }
            if (job.sample != 0) {
                bySample.putIfAbsent(job.sample, job.task.name);
            }
        }

        private static String state(final Trace.Job job) {
            if (job.isComplete()) {
                return "complete";
            }
            return job.isSkipped() ? "skipped" : job.givenUp ? "given-up" : "open";
        }

        @Override
        public void onJob(final Trace.Job job) {
            if (failure != null) {
                return;
            }
            long waitNs = 0;
            long heldNs = 0;
            int preemptions = 0;
            for (final Trace.Segment segment : job.segments) {
                waitNs += segment.waitNs();
                heldNs += segment.heldNs();
                preemptions += segment.preemptions.size();
            }
            final Trace.Task task = job.task;
            try {
                sink.job(new Job(task.name, job.number, task.priority, task.gpu, job.policy, state(job), job.releaseNs,
                    job.isComplete() ? job.responseNs : -1, task.deadlineNs, job.isLate(), job.segments.size(),
                    preemptions, waitNs, heldNs,
                    source(job),
                    job.isComplete() && job.stampNs > 0 ? job.endNs - job.stampNs : -1));
            } catch (final IOException e) {
                failure = e;
            }
        }

        private String source(final Trace.Job job) {
            if (job.sample != 0) {
                return bySample.getOrDefault(job.sample, job.task.name);
            }
            return job.stampNs > 0 ? byStamp.getOrDefault(job.stampNs, job.task.name) : null;
        }

        @Override
        public void onSegment(final Trace.Segment s) {
            if (failure != null) {
                return;
            }
            final String state = s.cancelled ? "cancelled" : s.aborted ? "aborted" : s.isComplete() ? "complete"
                : "open";
            try {
                sink.segment(new Segment(s.task.name, s.job == null ? 0 : s.job.number, s.ticket, s.task.gpu,
                    s.task.contextId, s.policy, state, s.optimistic, s.forced, s.beginNs, s.decidedNs, s.grantNs,
                    s.enforcedNs, s.endNs, s.waitNs(), s.heldNs(), s.deviceNs, s.preemptions.size(), s.deadlineNs));
            } catch (final IOException e) {
                failure = e;
            }
        }

        @Override
        public void onEvent(final JournalEvent event, final Trace.Task task) {
            final EventKind kind = event.kind();
            if (kind == null || failure != null) {
                return;
            }
            if (kind == EventKind.START) {
                names.clear();
            } else if (kind == EventKind.TASK_OPEN && task != null) {
                names.put(event.taskId(), task.name);
            } else if (kind == EventKind.TASK_CLOSE) {
                names.remove(event.taskId());
            }
            final long valueNs;
            switch (kind) {
                case DECIDED, GRANT, PREEMPT, RESUME, ENFORCED, CANCEL, FORCED_END, PRIORITY, POLICY, ANTICIPATE ->
                    valueNs = 0;
                case DISABLE, ENABLE -> valueNs = event.arg1();
                case MISS, OVERRUN -> valueNs = event.arg0();
                default -> {
                    return;   // nothing was decided
                }
            }
            try {
                sink.decision(new Decision(event.seq(), event.timeNs(), kind.name(), event.gpu(), task == null ? null
                    : task.name, event.ticket(), event.contextId(), kind == EventKind.PREEMPT
                    ? names.get((int) event.arg0()) : null, valueNs));
            } catch (final IOException e) {
                failure = e;
            }
        }
    }
}

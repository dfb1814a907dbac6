/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.daemon.metrics.GpuTime;
import dev.gpuseg.daemon.metrics.JobAccount;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.platform.PlainText;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Puts a {@link Trace} together, event by event. One thread.
 *
 * <p>With a listener nothing is kept that is over: jobs and segments are handed over when they end, and marks, phases,
 * gaps, clocks and times off the hardware are dropped. The memory then depends on the tasks and contexts, not on the
 * number of events.
 */
public final class TraceBuilder {
    /** Receives what is over. */
    interface Listener {
        /** An event, after it was taken into account; {@code task} is the one that it concerns, null = none. */
        void onEvent(JournalEvent event, Trace.Task task);

        /** A job was released. */
        void onRelease(Trace.Job job);

        /** Nothing of a segment changes any more; it may have no end. */
        void onSegment(Trace.Segment segment);

        /** Nothing of a job changes any more; it may have no end. */
        void onJob(Trace.Job job);
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    /** Of an event, in jobs, segments and marks. */
    private static final int KEPT_BYTES = 128;
    private static final String[] CONTEXT_KINDS = {"managed", "unmanaged", "protected"};

    private final Trace trace = new Trace();
    private final Map<Integer, Trace.Task> byId = new HashMap<>();
    private final Map<String, Trace.Task> byName = new HashMap<>();
    private final Map<Integer, Trace.Context> contexts = new HashMap<>();
    private final Map<Integer, String> clientNames = new HashMap<>();
    private final Set<Integer> openTasks = new HashSet<>();
    private final long prefaceUntilSeq;
    private String policy = "";
    private long policySinceNs;
    private long lastSeq = -1;
    /** Starts of a daemon so far. */
    private int runs;
    private boolean prefaceOver;
    private final GpuTime[] gpuTimes = new GpuTime[Abi.GPUS_MAX];
    /** Null = everything is kept. */
    private final Listener listener;
    private long lostEvents;
    /** What is kept of the events so far, about; with text twice, as text and as what was read from it. */
    private long keptBytes;
    private final long keptMost;

    private TraceBuilder(final long prefaceUntilSeq, final Listener listener, final long keptMost) {
        this.keptMost = keptMost;
        this.prefaceUntilSeq = prefaceUntilSeq;
        this.listener = listener;
    }

    /**
     * Reads a source.
     *
     * @param source recording or journal
     * @return what happened
     * @throws IOException if it cannot be read
     */
    public static Trace read(final Source source) throws IOException {
        return read(source, halfTheHeap());
    }

    private static long halfTheHeap() {
        return Runtime.getRuntime().maxMemory() / 2;
    }

    /** The same, keeping so many bytes at most. */
    static Trace read(final Source source, final long keptMost) throws IOException {
        final TraceBuilder builder = new TraceBuilder(source.manifest().path("preface_until_seq").asLong(-1), null,
            keptMost);
        source.forEach(builder::add);
        builder.trace.cpus = source.manifest().path("host").path("cpus").asInt(builder.trace.cpus);
        return builder.build(source.path().toString());
    }

    /**
     * Reads a source and hands over what is over.
     *
     * @param source   recording or journal
     * @param listener receives events, jobs and segments
     * @return what is said of the whole: times, mechanism, number of events
     * @throws IOException if it cannot be read
     */
    static Streamed stream(final Source source, final Listener listener) throws IOException {
        final TraceBuilder builder = new TraceBuilder(source.manifest().path("preface_until_seq").asLong(-1),
            listener, halfTheHeap());
        source.forEach(event -> {
            final Trace.Task before = builder.byId.get(event.taskId());   // a TASK_CLOSE forgets it
            builder.add(event);
            final Trace.Task task = builder.byId.get(event.taskId());
            listener.onEvent(event, task == null ? before : task);
        });
        final Trace trace = builder.build(source.path().toString());
        for (final Trace.Task task : trace.tasks) {
            if (task.begun != null) {
                listener.onSegment(task.begun);
            }
            if (task.current != null) {
                listener.onJob(task.current);
            }
        }
        return new Streamed(trace, builder.lostEvents);
    }

    /** A trace without what was handed over, and how many events are missing. */
    record Streamed(Trace trace, long lostEvents) {
    }

    private Trace build(final String title) {
        trace.title = title;
        if (trace.firstNs == 0) {
            trace.firstNs = trace.lastNs;   // nothing happened: there is only a preface
        }
        endPhase(trace.lastNs);
        for (final Trace.Task task : trace.tasks) {
            if (task.begun != null) {
                closeHold(task.begun, trace.lastNs);
                leave(task.begun, trace.lastNs);
            }
        }
        for (final Trace.Context context : contexts.values()) {
            closeOff(context, trace.lastNs);
        }
        return trace;
    }

    private void add(final JournalEvent event) {
        checkSequence(event);
        trace.events++;
        final int text = event.length() - JournalEvent.BYTES;
        if (listener == null || text > 0 || event.kind() == EventKind.CONTEXT_OPEN) {   // others add to no list
            keptBytes += KEPT_BYTES + 2L * text;
            if (keptBytes > keptMost) {
                throw new IllegalArgumentException("event " + trace.events + ": more than fits into a heap of "
                    + (Runtime.getRuntime().maxMemory() >> 20) + " MiB; give more, GPUSEG_JAVA_OPTS=-Xmx16g, or record "
                    + "less");
            }
        }
        final long nowNs = event.timeNs();
        if (trace.firstNs == 0 && prefaceOver) {
            trace.firstNs = nowNs;
            if (prefaceUntilSeq >= 0) {
                policySinceNs = nowNs;   // what the daemon did before is not in the recording
            }
        }
        trace.lastNs = Math.max(trace.lastNs, nowNs);
        final EventKind kind = event.kind();
        trace.counts.merge(kind == null ? "kind " + event.kindCode() : kind.name(), 1L, Long::sum);
        if (kind == null) {
            return;
        }
        final Trace.Task task = byId.get(event.taskId());
        final Trace.Segment segment = task != null && task.begun != null && task.begun.ticket == event.ticket()
            ? task.begun : null;
        switch (kind) {
            case START -> start(event);
            case STOP -> mark(kind, event, 0, "daemon stopped");
            case CLIENT_OPEN -> clientNames.put(event.clientId(), event.text());
            case CLIENT_POISON -> mark(kind, event, 0, "client " + clientNames.getOrDefault(event.clientId(), "")
                + " was dropped: " + event.text());
            case CONTEXT_OPEN -> openContext(event);
            case CONTEXT_KIND -> {
                if (contexts.containsKey(event.contextId())) {
                    contexts.get(event.contextId()).kind = kindName(event.arg1());
                }
            }
            case CONTEXT_CLOSE -> {
                final Trace.Context context = contexts.remove(event.contextId());
                if (context != null) {
                    closeOff(context, nowNs);
                    context.closeNs = nowNs;
                }
            }
            case TASK_OPEN -> openTask(event);
            case TASK_CLOSE -> closeTask(event.taskId(), nowNs);
            case RELEASE -> release(task, event);
            case BEGIN -> begin(task, event);
            case DECIDED -> decided(segment, nowNs);
            case GRANT -> {
                decided(segment, nowNs);
                enter(segment, nowNs);
                if (segment != null && segment.grantNs == 0) {
                    segment.grantNs = nowNs;
                }
            }
            case PREEMPT -> {
                if (segment != null) {
                    closeHold(segment, nowNs);
                    leave(segment, nowNs);
                    segment.preemptions.add(new Trace.Preemption(nowNs, byId.get((int) event.arg0())));
                }
            }
            case RESUME -> {
                enter(segment, nowNs);
                if (segment != null && segment.holdFromNs == 0) {
                    segment.holdFromNs = nowNs;
                }
            }
            case ENFORCED -> {
                if (segment != null && segment.enforcedNs == 0) {
                    segment.enforcedNs = nowNs;
                }
            }
            case END, CANCEL -> end(task, segment, event, kind == EventKind.CANCEL);
            case FORCED_END -> {
                if (segment != null) {
                    closeHold(segment, nowNs);
                    leave(segment, nowNs);
                    segment.forced = true;
                }
            }
            case JOB_END -> jobEnd(task, event);
            case JOB_CANCEL -> jobCancelled(task);
            case MISS -> {
                if (segment != null && task.isRealTime()) {   // best effort has no deadline
                    segment.missNs = event.arg0();
                    task.account.deadlinePassed(task.priority);
                    if (task.current != null) {
                        task.current.passed = true;
                    }
                    mark(kind, event, 0, "deadline missed");
                }
            }
            case OVERRUN -> {
                if (segment != null) {
                    segment.overrunNs = nowNs;
                    if (!"notify".equals(task.onOverrun) && listener == null) {
                        task.ranks.put(nowNs, 0);   // until its end
                    }
                }
                mark(kind, event, 0, "budget used up");
            }
            case SHARE -> {
                if (task != null) {
                    task.spent = event.arg0() != 0;
                    if (listener == null) {
                        task.ranks.put(nowNs, task.rank());
                    }
                }
                mark(kind, event, 0, event.arg0() != 0 ? "share of its user used up" : "share of its user whole again");
            }
            case HINT -> mark(kind, event, 0, "hint of a begin at " + event.arg0());
            case DISABLE -> {
                trace.longestDisableNs = Math.max(trace.longestDisableNs, event.arg1());
                final Trace.Context context = contexts.get(event.contextId());
                if (context != null && context.offSinceNs == 0) {
                    context.offSinceNs = event.arg0() + event.arg1();
                }
            }
            case ENABLE -> {
                final Trace.Context context = contexts.get(event.contextId());
                if (context != null) {
                    closeOff(context, event.arg0() + event.arg1());
                }
            }
            case POLICY -> {
                if (event.taskId() == 0 && event.text().startsWith("policy ")) {
                    endPhase(nowNs);
                    policy = event.text().substring("policy ".length()).split(" ", 2)[0];
                } else if (event.text().startsWith("overrun of task ") && byId.containsKey((int) event.arg0())) {
                    byId.get((int) event.arg0()).onOverrun = event.text().replaceFirst(".* ", "");
                }
                mark(kind, event, 0, event.text());
            }
            case PRIORITY -> {
                if (task != null) {
                    task.gpuPriority = (int) (event.arg1() > 0 ? event.arg1() : event.arg0());
                    if (listener == null) {
                        task.ranks.put(nowNs, task.rank());
                    }
                }
                mark(kind, event, 0, "priority " + event.arg0() + " counts from here");
            }
            case BOUND -> mark(kind, event, 0, "took " + event.arg0() + " ns, admission believes at most "
                + event.arg1() + " ns");
            case STALL -> mark(kind, event, event.arg0(), "dispatcher cycle took long");
            case GC -> mark(kind, event, event.arg1(), "garbage collection");
            case LOST -> mark(kind, event, 0, event.arg0() + " events lost, from number " + event.arg1());
            case WATCHDOG -> mark(kind, event, event.arg1() == 0 ? 0 : nowNs - event.arg1(),
                "the watchdog had released contexts");
            case MECHANISM_ERROR -> mark(kind, event, 0, event.text());
            case CLOCK -> clock(event);
            case CLIENT_CLOSE -> clientNames.remove(event.clientId());
            case TIMER, ANTICIPATE -> {
                // for a replay; nothing is to be seen
            }
            default -> throw new IllegalStateException("event kind " + kind + " is not handled");
        }
    }

    private void checkSequence(final JournalEvent event) {
        final boolean starts = event.kind() == EventKind.START && event.seq() == 1;
        if (!prefaceOver && event.seq() <= prefaceUntilSeq) {
            lastSeq = prefaceUntilSeq;   // preface: what is open, not what happened
            return;
        }
        prefaceOver = true;
        if (lastSeq < 0 && !starts) {
            // the journal's oldest part was deleted: nothing is known of it, and nothing is missing after it
            lastSeq = event.seq() - 1;
        }
        if (starts) {
            lastSeq = 0;
        }
        if (event.seq() > lastSeq + 1) {
            lostEvents += event.seq() - lastSeq - 1;
            if (listener == null) {
                trace.gaps.add(new Trace.Gap(lastSeq, event.seq(), event.timeNs()));
            }
        }
        lastSeq = event.seq();
    }

    private void start(final JournalEvent event) {
        runs++;
        for (final int id : Set.copyOf(openTasks)) {
            closeTask(id, event.timeNs());
        }
        for (final Trace.Context context : contexts.values()) {
            closeOff(context, event.timeNs());
            context.closeNs = event.timeNs();
        }
        byId.clear();
        contexts.clear();
        clientNames.clear();
        final JsonNode config = json(event);
        endPhase(event.timeNs());
        policy = config.path("policy").asText();
        trace.mechanism = config.path("mechanism").asText("unknown");
        trace.levelName = config.path("level_name").asText();
        trace.consequence = config.path("consequence").asText(MechanismCatalog.find(trace.mechanism)
            .map(MechanismDescription::consequence).orElse(""));   // daemons of earlier versions did not say it
        trace.simulated |= config.path("simulated").asBoolean();
        trace.preemptive = config.path("preemptive").asBoolean(true);
        trace.gpus = Math.max(trace.gpus, config.path("gpus").asInt(1));
        mark(EventKind.START, event, 0, "daemon started, policy " + policy);
    }

    private static JsonNode json(final JournalEvent event) {
        try {
            return JSON.readTree(event.text());
        } catch (final JsonProcessingException e) {
            throw new IllegalArgumentException("event " + event.seq() + ": its text is not JSON: "
                + e.getOriginalMessage() + "; was the file changed?", e);
        }
    }

    private void endPhase(final long nowNs) {
        if (!policy.isEmpty() && listener == null) {
            trace.phases.add(new Trace.Phase(policy, policySinceNs, nowNs));
        }
        policySinceNs = nowNs;
    }

    private static String kindName(final long kind) {
        return kind >= 0 && kind < CONTEXT_KINDS.length ? CONTEXT_KINDS[(int) kind] : "kind " + kind;
    }

    private void openContext(final JournalEvent event) {
        final Trace.Context context = new Trace.Context(event.contextId(), event.gpu(), (int) event.arg0(),
            PlainText.of(event.text()), kindName(event.arg1()), event.timeNs());
        contexts.put(event.contextId(), context);
        if (listener == null) {
            trace.contexts.add(context);
        }
    }

    private void closeOff(final Trace.Context context, final long nowNs) {
        if (context.offSinceNs != 0) {
            if (nowNs > context.offSinceNs && listener == null) {
                context.off.add(new Trace.Span(context.offSinceNs, nowNs));
            }
            context.offSinceNs = 0;
        }
    }

    private void openTask(final JournalEvent event) {
        final JsonNode attributes = json(event);
        final String plain = PlainText.of(attributes.path("name").asText("task " + event.taskId()));
        final Trace.Task known = byName.get(plain);
        final String name = known != null && known.open ? plain + " #" + event.taskId() : plain;
        final Trace.Task task = byName.computeIfAbsent(name, n -> {
            final Trace.Task created = new Trace.Task(trace.tasks.size(), n);
            trace.tasks.add(created);
            return created;
        });
        task.id = event.taskId();
        task.priority = attributes.path("priority").asInt();
        task.gpuPriority = attributes.path("gpu_priority").asInt() > 0 ? attributes.path("gpu_priority").asInt()
            : task.priority;
        task.gpu = event.gpu();
        task.contextId = event.contextId();
        task.clientId = event.clientId();
        task.pid = attributes.path("pid").asInt();
        task.periodNs = attributes.path("period_ns").asLong();
        task.deadlineNs = attributes.path("deadline_ns").asLong();
        task.budgetNs = attributes.path("budget_ns").asLong();
        task.onOverrun = attributes.path("on_overrun").asText("demote");
        task.open = true;
        task.spent = false;
        task.account.reopened();
        if (listener == null) {
            task.ranks.put(event.timeNs(), task.gpuPriority);
        }
        byId.put(event.taskId(), task);
        openTasks.add(event.taskId());
    }

    private void closeTask(final int id, final long nowNs) {
        final Trace.Task task = byId.remove(id);
        openTasks.remove(id);
        if (task != null) {
            if (task.begun != null) {
                closeHold(task.begun, nowNs);
                leave(task.begun, nowNs);
                task.begun.endNs = nowNs;
                task.begun.aborted = true;
                over(task.begun);
                task.begun = null;
            }
            giveUp(task);
            task.account.reopened();
            task.open = false;
        }
    }

    private void release(final Trace.Task task, final JournalEvent event) {
        if (task != null) {
            task.account.released(event.arg0());
            startJob(task, event.arg0(), true);
            task.current.stampNs = event.arg1();
            task.current.sample = event.arg2();
            if (listener != null) {
                listener.onRelease(task.current);
            }
        }
    }

    private void startJob(final Trace.Task task, final long releaseNs, final boolean marked) {
        giveUp(task);
        task.released++;
        task.current = new Trace.Job(task, task.released, releaseNs, marked, policy, runs);
        if (listener == null) {
            task.jobs.add(task.current);
        }
    }

    private void giveUp(final Trace.Task task) {
        if (task.current != null) {
            task.current.givenUp = true;
            over(task.current);
            task.current = null;
        }
    }

    private void over(final Trace.Segment segment) {
        if (listener != null) {
            listener.onSegment(segment);
        }
    }

    private void over(final Trace.Job job) {
        if (listener != null) {
            listener.onJob(job);
        }
    }

    /** GPU time is counted by the same events as in the running daemon, so that both have the same figure. */
    private void enter(final Trace.Segment segment, final long nowNs) {
        if (segment != null && !segment.running) {
            segment.running = true;
            segment.shareAtStartNs = gpuTime(segment).enter(nowNs);
        }
    }

    private void leave(final Trace.Segment segment, final long nowNs) {
        if (segment.running) {
            segment.running = false;
            segment.busyNs += gpuTime(segment).leave(nowNs) - segment.shareAtStartNs;
        }
    }

    private GpuTime gpuTime(final Trace.Segment segment) {
        final int gpu = segment.task.gpu;
        if (gpuTimes[gpu] == null) {
            gpuTimes[gpu] = new GpuTime();
        }
        return gpuTimes[gpu];
    }

    private void begin(final Trace.Task task, final JournalEvent event) {
        if (task == null) {
            return;
        }
        final boolean optimistic = (event.flags() & Abi.FLAG_OPTIMISTIC) != 0;
        final Trace.Segment segment = new Trace.Segment(task, event.ticket(), event.seq(), policy, optimistic,
            event.arg0(), event.timeNs(), event.arg1() > 0 ? event.arg1() : event.arg0(),
            event.arg2() == Long.MAX_VALUE ? 0 : event.arg2());
        if (listener == null) {
            task.segments.add(segment);
        }
        if (task.begun != null) {
            leave(task.begun, event.timeNs());   // its END was lost
            over(task.begun);
        }
        final boolean marked = task.account.marks();
        task.account.begun(event.arg0(), event.arg1());
        if (!marked) {   // a marked release may lie before the first event
            startJob(task, segment.releaseNs, task.account.marks());
        }
        task.begun = segment;
        if (task.current != null) {
            segment.job = task.current;
            task.current.segments.add(segment);
        }
    }

    private static void decided(final Trace.Segment segment, final long nowNs) {
        if (segment != null && segment.decidedNs == 0) {
            segment.decidedNs = nowNs;
            segment.holdFromNs = segment.optimistic ? segment.beginNs : nowNs;
        }
    }

    private static void closeHold(final Trace.Segment segment, final long nowNs) {
        if (segment.holdFromNs != 0) {
            if (nowNs > segment.holdFromNs) {
                segment.holds.add(new Trace.Span(segment.holdFromNs, nowNs));
            }
            segment.holdFromNs = 0;
        }
    }

    private void end(final Trace.Task task, final Trace.Segment segment, final JournalEvent event,
        final boolean cancelled) {
        if (segment == null) {
            return;
        }
        segment.endNs = event.arg0() > 0 ? event.arg0() : event.timeNs();
        closeHold(segment, Math.min(event.timeNs(), segment.endNs));   // the daemon learns of it later
        segment.deviceNs = cancelled ? 0 : event.arg1();
        segment.cancelled = cancelled;
        task.begun = null;
        if (segment.overrunNs != 0 && listener == null) {
            task.ranks.put(event.timeNs(), task.rank());
        }
        leave(segment, event.timeNs());
        over(segment);
        if (cancelled) {
            task.account.segmentWithdrawn();
            if (!task.account.marks()) {
                giveUp(task);
            }
        } else {
            responded(task, segment.endNs,
                task.account.segmentEnded(segment.endNs, task.priority, task.deadlineNs));
        }
    }

    private void responded(final Trace.Task task, final long endNs, final long responseNs) {
        if (responseNs != JobAccount.NONE && task.current != null) {
            task.current.endNs = endNs;
            task.current.responseNs = responseNs;
            over(task.current);
            task.current = null;
        }
    }

    private void jobEnd(final Trace.Task task, final JournalEvent event) {
        if (task != null) {
            responded(task, event.arg0(), task.account.jobEnded(event.arg1(), task.priority, task.deadlineNs));
        }
    }

    private void jobCancelled(final Trace.Task task) {
        if (task != null) {
            task.account.jobCancelled();
            if (task.current != null && task.account.marks()) {
                task.current.cancelled = true;
                giveUp(task);
            }
        }
    }

    private void clock(final JournalEvent event) {
        final JsonNode others = json(event);
        if (listener != null) {
            return;
        }
        trace.clocks.add(new Trace.Clock(event.arg0(), event.arg1(), others.path("boottime_ns").asLong(),
            others.path("uncertainty_ns").asLong()));
    }

    private void mark(final EventKind kind, final JournalEvent event, final long durationNs, final String text) {
        if (listener != null) {
            return;
        }
        final long timeNs = kind == EventKind.GC ? event.arg0()
            : kind == EventKind.WATCHDOG ? event.timeNs() - durationNs : event.timeNs();
        trace.marks.add(new Trace.Mark(kind.name(), timeNs, durationNs, event.gpu(), byId.get(event.taskId()),
            PlainText.of(text)));
    }
}

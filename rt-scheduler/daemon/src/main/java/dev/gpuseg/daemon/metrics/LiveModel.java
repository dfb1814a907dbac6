/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.EventTap;
import dev.gpuseg.ipc.journal.JournalEvent;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The state of a running daemon, from its journal's events. Written on the journal's thread; any thread may read. A
 * reader never holds the lock longer than it takes to copy one task or the spans.
 *
 * <p>Bounded: at most {@link #TASKS_MAX} tasks are told apart, open or closed. A closed task is forgotten after
 * {@link #CLOSED_KEPT_NS}, or earlier when its place is needed; opened again by the same process under the same name on
 * the same GPU before that, it counts on. Tasks beyond the bound are only counted ({@link #untracked()}).
 */
public final class LiveModel implements EventTap {
    /** Most tasks that are told apart. */
    public static final int TASKS_MAX = 512;
    /** How long figures of a closed task stay: 5 minutes. */
    public static final long CLOSED_KEPT_NS = 300_000_000_000L;

    private static final int GPUS_MAX = 256;
    private static final int MISSES_SHOWN = 60;
    private static final int TEXT_MAX = 64;
    private static final ObjectMapper JSON = new ObjectMapper();

    private record Identity(String name, int pid, int gpu) {
    }

    private record ContextOff(int gpu, long sinceNs) {
    }

    private final Map<Integer, TaskFigures> byTaskId = new HashMap<>();
    /** In the order in which they were seen first. */
    private final Map<Identity, TaskFigures> tasks = new LinkedHashMap<>();
    private final Map<Integer, TaskFigures> byKey = new HashMap<>();
    private final Map<Integer, String> clients = new HashMap<>();
    private final Map<Integer, ContextOff> contextsOff = new HashMap<>();
    /** Of tasks that were forgotten; with those of the others at most {@link #TASKS_MAX}. */
    private final Deque<TaskLatencies> spare = new ArrayDeque<>();
    private final GpuFigures[] gpus = new GpuFigures[GPUS_MAX];
    private final SpanRing spans = new SpanRing();
    private final MissLog misses = new MissLog();
    private ModelObserver observer = ModelObserver.NONE;
    private int nextKey = 1;
    private long lastSeq;
    private long events;
    private long gaps;
    private long untracked;
    private String policy = "";

    /** An empty model. */
    public LiveModel() {
        gpus[0] = new GpuFigures();
    }

    /** Reports every duration to this observer from now on. Call it before the first task. */
    synchronized void observer(final ModelObserver newObserver) {
        if (!tasks.isEmpty()) {
            throw new IllegalStateException("the model has seen tasks already");
        }
        observer = newObserver;
    }

    // ---- written on the journal's thread --------------------------------------------------------------------------

    @Override
    public synchronized void onEvent(final JournalEvent event) {
        events++;
        if (lastSeq != 0 && event.seq() > lastSeq + 1) {
            gaps += event.seq() - lastSeq - 1;
        }
        lastSeq = event.seq();
        final EventKind kind = event.kind();
        if (kind == null) {
            return;   // of a newer release
        }
        switch (kind) {
            case START -> policy = parse(event.text()).path("policy").asText("");
            case POLICY -> onPolicy(event);
            case CLIENT_OPEN -> clients.put(event.clientId(), event.text());
            case CLIENT_CLOSE -> {
                clients.remove(event.clientId());
                endOff(event.contextId(), event.timeNs());   // a dead process's context is never enabled
            }
            case TASK_OPEN -> onTaskOpen(event);
            case DISABLE, ENABLE -> onContext(event, kind == EventKind.DISABLE);
            case STALL -> observer.stalled(event.arg0());
            default -> {
                final TaskFigures task = byTaskId.get(event.taskId());
                if (task != null) {
                    onTaskEvent(task, kind, event);
                }
            }
        }
    }

    private static JsonNode parse(final String text) {
        try {
            return JSON.readTree(text);
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException("an event's text is not JSON: " + e.getOriginalMessage(), e);
        }
    }

    private void onPolicy(final JournalEvent event) {
        final TaskFigures task = byTaskId.get(event.taskId());
        if (task != null) {
            task.priority = (int) event.arg0();
            task.gpuPriority = (int) event.arg1();
        } else if (event.text().startsWith("policy ")) {
            policy = event.text().substring("policy ".length()).split(" ", 2)[0];
        }
    }

    private void onTaskOpen(final JournalEvent event) {
        final JsonNode attributes = parse(event.text());
        final int gpu = event.gpu();
        final Identity identity = new Identity(attributes.path("name").asText("task " + event.taskId()),
            attributes.path("pid").asInt(), gpu);
        final TaskFigures stale = byTaskId.remove(event.taskId());
        if (stale != null) {
            close(stale, event.timeNs());   // its TASK_CLOSE was lost
        }
        TaskFigures task = tasks.get(identity);
        if (task == null) {
            if (!makeRoom()) {
                untracked++;
                return;
            }
            task = new TaskFigures(nextKey++, identity.name, identity.pid, gpu,
                observer.task(identity.name, identity.pid, gpu), spare.isEmpty() ? new TaskLatencies() : spare.pop());
            tasks.put(identity, task);
            byKey.put(task.key, task);
        }
        if (gpus[gpu] == null) {
            gpus[gpu] = new GpuFigures();
        }
        task.client = clients.getOrDefault(event.clientId(), "");
        task.taskId = event.taskId();
        task.contextId = event.contextId();
        task.priority = attributes.path("priority").asInt();
        task.gpuPriority = attributes.path("gpu_priority").asInt();
        task.periodNs = attributes.path("period_ns").asLong();
        task.deadlineNs = attributes.path("deadline_ns").asLong();
        task.budgetNs = attributes.path("budget_ns").asLong();
        task.state = TaskState.IDLE;
        task.stateSinceNs = event.timeNs();
        task.account.reopened();
        task.segmentOpen = false;
        byTaskId.put(event.taskId(), task);
    }

    private boolean makeRoom() {
        if (tasks.size() < TASKS_MAX) {
            return true;
        }
        TaskFigures oldest = null;
        for (final TaskFigures task : tasks.values()) {
            if (!task.isOpen() && (oldest == null || task.closedNs - oldest.closedNs < 0)) {
                oldest = task;
            }
        }
        if (oldest == null) {
            return false;
        }
        forget(oldest);
        return true;
    }

    private void forget(final TaskFigures task) {
        tasks.remove(new Identity(task.name, task.pid, task.gpu));
        byKey.remove(task.key);
        task.observer.forgotten();
        task.latencies.clear();
        spare.push(task.latencies);
    }

    private void onContext(final JournalEvent event, final boolean off) {
        observer.contextSwitched(event.gpu(), off, event.arg1());
        if (off) {
            if (contextsOff.size() < TASKS_MAX * 2) {
                contextsOff.put(event.contextId(), new ContextOff(event.gpu(), event.timeNs()));
            }
        } else {
            endOff(event.contextId(), event.timeNs());
        }
    }

    private void endOff(final int contextId, final long timeNs) {
        final ContextOff was = contextsOff.remove(contextId);
        if (was != null) {
            spans.add(SpanRing.CONTEXT_OFF, contextId, was.sinceNs, timeNs, -1);
        }
    }

    private void onTaskEvent(final TaskFigures task, final EventKind kind, final JournalEvent event) {
        final long timeNs = event.timeNs();
        switch (kind) {
            case TASK_CLOSE -> {
                byTaskId.remove(task.taskId);
                close(task, timeNs);
            }
            case BEGIN -> {
                leave(task, TaskState.IDLE, timeNs);   // a lost END
                task.begins++;
                task.segmentOpen = true;
                task.account.begun(event.arg0(), event.arg1());
                task.beginNs = event.arg0();
                task.beginEventNs = timeNs;
                task.segmentDeadlineNs = event.arg2();
                task.waitMeasured = false;
                enter(task, TaskState.WAITING, timeNs);
            }
            case GRANT -> {
                measureWait(task, timeNs);
                run(task, timeNs);
            }
            case RESUME -> {
                task.beginEventNs = timeNs;   // what its enforcement is measured from
                run(task, timeNs);
            }
            case PREEMPT -> onPreempt(task, (int) event.arg0(), timeNs);
            case ENFORCED -> onEnforced(task, timeNs);
            case END -> onEnd(task, event.arg0(), timeNs);
            case CANCEL -> {
                task.cancels++;
                task.openMiss = null;
                task.segmentOpen = false;
                task.account.segmentWithdrawn();
                leave(task, TaskState.IDLE, timeNs);
                enter(task, TaskState.IDLE, timeNs);
            }
            case JOB_END -> onJobEnd(task, event.arg1(), timeNs);
            case JOB_CANCEL -> task.account.jobCancelled();
            case MISS -> {
                if (task.priority > 0) {   // best effort has no deadline to miss
                    onMiss(task, event, timeNs);
                }
            }
            case RELEASE -> task.account.released(event.arg0());
            case FORCED_END -> {
                leave(task, TaskState.IDLE, timeNs);   // its END follows when the application calls
                enter(task, TaskState.IDLE, timeNs);
            }
            case OVERRUN -> {
                task.overruns++;
                misses.add(timeNs, "budget", task, doing(task), event.arg0());
            }
            default -> {
                // hint: nothing to show
            }
        }
    }

    private void onMiss(final TaskFigures task, final JournalEvent event, final long timeNs) {
        task.deadlineMisses++;
        task.account.deadlinePassed(task.priority);
        task.openMiss = misses.add(timeNs, "segment", task, doing(task),
            task.deadlineNs > 0 ? task.deadlineNs : event.arg0() - task.beginNs);
    }

    private void close(final TaskFigures task, final long timeNs) {
        leave(task, TaskState.CLOSED, timeNs);
        task.state = TaskState.CLOSED;
        task.stateSinceNs = timeNs;
        task.closedNs = timeNs;
        task.openMiss = null;
    }

    private void measureWait(final TaskFigures task, final long timeNs) {
        if (!task.waitMeasured) {
            task.waitMeasured = true;
            final long ns = Math.max(0, timeNs - task.beginNs);
            task.latencies.waits.record(ns);
            task.observer.waited(ns);
        }
    }

    private void onPreempt(final TaskFigures task, final int byTaskId, final long timeNs) {
        final TaskFigures by = this.byTaskId.get(byTaskId);
        task.preemptions++;
        task.lastPreemptNs = timeNs;
        task.lastPreemptBy = by == null ? "" : by.name;
        leave(task, TaskState.PREEMPTED, timeNs);
        task.preemptedBy = by == null ? -1 : by.key;
        enter(task, TaskState.PREEMPTED, timeNs);
    }

    private void onEnforced(final TaskFigures task, final long timeNs) {
        final GpuFigures gpu = gpus[task.gpu];
        final long decidedNs = Math.max(task.beginEventNs, gpu.lastLeftNs);
        final long ns = Math.max(0, timeNs - decidedNs);
        gpu.enforcement.record(ns);
        observer.enforced(task.gpu, ns);
    }

    private void onEnd(final TaskFigures task, final long clientNs, final long timeNs) {
        if (!task.segmentOpen) {
            return;   // its BEGIN was lost
        }
        task.segmentOpen = false;
        final long ns = Math.max(0, clientNs - task.beginNs);
        task.segments++;
        task.latencies.responses.record(ns);
        task.observer.segmentEnded(ns);
        if (task.openMiss != null) {
            task.openMiss.lateNs = Math.max(0, clientNs - task.segmentDeadlineNs);
            task.openMiss = null;
        }
        leave(task, TaskState.IDLE, timeNs);
        enter(task, TaskState.IDLE, timeNs);
        responded(task, task.account.segmentEnded(clientNs, task.priority, task.deadlineNs), timeNs);
    }

    private void onJobEnd(final TaskFigures task, final long responseNs, final long timeNs) {
        responded(task, task.account.jobEnded(responseNs, task.priority, task.deadlineNs), timeNs);
    }

    private void responded(final TaskFigures task, final long responseNs, final long timeNs) {
        if (responseNs == JobAccount.NONE) {
            return;
        }
        task.latencies.jobResponses.record(responseNs);
        task.observer.jobEnded(responseNs);
        if (!task.account.isPassed()   // else the log has it
            && JobAccount.isLate(responseNs, task.priority, task.deadlineNs)) {
            misses.add(timeNs, "job", task, "after its last segment", task.deadlineNs).lateNs =
                responseNs - task.deadlineNs;
        }
    }

    /** A grant tells what runs already that its application may go on; it can be later than the event after it. */
    private void run(final TaskFigures task, final long timeNs) {
        if (task.state != TaskState.RUNNING) {
            leave(task, TaskState.RUNNING, timeNs);
            enter(task, TaskState.RUNNING, timeNs);
        }
    }

    /** Ends what a task was doing: its span, and its share of the GPU. */
    private void leave(final TaskFigures task, final TaskState next, final long timeNs) {
        final GpuFigures gpu = gpus[task.gpu];
        switch (task.state) {
            case WAITING -> {
                spans.add(SpanRing.WAITING, task.key, task.stateSinceNs, timeNs, gpu.holder);
                gpu.waiting--;
            }
            case PREEMPTED -> {
                spans.add(SpanRing.PREEMPTED, task.key, task.stateSinceNs, timeNs, task.preemptedBy);
                gpu.preempted--;
                task.preemptedBy = -1;
            }
            case RUNNING -> {
                spans.add(SpanRing.RUNNING, task.key, task.stateSinceNs, timeNs, -1);
                task.busyNs += gpu.time.leave(timeNs) - task.shareAtStartNs;
                if (gpu.holder == task.key) {
                    gpu.holder = -1;
                    if (next != TaskState.PREEMPTED) {
                        gpu.lastLeftNs = timeNs;
                    }
                }
            }
            default -> {
                // no time is taken in it
            }
        }
        task.state = TaskState.IDLE;
    }

    private void enter(final TaskFigures task, final TaskState state, final long timeNs) {
        final GpuFigures gpu = gpus[task.gpu];
        task.state = state;
        task.stateSinceNs = timeNs;
        switch (state) {
            case WAITING -> gpu.waiting++;
            case PREEMPTED -> gpu.preempted++;
            case RUNNING -> {
                task.shareAtStartNs = gpu.time.enter(timeNs);
                if (task.priority > 0) {
                    gpu.holder = task.key;
                }
            }
            default -> {
                // no time is taken in it
            }
        }
    }

    private String doing(final TaskFigures task) {
        if (task.state == TaskState.WAITING) {
            final TaskFigures by = byKey.get(gpus[task.gpu].holder);
            return by == null || by == task ? "waiting" : "waiting for " + shorten(by.name);
        }
        if (task.state == TaskState.PREEMPTED) {
            final TaskFigures by = byKey.get(task.preemptedBy);
            return by == null ? "preempted" : "preempted by " + shorten(by.name);
        }
        return task.state.label();
    }

    private static String shorten(final String name) {
        return name.length() <= TEXT_MAX ? name : name.substring(0, TEXT_MAX);
    }

    // ---- any thread -----------------------------------------------------------------------------------------------

    /**
     * Advances rates and forgets tasks that were closed long ago. To be called several times a second, by one thread.
     *
     * @param nowNs CLOCK_MONOTONIC
     */
    public synchronized void tick(final long nowNs) {
        List<TaskFigures> old = null;
        for (final TaskFigures task : tasks.values()) {
            task.busyRate.roll((long) busyNs(task, nowNs), nowNs);
            task.segmentRate.roll(task.segments, nowNs);
            task.jobRate.roll(task.account.jobs(), nowNs);
            if (!task.isOpen() && nowNs - task.closedNs > CLOSED_KEPT_NS) {
                old = old == null ? new ArrayList<>() : old;
                old.add(task);
            }
        }
        for (final GpuFigures gpu : gpus) {
            if (gpu != null) {
                gpu.busyRate.roll(gpu.time.busyNs(nowNs), nowNs);
            }
        }
        if (old != null) {
            old.forEach(this::forget);
        }
    }

    private double busyNs(final TaskFigures task, final long nowNs) {
        return task.state == TaskState.RUNNING
            ? task.busyNs + gpus[task.gpu].time.shareNs(nowNs) - task.shareAtStartNs : task.busyNs;
    }

    /** Tasks since start that were opened while {@link #TASKS_MAX} were open already: they appear nowhere else. */
    public synchronized long untracked() {
        return untracked;
    }

    /** Events since start that this model did not see, by gaps in their numbers: the ring was full. */
    public synchronized long gaps() {
        return gaps;
    }

    /** Events that this model has seen since start. */
    public synchronized long events() {
        return events;
    }

    /** Bytes that histograms and the ring of spans take here, an estimate. */
    public synchronized long bytes() {
        long sum = SpanRing.CAPACITY * 25L;
        for (final TaskFigures task : tasks.values()) {
            sum += task.bytes();
        }
        for (final TaskLatencies latencies : spare) {
            sum += latencies.bytes();
        }
        return sum;
    }

    synchronized int clientCount() {
        return clients.size();
    }

    synchronized String policy() {
        return policy;
    }

    /** Calls a visitor for every task, each under the lock of its own. */
    void forEachTask(final TaskVisitor visitor) {
        final List<TaskFigures> all;
        synchronized (this) {
            all = new ArrayList<>(tasks.values());
        }
        for (final TaskFigures task : all) {
            synchronized (this) {
                visitor.visit(task);
            }
        }
    }

    /** For {@link #forEachTask}. */
    @FunctionalInterface
    interface TaskVisitor {
        void visit(TaskFigures task);
    }

    /** Tells the GPU time of every open task, by its id; CLOCK_MONOTONIC. */
    public synchronized void forEachOpen(final long nowNs, final GpuTimeVisitor to) {
        byTaskId.forEach((id, task) -> {
            final double busyNs = busyNs(task, nowNs);
            to.visit(id, (long) busyNs, task.busyRate.perSecond((long) busyNs, nowNs) / 1e9);
        });
    }

    /** For {@link #forEachOpen}. */
    @FunctionalInterface
    public interface GpuTimeVisitor {
        /**
         * One task.
         *
         * @param taskId its id
         * @param busyNs time for which it had the GPU, divided where several shared it, since it was opened first
         * @param share  of the last seconds, 0..1
         */
        void visit(int taskId, long busyNs, double share);
    }

    /** GPU time of a task in ns. For visitors. */
    double busy(final TaskFigures task, final long nowNs) {
        return busyNs(task, nowNs);
    }

    /** Calls a visitor for every GPU that was used, with its index, under the lock. */
    synchronized void forEachGpu(final java.util.function.ObjIntConsumer<GpuFigures> visitor) {
        for (int g = 0; g < gpus.length; g++) {
            if (gpus[g] != null) {
                visitor.accept(gpus[g], g);
            }
        }
    }

    /**
     * How equally best-effort tasks shared a GPU in the last seconds, after Jain: (sum x)^2 / (n * sum x^2), x = GPU
     * time per second.
     *
     * @param gpu   which GPU
     * @param nowNs CLOCK_MONOTONIC
     * @return 1/n..1; 1 where fewer than two best-effort tasks used it
     */
    public synchronized double fairness(final int gpu, final long nowNs) {
        double sum = 0;
        double squares = 0;
        int n = 0;
        for (final TaskFigures task : tasks.values()) {
            final double x = task.busyRate.perSecond((long) busyNs(task, nowNs), nowNs);
            if (task.gpu == gpu && task.priority == 0 && task.isOpen() && x > 0) {
                sum += x;
                squares += x * x;
                n++;
            }
        }
        return n < 2 ? 1 : sum * sum / (n * squares);
    }

    /**
     * Everything that {@code top} and {@code live} show.
     *
     * @param since   the {@code next} of the spans that the asker has, -1 for all that are kept, -2 for none
     * @param columns whether histograms are wanted as columns
     * @param nowNs   CLOCK_MONOTONIC
     * @return JSON; times in ns of CLOCK_MONOTONIC
     */
    public ObjectNode view(final long since, final boolean columns, final long nowNs) {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("format", 1);
        root.put("now_ns", nowNs);
        root.put("wall_ms", System.currentTimeMillis());
        root.put("policy", policy());
        root.put("events", events());
        root.put("events_missed", gaps());
        root.put("tasks_untracked", untracked());
        final ArrayNode gpuList = root.putArray("gpus");
        forEachGpu((gpu, index) -> {
            final ObjectNode node = gpuList.addObject();
            node.put("gpu", index).put("holder", gpu.holder).put("running", gpu.time.running())
                .put("waiting", gpu.waiting).put("preempted", gpu.preempted)
                .put("busy_share", gpu.busyRate.perSecond(gpu.time.busyNs(nowNs), nowNs) / 1e9);
            gpu.enforcement.putInto(node, "enforcement_ns", columns);
        });
        final ArrayNode taskList = root.putArray("tasks");
        forEachTask(task -> put(task, taskList.addObject(), columns, nowNs));
        synchronized (this) {
            if (since >= -1) {
                spans.putInto(root, since);
                final ArrayNode off = root.putArray("contexts_off");
                contextsOff.forEach((context, was) -> off.addArray().add(context).add(was.gpu).add(was.sinceNs));
            }
            misses.putInto(root, MISSES_SHOWN);
        }
        return root;
    }

    private void put(final TaskFigures task, final ObjectNode node, final boolean columns, final long nowNs) {
        final double busyNs = busyNs(task, nowNs);
        node.put("key", task.key).put("id", task.taskId).put("open", task.isOpen()).put("name", task.name)
            .put("pid", task.pid).put("client", task.client).put("gpu", task.gpu).put("context", task.contextId)
            .put("priority", task.priority).put("gpu_priority", task.gpuPriority).put("period_ns", task.periodNs)
            .put("deadline_ns", task.deadlineNs).put("budget_ns", task.budgetNs).put("state", task.state.label())
            .put("state_since_ns", task.stateSinceNs).put("preempted_by", task.preemptedBy)
            .put("segments", task.segments).put("jobs", task.account.jobs())
            .put("segment_rate", task.segmentRate.perSecond(task.segments, nowNs))
            .put("job_rate", task.jobRate.perSecond(task.account.jobs(), nowNs)).put("preemptions", task.preemptions)
            .put("deadline_misses", task.deadlineMisses).put("job_misses", task.account.misses())
            .put("skipped", task.account.skipped()).put("overdue", task.account.isOverdue())
            .put("overruns", task.overruns).put("busy_ns", (long) busyNs)
            .put("gpu_share", task.busyRate.perSecond((long) busyNs, nowNs) / 1e9)
            .put("last_preempt_ns", task.lastPreemptNs).put("last_preempt_by", task.lastPreemptBy);
        task.latencies.waits.putInto(node, "wait_ns", columns);
        task.latencies.responses.putInto(node, "segment_response_ns", columns);
        task.latencies.jobResponses.putInto(node, "job_response_ns", columns);
    }

    @Override
    public String toString() {
        return "live model";
    }
}

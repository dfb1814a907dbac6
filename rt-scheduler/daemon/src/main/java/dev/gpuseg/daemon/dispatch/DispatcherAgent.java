/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.RoundRobin;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.Strategy;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.TimePartitions;
import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.ConductorProxy;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.policy.PolicySettings;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RecordHandler;
import dev.gpuseg.ipc.RecordView;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.ipc.platform.Epoll;
import dev.gpuseg.ipc.platform.EventFd;
import dev.gpuseg.ipc.platform.FaultBarrier;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;
import org.agrona.concurrent.MessageHandler;

/**
 * The thread that decides: it polls every client's queue, drives the {@link SegmentScheduler}, answers through the
 * sessions and journals, in that order. Nothing in its cycle allocates, blocks or makes a system call, save the wake-up
 * of a client that sleeps and its own sleep when idle.
 *
 * <p>An error while one client is handled drops that client; no error ends the loop.
 *
 * <h2>Grant and enforcement</h2>
 * A real-time grant that needs other contexts off is written when the enforcer has confirmed that (blocking begin), or
 * was taken by the client itself before (optimistic begin). If nothing is left to disable it is written at once.
 */
public final class DispatcherAgent implements Runnable {
    /** Duty cycles longer than this are counted and journaled, ns. */
    static final long STALL_NS = 1_000_000;
    /** The status page promises a heartbeat at least every 20 ms; sleeping leaves room for a late wake-up. */
    private static final int SLEEP_MAX_MS = 14;
    private static final long HEARTBEAT_NS = 2_000_000;
    private static final long NS_PER_MS = 1_000_000;
    private static final int RECORDS_PER_POLL = 16;
    /** A client that leaves, or closes a task, and goes on writing is not read any further than this. */
    private static final int RECORDS_LEFT_MAX = 1 << 16;
    private static final int EPOLL_EVENTS = 64;
    private static final int OWN_TOKEN = 0;
    /** Two thread wake-ups and the jitter of the clock's sleepers. */
    private static final long HINT_MARGIN_NS = 300_000;
    private static final int EAGAIN = -11;
    private static final int EINVAL = -22;
    private static final int ENOSPC = -28;
    private static final int ENOENT = -2;

    private final SegmentScheduler scheduler;
    private final DecisionLog decisions;
    private final GpuState[] gpus;
    private final JournalRing journal;
    private final StatusPage status;
    private final Counters counters;
    private final IdleMode idle;
    private final boolean preemptive;
    private final boolean optimisticAllowed;
    private final TaskEntry[] tasks;
    private final boolean[] contextInUse;
    private final List<ClientEntry> clients = new ArrayList<>();
    private final List<ProcessEntry> processes = new ArrayList<>();
    private final ManyToOneConcurrentLinkedQueue<Runnable> commands = new ManyToOneConcurrentLinkedQueue<>();
    private final EventFd bell = new EventFd();
    private final Epoll epoll = new Epoll(EPOLL_EVENTS);
    private final RecordHandler recordHandler = this::onRecord;
    private final MessageHandler resultHandler = this::onResult;

    private final boolean observes;
    /** What policy files and commands said about tasks, by name; for those that open later. */
    private final Map<String, PolicySettings.TaskRule> taskRules = new HashMap<>();
    private final Set<Integer> groupsNamed = new TreeSet<>();
    private Sharing sharing = Sharing.TURNS;
    private long quantumNs = PolicySettings.QUANTUM_NS;
    private Strategy defaultStrategy = Strategy.INTERRUPT;
    private long holdoffNs;
    private boolean keepReady = true;

    private ConductorProxy conductor;
    private ClientEntry current;
    private int currentGpu;
    private int pollFrom;
    private long nowNs;
    private long heartbeatNs;
    private long lastWorkNs;
    private long journaled;
    private final SleepFlag sleeping = new SleepFlag();
    private volatile boolean running = true;
    private volatile boolean stopping;
    private volatile int orphanCount;
    /** W dispatcher: another number whenever a process appears or goes. */
    private volatile int processVersion;
    /** What commands have allocated on this thread; the rest is the hot path's. */
    private long commandBytes;
    /** W dispatcher, at each command: allocated by all else. */
    private volatile long hotPathBytes;

    /**
     * Wires the dispatcher.
     *
     * @param config    of the scheduler
     * @param enforcers one per GPU
     * @param journal   where events go
     * @param status    written by this thread alone from now on
     * @param counters  written by this thread alone from now on
     * @param idle      what to do when nothing waits
     */
    DispatcherAgent(final SchedulerConfig config, final Enforcer[] enforcers, final JournalRing journal,
        final StatusPage status, final Counters counters, final IdleMode idle) {
        decisions = new DecisionLog(enforcers);
        scheduler = new SegmentScheduler(config, decisions);
        scheduler.setKeepReady(keepReady, 0);
        preemptive = config.preemptive();
        optimisticAllowed = config.optimistic();
        observes = enforcers.length > 0
            && enforcers[0].mechanism().capabilities().level() == Capabilities.OBSERVE;
        gpus = new GpuState[enforcers.length];
        for (int i = 0; i < gpus.length; i++) {
            gpus[i] = new GpuState(enforcers[i], new Reservation(scheduler, enforcers[i].desired(), i,
                config.maxContexts() + 1));
        }
        tasks = new TaskEntry[config.maxTasks() + 1];
        contextInUse = new boolean[config.maxContexts() + 1];
        this.journal = journal;
        this.status = status;
        this.counters = counters;
        this.idle = idle;
        epoll.add(bell.fd(), Epoll.IN, OWN_TOKEN);
    }

    /**
     * Names where answers go. Before the first command.
     *
     * @param proxy the conductor
     */
    void conductor(final ConductorProxy proxy) {
        conductor = proxy;
    }

    // ---- from other threads ---------------------------------------------------------------------------------------

    /** Runs something on the dispatcher thread. Any thread; allocates. */
    void submit(final Runnable command) {
        commands.add(command);
        wake();
    }

    /** Makes the dispatcher look around if it sleeps. Any thread, after it has published what is to be seen. */
    void wake() {
        if (sleeping.mustWake()) {
            bell.signal();
        }
    }

    /** Ends the loop. Any thread. */
    void stop() {
        running = false;
        bell.signal();
    }

    // ---- the loop -------------------------------------------------------------------------------------------------

    @Override
    public void run() {
        ThreadControl.timerSlackNs(1);
        lastWorkNs = System.nanoTime();
        while (running) {
            try {
                turn();
            } catch (final RuntimeException | InternalError e) {
                onCycleError(e);   // a truncated file's fault may surface anywhere, in the sleep above all
            }
        }
    }

    /** One duty cycle, then what the idle mode says. */
    void turn() {
        final int work = cycle();
        if (work > 0) {
            lastWorkNs = nowNs;
        } else if (idle != IdleMode.SPIN) {
            if (nowNs - lastWorkNs >= idle.spinNs()) {
                sleep();
            } else {
                Thread.onSpinWait();
            }
        }   // else the core is ours, and a pause would only delay the next look
    }

    /** One duty cycle. Returns how much was done. */
    int cycle() {
        final long beganNs = System.nanoTime();
        nowNs = beganNs;
        int work = 0;
        try {
            if (scheduler.nextTimerNs() <= nowNs) {
                onTimer();   // first, so that no other event of this cycle hides that the clock was looked at
                work++;
            }
            work += runCommand();
            work += pollClients();
            work += pollEnforcers();
            for (int g = 0; g < gpus.length; g++) {
                if (gpus[g].nextHintNs() <= nowNs) {
                    onHintTimer(g);
                    work++;
                }
            }
        } catch (final RuntimeException | InternalError e) {
            onCycleError(e);
        }
        if (nowNs - heartbeatNs >= HEARTBEAT_NS) {
            heartbeatNs = nowNs;
            status.heartbeat(nowNs);
        }
        if (work > 0) {
            trackDuration(beganNs);
        }
        return work;
    }

    /** What a replay needs to decide the same is journaled: here the time, where no decision tells it. */
    private void onTimer() {
        final long before = journaled;
        scheduler.onTimer(nowNs);
        settle();
        if (journaled == before) {
            journal(EventKind.TIMER, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        }
    }

    private void trackDuration(final long beganNs) {
        final long tookNs = System.nanoTime() - beganNs;
        if (tookNs > counters.get(Counter.MAX_CYCLE_NS)) {
            counters.set(Counter.MAX_CYCLE_NS, tookNs);
        }
        if (tookNs > STALL_NS) {
            counters.increment(Counter.STALLS);
            journal(EventKind.STALL, 0, 0, 0, 0, 0, 0, tookNs, 0, 0);
        }
    }

    private void sleep() {
        status.sleeping(true);   // to clients
        sleeping.announce();     // to threads of this process; cycle() then looks at all that both may have published
        try {
            if (cycle() == 0 && commands.isEmpty()) {
                counters.increment(Counter.SLEEPS);
                final int ready = epoll.await(timeoutMs());
                for (int i = 0; i < ready; i++) {
                    drainBell((int) epoll.token(i));
                }
            }
        } finally {
            sleeping.clear();
            status.sleeping(false);
        }
        final long wokenNs = System.nanoTime();
        if (idle != IdleMode.SLEEP) {
            lastWorkNs = wokenNs - idle.spinNs();   // poll on only if the wake-up brought work
        }
    }

    private int timeoutMs() {
        for (int g = 0; g < gpus.length; g++) {
            if (gpus[g].nextHintNs() != Long.MAX_VALUE) {
                // early rather than late: the cycles of the last millisecond wait without sleeping
                final long leftNs = gpus[g].nextHintNs() - System.nanoTime();
                return leftNs <= 0 ? 0 : (int) Math.min(SLEEP_MAX_MS, leftNs / NS_PER_MS);
            }
        }
        final long timerNs = scheduler.nextTimerNs();
        if (timerNs == Long.MAX_VALUE) {
            return SLEEP_MAX_MS;
        }
        final long leftNs = timerNs - System.nanoTime();
        return leftNs <= 0 ? 0 : (int) Math.min(SLEEP_MAX_MS, (leftNs + NS_PER_MS - 1) / NS_PER_MS);
    }

    private void drainBell(final int token) {
        if (token == OWN_TOKEN) {
            bell.drain();
            return;
        }
        for (int i = 0; i < clients.size(); i++) {
            final Client client = clients.get(i).client;
            if (client.clientId() == token) {
                client.doorbell().drain();
                return;
            }
        }
    }

    private int runCommand() {
        if (commands.isEmpty()) {
            return 0;
        }
        final long allocatedBefore = ThreadAllocation.bytes();
        hotPathBytes = allocatedBefore - commandBytes;
        final Runnable command = commands.poll();
        if (command != null) {
            try {
                command.run();   // one in each cycle: many registrations or deaths at once delay nobody more than one
            } catch (final RuntimeException | InternalError e) {
                onCycleError(e);
            }
        }
        commandBytes += ThreadAllocation.bytes() - allocatedBefore;
        return 1;
    }

    private int pollClients() {
        final int size = clients.size();
        if (size == 0) {
            return 0;
        }
        if (pollFrom >= size) {
            pollFrom = 0;
        }
        int work = 0;
        for (int i = 0; i < size; i++) {
            int at = pollFrom + i;
            if (at >= size) {
                at -= size;
            }
            final ClientEntry entry = clients.get(at);
            int n = 0;
            if (!entry.poisoned) {
                n = poll(entry, RECORDS_PER_POLL);
                work += n;
            }
            if (entry.recordsLeft >= 0) {
                entry.recordsLeft -= n;
                if (n < RECORDS_PER_POLL || entry.recordsLeft < 0) {
                    entry.recordsLeft = ClientEntry.STAYS;
                    farewell(entry);
                }
            }
        }
        pollFrom++;   // nobody is always first
        return work;
    }

    private int poll(final ClientEntry entry, final int limit) {
        current = entry;
        try {
            final int n = entry.client.queue().poll(recordHandler, limit, nowNs);
            if (n < 0) {
                poison(entry, -n, entry.client.queue().poisonText());
                return 1;
            }
            counters.add(Counter.RECORDS, n);
            FaultBarrier.deliver();
            return n;
        } catch (final RuntimeException e) {
            counters.increment(Counter.CLIENT_ERRORS);
            poison(entry, Abi.POISON_PROTOCOL, "internal error: " + e);
        } catch (final InternalError e) {
            // a mapped file shrank; the fault may surface late, so look who it was
            counters.increment(Counter.CLIENT_ERRORS);
            poisonTruncated();   // nobody: another fault of one that is poisoned already
        } finally {
            current = null;
        }
        return 1;
    }

    private boolean poisonTruncated() {
        boolean found = false;
        for (int i = 0; i < clients.size(); i++) {
            final ClientEntry entry = clients.get(i);
            if (!entry.poisoned && !entry.client.queue().isIntact()) {
                poison(entry, Abi.POISON_TRUNCATED, "a file of its queue was truncated or removed");
                found = true;
            }
        }
        return found;
    }

    /** A client whose file was truncated may be the source of more than one fault. */
    private boolean hasPoisoned() {
        for (int i = 0; i < clients.size(); i++) {
            if (clients.get(i).poisoned) {
                return true;
            }
        }
        return false;
    }

    private void onCycleError(final Throwable error) {
        if (error instanceof InternalError && (poisonTruncated() || hasPoisoned())) {
            counters.increment(Counter.CLIENT_ERRORS);
            return;
        }
        counters.increment(Counter.CYCLE_ERRORS);
        journalText(EventKind.MECHANISM_ERROR, 0, 0, 0, 0, 0, 0, "dispatcher: " + error);
    }

    // ---- records --------------------------------------------------------------------------------------------------

    private void onRecord(final int clientId, final RecordView record) {
        final TaskEntry task = tasks[record.taskId()];
        if (current.poisoned || task == null || task.client != current) {
            return;   // poisoned by an earlier record of the same batch, or its task was closed by one
        }
        if (record.timeNs() > nowNs) {
            // The machine held this thread up within the cycle. Nothing is decided before what it follows from.
            nowNs = Math.min(record.timeNs(), System.nanoTime());
        }
        switch (record.kind()) {
            case Abi.RECORD_BEGIN:
                onBegin(task, record);
                break;
            case Abi.RECORD_END:
                onEnd(task, record);
                break;
            case Abi.RECORD_RELEASE:
                task.jobReleaseNs = record.releaseNs();
                journal(EventKind.RELEASE, task.request.gpu(), 0, task.id, 0, task.contextId, clientId,
                    record.releaseNs(), 0, 0);
                break;
            case Abi.RECORD_HINT:
                journal(EventKind.HINT, task.request.gpu(), 0, task.id, 0, task.contextId, clientId, record.argNs(),
                    0, 0);
                onHint(task, record.argNs());
                break;
            default:
                onJobEnd(task, record);
                break;
        }
    }

    private void onBegin(final TaskEntry task, final RecordView record) {
        final long ticket = record.ticket();
        task.ticket = ticket;
        task.optimistic = record.has(Abi.FLAG_OPTIMISTIC);
        endHint(task);
        final int outcome = scheduler.begin(task.id, ticket, record.releaseNs(), record.argNs(), task.optimistic,
            record.timeNs(), nowNs);
        if (outcome == Outcome.SKIPPED) {
            onSkipped(task, record);
            return;
        }
        if (outcome != Outcome.ACCEPTED) {
            settle();
            poison(task.client, Abi.POISON_TICKET, "begin of task " + task.id + ", ticket " + ticket + ": "
                + Outcome.name(outcome));
            return;
        }
        if (!task.optimistic) {
            journalBegin(task, record);   // first: the wake-up may cost us the CPU, and an answer outlives a kill
        }
        answer();
        task.segments++;
        counters.increment(Counter.BEGINS);
        if (task.optimistic) {
            counters.increment(Counter.OPTIMISTIC_BEGINS);
            journalBegin(task, record);
        } else if (scheduler.state(task.id) == SegmentState.WAITING) {
            task.client.client.session().state(task.slot, Abi.SEGMENT_WAITING);
        }
        recordDecisions();
    }

    private void journalBegin(final TaskEntry task, final RecordView record) {
        journal(EventKind.BEGIN, task.request.gpu(), record.flags(), task.id, record.ticket(), task.contextId,
            task.client.client.clientId(), record.timeNs(), record.releaseNs(), scheduler.deadlineNs(task.id));
    }

    /** In the journal: a begin that was cancelled at once. */
    private void onSkipped(final TaskEntry task, final RecordView record) {
        final long ticket = record.ticket();
        task.client.client.session().grant(task.slot, ticket, Abi.VERDICT_REFUSED);
        task.forcedTicket = ticket;   // its client may have given up waiting at this moment
        counters.increment(Counter.BEGINS);
        counters.increment(Counter.SKIPPED);
        final int client = clientId(task);
        journal(EventKind.BEGIN, task.request.gpu(), record.flags(), task.id, ticket, task.contextId, client,
            record.timeNs(), record.releaseNs(), 0);
        journal(EventKind.CANCEL, task.request.gpu(), 0, task.id, ticket, task.contextId, client, nowNs, 0, 0);
        settle();
    }

    // ---- hints ----------------------------------------------------------------------------------------------------

    /**
     * A begin is expected: lower work is to be off the GPU by then, and not longer before than that takes. Advice only:
     * it acts while no real-time segment runs, is dropped when a better task's hint comes, and ends when the begin
     * is late by more than the time that taking work off takes (at least 1 ms).
     */
    private void onHint(final TaskEntry task, final long atNs) {
        final GpuState gpu = gpus[task.request.gpu()];
        if (!preemptive || !task.isRealTime() || !task.strategy.interrupts()
            || scheduler.policy() == RoundRobin.INSTANCE) {
            return;
        }
        final TaskEntry known = gpu.hintedTask == GpuState.NOBODY ? null : tasks[gpu.hintedTask];
        if (known != null && known != task && known.gpuPriority > task.gpuPriority) {
            return;
        }
        if (known != null) {
            endHint(known);
            settle();
        }
        final Capabilities can = gpu.enforcer.mechanism().capabilities();
        final long leadNs = can.disableNs() + can.disablePerContextNs() * Math.max(0, processes.size() - 1)
            + HINT_MARGIN_NS;
        gpu.hintedTask = task.id;
        gpu.hintFromNs = atNs - leadNs;
        gpu.hintUntilNs = atNs + Math.max(leadNs, NS_PER_MS);
    }

    private void onHintTimer(final int g) {
        final GpuState gpu = gpus[g];
        final TaskEntry task = tasks[gpu.hintedTask];
        if (gpu.reservation.isActive()) {
            counters.increment(Counter.HINTS_WASTED);
            forgetHint(gpu);
            settle();
        } else if (scheduler.isRealTime(scheduler.runningTask(g))) {
            forgetHint(gpu);   // the GPU has been taken; ranks decide at the begin
        } else {
            counters.increment(Counter.HINTS_ACTED);
            gpu.reservation.start(task.id, task.contextId);
            settle();
        }
    }

    /** The announced begin came, or its task goes. Published with the decision that follows. */
    private void endHint(final TaskEntry task) {
        final GpuState gpu = gpus[task.request.gpu()];
        if (gpu.hintedTask == task.id) {
            forgetHint(gpu);
        }
    }

    private static void forgetHint(final GpuState gpu) {
        gpu.hintedTask = GpuState.NOBODY;
        gpu.reservation.end();
    }

    private void onEnd(final TaskEntry task, final RecordView record) {
        final long ticket = record.ticket();
        final boolean cancelled = record.has(Abi.FLAG_CANCELLED);
        task.grantPending = false;
        gpus[task.request.gpu()].forget(task.id);
        final int outcome = cancelled ? scheduler.cancel(task.id, ticket, nowNs)
            : scheduler.end(task.id, ticket, nowNs);
        if (outcome != Outcome.ACCEPTED && ticket != task.forcedTicket) {
            settle();
            poison(task.client, Abi.POISON_TICKET, "end of task " + task.id + ", ticket " + ticket + ": "
                + Outcome.name(outcome));
            return;
        }
        answer();
        counters.increment(cancelled ? Counter.CANCELS : Counter.ENDS);
        if (record.has(Abi.FLAG_PROCEEDED)) {
            counters.increment(Counter.PROCEEDED);
        }
        if (!task.optimistic) {
            task.client.client.session().state(task.slot, Abi.SEGMENT_IDLE);
        }
        journal(cancelled ? EventKind.CANCEL : EventKind.END, task.request.gpu(), record.flags(), task.id, ticket,
            task.contextId, task.client.client.clientId(), record.timeNs(), cancelled ? 0 : record.argNs(), 0);
        recordDecisions();
    }

    private void onJobEnd(final TaskEntry task, final RecordView record) {
        final long responseNs = task.jobReleaseNs == 0 ? 0 : Math.max(0, record.timeNs() - task.jobReleaseNs);
        counters.increment(Counter.JOBS);
        final long missesBefore = task.jobMisses;
        task.jobEnded(responseNs);
        counters.add(Counter.JOB_MISSES, task.jobMisses - missesBefore);
        journal(EventKind.JOB_END, task.request.gpu(), 0, task.id, 0, task.contextId,
            task.client.client.clientId(), record.timeNs(), responseNs, 0);
    }

    // ---- decisions ------------------------------------------------------------------------------------------------

    /** What clients and enforcers wait for, then the journal. */
    private void settle() {
        answer();
        recordDecisions();
    }

    /** First part: publish the desired state, write grant words and pre-grants. */
    private void answer() {
        for (int g = 0; g < gpus.length; g++) {
            final GpuState gpu = gpus[g];
            final boolean isReservationNew = gpu.reservation.follow();
            if (isReservationNew || decisions.changed(g)) {
                final long version = gpu.enforcer.desired().commit();
                if (isReservationNew || decisions.disabling(g)) {
                    gpu.disableVersion = version;
                }
                decisions.contextsTaken(g);
                gpu.enforcer.kick();
            }
        }
        for (int i = 0; i < decisions.count(); i++) {
            final TaskEntry task = tasks[decisions.task(i)];
            if (task == null) {
                continue;   // closed within the same event
            }
            switch (decisions.kind(i)) {
                case DecisionLog.GRANT:
                    onGrant(task, decisions.gpu(i), decisions.ticket(i));
                    break;
                case DecisionLog.PREGRANT:
                    task.client.client.session().pregrant(task.slot, decisions.argument(i) != 0);
                    break;
                default:
                    break;   // nobody waits for these
            }
        }
    }

    private void onGrant(final TaskEntry task, final int g, final long ticket) {
        if (task.optimistic) {
            return;   // it did not wait, and its slot's line is best left in its cache
        }
        if (scheduler.isRealTime(task.id) && !gpus[g].isSettled()) {
            task.grantPending = true;
        } else {
            grant(task, ticket);
        }
    }

    private static void grant(final TaskEntry task, final long ticket) {
        final Session session = task.client.client.session();
        task.grantPending = false;
        session.state(task.slot, Abi.SEGMENT_RUNNING);
        session.grant(task.slot, ticket, Abi.VERDICT_GRANTED);
    }

    /** Second part: counters, states for tools, journal. */
    private void recordDecisions() {
        for (int i = 0; i < decisions.count(); i++) {
            final TaskEntry task = tasks[decisions.task(i)];
            if (task == null) {
                continue;
            }
            final int g = decisions.gpu(i);
            final long ticket = decisions.ticket(i);
            switch (decisions.kind(i)) {
                case DecisionLog.GRANT:
                    if (task.grantPending) {
                        journal(EventKind.DECIDED, g, 0, task.id, ticket, task.contextId, clientId(task), 0, 0, 0);
                    } else {
                        journalGrant(task, ticket);
                    }
                    enforcementOf(task, g, ticket);
                    break;
                case DecisionLog.RESUME:
                    counters.increment(Counter.RESUMES);
                    task.client.client.session().state(task.slot, Abi.SEGMENT_RUNNING);
                    journal(EventKind.RESUME, g, 0, task.id, ticket, task.contextId, clientId(task), 0, 0, 0);
                    enforcementOf(task, g, ticket);
                    break;
                case DecisionLog.PREEMPT:
                    gpus[g].forget(task.id);
                    task.preemptions++;
                    counters.increment(Counter.PREEMPTIONS);
                    task.client.client.session().countPreemption(task.slot);
                    task.client.client.session().state(task.slot, Abi.SEGMENT_PREEMPTED);
                    journal(EventKind.PREEMPT, g, 0, task.id, ticket, task.contextId, clientId(task),
                        Math.max(0, decisions.argument(i)), 0, 0);
                    break;
                case DecisionLog.MISS:
                    counters.increment(Counter.DEADLINE_MISSES);
                    task.client.client.session().countMiss(task.slot);
                    journal(EventKind.MISS, task.request.gpu(), 0, task.id, ticket, task.contextId, clientId(task),
                        decisions.argument(i), 0, 0);
                    break;
                case DecisionLog.OVERRUN:
                    task.overruns++;
                    counters.increment(Counter.OVERRUNS);
                    task.client.client.session().countOverrun(task.slot);
                    journal(EventKind.OVERRUN, task.request.gpu(), 0, task.id, ticket, task.contextId,
                        clientId(task), decisions.argument(i), 0, 0);
                    onOverrun(task, ticket);
                    break;
                default:
                    break;
            }
        }
        decisions.clear();
    }

    private void onOverrun(final TaskEntry task, final long ticket) {
        if (scheduler.ticket(task.id) != ticket) {
            task.forcedTicket = ticket;   // a gate cannot take the GPU away: the scheduler ended it
            task.grantPending = false;
            journal(EventKind.FORCED_END, task.request.gpu(), 0, task.id, ticket, task.contextId, clientId(task), 0, 0,
                0);
        } else if (task.grantPending && !scheduler.isRealTime(task.id)
            && scheduler.state(task.id) == SegmentState.RUNNING) {
            finishGrant(task, ticket);   // demoted before it was enforced
        }
    }

    /** A real-time segment came to run: note when the others are off. */
    private void enforcementOf(final TaskEntry task, final int g, final long ticket) {
        if (scheduler.state(task.id) != SegmentState.RUNNING) {
            return;
        }
        if (!scheduler.isRealTime(task.id)) {
            if (task.grantPending) {   // demoted before it was enforced
                finishGrant(task, ticket);
            }
            return;
        }
        final GpuState gpu = gpus[g];
        if (gpu.isSettled()) {
            if (task.grantPending) {   // the enforcer was quick
                finishGrant(task, ticket);
            }
            journalEnforced(task, g, ticket, gpu);
        } else {
            gpu.await(task.id, ticket);
        }
    }

    private void finishGrant(final TaskEntry task, final long ticket) {
        grant(task, ticket);
        counters.increment(Counter.GRANTS_AFTER_DISABLE);
        journalGrant(task, ticket);
    }

    private void journalGrant(final TaskEntry task, final long ticket) {
        counters.increment(Counter.GRANTS);
        journal(EventKind.GRANT, task.request.gpu(), task.optimistic ? Abi.FLAG_OPTIMISTIC : 0, task.id, ticket,
            task.contextId, clientId(task), 0, 0, 0);
    }

    private void journalEnforced(final TaskEntry task, final int g, final long ticket, final GpuState gpu) {
        if (gpu.enforcer.isIncomplete()) {
            counters.increment(Counter.GRANTS_UNENFORCED);
        } else if (preemptive && scheduler.policy() != RoundRobin.INSTANCE) {
            journal.write(EventKind.ENFORCED, Math.max(nowNs, gpu.enforcer.enforcedNs()), g, 0, task.id, ticket,
                task.contextId, clientId(task), 0, 0, 0);
        }
    }

    private static int clientId(final TaskEntry task) {
        return task.client.client.clientId();
    }

    // ---- enforcers ------------------------------------------------------------------------------------------------

    private int pollEnforcers() {
        int work = 0;
        for (int g = 0; g < gpus.length; g++) {
            final GpuState gpu = gpus[g];
            final long enforcedVersion = gpu.enforcer.enforcedVersion();   // before the results that led to it
            currentGpu = g;
            work += gpu.enforcer.poll(resultHandler);
            if (gpu.awaitedTask != GpuState.NOBODY && enforcedVersion >= gpu.awaitedVersion) {
                final TaskEntry task = tasks[gpu.awaitedTask];
                gpu.awaitedTask = GpuState.NOBODY;
                if (task.grantPending) {
                    finishGrant(task, gpu.awaitedTicket);
                }
                journalEnforced(task, g, gpu.awaitedTicket, gpu);
                work++;
            }
        }
        return work;
    }

    private void onResult(final int type, final MutableDirectBuffer buffer, final int offset, final int length) {
        switch (type) {
            case Enforcer.CONTEXT:
                final boolean off = buffer.getInt(offset + Enforcer.OFF_OFFSET) == 1;
                final long beganNs = buffer.getLong(offset + Enforcer.BEGAN_OFFSET);
                final long doneNs = buffer.getLong(offset + Enforcer.DONE_OFFSET);
                counters.increment(off ? Counter.DISABLES : Counter.ENABLES);
                journal.write(off ? EventKind.DISABLE : EventKind.ENABLE, Math.max(nowNs, doneNs), currentGpu, 0, 0, 0,
                    buffer.getInt(offset), 0, beganNs, doneNs - beganNs, nowNs);
                scheduler.onApplied(buffer.getInt(offset), !off, doneNs, nowNs);
                settle();
                break;
            case Enforcer.RELEASED:
                counters.increment(Counter.WATCHDOG_RELEASES);
                journal(EventKind.WATCHDOG, currentGpu, 0, 0, 0, 0, 0, buffer.getLong(offset),
                    buffer.getLong(offset + Long.BYTES), 0);
                break;
            case Enforcer.REPEATED_ERROR:
                counters.increment(Counter.MECHANISM_ERRORS);
                break;
            default:
                counters.increment(Counter.MECHANISM_ERRORS);
                journalText(EventKind.MECHANISM_ERROR, currentGpu, 0, 0, 0, 0, 0,
                    buffer.getStringWithoutLengthUtf8(offset, length));
                break;
        }
    }

    // ---- clients and tasks: rare, may allocate --------------------------------------------------------------------

    void addClient(final Client client) {
        ProcessEntry process = null;
        for (final ProcessEntry known : processes) {
            if (known.pid == client.pid() && known.startTicks == client.startTicks()) {
                process = known;
            }
        }
        if (process == null) {
            process = addProcess(client.pid(), client.startTicks(), client.name(), ContextKind.MANAGED);
        } else if (process.clients == 0) {
            changeKind(process, kind(process, ContextKind.MANAGED));
        }
        process.clients++;
        if (process.clients == 1) {
            tellRegistered(process, true);
        }
        countOrphans();
        clients.add(new ClientEntry(client, process));
        epoll.add(client.doorbell().fd(), Epoll.IN, client.clientId());
        counters.increment(Counter.CLIENTS_OPENED);
        journalText(EventKind.CLIENT_OPEN, 0, 0, process.contexts[0], client.clientId(), client.pid(), client.uid(),
            client.name());
    }

    /** A process that has work on a GPU and has not registered. */
    void addUnmanaged(final int pid, final long startTicks, final String name) {
        for (final ProcessEntry known : processes) {
            if (known.pid == pid && known.startTicks == startTicks) {
                return;
            }
        }
        addProcess(pid, startTicks, name, ContextKind.UNMANAGED);
        countOrphans();
    }

    private ProcessEntry addProcess(final int pid, final long startTicks, final String name,
        final ContextKind kind) {
        final ContextRef[] contexts = new ContextRef[gpus.length];
        for (int g = 0; g < gpus.length; g++) {
            final int id = freeContext();
            contextInUse[id] = true;
            contexts[g] = new ContextRef(id, g, pid, startTicks, name);
            gpus[g].enforcer.attach(contexts[g]);
            scheduler.addContext(id, g, kind);
            journalText(EventKind.CONTEXT_OPEN, g, 0, id, 0, pid, kind.ordinal(), name);
        }
        settle();
        final ProcessEntry process = new ProcessEntry(pid, startTicks, name, contexts);
        processes.add(process);
        processVersion++;
        return process;
    }

    private void changeKind(final ProcessEntry process, final ContextKind kind) {
        for (int g = 0; g < gpus.length; g++) {
            scheduler.setContextKind(process.contexts[g], kind);
            journal(EventKind.CONTEXT_KIND, g, 0, 0, 0, process.contexts[g], 0, process.pid, kind.ordinal(), 0);
        }
        settle();
    }

    private void tellRegistered(final ProcessEntry process, final boolean registered) {
        for (int g = 0; g < gpus.length; g++) {
            gpus[g].enforcer.registered(process.refs[g], registered);
        }
    }

    private int freeContext() {
        for (int i = 1; i < contextInUse.length; i++) {
            if (!contextInUse[i]) {
                return i;
            }
        }
        throw new IllegalStateException("no free context of " + (contextInUse.length - 1) + "; stop some processes");
    }

    /** What the client has written is read first, in the usual portions: the others wait no longer than usual. */
    void removeClient(final int clientId, final int reason) {
        final ClientEntry entry = client(clientId);
        if (entry == null) {
            conductor.clientRemoved(clientId);
            return;
        }
        if (entry.leaving) {
            return;
        }
        entry.removalReason = reason;
        entry.leaving = true;
        entry.recordsLeft = RECORDS_LEFT_MAX;
    }

    /** Its records are read: what it asked for before can be done. Rare, may allocate. */
    private void farewell(final ClientEntry entry) {
        final List<Closing> due = entry.closings;
        entry.closings = new ArrayList<>();
        for (final Closing closing : due) {
            commands.add(() -> close(closing));
        }
        if (entry.leaving) {
            commands.add(() -> remove(entry, entry.removalReason));
        }
    }

    private void remove(final ClientEntry entry, final int reason) {
        final int clientId = entry.client.clientId();
        try {
            FaultBarrier.settle();
        } catch (final InternalError e) {
            counters.increment(Counter.CLIENT_ERRORS);   // of its files; later nobody would know whose it was
        }
        try {
            closeTasks(entry);
            epoll.remove(entry.client.doorbell().fd());
        } finally {
            clients.remove(entry);
            forget(entry, reason);
            conductor.clientRemoved(clientId);
        }
    }

    private void forget(final ClientEntry entry, final int reason) {
        final ProcessEntry process = entry.process;
        process.clients--;
        if (process.clients == 0) {
            if (reason == Removal.DIED) {
                removeProcess(process);
            } else {
                tellRegistered(process, false);
                changeKind(process, kind(process, ContextKind.UNMANAGED));
            }
        }
        countOrphans();
        counters.increment(Counter.CLIENTS_CLOSED);
        journal(EventKind.CLIENT_CLOSE, 0, 0, 0, 0, process.contexts[0], entry.client.clientId(),
            process.pid, 0, 0);
    }

    private void removeProcess(final ProcessEntry process) {
        processes.remove(process);
        processVersion++;
        for (int g = 0; g < gpus.length; g++) {
            final int contextId = process.contexts[g];
            scheduler.removeContext(contextId, nowNs);
            journal(EventKind.CONTEXT_CLOSE, g, 0, 0, 0, contextId, 0, process.pid, 0, 0);
            gpus[g].enforcer.desired().set(contextId, true);   // the id may be used again
            gpus[g].enforcer.desired().commit();
            gpus[g].enforcer.detach(contextId);
            contextInUse[contextId] = false;
        }
        settle();
    }

    /** Processes without a live registration: their pidfd is gone, so somebody must ask now and then. */
    List<ProcessEntry> orphans() {
        final List<ProcessEntry> found = new ArrayList<>();
        for (final ProcessEntry process : processes) {
            if (process.clients == 0) {
                found.add(process);
            }
        }
        return found;
    }

    /** Any thread: another number whenever {@link #processViews} would say something else. */
    int processVersion() {
        return processVersion;
    }

    /** The processes that have contexts. */
    List<ProcessView> processViews() {
        final List<ProcessView> views = new ArrayList<>();
        for (final ProcessEntry process : processes) {
            final List<Integer> contexts = new ArrayList<>();
            for (final int contextId : process.contexts) {
                contexts.add(contextId);
            }
            views.add(new ProcessView(process.pid, process.startTicks, process.name, process.clients > 0, contexts));
        }
        return views;
    }

    /** A rule says that a process is never to be taken off the hardware, or no longer so. */
    void protect(final int pid, final long startTicks, final boolean isProtected) {
        for (final ProcessEntry process : processes) {
            if (process.pid == pid && process.startTicks == startTicks && process.isProtected != isProtected) {
                process.isProtected = isProtected;
                final ContextKind unruled = process.clients > 0 ? ContextKind.MANAGED : ContextKind.UNMANAGED;
                changeKind(process, kind(process, unruled));
            }
        }
    }

    private static ContextKind kind(final ProcessEntry process, final ContextKind unruled) {
        return process.isProtected ? ContextKind.PROTECTED : unruled;
    }

    /** Any thread. */
    boolean hasOrphans() {
        return orphanCount > 0;
    }

    /** Any thread: bytes allocated on this thread up to the last command, those of commands excepted. */
    long hotPathBytes() {
        return hotPathBytes;
    }

    /** Any thread: {@link #beginStop} has run. */
    boolean isStopping() {
        return stopping;
    }

    private void countOrphans() {
        int n = 0;
        for (final ProcessEntry process : processes) {
            n += process.clients == 0 ? 1 : 0;
        }
        orphanCount = n;
    }

    void forgetOrphan(final ProcessEntry process) {
        if (process.clients == 0 && processes.contains(process)) {
            removeProcess(process);
            countOrphans();
        }
    }

    private void closeTasks(final ClientEntry entry) {
        while (!entry.tasks.isEmpty()) {
            close(entry.tasks.get(entry.tasks.size() - 1));
        }
    }

    private void close(final TaskEntry task) {
        final int g = task.request.gpu();
        endHint(task);
        gpus[g].forget(task.id);
        tasks[task.id] = null;
        task.client.tasks.remove(task);
        scheduler.removeTask(task.id, nowNs);
        answer();
        journal(EventKind.TASK_CLOSE, g, 0, task.id, 0, task.contextId, clientId(task), 0, 0, 0);
        recordDecisions();
        task.client.client.queue().closeTask(task.id);
        task.client.client.session().releaseSlot(task.slot);
    }

    void openTask(final TaskOpen request) {
        final ClientEntry entry = client(request.clientId());
        if (entry == null || entry.poisoned || entry.leaving || stopping) {
            refuse(request, EAGAIN, "client " + request.clientId() + " is being removed; register again");
            return;
        }
        if (request.gpu() >= gpus.length) {
            refuse(request, EINVAL, "task \"" + request.name() + "\": gpu is " + request.gpu() + "; this daemon has "
                + gpus.length);
            return;
        }
        if (request.strategy() != null && request.strategy().hasLongSlice()
            && !gpus[request.gpu()].enforcer.mechanism().capabilities().timeslice()) {
            refuse(request, EINVAL, "task \"" + request.name() + "\": strategy is " + request.strategy().label()
                + ", but mechanism " + gpus[request.gpu()].enforcer.mechanism().name() + " cannot set time slices; "
                + "use interrupt");
            return;
        }
        final int id = freeTask();
        final int slot = id < 0 ? -1 : entry.client.session().allocateSlot();
        if (slot < 0) {
            refuse(request, ENOSPC, "task \"" + request.name() + "\": no free "
                + (id < 0 ? "task id of " + (tasks.length - 1) : "slot of " + Abi.SLOTS_MAX) + "; close another task");
            return;
        }
        final int contextId = entry.process.contexts[request.gpu()];
        final TaskEntry sibling = siblingOf(contextId);
        if (sibling != null && sibling.request.partition() != request.partition()) {
            entry.client.session().releaseSlot(slot);
            refuse(request, EINVAL, "task \"" + request.name() + "\": partition is " + request.partition()
                + ", but task \"" + sibling.request.name() + "\" of this process is in partition "
                + sibling.request.partition() + "; use one partition per process");
            return;
        }
        final TaskEntry task = new TaskEntry(id, entry, slot, contextId, request);
        task.strategy = strategyOf(request);
        final Session session = entry.client.session();
        tasks[id] = task;
        entry.tasks.add(task);
        entry.client.queue().openTask(id);
        session.gpu(slot, request.gpu());
        scheduler.addTask(new TaskParameters(id, contextId, request.priority(), request.gpuPriority(),
            request.deadlineNs(), request.budgetNs(), request.optimistic() && optimisticAllowed, request.overrun(),
            request.windowNs(), request.partition(), task.strategy));
        journalText(EventKind.TASK_OPEN, request.gpu(), id, contextId, request.clientId(), request.priority(),
            request.deadlineNs(), describe(task).toString());
        if (request.weight() > 0) {
            setProcessWeight(entry.process, request.weight());
        }
        settle();
        session.taskId(slot, id);
        final PolicySettings.TaskRule rule = taskRules.get(request.name());
        if (rule != null) {
            apply(task, rule);
            settle();
        }
        counters.increment(Counter.TASKS_OPENED);
        conductor.taskOpened(request.correlation(), 0, id, slot, "");
    }

    /** What the task asks for, else what rules and settings say; best effort has none to choose. */
    private Strategy strategyOf(final TaskOpen request) {
        if (request.priority() == 0) {
            return Strategy.INTERRUPT;
        }
        return request.strategy() != null ? request.strategy() : defaultStrategy;
    }

    private TaskEntry siblingOf(final int contextId) {
        for (final TaskEntry task : tasks) {
            if (task != null && task.contextId == contextId) {
                return task;
            }
        }
        return null;
    }

    private void refuse(final TaskOpen request, final int errno, final String text) {
        counters.increment(Counter.TASKS_REFUSED);
        conductor.taskOpened(request.correlation(), errno, 0, 0, text);
    }

    private int freeTask() {
        for (int i = 1; i < tasks.length; i++) {
            if (tasks[i] == null) {
                return i;
            }
        }
        return -1;
    }

    void closeTask(final long correlation, final int clientId, final int taskId) {
        final ClientEntry entry = client(clientId);
        final TaskEntry task = taskId > 0 && taskId < tasks.length ? tasks[taskId] : null;
        if (entry == null || task == null || task.client != entry) {
            conductor.taskClosed(correlation, EINVAL, "task " + taskId + " is not open in this client");
            return;
        }
        entry.closings.add(new Closing(correlation, task));
        entry.recordsLeft = RECORDS_LEFT_MAX;
    }

    private void close(final Closing closing) {
        final TaskEntry task = closing.task();
        if (tasks[task.id] == task) {
            close(task);
        }
        conductor.taskClosed(closing.correlation(), 0, "");
    }

    private ClientEntry client(final int clientId) {
        for (final ClientEntry entry : clients) {
            if (entry.client.clientId() == clientId) {
                return entry;
            }
        }
        return null;
    }

    private void poison(final ClientEntry entry, final int code, final String text) {
        if (entry.poisoned) {
            return;
        }
        entry.poisoned = true;
        entry.client.queue().drop(code, text);
        entry.client.session().poison(code);
        closeTasks(entry);
        counters.increment(Counter.POISONED);
        journalText(EventKind.CLIENT_POISON, 0, 0, entry.process.contexts[0], entry.client.clientId(), code, 0, text);
        conductor.poisoned(entry.client.clientId(), code, text);
    }

    // ---- administration: rare, may allocate -----------------------------------------------------------------------

    void start(final String configuration) {
        nowNs = System.nanoTime();   // no cycle has been yet
        journalText(EventKind.START, 0, 0, 0, 0, 0, 0, configuration);
        journalKeepReady();   // a replay begins with a scheduler that does not
    }

    /** Lets everybody go: all begins are granted and all contexts are wanted on. */
    void beginStop() {
        status.stopping();
        scheduler.setPolicy(RoundRobin.INSTANCE, nowNs);
        journalText(EventKind.POLICY, 0, 0, 0, 0, 0, 0, "policy " + RoundRobin.INSTANCE.name());
        settle();
        stopping = true;   // after the desired state is published
    }

    void journalStop() {
        pollEnforcers();
        journal(EventKind.STOP, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }

    /**
     * Refuses what this daemon's mechanism cannot do. Any thread.
     *
     * @throws IllegalArgumentException with the reason
     */
    void requireUsable(final PolicySettings settings) {
        if (observes && settings.policy() != null && settings.policy().enforces()) {
            throw new IllegalArgumentException("policy " + settings.policy().name() + ": this daemon's mechanism only "
                + "observes; restart it with --mechanism gate or better");
        }
        if (settings.sharing() == Sharing.TIMESLICES) {
            requireTimeslices("sharing is timeslices", "use turns");
        }
        if (settings.strategy() != null && settings.strategy().hasLongSlice()) {
            requireTimeslices("strategy is " + settings.strategy().label(), "use interrupt");
        }
        for (final PolicySettings.TaskRule rule : settings.taskRules()) {
            if (rule.strategy() != null && rule.strategy().hasLongSlice()) {
                requireTimeslices("strategy of task \"" + rule.task() + "\" is " + rule.strategy().label(),
                    "use interrupt");
            }
        }
        if (settings.holdoffNs() > 0 && !preemptive) {
            throw new IllegalArgumentException("resume_holdoff is " + settings.holdoffNs() + " ns; this daemon's "
                + "mechanism takes nothing off the GPU that could come back later, leave it out");
        }
    }

    private void requireTimeslices(final String what, final String remedy) {
        for (final GpuState gpu : gpus) {
            if (!gpu.enforcer.mechanism().capabilities().timeslice()) {
                throw new IllegalArgumentException(what + "; mechanism " + gpu.enforcer.mechanism().name()
                    + " cannot set time slices, " + remedy);
            }
        }
    }

    /** Makes all changes of a policy file or command. */
    void applySettings(final PolicySettings settings) {
        if (stopping) {
            return;   // everybody has been let go
        }
        if (settings.policy() != null) {
            scheduler.setPolicy(settings.policy(), nowNs);
            status.policy(settings.policy().name());
            journalText(EventKind.POLICY, 0, 0, 0, 0, 0, 0, "policy " + settings.policyText());
        }
        if (settings.sharing() != null) {
            final long usualNs = settings.sharing() == Sharing.TURNS ? PolicySettings.QUANTUM_NS
                : PolicySettings.TIMESLICE_NS;
            sharing = settings.sharing();
            quantumNs = settings.quantumNs() == 0 ? usualNs : settings.quantumNs();
            scheduler.setSharing(sharing, quantumNs, nowNs);
            journalText(EventKind.POLICY, 0, 0, 0, 0, sharing.ordinal(), quantumNs, "sharing "
                + sharing.name().toLowerCase(Locale.ROOT) + " quantum " + quantumNs + " ns");
        }
        if (settings.strategy() != null) {
            defaultStrategy = settings.strategy();
            for (final TaskEntry task : tasks) {
                if (task != null && task.request.strategy() == null && task.request.priority() > 0) {
                    changeStrategy(task, defaultStrategy);
                }
            }
        }
        if (settings.holdoffNs() >= 0) {
            holdoffNs = settings.holdoffNs();
            scheduler.setResumeHoldoff(holdoffNs, nowNs);
            journalText(EventKind.POLICY, 0, 0, 0, 0, 0, holdoffNs, "resume hold-off " + holdoffNs + " ns");
        }
        if (settings.keepReady() != null) {
            keepReady = settings.keepReady();
            scheduler.setKeepReady(keepReady, nowNs);
            journalKeepReady();
        }
        for (final PolicySettings.GroupRule rule : settings.groupRules()) {
            apply(rule.group(), rule.share());
            groupsNamed.add(rule.group());
        }
        for (final PolicySettings.TaskRule rule : settings.taskRules()) {
            taskRules.merge(rule.task(), rule, DispatcherAgent::merged);
            for (final TaskEntry task : tasks) {
                if (task != null && task.request.name().equals(rule.task())) {
                    apply(task, rule);
                }
            }
        }
        if (!settings.text().isEmpty()) {
            journalText(EventKind.POLICY, 0, 0, 0, 0, 0, 0, "settings " + settings.text());
        }
        settle();
    }

    private void journalKeepReady() {
        journalText(EventKind.POLICY, 0, 0, 0, 0, keepReady ? 1 : 0, 0, "keep ready " + keepReady);
    }

    /** What a later rule does not say, an earlier one of the same task still does. */
    private static PolicySettings.TaskRule merged(final PolicySettings.TaskRule before,
        final PolicySettings.TaskRule now) {
        final PolicySettings.Share share = now.share();
        final boolean cap = share.hasCap();
        return new PolicySettings.TaskRule(now.task(),
            new PolicySettings.Share(share.weight() == 0 ? before.share().weight() : share.weight(),
                cap ? share.quotaNs() : before.share().quotaNs(), cap ? share.periodNs() : before.share().periodNs()),
            now.overrun() == null ? before.overrun() : now.overrun(),
            now.strategy() == null ? before.strategy() : now.strategy(), now.partition(), now.budgetNs());
    }

    private void apply(final TaskEntry task, final PolicySettings.TaskRule rule) {
        if (rule.overrun() != null) {
            scheduler.setOverrunAction(task.id, rule.overrun(), nowNs);
            journalText(EventKind.POLICY, task.request.gpu(), 0, 0, 0, task.id, 0, "overrun of task " + task.id
                + " is " + rule.overrun().label());
        }
        if (rule.strategy() != null && task.request.priority() > 0) {
            changeStrategy(task, rule.strategy());
        }
        for (final int contextId : task.client.process.contexts) {
            apply(scheduler.ownGroup(contextId), rule.share());
        }
    }

    private void changeStrategy(final TaskEntry task, final Strategy strategy) {
        task.strategy = strategy;
        scheduler.setStrategy(task.id, strategy, nowNs);
        journalText(EventKind.POLICY, task.request.gpu(), 0, 0, 0, task.id, 0, "strategy of task " + task.id + " is "
            + strategy.label());
    }

    private void apply(final int group, final PolicySettings.Share share) {
        if (share.weight() > 0) {
            changeWeight(group, share.weight());
        }
        if (share.hasCap()) {
            changeCap(group, share.quotaNs(), share.periodNs());
        }
    }

    private void changeWeight(final int group, final int weight) {
        scheduler.setWeight(group, weight, nowNs);
        journalText(EventKind.POLICY, 0, 0, 0, 0, group, weight, "group " + group + " weight " + weight);
    }

    private void changeCap(final int group, final long quotaNs, final long periodNs) {
        scheduler.setCap(group, quotaNs, periodNs, nowNs);
        journalText(EventKind.POLICY, 0, 0, 0, 0, group, quotaNs, quotaNs == 0 ? "group " + group + " no cap"
            : "group " + group + " cap " + quotaNs + " ns of " + periodNs + " ns");
    }

    /** The policy and its parameters, for a human; one line each. */
    void describePolicy(final Consumer<String> told) {
        final Policy policy = scheduler.policy();
        told.accept("policy " + policy.name() + (policy instanceof TimePartitions p ? " (frame " + p.frameNs()
            + " ns, inside " + p.inner().name() + ")" : ""));
        told.accept("strategy " + defaultStrategy.label() + ", resume hold-off " + holdoffNs + " ns, keep ready "
            + keepReady);
        told.accept("sharing " + sharing.name().toLowerCase(Locale.ROOT) + ", quantum " + quantumNs + " ns");
        for (final int group : groupsNamed) {
            told.accept("group " + group + share(group));
        }
        for (final ProcessEntry process : processes) {
            final int group = scheduler.group(process.contexts[0]);
            told.accept("process " + process.pid + " \"" + process.name + "\""
                + (group == scheduler.ownGroup(process.contexts[0]) ? "" : " in group " + group) + share(group));
        }
        for (final TaskEntry task : tasks) {
            if (task != null) {
                told.accept("task " + task.id + " \"" + task.request.name() + "\" overrun "
                    + scheduler.overrunAction(task.id).label() + ", partition " + task.request.partition());
            }
        }
    }

    private String share(final int group) {
        final long quota = scheduler.quotaNs(group);
        return " weight " + scheduler.weight(group)
            + (quota == 0 ? "" : ", cap " + quota + " ns of " + scheduler.periodNs(group) + " ns");
    }

    void setPolicy(final Policy policy) {
        scheduler.setPolicy(policy, nowNs);
        status.policy(policy.name());
        journalText(EventKind.POLICY, 0, 0, 0, 0, 0, 0, "policy " + policy.name());
        settle();
    }

    /**
     * Puts a context into a group for weights and caps. On the dispatcher thread: {@link #submit}.
     *
     * @param contextId as in CLIENT_OPEN events and {@code status}
     * @param groupId   1..{@code maxContexts}, chosen by the caller; {@link SegmentScheduler#NONE} = its own
     * @return false if there is no such context
     */
    boolean setGroup(final int contextId, final int groupId) {
        final int wanted = groupId == SegmentScheduler.NONE ? scheduler.ownGroup(contextId) : groupId;
        if (scheduler.group(contextId) == wanted) {
            return true;
        }
        final boolean known = scheduler.setGroup(contextId, groupId, nowNs);
        if (known) {
            journalText(EventKind.POLICY, 0, 0, contextId, 0, groupId, 0, "context " + contextId + " group " + groupId);
        }
        settle();
        return known;
    }

    /**
     * As {@link #setGroup}, for a process's contexts on all GPUs.
     *
     * @param pid        a process that is registered or was found
     * @param startTicks tells a reused pid; 0 = not looked at
     * @param groupId    as {@link #setGroup}
     * @return false if there is no such process
     */
    boolean setProcessGroup(final int pid, final long startTicks, final int groupId) {
        boolean known = false;
        for (final ProcessEntry process : processes) {
            if (process.pid == pid && (startTicks == 0 || process.startTicks == startTicks)) {
                known = true;
                for (final int contextId : process.contexts) {
                    setGroup(contextId, groupId);
                }
            }
        }
        return known;
    }

    /**
     * Sets the weight of a group. On the dispatcher thread: {@link #submit}.
     *
     * @param groupId as {@link #setGroup}; need not have members
     * @param weight  1..10000
     */
    void setWeight(final int groupId, final int weight) {
        changeWeight(groupId, weight);
        settle();
    }

    /**
     * Caps a group. On the dispatcher thread: {@link #submit}.
     *
     * @param groupId  as {@link #setGroup}; need not have members
     * @param quotaNs  GPU time of each period, 0 = no cap
     * @param periodNs 1 ms..10 s
     */
    void setCap(final int groupId, final long quotaNs, final long periodNs) {
        changeCap(groupId, quotaNs, periodNs);
        settle();
    }

    private void setProcessWeight(final ProcessEntry process, final int weight) {
        for (final int contextId : process.contexts) {
            changeWeight(scheduler.ownGroup(contextId), weight);
        }
    }

    /** Returns 0 or a negative errno. */
    int hint(final int taskId, final String name, final int priority, final int gpuPriority,
        final Consumer<String> told) {
        int changed = 0;
        for (final TaskEntry task : tasks) {
            if (task == null || (taskId > 0 ? task.id != taskId : !task.request.name().equals(name))) {
                continue;
            }
            task.priority = priority;
            task.gpuPriority = gpuPriority;
            scheduler.setPriority(task.id, priority, gpuPriority, nowNs);
            answer();
            journalPriority(task, priority, gpuPriority);
            recordDecisions();
            changed++;
            final String text = "task " + task.id + " \"" + task.request.name() + "\" priority " + priority
                + " gpu_priority " + gpuPriority;
            journalText(EventKind.POLICY, task.request.gpu(), task.id, task.contextId, clientId(task), priority,
                gpuPriority, text);
            told.accept(text);
        }
        return changed > 0 ? 0 : ENOENT;
    }

    private static ObjectNode describe(final TaskEntry task) {
        final TaskOpen request = task.request;
        final ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("id", task.id);
        node.put("name", request.name());
        node.put("priority", task.priority);
        node.put("gpu_priority", task.gpuPriority);
        node.put("gpu", request.gpu());
        node.put("context", task.contextId);
        node.put("client", request.clientId());
        node.put("pid", task.client.client.pid());
        node.put("period_ns", request.periodNs());
        node.put("deadline_ns", request.deadlineNs());
        node.put("budget_ns", request.budgetNs());
        node.put("window_ns", request.windowNs());
        node.put("partition", request.partition());
        node.put("on_overrun", request.overrun().label());
        node.put("optimistic", request.optimistic());
        node.put("boost", request.boost());
        node.put("strategy", task.strategy.label());
        return node;
    }

    /** What {@code status} shows; allocates for some tens of microseconds. */
    ObjectNode snapshot() {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("policy", scheduler.policy().name());
        for (int g = 0; g < gpus.length; g++) {
            final ObjectNode gpu = root.withArray("gpus").addObject();
            gpu.put("gpu", g);
            gpu.put("running_task", scheduler.runningTask(g));
            gpu.put("begun_segments", scheduler.begunCount(g));
            gpu.put("enforcement_incomplete", gpus[g].enforcer.isIncomplete());
            for (final ProcessEntry process : processes) {
                final ObjectNode context = gpu.withArray("contexts").addObject();
                context.put("context", process.contexts[g]);
                context.put("pid", process.pid);
                context.put("name", process.name);
                context.put("registered", process.clients > 0);
                context.put("wanted_on", scheduler.contextDesired(process.contexts[g]));
                final int units = gpus[g].enforcer.mechanism().units(process.refs[g]);
                if (units >= 0) {
                    context.put("units", units);
                }
                final String remark = gpus[g].enforcer.mechanism().remark(process.refs[g]);
                if (!remark.isEmpty()) {
                    context.put("remark", remark);
                }
            }
        }
        for (final ClientEntry entry : clients) {
            final ObjectNode client = root.withArray("clients").addObject();
            client.put("client", entry.client.clientId());
            client.put("pid", entry.client.pid());
            client.put("uid", entry.client.uid());
            client.put("name", entry.client.name());
            client.put("poisoned", entry.poisoned);
        }
        for (final TaskEntry task : tasks) {
            if (task == null) {
                continue;
            }
            final ObjectNode node = describe(task);
            node.put("state", SegmentState.name(scheduler.state(task.id)));
            node.put("demoted", scheduler.isDemoted(task.id));
            node.put("suspended", scheduler.isSuspended(task.id));
            node.put("overrun", scheduler.overrunAction(task.id).label());
            node.put("pregranted", scheduler.isPregranted(task.id));
            node.put("segments", task.segments);
            node.put("preemptions", task.preemptions);
            node.put("overruns", task.overruns);
            node.put("jobs", task.jobs);
            node.put("job_misses", task.jobMisses);
            if (task.jobs > 0) {
                final ObjectNode response = node.putObject("response_ns");
                response.put("p50", task.responses.getValueAtPercentile(50));
                response.put("p99", task.responses.getValueAtPercentile(99));
                response.put("max", task.responses.getMaxValue());
            }
            root.withArray("tasks").add(node);
        }
        return root;
    }

    // ---- journal --------------------------------------------------------------------------------------------------

    private void journal(final EventKind kind, final int gpu, final int flags, final int taskId, final long ticket,
        final int contextId, final int clientId, final long arg0, final long arg1, final long arg2) {
        journaled++;
        if (!journal.write(kind, nowNs, gpu, flags, taskId, ticket, contextId, clientId, arg0, arg1, arg2)) {
            counters.increment(Counter.JOURNAL_DROPS);
        }
    }

    private void journalPriority(final TaskEntry task, final int priority, final int gpuPriority) {
        journal(EventKind.PRIORITY, task.request.gpu(), 0, task.id, task.ticket, task.contextId, clientId(task),
            priority, gpuPriority, 0);
    }

    /** A garbage collection stopped the JVM; both in ns of CLOCK_MONOTONIC. */
    void journalCollection(final long beganNs, final long durationNs) {
        counters.increment(Counter.GC_PAUSES);
        counters.add(Counter.GC_PAUSE_NS, durationNs);
        journal(EventKind.GC, 0, 0, 0, 0, 0, 0, beganNs, durationNs, 0);
    }

    /** Clocks that were read together. */
    void journalClocks(final long monotonicNs, final long realtimeNs, final String others) {
        journalText(EventKind.CLOCK, 0, 0, 0, 0, monotonicNs, realtimeNs, others);
    }

    private void journalText(final EventKind kind, final int gpu, final int taskId, final int contextId,
        final int clientId, final long arg0, final long arg1, final String text) {
        if (!journal.writeText(kind, nowNs, gpu, taskId, contextId, clientId, arg0, arg1, text)) {
            counters.increment(Counter.JOURNAL_DROPS);
        }
    }

    /** Releases the descriptors. After {@link #run} has returned. */
    void close() {
        epoll.close();
        bell.close();
    }
}

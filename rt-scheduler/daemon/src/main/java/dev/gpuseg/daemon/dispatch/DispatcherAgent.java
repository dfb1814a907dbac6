/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.daemon.conductor.ConductorProxy;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.daemon.enforce.Enforcement;
import dev.gpuseg.daemon.enforce.EnforcerResults;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.jvm.ThreadAllocation;
import dev.gpuseg.daemon.metrics.JobAccount;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RecordHandler;
import dev.gpuseg.ipc.RecordView;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.journal.EventWriter;
import dev.gpuseg.ipc.platform.FaultBarrier;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.Map;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;
import org.agrona.concurrent.MessageHandler;

/**
 * The thread that decides: it polls the clients' queues and the enforcers' results, drives the {@link SegmentScheduler}
 * and has its decisions carried out. Nothing in its cycle allocates, blocks or makes a system call, save the wake-up of
 * a client that sleeps and its own sleep when idle. Commands of other threads are run one in each cycle and may
 * allocate.
 *
 * <p>An error while one client is handled drops that client; no error ends the loop.
 *
 * <p>Here are the loop and the records. What else the thread does:
 *
 * <pre>
 *   {@link Decisions}, {@link DesiredStates}      what the scheduler decided in one event
 *   {@link DecisionApplier}, {@link GrantGate}    carried out: answers first, then counters and journal
 *   {@link Anticipation}, {@link Turns}           begins that are expected, and those that need not wait for a call
 *   {@link ClientRegistry}, {@link ProcessRegistry}   clients, tasks and processes coming and going
 *   {@link PolicyControl}, {@link StatusSnapshot}     administration
 *   {@link DispatcherJournal}               every event, typed
 *   {@link Doorbells}                       sleeping and being woken
 * </pre>
 */
public final class DispatcherAgent implements Runnable {
    /** Duty cycles longer than this are counted and journaled, ns. */
    static final long STALL_NS = 1_000_000;
    /** The status page promises a heartbeat at least every 20 ms; sleeping leaves room for a late wake-up. */
    private static final int SLEEP_MAX_MS = 14;
    private static final long HEARTBEAT_NS = 2_000_000;
    private static final long NS_PER_MS = 1_000_000;
    private static final int RECORDS_PER_POLL = 16;

    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final TaskTable tasks;
    private PromisedBounds promised;
    private final Anticipation anticipation;
    private final Turns turns;
    private final OutsideRests outside;
    private final GrantGate grants;
    private final DecisionApplier decisions;
    private final ProcessRegistry processes;
    private final PolicyControl policy;
    private final ClientRegistry clients;
    private final StatusSnapshot snapshot;
    private final DispatcherJournal journal;
    private final Doorbells doorbells = new Doorbells();
    private final CycleClock clock = new CycleClock(System::nanoTime);
    private final StatusPage status;
    private final Counters counters;
    private final IdleMode idle;
    private final ManyToOneConcurrentLinkedQueue<Runnable> commands = new ManyToOneConcurrentLinkedQueue<>();
    private final RecordHandler recordHandler = this::onRecord;
    private final MessageHandler resultHandler = this::onResult;

    private ClientEntry current;
    private int currentGpu;
    private int pollFrom;
    /** When the next records of a user who has to wait may be taken; {@link Long#MAX_VALUE} = nobody has to. */
    private long recordsDueNs = Long.MAX_VALUE;
    private long heartbeatNs;
    private long lastWorkNs;
    private volatile boolean running = true;
    /** What commands have allocated on this thread; the rest is the hot path's. */
    private long commandBytes;
    /** W dispatcher, at each command: allocated by all else. */
    private volatile long hotPathBytes;

    /**
     * Wires the dispatcher.
     *
     * @param config    of the scheduler
     * @param enforcers one per GPU
     * @param events    where events go
     * @param status    written by this thread alone from now on
     * @param counters  written by this thread alone from now on
     * @param idle      what to do when nothing waits
     */
    public DispatcherAgent(final SchedulerConfig config, final Enforcement[] enforcers, final EventWriter events,
        final StatusPage status, final Counters counters, final IdleMode idle) {
        this.status = status;
        this.counters = counters;
        this.idle = idle;
        desired = new DesiredStates(enforcers);
        final Decisions decided = new Decisions(desired);
        scheduler = new SegmentScheduler(config, decided);
        scheduler.countFromGrants();
        scheduler.chargeHints();
        tasks = new TaskTable(config.maxTasks());
        promised = new PromisedBounds(config.maxTasks());
        journal = new DispatcherJournal(events, counters, clock);
        grants = new GrantGate(scheduler, desired, journal, counters, clock, config.preemptive());
        anticipation = new Anticipation(config, scheduler, desired, tasks, counters, journal, clock);
        turns = new Turns(scheduler, desired, tasks, config.maxContexts(), clock);
        outside = new OutsideRests(scheduler, desired, config.maxContexts());
        decisions = new DecisionApplier(decided, desired, anticipation, turns, grants, tasks, journal, counters);
        processes = new ProcessRegistry(scheduler, desired, config.maxContexts(), journal, clock, decisions::settle,
            counters);
        policy = new PolicyControl(scheduler, desired, processes, tasks, decisions, journal, clock, status::policy,
            anticipation);
        clients = new ClientRegistry(new ClientRegistry.Parts(scheduler, desired, processes, tasks, policy,
            anticipation, grants, decisions, doorbells, journal, counters, clock, new ShareAccounts(scheduler,
            config.maxContexts(), journal, clock)), commands::add, config.optimistic());
        status.nobodyWaits(true);
        snapshot = new StatusSnapshot(scheduler, desired, clients, processes, tasks, turns);
    }

    /**
     * The bounds with which jobs are compared. Before the first command.
     *
     * @param bounds of admission
     */
    public void compareWith(final PromisedBounds bounds) {
        promised = bounds;
        grants.compareWith(bounds);
        clients.compareWith(bounds);
    }

    /**
     * Nothing happens that proven bounds do not know: {@link Anticipation#saysNothing}, and no turns until
     * {@link #takeTurns} says so. Before the start.
     */
    public void keepToProvenRules() {
        anticipation.saysNothing();
        turns.allow(false, Map.of());
    }

    /**
     * Why best effort takes no turns by which bounds are proven.
     *
     * @param mechanism  of the first GPU
     * @param gpus       how many there are
     * @param optimistic whether begins may return before enforcement
     * @return one line; empty if it can
     */
    public static String obstacleToTurns(final Mechanism mechanism, final int gpus, final boolean optimistic) {
        if (gpus != 1) {
            return "bounds by turns are proven for one GPU, and there are " + gpus + "; use --gpus 1";
        }
        return optimistic ? Turns.obstacle(mechanism)
            : "begins wait (optimistic: false), and U1 wants begins that do not";
    }

    /**
     * Whether best effort takes turns from now on, and by what that was proven; after what was submitted before, and
     * before what is submitted later. Any thread.
     *
     * @param taken    whether turns are taken
     * @param slicesNs of the contexts of real-time tasks by their names, ns; others have theirs by rank
     * @param proof    one line for the journal
     */
    public void takeTurns(final boolean taken, final Map<String, Long> slicesNs, final String proof) {
        submit(() -> {
            turns.allow(taken, slicesNs);
            promised.byCalls(!taken);
            journal.settings(proof);
        });
    }

    /**
     * Names where answers go. Before the first command.
     *
     * @param proxy the conductor
     */
    public void conductor(final ConductorProxy proxy) {
        clients.conductor(proxy);
    }

    // ---- parts, for commands on the dispatcher's thread -----------------------------------------------------------

    /** The registered clients. */
    public ClientRegistry clients() {
        return clients;
    }

    /** All known processes. */
    public ProcessRegistry processes() {
        return processes;
    }

    /** Policies and parameters while it runs. */
    public PolicyControl policy() {
        return policy;
    }

    /** What {@code status} shows of this thread's state. */
    public StatusSnapshot snapshot() {
        return snapshot;
    }

    /** Looks at who takes turns, if there are any. Any thread; by a command that is empty, since each ends with it. */
    public void lookAtTurns() {
        if (turns.isInUse()) {
            submit(() -> { });
        }
    }

    /** Whether {@link #busy} is to be told of a GPU. Any thread. */
    public boolean asksHowBusy(final int gpu) {
        return turns.asksHowBusy(gpu);
    }

    /** How much of the last second a GPU worked, 0 to 100 percent. Any thread. */
    public void busy(final int gpu, final int percent) {
        submit(() -> {
            if (turns.busy(gpu, percent)) {
                journal.settings("GPU " + gpu + " worked " + percent + " % of a second: best effort "
                    + (turns.isTogether(gpu) ? "takes turns" : "shares it together"));
            }
        });
    }

    /** Where this thread writes its events. */
    public DispatcherJournal journal() {
        return journal;
    }

    // ---- from other threads ---------------------------------------------------------------------------------------

    /** Runs something on the dispatcher thread. Any thread; allocates. */
    public void submit(final Runnable command) {
        commands.add(command);
        doorbells.ring();
    }

    /** Makes the dispatcher look around if it sleeps. Any thread, after it has published what is to be seen. */
    public void wake() {
        doorbells.ring();
    }

    /** Ends the loop. Any thread. */
    public void stop() {
        running = false;
        doorbells.ringAlways();
    }

    /** Any thread: bytes allocated on this thread up to the last command, those of commands excepted. */
    public long hotPathBytes() {
        return hotPathBytes;
    }

    // ---- start and stop -------------------------------------------------------------------------------------------

    /** Before the thread runs. */
    public void start(final String configuration) {
        clock.set(System.nanoTime());   // no cycle has been yet
        journal.started(configuration);
        policy.started();
    }

    /** Grants all begins and enables all contexts. */
    public void beginStop() {
        status.stopping();
        policy.stop();
    }

    /** After the enforcers have ended. */
    public void journalStop() {
        pollEnforcers();
        journal.stopped();
    }

    /** A garbage collection stopped the JVM; both in ns of CLOCK_MONOTONIC. */
    public void onCollection(final long beganNs, final long durationNs) {
        counters.increment(Counter.GC_PAUSES);
        counters.add(Counter.GC_PAUSE_NS, durationNs);
        journal.collected(beganNs, durationNs);
    }

    /** Releases the descriptors. After {@link #run} has returned. */
    public void close() {
        doorbells.close();
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
    public void turn() {
        final int work = cycle();
        if (work > 0) {
            lastWorkNs = clock.nowNs();
        } else if (idle != IdleMode.SPIN) {
            if (clock.nowNs() - lastWorkNs >= idle.spinNs()) {
                sleep();
            } else {
                Thread.onSpinWait();
            }
        }   // else the core is ours, and a pause would only delay the next look
    }

    /** One duty cycle. Returns how much was done. */
    public int cycle() {
        final long beganNs = System.nanoTime();
        clock.set(beganNs);
        int work = 0;
        try {
            if (scheduler.nextTimerNs() <= beganNs) {
                onTimer();   // first, so that no other event of this cycle hides that the clock was looked at
                work++;
            }
            work += runCommand();
            work += pollClients();
            work += pollEnforcers();
            work += pollAnticipation();
            work += pollTurns();
        } catch (final RuntimeException | InternalError e) {
            work++;   // not all was looked at: no sleep before it is
            onCycleError(e);
        }
        if (clock.nowNs() - heartbeatNs >= HEARTBEAT_NS) {
            heartbeatNs = clock.nowNs();
            status.heartbeat(heartbeatNs);
        }
        if (work > 0) {
            trackDuration(beganNs);
        }
        return work;
    }

    private int pollAnticipation() {
        final int due = anticipation.poll(clock.nowNs());
        if (due > 0) {
            decisions.settle();
        }
        return due;
    }

    private int pollTurns() {
        if (!turns.isDue(clock.nowNs())) {
            return 0;
        }
        decisions.settle();
        return 1;
    }

    /** What a replay needs to decide the same is journaled: here the time, where no decision tells it. */
    private void onTimer() {
        final long before = journal.written();
        scheduler.onTimer(clock.nowNs());
        grants.ofTimer(true);
        decisions.settle();
        grants.ofTimer(false);
        if (journal.written() == before) {
            journal.timer();
        }
    }

    private void trackDuration(final long beganNs) {
        final long tookNs = System.nanoTime() - beganNs;
        if (tookNs > counters.get(Counter.MAX_CYCLE_NS)) {
            counters.set(Counter.MAX_CYCLE_NS, tookNs);
        }
        if (tookNs > STALL_NS) {
            counters.increment(Counter.STALLS);
            journal.stalled(tookNs);
        }
    }

    private void sleep() {
        status.sleeping(true);       // to clients
        doorbells.announceSleep();   // to threads of this process; cycle() then looks at all that both published
        try {
            if (cycle() == 0 && commands.isEmpty()) {
                counters.increment(Counter.SLEEPS);
                doorbells.await(sleepMs(System.nanoTime(), anticipation.nextNs(),
                    Math.min(Math.min(recordsDueNs, turns.nextNs()), scheduler.nextTimerNs())));
            }
        } finally {
            doorbells.endSleep();
            status.sleeping(false);
        }
        final long wokenNs = System.nanoTime();
        if (idle != IdleMode.SLEEP) {
            lastWorkNs = wokenNs - idle.spinNs();   // poll on only if the wake-up brought work
        }
    }

    /**
     * How long the dispatcher may sleep. Early rather than late for an expected begin: the cycles of the last
     * millisecond wait without sleeping.
     *
     * @param nowNs   now
     * @param hintNs  when an expected begin is due, {@link Long#MAX_VALUE} if there is none
     * @param timerNs when the scheduler's next timer is due, {@link Long#MAX_VALUE} if there is none
     * @return ms, at most as long as the heartbeat allows
     */
    static int sleepMs(final long nowNs, final long hintNs, final long timerNs) {
        long limitMs = SLEEP_MAX_MS;
        if (hintNs != Long.MAX_VALUE) {
            limitMs = Math.min(limitMs, (hintNs - nowNs) / NS_PER_MS);
        }
        if (timerNs != Long.MAX_VALUE) {
            limitMs = Math.min(limitMs, (timerNs - nowNs + NS_PER_MS - 1) / NS_PER_MS);
        }
        return (int) Math.max(0, limitMs);
    }

    private int runCommand() {
        if (commands.isEmpty()) {
            return 0;
        }
        final long allocatedBefore = ThreadAllocation.bytes();
        hotPathBytes = allocatedBefore - commandBytes;
        settleFaults();
        final Runnable command = commands.poll();
        if (command != null) {
            try {
                command.run();   // one in each cycle: many registrations or deaths delay a record no more than one
                turns.refresh(processes);
                status.nobodyWaits(!tasks.isAnyWaiting());
                if (outside.refresh(processes)) {
                    decisions.settle();
                }
            } catch (final RuntimeException | InternalError e) {
                onCycleError(e);
            }
        }
        commandBytes += ThreadAllocation.bytes() - allocatedBefore;
        return 1;
    }

    /** A fault of some client's files must not surface in the middle of a command, which would be lost. */
    private void settleFaults() {
        try {
            FaultBarrier.settle();
        } catch (final InternalError e) {
            onCycleError(e);
        }
    }

    private int pollClients() {
        final int size = clients.count();
        recordsDueNs = Long.MAX_VALUE;
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
            final int most = entry.poisoned || entry.rate == null ? RECORDS_PER_POLL : allowed(entry);
            if (most > 0) {
                final int n = entry.poisoned ? 0 : poll(entry, most);
                work += n;
                clients.polled(entry, n, most);
            }
        }
        pollFrom++;   // no client is always first
        return work;
    }

    /** How many records of a client may be taken now. One that leaves is not kept: what is left of it is bounded. */
    private int allowed(final ClientEntry entry) {
        final int most = entry.recordsLeft >= 0 ? RECORDS_PER_POLL
            : entry.rate.allowed(RECORDS_PER_POLL, clock.nowNs());
        if (most == 0) {
            clients.mute(entry);
            recordsDueNs = Math.min(recordsDueNs, entry.rate.readyNs());
        } else {
            clients.listen(entry);
        }
        return most;
    }

    private int poll(final ClientEntry entry, final int limit) {
        current = entry;
        final long beganNs = entry.rate != null && entry.rate.isBusy() ? System.nanoTime() : 0;
        try {
            final int n = entry.client.queue().poll(recordHandler, limit, clock.nowNs());
            if (n < 0) {
                clients.poison(entry, -n, entry.client.queue().poisonText());
                return 1;
            }
            counters.add(Counter.RECORDS, n);
            if (entry.rate != null) {
                entry.rate.took(n, beganNs == 0 ? 0 : System.nanoTime() - beganNs);
            }
            FaultBarrier.deliver();
            return n;
        } catch (final RuntimeException e) {
            counters.increment(Counter.CLIENT_ERRORS);
            clients.poison(entry, Abi.POISON_PROTOCOL, "internal error: " + e);
        } catch (final InternalError e) {
            // a mapped file shrank; the fault may surface late, so look which client it was
            counters.increment(Counter.CLIENT_ERRORS);
            clients.poisonTruncated();   // none: another fault of one that is poisoned already
        } finally {
            current = null;
        }
        return 1;
    }

    private void onCycleError(final Throwable error) {
        if (error instanceof InternalError && (clients.poisonTruncated() || clients.hasPoisoned())) {
            counters.increment(Counter.CLIENT_ERRORS);
            return;
        }
        counters.increment(Counter.CYCLE_ERRORS);
        journal.failed(error);
    }

    // ---- records --------------------------------------------------------------------------------------------------

    private void onRecord(final int clientId, final RecordView record) {
        final TaskEntry task = tasks.get(record.taskId());
        if (current.poisoned || task == null || task.client != current) {
            return;   // poisoned by an earlier record of the same batch, or its task was closed by one
        }
        if (record.timeNs() > clock.nowNs()) {
            // The machine held this thread up within the cycle. Nothing is decided before what it follows from.
            clock.set(Math.min(record.timeNs(), System.nanoTime()));
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
                final long missesBefore = task.account.misses();
                task.account.released(record.releaseNs());
                counters.add(Counter.JOB_MISSES, task.account.misses() - missesBefore);
                journal.release(task, record.releaseNs(), record.argNs(), record.sample());
                break;
            case Abi.RECORD_HINT:
                onHint(task, record.argNs());
                break;
            default:
                if (record.has(Abi.FLAG_CANCELLED)) {
                    onJobCancel(task, record);
                } else {
                    onJobEnd(task, record);
                }
                break;
        }
    }

    private void onHint(final TaskEntry task, final long expectedNs) {
        if (expectedNs - clock.nowNs() > task.request.hintLeadNs()) {
            counters.increment(Counter.HINTS_BEYOND_LIMIT);
            return;   // not in the journal either: a replay must decide as if it had not been made
        }
        journal.hint(task, expectedNs);
        anticipation.hint(task, expectedNs);
        decisions.settle();
    }

    private void onBegin(final TaskEntry task, final RecordView record) {
        final long ticket = record.ticket();
        task.ticket = ticket;
        task.optimistic = record.has(Abi.FLAG_OPTIMISTIC);
        turns.begins(task, anticipation.isReserved(task.gpu()), record.timeNs());
        final int outcome = scheduler.begin(task.id, ticket, record.releaseNs(), record.argNs(), task.optimistic,
            record.timeNs(), clock.nowNs());
        if (outcome != Outcome.ACCEPTED && outcome != Outcome.SKIPPED) {
            decisions.settle();
            clients.poison(task.client, Abi.POISON_TICKET, "begin of task " + task.id + ", ticket " + ticket + ": "
                + Outcome.name(outcome));
            return;
        }
        anticipation.begin(task);   // not of a refused one, which is not in the journal
        if (outcome == Outcome.SKIPPED) {
            onSkipped(task, record);
            return;
        }
        if (!task.optimistic) {
            journalBegin(task, record);   // first: the wake-up may cost us the CPU, and an answer outlives a kill
        }
        decisions.answer();
        task.account.begun(record.timeNs(), record.releaseNs());
        task.segments++;
        counters.increment(Counter.BEGINS);
        if (task.optimistic) {
            if (!task.begunUnasked) {
                task.begunUnasked = true;
                promised.beganUnasked(task.id);
            }
            counters.increment(Counter.OPTIMISTIC_BEGINS);
            journalBegin(task, record);
        } else if (scheduler.state(task.id) == SegmentState.WAITING) {
            task.slot.state(Abi.SEGMENT_WAITING);
        }
        decisions.record();
        anticipation.learn(task, record.timeNs(), record.releaseNs());
    }

    private void journalBegin(final TaskEntry task, final RecordView record) {
        journal.begin(task, record.flags(), record.ticket(), record.timeNs(), record.releaseNs(),
            scheduler.deadlineNs(task.id));
    }

    /** In the journal: a begin that was cancelled at once. */
    private void onSkipped(final TaskEntry task, final RecordView record) {
        final long ticket = record.ticket();
        task.slot.grant(ticket, Abi.VERDICT_REFUSED);
        task.forcedTicket = ticket;   // its client may have given up waiting at this moment
        counters.increment(Counter.BEGINS);
        counters.increment(Counter.SKIPPED);
        journal.begin(task, record.flags(), ticket, record.timeNs(), record.releaseNs(), 0);
        journal.cancel(task, 0, ticket, clock.nowNs());
        decisions.settle();
    }

    private void onEnd(final TaskEntry task, final RecordView record) {
        final long ticket = record.ticket();
        final boolean cancelled = record.has(Abi.FLAG_CANCELLED);
        grants.forget(task);
        final int outcome = cancelled ? scheduler.cancel(task.id, ticket, clock.nowNs())
            : scheduler.end(task.id, ticket, clock.nowNs());
        if (outcome != Outcome.ACCEPTED && ticket != task.forcedTicket) {
            decisions.settle();
            clients.poison(task.client, Abi.POISON_TICKET, "end of task " + task.id + ", ticket " + ticket + ": "
                + Outcome.name(outcome));
            return;
        }
        if (outcome == Outcome.ACCEPTED) {
            anticipation.end(task);
            turns.ends(task, record.timeNs());
        }
        decisions.answer();
        counters.increment(cancelled ? Counter.CANCELS : Counter.ENDS);
        if (record.has(Abi.FLAG_PROCEEDED)) {
            counters.increment(Counter.PROCEEDED);
        }
        if (!task.optimistic) {
            task.slot.state(Abi.SEGMENT_IDLE);
        }
        if (cancelled) {
            final long misses = task.account.misses();
            task.account.segmentWithdrawn();
            counters.add(Counter.JOB_MISSES, task.account.misses() - misses);
            journal.cancel(task, record.flags(), ticket, record.timeNs());
        } else {
            final long jobs = task.account.jobs();
            final long misses = task.account.misses();
            final long responseNs = task.account.segmentEnded(record.timeNs(), task.priority,
                task.request.deadlineNs());
            countJobs(task, jobs, misses);
            journal.end(task, record.flags(), ticket, record.timeNs(), record.argNs());
            responded(task, responseNs);
        }
        decisions.record();
    }

    private void onJobEnd(final TaskEntry task, final RecordView record) {
        final long responseNs = task.jobReleaseNs == 0 ? 0 : Math.max(0, record.timeNs() - task.jobReleaseNs);
        final long jobs = task.account.jobs();
        final long misses = task.account.misses();
        final long counted = task.account.jobEnded(responseNs, task.priority, task.request.deadlineNs());
        countJobs(task, jobs, misses);
        journal.jobEnd(task, record.timeNs(), responseNs);
        responded(task, counted);
    }

    private void onJobCancel(final TaskEntry task, final RecordView record) {
        final long misses = task.account.misses();
        final long skipped = task.account.skipped();
        task.account.jobCancelled();
        counters.add(Counter.JOB_MISSES, task.account.misses() - misses);
        counters.add(Counter.JOBS_SKIPPED, task.account.skipped() - skipped);
        journal.jobCancel(task, record.timeNs());
    }

    /** Compares a job with the bound that admission promised, after its end is in the journal. */
    private void responded(final TaskEntry task, final long responseNs) {
        task.responded(responseNs);
        final long boundNs = responseNs == JobAccount.NONE || !task.isRealTime() ? 0
            : promised.ended(task.id, responseNs);
        if (boundNs > 0) {
            task.boundsBroken++;
            counters.increment(Counter.BOUNDS_BROKEN);
            journal.boundBroken(task, responseNs, boundNs);
        }
    }

    private void countJobs(final TaskEntry task, final long jobsBefore, final long missesBefore) {
        counters.add(Counter.JOBS, task.account.jobs() - jobsBefore);
        counters.add(Counter.JOB_MISSES, task.account.misses() - missesBefore);
    }

    // ---- enforcers ------------------------------------------------------------------------------------------------

    private int pollEnforcers() {
        int work = 0;
        for (int g = 0; g < desired.gpus(); g++) {
            final Enforcement enforcer = desired.enforcer(g);
            final long enforcedVersion = enforcer.enforcedVersion();   // before the results that led to it
            currentGpu = g;
            work += enforcer.poll(resultHandler);
            work += grants.poll(g, enforcedVersion);
            anticipation.enforced(g, enforcedVersion);
        }
        return work;
    }

    private void onResult(final int type, final MutableDirectBuffer buffer, final int offset, final int length) {
        switch (type) {
            case EnforcerResults.CONTEXT:
                onApplied(buffer.getInt(offset), buffer.getInt(offset + EnforcerResults.OFF_OFFSET) == 1,
                    buffer.getLong(offset + EnforcerResults.BEGAN_OFFSET),
                    buffer.getLong(offset + EnforcerResults.DONE_OFFSET));
                break;
            case EnforcerResults.RELEASED:
                counters.increment(Counter.WATCHDOG_RELEASES);
                journal.watchdogReleased(currentGpu, buffer.getLong(offset), buffer.getLong(offset + Long.BYTES));
                break;
            case EnforcerResults.REPEATED_ERROR:
                counters.increment(Counter.MECHANISM_ERRORS);
                break;
            default:
                counters.increment(Counter.MECHANISM_ERRORS);
                journal.mechanismFailed(currentGpu, buffer.getStringWithoutLengthUtf8(offset, length));
                break;
        }
    }

    private void onApplied(final int contextId, final boolean off, final long beganNs, final long doneNs) {
        counters.increment(off ? Counter.DISABLES : Counter.ENABLES);
        anticipation.applied(currentGpu, contextId, off, doneNs);
        turns.applied(currentGpu, contextId, off, doneNs);
        journal.applied(currentGpu, contextId, off, beganNs, doneNs);
        final long constantNs = promised.called(currentGpu, doneNs - beganNs);
        if (constantNs > 0) {
            counters.increment(Counter.CONSTANTS_BROKEN);
            journal.constantBroken(currentGpu, null, doneNs - beganNs, constantNs);
        }
        scheduler.onApplied(contextId, !off, doneNs, clock.nowNs());
        decisions.settle();
    }
}

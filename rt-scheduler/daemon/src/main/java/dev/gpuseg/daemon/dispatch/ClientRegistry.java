/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.ConductorProxy;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * The registered clients and their tasks: how they come and go. A client that leaves, or closes a task, has its records
 * read first, in the usual portions, so that the others wait no longer than usual. Dispatcher thread only; rare, may
 * allocate.
 */
public final class ClientRegistry {
    /** A client that leaves, or closes a task, and goes on writing is not read any further than this. */
    static final int RECORDS_LEFT_MAX = 1 << 16;
    private static final int EAGAIN = -11;
    private static final int EINVAL = -22;
    private static final int ENOSPC = -28;

    /** What the clients work with. */
    record Parts(SegmentScheduler scheduler, DesiredStates desired, ProcessRegistry processes, TaskTable tasks,
        PolicyControl policy, Anticipation anticipation, GrantGate grants, DecisionApplier decisions,
        Doorbells doorbells, DispatcherJournal journal, Counters counters, CycleClock clock, ShareAccounts shares) {
    }

    private final Parts parts;
    private final SegmentScheduler scheduler;
    private final TaskTable tasks;
    private final DispatcherJournal journal;
    private final Counters counters;
    private final Executor later;
    private final boolean optimisticAllowed;
    private final ResponsePages pages = new ResponsePages();
    private final List<ClientEntry> clients = new ArrayList<>();
    private final RecordRate.Users rates = new RecordRate.Users();
    private ConductorProxy conductor;
    private PromisedBounds promised;

    /**
     * @param parts             as named
     * @param later             runs something in a cycle of its own
     * @param optimisticAllowed whether a task may be pre-granted
     */
    ClientRegistry(final Parts parts, final Executor later, final boolean optimisticAllowed) {
        this.parts = parts;
        this.later = later;
        this.optimisticAllowed = optimisticAllowed;
        scheduler = parts.scheduler();
        tasks = parts.tasks();
        journal = parts.journal();
        counters = parts.counters();
    }

    /** Names where answers go. Before the first client. */
    void conductor(final ConductorProxy proxy) {
        conductor = proxy;
    }

    // ---- clients --------------------------------------------------------------------------------------------------

    int count() {
        return clients.size();
    }

    /** By position, 0 to {@link #count} - 1. */
    ClientEntry get(final int at) {
        return clients.get(at);
    }

    void forEach(final Consumer<ClientEntry> visitor) {
        clients.forEach(visitor);
    }

    /** Why a process cannot register, and what helps. */
    public static String noNumbers(final int numbers) {
        return "all " + numbers + " context numbers of the daemon are in use by processes with a GPU context; end "
            + "some, or bound them with limit contexts in limits.d";
    }

    /** A client has registered. */
    public void add(final Client client) {
        final ProcessEntry process = parts.processes().register(client);
        if (process == null) {   // another one was faster, else the conductor would have refused it
            final String why = noNumbers(parts.processes().numbers());
            client.queue().drop(Abi.POISON_PROTOCOL, why);
            client.session().poison(Abi.POISON_PROTOCOL);
            conductor.poisoned(client.clientId(), Abi.POISON_PROTOCOL, why);
            return;
        }
        final ClientEntry entry = new ClientEntry(client, process,
            rates.of(client.uid(), client.recordsPerSecond(), System.nanoTime()));
        clients.add(entry);
        parts.doorbells().add(client);
        counters.increment(Counter.CLIENTS_OPENED);
        journal.clientOpened(entry);
    }

    /** Its user has to wait: that it has written more wakes nobody, until {@link #listen}. */
    void mute(final ClientEntry entry) {
        if (!entry.muted) {
            parts.doorbells().remove(entry.client);
            entry.muted = true;
            counters.increment(Counter.RECORDS_DELAYED);
        }
    }

    /** Its bell is listened to again. */
    void listen(final ClientEntry entry) {
        if (entry.muted) {
            parts.doorbells().add(entry.client);
            entry.muted = false;
        }
    }

    /**
     * A client is gone or must go, once its records are read.
     *
     * @param reason one of {@link dev.gpuseg.daemon.conductor.Removal}
     */
    public void remove(final int clientId, final int reason) {
        final ClientEntry entry = find(clientId);
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

    /**
     * A client has been polled. If that was the last record that a command waits for, the command is done next.
     *
     * @param taken records taken
     * @param most  as many would have been taken
     */
    void polled(final ClientEntry entry, final int taken, final int most) {
        if (entry.recordsLeft < 0) {
            return;
        }
        entry.recordsLeft -= taken;
        if (taken < most || entry.recordsLeft < 0) {
            entry.recordsLeft = ClientEntry.STAYS;
            final List<Closing> due = entry.closings;
            entry.closings = new ArrayList<>();
            final boolean leaves = entry.leaving;
            if (leaves || !due.isEmpty()) {
                // one command: a fault that surfaces when the dispatcher is woken for it must not cost the rest
                later.execute(() -> {
                    due.forEach(this::close);
                    if (leaves) {
                        remove(entry);
                    }
                });
            }
        }
    }

    private void remove(final ClientEntry entry) {
        final int clientId = entry.client.clientId();
        try {
            closeTasks(entry);
            listen(entry);
            parts.doorbells().remove(entry.client);
        } finally {
            clients.remove(entry);
            parts.processes().unregister(entry.process, entry.client.session(), entry.removalReason);
            counters.increment(Counter.CLIENTS_CLOSED);
            journal.clientClosed(entry);
            conductor.clientRemoved(clientId);
        }
    }

    /**
     * Drops a client that broke the rules: its tasks are closed, its records are read no further.
     *
     * @param code {@code Abi.POISON_*}
     * @param text one line
     */
    void poison(final ClientEntry entry, final int code, final String text) {
        if (entry.poisoned) {
            return;
        }
        entry.poisoned = true;
        entry.client.queue().drop(code, text);
        entry.client.session().poison(code);
        closeTasks(entry);
        counters.increment(Counter.POISONED);
        journal.clientPoisoned(entry, code, text);
        conductor.poisoned(entry.client.clientId(), code, text);
    }

    /** Drops all clients whose files were truncated. Returns false if there was none. */
    boolean poisonTruncated() {
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
    boolean hasPoisoned() {
        for (int i = 0; i < clients.size(); i++) {
            if (clients.get(i).poisoned) {
                return true;
            }
        }
        return false;
    }

    private ClientEntry find(final int clientId) {
        for (final ClientEntry entry : clients) {
            if (entry.client.clientId() == clientId) {
                return entry;
            }
        }
        return null;
    }

    // ---- tasks ----------------------------------------------------------------------------------------------------

    /** Opens a task, or answers why not. */
    public void openTask(final TaskOpen request) {
        final ClientEntry entry = find(request.clientId());
        if (entry == null || entry.poisoned || entry.leaving || parts.policy().isStopping()) {
            refuse(request, EAGAIN, "client " + request.clientId() + " is being removed; register again");
            return;
        }
        if (request.gpu() >= parts.desired().gpus()) {
            refuse(request, EINVAL, "task \"" + request.name() + "\": gpu is " + request.gpu() + "; this daemon has "
                + parts.desired().gpus());
            return;
        }
        final int contextId = entry.process.contexts[request.gpu()];
        final TaskEntry sibling = tasks.ofContext(contextId);
        if (sibling != null && sibling.request.partition() != request.partition()) {
            refuse(request, EINVAL, "task \"" + request.name() + "\": partition is " + request.partition()
                + ", but task \"" + sibling.request.name() + "\" of this process is in partition "
                + sibling.request.partition() + "; use one partition per process");
            return;
        }
        final int id = tasks.freeId();
        if (id == TaskTable.NONE) {
            refuse(request, ENOSPC, "task \"" + request.name() + "\": no free task id of " + tasks.capacity()
                + "; close another task");
            return;
        }
        final int slot = entry.client.session().allocateSlot();
        if (slot < 0) {
            refuse(request, ENOSPC, "task \"" + request.name() + "\": no free slot of " + Abi.SLOTS_MAX
                + "; close another task");
            return;
        }
        pages.fill();
        open(new TaskEntry(id, entry, new SessionSlot(entry.client.session(), slot), contextId, request,
            parts.shares().open(entry.client.uid(), request.share()), pages), slot);
    }

    /** What is said of open tasks. Before the first command. */
    void compareWith(final PromisedBounds bounds) {
        promised = bounds;
    }

    private void open(final TaskEntry task, final int slot) {
        final TaskOpen request = task.request;
        if (promised != null) {
            promised.opened(task.id);
        }
        final ClientEntry entry = task.client;
        final Session session = entry.client.session();
        tasks.add(task);
        entry.tasks.add(task);
        entry.client.queue().openTask(task.id);
        session.gpu(slot, request.gpu());
        scheduler.addTask(new TaskParameters(task.id, task.contextId, request.priority(), request.gpuPriority(),
            request.deadlineNs(), request.budgetNs(), request.optimistic() && optimisticAllowed, request.overrun(),
            request.windowNs(), request.partition(), task.shareAccount, request.reserve() > 0));
        parts.anticipation().open(task);
        journal.taskOpened(task, StatusSnapshot.describe(task).toString());
        if (request.weight() > 0) {
            parts.policy().weigh(entry.process, request.weight());
        }
        parts.decisions().settle();
        session.taskId(slot, task.id);   // the client may use it from here on
        parts.policy().applyRule(task);
        counters.increment(Counter.TASKS_OPENED);
        conductor.taskOpened(request.correlation(), 0, task.id, slot, "");
    }

    private void refuse(final TaskOpen request, final int errno, final String text) {
        counters.increment(Counter.TASKS_REFUSED);
        conductor.taskOpened(request.correlation(), errno, 0, 0, text);
    }

    /**
     * Closes a task once its client's records are read, or answers why not.
     *
     * @param taskId any number
     */
    public void closeTask(final long correlation, final int clientId, final int taskId) {
        final ClientEntry entry = find(clientId);
        final TaskEntry task = tasks.find(taskId);
        if (entry == null || task == null || task.client != entry) {
            conductor.taskClosed(correlation, EINVAL, "task " + taskId + " is not open in this client");
            return;
        }
        entry.closings.add(new Closing(correlation, task));
        entry.recordsLeft = RECORDS_LEFT_MAX;
    }

    private void close(final Closing closing) {
        final TaskEntry task = closing.task();
        if (tasks.get(task.id) == task) {
            close(task);
        }
        conductor.taskClosed(closing.correlation(), 0, "");
    }

    private void closeTasks(final ClientEntry entry) {
        while (!entry.tasks.isEmpty()) {
            close(entry.tasks.get(entry.tasks.size() - 1));
        }
    }

    private void close(final TaskEntry task) {
        parts.anticipation().close(task);
        parts.grants().forget(task);
        tasks.remove(task);
        task.client.tasks.remove(task);
        scheduler.removeTask(task.id, parts.clock().nowNs());
        parts.shares().close(task.client.client.uid(), task.shareAccount);
        parts.decisions().answer();
        journal.taskClosed(task);
        parts.decisions().record();
        task.responses.close();
        task.client.client.queue().closeTask(task.id);
        task.slot.release();
    }
}

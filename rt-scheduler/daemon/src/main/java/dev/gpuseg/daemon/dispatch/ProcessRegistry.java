/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.mechanisms.ContextRef;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * The processes that have a context on the GPUs, registered or found by the mechanism, and what kind of context that
 * is. A process outlives its registrations: as long as it lives it may have work on a GPU. Dispatcher thread only,
 * unless said otherwise; rare, may allocate.
 *
 * <p>A process has a context number on each GPU. While all numbers are in use, no further process can be disabled: one
 * that registers is refused, one that the mechanism found stays enabled and gets a number when one is free again.
 */
public final class ProcessRegistry {
    /** The most processes that are remembered until there is a number. */
    static final int UNCONTROLLED_MAX = 4096;

    /** A process that has work on a GPU, and no context number. */
    public record Uncontrolled(int pid, long startTicks, String name) {
    }

    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final DispatcherJournal journal;
    private final CycleClock clock;
    private final Runnable settle;
    private final Counters counters;
    private final boolean[] contextInUse;
    private int freeContexts;
    /** The longest known first. */
    private final Deque<Uncontrolled> uncontrolled = new ArrayDeque<>();
    private volatile int uncontrolledCount;
    /** W dispatcher, R any thread: which processes have numbers. */
    private final Set<Integer> pids = ConcurrentHashMap.newKeySet();
    private volatile boolean full;
    private final List<ProcessEntry> processes = new ArrayList<>();
    private volatile int orphanCount;
    /** W dispatcher: another number whenever a process appears or goes. */
    private volatile int version;

    /**
     * @param scheduler   decides
     * @param desired     the enforcers that learn of contexts
     * @param maxContexts highest context id
     * @param journal     where changes are written down
     * @param clock       of the duty cycle
     * @param settle      carries out what the scheduler decided
     * @param counters    of the dispatcher
     */
    ProcessRegistry(final SegmentScheduler scheduler, final DesiredStates desired, final int maxContexts,
        final DispatcherJournal journal, final CycleClock clock, final Runnable settle, final Counters counters) {
        this.counters = counters;
        this.scheduler = scheduler;
        this.desired = desired;
        this.journal = journal;
        this.clock = clock;
        this.settle = settle;
        contextInUse = new boolean[maxContexts + 1];
        freeContexts = maxContexts;
    }

    // ---- registered processes -------------------------------------------------------------------------------------

    /**
     * A client of a process registered: its contexts are managed from now on.
     *
     * @return null if no context number is free
     */
    public ProcessEntry register(final Client client) {
        ProcessEntry process = find(client.pid(), client.startTicks());
        if (process == null && lacksNumbers()) {
            counters.increment(Counter.CONTEXTS_UNNUMBERED);
            return null;
        }
        if (process == null) {
            uncontrolled.removeIf(each -> each.pid() == client.pid());
            uncontrolledCount = uncontrolled.size();
            process = add(client.pid(), client.startTicks(), client.name(), ContextKind.MANAGED);
        } else if (process.clients == 0) {
            changeKind(process, kind(process, ContextKind.MANAGED));
        }
        process.clients++;
        if (process.clients == 1) {
            tellRegistered(process, true);
        }
        for (int g = 0; g < process.refs.length; g++) {
            desired.enforcer(g).joined(process.refs[g], client.session());
        }
        countOrphans();
        return process;
    }

    /**
     * A client of a process is gone. A process that lives on counts as unmanaged with its last registration.
     *
     * @param session the client's
     * @param reason  one of {@link Removal}
     */
    void unregister(final ProcessEntry process, final Session session, final int reason) {
        process.clients--;
        for (int g = 0; g < process.refs.length; g++) {
            desired.enforcer(g).left(process.refs[g], session);
        }
        if (process.clients == 0) {
            if (reason == Removal.DIED) {
                remove(process);
                numberOthers();
            } else {
                tellRegistered(process, false);
                changeKind(process, kind(process, ContextKind.UNMANAGED));
            }
        }
        countOrphans();
    }

    // ---- processes that did not register --------------------------------------------------------------------------

    /** A process that has work on a GPU and has not registered. */
    public void addUnmanaged(final int pid, final long startTicks, final String name) {
        if (find(pid, startTicks) != null) {
            return;
        }
        if (!lacksNumbers()) {
            add(pid, startTicks, name, ContextKind.UNMANAGED);
            countOrphans();
            return;
        }
        final Uncontrolled process = new Uncontrolled(pid, startTicks, name);
        if (!uncontrolled.contains(process)) {
            counters.increment(Counter.CONTEXTS_UNNUMBERED);
            if (uncontrolled.size() < UNCONTROLLED_MAX) {
                uncontrolled.add(process);
                uncontrolledCount = uncontrolled.size();
            }
        }
    }

    private boolean lacksNumbers() {
        return freeContexts < desired.gpus();
    }

    /** Numbers may be free again. */
    private void numberOthers() {
        while (!uncontrolled.isEmpty() && !lacksNumbers()) {
            final Uncontrolled next = uncontrolled.remove();
            addUnmanaged(next.pid(), next.startTicks(), next.name());
        }
        uncontrolledCount = uncontrolled.size();
    }

    /** Any thread: how many processes stay enabled because all context numbers are in use. */
    public int uncontrolledCount() {
        return uncontrolledCount;
    }

    /** The same by name. */
    public List<Uncontrolled> uncontrolled() {
        return List.copyOf(uncontrolled);
    }

    /** One of them turned out to be dead. */
    public void forgetUncontrolled(final Uncontrolled process) {
        uncontrolled.remove(process);
        uncontrolledCount = uncontrolled.size();
    }

    /** Any thread: whether a process that registers gets context numbers, or has them already. */
    public boolean hasNumbersFor(final int pid) {
        return !full || pids.contains(pid);
    }

    /** How many context numbers there are for all GPUs together. */
    public int numbers() {
        return contextInUse.length - 1;
    }

    /** Processes without a live registration: their pidfd is closed, so they have to be asked for now and then. */
    public List<ProcessEntry> orphans() {
        final List<ProcessEntry> found = new ArrayList<>();
        for (final ProcessEntry process : processes) {
            if (process.clients == 0) {
                found.add(process);
            }
        }
        return found;
    }

    /** Any thread. */
    public boolean hasOrphans() {
        return orphanCount > 0;
    }

    /** An orphan turned out to be dead. */
    public void forgetOrphan(final ProcessEntry process) {
        if (process.clients == 0 && processes.contains(process)) {
            remove(process);
            numberOthers();
            countOrphans();
        }
    }

    private void countOrphans() {
        int n = 0;
        for (final ProcessEntry process : processes) {
            n += process.clients == 0 ? 1 : 0;
        }
        orphanCount = n;
    }

    // ---- all ------------------------------------------------------------------------------------------------------

    /** How many processes are known. */
    public int count() {
        return processes.size();
    }

    /** Visits all of them. */
    public void forEach(final Consumer<ProcessEntry> visitor) {
        processes.forEach(visitor);
    }

    /** Any thread: another number whenever a process appeared or went, so that {@link #views} is to be asked anew. */
    public int version() {
        return version;
    }

    /** The processes that have contexts. */
    public List<ProcessView> views() {
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

    /** A rule says that the contexts of a process are never to be disabled, or no longer so. */
    public void protect(final int pid, final long startTicks, final boolean isProtected) {
        final ProcessEntry process = find(pid, startTicks);
        if (process != null && process.isProtected != isProtected) {
            process.isProtected = isProtected;
            changeKind(process, kind(process, process.clients > 0 ? ContextKind.MANAGED : ContextKind.UNMANAGED));
        }
    }

    /** A process had no work lately, or has some again. */
    public void idle(final int pid, final long startTicks, final boolean idle) {
        final ProcessEntry process = find(pid, startTicks);
        if (process != null) {
            process.isIdle = idle;
        }
    }

    private ProcessEntry find(final int pid, final long startTicks) {
        for (final ProcessEntry process : processes) {
            if (process.pid == pid && process.startTicks == startTicks) {
                return process;
            }
        }
        return null;
    }

    /**
     * The kernel gives a pid out again when its process is dead, which this thread may learn a little later. Until then
     * nothing of the dead one may be disabled: a mechanism that names processes by their pid would strike the living.
     */
    private void outlive(final int pid) {
        for (final ProcessEntry process : List.copyOf(processes)) {
            if (process.pid != pid) {
                continue;
            }
            if (process.clients == 0) {
                remove(process);
            } else {
                process.isProtected = true;
                changeKind(process, ContextKind.PROTECTED);
            }
        }
    }

    private ProcessEntry add(final int pid, final long startTicks, final String name, final ContextKind kind) {
        outlive(pid);
        final ContextRef[] contexts = new ContextRef[desired.gpus()];
        for (int g = 0; g < contexts.length; g++) {
            final int id = freeContext();
            contextInUse[id] = true;
            freeContexts--;
            contexts[g] = new ContextRef(id, g, pid, startTicks, name);
            if (desired.enforcer(g).mechanism().isOutside(pid)) {
                contexts[g].ofOutside();
            }
            desired.enforcer(g).attach(contexts[g]);
            scheduler.addContext(id, g, kind);
            journal.contextOpened(contexts[g], kind, name);
        }
        settle.run();
        final ProcessEntry process = new ProcessEntry(pid, startTicks, name, contexts);
        process.sinceNs = clock.nowNs();
        processes.add(process);
        version++;
        pids.add(pid);
        full = lacksNumbers();
        return process;
    }

    private void remove(final ProcessEntry process) {
        processes.remove(process);
        version++;
        for (int g = 0; g < process.contexts.length; g++) {
            final int contextId = process.contexts[g];
            scheduler.removeContext(contextId, clock.nowNs());
            journal.contextClosed(process.refs[g]);
            desired.forget(g, contextId);
            contextInUse[contextId] = false;
            freeContexts++;
        }
        if (processes.stream().noneMatch(other -> other.pid == process.pid)) {
            pids.remove(process.pid);
        }
        full = lacksNumbers();
        settle.run();
    }

    private int freeContext() {
        for (int i = 1; i < contextInUse.length; i++) {
            if (!contextInUse[i]) {
                return i;
            }
        }
        throw new IllegalStateException("no free context of " + numbers() + "; stop some processes");
    }

    private static ContextKind kind(final ProcessEntry process, final ContextKind unruled) {
        return process.isProtected ? ContextKind.PROTECTED : unruled;
    }

    private void changeKind(final ProcessEntry process, final ContextKind kind) {
        for (int g = 0; g < process.contexts.length; g++) {
            scheduler.setContextKind(process.contexts[g], kind);
            journal.contextKind(process.refs[g], kind);
        }
        settle.run();
    }

    private void tellRegistered(final ProcessEntry process, final boolean registered) {
        for (int g = 0; g < process.refs.length; g++) {
            desired.enforcer(g).registered(process.refs[g], registered);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.observer.Observation;
import dev.gpuseg.mechanisms.observer.ObservationListener;
import dev.gpuseg.mechanisms.observer.Observer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A mechanism whose driver reports no changes. A thread scans the attached processes, every 20 ms while one of them has
 * no work yet, else every 250 ms, and announces processes that have work and were never attached. Where an
 * {@link Observer} works, the thread scans when a process opened the device, made or removed work, or ended, and every
 * second besides. A subclass supplies what concerns its driver, and ends its constructor with {@link #startScanning}.
 *
 * @param <P> what the subclass keeps for a process
 */
public abstract class ScanningMechanism<P extends AttachedProcess> implements Mechanism {
    private final Object lock = new Object();
    private final Map<Integer, P> processes = new HashMap<>();      // under the lock
    private final Map<Integer, Long> announced = new HashMap<>();   // scan thread; start ticks by pid
    private final AtomicBoolean changed = new AtomicBoolean();
    private final int ownPid = ProcessStatus.pid();
    private final Protection protection;
    private final String threadName;
    private final Observer observer;
    private final ObservationListener reports;
    private ScanThread scanThread;   // set by the last line of the constructor, before others see this
    private volatile ProcessListener listener;
    private volatile String lastError = "";

    /**
     * Does not scan yet.
     *
     * @param threadName name of the scan thread
     * @param protection processes that are never announced
     * @param observer   sees processes open the device and make work, or none
     * @param driver     as in {@link Observation#engine} of {@link Observation.Kind#OPEN}
     */
    protected ScanningMechanism(final String threadName, final Protection protection, final Observer observer,
        final int driver) {
        this.protection = protection;
        this.threadName = threadName;
        this.observer = observer;
        reports = new Reports(driver);
    }

    /** What the observer tells leads to a scan. */
    private final class Reports implements ObservationListener {
        private final int driver;

        Reports(final int driver) {
            this.driver = driver;
        }

        @Override
        public void observed(final Observation o) {
            final boolean here = switch (o.kind()) {
                case OPEN, WORK -> o.engine() == driver;
                case CLOSE, EXEC, EXIT -> true;
                default -> false;
            };
            if (here) {
                scanThread.wake();
            }
        }

        @Override
        public void interrupted() {
            scanThread.wake();
        }
    }

    /** Starts the scan thread; the last line of a constructor. */
    protected final void startScanning() {
        scanThread = new ScanThread(threadName, this::scan, observer::isLive, this::lastError, this::scanEnded);
        scanThread.start();
        observer.listen(reports);
    }

    /**
     * Guards what the enforcer's thread and the scan thread share.
     *
     * @return the lock under which hooks are called that say so
     */
    protected final Object lock() {
        return lock;
    }

    /**
     * Makes what is kept for a process.
     *
     * @param pid        its pid
     * @param startTicks field 22 of /proc/pid/stat
     * @return a new object
     */
    protected abstract P newProcess(int pid, long startTicks);

    /**
     * A process was attached. Under the lock.
     *
     * @param process the process
     */
    protected void attached(final P process) {
        // the next scan finds its work
    }

    /**
     * Its pid was attached again. Under the lock.
     *
     * @param process what was kept until now; not named again
     */
    protected abstract void replaced(P process);

    /**
     * A process is detached: everything of it must be enabled. Under the lock.
     *
     * @param process the process; not named again
     */
    protected abstract void detached(P process);

    /**
     * Updates what is known of a process. On the scan thread, without the lock.
     *
     * @param process the process; it may be detached meanwhile, see {@link #isAttached}
     * @return true if the enforcer must apply its state again
     */
    protected abstract boolean scan(P process);

    /**
     * Processes that have work on this GPU, attached or not. On the scan thread.
     *
     * @return pids
     */
    protected abstract Set<Integer> pidsWithWork();

    /**
     * The mechanism is closed. Under the lock.
     *
     * @param remaining processes that were never detached; not named again
     */
    protected abstract void closed(Collection<P> remaining);

    /** The scan thread has made its last scan. On that thread. */
    protected void scanEnded() {
        // a subclass closes here what its scans use
    }

    /**
     * Whether a process is still attached. Under the lock.
     *
     * @param process the process
     * @return false once it is detached or replaced
     */
    protected final boolean isAttached(final P process) {
        return processes.get(process.pid()) == process;
    }

    /**
     * All that are attached. Under the lock.
     *
     * @return what is kept for each, not to be changed
     */
    protected final Collection<P> attachedProcesses() {
        return processes.values();
    }

    /**
     * What is kept for a context.
     *
     * @param context the context
     * @return null if it is not attached
     */
    @SuppressWarnings("unchecked")   // only attach() sets it
    protected final P processOf(final ContextRef context) {
        return (P) context.attachment();
    }

    /**
     * Remembers why something failed. Any thread.
     *
     * @param reason one line
     */
    protected final void lastError(final String reason) {
        lastError = reason;
    }

    @Override
    public final String lastError() {
        return lastError;
    }

    @Override
    public final void processListener(final ProcessListener to) {
        listener = to;
        scanThread.wake();
    }

    @Override
    public boolean changed() {
        return changed.get() && changed.getAndSet(false);
    }

    @Override
    public final void attach(final ContextRef context) {
        final P process = newProcess(context.pid(), context.pidStartTicks());
        synchronized (lock) {
            final P known = processes.put(process.pid(), process);
            if (known != null) {
                replaced(known);
            }
            attached(process);
        }
        context.attachment(process);
        context.result(ContextRef.SwitchResult.NONE, 0, 0);
        scanThread.wake();
    }

    @Override
    public final void detach(final ContextRef context) {
        synchronized (lock) {
            final P process = processOf(context);
            if (process != null) {
                detached(process);
                processes.remove(process.pid(), process);
                context.attachment(null);
            }
        }
    }

    @Override
    public final void close() {
        observer.forget(reports);
        scanThread.stop();
        synchronized (lock) {
            closed(List.copyOf(processes.values()));
            processes.clear();
        }
    }

    private boolean scan() {
        final List<P> all;
        synchronized (lock) {
            all = new ArrayList<>(processes.values());
        }
        boolean waiting = false;
        for (final P process : all) {
            if (scan(process)) {
                changed.set(true);
            }
            waiting |= !process.hasWork() && process.isAlive();
        }
        final ProcessListener to = listener;
        if (to != null) {
            announce(to);
        }
        return waiting;
    }

    private void announce(final ProcessListener to) {
        final Set<Integer> now = pidsWithWork();
        announced.keySet().retainAll(now);
        for (final int pid : now) {
            final long ticks = ProcessStatus.startTicks(pid);   // a driver may list processes that have ended
            if (ticks != 0 && pid != ownPid && !isAttached(pid)
                && !Objects.equals(announced.put(pid, ticks), ticks) && !protection.covers(pid)) {
                to.found(pid, ticks, ProcessStatus.commandName(pid));
            }
        }
    }

    private boolean isAttached(final int pid) {
        synchronized (lock) {
            return processes.containsKey(pid);
        }
    }
}

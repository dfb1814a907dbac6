/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.LookThread;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.ProcessListener;
import dev.gpuseg.mechanisms.Protection;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Level 3 (2 where waves cannot be saved) on AMD GPUs through KFD, by the best {@link ControlInterface} that this
 * machine has. Experimental: tested against a stand-in only, never on AMD hardware.
 *
 * <p>Compute queues are disabled and enabled; queues for copies (SDMA) only with {@link Protection#allEngines}, except
 * by {@link ControlInterface#CRIU}, which always pauses the whole process.
 *
 * <p>The cost of an operation is unknown: {@link #capabilities} states 0.
 */
public final class AmdMechanism implements Mechanism {
    /** Property: pids, separated by commas; no other unattached process is announced. For calibration. */
    public static final String ONLY_PROPERTY = "gpuseg.amd.only";

    private final Object lock = new Object();
    private final Map<Integer, AmdProcess> processes = new HashMap<>();   // under the lock
    private final Set<Integer> announced = new HashSet<>();               // watch thread
    private final AtomicBoolean changed = new AtomicBoolean();
    private final int ownPid = ProcessStatus.pid();
    private final AmdSysfs sysfs;
    private final AmdSysfs.Gpu gpu;
    private final Protection protection;
    private final Set<String> only = Set.of(System.getProperty(ONLY_PROPERTY, "").split(","));
    private final QueueControl control;
    private final Capabilities capabilities;
    private final LookThread watch;
    private AmdProcess[] batch = new AmdProcess[64];
    private volatile ProcessListener listener;
    private volatile String lastError = "";

    /**
     * Opens the mechanism for one GPU.
     *
     * @param gpu        index, in the order of KFD's topology nodes
     * @param protection processes that are never touched
     * @throws MechanismException if no interface is usable here, with the reasons
     */
    public AmdMechanism(final int gpu, final Protection protection) {
        this(gpu, protection, AmdSysfs.ofThisMachine(), null, Integer.getInteger(PatchedKfdControl.WATCHDOG_PROPERTY,
            PatchedKfdControl.WATCHDOG_DEFAULT_MS));
    }

    /** With this interface, or null = the best. */
    AmdMechanism(final int index, final Protection protection, final AmdSysfs sysfs, final ControlInterface wanted,
        final int watchdogMs) {
        this.sysfs = sysfs;
        final List<AmdSysfs.Gpu> gpus = sysfs.gpus();
        if (index >= gpus.size()) {
            throw new MechanismException("GPU " + index + " does not exist; KFD lists " + gpus.size()
                + ", numbered from 0");
        }
        gpu = gpus.get(index);
        final List<AmdSurvey.Candidate> candidates = AmdSurvey.candidates(sysfs, gpu);
        final AmdSurvey.Candidate chosen = wanted == null ? AmdSurvey.best(candidates)
            : candidates.stream().filter(c -> c.by() == wanted && c.usable()).findFirst().orElse(null);
        if (chosen == null) {
            throw new MechanismException(AmdSurvey.verdict(sysfs).reason()
                + "; the next lower level that works on this GPU is --mechanism gate (level 1)");
        }
        this.protection = protection;
        control = open(chosen.by(), index, gpu.gpuId(), !protection.allEngines(), watchdogMs);
        capabilities = new Capabilities(chosen.level(), 0, 0, 0, 0, control.batchMax(), false,
            chosen.by().granularity());
        watch = new LookThread("gpuseg-amd-watch", this::look, e -> lastError = e, () -> { });
        watch.start();
    }

    private static QueueControl open(final ControlInterface by, final int gpu, final int gpuId,
        final boolean computeOnly, final int watchdogMs) {
        return switch (by) {
            case KFD -> PatchedKfdControl.open(gpuId, computeOnly, watchdogMs);
            case DEBUG -> DebuggerControl.open();
            case CRIU -> new CheckpointControl();
            case AGENT -> new AgentControl(gpu, gpuId, computeOnly, watchdogMs);
        };
    }

    /**
     * How queues are disabled here.
     *
     * @return the interface in use
     */
    public ControlInterface controlInterface() {
        return control.controlInterface();
    }

    /** What the last {@link #apply} took by the kernel's own clock, ns; -1 = it does not say. */
    long kernelTookNs() {
        synchronized (lock) {
            return control.tookNs();
        }
    }

    @Override
    public String name() {
        return "amd";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_AMD;
    }

    @Override
    public Capabilities capabilities() {
        return capabilities;
    }

    @Override
    public void processListener(final ProcessListener to) {
        listener = to;
        watch.wake();
    }

    @Override
    public boolean changed() {
        final boolean undone;
        synchronized (lock) {
            undone = control.heartbeat();
        }
        return changed.get() && changed.getAndSet(false) || undone;
    }

    @Override
    public void attach(final ContextRef context) {
        final AmdProcess p = new AmdProcess(context.pid(), context.pidStartTicks());
        synchronized (lock) {
            final AmdProcess known = processes.put(p.pid(), p);
            if (known != null) {
                control.release(known);
            }
            look(p);
        }
        context.attachment(p);
        context.outcome(ContextRef.Outcome.NONE, 0, 0);
        watch.wake();
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        synchronized (lock) {
            return switchAll(disable, disableCount, true) + switchAll(enable, enableCount, false);
        }
    }

    private int switchAll(final ContextRef[] contexts, final int count, final boolean disable) {
        if (batch.length < count) {
            batch = new AmdProcess[2 * count];
        }
        final long beganNs = System.nanoTime();
        int failed = 0;
        int n = 0;
        for (int i = 0; i < count; i++) {
            final AmdProcess p = (AmdProcess) contexts[i].attachment();
            if (p == null || !p.isAlive() || disable && p.queues().isEmpty() && !control.coversFutureQueues()) {
                contexts[i].outcome(ContextRef.Outcome.ABSENT, beganNs, beganNs);
            } else if (disable && control.controlInterface() == ControlInterface.CRIU && p.elsewhere()) {
                contexts[i].outcome(ContextRef.Outcome.FAILED, beganNs, beganNs);
                lastError = contexts[i] + ": has queues on another GPU too, which a pause would stop; use one GPU";
                failed++;
            } else {
                contexts[i].outcome(ContextRef.Outcome.NONE, beganNs, beganNs);
                batch[n++] = p;
            }
        }
        if (n > 0) {
            control.apply(batch, n, disable);
        }
        final long doneNs = System.nanoTime();
        for (int i = 0; i < count; i++) {
            if (contexts[i].outcome() == ContextRef.Outcome.NONE) {
                failed += settle(contexts[i], disable, beganNs, doneNs) ? 0 : 1;
            }
        }
        return failed;
    }

    private boolean settle(final ContextRef context, final boolean disable, final long beganNs, final long doneNs) {
        final AmdProcess p = (AmdProcess) context.attachment();
        final int result = p.result();
        if (result == -Errno.ESRCH || result != 0 && !p.isAlive()) {
            context.outcome(ContextRef.Outcome.ABSENT, beganNs, doneNs);
            return true;
        }
        if (result != 0) {
            lastError = context + ": " + (disable ? "hold" : "release") + " by " + control.controlInterface().label()
                + " failed with errno " + -result
                + (p.reason().isEmpty() ? "; the kernel's log may say why" : ": " + p.reason());
        }
        context.outcome(result == 0 ? ContextRef.Outcome.DONE : ContextRef.Outcome.FAILED, beganNs, doneNs);
        return result == 0;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        return false;   // quanta are the firmware's
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        return control.heldPayload();
    }

    @Override
    public void detach(final ContextRef context) {
        synchronized (lock) {
            final AmdProcess p = (AmdProcess) context.attachment();
            if (p != null) {
                control.release(p);
                processes.remove(p.pid(), p);
                context.attachment(null);
            }
        }
    }

    @Override
    public String lastError() {
        return lastError;
    }

    @Override
    public void close() {
        watch.stop();
        synchronized (lock) {
            control.close();
            processes.clear();
        }
    }

    /** Brings the picture up to date. True while some attached process has no queue yet. */
    private boolean look() {
        final List<AmdProcess> all;
        synchronized (lock) {
            all = new ArrayList<>(processes.values());
        }
        boolean waiting = false;
        for (final AmdProcess p : all) {
            // a hold covers future queues; the other interfaces must be applied again
            if (look(p) && !control.coversFutureQueues()) {
                changed.set(true);
            }
            waiting |= p.queues().isEmpty() && p.isAlive();
        }
        final ProcessListener to = listener;
        if (to != null) {
            announce(to);
        }
        return waiting;
    }

    /** True if the queues of a process are others than before. */
    private boolean look(final AmdProcess p) {
        final List<AmdSysfs.Queue> here = new ArrayList<>();
        boolean elsewhere = false;
        if (p.isAlive()) {
            for (final AmdSysfs.Queue q : sysfs.queues(p.pid())) {
                elsewhere |= q.gpuId() != gpu.gpuId();
                if (q.gpuId() == gpu.gpuId() && (q.compute() || protection.allEngines())) {
                    here.add(q);
                }
            }
        }
        return p.queues(here, elsewhere);
    }

    private void announce(final ProcessListener to) {
        final Set<Integer> now = new HashSet<>();
        for (final int pid : sysfs.pids()) {
            final long ticks = ProcessStatus.startTicks(pid);
            if (ticks != 0 && pid != ownPid && (only.contains("") || only.contains(Integer.toString(pid)))
                && sysfs.queues(pid).stream().anyMatch(q -> q.gpuId() == gpu.gpuId())) {
                now.add(pid);
                final boolean known;
                synchronized (lock) {
                    known = processes.containsKey(pid);
                }
                if (!known && announced.add(pid) && !protection.covers(pid)) {
                    to.found(pid, ticks, ProcessStatus.commandName(pid));
                }
            }
        }
        announced.retainAll(now);
    }
}

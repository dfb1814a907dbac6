/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.ScanningMechanism;
import dev.gpuseg.mechanisms.observer.Observation;
import dev.gpuseg.mechanisms.observer.Observer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Level 3 (2 where waves cannot be saved) on AMD GPUs through KFD, by the best {@link ControlInterface} that this
 * machine has. Experimental: tested against a stand-in only, never on AMD hardware.
 *
 * <p>Compute queues are disabled and enabled; queues for copies (SDMA) only with {@link Protection#allEngines}.
 *
 * <p>The cost of an operation is unknown: {@link #capabilities} states 0.
 */
public final class AmdMechanism extends ScanningMechanism<AmdProcess> {
    /** Property: pids, separated by commas; no other unattached process is announced. For calibration. */
    public static final String ONLY_PROPERTY = "gpuseg.amd.only";

    private final AmdSysfs sysfs;
    private final AmdSysfs.Gpu gpu;
    private final boolean allEngines;
    private final Set<String> only = Set.of(System.getProperty(ONLY_PROPERTY, "").split(","));
    private final QueueControl control;
    private final Capabilities capabilities;
    private AmdProcess[] batch = new AmdProcess[64];

    /**
     * Opens the mechanism for one GPU.
     *
     * @param gpu        index, in the order of KFD's topology nodes
     * @param protection processes that are never touched
     * @param observer   sees processes open KFD and make queues, or none
     * @throws MechanismException if no interface is usable here, with the reasons
     */
    public AmdMechanism(final int gpu, final Protection protection, final Observer observer) {
        this(gpu, protection, observer, AmdSysfs.ofThisMachine(), null,
            Integer.getInteger(PatchedKfdControl.WATCHDOG_PROPERTY, PatchedKfdControl.WATCHDOG_DEFAULT_MS));
    }

    /** With this interface, or null = the best. */
    AmdMechanism(final int index, final Protection protection, final AmdSysfs sysfs, final ControlInterface wanted,
        final int watchdogMs) {
        this(index, protection, Observer.none("not asked for"), sysfs, wanted, watchdogMs);
    }

    /** The same with an observer. */
    AmdMechanism(final int index, final Protection protection, final Observer observer, final AmdSysfs sysfs,
        final ControlInterface wanted, final int watchdogMs) {
        super("gpuseg-amd-scan", protection, observer, Observation.KFD);
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
        allEngines = protection.allEngines();
        control = open(chosen.by(), index, gpu.gpuId(), !allEngines, watchdogMs);
        capabilities = new Capabilities(chosen.level(), 0, 0, 0, 0, control.batchMax(), false,
            chosen.by().granularity());
        startScanning();
    }

    private static QueueControl open(final ControlInterface by, final int gpu, final int gpuId,
        final boolean computeOnly, final int watchdogMs) {
        return switch (by) {
            case KFD -> PatchedKfdControl.open(gpuId, computeOnly, watchdogMs);
            case AGENT -> new AgentControl(gpu, gpuId, computeOnly, watchdogMs);
        };
    }

    /** The interface by which queues are disabled here. */
    public ControlInterface controlInterface() {
        return control.controlInterface();
    }

    /** Duration of the last {@link #apply} by the kernel's own clock, ns; -1 = unknown. */
    long kernelTookNs() {
        synchronized (lock()) {
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
    public boolean changed() {
        final boolean undone;
        synchronized (lock()) {
            undone = control.heartbeat();
        }
        return super.changed() || undone;
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        synchronized (lock()) {
            return apply(disable, disableCount, true) + apply(enable, enableCount, false);
        }
    }

    private int apply(final ContextRef[] contexts, final int count, final boolean disable) {
        if (batch.length < count) {
            batch = new AmdProcess[2 * count];
        }
        final long beganNs = System.nanoTime();
        int failed = 0;
        int n = 0;
        for (int i = 0; i < count; i++) {
            final AmdProcess p = processOf(contexts[i]);
            if (p == null || !p.isAlive() || disable && p.queues().isEmpty() && !control.coversFutureQueues()) {
                contexts[i].result(ContextRef.SwitchResult.ABSENT, beganNs, beganNs);
            } else {
                contexts[i].result(ContextRef.SwitchResult.NONE, beganNs, beganNs);
                batch[n++] = p;
            }
        }
        if (n > 0) {
            control.apply(batch, n, disable);
        }
        final long doneNs = System.nanoTime();
        for (int i = 0; i < count; i++) {
            if (contexts[i].result() == ContextRef.SwitchResult.NONE) {
                failed += settle(contexts[i], disable, beganNs, doneNs) ? 0 : 1;
            }
        }
        return failed;
    }

    private boolean settle(final ContextRef context, final boolean disable, final long beganNs, final long doneNs) {
        final AmdProcess p = processOf(context);
        final int result = p.result();
        if (result == -Errno.ESRCH || result != 0 && !p.isAlive()) {
            context.result(ContextRef.SwitchResult.ABSENT, beganNs, doneNs);
            return true;
        }
        if (result != 0) {
            lastError(context + ": " + (disable ? "hold" : "release") + " by " + control.controlInterface().label()
                + " failed with errno " + -result
                + (p.reason().isEmpty() ? "; the kernel's log may say why" : ": " + p.reason()));
        }
        context.result(result == 0 ? ContextRef.SwitchResult.DONE : ContextRef.SwitchResult.FAILED, beganNs, doneNs);
        return result == 0;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        return false;   // the firmware sets the quanta
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        return control.heldPayload();
    }

    @Override
    protected AmdProcess newProcess(final int pid, final long startTicks) {
        return new AmdProcess(pid, startTicks);
    }

    @Override
    protected void attached(final AmdProcess process) {
        refresh(process);   // the enforcer may disable it next
    }

    @Override
    protected void replaced(final AmdProcess process) {
        control.release(process);
    }

    @Override
    protected void detached(final AmdProcess process) {
        control.release(process);
    }

    @Override
    protected void closed(final Collection<AmdProcess> remaining) {
        control.close();
    }

    @Override
    protected boolean scan(final AmdProcess process) {
        // a hold covers future queues; the other interfaces must be applied again
        return refresh(process) && !control.coversFutureQueues();
    }

    /** True if the queues of a process have changed. */
    private boolean refresh(final AmdProcess p) {
        final List<AmdSysfs.Queue> here = new ArrayList<>();
        if (p.isAlive()) {
            for (final AmdSysfs.Queue q : sysfs.queues(p.pid())) {
                if (q.gpuId() == gpu.gpuId() && (q.compute() || allEngines)) {
                    here.add(q);
                }
            }
        }
        return p.queues(here);
    }

    @Override
    protected Set<Integer> pidsWithWork() {
        return sysfs.pids().stream().filter(pid -> only.contains("") || only.contains(Integer.toString(pid)))
            .filter(pid -> sysfs.queues(pid).stream().anyMatch(q -> q.gpuId() == gpu.gpuId()))
            .collect(Collectors.toSet());
    }
}

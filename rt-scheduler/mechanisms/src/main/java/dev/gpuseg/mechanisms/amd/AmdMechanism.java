/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.Abi;
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
 * Level 3 (2 where waves cannot be saved) on AMD GPUs through KFD, by the best {@link Rung} that this machine has.
 * Compute queues are switched; copies (SDMA) only with {@link Protection#allEngines}, except by {@link Rung#CRIU},
 * which always takes everything.
 *
 * <p>A thread looks at the queues of attached processes every 20 ms (until they have one) to 250 ms, and at KFD's list
 * of processes for those that nobody attached.
 *
 * <p>What an operation costs is unknown: {@link #capabilities} states 0.
 *
 * <p>No AMD hardware: tested against a stand-in only.
 */
public final class AmdMechanism implements Mechanism {
    /** Property: pids, separated by commas; no other process that nobody attached is found. For calibration. */
    public static final String ONLY_PROPERTY = "gpuseg.amd.only";
    private static final int ESRCH = 3;

    private final Object lock = new Object();
    private final Map<Integer, AmdProcess> processes = new HashMap<>();   // under the lock
    private final Set<Integer> announced = new HashSet<>();               // watch thread
    private final AtomicBoolean changed = new AtomicBoolean();
    private final int ownPid = ProcessStatus.pid();
    private final AmdSysfs sysfs;
    private final AmdSysfs.Gpu gpu;
    private final Protection protection;
    private final Set<String> only = Set.of(System.getProperty(ONLY_PROPERTY, "").split(","));
    private final Lever lever;
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
     * @throws MechanismException if no rung is possible here, with the reasons
     */
    public AmdMechanism(final int gpu, final Protection protection) {
        this(gpu, protection, AmdSysfs.ofThisMachine(), null, Integer.getInteger(HoldDevice.WATCHDOG_PROPERTY,
            HoldDevice.WATCHDOG_DEFAULT_MS));
    }

    /** With this rung, or null = the best. */
    AmdMechanism(final int index, final Protection protection, final AmdSysfs sysfs, final Rung wanted,
        final int watchdogMs) {
        this.sysfs = sysfs;
        final List<AmdSysfs.Gpu> gpus = sysfs.gpus();
        if (index >= gpus.size()) {
            throw new MechanismException("GPU " + index + " does not exist; KFD lists " + gpus.size()
                + ", numbered from 0");
        }
        gpu = gpus.get(index);
        final List<AmdSurvey.Step> ladder = AmdSurvey.ladder(sysfs, gpu);
        final AmdSurvey.Step step = wanted == null ? AmdSurvey.chosen(ladder)
            : ladder.stream().filter(s -> s.rung() == wanted && s.possible()).findFirst().orElse(null);
        if (step == null) {
            throw new MechanismException(AmdSurvey.verdict(sysfs).reason()
                + "; the next lower level that works on this GPU is --mechanism gate (level 1)");
        }
        this.protection = protection;
        lever = open(step.rung(), index, watchdogMs);
        capabilities =
            new Capabilities(step.level(), 0, 0, 0, 0, step.rung() == Rung.KFD ? 64 : 1, false, step.rung()
                .granularity());
        watch = new LookThread("gpuseg-amd-watch", this::look, e -> lastError = e, () -> { });
        watch.start();
    }

    private Lever open(final Rung rung, final int index, final int watchdogMs) {
        switch (rung) {
            case KFD:
                final HoldDevice device = HoldDevice.open(gpu.gpuId(), !protection.allEngines(), watchdogMs);
                if (device == null) {
                    throw new MechanismException(HoldDevice.PATH + " cannot be opened any more, or refuses a watchdog "
                        + "of " + watchdogMs + " ms (10 to 60000); run gpuseg doctor");
                }
                return device;
            case DEBUG:
                final int kfd = AmdCalls.open(KfdFile.PATH);
                if (kfd < 0) {
                    throw new MechanismException(KfdFile.PATH + " cannot be opened any more (errno " + -kfd
                        + "); run gpuseg doctor");
                }
                final int events = AmdCalls.open("/dev/null");
                if (events < 0) {
                    AmdCalls.close(kfd);
                    throw new MechanismException("/dev/null cannot be opened (errno " + -events + "); mount /dev");
                }
                return new DebugLever(kfd, events);
            case AGENT:
                if (watchdogMs < AgentLever.PERIOD_MIN_MS || watchdogMs > AgentLever.PERIOD_MAX_MS) {
                    throw new MechanismException("watchdog of " + watchdogMs + " ms for applications' agents; use "
                        + AgentLever.PERIOD_MIN_MS + " to " + AgentLever.PERIOD_MAX_MS);
                }
                return new AgentLever(index, gpu.gpuId(), !protection.allEngines(), watchdogMs);
            default:
                return new CriuLever();
        }
    }

    /**
     * How queues are taken off here.
     *
     * @return the rung in use
     */
    public Rung rung() {
        return lever.rung();
    }

    /** What the last {@link #apply} took by the kernel's own clock, ns; -1 = it does not say. */
    long kernelTookNs() {
        synchronized (lock) {
            return lever.tookNs();
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
            undone = lever.beat();
        }
        return changed.get() && changed.getAndSet(false) || undone;
    }

    @Override
    public void attach(final ContextRef context) {
        final AmdProcess p = new AmdProcess(context.pid(), context.pidStartTicks());
        synchronized (lock) {
            final AmdProcess known = processes.put(p.pid(), p);
            if (known != null) {
                lever.forget(known);
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
            if (p == null || !p.isAlive() || disable && p.queues().isEmpty() && !lever.holdsInAdvance()) {
                contexts[i].outcome(ContextRef.Outcome.ABSENT, beganNs, beganNs);
            } else if (disable && lever.rung() == Rung.CRIU && p.elsewhere()) {
                contexts[i].outcome(ContextRef.Outcome.FAILED, beganNs, beganNs);
                lastError = contexts[i] + ": has queues on another GPU too, which a pause would stop; use one GPU";
                failed++;
            } else {
                contexts[i].outcome(ContextRef.Outcome.NONE, beganNs, beganNs);
                batch[n++] = p;
            }
        }
        if (n > 0) {
            lever.switchAll(batch, n, disable);
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
        if (result == -ESRCH || result != 0 && !p.isAlive()) {
            context.outcome(ContextRef.Outcome.ABSENT, beganNs, doneNs);
            return true;
        }
        if (result != 0) {
            lastError = context + ": " + (disable ? "hold" : "release") + " by " + lever.rung().word()
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
        return lever.heldPayload();
    }

    @Override
    public void detach(final ContextRef context) {
        synchronized (lock) {
            final AmdProcess p = (AmdProcess) context.attachment();
            if (p != null) {
                lever.forget(p);
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
            lever.close();
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
            // a hold covers queues to come; the other levers must be told of them
            if (look(p) && !lever.holdsInAdvance()) {
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

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.Protection;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;

/**
 * Measures how long it takes to disable and enable processes on an AMD GPU, by the interface that the daemon would use
 * here. Disabled processes are written to a held file, so that a watchdog can enable them if this process is killed.
 * Any thread; calls wait for each other.
 */
public final class AmdGauge implements AutoCloseable {
    /**
     * A process that can be disabled.
     *
     * @param pid    its id
     * @param name   of its program
     * @param queues compute queues on this GPU when it was found
     */
    public record Subject(int pid, String name, int queues) {
    }

    /**
     * One change of the GPU.
     *
     * @param beganNs CLOCK_MONOTONIC
     * @param doneNs  the same
     * @param tookNs  duration by the kernel's clock, -1 = unknown
     * @param remaps  runlists that the kernel wrote because of it, -1 = unknown
     * @param lastNs  duration of the kernel's last change as the kernel states it, -1 = unknown
     * @param counted increase of the caller's count meanwhile
     * @param failure why it failed, empty if it did not
     */
    public record Change(long beganNs, long doneNs, long tookNs, long remaps, long lastNs, long counted,
        String failure) {
        /** Duration by the caller's clock; ns. */
        public long ns() {
            return doneNs - beganNs;
        }
    }

    private static final int PERIOD_MS = 1000;
    private static final String[] MODES = {"", "no-hws", "hws", "mes"};
    private static final ContextRef[] NONE = new ContextRef[0];

    private final int gpuId;
    private final String generation;
    private final String mode;
    private final AmdMechanism mechanism;
    private final HeldFile held;
    private final List<Subject> subjects = new ArrayList<>();
    private final List<ContextRef> contexts = new ArrayList<>();
    private int[] entries = new int[0];   // of the held file, by subject
    private boolean closed;

    /**
     * Finds the GPU and the processes to work with.
     *
     * @param index  of the GPU, in the order of KFD's topology nodes
     * @param wanted pids, empty = every process with compute queues on it that is not protected
     * @param held   receives the disabled processes; the caller keeps and closes it
     * @throws MechanismException why it cannot work here, one line
     */
    public AmdGauge(final int index, final List<Integer> wanted, final HeldFile held) {
        this.held = held;
        final AmdSysfs sysfs = AmdSysfs.ofThisMachine();
        final List<AmdSysfs.Gpu> gpus = sysfs.gpus();
        if (gpus.isEmpty()) {
            throw new MechanismException(AmdSurvey.verdict(sysfs).reason());
        }
        mechanism = new AmdMechanism(index, Protection.DEFAULTS, sysfs, null,
            Integer.getInteger(PatchedKfdControl.WATCHDOG_PROPERTY, PERIOD_MS));
        try {
            final AmdSysfs.Gpu gpu = gpus.get(index);
            gpuId = gpu.gpuId();
            generation = gpu.generation();
            final PatchedKfdControl.GpuState state = state();
            // the patched kernel states its mode; /sys only implies it
            mode = state != null && state.mode() > 0 && state.mode() < MODES.length ? MODES[state.mode()]
                : gpu.mode().word();
            find(sysfs, index, wanted);
        } catch (final RuntimeException e) {
            mechanism.close();
            throw e;
        }
    }

    private PatchedKfdControl.GpuState state() {
        return mechanism.controlInterface() == ControlInterface.KFD ? PatchedKfdControl.state(gpuId) : null;
    }

    private void find(final AmdSysfs sysfs, final int index, final List<Integer> wanted) {
        final Set<Integer> pids = new HashSet<>(wanted.isEmpty() ? sysfs.pids() : wanted);
        for (final int pid : pids.stream().sorted().toList()) {
            final long ticks = ProcessStatus.startTicks(pid);
            final int queues = (int) sysfs.queues(pid).stream().filter(q -> q.compute() && q.gpuId() == gpuId).count();
            final boolean usable = ticks != 0 && queues > 0 && !Protection.DEFAULTS.covers(pid)
                && pid != ProcessStatus.pid();
            if (usable) {
                final ContextRef context = new ContextRef(contexts.size(), index, pid, ticks,
                    ProcessStatus.commandName(pid));
                mechanism.attach(context);
                contexts.add(context);
                subjects.add(new Subject(pid, context.name(), queues));
            } else if (!wanted.isEmpty()) {
                throw new MechanismException("process " + pid + " " + (ticks == 0 ? "does not exist"
                    : queues == 0 ? "has no compute queue on GPU " + index
                        : "is protected (display, driver) or this program itself")
                    + "; name one that works on the GPU");
            }
        }
        if (subjects.isEmpty()) {
            throw new MechanismException("no process has compute queues on GPU " + index
                + "; start the applications that will share it, and calibrate while they work");
        }
        entries = new int[contexts.size()];
        Arrays.fill(entries, HeldFile.FULL);
    }

    /** The processes that can be disabled; at least one, by pid. */
    public List<Subject> subjects() {
        return List.copyOf(subjects);
    }

    /** The interface by which queues are disabled here. */
    public ControlInterface controlInterface() {
        return mechanism.controlInterface();
    }

    /** How queues reach the hardware; hws, no-hws or mes. */
    public String mode() {
        return mode;
    }

    /** Processes of one call; at least 1. */
    public int batch() {
        return mechanism.capabilities().batchMax();
    }

    /** The GPU and the interface in use; for reports. */
    public String description() {
        return generation + ", mode " + mode + ", by " + controlInterface().description()
            + (isStandIn() ? "; a stand-in of the driver, no AMD hardware" : "");
    }

    /**
     * Whether a stand-in answers instead of this machine's driver.
     *
     * @return true if the delays that are measured were configured in the stand-in
     */
    public static boolean isStandIn() {
        return AmdCalls.DRIVER.isReplaced() || System.getProperty(AmdSysfs.ROOT_PROPERTY) != null
            || System.getenv("GPUSEG_AMD_STANDIN") != null;
    }

    /** The longest change since the driver was loaded; ns, -1 = unknown. */
    public long kernelMaxNs() {
        final PatchedKfdControl.GpuState state = state();
        return state == null ? -1 : state.maxNs();
    }

    /**
     * Disables or enables processes.
     *
     * @param which   indices of {@link #subjects}
     * @param disable whether to disable them
     * @param count   read right before and right after
     * @return what was measured
     * @throws MechanismException if one of them ended or changed its queues; {@link #close} enables all
     */
    public synchronized Change change(final List<Integer> which, final boolean disable, final LongSupplier count) {
        if (closed) {
            throw new MechanismException("interrupted: all processes are enabled again");
        }
        mechanism.changed();   // as an enforcer does: this re-arms the kernel's watchdog
        final ContextRef[] batch = which.stream().map(contexts::get).toArray(ContextRef[]::new);
        for (final int i : which) {
            if (disable && entries[i] == HeldFile.FULL) {
                final ContextRef c = contexts.get(i);
                entries[i] = held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), c.gpu(), c.contextId(),
                    System.nanoTime(), mechanism.heldPayload(c));
            }
        }
        final PatchedKfdControl.GpuState before = state();
        final long counted = count.getAsLong();
        final int failed = disable ? mechanism.apply(batch, batch.length, NONE, 0)
            : mechanism.apply(NONE, 0, batch, batch.length);
        final long countedAfter = count.getAsLong();
        final long tookNs = mechanism.kernelTookNs();
        final PatchedKfdControl.GpuState after = state();
        for (final ContextRef c : batch) {
            final int queues = ((AmdProcess) c.attachment()).queues().size();
            if (queues > 0 && queues != subjects.get(c.contextId()).queues()) {
                throw new MechanismException("process " + c.pid() + " \"" + c.name() + "\" created or destroyed "
                    + "compute queues during the measurement; calibrate while its queues do not change");
            }
            if (c.result() == ContextRef.SwitchResult.ABSENT) {
                throw new MechanismException("process " + c.pid() + " \"" + c.name() + "\" ended, or has no compute "
                    + "queue any more; let it work until calibrate has finished");
            }
        }
        if (!disable && failed == 0) {
            which.forEach(this::clearEntry);
        }
        return new Change(batch[0].beganNs(), batch[0].doneNs(), tookNs,
            after == null || before == null ? -1 : after.remaps() - before.remaps(),
            after == null ? -1 : after.lastNs(), countedAfter - counted, failed == 0 ? "" : mechanism.lastError());
    }

    private void clearEntry(final int i) {
        if (entries[i] != HeldFile.FULL) {
            held.release(entries[i]);
            entries[i] = HeldFile.FULL;
        }
    }

    /** Enables all processes. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            mechanism.close();
            for (int i = 0; i < entries.length; i++) {
                clearEntry(i);
            }
        }
    }
}

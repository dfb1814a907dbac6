/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;

/** The schedule that a bound describes, in the words of the simulator, so that the two can be compared. */
public enum Model {
    /** The default driver: contexts share the GPU in time slices. */
    TIME_SLICES(Scheduler.RR, CpuPolicy.FP, Hold.WINDOW),
    /** Fixed priorities; a task holds the GPU only while its device part runs, as the published equations assume. */
    DEVICE_PARTS(Scheduler.FP, CpuPolicy.FP, Hold.ABSTRACT),
    /** Fixed priorities; a task holds the GPU from begin to end, as the daemon does it. */
    WINDOWS(Scheduler.FP, CpuPolicy.FP, Hold.WINDOW),
    /** As {@link #WINDOWS}; the holder runs above all other threads of its core. */
    BOOSTED_WINDOWS(Scheduler.FP, CpuPolicy.FP, Hold.BOOST),
    /** Fixed priorities at begin only: a granted window is never preempted. */
    GATED_WINDOWS(Scheduler.GATE, CpuPolicy.FP, Hold.WINDOW),
    /** The GPU is a lock, and its holder runs above all other threads of its core. */
    LOCK(Scheduler.GATE, CpuPolicy.FP, Hold.BOOST),
    /** As {@link #WINDOWS}, by deadline on the GPU and on the cores. */
    DEADLINE_WINDOWS(Scheduler.EDF, CpuPolicy.EDF, Hold.WINDOW),
    /** As {@link #WINDOWS}, by deadline on the GPU, by fixed priority on the cores. */
    DEADLINE_WINDOWS_FIXED_CORES(Scheduler.EDF, CpuPolicy.FP, Hold.WINDOW),
    /** As {@link #DEADLINE_WINDOWS_FIXED_CORES}; boosted as in {@link #BOOSTED_WINDOWS}. */
    BOOSTED_DEADLINE_WINDOWS(Scheduler.EDF, CpuPolicy.FP, Hold.BOOST),
    /** Windows inside of time partitions, cores by fixed priority. */
    PARTITIONS(Scheduler.PARTITIONS, CpuPolicy.FP, Hold.WINDOW),
    /** Windows inside of time partitions, cores by deadline. */
    PARTITIONS_DEADLINE_CORES(Scheduler.PARTITIONS, CpuPolicy.EDF, Hold.WINDOW),
    /** Nobody holds the GPU: its contexts have time slices of their own, and best effort takes turns. */
    TURNS(Scheduler.RR, CpuPolicy.FP, Hold.TURNS);

    private final Scheduler scheduler;
    private final CpuPolicy cores;
    private final Hold hold;

    Model(final Scheduler scheduler, final CpuPolicy cores, final Hold hold) {
        this.scheduler = scheduler;
        this.cores = cores;
        this.hold = hold;
    }

    /** What decides about the GPU in the simulator. */
    public Scheduler scheduler() {
        return scheduler;
    }

    /** How each core of the simulator picks its thread. */
    public CpuPolicy cores() {
        return cores;
    }

    /** Which part of a GPU segment holds the GPU in the simulator. */
    public Hold hold() {
        return hold;
    }

    /**
     * Whether a granted segment can lose the GPU to another one.
     *
     * @return false where segments share the GPU or keep it to their end
     */
    public boolean preempts() {
        return this != TIME_SLICES && this != GATED_WINDOWS && this != LOCK;
    }

    /**
     * Whether the GPU is preempted by fixed priorities, so that a search for GPU priorities has something to search.
     *
     * @return true for the models of the {@code gcaps} analyses
     */
    public boolean hasGpuPriorities() {
        return this == DEVICE_PARTS || this == WINDOWS || this == BOOSTED_WINDOWS;
    }

    /** Whether the order of tasks on a core and on the GPU must agree. */
    boolean needsOneOrder() {
        return hasGpuPriorities() || this == GATED_WINDOWS;
    }

    /** Whether contexts are disabled to preempt a task; a gate or a lock does not care which process a task is in. */
    boolean disablesContexts() {
        return this != GATED_WINDOWS && this != LOCK;
    }

    /** Whether a thread can spin for a GPU whose holder waits for the core of the thread. */
    boolean spinsForHolder(final WaitMode mode) {
        return mode == WaitMode.BUSY && (this == WINDOWS || this == BOOSTED_WINDOWS);
    }

    /** Whether the GPU goes by the deadlines of jobs. */
    boolean usesDeadlines() {
        return scheduler == Scheduler.EDF || this == PARTITIONS_DEADLINE_CORES;
    }

    /** How this scheduler differs from a model that is not its own. */
    String differs() {
        return switch (this) {
            case TIME_SLICES -> "this scheduler does not share the GPU in time slices";
            case DEVICE_PARTS -> "this scheduler holds the GPU for whole windows, host parts included, not for device "
                + "parts alone";
            case LOCK -> "this scheduler is no lock protocol: windows are preempted, or a gate without boosts grants "
                + "them";
            default -> "";
        };
    }

    /**
     * Refuses a set for which the bounds of this model would mean nothing.
     *
     * @param set  what is to be analysed
     * @param mode what threads do while the GPU works for them
     * @throws InvalidModelException naming the tasks, their values and the remedy
     */
    void requireHypotheses(final PreparedSet set, final WaitMode mode) {
        final String conflict = conflict(set, mode);
        if (!conflict.isEmpty()) {
            throw new InvalidModelException(conflict);
        }
    }

    /**
     * Whether the bounds contain the waiting for other tasks of the same process (theorem 10 of {@code
     * docs/processes.md}). Only what is proven says yes.
     */
    boolean containsProcesses(final WaitMode mode) {
        return mode == WaitMode.SUSPEND
            && (this == WINDOWS || this == DEADLINE_WINDOWS || this == DEADLINE_WINDOWS_FIXED_CORES);
    }

    /** How a set breaks M10; empty if it keeps it. */
    String processConflict(final PreparedSet set, final WaitMode mode) {
        // of windows inside of partitions nothing is proven
        return set.processConflict(containsProcesses(mode) && set.supply == null, mode == WaitMode.BUSY
            ? "a thread that spins for the GPU can keep the core from the lower one, which has the GPU, without end"
            : "this analysis has no bound for that (gcaps-window-suspend and edf-*-suspend have one)");
    }

    /** Why the bounds of this model would mean nothing for a set; empty if they mean something. */
    String conflict(final PreparedSet set, final WaitMode mode) {
        String conflict = needsOneOrder() ? set.orderConflict() : "";
        if (conflict.isEmpty() && disablesContexts()) {
            conflict = processConflict(set, mode);
        }
        if (conflict.isEmpty() && (this == TURNS || this == GATED_WINDOWS) && !set.space.isNone()) {
            conflict = "platform: space is for a daemon with --space, which lets begins take no turns and has no gate; "
                + "leave space out, or choose gcaps-window-suspend or edf-edf-suspend";
        }
        // of a set whose threads sleep nothing is claimed for threads that spin, and nothing refused
        if (conflict.isEmpty() && spinsForHolder(mode) && set.taskSet().mode() == WaitMode.BUSY) {
            conflict = set.spinConflict();
        }
        return conflict;
    }
}

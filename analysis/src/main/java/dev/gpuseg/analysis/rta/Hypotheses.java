/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.core.BestEffortTurns;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** Checks the hypotheses of an analysis one by one against a task set. Stateless. */
public final class Hypotheses {
    /** What is known of a hypothesis. */
    public enum Status {
        /** The set keeps it. */
        HOLDS,
        /** It is checked for each task set; nothing is known without one. */
        BY_SET,
        /** The daemon or a recording shows when it is broken; the detail names the counter or the command. */
        WATCHED,
        /** The integrator sees to it; the detail names what shows it. */
        TO_ENSURE,
        /** The programs decide it when they open their tasks; the set does not say it. */
        NOT_STATED,
        /** Neither set nor daemon can keep it or check it. */
        NOT_CHECKED,
        /** The set or the scheduler breaks it. */
        FAILS;

        /** The word in reports; lower case. */
        public String word() {
            return name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    /**
     * One hypothesis and what is known of it.
     *
     * @param hypothesis which
     * @param status     what is known
     * @param detail     why it fails, or what must be done for it to hold; may be empty
     */
    public record Finding(Hypothesis hypothesis, Status status, String detail) {
        /** Whether a positive verdict is conditional on it. */
        public boolean isOpen() {
            return status == Status.NOT_STATED || status == Status.NOT_CHECKED;
        }
    }

    /** No failure in n trials: at most 3/n, with a confidence of 95 %; here in per cent. */
    private static final double RULE_OF_THREE = 300;

    private Hypotheses() {
    }

    /**
     * All hypotheses of an analysis.
     *
     * @param analysis the analysis
     * @param set      the set that it is about; null: what is to be known without one
     * @param boosted  whether all real-time tasks are known to be open with a boost
     * @return in the order of {@link Hypothesis}
     */
    public static List<Finding> of(final AnalysisDescription analysis, final TaskSet set, final boolean boosted) {
        final Model model = analysis.model();
        final List<Finding> all = new ArrayList<>();
        for (final Hypothesis hypothesis : Hypothesis.values()) {
            if (concerns(hypothesis, analysis, set)) {
                all.add(find(hypothesis, analysis, model, set, boosted));
            }
        }
        return all;
    }

    /**
     * Why an analysis refuses a set: the hypothesis that the set breaks.
     *
     * @param analysis the analysis
     * @param set      the set
     * @return one line with both tasks, their values and the remedy; empty if it refuses nothing
     */
    public static String conflict(final AnalysisDescription analysis, final TaskSet set) {
        return analysis.model().conflict(prepared(set, analysis), analysis.mode());
    }

    private static boolean concerns(final Hypothesis hypothesis, final AnalysisDescription analysis,
        final TaskSet set) {
        final Model model = analysis.model();
        return switch (hypothesis) {
            case W1 -> set != null && WeaklyHard.concerns(set);
            case B1, B2, B3 -> set != null && !set.platform().space().isNone();
            case M1, M3 -> model != Model.TURNS;
            case U1, U2, U3, U4, U5, U6 -> model == Model.TURNS;
            case M2 -> model.disablesContexts() && model != Model.TURNS;
            case M10 -> model.disablesContexts();
            case M6 -> model.needsOneOrder() || model == Model.PARTITIONS;
            case M8 -> model == Model.BOOSTED_WINDOWS || model == Model.BOOSTED_DEADLINE_WINDOWS;
            case M9 -> true;
            case G4 -> model == Model.GATED_WINDOWS;
            case N1 -> model.disablesContexts();
            case E2 -> model.cores() == CpuPolicy.EDF;
            case E1 -> model.usesDeadlines();
            case E3 -> analysis.mode() == WaitMode.BUSY && model.cores() == CpuPolicy.EDF;
            case P1 -> model == Model.PARTITIONS || model == Model.PARTITIONS_DEADLINE_CORES;
            default -> true;
        };
    }

    private static Finding find(final Hypothesis hypothesis, final AnalysisDescription analysis, final Model model,
        final TaskSet set, final boolean boosted) {
        return switch (hypothesis) {
            case M1 -> analysis.claim() == Analysis.Claim.MODEL_ONLY || analysis.claim() == Analysis.Claim.COMPARISON
                ? new Finding(hypothesis, Status.FAILS, model.differs())
                : new Finding(hypothesis, Status.WATCHED, Evidence.of(hypothesis));
            case M2 -> new Finding(hypothesis, Status.WATCHED, epsilon(set));
            case M5 -> waiting(analysis, set);
            case M6 -> check(hypothesis, set == null ? null : prepared(set, analysis).orderConflict());
            case M8 -> boost(analysis, set, boosted);
            case M10 -> contexts(analysis, set);
            case B1 -> new Finding(hypothesis, Status.NOT_CHECKED, "no single segment becomes more than "
                + set.platform().space().slowdownPercent() + "% longer beside other work (space: slowdown); no daemon "
                + "keeps it below that");
            case B2 -> new Finding(hypothesis, Status.NOT_CHECKED, "what is in flight ends within "
                + Durations.format(set.platform().space().inFlightNs()) + " (space: in_flight); a longer kernel of a "
                + "program inside is not cut");
            case B3 -> space(set);
            case M12 -> set != null && set.tasks().stream().allMatch(task -> task.blockingNs() == 0)
                ? new Finding(hypothesis, Status.HOLDS, "") : ensure(hypothesis);
            case N1 -> newcomers(set);
            case K1 -> clock(set);
            case T1 -> CoreThrottling.find(set, analysis.mode());
            case S1 -> new Finding(hypothesis, Status.TO_ENSURE, stalls(set) + Evidence.of(hypothesis));
            case E2 -> deadlineCores(analysis, set);
            case U1 -> set == null || set.platform().optimistic() ? ensure(hypothesis) : new Finding(hypothesis,
                Status.NOT_STATED, "no real-time task waits in its begin (optimistic: true)");
            case U2 -> turnsOfWait(set);
            case U3 -> set == null || set.platform().limits().turns() == null
                || set.platform().limits().turns().sliceNs() >= BestEffortTurns.SHORT_SLICE_NS ? ensure(hypothesis)
                : new Finding(hypothesis, Status.FAILS, "the daemon gives best effort slices of "
                + Durations.format(BestEffortTurns.SHORT_SLICE_NS) + ", turns says "
                + Durations.format(set.platform().limits().turns().sliceNs()));
            case U5 -> neverDisabled(set);
            case U6 -> new Finding(hypothesis, Status.NOT_CHECKED, Evidence.of(hypothesis));
            default -> Evidence.isWatched(hypothesis)
                ? new Finding(hypothesis, Status.WATCHED, Evidence.of(hypothesis)) : ensure(hypothesis);
        };
    }

    private static Finding ensure(final Hypothesis hypothesis) {
        return new Finding(hypothesis, Status.TO_ENSURE, Evidence.of(hypothesis));
    }

    /** What a maximum of samples can say of the next update. */
    private static String epsilon(final TaskSet set) {
        final PlatformLimits limits = set == null ? PlatformLimits.NONE : set.platform().limits();
        final StringBuilder text = new StringBuilder(Evidence.of(Hypothesis.M2));
        if (limits.contexts() > 0) {
            text.append("; epsilon was measured with ").append(limits.contexts()).append(" contexts");
        }
        if (limits.samples() > 0) {
            text.append(limits.contexts() > 0 ? "" : "; epsilon was measured").append(" in ").append(limits.samples())
                .append(" updates, ").append(atMost(limits.samples()));
        }
        return text.toString();
    }

    private static String atMost(final int samples) {
        return "so one is longer with a probability of at most "
            + String.format(Locale.ROOT, "%.2f %%", RULE_OF_THREE / samples) + " (95 % confidence)";
    }

    /** A measured wait says what the device did, of as many waits as there were. No call tells the daemon of one. */
    private static Finding turnsOfWait(final TaskSet set) {
        final TurnLimits turns = set == null ? null : set.platform().limits().turns();
        if (turns == null || !turns.isMeasured()) {
            return new Finding(Hypothesis.U2, Status.NOT_CHECKED, Evidence.of(Hypothesis.U2));
        }
        return new Finding(Hypothesis.U2, Status.NOT_CHECKED, "a wait for best effort is at most "
            + Durations.format(turns.waitNs()) + ", measured with " + turns.contexts()
            + (turns.contexts() == 1 ? " best-effort context" : " best-effort contexts")
            + (turns.samples() > 0 ? " in " + turns.samples() + " waits, " + atMost(turns.samples()) : "")
            + "; a longer one is seen only where a job breaks its bound (counter bounds_broken)");
    }

    /** A segment that begins beside another's, since that lasts too long, takes the reserve with it. */
    private static Finding space(final TaskSet set) {
        final List<Task> windows = set.tasks().stream().filter(task -> !task.bestEffort()
            && task.reservePercent() == 0 && task.gpuSegmentCount() > 0).map(task -> task.slowed(set.platform()))
            .toList();
        final Task longest = windows.stream().max(Comparator.comparingLong(Task::longestDeviceNs)).orElse(null);
        return set.platform().space().reservePercent() > 0 && windows.size() > 1
            && longest.longestDeviceNs() > SpaceLimits.DRAIN_NS
            ? new Finding(Hypothesis.B3, Status.FAILS, "segments of task \"" + longest.name() + "\" may hold the GPU "
                + "for " + Durations.format(longest.longestDeviceNs()) + ", and others wait for "
                + Durations.format(SpaceLimits.DRAIN_NS) + " at most, then both take the reserve; make them shorter")
            : new Finding(Hypothesis.B3, Status.NOT_CHECKED, "nothing runs on the GPU outside of the space");
    }

    private static Finding newcomers(final TaskSet set) {
        if (set == null || set.tasks().stream().noneMatch(Hypotheses::usesGpu)) {
            return new Finding(Hypothesis.N1, set == null ? Status.BY_SET : Status.HOLDS, "");
        }
        final PlatformLimits limits = set.platform().limits();
        if (limits.newcomerNs() > 0) {
            return new Finding(Hypothesis.N1, Status.WATCHED, "the bounds contain one that runs for "
                + Durations.format(limits.newcomerNs()) + " every " + Durations.format(limits.newcomerPeriodNs()) + "; "
                + Evidence.of(Hypothesis.N1));
        }
        return limits.withoutNewcomers() ? new Finding(Hypothesis.N1, Status.WATCHED, Evidence.of(Hypothesis.N1))
            : new Finding(Hypothesis.N1, Status.NOT_STATED, "no process makes a context of the GPU while a real-time "
            + "task is open (newcomers: none, or newcomers: {delay: 60ms, period: 2s})");
    }

    /** Under policy fp contexts of lower real-time tasks are disabled, and with several GPUs nothing is by turns. */
    private static Finding neverDisabled(final TaskSet set) {
        if (set == null) {
            return new Finding(Hypothesis.U5, Status.BY_SET, "");
        }
        if (set.platform().gpus().size() > 1) {
            return new Finding(Hypothesis.U5, Status.FAILS, "with " + set.platform().gpus().size() + " GPUs the daemon "
                + "gives no turns");
        }
        final TurnLimits turns = set.platform().limits().turns();
        Task first = null;
        for (final Task task : set.tasks()) {
            if (!task.bestEffort() && usesGpu(task)) {
                if (first != null && turns != null && turns.together()) {
                    return new Finding(Hypothesis.U5, Status.TO_ENSURE, "tasks share the GPU by slices (turns: "
                        + "together), which admission gives by this file, whatever is open; "
                        + Evidence.of(Hypothesis.U5));
                }
                if (first != null) {
                    return new Finding(Hypothesis.U5, Status.FAILS, "tasks \"" + first.name() + "\" and \""
                        + task.name() + "\" use one GPU, and policy fp disables the context of the lower one by calls; "
                        + "write turns: {…, together: true}, and run policy classes with class_width: 99");
                }
                first = task;
            }
        }
        return ensure(Hypothesis.U5);
    }

    private static Finding clock(final TaskSet set) {
        if (set == null || set.tasks().stream().noneMatch(Hypotheses::usesGpu)) {
            return new Finding(Hypothesis.K1, set == null ? Status.BY_SET : Status.HOLDS, "");
        }
        return set.platform().limits().clockPermille() > 0 ? ensure(Hypothesis.K1)
            : new Finding(Hypothesis.K1, Status.NOT_STATED, "device parts were measured at the lowest clock, beside "
            + "the heaviest load (clock: 1, or by how much they are longer there: clock: 1.53)");
    }

    /** The kernel's class for deadlines gives a thread that wakes a new deadline, if its budget is too fresh. */
    private static Finding deadlineCores(final AnalysisDescription analysis, final TaskSet set) {
        if (set == null) {
            return new Finding(Hypothesis.E2, Status.BY_SET, "");
        }
        for (final Task task : set.tasks()) {
            if (!task.bestEffort() && (analysis.mode() == WaitMode.SUSPEND && usesGpu(task) || task.blockingNs() > 0)) {
                return new Finding(Hypothesis.E2, Status.FAILS, "the thread of task \"" + task.name() + "\" sleeps "
                    + "within its jobs, and SCHED_DEADLINE postpones the deadline of a thread that wakes; order the "
                    + "cores by priority (edf-fp-suspend, core-order: fp)");
            }
        }
        return ensure(Hypothesis.E2);
    }

    private static PreparedSet prepared(final TaskSet set, final AnalysisDescription analysis) {
        return analysis.model().cores() != CpuPolicy.EDF ? PreparedSet.of(set) : PreparedSet.withoutPriorities(set);
    }

    private static Finding check(final Hypothesis hypothesis, final String conflict) {
        return conflict == null ? new Finding(hypothesis, Status.BY_SET, "")
            : new Finding(hypothesis, conflict.isEmpty() ? Status.HOLDS : Status.FAILS, conflict);
    }

    private static Finding contexts(final AnalysisDescription analysis, final TaskSet set) {
        if (set == null) {
            return check(Hypothesis.M10, null);
        }
        final PreparedSet s = prepared(set, analysis);
        final String conflict = analysis.model().processConflict(s, analysis.mode());
        final String shared = s.sharedProcesses();
        return !conflict.isEmpty() || shared.isEmpty() ? check(Hypothesis.M10, conflict)
            : new Finding(Hypothesis.M10, Status.TO_ENSURE, "the bounds contain the waiting inside of process " + shared
            + "; all its tasks must be open before one of them begins a window");
    }

    private static Finding waiting(final AnalysisDescription analysis, final TaskSet set) {
        if (set == null || set.tasks().stream().allMatch(task -> task.gpuSegmentCount() == 0)) {
            return set == null ? new Finding(Hypothesis.M5, Status.BY_SET, "")
                : new Finding(Hypothesis.M5, Status.HOLDS, "");
        }
        if (set.mode() != analysis.mode()) {
            return new Finding(Hypothesis.M5, Status.FAILS, "the set has mode: " + set.mode().word()
                + ", the analysis is for mode: " + analysis.mode().word());
        }
        final String conflict = analysis.model().spinsForHolder(analysis.mode())
            ? prepared(set, analysis).spinConflict() : "";
        return conflict.isEmpty() ? ensure(Hypothesis.M5)
            : new Finding(Hypothesis.M5, Status.FAILS, conflict);
    }

    private static Finding boost(final AnalysisDescription analysis, final TaskSet set, final boolean boosted) {
        if (analysis.mode() == WaitMode.BUSY) {
            return new Finding(Hypothesis.M8, Status.FAILS, "a boost of spinning threads would have to last from the "
                + "completion of the update to the loss of the GPU; that of libgpuseg lasts from begin to end");
        }
        if (boosted) {
            return new Finding(Hypothesis.M8, Status.HOLDS, "");
        }
        final BoostPriorities chosen = set == null ? null : BoostPriorities.of(set);
        return chosen != null && !chosen.conflict().isEmpty()
            ? new Finding(Hypothesis.M8, Status.FAILS, chosen.conflict())
            : new Finding(Hypothesis.M8, Status.NOT_STATED, "all real-time tasks with windows must be opened with "
                + "boost_priority" + (chosen == null ? "" : " " + chosen.text())
                + "; the task-set file does not say it, admission checks it");
    }

    private static String stalls(final TaskSet set) {
        if (set == null) {
            return "";
        }
        for (final Gpu gpu : set.platform().gpus()) {
            if (gpu.stallNs() > 0) {
                return "the declared stops are in the bounds; ";
            }
        }
        return set.tasks().stream().anyMatch(Hypotheses::usesGpu) ? "no stops are declared; " : "";
    }

    private static boolean usesGpu(final Task task) {
        return task.gpuSegmentCount() > 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.daemon.conductor.TaskOpen;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * From what a task asks for to what the analysis works with. A registration does not carry cores and segments: they
 * come from the task-set file, by name; without an entry there, from the budget.
 */
final class TaskModels {
    private final Map<String, Task> declared = new HashMap<>();
    private final Platform platform;

    TaskModels(final AdmissionSettings settings) {
        platform = settings.declared() == null ? null : settings.declared().platform();
        if (settings.declared() != null) {
            for (final Task task : settings.declared().tasks()) {
                declared.put(task.name(), task);
            }
        }
    }

    /** The entry of the file, or null. */
    Task declared(final String name) {
        return declared.get(name);
    }

    /**
     * Where the model of a request comes from.
     *
     * @param request     what is asked for
     * @param bestEffortNeedsModel true behind a gate, where best-effort windows delay real-time ones
     * @return the source
     */
    Admitted.Source source(final TaskOpen request, final boolean bestEffortNeedsModel) {
        if (declared.containsKey(request.name())) {
            return Admitted.Source.DECLARED;
        }
        if (request.priority() == 0 && !bestEffortNeedsModel) {
            return Admitted.Source.BEST_EFFORT;
        }
        if (request.overrun() == OverrunAction.NOTIFY || request.boost() > 0) {
            return Admitted.Source.UNKNOWN;   // nothing takes the GPU away after the budget, or the core at all
        }
        return request.budgetNs() > 0 && request.periodNs() > 0 && request.deadlineNs() <= request.periodNs()
            ? Admitted.Source.BUDGET : Admitted.Source.UNKNOWN;
    }

    /** Why a request of unknown source has no model, in one line. */
    static String unknown(final TaskOpen request, final boolean fileExists) {
        final String who = "task \"" + request.name() + "\" is not " + (fileExists ? "in the task-set file"
            : "declared (no --taskset)");
        if (request.boost() > 0) {
            return who + " and has a boost (" + request.boost() + "), which keeps its core and is bounded by nothing; "
                + "declare its times, or open it without a boost";
        }
        if (request.overrun() == OverrunAction.NOTIFY) {
            return who + " and its overrun action is notify, so that its budget bounds nothing; declare it, or choose "
                + "demote, suspend or skip-next";
        }
        return who + " and has period " + Durations.format(request.periodNs()) + ", budget "
            + Durations.format(request.budgetNs()) + ", deadline " + Durations.format(request.deadlineNs())
            + "; declare it, or give a period, a budget, and a deadline of at most the period";
    }

    /**
     * What is different between a request and its entry in the file.
     *
     * @param request      what is asked for
     * @param byPriority   whether priorities matter to the analysis
     * @param byDeadline   whether the scheduler goes by the deadline that was asked for
     * @return one line, or null if they agree
     */
    String mismatch(final TaskOpen request, final boolean byPriority, final boolean byDeadline) {
        final Task task = declared.get(request.name());
        final String who = "task \"" + request.name() + "\": ";
        if (task.gpuSegmentCount() == 0) {
            return who + "the task-set file gives it no GPU segment; add {gpu: {host: …, device: …}}";
        }
        if (task.bestEffort() != (request.priority() == 0)) {
            return who + "priority is " + request.priority() + ", the task-set file says "
                + (task.bestEffort() ? "best effort" : "real time") + "; make them agree";
        }
        if (byPriority && task.priority() != request.priority()) {
            return different(who, "priority", request.priority(), task.priority());
        }
        if (byPriority && task.gpuPriority() != request.gpuPriority()) {
            return different(who, "gpu_priority", request.gpuPriority(), task.gpuPriority());
        }
        if (task.gpu() != request.gpu()) {
            return different(who, "gpu", request.gpu(), task.gpu());
        }
        // nothing is proven of best effort, so its period is no assumption of any bound
        if (!task.bestEffort() && request.periodNs() > 0 && request.periodNs() != task.periodNs()) {
            return different(who, "period", Durations.format(request.periodNs()), Durations.format(task.periodNs()));
        }
        if (!task.bestEffort() && (request.deadlineNs() > 0 || byDeadline)
            && request.deadlineNs() != task.deadlineNs()) {
            return different(who, "deadline", Durations.format(request.deadlineNs()),
                Durations.format(task.deadlineNs()));
        }
        for (final Segment segment : task.segments()) {
            if (segment instanceof Segment.Gpu window && request.budgetNs() > 0
                && request.budgetNs() < window.slowed(platform).totalNs()) {
                return who + "budget is " + Durations.format(request.budgetNs()) + ", less than its declared window of "
                    + Durations.format(window.slowed(platform).totalNs())
                    + (platform.space().slowdownPercent() == 0 ? ""
                    : " (with a slowdown of " + platform.space().slowdownPercent() + "%)")
                    + "; raise the budget";
            }
        }
        return null;
    }

    private static String different(final String who, final String what, final Object asked, final Object declared) {
        return who + what + " is " + asked + ", the task-set file says " + declared + "; make them agree";
    }

    /**
     * The model of a task that is not in the file: one window per period that may need its core and the GPU all the
     * time that the budget allows. Sound as long as it begins one segment per period, uses its core for nothing else at
     * its priority, and sleeps while it waits: the daemon takes the GPU away when the budget is used up.
     *
     * @param task of source {@link Admitted.Source#BUDGET}
     * @param name in the set
     * @return a task without a core
     */
    static Task ofBudget(final Admitted task, final String name) {
        final TaskOpen request = task.request();
        final long budgetNs = request.budgetNs();
        final boolean bestEffort = !task.isRealTime();
        return new Task(name, 0, request.gpu(), request.periodNs(),
            request.deadlineNs() == 0 ? request.periodNs() : request.deadlineNs(), 0, 0, task.priority(),
            task.gpuPriority(), bestEffort, List.of(new Segment.Gpu(budgetNs, budgetNs, budgetNs)));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.daemon.enforce.Enforcement;
import dev.gpuseg.ipc.Abi;

/** What {@code status} shows of the dispatcher's state. Dispatcher thread only; allocates. */
public final class StatusSnapshot {
    private static final double MEDIAN = 50;
    private static final double HIGH = 99;

    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final ClientRegistry clients;
    private final ProcessRegistry processes;
    private final TaskTable tasks;
    private final Turns turns;

    StatusSnapshot(final SegmentScheduler scheduler, final DesiredStates desired, final ClientRegistry clients,
        final ProcessRegistry processes, final TaskTable tasks, final Turns turns) {
        this.scheduler = scheduler;
        this.desired = desired;
        this.clients = clients;
        this.processes = processes;
        this.tasks = tasks;
        this.turns = turns;
    }

    /**
     * Policy, GPUs with their contexts, clients and tasks; takes some tens of microseconds.
     *
     * @param view whose clients and tasks
     */
    public ObjectNode take(final StatusView view) {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("policy", scheduler.policy().name());
        for (int g = 0; g < desired.gpus(); g++) {
            put(root.withArray("gpus").addObject(), g);
        }
        clients.forEach(entry -> {
            if (!view.covers(entry.client.uid())) {
                return;
            }
            final ObjectNode client = root.withArray("clients").addObject();
            client.put("client", entry.client.clientId());
            client.put("pid", entry.client.pid());
            client.put("uid", entry.client.uid());
            client.put("name", entry.client.name());
            client.put("poisoned", entry.poisoned);
        });
        tasks.forEach(task -> {
            if (view.covers(task.client.client.uid())) {
                root.withArray("tasks").add(withState(task));
            }
        });
        return root;
    }

    private void put(final ObjectNode gpu, final int g) {
        final Enforcement enforcer = desired.enforcer(g);
        gpu.put("gpu", g);
        gpu.put("running_task", scheduler.runningTask(g));
        gpu.put("begun_segments", scheduler.begunCount(g));
        gpu.put("enforcement_incomplete", enforcer.isIncomplete());
        gpu.put("best_effort_together", turns.isTogether(g));
        processes.forEach(process -> {
            final ObjectNode context = gpu.withArray("contexts").addObject();
            context.put("context", process.contexts[g]);
            context.put("pid", process.pid);
            context.put("name", process.name);
            context.put("registered", process.clients > 0);
            context.put("idle", process.isIdle);
            context.put("wanted_on", scheduler.contextDesired(process.contexts[g]));
            final int units = enforcer.mechanism().units(process.refs[g]);
            if (units >= 0) {
                context.put("units", units);
            }
            final String remark = enforcer.mechanism().remark(process.refs[g]);
            if (!remark.isEmpty()) {
                context.put("remark", remark);
            }
        });
    }

    private ObjectNode withState(final TaskEntry task) {
        final ObjectNode node = describe(task);
        node.put("state", SegmentState.name(scheduler.state(task.id)));
        node.put("demoted", scheduler.isDemoted(task.id));
        node.put("spent", scheduler.isSpent(task.id));
        node.put("suspended", scheduler.isSuspended(task.id));
        node.put("overrun", scheduler.overrunAction(task.id).label());
        node.put("pregranted", scheduler.isPregranted(task.id));
        node.put("segments", task.segments);
        node.put("preemptions", task.preemptions);
        node.put("anticipated", task.anticipated);
        node.put("anticipations_wasted", task.anticipationsWasted);
        node.put("anticipations_over_budget", task.anticipationsOverBudget);
        node.put("kept_free_ns", task.reservedNs);
        node.put("overruns", task.overruns);
        node.put("bounds_broken", task.boundsBroken);
        if (task.slot.kernelClass() != Abi.KERNELS_UNKNOWN) {
            final ObjectNode kernels = node.putObject("kernels");   // what its program says
            kernels.put("class", className(task.slot.kernelClass()));
            kernels.put("longest_ns", task.slot.kernelNs());
            kernels.put("percent", task.slot.kernelPercent());
        }
        node.put("jobs", task.account.jobs());
        node.put("job_misses", task.account.misses());
        node.put("skipped", task.account.skipped());
        node.put("overdue", task.account.isOverdue());
        if (task.account.jobs() > 0) {
            final ObjectNode response = node.putObject("response_ns");
            response.put("p50", task.responses.percentileNs(MEDIAN));
            response.put("p99", task.responses.percentileNs(HIGH));
            response.put("max", task.responses.maxNs());
        }
        return node;
    }

    private static String className(final int kernelClass) {
        return switch (kernelClass) {
            case Abi.KERNELS_SMALL -> "small";
            case Abi.KERNELS_FILL -> "fill";
            case Abi.KERNELS_LONG -> "long";
            default -> "unknown";
        };
    }

    /** What a task is, as it was opened and changed; the journal's TASK_OPEN has the same. */
    static ObjectNode describe(final TaskEntry task) {
        final TaskOpen request = task.request;
        final ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("id", task.id);
        node.put("name", request.name());
        node.put("priority", task.priority);
        node.put("gpu_priority", task.gpuPriority);
        node.put("gpu", request.gpu());
        node.put("context", task.contextId);
        node.put("client", request.clientId());
        node.put("pid", task.client.client.pid());
        node.put("period_ns", request.periodNs());
        node.put("deadline_ns", request.deadlineNs());
        node.put("budget_ns", request.budgetNs());
        node.put("window_ns", request.windowNs());
        node.put("partition", request.partition());
        node.put("on_overrun", request.overrun().label());
        node.put("optimistic", request.optimistic());
        node.put("boost", request.boost());
        node.put("share", request.share());
        node.put("share_account", task.shareAccount);
        node.put("reserve", request.reserve());
        return node;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.ipc.Abi;
import org.agrona.concurrent.UnsafeBuffer;

/** What a request to open a task must satisfy before anybody else looks at it. */
final class TaskRules {
    private static final long DURATION_MAX_NS = 3_600_000_000_000L;
    private static final long NS_PER_US = 1_000;
    private static final int FLAGS = Abi.TASK_NO_OPTIMISTIC | Abi.TASK_BOOST_MASK | Abi.TASK_RESERVE_MASK;
    private static final int RESERVE_MAX = 100;

    private TaskRules() {
    }

    /**
     * Judges a message of the right size.
     *
     * @param data   the message
     * @param name   its name as parsed, null if that was not possible
     * @param owner  the client
     * @param config settings
     * @return null if it is acceptable, else one line: thing, value, remedy
     */
    static String refuse(final UnsafeBuffer data, final String name, final RegisteredClient owner,
        final ConductorConfig config) {
        if (name == null) {
            return "the task's name must be 1..63 bytes of printable UTF-8; choose another";
        }
        final String task = "task \"" + name + "\": ";
        final int flags = data.getInt(Abi.MsgTaskOpen.FLAGS_OFFSET);
        final long priority = data.getInt(Abi.MsgTaskOpen.PRIORITY_OFFSET) & 0xffffffffL;
        final long gpuPriority = data.getInt(Abi.MsgTaskOpen.GPU_PRIORITY_OFFSET) & 0xffffffffL;
        final long gpu = data.getInt(Abi.MsgTaskOpen.GPU_OFFSET) & 0xffffffffL;
        if ((flags & ~FLAGS) != 0) {
            return task + "flags are 0x" + Integer.toHexString(flags) + "; this daemon knows only 0x"
                + Integer.toHexString(FLAGS);
        }
        final int boost = boost(data);
        if (boost > Abi.PRIORITY_MAX) {
            return task + "boost is " + boost + "; use a SCHED_FIFO priority of 1..99, or 0 for none";
        }
        if (boost > 0 && priority == 0) {
            return task + "boost is " + boost + " but the task is best effort; give it a priority, or no boost";
        }
        final int reserve = reserve(data);
        if (reserve > RESERVE_MAX) {
            return task + "reserve is " + reserve + " %; use 1..100, or 0 for none";
        }
        if (reserve > 0 && priority == 0) {
            return task + "reserve is " + reserve + " % but the task is best effort; give it a priority, or no reserve";
        }
        final int overrun = data.getByte(Abi.MsgTaskOpen.OVERRUN_OFFSET) & 0xff;
        if (overrun > Abi.OVERRUN_SKIP_NEXT) {
            return task + "overrun is " + overrun + "; use 1 (notify), 2 (demote), 3 (suspend), 4 (skip-next), or 0 "
                + "for the default";
        }
        final int weight = weight(data);
        if (weight > Abi.WEIGHT_MAX) {
            return task + "weight is " + weight + "; use 1.." + Abi.WEIGHT_MAX + ", or 0 to leave it as it is";
        }
        if (priority > Abi.PRIORITY_MAX) {
            return task + "priority is " + priority + "; use 1..99, 99 highest, or 0 for best effort";
        }
        if (gpuPriority > Abi.PRIORITY_MAX) {
            return task + "gpu_priority is " + gpuPriority + "; use 1..99, or 0 for the same as priority";
        }
        if (priority == 0 && gpuPriority != 0) {
            return task + "gpu_priority is " + gpuPriority
                + " but the task is best effort; give it a priority or use 0";
        }
        if (gpu >= config.gpuCount()) {
            return task + "gpu is " + gpu + "; use 0.." + (config.gpuCount() - 1)
                + (gpu < Abi.GPUS_MAX ? ", or start the daemon with --gpus " + (gpu + 1) : "");
        }
        final long periodNs = data.getLong(Abi.MsgTaskOpen.PERIOD_NS_OFFSET);
        final long budgetNs = data.getLong(Abi.MsgTaskOpen.BUDGET_NS_OFFSET);
        final long deadlineNs = data.getLong(Abi.MsgTaskOpen.DEADLINE_NS_OFFSET);
        String refusal = duration(task, "period", periodNs);
        refusal = refusal != null ? refusal : duration(task, "deadline", deadlineNs);
        refusal = refusal != null ? refusal : duration(task, "budget", budgetNs);
        refusal = refusal != null ? refusal : duration(task, "window", windowNs(data));
        if (refusal != null) {
            return refusal;
        }
        if (periodNs > 0 && deadlineNs > periodNs) {
            return task + "deadline is " + deadlineNs + " ns; use at most the period, " + periodNs
                + " ns, or 0 for the period";
        }
        if (config.needs().contains(TaskNeed.DEADLINE) && priority > 0 && periodNs == 0 && deadlineNs == 0) {
            return task + "the policy goes by deadlines and deadline is 0; give a deadline or a period, or make it "
                + "best effort";
        }
        if (config.needs().contains(TaskNeed.BUDGET) && priority > 0 && budgetNs == 0) {
            return task + "the policy goes by budgets and budget is 0; give the longest time that a segment has the "
                + "GPU, or make it best effort";
        }
        if (owner.loads.containsKey(name)) {
            return task + "the name is taken in this process; choose another";
        }
        if (owner.loads.size() >= Abi.SLOTS_MAX) {
            return task + "the process has " + owner.loads.size() + " tasks, the most allowed; close one";
        }
        return null;
    }

    private static String duration(final String task, final String what, final long ns) {
        return ns >= 0 && ns <= DURATION_MAX_NS ? null
            : task + what + " is " + ns + " ns; use 0 (none) .. " + DURATION_MAX_NS + " (one hour)";
    }

    /** The request of a message that was not refused. */
    static TaskOpen request(final UnsafeBuffer data, final long correlation, final int clientId, final String name) {
        final int priority = data.getInt(Abi.MsgTaskOpen.PRIORITY_OFFSET);
        final int gpuPriority = data.getInt(Abi.MsgTaskOpen.GPU_PRIORITY_OFFSET);
        final long periodNs = data.getLong(Abi.MsgTaskOpen.PERIOD_NS_OFFSET);
        final long deadlineNs = data.getLong(Abi.MsgTaskOpen.DEADLINE_NS_OFFSET);
        return new TaskOpen(correlation, clientId, name, priority, gpuPriority == 0 ? priority : gpuPriority,
            data.getInt(Abi.MsgTaskOpen.GPU_OFFSET),
            (data.getInt(Abi.MsgTaskOpen.FLAGS_OFFSET) & Abi.TASK_NO_OPTIMISTIC) == 0, periodNs,
            deadlineNs == 0 ? periodNs : deadlineNs, data.getLong(Abi.MsgTaskOpen.BUDGET_NS_OFFSET),
            overrun(data.getByte(Abi.MsgTaskOpen.OVERRUN_OFFSET)), windowNs(data),
            data.getByte(Abi.MsgTaskOpen.PARTITION_OFFSET) & 0xff, weight(data), boost(data))
            .withReserve(reserve(data));
    }

    private static OverrunAction overrun(final int value) {
        return switch (value) {
            case Abi.OVERRUN_NOTIFY -> OverrunAction.NOTIFY;
            case Abi.OVERRUN_SUSPEND -> OverrunAction.SUSPEND;
            case Abi.OVERRUN_SKIP_NEXT -> OverrunAction.SKIP_NEXT;
            default -> OverrunAction.DEMOTE;
        };
    }

    private static long windowNs(final UnsafeBuffer data) {
        return (data.getInt(Abi.MsgTaskOpen.WINDOW_US_OFFSET) & 0xffffffffL) * NS_PER_US;
    }

    private static int boost(final UnsafeBuffer data) {
        return (data.getInt(Abi.MsgTaskOpen.FLAGS_OFFSET) & Abi.TASK_BOOST_MASK) >>> Abi.TASK_BOOST_SHIFT;
    }

    private static int reserve(final UnsafeBuffer data) {
        return (data.getInt(Abi.MsgTaskOpen.FLAGS_OFFSET) & Abi.TASK_RESERVE_MASK) >>> Abi.TASK_RESERVE_SHIFT;
    }

    private static int weight(final UnsafeBuffer data) {
        return data.getShort(Abi.MsgTaskOpen.WEIGHT_OFFSET) & 0xffff;
    }
}

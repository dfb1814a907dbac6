/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.EventTap;
import dev.gpuseg.ipc.journal.JournalEvent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.agrona.collections.Int2ObjectHashMap;

/**
 * GPU time by group, from the windows of segments as the journal shows them: from grant or resume to preemption or end.
 * While several contexts have the GPU together, its time is divided equally among them, and a context's among its
 * tasks: what the hardware gave each is not visible here. Work of processes that never registered is in no window and
 * is not counted.
 *
 * <p>An event allocates nothing: garbage that the journal's thread makes stops the dispatcher's when it is collected.
 * Thread-safe: the journal's thread writes, the background thread reads.
 */
public final class GpuTimeAccount implements EventTap {
    private static final int PATHS_MAX = 1024;
    /** Events up to so long ago have arrived, save on a machine that is stuck, ns. */
    private static final long SETTLED_NS = 100_000_000L;
    private static final long NEVER = Long.MIN_VALUE;

    /** Sums of one group, ns. */
    private static final class Sums {
        private long gpuNs;
        private long bestEffortNs;
        private long windowNs;
        private long windows;
    }

    /** A task that is open. */
    private static final class Task {
        private final int gpu;
        private final int contextId;
        private boolean realTime;

        private Task(final int gpu, final int contextId, final boolean realTime) {
            this.gpu = gpu;
            this.contextId = contextId;
            this.realTime = realTime;
        }
    }

    /**
     * What a group has had.
     *
     * @param path         the group
     * @param gpuNs        its part of the GPU's time, ns
     * @param bestEffortNs of this, best-effort work
     * @param windowNs     sum of its windows, shared or not, ns
     * @param windows      how often it came to the GPU
     */
    public record Usage(String path, long gpuNs, long bestEffortNs, long windowNs, long windows) {
    }

    private final Map<String, Sums> sumsByPath = new LinkedHashMap<>(16, 0.75f, true);
    private final Int2ObjectHashMap<String> pathByContext = new Int2ObjectHashMap<>();
    private final Int2ObjectHashMap<Task> tasks = new Int2ObjectHashMap<>();
    /** Tasks that have a GPU, in any order. */
    private final List<Task> running = new ArrayList<>();
    private final long[] chargedNs = new long[SchedulerConfig.GPUS_MAX];
    private long lastSeq;
    private long gaps;

    /** An account without any time. */
    public GpuTimeAccount() {
        Arrays.fill(chargedNs, NEVER);
    }

    /**
     * Time of these contexts is a group's from now on.
     *
     * @param contexts their ids
     * @param path     the group
     * @param nowNs    CLOCK_MONOTONIC
     */
    public synchronized void belongs(final List<Integer> contexts, final String path, final long nowNs) {
        chargeAll(nowNs - SETTLED_NS);
        for (final Integer context : contexts) {
            pathByContext.put(context, path);
        }
    }

    @Override
    public synchronized void onEvent(final JournalEvent event) {
        final EventKind kind = event.kind();
        if (kind == null) {
            return;
        }
        if (kind != EventKind.START && lastSeq != 0 && event.seq() != lastSeq + 1) {
            gaps++;
            running.clear();   // what was missed may have ended them
        }
        lastSeq = event.seq();
        switch (kind) {
            case START -> {
                tasks.clear();
                running.clear();
            }
            case TASK_OPEN -> running.remove(tasks.put(event.taskId(),
                    new Task(event.gpu(), event.contextId(), event.arg0() > 0)));
            case POLICY -> {
                if (tasks.containsKey(event.taskId())) {
                    charge(event.gpu(), event.timeNs());
                    tasks.get(event.taskId()).realTime = event.arg0() > 0;
                }
            }
            case GRANT, RESUME -> running(event, true);
            case PREEMPT, END, CANCEL -> running(event, false);
            case TASK_CLOSE -> {
                running(event, false);
                tasks.remove(event.taskId());
            }
            default -> {
                // no window begins or ends
            }
        }
    }

    private void running(final JournalEvent event, final boolean on) {
        final Task task = tasks.get(event.taskId());
        if (task == null || running.contains(task) == on) {
            return;
        }
        charge(task.gpu, event.timeNs());
        if (on) {
            running.add(task);
            sums(task.contextId).windows++;
        } else {
            running.remove(task);
        }
    }

    private void chargeAll(final long untilNs) {
        for (int gpu = 0; gpu < chargedNs.length; gpu++) {
            if (chargedNs[gpu] != NEVER && untilNs - chargedNs[gpu] > 0) {
                charge(gpu, untilNs);
            }
        }
    }

    /** Divides the time since the last change of one GPU among those that had it. */
    private void charge(final int gpu, final long nowNs) {
        final long sinceNs = chargedNs[gpu] == NEVER ? 0 : Math.max(0, nowNs - chargedNs[gpu]);
        chargedNs[gpu] = Math.max(chargedNs[gpu], nowNs);
        final int contexts = contextsOn(gpu);
        for (int i = 0; i < running.size(); i++) {
            final Task task = running.get(i);
            if (task.gpu == gpu) {
                final long partNs = sinceNs / contexts / tasksOf(task.contextId);
                final Sums sums = sums(task.contextId);
                sums.gpuNs += partNs;
                sums.bestEffortNs += task.realTime ? 0 : partNs;
                sums.windowNs += sinceNs;
            }
        }
    }

    private int contextsOn(final int gpu) {
        int contexts = 0;
        for (int i = 0; i < running.size(); i++) {
            boolean first = running.get(i).gpu == gpu;
            for (int j = 0; first && j < i; j++) {
                first = running.get(j).contextId != running.get(i).contextId;
            }
            contexts += first ? 1 : 0;
        }
        return contexts;
    }

    private int tasksOf(final int contextId) {
        int count = 0;
        for (int i = 0; i < running.size(); i++) {
            count += running.get(i).contextId == contextId ? 1 : 0;
        }
        return count;
    }

    private Sums sums(final int contextId) {
        final String known = pathByContext.get(contextId);
        final String path = known == null ? "" : known;
        Sums sums = sumsByPath.get(path);
        if (sums == null) {
            if (sumsByPath.size() >= PATHS_MAX) {
                sumsByPath.remove(sumsByPath.keySet().iterator().next());   // the one not used for longest
            }
            sums = new Sums();
            sumsByPath.put(path, sums);
        }
        return sums;
    }

    /**
     * What every group has had since the daemon's start, up to 0.1 s ago. A group of which nothing was seen for long is
     * forgotten when there are more than 1024.
     *
     * @param nowNs CLOCK_MONOTONIC
     * @return one entry for each
     */
    public synchronized List<Usage> usage(final long nowNs) {
        chargeAll(nowNs - SETTLED_NS);
        final List<Usage> list = new ArrayList<>();
        sumsByPath.forEach((path, sums) -> list.add(
            new Usage(path, sums.gpuNs, sums.bestEffortNs, sums.windowNs, sums.windows)));
        return list;
    }

    /** How often events were lost: the time around them is not counted. */
    public synchronized long gaps() {
        return gaps;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import dev.gpuseg.daemon.journal.EventKind;
import dev.gpuseg.daemon.journal.EventTap;
import dev.gpuseg.daemon.journal.JournalEvent;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * GPU time by group, from the windows of segments as the journal shows them: from grant or resume to preemption or end.
 * While several contexts have the GPU together, its time is divided equally among them, and a context's among its
 * tasks: what the hardware gave each is not visible here. Work of processes that never registered is in no window and
 * is not counted.
 *
 * <p>Thread-safe: the journal's thread writes, the clerk's reads.
 */
public final class GpuTimeAccount implements EventTap {
    private static final int PATHS_MAX = 1024;
    /** Events up to so long ago have arrived, save on a machine that is stuck, ns. */
    private static final long SETTLED_NS = 100_000_000L;

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
        private boolean running;

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
    private final Map<Integer, String> pathByContext = new HashMap<>();
    private final Map<Integer, Task> tasks = new HashMap<>();
    private final Map<Integer, Long> chargedNs = new HashMap<>();
    private long lastSeq;
    private long gaps;

    /** An account without any time. */
    public GpuTimeAccount() {
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
            tasks.values().forEach(task -> task.running = false);   // what was missed may have ended them
        }
        lastSeq = event.seq();
        switch (kind) {
            case START:
                tasks.clear();
                break;
            case TASK_OPEN:
                tasks.put(event.taskId(), new Task(event.gpu(), event.contextId(), event.arg0() > 0));
                break;
            case POLICY:
                if (tasks.containsKey(event.taskId())) {
                    charge(event.gpu(), event.timeNs());
                    tasks.get(event.taskId()).realTime = event.arg0() > 0;
                }
                break;
            case GRANT:
            case RESUME:
                running(event, true);
                break;
            case PREEMPT:
            case END:
            case CANCEL:
                running(event, false);
                break;
            case TASK_CLOSE:
                running(event, false);
                tasks.remove(event.taskId());
                break;
            default:
                break;
        }
    }

    private void running(final JournalEvent event, final boolean on) {
        final Task task = tasks.get(event.taskId());
        if (task == null || task.running == on) {
            return;
        }
        charge(task.gpu, event.timeNs());
        task.running = on;
        if (on) {
            sums(task.contextId).windows++;
        }
    }

    private void chargeAll(final long untilNs) {
        for (final Map.Entry<Integer, Long> entry : Map.copyOf(chargedNs).entrySet()) {
            if (untilNs - entry.getValue() > 0) {
                charge(entry.getKey(), untilNs);
            }
        }
    }

    /** Divides the time since the last change of one GPU among those that had it. */
    private void charge(final int gpu, final long nowNs) {
        final long sinceNs = Math.max(0, nowNs - chargedNs.getOrDefault(gpu, nowNs));
        chargedNs.merge(gpu, nowNs, Math::max);
        final Map<Integer, Integer> tasksByContext = runningOn(gpu);
        for (final Task task : tasks.values()) {
            if (task.running && task.gpu == gpu) {
                final long partNs = sinceNs / tasksByContext.size() / tasksByContext.get(task.contextId);
                final Sums sums = sums(task.contextId);
                sums.gpuNs += partNs;
                sums.bestEffortNs += task.realTime ? 0 : partNs;
                sums.windowNs += sinceNs;
            }
        }
    }

    private Map<Integer, Integer> runningOn(final int gpu) {
        final Map<Integer, Integer> count = new HashMap<>();
        for (final Task task : tasks.values()) {
            if (task.running && task.gpu == gpu) {
                count.merge(task.contextId, 1, Integer::sum);
            }
        }
        return count;
    }

    private Sums sums(final int contextId) {
        final String path = pathByContext.getOrDefault(contextId, "");
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

    /**
     * How often events were lost: the time around them is not counted.
     *
     * @return from 0
     */
    public synchronized long gaps() {
        return gaps;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.daemon.cgroup.ProcessView;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntToLongFunction;

/**
 * Which processes had no work for their GPU lately. GPU work is launched by a thread that runs on a CPU, so a process
 * that used next to none launched next to nothing. It says nothing of work that was launched before and still runs, so
 * a process that is idle by this measure can have a long kernel on the GPU, and it can wake at any time: its contexts
 * are disabled as all others, only later.
 *
 * <p>A process becomes idle after {@value #QUIET_LOOKS} looks in a row with at most {@value #QUIET_NS} ns of CPU time
 * each, and busy with the first look in which it used more. One thread.
 */
final class IdleProcesses {
    /** CPU time between two looks, 200 ms apart, that a process may use for its own housekeeping. */
    static final long QUIET_NS = 100_000;
    /** One second. */
    static final int QUIET_LOOKS = 5;

    /** Told of changes. */
    interface Sink {
        /**
         * A process became idle or busy.
         *
         * @param process which
         * @param idle    from now on
         */
        void onIdle(ProcessView process, boolean idle);
    }

    private final IntToLongFunction cpuTimeNs;
    private final Sink sink;
    private final Map<Integer, Seen> seen = new HashMap<>();

    private static final class Seen {
        private final long startTicks;
        private long cpuNs;
        private int quietLooks;
        private boolean isAlive = true;

        private Seen(final long startTicks, final long cpuNs) {
            this.startTicks = startTicks;
            this.cpuNs = cpuNs;
        }
    }

    /**
     * Knows no process yet; all are busy.
     *
     * @param cpuTimeNs CPU time of a process by its ID; negative if it is gone
     * @param sink      told of changes
     */
    IdleProcesses(final IntToLongFunction cpuTimeNs, final Sink sink) {
        this.cpuTimeNs = cpuTimeNs;
        this.sink = sink;
    }

    /** One look at all processes that have contexts. */
    void look(final List<ProcessView> processes) {
        seen.values().forEach(s -> s.isAlive = false);
        for (final ProcessView process : processes) {
            final long nowNs = cpuTimeNs.applyAsLong(process.pid());
            final Seen before = seen.get(process.pid());
            if (nowNs < 0) {
                continue;   // gone: forgotten below, and its contexts with it
            }
            if (before == null || before.startTicks != process.startTicks()) {
                seen.put(process.pid(), new Seen(process.startTicks(), nowNs));
                continue;
            }
            before.isAlive = true;
            final boolean wasIdle = before.quietLooks >= QUIET_LOOKS;
            before.quietLooks = nowNs - before.cpuNs <= QUIET_NS ? before.quietLooks + 1 : 0;
            before.cpuNs = nowNs;
            final boolean isIdle = before.quietLooks >= QUIET_LOOKS;
            if (isIdle != wasIdle) {
                sink.onIdle(process, isIdle);
            }
        }
        seen.values().removeIf(s -> !s.isAlive);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.daemon.cgroup.ProcessView;
import java.util.Iterator;
import java.util.List;
import java.util.function.IntToLongFunction;
import org.agrona.collections.Int2ObjectHashMap;

/**
 * Which processes had no work for their GPU lately. GPU work is launched by a thread that runs on a CPU, so a process
 * that used next to none launched next to nothing. It says nothing of work that was launched before and still runs, so
 * a process that is idle by this measure can have a long kernel on the GPU, and it can wake at any time: its contexts
 * are disabled as all others.
 *
 * <p>A process becomes idle after {@value #QUIET_LOOKS} looks in a row with at most {@value #QUIET_NS} ns of CPU time
 * each, and busy with the first look in which it used more. What the CUDA driver's own threads used is not counted
 * ({@link DriverThreads}): in a process with a context they run whether it has work or not. They are asked for only
 * where it matters.
 *
 * <p>A process that lies, because it names a thread like the driver's and works with it, is taken for idle, as any
 * process is that works without CPU time. It is only shown so. One thread; makes no object for a look at processes that
 * it knows.
 */
final class IdleProcesses {
    /** CPU time between two looks, 200 ms apart, that a process may use for its own housekeeping. */
    static final long QUIET_NS = 200_000;
    /**
     * What is above has work, whichever thread used it: 5 % of a processor. A process without work used 0.6 to 1.2 ms,
     * most of it in the driver's thread. Source: H200, 580.159.04; how much it is with several GPUs is unknown.
     */
    static final long BUSY_NS = 10_000_000;
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
    private final DriverThreads.Source driverThreads;
    private final Sink sink;
    private final Int2ObjectHashMap<Seen> seen = new Int2ObjectHashMap<>();
    private long looks;

    private static final class Seen {
        private final long startTicks;
        private final DriverThreads driver;
        private long cpuNs;
        private int quietLooks;
        private long lastLook;

        private Seen(final long startTicks, final DriverThreads driver, final long cpuNs, final long look) {
            this.startTicks = startTicks;
            this.driver = driver;
            this.cpuNs = cpuNs;
            lastLook = look;
        }

        /** A look; whether the process used next to nothing since the last one. */
        private boolean isQuiet(final long nowNs, final long look) {
            final long usedNs = nowNs - cpuNs;
            cpuNs = nowNs;
            lastLook = look;
            if (usedNs > BUSY_NS) {
                driver.skip();
                return false;
            }
            final boolean isQuiet = usedNs - driver.look() <= QUIET_NS;
            if (!isQuiet) {
                driver.search(look);
            }
            return isQuiet;
        }
    }

    /**
     * Knows no process yet; all are busy.
     *
     * @param cpuTimeNs     CPU time of a process by its ID; negative if it is gone
     * @param driverThreads what does not count of it
     * @param sink          told of changes
     */
    IdleProcesses(final IntToLongFunction cpuTimeNs, final DriverThreads.Source driverThreads, final Sink sink) {
        this.cpuTimeNs = cpuTimeNs;
        this.driverThreads = driverThreads;
        this.sink = sink;
    }

    /** One look at all processes that have contexts. */
    void look(final List<ProcessView> processes) {
        looks++;
        for (int i = 0; i < processes.size(); i++) {   // an iterator would be garbage
            look(processes.get(i));
        }
        forgetOthers();
    }

    private void look(final ProcessView process) {
        final int pid = process.pid();
        final long nowNs = cpuTimeNs.applyAsLong(pid);
        if (nowNs < 0) {
            return;   // gone: forgotten below, and its contexts with it
        }
        final Seen known = seen.get(pid);
        if (known == null || known.startTicks != process.startTicks()) {
            seen.put(pid, new Seen(process.startTicks(), new DriverThreads(driverThreads, pid), nowNs, looks));
            return;
        }
        final boolean wasIdle = known.quietLooks >= QUIET_LOOKS;
        known.quietLooks = known.isQuiet(nowNs, looks) ? known.quietLooks + 1 : 0;
        final boolean isIdle = known.quietLooks >= QUIET_LOOKS;
        if (isIdle != wasIdle) {
            sink.onIdle(process, isIdle);
        }
    }

    private void forgetOthers() {
        final Iterator<Seen> each = seen.values().iterator();   // the map keeps one and uses it again
        while (each.hasNext()) {
            if (each.next().lastLook != looks) {
                each.remove();
            }
        }
    }
}

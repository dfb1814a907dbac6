/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import dev.gpuseg.ipc.platform.CpuSet;
import dev.gpuseg.tools.process.RealTime;
import java.util.BitSet;

/**
 * The CPUs of a bench. Linux serves most interrupts on low ones, so they are given out from the highest down: first to
 * the dispatcher, then to whatever the bench gives a CPU of its own. The rest is for everything else.
 *
 * @param cpus all of them
 */
public record Cores(CpuSet cpus) {
    /** With that many CPUs or more, the dispatcher has one to itself. */
    private static final int ENOUGH = 4;
    private static final int FIFO_PRIORITY = 80;

    /** How many there are. */
    public int count() {
        return cpus.count();
    }

    /** Whether the dispatcher has a CPU to itself: true if there are four CPUs or more. */
    public boolean enough() {
        return count() >= ENOUGH;
    }

    /** The number of the CPU at a place, 0 is the highest. */
    public int fromTop(final int place) {
        return cpus.at(count() - 1 - place);
    }

    /** All but so many of the highest ones. */
    CpuSet below(final int taken) {
        final BitSet rest = (BitSet) cpus.cpus().clone();
        for (int i = 0; i < taken; i++) {
            rest.clear(rest.length() - 1);
        }
        return new CpuSet(rest);
    }

    /** SCHED_FIFO priority of the dispatcher: some where it has a CPU to itself and that is permitted, else 0. */
    int priority() throws InterruptedException {
        return enough() && RealTime.isPermitted() ? FIFO_PRIORITY : 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.ipc.platform.CpuSet;
import dev.gpuseg.tools.process.RealTime;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * Who gets which CPU in a bench. From the highest down, since Linux serves most interrupts on low ones: the dispatcher,
 * then what the bench gives a CPU of its own, and the rest for all else.
 */
final class BenchCores {
    /** From that many CPUs on, the dispatcher has one of its own. */
    static final int ENOUGH = 4;

    private static final int FIFO_PRIORITY = 80;
    private static final int AUTOMATIC = -1;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(names = "--cpus", paramLabel = "LIST",
        description = "CPUs for everything, like 2-9: the highest is the dispatcher's, from four CPUs on for it alone "
            + "(default: those that this process may use)")
    private String list;

    @Option(names = "--fifo", paramLabel = "N", defaultValue = "-1",
        description = "SCHED_FIFO priority of the dispatcher, 1..99, 0 none (default: 80 where it has a CPU of its own "
            + "and this is permitted, else none)")
    private int fifo;

    private CpuSet cpus;

    /** Checks the options. Before all else. */
    void check() {
        try {
            cpus = list == null ? CpuSet.allowed() : CpuSet.parse(list);
        } catch (final IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--cpus: " + e.getMessage(), e);
        }
        cpus.cpus().stream().filter(cpu -> !CpuSet.exists(cpu)).findFirst().ifPresent(cpu -> {
            throw new CommandLine.ParameterException(spec.commandLine(), "--cpus: this machine has no CPU " + cpu
                + "; see `lscpu -e`");
        });
        if (fifo < AUTOMATIC || fifo > 99) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--fifo is " + fifo
                + "; use 1..99, or 0 for none");
        }
    }

    int count() {
        return cpus.count();
    }

    boolean enough() {
        return count() >= ENOUGH;
    }

    /** The CPU at a place, 0 the highest. */
    int fromTop(final int place) {
        return cpus.at(count() - 1 - place);
    }

    /** All but the highest ones. */
    CpuSet below(final int taken) {
        CpuSet rest = cpus;
        for (int i = 0; i < taken; i++) {
            final java.util.BitSet fewer = (java.util.BitSet) rest.cpus().clone();
            fewer.clear(fewer.length() - 1);
            rest = new CpuSet(fewer);
        }
        return rest;
    }

    /** SCHED_FIFO priority to use, 0 for none. */
    int priority() throws InterruptedException {
        return fifo != AUTOMATIC ? fifo : enough() && RealTime.isPermitted() ? FIFO_PRIORITY : 0;
    }

    @Override
    public String toString() {
        return cpus.toString();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.ipc.platform.CpuSet;
import dev.gpuseg.tools.bench.Cores;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Which CPUs a bench uses. */
final class CoreOptions {
    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(names = "--cpus", paramLabel = "LIST",
        description = "CPUs to use, like 2-9. The dispatcher runs on the highest; with four or more it has that CPU "
            + "alone, with SCHED_FIFO where that is permitted (default: the CPUs that this process may use).")
    private String list;

    /** Checks the options. */
    Cores cores() {
        final CpuSet cpus;
        try {
            cpus = list == null ? CpuSet.allowed() : CpuSet.parse(list);
        } catch (final IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--cpus: " + e.getMessage(), e);
        }
        cpus.cpus().stream().filter(cpu -> !CpuSet.exists(cpu)).findFirst().ifPresent(cpu -> {
            throw new CommandLine.ParameterException(spec.commandLine(), "--cpus: this machine has no CPU " + cpu
                + "; see `lscpu -e`");
        });
        return new Cores(cpus);
    }
}

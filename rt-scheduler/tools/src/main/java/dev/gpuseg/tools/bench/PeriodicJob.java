/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import java.io.IOException;
import java.util.List;

/**
 * The jobs of one periodic real-time process, and how it is called.
 *
 * @param name     of the scenario
 * @param kernelMs length of a job
 * @param kernels  of which it consists; launched as one graph if there are more than one
 * @param periodMs of the jobs
 * @param factor   jobs for each job of the plan: short jobs are many
 */
record PeriodicJob(String name, double kernelMs, int kernels, double periodMs, int factor) {
    /** More jobs than a cell has time for: the process is stopped. */
    static final int ENDLESS = 100_000;
    /** For gpuseg-bench-rt: the library launches four bytes when the daemon expects a begin. */
    static final String TOUCHES = "--touches";
    private static final double WARM_MS = 2_000;

    /** Jobs that are not measured: the daemon learns in the first two seconds. */
    int warm() {
        return (int) Math.ceil(WARM_MS / periodMs);
    }

    List<String> command(final GpuBench bench, final String mode, final List<String> options) {
        final List<String> command = bench.realTimeCommand(mode, kernelMs, bench.plan().jobs() * factor);
        command.addAll(List.of("--period-ms", Double.toString(periodMs), "--graph", Integer.toString(kernels), "--warm",
            Integer.toString(warm()), "--jitter-ms", "0"));
        command.addAll(options);
        return command;
    }

    /** Has a context and does nothing: it waits for a gate that nobody opens. */
    static CudaBench.Other idle(final GpuBench bench, final String processName) throws IOException {
        return bench.cuda().startCounting(processName, page -> {
            final List<String> command = bench.realTimeCommand("none", 1, 1);
            command.addAll(List.of("--own-page", page.toString(), "--gate"));
            return command;
        });
    }
}

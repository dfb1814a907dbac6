/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

import java.util.List;
import java.util.Locale;

/**
 * The case study of GCAPS (ECRTS 2024, section 7.2, table 4): five real-time tasks and two best-effort ones. Published
 * are C, G, T, CPU and priority; not published are the number of GPU segments and the split of G into its host part
 * and its device part. Here each task has one GPU segment between two halves of C, and the host part is 10 % of G.
 */
final class CaseStudy {
    /**
     * One task.
     *
     * @param name     workload of the paper
     * @param cpuUs    C, us
     * @param gpuUs    G, us
     * @param periodMs T = D, ms
     * @param cpu      CPU of the paper, from 1
     * @param priority 1..99, 0 = best effort
     */
    record Task(String name, int cpuUs, int gpuUs, int periodMs, int cpu, int priority) {
        boolean isRealTime() {
            return priority > 0;
        }

        /** In the form of gpuseg-demo-task. */
        String segments() {
            if (gpuUs == 0) {
                return "cpu:" + cpuUs + "us";
            }
            final int hostUs = gpuUs / 10;
            return String.format(Locale.ROOT, "cpu:%dus,gpu:%dus+%dus,cpu:%dus", cpuUs / 2, hostUs, gpuUs - hostUs,
                cpuUs - cpuUs / 2);
        }
    }

    static final List<Task> TASKS = List.of(
        new Task("histogram", 1_000, 10_000, 100, 1, 70),
        new Task("mmul_gpu_1", 2_000, 12_000, 150, 2, 69),
        new Task("mmul_cpu", 67_000, 0, 200, 2, 68),
        new Task("projection", 12_000, 15_000, 300, 1, 67),
        new Task("dxtc", 12_000, 16_000, 400, 1, 66),
        new Task("mmul_gpu_2", 4_000, 44_000, 200, 4, 0),
        new Task("simpleTexture3D", 4_000, 27_000, 67, 5, 0));

    /** Processors that the paper's boards have. */
    static final int CPUS = 6;

    private CaseStudy() {
    }
}

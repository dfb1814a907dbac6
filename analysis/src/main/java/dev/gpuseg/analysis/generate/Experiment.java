/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.WaitMode;

/**
 * What random task sets look like. {@link #published} is the published experiment (GCAPS, ECRTS 2024, Table 3).
 *
 * @param variant         how the published description is interpreted
 * @param utilisation     how utilisations are drawn
 * @param cpus            cores
 * @param totalTasks      tasks of the whole set, placed on the cores worst fit; 0 = use tasksPerCpu
 * @param tasksPerCpu     tasks of each core
 * @param cpuUtilisation  utilisation of each core
 * @param maxUtilisation  largest utilisation of a task (DRS only)
 * @param gpuRatio        share of the tasks that use the GPU
 * @param periodMs        periods in whole milliseconds
 * @param gpuSegments     GPU segments of a task that uses the GPU
 * @param gpuToCpu        G / C of such a task
 * @param hostToGpu       G^m / G of each segment
 * @param bestEffortRatio share of the tasks that are best effort
 * @param gpus            number of GPUs; tasks that use one are assigned to them in turn
 * @param gpu             constants of each GPU
 * @param mode            wait mode written into the sets
 */
public record Experiment(Variant variant, Utilisation utilisation, int cpus, int totalTasks, Range tasksPerCpu,
    Range cpuUtilisation, double maxUtilisation, Range gpuRatio, Range periodMs, Range gpuSegments, Range gpuToCpu,
    Range hostToGpu, double bestEffortRatio, int gpus, Gpu gpu, WaitMode mode) {

    /** How the published description is interpreted. */
    public enum Variant {
        /**
         * As the published program does it: grids of 0.01 (utilisations, milliseconds), utilisations never below
         * 0.01, no re-allocation of tasks to cores, each task uses the GPU with a probability drawn for it; with a
         * given total number of tasks, utilisations from {0.05, 0.10, ..., 0.25} and worst fit in the order of
         * generation.
         */
        AS_CODED,
        /**
         * As the text says: no grids but whole milliseconds for periods, the drawn share of the tasks uses the GPU,
         * and all tasks are placed on the cores again, worst fit by decreasing utilisation; with a given total number
         * of tasks, UUniFast over the sum of all cores' utilisations.
         */
        AS_PUBLISHED
    }

    /** How utilisations are drawn. */
    public enum Utilisation {
        /** Uniform over the simplex. */
        UUNIFAST,
        /** Uniform over the simplex within bounds, see {@link Utilisations#drs}. */
        DRS
    }

    /**
     * A closed range of numbers.
     *
     * @param least least value
     * @param most  largest value
     */
    public record Range(double least, double most) {
        /** Validates the order. */
        public Range {
            if (!(least >= 0 && most >= least && most < 1e9)) {
                throw new IllegalArgumentException("range is " + least + ".." + most
                    + "; it must be 0 or more and in order");
            }
        }

        /**
         * One value.
         *
         * @param value the value
         * @return the range with this value alone
         */
        public static Range of(final double value) {
            return new Range(value, value);
        }

        /**
         * Reads {@code A} or {@code A..B}.
         *
         * @param text what a user wrote
         * @return the range
         * @throws IllegalArgumentException if it is neither; the message says what to write
         */
        public static Range parse(final String text) {
            final int dots = text.indexOf("..");
            try {
                if (dots < 0) {
                    return of(Double.parseDouble(text.trim()));
                }
                return new Range(Double.parseDouble(text.substring(0, dots).trim()),
                    Double.parseDouble(text.substring(dots + 2).trim()));
            } catch (final NumberFormatException e) {
                throw new IllegalArgumentException("range is '" + text
                    + "'; write a number or two with .. between, like 3..6",
                    e);
            }
        }

        @Override
        public String toString() {
            return least == most ? Double.toString(least) : least + ".." + most;
        }
    }

    /** Validates. */
    public Experiment {
        require(cpus >= 1 && cpus <= 1024, "cpus is " + cpus + "; it must be 1..1024");
        require(gpus >= 1 && gpus <= 16, "gpus is " + gpus + "; it must be 1..16");
        require(totalTasks >= 0 && totalTasks <= Task.MAX_PRIORITY,
            "tasks is " + totalTasks + "; it must be 1..99 (0: by core)");
        require(tasksPerCpu.least() >= 1 && tasksPerCpu.most() * cpus <= Task.MAX_PRIORITY || totalTasks > 0,
            "tasks per cpu is " + tasksPerCpu + "; it must be 1 or more, and at most 99 tasks in all");
        require(cpuUtilisation.least() > 0, "utilisation is " + cpuUtilisation + "; it must be positive");
        require(maxUtilisation > 0, "max utilisation is " + maxUtilisation + "; it must be positive");
        require(gpuRatio.most() <= 1, "gpu ratio is " + gpuRatio + "; it must be 0..1");
        require(periodMs.least() >= 1 && periodMs.most() <= 1e7, "period is " + periodMs
            + "; it must be 1..10000000 ms");
        require(gpuSegments.least() >= 1 && gpuSegments.most() <= 100,
            "gpu segments is " + gpuSegments + "; it must be 1..100");
        require(hostToGpu.most() <= 1, "host ratio is " + hostToGpu + "; it must be 0..1");
        require(bestEffortRatio >= 0 && bestEffortRatio <= 1,
            "best-effort ratio is " + bestEffortRatio + "; it must be 0..1");
    }

    private static void require(final boolean holds, final String message) {
        if (!holds) {
            throw new IllegalArgumentException(message);
        }
    }

    /**
     * Table 3 of the published experiment.
     *
     * @param variant how to read it
     * @return the parameters
     */
    public static Experiment published(final Variant variant) {
        // the text says 1024 us, the published program 1 ms
        final long timesliceNs = variant == Variant.AS_CODED ? 1_000_000L : 1_024_000L;
        return new Experiment(variant, Utilisation.UUNIFAST, 4, 0, new Range(3, 6), new Range(0.4, 0.6), 1,
            new Range(0.4, 0.6), new Range(30, 500), new Range(1, 3), new Range(0.2, 2), new Range(0.1, 0.3), 0, 1,
            new Gpu(1_000_000L, 800_000L, 200_000L, timesliceNs), WaitMode.SUSPEND);
    }

    /** A copy with another number of tasks of the whole set, placed on the cores worst fit. */
    public Experiment withTotalTasks(final int tasks) {
        return new Experiment(variant, utilisation, cpus, tasks, tasksPerCpu, cpuUtilisation, maxUtilisation, gpuRatio,
            periodMs, gpuSegments, gpuToCpu, hostToGpu, bestEffortRatio, gpus, gpu, mode);
    }

    /** A copy with another number of tasks on each core. */
    public Experiment withTasksPerCpu(final Range tasks) {
        return new Experiment(variant, utilisation, cpus, totalTasks, tasks, cpuUtilisation, maxUtilisation, gpuRatio,
            periodMs, gpuSegments, gpuToCpu, hostToGpu, bestEffortRatio, gpus, gpu, mode);
    }

    /** A copy with another utilisation of each core. */
    public Experiment withCpuUtilisation(final Range range) {
        return new Experiment(variant, utilisation, cpus, totalTasks, tasksPerCpu, range, maxUtilisation, gpuRatio,
            periodMs, gpuSegments, gpuToCpu, hostToGpu, bestEffortRatio, gpus, gpu, mode);
    }

    /** A copy with another number of cores. */
    public Experiment withCpus(final int count) {
        return new Experiment(variant, utilisation, count, totalTasks, tasksPerCpu, cpuUtilisation, maxUtilisation,
            gpuRatio, periodMs, gpuSegments, gpuToCpu, hostToGpu, bestEffortRatio, gpus, gpu, mode);
    }

    /** A copy with another share of GPU tasks. */
    public Experiment withGpuRatio(final Range range) {
        return new Experiment(variant, utilisation, cpus, totalTasks, tasksPerCpu, cpuUtilisation, maxUtilisation,
            range, periodMs, gpuSegments, gpuToCpu, hostToGpu, bestEffortRatio, gpus, gpu, mode);
    }

    /** A copy with another G / C of each GPU task. */
    public Experiment withGpuToCpu(final Range range) {
        return new Experiment(variant, utilisation, cpus, totalTasks, tasksPerCpu, cpuUtilisation, maxUtilisation,
            gpuRatio, periodMs, gpuSegments, range, hostToGpu, bestEffortRatio, gpus, gpu, mode);
    }

    /** A copy with another share of best-effort tasks. */
    public Experiment withBestEffortRatio(final double ratio) {
        return new Experiment(variant, utilisation, cpus, totalTasks, tasksPerCpu, cpuUtilisation, maxUtilisation,
            gpuRatio, periodMs, gpuSegments, gpuToCpu, hostToGpu, ratio, gpus, gpu, mode);
    }

    /** A copy with another wait mode. */
    public Experiment withMode(final WaitMode newMode) {
        return new Experiment(variant, utilisation, cpus, totalTasks, tasksPerCpu, cpuUtilisation, maxUtilisation,
            gpuRatio, periodMs, gpuSegments, gpuToCpu, hostToGpu, bestEffortRatio, gpus, gpu, newMode);
    }
}

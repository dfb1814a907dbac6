/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Experiment;
import dev.gpuseg.analysis.generate.Experiment.Range;
import dev.gpuseg.analysis.generate.Experiment.Variant;

/**
 * The six parameters that the published figures 8a..8f and 9a..9f vary.
 *
 * <p>The x labels of the published figures 8e and 9e are twice the values with which the published program ran; those
 * of 8f and 9f are 0.1 more. The published curves agree with that program point by point. {@link #experiment} therefore
 * maps a label to the value that the program used if sets are drawn {@link Variant#AS_CODED}, and takes it literally
 * otherwise.
 */
public enum Axis {
    /** Number of tasks. */
    TASKS('a', "ntasks", "Number of tasks", steps(2, 2, 10)),
    /** Utilisation per core. */
    UTILISATION('b', "util", "Utilisation per CPU", steps(0.1, 0.1, 9)),
    /** Number of cores. */
    CPUS('c', "ncpu", "Number of CPUs", steps(1, 1, 10)),
    /** Share of tasks that use the GPU. */
    GPU_RATIO('d', "gpuratio", "Ratio of GPU-using tasks", steps(0.1, 0.1, 10)),
    /** G / C. */
    GPU_TO_CPU('e', "G_over_C", "Ratio of GPU to CPU work, as labelled in the published figure", steps(0, 0.2, 11)),
    /** Share of best-effort tasks. */
    BEST_EFFORT('f', "be", "Ratio of best-effort tasks, as labelled in the published figure", steps(0.1, 0.1, 9));

    private final char letter;
    private final String key;
    private final String label;
    private final double[] values;

    Axis(final char letter, final String key, final String label, final double[] values) {
        this.letter = letter;
        this.key = key;
        this.label = label;
        this.values = values;
    }

    /**
     * The axis of a figure.
     *
     * @param figure {@code 8a}..{@code 8f}, {@code 9a}..{@code 9f}
     * @return the axis
     * @throws IllegalArgumentException if there is no such figure
     */
    public static Axis ofFigure(final String figure) {
        if (figure.length() == 2 && (figure.charAt(0) == '8' || figure.charAt(0) == '9')) {
            for (final Axis axis : values()) {
                if (axis.letter == figure.charAt(1)) {
                    return axis;
                }
            }
        }
        throw new IllegalArgumentException("figure '" + figure + "' does not exist; known are 8a..8f, 9a..9f");
    }

    /** The letter of the figures; {@code a}..{@code f}. */
    public char letter() {
        return letter;
    }

    String key() {
        return key;
    }

    /** The label of the axis. */
    public String label() {
        return label;
    }

    /** The published x labels; a copy. */
    public double[] labels() {
        return values.clone();
    }

    /**
     * The value of the parameter at an x label.
     *
     * @param label   as published
     * @param variant how sets are drawn
     * @return the parameter
     */
    public double value(final double label, final Variant variant) {
        if (variant == Variant.AS_CODED && this == GPU_TO_CPU) {
            return tidy(label / 2);
        }
        if (variant == Variant.AS_CODED && this == BEST_EFFORT) {
            return tidy(label - 0.1);
        }
        return label;
    }

    /**
     * The experiment at one point.
     *
     * @param label   x label as published
     * @param variant how sets are drawn
     * @return the published experiment with this parameter
     */
    public Experiment experiment(final double label, final Variant variant) {
        final Experiment base = Experiment.published(variant);
        final double value = value(label, variant);
        return switch (this) {
            case TASKS -> base.withTotalTasks((int) value);
            case UTILISATION -> base.withCpuUtilisation(Range.of(value));
            case CPUS -> base.withCpus((int) value);
            case GPU_RATIO -> base.withGpuRatio(Range.of(value));
            case GPU_TO_CPU -> base.withGpuToCpu(Range.of(value));
            // the published program gives each core six tasks here, which the text does not mention
            case BEST_EFFORT -> (variant == Variant.AS_CODED ? base.withTasksPerCpu(Range.of(6)) : base)
                .withBestEffortRatio(value);
        };
    }

    private static double[] steps(final double first, final double step, final int count) {
        final double[] values = new double[count];
        for (int i = 0; i < count; i++) {
            values[i] = tidy(first + i * step);
        }
        return values;
    }

    private static double tidy(final double value) {
        return Math.round(value * 1000) / 1000.0;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import java.util.Arrays;
import java.util.SplittableRandom;

/** Random utilisations of a given sum. */
public final class Utilisations {
    private static final int REJECTIONS = 1_000;
    private static final int RESCALES = 10_000;

    private Utilisations() {
    }

    /**
     * Uniformly distributed over all vectors of non-negative numbers with this sum (UUniFast; Bini and Buttazzo,
     * "Measuring the performance of schedulability tests", Real-Time Systems 30, 2005).
     *
     * @param random source of random numbers
     * @param count  how many, at least 1
     * @param sum    their sum, 0 or more
     * @return the numbers
     */
    public static double[] uunifast(final SplittableRandom random, final int count, final double sum) {
        requireCount(count);
        final double[] values = new double[count];
        double rest = sum;
        for (int i = 0; i < count - 1; i++) {
            final double next = rest * Math.pow(random.nextDouble(), 1.0 / (count - 1 - i));
            values[i] = rest - next;
            rest = next;
        }
        values[count - 1] = rest;
        return values;
    }

    /**
     * As the published experiment divides: the factor that UUniFast leaves to the other numbers goes to the current
     * one, and the numbers are shuffled. The largest of n numbers is much larger than in a uniform vector (mean 0.83 of
     * the sum for n = 6, against 0.41), as in the published task sets; compare {@link #uunifast}.
     *
     * @param random source of random numbers
     * @param count  how many, at least 1
     * @param sum    their sum, 0 or more
     * @return the numbers
     */
    public static double[] skewed(final SplittableRandom random, final int count, final double sum) {
        requireCount(count);
        final double[] values = new double[count];
        double rest = sum;
        for (int i = 0; i < count - 1; i++) {
            values[i] = rest * Math.pow(random.nextDouble(), 1.0 / (count - 1 - i));
            rest -= values[i];
        }
        values[count - 1] = rest;
        for (int i = count - 1; i > 0; i--) {
            final int j = random.nextInt(i + 1);
            final double moved = values[i];
            values[i] = values[j];
            values[j] = moved;
        }
        return values;
    }

    /**
     * Uniformly distributed over all vectors with this sum in which each number is within its bounds, in the manner of
     * the Dirichlet-rescale algorithm (Griffin, Bate, Davis, "Generating utilization vectors for the systematic
     * evaluation of schedulability tests", RTSS 2020).
     *
     * <p>Vectors are drawn from the flat Dirichlet distribution (the uniform one without upper bounds) and rejected
     * while one exceeds a bound; the accepted vectors are exactly uniform. If the bounds are so tight that 1,000 draws
     * fail, the last draw is rescaled: the simplex of all vectors that exceed the same bounds is mapped onto the
     * simplex of all vectors, repeatedly, until no bound is exceeded. Where corners of the simplex overlap, the result
     * is close to uniform, but not exactly. If the bounds leave less room above than below, the distances from the
     * upper bounds are drawn instead.
     *
     * @param random source of random numbers
     * @param sum    the sum
     * @param lower  lower bounds, 0 or more
     * @param upper  upper bounds, none below its lower bound
     * @return the numbers
     * @throws IllegalArgumentException if no vector satisfies the bounds; the message says why
     */
    public static double[] drs(final SplittableRandom random, final double sum, final double[] lower,
        final double[] upper) {
        final int count = lower.length;
        requireCount(count);
        double least = 0;
        double most = 0;
        for (int i = 0; i < count; i++) {
            if (!(lower[i] >= 0 && upper[i] >= lower[i])) {
                throw new IllegalArgumentException("utilisation " + i + ": bounds are " + lower[i] + ".." + upper[i]
                    + "; they must be 0 or more and in order");
            }
            least += lower[i];
            most += upper[i];
        }
        if (!(sum >= least - 1e-9 && sum <= most + 1e-9)) {
            throw new IllegalArgumentException("the sum of utilisations is " + sum + ", but the bounds allow " + least
                + ".."
                + most + "; change the sum or the bounds");
        }
        final double[] room = new double[count];
        for (int i = 0; i < count; i++) {
            room[i] = upper[i] - lower[i];
        }
        final double above = Math.max(0, sum - least);
        final double below = Math.max(0, most - sum);
        final boolean mirrored = below < above;
        final double[] values = within(random, mirrored ? below : above, room);
        for (int i = 0; i < count; i++) {
            values[i] = mirrored ? upper[i] - values[i] : lower[i] + values[i];
        }
        return values;
    }

    private static double[] within(final SplittableRandom random, final double sum, final double[] upper) {
        double[] values = uunifast(random, upper.length, sum);
        for (int draw = 0; draw < REJECTIONS && exceeds(values, upper); draw++) {
            values = uunifast(random, upper.length, sum);
        }
        for (int turn = 0; turn < RESCALES && exceeds(values, upper); turn++) {
            double taken = 0;
            for (int i = 0; i < values.length; i++) {
                taken += values[i] > upper[i] ? upper[i] : 0;
            }
            final double scale = sum - taken;
            if (scale <= sum * 1e-12) {
                break;
            }
            for (int i = 0; i < values.length; i++) {
                final double beyond = values[i] > upper[i] ? values[i] - upper[i] : values[i];
                values[i] = beyond * sum / scale;
            }
        }
        clip(values, upper, sum);
        return values;
    }

    /** Moves numbers that rounding put beyond a bound back to it. */
    private static void clip(final double[] values, final double[] upper, final double sum) {
        double rest = sum;
        for (int i = 0; i < values.length; i++) {
            values[i] = Math.min(values[i], upper[i]);
            rest -= values[i];
        }
        for (int i = 0; i < values.length && Math.abs(rest) > 0; i++) {
            final double change = Math.max(-values[i], Math.min(rest, upper[i] - values[i]));
            values[i] += change;
            rest -= change;
        }
    }

    private static boolean exceeds(final double[] values, final double[] upper) {
        for (int i = 0; i < values.length; i++) {
            if (values[i] > upper[i]) {
                return true;
            }
        }
        return false;
    }

    private static void requireCount(final int count) {
        if (count < 1) {
            throw new IllegalArgumentException("the number of utilisations is " + count + "; it must be at least 1");
        }
    }

    /**
     * Equal bounds for all.
     *
     * @param count how many
     * @param value the bound
     * @return an array full of it
     */
    public static double[] bounds(final int count, final double value) {
        final double[] bounds = new double[count];
        Arrays.fill(bounds, value);
        return bounds;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

/**
 * How equal shares are, after division by their weights.
 *
 * @param jain Jain's index (sum x)^2 / (n sum x^2): 1 = all equal, 1/n = one has it all
 * @param coefficientOfVariation standard deviation over mean of x: 0 = all equal
 * @param groups how many shares, n
 */
public record Fairness(double jain, double coefficientOfVariation, int groups) {
    /**
     * Of shares that were taken.
     *
     * @param shares  time of each group, in any unit
     * @param weights its weight, greater than 0
     * @return the figures; jain 1 and variation 0 where there are fewer than two groups
     */
    public static Fairness of(final long[] shares, final int[] weights) {
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < shares.length; i++) {
            final double x = (double) shares[i] / weights[i];
            sum += x;
            squares += x * x;
        }
        if (shares.length < 2 || squares == 0) {
            return new Fairness(1, 0, shares.length);
        }
        final double mean = sum / shares.length;
        final double variance = Math.max(0, squares / shares.length - mean * mean);
        return new Fairness(sum * sum / (shares.length * squares), Math.sqrt(variance) / mean, shares.length);
    }
}

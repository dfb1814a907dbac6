/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import java.util.SplittableRandom;

/**
 * Seeds of single task sets, derived so that any set of an experiment can be generated again alone, on any machine, in
 * any order, by any number of threads.
 *
 * <p>The seed of a set is a hash of (seed of the experiment, number of the point, number of the set): each is mixed in
 * with the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
 * Random numbers then come from {@link SplittableRandom}, whose algorithm its specification fixes.
 */
public final class Seeds {
    private static final long GOLDEN = 0x9E3779B97F4A7C15L;

    private Seeds() {
    }

    /**
     * The seed of one set.
     *
     * @param experimentSeed what the user gave
     * @param point          number of the point in a sweep; 0 elsewhere
     * @param set            number of the set in its point, from 0
     * @return the derived seed
     */
    public static long of(final long experimentSeed, final long point, final long set) {
        return mix(mix(mix(experimentSeed + GOLDEN) + point * GOLDEN) + (set + 1) * GOLDEN);
    }

    /**
     * The generator of one set.
     *
     * @param experimentSeed what the user gave
     * @param point          number of the point in a sweep; 0 elsewhere
     * @param set            number of the set in its point, from 0
     * @return a fresh generator
     */
    public static SplittableRandom random(final long experimentSeed, final long point, final long set) {
        return new SplittableRandom(of(experimentSeed, point, set));
    }

    private static long mix(final long value) {
        long z = value;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}

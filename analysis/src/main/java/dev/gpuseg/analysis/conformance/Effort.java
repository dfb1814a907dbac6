/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

/**
 * How hard the kit looks for a counterexample.
 *
 * @param seed      of all random choices; the same seed gives the same questions and events
 * @param segments  random segments that a policy is asked about
 * @param sequences random sequences of events
 * @param events    length of each
 * @param limitNs   the whole run must end within this time; a policy that does not answer fails
 */
public record Effort(long seed, int segments, int sequences, int events, long limitNs) {
    /** What {@code gpuseg policy verify} does: some seconds. */
    public static final Effort FULL = new Effort(1, 60, 1500, 100, 120_000_000_000L);
    /** What a daemon does before it takes a policy: well below a second, but for loading and warming up. */
    public static final Effort FAST = new Effort(1, 30, 60, 60, 30_000_000_000L);

    /** Checks the numbers. */
    public Effort {
        if (segments < 3 || sequences < 1 || events < 1 || limitNs < 1) {
            throw new IllegalArgumentException("effort " + segments + " segments, " + sequences + " sequences of "
                + events + " events, " + limitNs + " ns: there must be 3 segments, 1 sequence, 1 event, 1 ns");
        }
    }

    /** A copy with another seed of all random choices. */
    public Effort withSeed(final long newSeed) {
        return new Effort(newSeed, segments, sequences, events, limitNs);
    }

    /** A copy with another limit of the whole run. */
    public Effort withLimit(final long newLimitNs) {
        return new Effort(seed, segments, sequences, events, newLimitNs);
    }
}

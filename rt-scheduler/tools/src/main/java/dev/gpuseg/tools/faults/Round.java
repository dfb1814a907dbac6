/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * One round, all of it drawn before the first is played: the same seed gives the same rounds, whatever happens in them.
 *
 * @param number   from 1
 * @param fault    what is broken
 * @param step     when
 * @param delayMs  how long after that moment, 0..60
 * @param lengthMs how long a stop, a full disk or a load lasts, 150..500
 * @param variant  which of several forms of the fault, 0..999
 */
public record Round(int number, Fault fault, Step step, int delayMs, int lengthMs, int variant) {
    private static final int DELAY_MS = 61;
    private static final int SHORTEST_MS = 150;
    private static final int LENGTH_MS = 351;
    private static final int VARIANTS = 1000;

    /**
     * Draws a campaign. Every fault comes equally often, up to one, in random order.
     *
     * @param rounds how many, at least 1
     * @param seed   any
     * @param faults which, at least one
     * @return the rounds in their order
     */
    public static List<Round> plan(final int rounds, final long seed, final List<Fault> faults) {
        final Random random = new Random(seed);
        final List<Round> plan = new ArrayList<>(rounds);
        final List<Fault> deck = new ArrayList<>();
        for (int number = 1; number <= rounds; number++) {
            if (deck.isEmpty()) {
                deck.addAll(faults);
                Collections.shuffle(deck, random);
            }
            final Fault fault = deck.remove(deck.size() - 1);
            final Step step = fault.steps().get(random.nextInt(fault.steps().size()));
            plan.add(new Round(number, fault, step, random.nextInt(DELAY_MS), SHORTEST_MS + random.nextInt(LENGTH_MS),
                random.nextInt(VARIANTS)));
        }
        return plan;
    }

    /** One line for people. */
    @Override
    public String toString() {
        return "round " + number + ": " + fault.label() + ", " + step.name().toLowerCase(java.util.Locale.ROOT)
            + " + " + delayMs + " ms, length " + lengthMs + " ms, variant " + variant;
    }
}

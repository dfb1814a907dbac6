/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** What came of a campaign. */
public final class Tally {
    private static final double NS_PER_MS = 1e6;
    private static final double DIGITS = 1e3;

    /**
     * What came of one round.
     *
     * @param round    what was planned
     * @param skipped  why it could not be played here, empty if it was
     * @param lost     acknowledged records that are nowhere
     * @param hung     processes that did not go on
     * @param freezeNs longest time that a context was disabled after the fault
     * @param wallNs   how long the round took, its judgement included
     * @param faults   everything that was not as it must be, one line each
     */
    public record RoundResult(Round round, String skipped, long lost, int hung, long freezeNs, long wallNs,
        List<String> faults) {
        /** Whether the fault struck: false if it was skipped. */
        public boolean isInjected() {
            return skipped.isEmpty();
        }

        /** Whether everything was as it must be. */
        public boolean isSurvived() {
            return isInjected() && faults.isEmpty();
        }
    }

    /** Sums of one fault. */
    private static final class Sum {
        private int rounds;
        private int injected;
        private int survived;
        private long freezeNs;
        private long wallNs;
        private String skipped = "";
    }

    private final long seed;
    private final List<RoundResult> outcomes = new ArrayList<>();

    /** Begins a tally of the campaign with a seed. */
    public Tally(final long seed) {
        this.seed = seed;
    }

    /** Adds a round. */
    public void add(final RoundResult outcome) {
        outcomes.add(outcome);
    }

    /**
     * Whether the campaign is passed.
     *
     * @param freezeLimitNs longest freeze allowed
     * @return true if nothing was lost, nothing hung, no freeze was longer, and every fault that struck was survived
     */
    public boolean holds(final long freezeLimitNs) {
        return outcomes.stream().allMatch(o -> !o.isInjected()
            || o.isSurvived() && o.lost() == 0 && o.hung() == 0
            && (o.freezeNs() <= freezeLimitNs || !o.round().fault().isGuarded()));
    }

    /** The longest freeze while there was a watchdog, ns. */
    public long longestFreezeNs() {
        return outcomes.stream().filter(o -> o.round().fault().isGuarded())
            .mapToLong(RoundResult::freezeNs).max().orElse(0);
    }

    /**
     * As JSON: {@code rounds, seed, injected, survived, lost, hung, longest_freeze_ms, by_fault}; {@code mean_ms} in
     * {@code by_fault} is the time of a round, skipped ones included.
     */
    public ObjectNode asJson() {
        final Map<Fault, Sum> sums = new EnumMap<>(Fault.class);
        long lost = 0;
        long hung = 0;
        int injected = 0;
        int survived = 0;
        for (final RoundResult outcome : outcomes) {
            final Sum sum = sums.computeIfAbsent(outcome.round().fault(), key -> new Sum());
            sum.rounds++;
            sum.injected += outcome.isInjected() ? 1 : 0;
            sum.survived += outcome.isSurvived() ? 1 : 0;
            sum.wallNs += outcome.wallNs();
            sum.freezeNs = Math.max(sum.freezeNs, outcome.freezeNs());
            sum.skipped = outcome.isInjected() ? sum.skipped : outcome.skipped();
            injected += outcome.isInjected() ? 1 : 0;
            survived += outcome.isSurvived() ? 1 : 0;
            lost += outcome.lost();
            hung += outcome.hung();
        }
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("rounds", outcomes.size());
        root.put("seed", seed);
        root.put("injected", injected);
        root.put("survived", survived);
        root.put("lost", lost);
        root.put("hung", hung);
        root.put("longest_freeze_ms", milliseconds(longestFreezeNs()));
        final ObjectNode byFault = root.putObject("by_fault");
        sums.forEach((fault, sum) -> {
            final ObjectNode node = byFault.putObject(fault.label());
            node.put("rounds", sum.rounds);
            node.put("injected", sum.injected);
            node.put("survived", sum.survived);
            node.put("longest_freeze_ms", milliseconds(sum.freezeNs));
            node.put("mean_ms", milliseconds(sum.wallNs / sum.rounds));
            if (!sum.skipped.isEmpty()) {
                node.put("skipped", sum.skipped);
            }
        });
        return root;
    }

    private static double milliseconds(final long ns) {
        return Math.round(ns / NS_PER_MS * DIGITS) / DIGITS;
    }
}

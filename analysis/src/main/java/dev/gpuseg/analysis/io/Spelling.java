/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.util.Collection;
import java.util.List;

/** What to say about a word that is not known. Thread-safe. */
public final class Spelling {
    private static final int MAX_COMPARED = 40;
    /** So many letters are an abbreviation: prio. */
    private static final int PREFIX_MIN = 3;

    private Spelling() {
    }

    /**
     * Names the word that was probably meant, else all that are known, in alphabetical order.
     *
     * @param word  what was written
     * @param known what there is
     * @return a clause: {@code did you mean 'policy'?}
     */
    public static String advice(final String word, final Collection<String> known) {
        final List<String> longer = known.stream().filter(k -> word.length() >= PREFIX_MIN && k.startsWith(word))
            .toList();
        if (longer.size() == 1) {
            return "did you mean '" + longer.get(0) + "'?";
        }
        String best = null;
        int bestDistance = Integer.MAX_VALUE;
        for (final String candidate : known.stream().sorted().toList()) {
            final int distance = distance(word, candidate);
            if (distance < bestDistance) {
                bestDistance = distance;
                best = candidate;
            }
        }
        if (best != null && bestDistance <= Math.max(1, (best.length() + 1) / 3)) {
            return "did you mean '" + best + "'?";
        }
        return "known are " + String.join(", ", known.stream().sorted().toList());
    }

    /** Levenshtein's: how many letters to change, add or remove. */
    private static int distance(final String a, final String b) {
        if (a.length() > MAX_COMPARED) {
            return Integer.MAX_VALUE;
        }
        int[] previous = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            previous[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            final int[] current = new int[b.length() + 1];
            current[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                final int change = a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1;
                current[j] = Math.min(Math.min(current[j - 1], previous[j]) + 1, previous[j - 1] + change);
            }
            previous = current;
        }
        return previous[b.length()];
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import java.math.BigInteger;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Names of software versions. */
final class Versions {
    /** As a reader orders them: 2.10 after 2.9. */
    static final Comparator<String> ORDER = Versions::compare;
    private static final Pattern PART = Pattern.compile("\\d+|\\D+");

    /** Two versions to compare. */
    record Pair(String before, String after) {
    }

    private Versions() {
    }

    private static int compare(final String a, final String b) {
        final Matcher left = PART.matcher(a);
        final Matcher right = PART.matcher(b);
        while (true) {
            final boolean more = left.find();
            if (!more || !right.find()) {
                final int shorter = Boolean.compare(more, more || right.find());
                return shorter != 0 ? shorter : more ? 1 : a.compareTo(b);
            }
            final boolean numbers = Character.isDigit(left.group().charAt(0))
                && Character.isDigit(right.group().charAt(0));
            final int order = numbers ? new BigInteger(left.group()).compareTo(new BigInteger(right.group()))
                : left.group().compareTo(right.group());
            if (order != 0) {
                return order;
            }
        }
    }

    /**
     * The versions to compare.
     *
     * @param known  in their order
     * @param before asked for; null = the last but one
     * @param after  asked for; null = the last
     * @return null if none are asked for and there are not two
     * @throws IllegalArgumentException if one that is asked for does not occur
     */
    static Pair choose(final List<String> known, final String before, final String after) {
        for (final String asked : new String[] {before, after}) {
            if (asked != null && !known.contains(asked)) {
                throw new IllegalArgumentException("--compare names version " + asked
                    + ", which no recording has; there are " + String.join(", ", known));
            }
        }
        if (before != null && after != null) {
            return new Pair(before, after);
        }
        return known.size() < 2 ? null : new Pair(known.get(known.size() - 2), known.get(known.size() - 1));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Counts and findings of some sets. Immutable. */
public final class Tally implements Serializable {
    /** Columns of this prefix are combined by their maximum, not summed. */
    public static final String MAX = "max ";
    private static final long serialVersionUID = 1;
    /** Findings that a merged tally keeps: the first ones, in the order of the sets. */
    private static final int FINDINGS_MAX = 200;

    private final long[] counts;
    private final ArrayList<Finding> findings;

    /**
     * A tally.
     *
     * @param counts   by column; kept, not copied
     * @param findings in the order of the sets
     */
    public Tally(final long[] counts, final List<Finding> findings) {
        this.counts = counts;
        this.findings = new ArrayList<>(findings);
    }

    /**
     * Combines the tallies of parts. Sums and maxima of integers are exact, so the parts may be any.
     *
     * @param columns names of the counts
     * @param parts   in the order of their sets
     * @return the tally of all sets
     */
    public static Tally merge(final List<String> columns, final List<Tally> parts) {
        final long[] sum = new long[columns.size()];
        final List<Finding> kept = new ArrayList<>();
        for (final Tally part : parts) {
            for (int i = 0; i < sum.length; i++) {
                sum[i] = columns.get(i).startsWith(MAX) ? Math.max(sum[i], part.counts[i]) : sum[i] + part.counts[i];
            }
            part.findings.stream().limit(FINDINGS_MAX - kept.size()).forEach(kept::add);
        }
        return new Tally(sum, kept);
    }

    /**
     * The counts by the names of their columns.
     *
     * @param columns names, in the order of the counts
     * @return in the order of the columns
     */
    public Map<String, Long> byName(final List<String> columns) {
        final Map<String, Long> result = new LinkedHashMap<>();
        for (int i = 0; i < counts.length; i++) {
            result.put(columns.get(i), counts[i]);
        }
        return result;
    }

    /** What is to be kept as files; in the order of the sets. */
    public List<Finding> findings() {
        return List.copyOf(findings);
    }
}

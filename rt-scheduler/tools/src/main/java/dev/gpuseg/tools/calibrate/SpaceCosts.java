/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.daemon.space.Space;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * What was measured of a space, and the limits that it gives: the longest of all rows, with a margin. No proof that
 * nothing is longer, and nothing of long tasks beside work in the reserve, for which the analysis counts the slowdown,
 * too. Immutable.
 *
 * @param space its reserve and places
 * @param rows  one for each work and set of loads; not empty
 */
public record SpaceCosts(Space space, List<SpaceRow> rows) {
    private static final long PERCENT = 100;
    private static final long PERMILLE = 1_000;
    private static final double NS_PER_MS = 1e6;

    /** Copies the list. */
    public SpaceCosts {
        rows = List.copyOf(rows);
    }

    private static String name(final SpaceRow row) {
        return row.work() + " beside " + String.join(", ", row.loads());
    }

    /** One row in a line, for people. */
    static String line(final SpaceRow row) {
        return String.format(Locale.ROOT, "%-40s up to %6.1f %% longer, in flight up to %7.3f ms", name(row),
            row.slowdownPermille() * PERCENT / (double) PERMILLE, row.inFlightNs() / NS_PER_MS);
    }

    private SpaceRow slowest() {
        return rows.stream().max(Comparator.comparingLong(SpaceRow::slowdownPermille)).orElseThrow();
    }

    private SpaceRow longest() {
        return rows.stream().max(Comparator.comparingLong(SpaceRow::inFlightNs)).orElseThrow();
    }

    /**
     * The limits for a profile: slowdown rounded up to a percent.
     *
     * @param margin percent, added to the slowdown and to the time in flight
     * @throws IllegalStateException if the analysis takes no such limits, with the row that is to blame
     */
    public SpaceLimits limits(final int margin) {
        final long slowdown = IntegerMath.ceilDiv(slowest().slowdownPermille() * (PERCENT + margin), PERMILLE);
        final long inFlightNs = IntegerMath.ceilDiv(longest().inFlightNs() * (PERCENT + margin), PERCENT);
        try {
            return new SpaceLimits(space.reservePercent(), (int) Math.min(Integer.MAX_VALUE, slowdown), inFlightNs);
        } catch (final InvalidModelException e) {
            throw new IllegalStateException("calibrate: " + e.getMessage() + " (" + line(slowest()) + "; "
                + line(longest()) + "; margin " + margin + " %)", e);
        }
    }

    /** Writes the distributions of all rows. */
    public void describe(final ObjectNode into) {
        into.put("reserve_percent", space.reservePercent()).put("places", space.places().size())
            .put("place_percent", space.places().get(0)).put("slowest", name(slowest()))
            .put("longest", name(longest()));
        final ArrayNode list = into.putArray("rows");
        rows.forEach(row -> row.describe(list.addObject()));
    }
}

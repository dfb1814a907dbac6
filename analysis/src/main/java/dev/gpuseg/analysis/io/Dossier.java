/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.rta.TurnChoice;
import java.util.List;
import java.util.Map;

/**
 * What a report says besides the bounds.
 *
 * @param measured   responses that were measured, or null
 * @param refusals   by the name of the analysis: why it refuses the set, and what would help; none where it accepts
 * @param provenance what the report was made of
 * @param turns      which of the bounds by calls and by turns was chosen; null = only one was asked for
 */
public record Dossier(Measurement measured, Map<String, List<String>> refusals, Provenance provenance,
    TurnChoice turns) {
    /** Copies the map. */
    public Dossier {
        refusals = Map.copyOf(refusals);
    }

    /**
     * Without a choice between bounds.
     *
     * @param measured   as above
     * @param refusals   as above
     * @param provenance as above
     */
    public Dossier(final Measurement measured, final Map<String, List<String>> refusals,
        final Provenance provenance) {
        this(measured, refusals, provenance, null);
    }

    /** What was chosen and what waits cost; none if only one analysis was asked for. */
    public List<String> turnLines() {
        return turns == null ? List.of() : turns.lines();
    }

    /**
     * Why an analysis refuses the set, and what would help.
     *
     * @param analysis its name
     * @return lines; none if it accepts the set
     */
    public List<String> refusal(final String analysis) {
        return refusals.getOrDefault(analysis, List.of());
    }
}

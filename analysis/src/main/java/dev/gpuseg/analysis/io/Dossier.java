/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.util.List;
import java.util.Map;

/**
 * What a report says besides the bounds.
 *
 * @param measured   responses that were measured, or null
 * @param refusals   by the name of the analysis: why it refuses the set, and what would help; none where it accepts
 * @param provenance what the report was made of
 */
public record Dossier(Measurement measured, Map<String, List<String>> refusals, Provenance provenance) {
    /** Copies the map. */
    public Dossier {
        refusals = Map.copyOf(refusals);
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

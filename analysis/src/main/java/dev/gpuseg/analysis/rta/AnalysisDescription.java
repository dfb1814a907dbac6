/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analysis.Claim;
import java.util.Objects;

/**
 * What is known of an analysis apart from its equations: its row in {@link Analyses}. Which policies an analysis holds
 * for stands in the core's catalogue of policies.
 *
 * @param name      used on the command line and in results: lower case with hyphens
 * @param mode      the wait mode that the analysis assumes, whatever the set says
 * @param origin    where the bound comes from
 * @param claim     what a positive verdict guarantees
 * @param model     the schedule that it bounds
 * @param inFigures whether a sweep over the published figures includes it
 * @param summary   what it analyses and from where, in one line for lists and reports
 */
public record AnalysisDescription(String name, WaitMode mode, Origin origin, Claim claim, Model model,
    boolean inFigures, String summary) {
    /** Where a bound comes from. */
    public enum Origin {
        /** A publication, possibly corrected; the class says how. */
        PUBLISHED,
        /** This project; the proof is in {@code analysis/docs}. */
        OURS
    }

    /** Checks that everything is given. */
    public AnalysisDescription {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(mode, "mode");
        Objects.requireNonNull(origin, "origin");
        Objects.requireNonNull(claim, "claim");
        Objects.requireNonNull(model, "model");
        Objects.requireNonNull(summary, "summary");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Hypotheses.Finding;
import dev.gpuseg.analysis.rta.Hypotheses.Status;
import dev.gpuseg.core.PolicyAnalysis;
import dev.gpuseg.core.PolicyAnalysis.Cores;
import dev.gpuseg.core.PolicyAnalysis.Level;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import java.util.List;
import java.util.Locale;

/**
 * What a positive verdict of an analysis guarantees for a set under this scheduler. Every report, the list of analyses
 * and admission print the same one.
 *
 * @param verdict  the answer
 * @param text     the answer in one line, with the policy that must run and the hypotheses that fail
 * @param findings every hypothesis with what is known of it
 */
public record Soundness(Verdict verdict, String text, List<Finding> findings) {
    /** Whether a bound holds. */
    public enum Verdict {
        /** It does, under the hypotheses that are assumed. */
        SOUND,
        /** It does, if the programs do what the set does not state, and what nothing checks is so. */
        CONDITIONAL,
        /** It need not. */
        NOT_SOUND;

        /**
         * The word in results.
         *
         * @return lower case with hyphens
         */
        public String word() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    /** Copies the list. */
    public Soundness {
        findings = List.copyOf(findings);
    }

    /**
     * What is known without a set.
     *
     * @param analysis the analysis
     * @return the claim
     */
    public static Soundness of(final AnalysisDescription analysis) {
        return of(analysis, null, false);
    }

    /**
     * The claim for a set of which only the file is known.
     *
     * @param analysis the analysis
     * @param set      the set
     * @return the claim
     */
    public static Soundness of(final AnalysisDescription analysis, final TaskSet set) {
        return of(analysis, set, false);
    }

    /**
     * The claim for a set.
     *
     * @param analysis the analysis
     * @param set      the set; null: what is known without one
     * @param boosted  whether all real-time tasks are known to be open with a boost
     * @return the claim
     */
    public static Soundness of(final AnalysisDescription analysis, final TaskSet set, final boolean boosted) {
        final List<Finding> findings = Hypotheses.of(analysis, set, boosted);
        final String where = isTogether(analysis, set) ? "policy classes of class_width 99 at level 3"
            : where(analysis.name(), set != null && !set.platform().space().isNone());
        final String fails = list(findings, Status.FAILS);
        final String stated = list(findings, Status.NOT_STATED);
        final String checked = list(findings, Status.NOT_CHECKED);
        final String open = stated + (stated.isEmpty() || checked.isEmpty() ? "" : "; ") + checked;
        if (!fails.isEmpty() || where.isEmpty()) {
            return new Soundness(Verdict.NOT_SOUND, "not sound for this scheduler"
                + (fails.isEmpty() ? "" : ": " + fails), findings);
        }
        return open.isEmpty() ? new Soundness(Verdict.SOUND, "sound for this scheduler with " + where, findings)
            : new Soundness(Verdict.CONDITIONAL, "sound for this scheduler with " + where + ", if " + open, findings);
    }

    /** The bounds count real-time contexts that no policy disables. */
    private static boolean isTogether(final AnalysisDescription analysis, final TaskSet set) {
        return analysis.model() == Model.TURNS && set != null && set.platform().limits().turns() != null
            && set.platform().limits().turns().together();
    }

    private static String list(final List<Finding> findings, final Status status) {
        final StringBuilder out = new StringBuilder();
        for (final Finding finding : findings) {
            if (finding.status() == status) {
                out.append(out.isEmpty() ? "" : "; ").append(finding.hypothesis().id()).append(": ")
                    .append(finding.detail());
            }
        }
        return out.toString();
    }

    /** The policy and the mechanism for which the catalogue of policies names the analysis; empty if it does not. */
    private static String where(final String analysis, final boolean space) {
        for (final PolicyDescription row : PolicyCatalog.builtIn().all()) {
            for (final PolicyAnalysis proven : row.analyses()) {
                if (proven.name().equals(analysis)) {
                    return "policy " + row.name() + (proven.level() == Level.GATE ? " at level 1 (gate)"
                        : space ? " under --space" : " at level 3")
                        + (proven.cores() == Cores.DEADLINE ? ", cores by deadline" : "");
                }
            }
        }
        return "";
    }
}

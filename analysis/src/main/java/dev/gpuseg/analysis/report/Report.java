/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.io.Dossier;
import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.analysis.io.Provenance;
import dev.gpuseg.analysis.io.Verdict;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.Hypotheses;
import java.util.ArrayList;
import java.util.List;

/**
 * The content of the HTML, text and JSON reports of one task set. The three are renderings of the same value.
 *
 * @param set      the set
 * @param sections one for each analysis, in the order asked for
 * @param dossier  what is known besides the bounds
 * @param verdict  the answer in one sentence
 */
public record Report(TaskSet set, List<Section> sections, Dossier dossier, Verdict verdict) {
    /** Version of this program; a test compares it with the build. */
    public static final String VERSION = "0.1.0";
    /** Simulated runs per analysis. */
    public static final int RUNS = 200;

    /**
     * The result of one analysis.
     *
     * @param analysis    the analysis
     * @param result      its bounds
     * @param sensitivity how much the set may change
     * @param worst       the worst simulated run of the mechanism that the analysis describes; null if none was
     *                    simulated
     */
    public record Section(Analysis analysis, AnalysisResult result, Sensitivity sensitivity, WorstCase worst) {
    }

    /** Copies the list. */
    public Report {
        sections = List.copyOf(sections);
    }

    /**
     * Adds sensitivity and simulation to the bounds of a set.
     *
     * @param set     every task with a core, real-time tasks with priorities
     * @param results one for each analysis, at least one
     * @param dossier what is known besides the bounds
     * @return the report
     */
    public static Report create(final TaskSet set, final List<AnalysisResult> results, final Dossier dossier) {
        final List<Section> sections = new ArrayList<>();
        for (final AnalysisResult result : results) {
            final Analysis analysis = Analyses.get(result.analysis());
            final TaskSet inMode = set.withMode(analysis.mode());
            // in the other mode threads can wait for each other without end: there is no response to simulate
            final boolean refused = !Hypotheses.conflict(analysis.description(), inMode).isEmpty();
            final WorstCase worst = refused ? null : WorstCase.search(inMode,
                WorstCase.mechanismOf(analysis.description().model(), set.platform().optimistic(),
                    WorstCase.usualDurationNs(inMode)), RUNS, 1);
            sections.add(new Section(analysis, result, Sensitivity.of(analysis, refused ? set : inMode), worst));
        }
        return new Report(set, sections, dossier, Verdict.of(set, results, dossier.measured()));
    }

    /**
     * The same for a set of which only the content of its file is known.
     *
     * @param set     every task with a core, real-time tasks with priorities
     * @param input   contents of the file that it came from
     * @param results one for each analysis, at least one
     * @return the report
     */
    public static Report create(final TaskSet set, final byte[] input, final List<AnalysisResult> results) {
        return create(set, results, new Dossier(null, Refusals.of(results.stream().map(AnalysisResult::analysis)
            .map(Analyses::get).toList(), set, results), new Provenance("gpuseg " + VERSION,
            List.of(new Provenance.Input("task set", set.id(), Provenance.sha256(input), "")), List.of())));
    }

    /** The measured responses, or null. */
    public Measurement measured() {
        return dossier.measured();
    }

    /** Whether the set passes every analysis of the report. */
    public boolean schedulable() {
        return sections.stream().allMatch(s -> s.result().schedulable());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.Hypotheses;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * The content of the HTML, text and JSON reports of one task set. The three are renderings of the same value.
 *
 * @param set         the set
 * @param inputName   name of the input: the id of the set
 * @param inputSha256 SHA-256 of that file, 64 hexadecimal digits
 * @param toolVersion version of this program
 * @param sections    one for each analysis, in the order asked for
 * @param measured    responses that were measured, or null
 */
public record Report(TaskSet set, String inputName, String inputSha256, String toolVersion, List<Section> sections,
    Measurement measured) {
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
     * @param input   contents of the file that it came from
     * @param results one for each analysis, at least one
     * @return the report
     */
    public static Report create(final TaskSet set, final byte[] input, final List<AnalysisResult> results) {
        return create(set, input, results, null);
    }

    /**
     * The same, with measured responses for comparison with the bounds.
     *
     * @param set      every task with a core, real-time tasks with priorities
     * @param input    contents of the file that it came from
     * @param results  one for each analysis, at least one
     * @param measured or null
     * @return the report
     */
    public static Report create(final TaskSet set, final byte[] input, final List<AnalysisResult> results,
        final Measurement measured) {
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
        return new Report(set, set.id(), sha256(input), VERSION, sections, measured);
    }

    /** Whether the set passes every analysis of the report. */
    public boolean schedulable() {
        return sections.stream().allMatch(s -> s.result().schedulable());
    }

    private static String sha256(final byte[] input) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(input));
        } catch (final NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java runtime has SHA-256", e);
        }
    }
}

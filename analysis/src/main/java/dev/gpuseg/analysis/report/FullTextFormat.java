/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.analysis.io.ReportFormat;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.AnalysisResult;
import java.util.List;

/** {@code analyze --format report-text}: the numbers of the HTML report for a terminal. */
public final class FullTextFormat implements ReportFormat {
    /** For the service loader. */
    public FullTextFormat() {
        // nothing to set up
    }

    @Override
    public String name() {
        return "report-text";
    }

    @Override
    public String render(final TaskSet set, final byte[] source, final List<AnalysisResult> results,
        final Measurement measured) {
        return TextReport.render(Report.create(set, source, results, measured));
    }
}

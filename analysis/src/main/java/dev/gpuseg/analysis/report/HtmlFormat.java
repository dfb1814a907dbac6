/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.analysis.io.ReportFormat;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.AnalysisResult;
import java.util.List;

/** {@code analyze --format html}. */
public final class HtmlFormat implements ReportFormat {
    /** For the service loader. */
    public HtmlFormat() {
        // nothing to set up
    }

    @Override
    public String name() {
        return "html";
    }

    @Override
    public String render(final TaskSet set, final byte[] source, final List<AnalysisResult> results,
        final Measurement measured) {
        return HtmlReport.render(Report.create(set, source, results, measured));
    }
}

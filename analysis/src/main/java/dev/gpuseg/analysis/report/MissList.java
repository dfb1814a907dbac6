/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import static dev.gpuseg.analysis.report.SvgCanvas.escape;

import dev.gpuseg.analysis.io.MissWriter;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.MissBound;

/** The tasks of one analysis that may miss deadlines, in the HTML report. */
final class MissList {
    private MissList() {
    }

    static String of(final AnalysisResult result) {
        if (result.misses().isEmpty()) {
            return "";
        }
        final StringBuilder out = new StringBuilder("<h3>Misses under overload</h3>\n<ul>\n");
        for (final MissBound bound : result.misses()) {
            out.append("<li").append(bound.holds() ? "" : " class=\"miss\"").append(" data-misses=\"")
                .append(escape(bound.task())).append("\">").append(escape(bound.task())).append(": ")
                .append(escape(MissWriter.sentence(bound))).append("</li>\n");
        }
        return out.append("</ul>\n").toString();
    }
}

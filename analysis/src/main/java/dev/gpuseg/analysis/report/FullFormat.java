/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.io.Dossier;
import dev.gpuseg.analysis.io.ReportFormat;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.AnalysisResult;
import java.util.List;
import java.util.function.Function;

/** A form of the full report: bounds, sensitivity and the worst simulated case. */
abstract class FullFormat implements ReportFormat {
    private final String name;
    private final Function<Report, String> rendering;

    FullFormat(final String name, final Function<Report, String> rendering) {
        this.name = name;
        this.rendering = rendering;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final String render(final TaskSet set, final List<AnalysisResult> results, final Dossier dossier) {
        return rendering.apply(Report.create(set, results, dossier));
    }
}

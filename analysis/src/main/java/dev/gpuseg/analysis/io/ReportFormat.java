/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.AnalysisResult;
import java.util.List;

/**
 * A format of results, in addition to the built-in {@code text} and {@code json}. Found by
 * {@link java.util.ServiceLoader}.
 */
public interface ReportFormat {
    /** The word after {@code --format}; lower case, like {@code html}. */
    String name();

    /**
     * Renders results.
     *
     * @param set     the analysed set
     * @param results one per analysis
     * @param dossier what is known besides the bounds
     * @return the whole document
     */
    String render(TaskSet set, List<AnalysisResult> results, Dossier dossier);
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import static dev.gpuseg.analysis.report.SvgCanvas.escape;

import dev.gpuseg.analysis.io.ChainWriter;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.ChainResult;
import dev.gpuseg.analysis.rta.Soundness;

/** The chains of one analysis in the HTML report. */
final class ChainTable {
    private ChainTable() {
    }

    static String of(final AnalysisResult result, final Soundness soundness) {
        if (result.chains().isEmpty()) {
            return "";
        }
        final StringBuilder out = new StringBuilder("<h3>Chains</h3>\n<p>Bounds are ")
            .append(escape(ChainWriter.claim(soundness)))
            .append(".</p>\n<div class=\"scroll\"><table class=\"chains\"><thead><tr><th>Chain</th><th>Task</th>"
                + "<th>Edge</th><th>Waits for its sample</th><th>Responds in</th><th>Reaction (bound)</th>"
                + "<th>Limit</th><th>Age (bound)</th><th>Limit</th><th>Verdict</th></tr></thead><tbody>\n");
        for (final ChainResult chain : result.chains()) {
            out.append("<tr").append(chain.schedulable() ? "" : " class=\"miss\"").append(" data-chain=\"")
                .append(escape(chain.name())).append("\"><td>").append(escape(chain.name()))
                .append("</td><td colspan=\"4\">").append(chain.problem().isEmpty() ? "longest: "
                    + escape(chain.dominant().task()) : "no bound: " + escape(chain.problem())).append("</td>");
            cell(out, "reaction", chain.reaction().boundNs());
            cell(out, "reaction-limit", limit(chain.reaction()));
            cell(out, "age", chain.age().boundNs());
            cell(out, "age-limit", limit(chain.age()));
            out.append("<td>").append(!chain.schedulable() ? "<span class=\"badge no\">\u2717 may miss</span>"
                : soundness.verdict() == Soundness.Verdict.NOT_SOUND ? "<span class=\"badge open\">no proof</span>"
                    : "<span class=\"badge yes\">\u2713 holds</span>").append("</td></tr>\n");
            for (final ChainResult.Step step : chain.steps()) {
                out.append("<tr><td></td><td>").append(escape(step.task())).append("</td><td>").append(step.edge())
                    .append("</td>");
                cell(out, "wait", step.waitNs());
                cell(out, "response", step.responseNs());
                out.append("<td colspan=\"5\"></td></tr>\n");
            }
        }
        return out.append("</tbody></table></div>\n<p class=\"note\">Times in ms. Reaction: from an event at the input "
            + "to the end of the first job of the last task that reflects it. Age: from the read of a sample to the "
            + "end of the last job of the last task that uses it; the wait of the last sample does not count.</p>\n")
            .toString();
    }

    private static Long limit(final ChainResult.Latency latency) {
        return latency.deadlineNs() == 0 ? null : Long.valueOf(latency.deadlineNs());
    }

    private static void cell(final StringBuilder out, final String key, final Long ns) {
        if (ns == null) {
            out.append("<td class=\"n\" data-key=\"").append(key).append("\">\u2013</td>");
        } else {
            out.append("<td class=\"n\" data-key=\"").append(key).append("\" data-ns=\"").append(ns).append("\">")
                .append(Figures.ms(ns)).append("</td>");
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.io.ChainWriter;
import dev.gpuseg.analysis.io.DossierWriter;
import dev.gpuseg.analysis.io.MissWriter;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TaskResult;
import java.util.Locale;

/** The report for a terminal. */
public final class TextReport {
    private TextReport() {
    }

    /**
     * Renders a report.
     *
     * @param report the report
     * @return lines of text
     */
    public static String render(final Report report) {
        final StringBuilder out = new StringBuilder();
        out.append(report.set().id()).append(": ").append(report.schedulable() ? "SCHEDULABLE" : "NOT SCHEDULABLE")
            .append(report.set().platform().caveat()).append("\nverdict: ").append(report.verdict().sentence())
            .append('\n');
        report.dossier().turnLines().forEach(line -> out.append(line).append('\n'));
        int width = 4;
        for (final Task task : report.set().tasks()) {
            width = Math.max(width, task.name().length());
        }
        for (final Report.Section section : report.sections()) {
            final Soundness soundness = Soundness.of(section.analysis().description(), report.set());
            out.append('\n').append(section.analysis().name()).append(": ")
                .append(section.result().schedulable() ? "yes" : "no").append("   ")
                .append(section.analysis().summary()).append("\n  ").append(soundness.text()).append('\n');
            final String row = "  %-" + width + "s %3s %4s %11s %11s %8s %11s %11s %11s %11s  %s%n";
            out.append(String.format(Locale.ROOT, row, "task", "cpu", "prio", "C (ms)", "G (ms)", "U", "D (ms)",
                "R (ms)",
                "slack (ms)", "seen (ms)", "verdict"));
            for (int i = 0; i < report.set().tasks().size(); i++) {
                final Task task = report.set().tasks().get(i);
                final TaskResult bound = section.result().tasks().get(i);
                out.append(String.format(Locale.ROOT, row, task.name(), task.cpu(), task.bestEffort() ? "be"
                    : task.priority(), Figures.ms(task.cpuNs()), Figures.ms(task.gpuNs()),
                    Figures.share(task.cpuNs() + task.gpuNs(), task.periodNs()), Figures.ms(task.deadlineNs()),
                    bound.wcrtNs() == null ? bound.passed() == null ? "-" : ">="
                        + Figures.msDown(bound.passed().totalNs()) : Figures.ms(bound.wcrtNs()),
                    bound.wcrtNs() == null ? "-" : Figures.msDown(task.deadlineNs() - bound.wcrtNs()),
                    section.worst() == null ? "-" : Figures.ms(section.worst().maxResponseNs().get(i)),
                    task.bestEffort() ? "best effort" : bound.schedulable() ? "ok" : "MISS"));
            }
            if (report.measured() != null) {
                out.append("  measured (").append(report.measured().caption()).append("): ");
                report.measured().byTask().forEach((name, figure) -> out.append(name).append(' ')
                    .append(Figures.ms(figure.maxNs())).append("  "));
                out.append('\n');
            }
            out.append(MissWriter.text(section.result()));
            out.append(ChainWriter.text(section.result(), soundness));
            final Sensitivity s = section.sensitivity();
            out.append(section.result().schedulable() ? "  before the first miss" : "  to pass, one of")
                .append(": epsilon up to ").append(s.epsilonNs().isPresent()
                ? Figures.duration(s.epsilonNs().getAsLong()) : "-").append(", all C "
                + "").append(Figures.growth(s.cpuPermille()))
                .append(", all G ").append(Figures.growth(s.gpuPermille())).append('\n');
            out.append(DossierWriter.refusal(report.dossier(), section.analysis().name()));
        }
        return out.append(DossierWriter.outOfModel()).append(DossierWriter.provenance(report.dossier())).toString();
    }
}

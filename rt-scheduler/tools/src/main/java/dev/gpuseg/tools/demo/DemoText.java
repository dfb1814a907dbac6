/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.tools.process.TerminalOutput;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * What a demo says: the line while it runs, the table, the sentence that sums it up. Writes nothing by itself.
 *
 * @param output whether lines may be written again, and colours used
 */
public record DemoText(TerminalOutput output) {
    private static final int BAR = 24;
    private static final double NS_PER_S = 1e9;
    private static final String LATE = "%6s";

    /** One line of at most 79 columns. */
    public String live(final DemoProgress.Phase phase) {
        final double share = Math.min(1.0, (double) phase.elapsedNs() / phase.durationNs());
        final int full = (int) Math.round(share * BAR);
        final String late = "missed " + phase.misses();
        return String.format(Locale.ROOT, "%-14s [%s%s] %4.1f s  jobs %4d  %s",
            phase.number() == 1 ? "without gpuseg" : "with gpuseg", "#".repeat(full), ".".repeat(BAR - full),
            phase.elapsedNs() / NS_PER_S, phase.jobs(),
            phase.misses() > 0 ? output.red(late) : output.green(late));
    }

    /** The table, a line for each task. */
    public List<String> table(final DemoRun.Result result, final String policy) {
        final List<String> lines = new ArrayList<>();
        lines.add(String.format("%-16s %4s %8s | %-30s | %-30s", "", "", "", "without gpuseg: time slices",
            "with gpuseg: policy " + policy));
        lines.add(String.format("%-16s %4s %8s | %5s %6s %8s %8s | %5s %6s %8s %8s", "task", "prio", "deadline", "jobs",
            "missed", "p50 ms", "max ms", "jobs", "missed", "p50 ms", "max ms"));
        for (int i = 0; i < result.tasks().size(); i++) {
            final Task task = result.tasks().get(i).task();
            lines.add(String.format(Locale.ROOT, "%-16s %4s %8s | %s | %s", task.name(),
                task.bestEffort() ? "-" : Integer.toString(task.priority()),
                task.bestEffort() ? "none" : String.format(Locale.ROOT, "%.4g ms", ms(task.deadlineNs())),
                figures(result.baseline().get(i)), figures(result.tasks().get(i))));
        }
        return lines;
    }

    private String figures(final TaskFigures f) {
        return String.format(Locale.ROOT, "%5d %s %8.2f %8.2f", f.jobs(), misses(f), ms(f.p50Ns()), ms(f.maxNs()));
    }

    private String misses(final TaskFigures f) {
        if (f.task().bestEffort()) {
            return String.format(LATE, "-");
        }
        final String number = String.format(LATE, f.misses());
        return f.misses() > 0 ? output.red(number) : output.green(number);
    }

    /** What came of it, in one or two sentences that hold whatever the figures are. */
    public String sentence(final DemoRun.Result result, final String policy) {
        final int missedBefore = result.baseline().stream().mapToInt(TaskFigures::misses).sum();
        final int missedAfter = result.tasks().stream().mapToInt(TaskFigures::misses).sum();
        final String before = missedBefore == 0 ? output.green("no deadline was missed")
            : output.red(missedBefore + " of " + deadlines(result.baseline()) + " deadlines were missed");
        final String after = missedAfter == 0 ? output.green("none was missed")
            : output.red(missedAfter + " of " + deadlines(result.tasks()) + " were missed");
        final StringBuilder text = new StringBuilder("Without gpuseg ").append(before).append("; with gpuseg ")
            .append(after).append('.');
        highest(result.tasks()).ifPresent(i -> text.append(String.format(Locale.ROOT,
            "%nLongest response of %s, which has the highest priority: %.1f ms without, %.1f ms with gpuseg.",
            result.tasks().get(i).task().name(), ms(result.baseline().get(i).maxNs()),
            ms(result.tasks().get(i).maxNs()))));
        if (missedAfter > 0 && !policy.equals(DemoRun.OBSERVING)) {
            text.append(String.format("%nOther work on this machine delays the tasks, too; on an idle machine the demo "
                + "shows the GPU alone."));
        }
        return text.toString();
    }

    private static Optional<Integer> highest(final List<TaskFigures> tasks) {
        return IntStream.range(0, tasks.size()).boxed()
            .filter(i -> !tasks.get(i).task().bestEffort() && tasks.get(i).task().gpuSegmentCount() > 0)
            .max(Comparator.comparingInt(i -> tasks.get(i).task().gpuPriority()));
    }

    private static int deadlines(final List<TaskFigures> tasks) {
        return tasks.stream().filter(f -> !f.task().bestEffort()).mapToInt(TaskFigures::jobs).sum();
    }

    private static double ms(final long ns) {
        return TaskFigures.milliseconds(ns);
    }
}

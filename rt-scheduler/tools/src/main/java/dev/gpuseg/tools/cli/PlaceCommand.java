/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.rta.Placement;
import dev.gpuseg.command.ExitCode;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code gpuseg place}: time or space, for each task of a set. */
@Command(name = "place", mixinStandardHelpOptions = true,
    description = "Say for each task of a set whether preemption is enough for it (outside), or where it belongs under "
        + "`gpuseg run --space`: in the reserve, inside, or in a place.",
    footer = "%nExit status: 0 every deadline holds so, 1 failure, 2 wrong use or input, 3 one may be missed all the "
        + "same.")
final class PlaceCommand implements Callable<Integer> {
    private static final double MS = 1e6;

    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "FILE", description = "Task set in YAML or JSON, with cores and priorities.")
    private Path file;

    @Override
    public Integer call() {
        final Placement placement;
        try {
            placement = Placement.of(new TaskSetReader().read(file));
        } catch (final InvalidFileException | InvalidModelException e) {
            return refuse(e.getMessage(), ExitCode.USAGE);
        } catch (final IOException e) {
            return refuse(file + ": " + e.getMessage(), ExitCode.FAILURE);
        }
        print(placement, spec.commandLine().getOut());
        return placement.holds() ? ExitCode.OK : ExitCode.NO;
    }

    private static void print(final Placement placement, final PrintWriter out) {
        final var space = placement.set().platform().space();
        out.println(placement.space() ? "space: needed (`gpuseg run --space`); reserve " + space.reservePercent()
            + "%, slowdown " + space.slowdownPercent() + "%, in_flight " + Durations.format(space.inFlightNs())
            + (placement.assumed() ? " (assumed: measure, and write them into the set)" : "")
            : "space: not needed; preemption serves every task that anything can serve");
        out.println();
        final int width = placement.rows().stream().mapToInt(row -> row.task().name().length()).max().orElse(0);
        out.printf(Locale.ROOT, "%-" + Math.max(4, width) + "s  %-12s  %9s  %11s  %s%n", "task", "where", "bound ms",
            "deadline ms", "why");
        for (final Placement.Row row : placement.rows()) {
            final boolean besteffort = row.task().bestEffort();
            out.printf(Locale.ROOT, "%-" + Math.max(4, width) + "s  %-12s  %9s  %11s  %s%n", row.task().name(),
                row.where().word() + (row.task().reservePercent() > 0 ? " " + row.task().reservePercent() + "%" : ""),
                besteffort ? "-" : row.boundNs() == null ? "none" : ms(row.boundNs()),
                besteffort ? "-" : ms(row.task().deadlineNs()), row.why());
        }
        out.println();
        out.println((placement.holds() ? "every deadline holds so" : "NOT every deadline holds so") + ", by "
            + placement.analysis() + (placement.space() ? " and theorem 18" : "") + "; `gpuseg analyze` says under "
            + "which hypotheses" + (placement.holds() ? "" : ", and what would help"));
        out.flush();
    }

    private static String ms(final long ns) {
        return String.format(Locale.ROOT, "%.3f", ns / MS);
    }

    private int refuse(final String message, final int status) {
        spec.commandLine().getErr().println("gpuseg place: " + message);
        spec.commandLine().getErr().flush();
        return status;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.NativePrograms;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;

/**
 * Proves what a mechanism can do on this machine. The C program {@code gpuseg-selftest} does it, which the
 * launchers start directly. This class is its help and manual page, and passes the words on where somebody starts it
 * through Java.
 */
@Command(name = "selftest", mixinStandardHelpOptions = true,
    modelTransformer = SelftestCommand.EveryWordIsTheProgram.class,
    description = "Prove within a minute what mechanism nvidia, tegra or amd can do on this machine. It starts CUDA "
        + "or HIP programs of its own, and disables, enables and kills them alone. No daemon may be running. gpuseg "
        + "doctor shows the last result.",
    footer = {"",
        "Words for the program:",
        "  --json           Print the result as JSON.",
        "  --evidence FILE  Write it there as JSON, too: machine, driver, verdicts and times, but no name of a host or "
            + "a user and no serial number."},
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {"0:the hardware preempts, and all that the mechanism relies on holds", "1:something does not",
        "2:usage", "3:it cannot run here"})
final class SelftestCommand implements Callable<Integer> {
    private static final String PROGRAM = "gpuseg-selftest";

    @Parameters(paramLabel = "WORD", arity = "0..*", hideParamSyntax = true,
        description = "--json, --evidence FILE, or both.")
    private List<String> words = List.of();

    @Override
    public Integer call() throws IOException, InterruptedException {
        final List<String> line = new ArrayList<>(List.of(NativePrograms.named(PROGRAM).toString()));
        line.addAll(words);
        return new ProcessBuilder(line).inheritIO().start().waitFor();
    }

    /** The options are the program's: it checks them. */
    static final class EveryWordIsTheProgram implements IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec spec) {
            spec.parser().unmatchedOptionsArePositionalParams(true);
            return spec;
        }
    }
}

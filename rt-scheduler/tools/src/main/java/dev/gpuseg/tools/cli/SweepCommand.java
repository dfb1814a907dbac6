/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.sweep.ThreadCounter;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code gpuseg sweep}: the published figures drawn again, and the comparison of bounds with simulated responses. */
@Command(name = "sweep", mixinStandardHelpOptions = true,
    description = {"Analyse or simulate many random task sets, on all cores.",
        "8a..8f, 9a..9f: the published figures, as CSV and SVG with the published curves beside ours.",
        "soundness: every bound against simulated response times; gap: the published bounds on the real mechanism.",
        "accepted: how many of the same published sets each preemptive analysis accepts, at 18 points.",
        "A sweep can be interrupted and started again; finished points are kept in DIR/points.",
        "Exit status: 0 done, 1 failure, 2 wrong use, 3 a bound that claims to be sound was exceeded."})
final class SweepCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Option(names = "--figure", paramLabel = "F", split = ",", required = true,
        description = "8a..8f, 9a..9f, all (these twelve), soundness, gap, accepted; several with "
            + "commas.")
    private List<String> figures;

    @Mixin
    private final SweepOptions options = new SweepOptions();

    @Override
    public Integer call() throws IOException, InterruptedException {
        try {
            options.check(figures);
        } catch (final IllegalArgumentException e) {
            spec.commandLine().getErr().println("sweep: " + e.getMessage());
            return 2;
        }
        final int workers = Runtime.getRuntime().availableProcessors();
        return options.run(figures, () -> new ThreadCounter(workers), spec.commandLine().getOut(),
            spec.commandLine().getErr());
    }
}

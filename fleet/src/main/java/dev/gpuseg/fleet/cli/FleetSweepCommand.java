/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.cli;

import dev.gpuseg.fleet.engine.Engine;
import dev.gpuseg.fleet.engine.SparkCounter;
import dev.gpuseg.tools.cli.SweepOptions;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code gpuseg-fleet sweep}: what {@code gpuseg sweep} computes, on Spark. */
@Command(name = "sweep", mixinStandardHelpOptions = true,
    description = {"Analyse or simulate many random task sets on Spark; same options and same files as gpuseg sweep.",
        "8a..8f, 9a..9f: the published figures; soundness: every bound against simulated response times;",
        "gap: the published bounds on the real mechanism; accepted: how many sets each analysis accepts.",
        "The sets are divided by their numbers. The figures are the same bit for bit whatever the partitions.",
        "Exit status: 0 done, 1 failure, 2 wrong use, 3 a bound that claims to be sound was exceeded."})
final class FleetSweepCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Option(names = "--figure", paramLabel = "F", split = ",", required = true,
        description = "8a..8f, 9a..9f, all (these twelve), soundness, gap, accepted; several with commas.")
    private List<String> figures;

    @Mixin
    private SweepOptions options;

    @Mixin
    private EngineOptions where;

    @Override
    public Integer call() throws IOException, InterruptedException {
        return run(spec, figures, options, where);
    }

    static int run(final CommandSpec spec, final List<String> figures, final SweepOptions options,
        final EngineOptions where) throws IOException, InterruptedException {
        try {
            options.check(figures);
            where.check();
        } catch (final IllegalArgumentException e) {
            spec.commandLine().getErr().println(spec.name() + ": " + e.getMessage());
            return 2;
        }
        try (Engine engine = where.start(spec.name())) {
            return options.run(figures, () -> new SparkCounter(engine), spec.commandLine().getOut(),
                spec.commandLine().getErr());
        }
    }
}

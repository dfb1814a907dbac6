/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.cli;

import dev.gpuseg.fleet.engine.Engine;
import dev.gpuseg.fleet.make.RecordingPlan;
import dev.gpuseg.fleet.make.SimulatedRecordings;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code gpuseg-fleet make-recordings}: recordings of simulated robots. */
@Command(name = "make-recordings", mixinStandardHelpOptions = true,
    description = {"Write recordings of simulated runs of task sets, below DIR/robot=NAME/version=NAME.",
        "They are for tests and demonstrations. Each says that its GPU was simulated.",
        "Every robot has one of the task sets and runs every version.",
        "In the last version the GPU work of one task takes longer (--drift).",
        "Exit status: 0 done, 1 failure, 2 wrong use."})
final class MakeRecordingsCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Parameters(index = "0", paramLabel = "DIR", description = "Directory of the recordings.")
    private Path directory;

    @Option(names = "--count", paramLabel = "N", defaultValue = "1000",
        description = "Recordings, 1..1000000 (default: ${DEFAULT-VALUE}).")
    private int count;

    @Option(names = "--robots", paramLabel = "N", defaultValue = "20",
        description = "Robots, 1..100000 (default: ${DEFAULT-VALUE}).")
    private int robots;

    @Option(names = "--versions", paramLabel = "NAMES", split = ",", defaultValue = "2.9,2.10",
        description = "Versions of the software, with commas (default: ${DEFAULT-VALUE}).")
    private List<String> versions;

    @Option(names = "--seconds", paramLabel = "N", defaultValue = "60",
        description = "Simulated length of each, 1..9000 s (default: ${DEFAULT-VALUE}).")
    private int seconds;

    @Option(names = "--drift", paramLabel = "PERCENT", defaultValue = "10",
        description = "How much longer the device parts of each set's first task with GPU work are in the last "
            + "version, 0..1000 (default: ${DEFAULT-VALUE}).")
    private int drift;

    @Option(names = "--damaged", paramLabel = "N", defaultValue = "0",
        description = "How many of the files are then truncated, changed or emptied (default: ${DEFAULT-VALUE}).")
    private int damaged;

    @Option(names = "--workloads", paramLabel = "DIR", description = "Directory of the task sets (default: "
        + "traces/workloads of the checkout).")
    private Path workloads;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1",
        description = "Seed of the random numbers (default: ${DEFAULT-VALUE}).")
    private long seed;

    @Mixin
    private EngineOptions where;

    @Override
    public Integer call() throws IOException {
        final RecordingPlan plan;
        try {
            where.check();
            plan = new RecordingPlan(count, robots, versions, seconds, drift, damaged, seed);
        } catch (final IllegalArgumentException e) {
            spec.commandLine().getErr().println("make-recordings: " + e.getMessage());
            return 2;
        }
        final Path sets = workloads != null ? workloads : Path.of(System.getProperty("gpuseg.root", "."), "traces",
            "workloads");
        final long startedNs = System.nanoTime();
        try (Engine engine = where.start("make-recordings")) {
            final SimulatedRecordings.Written written = new SimulatedRecordings(plan, sets).write(engine, directory);
            spec.commandLine().getOut().printf(Locale.ROOT, "%d recordings, %d events, %.3f GB (%.3f GB of events) in "
                + "%.1f s, %d files damaged%n", plan.count(), written.events(), written.bytes() / 1e9,
                written.eventBytes() / 1e9, (System.nanoTime() - startedNs) / 1e9, plan.damaged());
        }
        return 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.daemon.launch.ConfigCommand;
import dev.gpuseg.daemon.launch.HelpGroups;
import dev.gpuseg.daemon.launch.ReleaseCommand;
import dev.gpuseg.daemon.launch.RunCommand;
import dev.gpuseg.daemon.launch.Version;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** The root: lists the commands. */
@Command(name = "gpuseg", mixinStandardHelpOptions = true, versionProvider = Version.class,
    modelTransformer = GpusegCommand.Groups.class,
    description = "A real-time scheduler for GPU segments.",
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {"0:done, or yes", "1:failure", "2:usage", "3:the answer is no"},
    subcommands = {
        RunCommand.class,
        ExecCommand.class,
        StatusCommand.class,
        TopCommand.class,
        LiveCommand.class,
        CgroupsCommand.class,
        StopCommand.class,
        SetCommand.class,
        PolicyCommand.class,
        ReleaseCommand.class,
        DoctorCommand.class,
        SelftestCommand.class,
        ConfigCommand.class,
        DemoCommand.class,
        LatencyCommand.class,
        BenchCommand.class,
        CalibrateCommand.class,
        AnalyzeCommand.class,
        PlaceCommand.class,
        VerifyCommand.class,
        SimulateCommand.class,
        GenerateCommand.class,
        SweepCommand.class,
        TraceCommand.class,
        ReplayCommand.class,
        FaultsCommand.class,
    })
final class GpusegCommand implements Runnable {
    /** The commands of every day first. */
    static final class Groups implements CommandLine.IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec spec) {
            new HelpGroups()
                .with("Everyday", "run", "exec", "status", "top", "set", "doctor", "demo", "analyze")
                .with("The running daemon", "live", "policy", "cgroups", "stop", "release", "config")
                .with("Recordings", "trace", "replay")
                .with("Analysis", "place", "simulate", "generate", "sweep", "verify")
                .with("Measuring and testing a machine", "selftest", "latency", "calibrate", "bench", "faults")
                .ofCommands(spec);
            return spec;
        }
    }

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "no command given; use one of "
            + spec.subcommands().entrySet().stream()
                .filter(sub -> !sub.getValue().getCommandSpec().usageMessage().hidden()).map(Map.Entry::getKey)
                .collect(Collectors.joining(", ")));
    }
}

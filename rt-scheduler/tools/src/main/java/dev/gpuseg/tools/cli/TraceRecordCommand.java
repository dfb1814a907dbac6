/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.trace.Recorder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** From the journal to one file. */
@Command(name = "record", mixinStandardHelpOptions = true,
    description = "Write a recording: one compact read-only file with a manifest. Without --duration it contains the "
        + "whole journal; with it, what a running daemon journals from now on.",
    footer = "%nA recording that begins while a daemon runs cannot be replayed through the scheduler. With --all it "
        + "contains the earlier events too, and can.")
final class TraceRecordCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Parameters(arity = "0..1", paramLabel = "JOURNAL",
        description = "Directory of the journal (default: the one of the runtime directory).")
    private Path journal;

    @Option(names = "--out", paramLabel = "FILE", required = true,
        description = "The recording; the file must not exist.")
    private Path out;

    @Option(names = "--label", paramLabel = "NAME=VALUE", split = ",",
        description = "Where it comes from, kept in the manifest: robot=NAME and version=NAME are what gpuseg-fleet "
            + "compares; several with commas.")
    private Map<String, String> labels = new LinkedHashMap<>();

    @ArgGroup(exclusive = false)
    private Following following;

    /** For how long. */
    private static final class Following {
        @Option(names = "--duration", paramLabel = "DURATION", converter = DurationConverter.class, required = true,
            description = "How long to follow the daemon.")
        private Duration duration;

        @Option(names = "--all", description = "Include what the journal contained before.")
        private boolean all;
    }

    @Override
    public Integer call() throws IOException, InterruptedException {
        final Path from = journal == null ? directory.find().journal() : journal;
        if (Files.exists(out)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--out " + out + " exists, and recordings are "
                + "never changed; name a new file");
        }
        final ObjectNode manifest = following == null ? Recorder.copy(from, out, labels)
            : Recorder.follow(from, out, following.duration, following.all, labels);
        spec.commandLine().getOut().println(out + ": " + manifest.path("events").asLong() + " events in "
            + manifest.path(manifest.has("followed_ns") ? "followed_ns" : "duration_ns").asLong() / 1_000_000
            + " ms, " + manifest.path("lost_events").asLong()
            + " lost, " + Files.size(out) + " bytes"
            + (manifest.path("simulated").asBoolean() ? ", SIMULATED GPU" : ""));
        return ExitCode.OK;
    }
}

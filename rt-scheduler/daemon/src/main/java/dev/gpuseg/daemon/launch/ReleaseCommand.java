/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Enables whatever a dead daemon left disabled, with the watchdog's own code. */
@Command(name = "release", mixinStandardHelpOptions = true,
    description = "Enable everything that a dead daemon left disabled.")
public final class ReleaseCommand implements Callable<Integer> {
    private static final int LIMIT_S = 20;

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--force", description = "Also if a living daemon owns these contexts.")
    private boolean force;

    @Override
    public Integer call() throws IOException, InterruptedException {
        final RuntimeDirectory where = directory.resolve();
        if (!Files.exists(where.held())) {
            spec.commandLine().getOut().println("nothing is held: " + where.held() + " does not exist");
            spec.commandLine().getOut().flush();
            return ExitCode.OK;
        }
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-watchdog").toString(),
            "--dir", where.root().toString(), "--release"));
        if (force) {
            command.add("--force");
        }
        final Process tool = new ProcessBuilder(command).inheritIO().start();
        if (!tool.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
            tool.destroyForcibly();
            throw new IllegalStateException("gpuseg-watchdog --release did not end within " + LIMIT_S + " s");
        }
        return tool.exitValue();
    }
}

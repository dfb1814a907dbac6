/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.Priority;
import dev.gpuseg.daemon.launch.DirectoryOption;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.tools.client.AdminClient;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Changes the priority of a task in a running daemon. */
@Command(name = "hint", mixinStandardHelpOptions = true,
    description = "Change the priority of an open task.",
    footer = "%nTo change the policy: gpuseg policy --set NAME.")
final class HintCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Parameters(paramLabel = "TASK", description = "Name or id of an open task.")
    private String task;

    @Option(names = "--priority", paramLabel = "N", required = true,
        description = "New priority, 1..99, 99 is the highest, or 0 for best effort.")
    private int priority;

    @Option(names = "--gpu-priority", paramLabel = "N", defaultValue = "0",
        description = "Priority on the GPU, 1..99, or 0 for the same as --priority (default: ${DEFAULT-VALUE}).")
    private int gpuPriority;

    @Override
    public Integer call() {
        if (!Priority.isValid(priority) || !Priority.isValid(gpuPriority)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--priority is " + priority
                + ", --gpu-priority is " + gpuPriority + "; use 0..99");
        }
        final ObjectNode request = AdminClient.command("hint").put("task", task).put("priority", priority)
            .put("gpu_priority", gpuPriority);
        final PrintWriter out = spec.commandLine().getOut();
        for (final JsonNode line : AdminClient.ask(directory.find(), request).path("changed")) {
            out.println(line.asText());
        }
        out.flush();
        return ExitCode.OK;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.Priority;
import dev.gpuseg.daemon.launch.DirectoryOption;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
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

/** Changes a running daemon's mind. */
@Command(name = "hint", mixinStandardHelpOptions = true,
    description = "Change the priority of an open task, or the policy, without restarting anything.")
final class HintCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Parameters(arity = "0..1", paramLabel = "TASK", description = "name or id of an open task")
    private String task;

    @Option(names = "--priority", paramLabel = "N", description = "1..99, 99 highest, or 0 for best effort")
    private Integer priority;

    @Option(names = "--gpu-priority", paramLabel = "N", defaultValue = "0",
        description = "1..99 at the GPU (default: 0, the same as --priority)")
    private int gpuPriority;

    @Option(names = "--policy", paramLabel = "rr|fp|edf", description = "the policy from now on")
    private String policy;

    @Override
    public Integer call() {
        if (task == null == (policy == null) || task != null && priority == null) {
            throw usage("give TASK with --priority, or --policy alone");
        }
        final RuntimeDirectory where = directory.resolve();
        final PrintWriter out = spec.commandLine().getOut();
        if (policy != null) {
            try {
                Policy.named(policy);
            } catch (final IllegalArgumentException e) {
                throw usage(e.getMessage());
            }
            final JsonNode answer = AdminClient.ask(where, AdminClient.command("policy").put("policy", policy));
            out.println("policy " + answer.path("policy").asText());
        } else {
            if (!Priority.isValid(priority) || !Priority.isValid(gpuPriority)) {
                throw usage("--priority is " + priority + ", --gpu-priority is " + gpuPriority + "; use 0..99");
            }
            final ObjectNode request = AdminClient.command("hint").put("task", task).put("priority", priority)
                .put("gpu_priority", gpuPriority);
            for (final JsonNode line : AdminClient.ask(where, request).path("changed")) {
                out.println(line.asText());
            }
        }
        out.flush();
        return ExitCode.OK;
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

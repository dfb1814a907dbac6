/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.core.Priority;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Changes open tasks of a running daemon. */
@Command(name = "set", mixinStandardHelpOptions = true,
    description = "Change an open task: its priority, its overrun action, and weight and cap of its process. Exit "
        + "status 3: no daemon runs.",
    footer = "%nTo change the policy: gpuseg policy --set NAME. Rules for tasks that open later: gpuseg policy FILE.")
class SetCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Parameters(paramLabel = "TASK",
        description = "Name or id of an open task, or the pid of a process, which means all of its tasks. Weight and "
            + "cap can be set for every process that uses a GPU, with and without tasks: by its pid for that process "
            + "alone until it ends, by the name of a task also for tasks of that name that open later.")
    private String task;

    @Option(names = "--priority", paramLabel = "N",
        description = "New priority, 1..99, 99 is the highest, or 0 for best effort.")
    private Integer priority;

    @Option(names = "--gpu-priority", paramLabel = "N", defaultValue = "0",
        description = "Priority on the GPU, 1..99, or 0 for the same as --priority (default: ${DEFAULT-VALUE}).")
    private int gpuPriority;

    @Option(names = "--weight", paramLabel = "N",
        description = "Share of the process in best-effort time, 1..10000 (initially 100).")
    private Integer weight;

    @Option(names = "--cap", paramLabel = "TIME/PERIOD",
        description = "Most GPU time of the process's best-effort work in each period, such as 25ms/100ms, or none.")
    private String cap;

    @Option(names = "--overrun", paramLabel = "ACTION",
        description = "Action on overrun: notify, demote, suspend or skip-next.")
    private String overrun;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() {
        if (priority == null && weight == null && cap == null && overrun == null) {
            throw usage("nothing to change; give --priority, --weight, --cap or --overrun");
        }
        if (priority != null && !Priority.isValid(priority) || !Priority.isValid(gpuPriority)) {
            throw usage("--priority is " + priority + ", --gpu-priority is " + gpuPriority + "; use 0..99");
        }
        if (priority == null && gpuPriority != 0) {
            throw usage("--gpu-priority is " + gpuPriority + "; it goes with --priority");
        }
        final RuntimeDirectory where = directory.find();
        final JsonNode status = AdminClient.ask(where, AdminClient.command("status"));
        final int pid = OpenTasks.pid(status, task);
        final boolean shares = weight != null || cap != null;
        final List<JsonNode> found = pid != 0 && priority == null && overrun == null ? List.of()
            : OpenTasks.named(status, task);
        final List<String> changed = new ArrayList<>();
        if (priority != null) {
            for (final JsonNode one : found) {
                AdminClient.ask(where, AdminClient.command("set").put("task", one.path("id").asText())
                    .put("priority", priority).put("gpu_priority", gpuPriority)).path("changed")
                    .forEach(line -> changed.add(line.asText()));
            }
        }
        if (pid != 0 && shares) {
            changed.addAll(share(where, pid));
        }
        if (pid == 0 && shares || overrun != null) {
            final Set<String> names = new LinkedHashSet<>();
            found.forEach(one -> names.add(one.path("name").asText()));
            names.forEach(name -> changed.add(rule(where, name, pid == 0)));
        }
        final PrintWriter out = spec.commandLine().getOut();
        if (json) {
            final ObjectNode answer = JsonNodeFactory.instance.objectNode();
            changed.forEach(answer.putArray("changed")::add);
            out.println(answer);
        } else {
            changed.forEach(out::println);
        }
        out.flush();
        return ExitCode.OK;
    }

    private List<String> share(final RuntimeDirectory where, final int pid) {
        final ObjectNode request = AdminClient.command("set").put("pid", pid);
        if (weight != null) {
            request.put("weight", weight);
        }
        if (cap != null) {
            request.put("cap", cap);
        }
        final List<String> said = new ArrayList<>();
        ask(where, request).path("changed").forEach(line -> said.add(line.asText()));
        return said;
    }

    private JsonNode ask(final RuntimeDirectory where, final ObjectNode request) {
        try {
            return AdminClient.ask(where, request);
        } catch (final AdminClient.InvalidRequestException e) {
            throw usage(e.getMessage());
        }
    }

    private String rule(final RuntimeDirectory where, final String name, final boolean shares) {
        final ObjectNode request = AdminClient.command("policy");
        final ObjectNode rule = request.putObject("settings").putArray("tasks").addObject().put("task", name);
        final List<String> said = new ArrayList<>();
        if (shares && weight != null) {
            rule.put("weight", weight);
            said.add("weight " + weight);
        }
        if (shares && cap != null) {
            rule.put("cap", cap);
            said.add("cap " + cap);
        }
        if (overrun != null) {
            rule.put("overrun", overrun);
            said.add("overrun " + overrun);
        }
        ask(where, request);
        return "task \"" + name + "\" " + String.join(", ", said);
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

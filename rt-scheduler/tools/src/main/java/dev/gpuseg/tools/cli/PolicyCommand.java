/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.Node;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.daemon.launch.PolicyHelp;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Shows or changes the policy of a running daemon, with its parameters. */
@Command(name = "policy", mixinStandardHelpOptions = true, modelTransformer = PolicyHelp.class,
    subcommands = PolicyVerifyCommand.class,
    description = {"Show the policy of the running daemon, or change it and its parameters. Every change is journaled.",
        "A change is checked as a whole before any part of it is made. Exit status 3: no daemon runs."})
final class PolicyCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Parameters(arity = "0..1", paramLabel = "FILE", description = "Policy file in YAML or JSON: a policy with its "
        + "parameters, or rules for tasks and groups alone, as of tasks that open later. `gpuseg set` changes open "
        + "tasks.")
    private Path file;

    @Option(names = "--set", paramLabel = "NAME", completionCandidates = PolicyHelp.class,
        description = "New policy: ${COMPLETION-CANDIDATES}, or one of the jar of `gpuseg run --policy-jar`. A policy "
            + "without defaults for its parameters needs a FILE.")
    private String name;

    @Option(names = "--save",
        description = "Keep this change, all others since the start, and what was kept before. The next daemon "
            + "repeats them after its own settings.")
    private boolean save;

    @Option(names = "--forget", description = "Keep nothing for the next daemon. The current policy stays in force.")
    private boolean forget;

    @Option(names = "--json", description = "Print JSON: the lines of the text.")
    private boolean json;

    @Override
    public Integer call() {
        final RuntimeDirectory where = directory.find();
        final PrintWriter out = spec.commandLine().getOut();
        final ObjectNode request = AdminClient.command("policy");
        final Node settings = settings();
        if (settings != null) {
            judge(settings);
            request.set("settings", settings.toJson());
        }
        if (save && forget) {
            throw usage("give --save or --forget, not both");
        }
        if (save) {
            request.put("save", true);
        }
        if (forget) {
            request.put("forget", true);
        }
        final JsonNode answer;
        try {
            answer = AdminClient.ask(where, request);
        } catch (final AdminClient.InvalidRequestException e) {
            throw usage(e.getMessage());
        }
        if (json) {
            out.println(answer);
        } else {
            answer.path("lines").forEach(line -> out.println(line.asText()));
        }
        out.flush();
        return ExitCode.OK;
    }

    /** Here its line can be named. Policies of a jar are known to the daemon alone. */
    private static void judge(final Node settings) {
        final PolicyReader reader = new PolicyReader(PolicyCatalog.builtIn());
        final Node policy = settings.get("policy");
        if (policy == null || reader.catalog().find(policy.text()).isPresent()) {
            reader.read(settings);
        }
    }

    /** What is to change; null if nothing is. */
    private Node settings() {
        if (file != null && name != null) {
            throw usage("give FILE or --set, not both");
        }
        if (file != null) {
            return PolicyReader.load(file);
        }
        if (name == null) {
            return null;
        }
        final ObjectNode root = JsonNodeFactory.instance.objectNode().put("policy", name);
        return Node.of(root, "policy", "the change");
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

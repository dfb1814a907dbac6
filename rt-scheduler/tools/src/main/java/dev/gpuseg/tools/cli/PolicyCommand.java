/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.Node;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.daemon.launch.PolicyHelp;
import dev.gpuseg.daemon.policy.PolicyReader;
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

    @Parameters(arity = "0..1", paramLabel = "FILE", description = "Policy file in YAML or JSON.")
    private Path file;

    @Option(names = "--set", paramLabel = "NAME", completionCandidates = PolicyHelp.class,
        description = "New policy: ${COMPLETION-CANDIDATES}, or one of the jar of `gpuseg run --policy-jar`. A policy "
            + "without defaults for its parameters needs a FILE.")
    private String name;

    @Option(names = "--task", paramLabel = "TASK",
        description = "Name of the open task whose overrun action, weight or cap changes. Weight and cap count for "
            + "its process. The change also holds for a task of that name that opens later.")
    private String task;

    @Option(names = "--later", description = "The task of --task need not be open yet.")
    private boolean later;

    @Option(names = "--group", paramLabel = "N", description = "Number of the group whose weight or cap changes.")
    private Integer group;

    @Option(names = "--weight", paramLabel = "N", description = "Share of best-effort time, 1..10000 (initially 100).")
    private Integer weight;

    @Option(names = "--cap", paramLabel = "TIME/PERIOD",
        description = "Most GPU time of best-effort work in each period, such as 25ms/100ms, or none.")
    private String cap;

    @Option(names = "--overrun", paramLabel = "ACTION",
        description = "Action on overrun: notify, demote, suspend or skip-next.")
    private String overrun;

    @Option(names = "--anticipate", paramLabel = "off|declared|learned",
        description = "Disable lower work shortly before begins that are expected: of the --task, or without --task of "
            + "all tasks that have no such setting of their own.")
    private String anticipate;

    @Option(names = "--anticipation-budget", paramLabel = "PERCENT",
        description = "Share of its time for which best-effort work may stand still for that, 0..100.")
    private Integer anticipationBudget;

    @Option(names = "--save",
        description = "Keep this change, all others since the start, and what was kept before. The next daemon "
            + "repeats them after its own settings.")
    private boolean save;

    @Option(names = "--forget", description = "Keep nothing for the next daemon. The current policy stays in force.")
    private boolean forget;

    @Option(names = "--json", description = "Print JSON: the lines of the text.")
    private boolean json;

    @Mixin
    private WatchOption watch;

    @Override
    public Integer call() {
        if (watch.isGiven() && (file != null || name != null || task != null || group != null || save || forget)) {
            throw usage("--watch only shows; change first, then watch");
        }
        return watch.run(spec.commandLine().getOut(), json, this::ask);
    }

    private int ask() {
        final RuntimeDirectory where = directory.find();
        final PrintWriter out = spec.commandLine().getOut();
        final ObjectNode request = AdminClient.command("policy");
        final Node settings = settings();
        if (settings != null) {
            judge(settings);
            if (task != null && !later) {
                OpenTasks.named(AdminClient.ask(where, AdminClient.command("status")), task);   // refuses a wrong name
            }
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
        final boolean rule = weight != null || cap != null || overrun != null || task != null && anticipate != null;
        final boolean ahead = task == null && anticipate != null || anticipationBudget != null;
        if (file != null) {
            if (name != null || task != null || group != null || rule || ahead) {
                throw usage("give FILE or options, not both");
            }
            return PolicyReader.load(file);
        }
        if ((task != null || group != null) != rule || task != null && group != null
            || group != null && overrun != null) {
            throw usage("give --task with --weight, --cap, --overrun or --anticipate, or --group with --weight or "
                + "--cap");
        }
        if (name == null && !rule && !ahead) {
            return null;
        }
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        if (name != null) {
            root.put("policy", name);
        }
        if (task == null && anticipate != null) {
            root.put("anticipate", anticipate);
        }
        if (anticipationBudget != null) {
            root.put("anticipation_budget", anticipationBudget);
        }
        if (rule) {
            final ObjectNode node = root.putArray(task != null ? "tasks" : "groups").addObject();
            if (task != null) {
                node.put("task", task);
            } else {
                node.put("group", group);
            }
            if (weight != null) {
                node.put("weight", weight);
            }
            if (cap != null) {
                node.put("cap", cap);
            }
            if (overrun != null) {
                node.put("overrun", overrun);
            }
            if (task != null && anticipate != null) {
                node.put("anticipate", anticipate);
            }
        }
        return Node.of(root, "policy", "the change");
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.Config;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The program {@code gpuseg fleet agent}. */
@Command(name = "gpuseg fleet agent", mixinStandardHelpOptions = true, version = "gpuseg ${bundle:build.version}",
    resourceBundle = "dev.gpuseg.fleet.kubernetes.build",
    description = "Watch the pods of this Kubernetes node and write what they say of themselves (annotations "
        + "gpuseg/priority, gpuseg/weight, gpuseg/cap, gpuseg/protect), within the limits of their namespaces, as "
        + "rules of control groups for the daemon (gpuseg run --cgroup-rules). Runs until it is ended.",
    exitCodeListHeading = "%nExit status:%n", exitCodeList = {"0:ended by a signal", "1:failure", "2:usage"})
public final class AgentMain implements Callable<Integer> {
    @Option(names = "--node", paramLabel = "NAME", defaultValue = "${env:NODE_NAME}",
        description = "Name of this node in the cluster (default: the environment's NODE_NAME).")
    private String node;

    @Option(names = "--rules", paramLabel = "FILE", required = true,
        description = "What is written: the daemon's --cgroup-rules, in a directory that both see.")
    private Path rules;

    @Option(names = "--limits", paramLabel = "FILE",
        description = "What pods may ask for, by namespace; read again when it changes. Without it: priority 0, "
            + "weights up to 100, no protection.")
    private Path limits;

    @Option(names = "--kubeconfig", paramLabel = "FILE",
        description = "How the API server is reached (default: the service account of the pod that this runs in).")
    private Path kubeconfig;

    @Spec
    private CommandSpec spec;

    /** Runs the agent. */
    public static void main(final String[] arguments) {
        System.exit(new CommandLine(new AgentMain()).execute(arguments));
    }

    @Override
    public Integer call() throws Exception {
        if (node == null || node.isBlank()) {
            throw new ParameterException(spec.commandLine(), "no node is named; give --node or set NODE_NAME (in a "
                + "pod: valueFrom fieldRef spec.nodeName)");
        }
        final Path directory = rules.toAbsolutePath().getParent();
        if (!Files.isDirectory(directory)) {
            throw new ParameterException(spec.commandLine(), "--rules is " + rules + "; " + directory
                + " is no directory; mount the one that the daemon reads from");
        }
        final ApiClient client;
        try {
            client = kubeconfig == null ? ClientBuilder.cluster().build() : Config.fromConfig(kubeconfig.toString());
        } catch (final IOException | IllegalStateException e) {
            System.err.println("gpuseg-agent: the API server cannot be reached: " + (kubeconfig == null
                ? "no service account in this environment (" + e.getMessage() + "); give --kubeconfig"
                : "--kubeconfig is " + kubeconfig + ": " + e.getMessage()));
            return 1;
        }
        final NodeAgent agent;
        try {
            agent = new NodeAgent(client, node, new RulesFile(rules.toAbsolutePath()), limits, System.err);
        } catch (final IllegalArgumentException e) {
            System.err.println("gpuseg-agent: " + e.getMessage());
            return 2;
        }
        Runtime.getRuntime().addShutdownHook(new Thread(agent::close));
        agent.run();
        return 0;
    }
}

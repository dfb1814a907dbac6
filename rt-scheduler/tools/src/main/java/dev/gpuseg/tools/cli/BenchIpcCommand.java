/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.bench.IpcLatency;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Latencies between application and daemon, with the machine's floor measured in the same run. */
@Command(name = "ipc", mixinStandardHelpOptions = true,
    description = "Measure begin, grant and end through a real daemon, and the floor of this machine.")
final class BenchIpcCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Option(names = "--rounds", paramLabel = "N", defaultValue = "200000",
        description = "Rounds of each measurement, 1000..10000000 (default: ${DEFAULT-VALUE}).")
    private int rounds;

    @Option(names = "--client-cpu", paramLabel = "N", defaultValue = "0",
        description = "CPU of the application (default: ${DEFAULT-VALUE}).")
    private int clientCpu;

    @Option(names = "--daemon-cpu", paramLabel = "N", defaultValue = "1",
        description = "CPU of the daemon's dispatcher (default: ${DEFAULT-VALUE}).")
    private int daemonCpu;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        final int cpus = Runtime.getRuntime().availableProcessors();
        if (cpus < 2 || clientCpu == daemonCpu || clientCpu < 0 || clientCpu >= cpus || daemonCpu < 0
            || daemonCpu >= cpus) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--client-cpu is " + clientCpu
                + ", --daemon-cpu is " + daemonCpu + "; name two different CPUs of 0.." + (cpus - 1));
        }
        if (rounds < 1000 || rounds > 10_000_000) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--rounds is " + rounds
                + "; use 1000..10000000");
        }
        try (IpcLatency bench = new IpcLatency(clientCpu, daemonCpu, rounds)) {
            final ObjectNode result = bench.measure();
            final PrintWriter out = spec.commandLine().getOut();
            if (json) {
                out.println(result);
            } else {
                print(result, out);
            }
            out.flush();
            return ExitCode.OK;
        }
    }

    private void print(final ObjectNode result, final PrintWriter out) {
        out.printf("%-28s %10s %10s %10s %10s%n", "ns", "p50", "p99", "p99.9", "max");
        for (final Map.Entry<String, JsonNode> field : result.properties()) {
            final JsonNode v = field.getValue();
            if (v.isObject()) {
                out.printf("%-28s %10d %10d %10d %10d%n", field.getKey(), v.path("p50").asLong(),
                    v.path("p99").asLong(), v.path("p99_9").asLong(), v.path("max").asLong());
            }
        }
        out.printf("%n%-28s %10s %10s %10s %10s%n", "begin after floor, ns", "floor p50", "begin p50", "begin p99",
            "ratio p50");
        int number = 0;
        for (final JsonNode pair : result.path("pairs")) {
            out.printf(Locale.ROOT, "%-28s %10d %10d %10d %10.2f%n", "pair " + ++number,
                pair.path("floor_p50").asLong(), pair.path("begin_p50").asLong(),
                pair.path("begin_p99").asLong(), pair.path("ratio_p50").asDouble());
        }
        out.printf(Locale.ROOT, "%nbegin to grant to return, p50, is %.2f times the floor (median of the pairs; "
            + "floor and begin above are of that pair); %.4f bytes allocated per event%n",
            result.path("ratio_p50").asDouble(),
            result.path("alloc_bytes_per_event").asDouble());
        out.println("CPUs: application " + clientCpu + ", dispatcher " + daemonCpu + " of "
            + Runtime.getRuntime().availableProcessors());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.bench.IpcLatency;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
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

    @Option(names = "--cpus", paramLabel = "A,B", split = ",", defaultValue = "0,1",
        description = "CPUs of the application and of the daemon's dispatcher (default: ${DEFAULT-VALUE}).")
    private List<Integer> pair;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        final int cpus = Runtime.getRuntime().availableProcessors();
        if (pair.size() != 2 || pair.get(0).equals(pair.get(1))
            || pair.stream().anyMatch(cpu -> cpu < 0 || cpu >= cpus)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--cpus is " + pair.stream()
                .map(cpu -> Integer.toString(cpu)).collect(Collectors.joining(","))
                + "; name two different CPUs of 0.." + (cpus - 1));
        }
        try (IpcLatency bench = new IpcLatency(pair.get(0), pair.get(1))) {
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
        out.println("CPUs: application " + pair.get(0) + ", dispatcher " + pair.get(1) + " of "
            + Runtime.getRuntime().availableProcessors());
    }
}

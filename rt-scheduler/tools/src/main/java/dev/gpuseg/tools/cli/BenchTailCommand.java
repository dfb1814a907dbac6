/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.bench.Cores;
import dev.gpuseg.tools.bench.GrantTail;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** The tail of begin to grant, and its causes. */
@Command(name = "tail", mixinStandardHelpOptions = true,
    description = "Measure the longest delays: one client that polls, at a fixed rate, against a daemon that polls, "
        + "on a SIMULATED GPU that changes contexts in no time. Times count from the moment at which a begin was due, "
        + "so that no late begin is hidden, and every stall above 100 us gets a cause. Use a machine with a core each "
        + "for client and dispatcher and some to spare: the client runs on the second highest CPU; with five or more, "
        + "a process on the third highest CPU only measures what the machine itself takes. Below four CPUs the figures "
        + "are indicative.")
final class BenchTailCommand implements Callable<Integer> {
    private static final int LISTED = 20;
    /** Begins in each second. */
    private static final int RATE = 10_000;

    @Spec
    private CommandSpec spec;

    @Mixin
    private BenchOptions form;

    @Mixin
    private CoreOptions coreOptions;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        final Cores cores = coreOptions.cores();
        if (form.durationMs() < 1_000 || cores.count() < 2) {
            throw usage("--duration is " + form.durationMs() + "ms, --cpus " + cores.cpus()
                + "; use at least 1s and two CPUs");
        }
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("simulated", true).put("cpus", cores.count()).put("indicative", !cores.enough()).put("rate", RATE);
        result.put("dispatcher_cpu", cores.fromTop(0)).put("client_cpu", cores.fromTop(1));
        result.put("jdk", Runtime.version().toString()).put("kernel", System.getProperty("os.version"));
        final GrantTail bench = new GrantTail(form.durationMs(), RATE, cores);
        final PrintWriter out = spec.commandLine().getOut();
        final ObjectNode one = bench.measure();
        result.withObject("/settings").set("default", one);
        if (form.json()) {
            out.println(result);
        } else {
            print(one, cores, out);
        }
        out.flush();
        return ExitCode.OK;
    }

    private static void print(final ObjectNode one, final Cores cores, final PrintWriter out) {
        out.println("SIMULATED GPU" + (cores.enough() ? "" : ", indicative only: "
            + cores.count() + " CPUs") + (one.path("fifo").asInt() > 0 ? ", SCHED_FIFO" : ""));
        for (final String kind : List.of("due_to_grant_ns", "begin_to_grant_ns")) {
            final JsonNode v = one.path(kind);
            out.printf(Locale.ROOT, "  %-18s p50 %d, p99 %d, p99.9 %d, p99.99 %d, max %d (n %d)%n", kind,
                v.path("p50").asLong(), v.path("p99").asLong(), v.path("p99_9").asLong(), v.path("p99_99").asLong(),
                v.path("max").asLong(), v.path("n").asLong());
        }
        out.printf(Locale.ROOT, "  hot path allocated %d bytes, %d collections, %d safepoints (longest %.1f us, "
            + "together %.1f ms), %d processes came and went; %d begins above 100 us, of the first %d:%n",
            one.path("allocated_bytes").asLong(), one.path("collections").asInt(), one.path("safepoints").asInt(),
            one.path("longest_safepoint_ns").asLong() / 1e3, one.path("safepoint_ns").asLong() / 1e6,
            one.path("processes_came_and_went").asInt(),
            one.path("stalls").asLong(), one.path("stalls_examined").asInt());
        int lines = 0;
        for (final Map.Entry<String, JsonNode> cause : one.path("stalls_by_cause").properties()) {
            if (lines++ < LISTED) {
                out.printf(Locale.ROOT, "    %-58s %6d in %d incidents, longest %.1f us%n", cause.getKey(),
                    cause.getValue().path("count").asLong(), cause.getValue().path("incidents").asLong(),
                    cause.getValue().path("longest_ns").asLong() / 1e3);
            }
        }
        if (one.has("witness")) {
            out.printf(Locale.ROOT, "  a process that only reads the clock, on CPU %d: %d gaps above 100 us, longest "
                + "%.1f us%n", one.path("witness").path("cpu").asInt(), one.path("witness").path("gaps_above_100us")
                .asLong(), one.path("witness").path("gaps_above_10us_ns").path("max").asLong() / 1e3);
        }
        out.flush();
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

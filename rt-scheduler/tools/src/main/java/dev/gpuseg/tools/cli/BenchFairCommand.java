/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.bench.FairShares;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code gpuseg bench fair}: how exactly weights and caps are kept, on a virtual GPU of its own. */
@Command(name = "fair", mixinStandardHelpOptions = true,
    description = {"Measure shares with weights 1:2:4 and a cap of 25 %% by the log of the virtual GPU (simulated).",
        "Exit status: 0 they are within 3 %% (weights) and 2 %% (cap), 3 one is not."})
final class BenchFairCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private BenchOptions form;

    @Override
    public Integer call() throws Exception {
        if (form.durationMs() < 1_000 || form.durationMs() > 60_000) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--duration is " + form.durationMs()
                + "ms; use 1s..1min");
        }
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("simulated", true).put("duration_ms", form.durationMs()).put("quantum", FairShares.QUANTUM);
        final ArrayNode list = result.putArray("runs");
        final boolean holds = new FairShares(form.durationMs()).measure(list.addObject());
        result.put("holds", holds);
        print(result);
        return holds ? ExitCode.OK : ExitCode.NO;
    }

    private void print(final ObjectNode result) {
        final PrintWriter out = spec.commandLine().getOut();
        if (form.json()) {
            out.println(result);
        } else {
            out.println("Shares of best-effort work (simulated GPU, by its own log)");
            for (final JsonNode run : result.path("runs")) {
                out.println(String.format(Locale.ROOT, "  weights 1:2:4  %.4f %.4f %.4f  worst error %.2f %%, GPU in "
                    + "use %.1f %%;  cap 25 %%: alone %.2f %%, beside another %.2f %%",
                    run.path("share_of_weight_100").asDouble(), run.path("share_of_weight_200").asDouble(),
                    run.path("share_of_weight_400").asDouble(), 100 * run.path("worst_weight_error").asDouble(),
                    100 * run.path("gpu_in_use").asDouble(), 100 * run.path("cap_alone").asDouble(),
                    100 * run.path("cap_beside_another").asDouble()));
            }
            out.println(result.path("holds").asBoolean() ? "within 3 % and 2 %" : "NOT within 3 % and 2 %");
        }
        out.flush();
    }
}

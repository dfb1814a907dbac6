/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.process.InstanceLock;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.nvidia.NvidiaSurvey;
import dev.gpuseg.tools.bench.GpuBench;
import dev.gpuseg.tools.bench.GpuBenchChart;
import dev.gpuseg.tools.bench.GpuBenchRecord;
import dev.gpuseg.tools.bench.GpuBenchText;
import dev.gpuseg.tools.bench.GpuGoals;
import dev.gpuseg.tools.bench.GpuScenario;
import dev.gpuseg.tools.bench.GpuScenarios;
import dev.gpuseg.tools.bench.GpuStrategy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * Response of a real-time kernel against work that never stops, for each way of protecting it, on this machine's GPU.
 * Every kernel's result is checked; the clocks are settled by five seconds of load first, and "alone" is measured in
 * that state.
 */
@Command(name = "gpu", mixinStandardHelpOptions = true,
    description = "Measure response times on this machine's NVIDIA GPU: alone, unprotected, and with each strategy. "
        + "Exit status 0: everything was measured and every result was right; 1: otherwise; 3: with --require-goals, "
        + "a goal was missed.")
final class BenchGpuCommand implements Callable<Integer> {
    private static final double KERNEL_MS = 5;
    private static final double OTHER_KERNEL_MS = 20;
    private static final String IDLE = "spin";
    private static final double PAUSE_MS = 30;
    private static final int SEED = 1;
    /** The strategy that is compared with the goals. */
    private static final GpuStrategy JUDGED = GpuStrategy.OPTIMISTIC;
    /** A daemon looks at the processes that run already; who is known for less than 2 s takes no turns, ms. */
    private static final int SETTLE_MS = Integer.getInteger("gpuseg.bench.settle", 2_500);
    /** Numbers of best-effort processes of scenario long; fewer in tests. */
    private static final List<Integer> OTHERS = Arrays.stream(System.getProperty("gpuseg.bench.others", "3,7,1")
        .split(",")).map(Integer::valueOf).toList();
    private static final String PYTHON = "python3";

    @Spec
    private CommandSpec spec;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Option(names = "--scenarios", paramLabel = "NAME", split = ",", completionCandidates = Scenarios.class,
        description = "Any of ${COMPLETION-CANDIDATES} (default: all but disb and loop; those of PyTorch are left out "
            + "without torch, gpus with a single GPU). PyTorch is that of python3.")
    private List<String> scenarios;

    /** For completion and help. */
    private static final class Scenarios implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return GpuScenarios.names().iterator();
        }
    }

    @Option(names = "--strategies", paramLabel = "NAME", split = ",",
        description = "Any of ${COMPLETION-CANDIDATES} (default: all but GPREEMPT, which starves the other processes, "
            + "OPTIMISTIC_SLICE, which gains nothing over OPTIMISTIC, and HELD).")
    private List<GpuStrategy> strategies = List.of(GpuStrategy.NONE, GpuStrategy.SLICE, GpuStrategy.SLICES,
        GpuStrategy.BARE_BLOCKING, GpuStrategy.BARE_OPTIMISTIC, GpuStrategy.BLOCKING, GpuStrategy.OPTIMISTIC,
        GpuStrategy.HINT, GpuStrategy.EXEC);

    @Option(names = "--require-goals", description = "Exit with status 3 if a goal that was measured was missed.")
    private boolean requireGoals;

    @Option(names = "--jobs", paramLabel = "N", defaultValue = "120",
        description = "Real-time jobs per cell, 20..100000 (default: ${DEFAULT-VALUE}).")
    private int jobs;

    @Option(names = "--out", paramLabel = "DIR",
        description = "Record the run in this directory: manifest, results, drawing, all samples.")
    private Path out;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (jobs < 20 || jobs > 100_000) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--jobs is " + jobs + "; use 20..100000");
        }
        if (scenarios != null && !GpuScenarios.names().containsAll(scenarios)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--scenarios is " + String.join(",", scenarios)
                + "; use " + String.join(", ", GpuScenarios.names()));
        }
        final MechanismVerdict verdict = NvidiaSurvey.verdict();
        if (!verdict.usable()) {
            throw new IllegalStateException("bench gpu: " + verdict.reason());
        }
        InstanceLock.requireNoDaemon("nvidia");
        final GpuBenchRecord record = out == null ? null
            : new GpuBenchRecord(out, spec.root().commandLine().getParseResult().originalArgs());
        final List<String> xidBefore = GpuBenchRecord.xidLines();
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("begun", Instant.now().toString()).put("jobs", jobs).put("seed", SEED).put("pause_ms", PAUSE_MS);
        result.put("idle", IDLE).put("driver", verdict.reason());
        result.put("simulated", !System.getProperty("gpuseg.nvidia.library", "").isEmpty());   // a stand-in's driver
        measure(result, record);
        final List<String> xidAfter = GpuBenchRecord.xidLines();
        final List<GpuGoals.Goal> goals = GpuGoals.judge(result, JUDGED,
            xidBefore == null || xidAfter == null ? null : GpuBenchRecord.newLines(xidBefore, xidAfter));
        result.set("goals", GpuGoals.json(goals));
        result.put("ended", Instant.now().toString());
        if (record != null) {
            record.results(result);
            record.drawing(GpuBenchChart.draw(result));
            record.manifest(result, xidBefore, xidAfter);
        }
        if (json) {
            spec.commandLine().getOut().println(result);
        } else {
            new GpuBenchText(spec.commandLine().getOut()).print(result, goals);
        }
        if (GpuGoals.wrong(result) != 0 || GpuGoals.failed(result.path("scenarios")) || isMissing(result)) {
            return ExitCode.FAILURE;
        }
        return requireGoals && goals.stream().anyMatch(GpuGoals.Goal::missed) ? ExitCode.NO : ExitCode.OK;
    }

    /** A scenario that was asked for by name and not run. */
    private boolean isMissing(final ObjectNode result) {
        for (final var scenario : result.path("scenarios")) {
            if (scenarios != null && scenario.has("not_run")) {
                return true;
            }
        }
        return false;
    }

    private void measure(final ObjectNode result, final GpuBenchRecord record)
        throws IOException, InterruptedException, TimeoutException {
        final GpuBench.Plan plan = new GpuBench.Plan(jobs, SEED, PAUSE_MS, strategies, IDLE, PYTHON,
            SETTLE_MS, record == null ? null : record.samples());
        final ObjectNode measured = result.putObject("scenarios");
        final Runnable save = () -> {
            try {
                if (record != null) {
                    record.results(result);
                }
            } catch (final IOException e) {
                throw new UncheckedIOException(e);
            }
        };
        try (GpuBench bench = new GpuBench(plan, spec.commandLine().getErr(), save)) {
            result.put("gpu_before", bench.smiBefore()).put("ns_per_iteration",
                Double.parseDouble(bench.perIteration()));
            for (final GpuScenario scenario : chosen()) {
                final ObjectNode into = measured.putObject(scenario.name());
                try {
                    scenario.measure(bench, into);
                } catch (final IllegalStateException | TimeoutException e) {
                    into.put("failed", e.getMessage());
                }
                save.run();
            }
            result.put("gpu_after", GpuBench.smi(bench.cuda()));
        } catch (final UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private List<GpuScenario> chosen() {
        return GpuScenarios.all(KERNEL_MS, OTHER_KERNEL_MS, OTHERS, strategies).stream()
            .filter(s -> scenarios == null ? !GpuScenarios.ON_DEMAND.contains(s.name()) : scenarios.contains(s.name()))
            .toList();
    }
}

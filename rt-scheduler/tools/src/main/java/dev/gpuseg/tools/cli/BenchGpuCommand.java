/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
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
    @Spec
    private CommandSpec spec;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Option(names = "--scenarios", paramLabel = "NAME", split = ",", completionCandidates = Scenarios.class,
        description = "Any of ${COMPLETION-CANDIDATES} (default: all; those of PyTorch are left out without torch, "
            + "gpus with a single GPU).")
    private List<String> scenarios;

    /** For completion and help. */
    private static final class Scenarios implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return GpuScenarios.names().iterator();
        }
    }

    @Option(names = "--kernel", paramLabel = "MS", defaultValue = "5",
        description = "Length of the real-time kernel of scenario long, milliseconds, above 0 (default: "
            + "${DEFAULT-VALUE}).")
    private double kernelMs;

    @Option(names = "--other-kernel", paramLabel = "MS", defaultValue = "20",
        description = "Length of the best-effort kernels of scenario long, milliseconds, above 0 (default: "
            + "${DEFAULT-VALUE}).")
    private double otherMs;

    @Option(names = "--others", paramLabel = "N", split = ",", defaultValue = "3,7,1",
        description = "Numbers of best-effort processes of scenario long, 1..14 (default: ${DEFAULT-VALUE}).")
    private List<Integer> others;

    @Option(names = "--strategies", paramLabel = "NAME", split = ",",
        description = "Any of ${COMPLETION-CANDIDATES} (default: all but GPREEMPT, which starves the other processes, "
            + "OPTIMISTIC_SLICE, which gains nothing over OPTIMISTIC, and HELD).")
    private List<GpuStrategy> strategies = List.of(GpuStrategy.NONE, GpuStrategy.SLICE, GpuStrategy.SLICES,
        GpuStrategy.BARE_BLOCKING, GpuStrategy.BARE_OPTIMISTIC, GpuStrategy.BLOCKING, GpuStrategy.OPTIMISTIC,
        GpuStrategy.HINT, GpuStrategy.EXEC);

    @Option(names = "--judge", paramLabel = "NAME", defaultValue = "OPTIMISTIC",
        description = "The strategy that is compared with the goals (default: ${DEFAULT-VALUE}).")
    private GpuStrategy judged;

    @Option(names = "--require-goals", description = "Exit with status 3 if a goal that was measured was missed.")
    private boolean requireGoals;

    @Option(names = "--jobs", paramLabel = "N", defaultValue = "120",
        description = "Real-time jobs per cell, 20..100000 (default: ${DEFAULT-VALUE}).")
    private int jobs;

    @Option(names = "--pause", paramLabel = "MS", defaultValue = "30",
        description = "Shortest pause between jobs, milliseconds, 0 or more; the seed adds up to 9 ms (default: "
            + "${DEFAULT-VALUE}).")
    private double pauseMs;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1",
        description = "Seed of the pauses (default: ${DEFAULT-VALUE}).")
    private int seed;

    @Option(names = "--out", paramLabel = "DIR",
        description = "Record the run in this directory: manifest, results, drawing, all samples.")
    private Path out;

    @Option(names = "--idle", paramLabel = "spin|hybrid|sleep", defaultValue = "hybrid",
        description = "What the daemon's dispatcher does without work (default: ${DEFAULT-VALUE}).")
    private String idle;

    @Option(names = "--user", paramLabel = "UID", defaultValue = "-1",
        description = "Run the best-effort processes as this user; needs root and setpriv (default: this user).")
    private int user;

    @Option(names = "--settle", paramLabel = "MS", defaultValue = "500",
        description = "Time to wait after the start of a daemon, milliseconds: it examines the running processes, 30 "
            + "ms each on a machine with an H200 (default: ${DEFAULT-VALUE}).")
    private int settleMs;

    @Option(names = "--python", paramLabel = "PROGRAM", defaultValue = "python3",
        description = "Interpreter with torch (default: ${DEFAULT-VALUE}).")
    private String python;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (jobs < 20 || jobs > 100_000 || kernelMs <= 0 || otherMs <= 0 || pauseMs < 0 || settleMs < 0
            || others.stream().anyMatch(n -> n < 1 || n > 14)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--jobs is " + jobs + ", --others " + others
                + "; use 20..100000 jobs, 1..14 processes, lengths above 0 and pauses of 0 or more");
        }
        if (scenarios != null && !GpuScenarios.names().containsAll(scenarios)) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--scenarios is " + String.join(",", scenarios)
                + "; use " + String.join(", ", GpuScenarios.names()));
        }
        final MechanismVerdict verdict = NvidiaSurvey.verdict();
        if (!verdict.usable()) {
            throw new IllegalStateException("bench gpu: " + verdict.reason());
        }
        final GpuBenchRecord record = out == null ? null
            : new GpuBenchRecord(out, spec.root().commandLine().getParseResult().originalArgs());
        final List<String> xidBefore = GpuBenchRecord.xidLines();
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("begun", Instant.now().toString()).put("jobs", jobs).put("seed", seed).put("pause_ms", pauseMs);
        result.put("idle", idle).put("driver", verdict.reason());
        result.put("simulated", !System.getProperty("gpuseg.nvidia.library", "").isEmpty());   // a stand-in's driver
        measure(result, record);
        final List<String> xidAfter = GpuBenchRecord.xidLines();
        final List<GpuGoals.Goal> goals = GpuGoals.judge(result, judged,
            xidBefore == null || xidAfter == null ? null : GpuBenchRecord.newLines(xidBefore, xidAfter));
        result.set("goals", GpuGoals.json(goals));
        result.put("ended", Instant.now().toString());
        if (record != null) {
            record.results(result);
            record.drawing(GpuBenchChart.draw(result));
            record.manifest(result, xidBefore, xidAfter, user);
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
        final GpuBench.Plan plan = new GpuBench.Plan(jobs, seed, pauseMs, strategies, idle, user, python,
            settleMs, record == null ? null : record.samples());
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
        return GpuScenarios.all(kernelMs, otherMs, others, strategies).stream()
            .filter(s -> scenarios == null || scenarios.contains(s.name())).toList();
    }
}

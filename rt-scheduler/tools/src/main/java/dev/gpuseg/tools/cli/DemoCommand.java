/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.launch.DurationConverter;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.daemon.launch.PolicyHelp;
import dev.gpuseg.daemon.launch.PolicyJarOption;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.demo.DemoRun;
import dev.gpuseg.tools.demo.TaskFigures;
import dev.gpuseg.tools.demo.Workload;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.trace.Export;
import dev.gpuseg.tools.trace.Recorder;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A workload, before and after. */
@Command(name = "demo", mixinStandardHelpOptions = true,
    description = "Run a workload (by default the GCAPS case study) on a simulated GPU: first round robin, as a "
        + "driver by itself shares the GPU, then the chosen policy. Exit status 1: an invariant was violated.")
final class DemoCommand implements Callable<Integer> {
    private static final Duration SHORTEST = Duration.ofMillis(500);
    private static final Duration LONGEST = Duration.ofHours(1);
    private static final String RECORDING = "demo.gpuseg";
    private static final String TIMELINE = "demo.html";
    private static final String PERFETTO = "demo.pftrace";

    @Spec
    private CommandSpec spec;

    @Option(names = "--duration", paramLabel = "DURATION", converter = DurationConverter.class, defaultValue = "10s",
        description = "Length of each of the two phases, 500ms..60min (default: ${DEFAULT-VALUE}).")
    private Duration duration;

    @Option(names = "--policy", paramLabel = "NAME",
        completionCandidates = PolicyHelp.class, description = "Policy of the second phase: "
            + "${COMPLETION-CANDIDATES} (default: fp, or the only one of --policy-jar).")
    private String policy;

    @Mixin
    private PolicyJarOption jar;

    @Option(names = "--workload", paramLabel = "NAME|FILE", defaultValue = Workload.DEFAULT,
        description = "Name of a file in traces/workloads, or a task-set file (default: ${DEFAULT-VALUE}).")
    private String workloadName;

    @Option(names = "--json", description = "Print one JSON object and nothing else.")
    private boolean json;

    @Option(names = "--dir", paramLabel = "DIR", description = "Runtime directory (default: a new one in /dev/shm).")
    private String dir;

    @Option(names = "--out", paramLabel = "DIR",
        description = "Directory for journal, execution log and jobs (default: a new temporary directory).")
    private Path out;

    @Option(names = "--trace", paramLabel = "DIR",
        description = "Also write the recording, a timeline for the browser, and a Perfetto trace to this directory.")
    private Path trace;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (duration.compareTo(SHORTEST) < 0 || duration.compareTo(LONGEST) > 0) {
            throw new CommandLine.ParameterException(spec.commandLine(),
                "--duration is " + duration.toMillis() + "ms; use 500ms..60min");
        }
        try (PolicySource policies = jar.open()) {
            policy = (policy == null ? policies.standard() : policies.catalog().create(policy)).name();
        } catch (final IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        final boolean ownDirectory = dir == null;
        final Path root = ownDirectory ? MemoryDirectory.create("gpuseg-demo-") : Path.of(dir);
        final Path kept = out == null ? Files.createTempDirectory("gpuseg-demo-") : out.toAbsolutePath();
        if (Files.exists(kept.resolve("journal"))) {
            throw new CommandLine.ParameterException(spec.commandLine(),
                "--out " + kept + " holds the journal of another run; name a new directory");
        }
        if (trace != null && Files.exists(trace.resolve(RECORDING))) {
            throw new CommandLine.ParameterException(spec.commandLine(),
                "--trace " + trace + " holds the recording of another run; name a new directory");
        }
        final Workload workload = workload();
        final boolean spin = Runtime.getRuntime().availableProcessors() >= workload.cpus();
        final PrintWriter terminal = spec.commandLine().getOut();
        final boolean live = !json && System.console() != null;
        try (DemoRun run = new DemoRun(workload, RuntimeDirectory.resolve(root.toString()), kept, policy, jar.file(),
            duration, spin, text -> progress(terminal, live, text))) {
            final DemoRun.Result result = run.run();
            if (live) {
                terminal.print("\r\033[K");
            }
            if (trace != null) {
                progress(terminal, live, "writing the trace");
                writeTrace(run.journal());
                progress(terminal, live, "");
            }
            if (json) {
                terminal.println(asJson(result));
            } else {
                print(result, run, workload, spin, terminal);
            }
            terminal.flush();
            for (final String detail : result.finding().details()) {
                spec.commandLine().getErr().println("gpuseg: overlap: " + detail);
            }
            spec.commandLine().getErr().flush();
            return result.holds() ? ExitCode.OK : ExitCode.FAILURE;
        } finally {
            if (ownDirectory) {
                RuntimeDirectory.deleteTree(root);
            }
        }
    }

    private Workload workload() {
        try {
            return Workload.named(workloadName);
        } catch (final IllegalArgumentException | IOException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--workload: " + e.getMessage(), e);
        }
    }

    private void writeTrace(final Path journal) throws IOException {
        Files.createDirectories(trace);
        Recorder.copy(journal, trace.resolve(RECORDING));
        final Source source = Source.open(trace.resolve(RECORDING));
        Export.HTML.write(source, trace.resolve(TIMELINE), null);
        Export.PERFETTO.write(source, trace.resolve(PERFETTO), null);
    }

    private static void progress(final PrintWriter terminal, final boolean live, final String text) {
        if (live) {
            terminal.print("\r\033[K" + text);
            terminal.flush();
        }
    }

    private ObjectNode asJson(final DemoRun.Result result) {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("policy", policy);
        root.put("mechanism", "sim");
        root.put("duration_s", duration.toMillis() / 1000.0);
        list(root.putArray("tasks"), result.tasks());
        list(root.putArray("baseline"), result.baseline());
        root.putObject("invariants").put("overlaps", result.finding().overlaps())
            .put("lost_records", result.lostRecords()).put("held_after_stop", result.heldAfter());
        if (trace != null) {
            root.putObject("trace").put("recording", trace.resolve(RECORDING).toString())
                .put("timeline", trace.resolve(TIMELINE).toString())
                .put("perfetto", trace.resolve(PERFETTO).toString());
        }
        return root;
    }

    private static void list(final ArrayNode into, final List<TaskFigures> figures) {
        for (final TaskFigures f : figures) {
            f.putInto(into.addObject());
        }
    }

    private void print(final DemoRun.Result result, final DemoRun run, final Workload workload, final boolean spin,
        final PrintWriter to) {
        to.println("Workload " + workload.set().id() + " on a SIMULATED GPU: " + workload.describeGpu() + ".");
        to.println("Synchronous release; sources and assumptions: "
            + (workloadName.equals(workload.set().id()) ? "traces/workloads/" + workloadName + ".yaml" : workloadName)
            + ".");
        to.println("CPU parts " + (spin ? "compute, tasks pinned as the file says."
            : "only sleep, since this machine has " + Runtime.getRuntime().availableProcessors()
            + " CPUs and the workload needs " + workload.cpus() + ": tasks compete for the GPU alone."));
        to.println();
        to.printf("%-16s %4s | %-39s | %-39s%n", "", "", "before: rr (the driver alone)", "after: " + policy);
        to.printf("%-16s %4s | %5s %6s %8s %8s %8s | %5s %6s %8s %8s %8s%n", "task", "prio", "jobs", "misses",
            "p50 ms", "p99 ms", "max ms", "jobs", "misses", "p50 ms", "p99 ms", "max ms");
        for (int i = 0; i < result.tasks().size(); i++) {
            final TaskFigures b = result.baseline().get(i);
            final TaskFigures a = result.tasks().get(i);
            to.printf(Locale.ROOT, "%-16s %4s | %5d %6s %8.2f %8.2f %8.2f | %5d %6s %8.2f %8.2f %8.2f%n",
                a.task().name(), a.task().bestEffort() ? "BE" : Integer.toString(a.task().priority()),
                b.jobs(), misses(b), ms(b.p50Ns()), ms(b.p99Ns()), ms(b.maxNs()),
                a.jobs(), misses(a), ms(a.p50Ns()), ms(a.p99Ns()), ms(a.maxNs()));
        }
        to.println();
        to.println("checked: " + result.finding().windows() + " enforced windows against " + result.finding().spans()
            + " executions: " + result.finding().overlaps() + " overlaps, " + result.lostRecords()
            + " lost records, " + result.heldAfter() + " contexts held after the stop");
        to.println("journal: " + run.journal() + "   execution log: " + run.spanLog());
        if (trace != null) {
            to.println("timeline: " + trace.resolve(TIMELINE) + "   (open it in a browser)");
            to.println("perfetto: " + trace.resolve(PERFETTO) + "   recording: " + trace.resolve(RECORDING));
        }
    }

    private static String misses(final TaskFigures f) {
        return f.task().bestEffort() ? "-" : Integer.toString(f.misses());
    }

    private static double ms(final long ns) {
        return TaskFigures.milliseconds(ns);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.launch.PolicyHelp;
import dev.gpuseg.daemon.launch.PolicyJarOption;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.demo.DemoProgress;
import dev.gpuseg.tools.demo.DemoRun;
import dev.gpuseg.tools.demo.DemoText;
import dev.gpuseg.tools.demo.TaskFigures;
import dev.gpuseg.tools.demo.Workload;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.process.TerminalOutput;
import dev.gpuseg.tools.trace.Export;
import dev.gpuseg.tools.trace.Recorder;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A workload, before and after. */
@Command(name = "demo", mixinStandardHelpOptions = true,
    description = "Run a workload (by default a mobile robot's tasks) on a simulated GPU: first shared by time slices, "
        + "as a driver by itself does, then by the chosen policy. Writes a timeline for the browser. Exit status 1: an "
        + "invariant was violated.",
    footer = "%nOn a terminal a line shows jobs and misses while it runs; NO_COLOR=1 switches colours off. Ctrl-C ends "
        + "everything that was started and deletes all files but a finished timeline.")
final class DemoCommand implements Callable<Integer> {
    private static final Duration SHORTEST = Duration.ofMillis(500);
    private static final Duration LONGEST = Duration.ofHours(1);
    private static final String RECORDING = "demo.gpuseg";
    private static final String TIMELINE = "demo.html";
    private static final String PERFETTO = "demo.pftrace";
    private static final String PREFIX = "gpuseg-demo-";
    private static final Path STANDARD_PLACE = Path.of("out");
    /** Time in which the signal that ended our children reaches us, too. */
    private static final long SIGNAL_MS = 300;

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

    @Option(names = "--out", paramLabel = "DIR",
        description = "Keep journal, execution log and jobs in this directory (default: they are deleted at the end).")
    private Path out;

    @Option(names = "--trace", paramLabel = "DIR",
        description = "Directory for the recording, a timeline for the browser, and a Perfetto trace (default: out, "
            + "where those of an earlier demo are replaced; with --json: nothing is written).")
    private Path trace;

    private final TerminalOutput terminal = TerminalOutput.ofThisProcess();

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
        if (out != null && Files.exists(out.resolve("journal"))) {
            throw new CommandLine.ParameterException(spec.commandLine(),
                "--out " + out + " holds the journal of another run; name a new directory");
        }
        if (trace != null && Files.exists(trace.resolve(RECORDING))) {
            throw new CommandLine.ParameterException(spec.commandLine(),
                "--trace " + trace + " holds the recording of another run; name a new directory");
        }
        final Workload workload = workload();
        for (final Path left : MemoryDirectory.removeLeftovers()) {
            spec.commandLine().getErr().println("gpuseg: removed " + left + ", left by a command that was killed");
        }
        final List<Path> temporary = new CopyOnWriteArrayList<>();
        final Path root = MemoryDirectory.create(PREFIX);
        temporary.add(root);
        final Path kept = out == null ? MemoryDirectory.createOnDisk(PREFIX) : out.toAbsolutePath();
        if (out == null) {
            temporary.add(kept);
        }
        final boolean spin = Runtime.getRuntime().availableProcessors() >= workload.cpus();
        try (DemoRun run = new DemoRun(workload, RuntimeDirectory.resolve(root.toString()), kept, policy, jar.file(),
            duration, spin, watcher())) {
            final Thread hook = new Thread(() -> interrupt(run, temporary), "gpuseg-demo-interrupted");
            Runtime.getRuntime().addShutdownHook(hook);
            try {
                return play(run, workload, spin);
            } catch (final IOException | TimeoutException | RuntimeException e) {
                // a signal from the terminal ends our children, too, perhaps first: then this failure is none
                TimeUnit.MILLISECONDS.sleep(SIGNAL_MS);
                throw e;
            } finally {
                leaveToHookIfItRuns(hook);
            }
        } finally {
            temporary.forEach(MemoryDirectory::delete);
        }
    }

    /** Once the JVM shuts down, the hook ends and deletes everything, and nothing more is to be said. */
    private static void leaveToHookIfItRuns(final Thread hook) throws InterruptedException {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (final IllegalStateException e) {
            Thread.currentThread().join();   // until the JVM has ended
        }
    }

    private int play(final DemoRun run, final Workload workload, final boolean spin) throws IOException,
        InterruptedException, TimeoutException {
        final DemoRun.Result result = run.run();
        final PrintWriter to = spec.commandLine().getOut();
        final Path written = json && trace == null ? null : writeTrace(run.journal());
        if (json) {
            to.println(asJson(result));
        } else {
            to.print(terminal.clearLine());
            print(result, run, workload, spin, to);
            if (written != null) {
                to.println("see it: " + written.resolve(TIMELINE) + "   (in a browser)");
            }
        }
        to.flush();
        for (final String detail : result.finding().details()) {
            spec.commandLine().getErr().println("gpuseg: overlap: " + detail);
        }
        spec.commandLine().getErr().flush();
        return result.holds() ? ExitCode.OK : ExitCode.FAILURE;
    }

    /** Runs in the JVM's shutdown, while the main thread may still be busy with what ends here. */
    private void interrupt(final DemoRun run, final List<Path> temporary) {
        run.close();
        temporary.forEach(MemoryDirectory::delete);
        if (terminal.terminal() && !json) {
            System.out.println(terminal.clearLine() + "interrupted; everything that the demo started was ended");
        }
    }

    private DemoProgress watcher() {
        if (json || !terminal.terminal()) {
            return DemoProgress.SILENT;
        }
        final DemoText text = new DemoText(terminal);
        final PrintWriter to = spec.commandLine().getOut();
        return new DemoProgress() {
            @Override
            public boolean isWatched() {
                return true;
            }

            @Override
            public void step(final String what) {
                to.print(terminal.clearLine() + what + " ...");
                to.flush();
            }

            @Override
            public void phase(final Phase phase) {
                to.print(terminal.clearLine() + text.live(phase));
                to.flush();
            }
        };
    }

    private Workload workload() {
        try {
            return Workload.named(workloadName);
        } catch (final IllegalArgumentException | IOException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--workload: " + e.getMessage(), e);
        }
    }

    /** The directory with the three files, null if it cannot be written, which is said. */
    private Path writeTrace(final Path journal) throws IOException {
        final Path to = trace == null ? STANDARD_PLACE : trace;
        try {
            Files.createDirectories(to);
            Files.deleteIfExists(to.resolve(RECORDING));
        } catch (final IOException e) {
            if (trace != null) {
                throw e;
            }
            spec.commandLine().getErr().println("gpuseg: no timeline was written: " + to.toAbsolutePath()
                + " cannot be written (" + e.getMessage() + "); name another directory with --trace");
            return null;
        }
        Recorder.copy(journal, to.resolve(RECORDING));
        final Source source = Source.open(to.resolve(RECORDING));
        Export.HTML.write(source, to.resolve(TIMELINE), null);
        Export.PERFETTO.write(source, to.resolve(PERFETTO), null);
        return to;
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
        final DemoText text = new DemoText(terminal);
        to.println();
        text.table(result, policy).forEach(to::println);
        to.println();
        to.println(text.sentence(result, policy));
        to.println();
        to.println("checked: " + result.finding().windows() + " segments that the daemon protected, against "
            + result.finding().spans() + " executions on the GPU: " + result.finding().overlaps() + " overlaps, "
            + result.lostRecords() + " lost records, " + result.heldAfter() + " programs left disabled");
        if (out != null) {
            to.println("journal: " + run.journal() + "   execution log: " + run.spanLog());
        }
    }
}

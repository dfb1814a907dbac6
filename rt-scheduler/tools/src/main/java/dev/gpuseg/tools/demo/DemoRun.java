/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.SimulatedMachine;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.Trace;
import dev.gpuseg.tools.trace.TraceBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;

/**
 * Plays a workload twice on a virtual GPU of its own, first with round robin as the driver alone would, then with
 * the chosen policy, and judges the run. The daemon is the real one ({@code gpuseg run}), every task a process. The
 * virtual GPU has the workload's time slice, switch cost and cost of an update.
 */
public final class DemoRun implements AutoCloseable {
    /** The policy of the first phase. */
    static final String OBSERVING = PolicyCatalog.builtIn().observing().name();

    /**
     * What came of it.
     *
     * @param baseline    figures with round robin
     * @param tasks       figures with the chosen policy
     * @param finding     what the independent check says
     * @param lostRecords begins that the tasks made and the journal does not have, plus gaps of the journal
     * @param heldAfter   contexts still disabled after the daemon's clean stop
     */
    public record Result(List<TaskFigures> baseline, List<TaskFigures> tasks, InvariantCheck.Finding finding,
        long lostRecords, int heldAfter) {
        public boolean holds() {
            return finding.overlaps() == 0 && lostRecords == 0 && heldAfter == 0;
        }
    }

    private static final int END_LIMIT_S = 15;
    private static final long LEAD_NS = 600_000_000L;
    private static final long PROGRESS_NS = 250_000_000L;
    private static final long POLL_MS = 20;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Workload workload;
    private final SimulatedMachine machine;
    private final Path out;
    private final String policy;
    /** Where the policy comes from; null = the program. */
    private final Path policyJar;
    private final Duration duration;
    private final boolean spin;
    private final boolean pin;
    private final DemoProgress progress;
    private final List<long[]> beginsByPid = new ArrayList<>();

    public DemoRun(final Workload workload, final RuntimeDirectory directory, final Path out, final String policy,
        final Path policyJar, final Duration duration, final boolean spin, final DemoProgress progress) {
        this.workload = workload;
        machine = new SimulatedMachine(directory.root(), out, true);
        this.out = out;
        this.policy = policy;
        this.policyJar = policyJar;
        this.duration = duration;
        this.spin = spin;
        this.progress = progress;
        pin = Runtime.getRuntime().availableProcessors() >= workload.cpus();
    }

    public Path journal() {
        return out.resolve("journal");
    }

    public Path spanLog() {
        return out.resolve("vgpu.spans");
    }

    public Result run() throws IOException, InterruptedException, TimeoutException {
        Files.createDirectories(out);
        machine.directory().create();
        progress.step("starting the virtual GPU and the daemon");
        final List<String> gpu = new ArrayList<>(List.of("--log", spanLog().toString()));
        gpu.addAll(workload.gpuOptions());
        machine.startGpu(gpu);
        final List<String> options = new ArrayList<>(List.of("--policy", OBSERVING, "--journal", journal().toString()));
        if (policyJar != null) {
            options.addAll(List.of("--policy-jar", policyJar.toAbsolutePath().toString()));
        }
        machine.startDaemon(options.toArray(new String[0]));
        final int[] before = phase(OBSERVING, 1);
        final ObjectNode change = AdminClient.command("policy");
        change.putObject("settings").put("policy", policy);
        AdminClient.ask(machine.directory(), change);
        final int[] after = phase(policy, 2);
        progress.step("stopping the daemon and checking the run");
        final int status = machine.stopDaemon();
        if (status != 0) {
            throw new IllegalStateException("the daemon stopped with status " + status + ": "
                + machine.daemon().said());
        }
        final int held = machine.held();
        machine.stopGpu();
        final InvariantCheck.Finding finding = InvariantCheck.of(journal(), spanLog(), policy);
        long lost = finding.journalGaps();
        for (final long[] entry : beginsByPid) {
            lost += Math.abs(entry[1] - finding.begins().getOrDefault((int) entry[0], 0L));
        }
        final Trace trace = TraceBuilder.read(Source.open(journal()));
        return new Result(figures(trace, before), figures(trace, after), finding, lost, held);
    }

    private List<TaskFigures> figures(final Trace trace, final int[] pids) {
        return IntStream.range(0, pids.length).mapToObj(i -> TaskFigures.of(workload.tasks().get(i), trace, pids[i]))
            .toList();
    }

    /** Returns the processes of the tasks, in the order of the workload. */
    private int[] phase(final String name, final int number) throws IOException, InterruptedException,
        TimeoutException {
        final long startNs = System.nanoTime() + LEAD_NS;
        final List<Child> tasks = new ArrayList<>();
        for (final Task task : workload.tasks()) {
            tasks.add(machine.startTask(task.name(), options(task, name, startNs)));
        }
        final long endNs = startNs + duration.toNanos();
        for (long nowNs = System.nanoTime(); nowNs - endNs < 0; nowNs = System.nanoTime()) {
            report(name, number, Math.max(0, nowNs - startNs));
            TimeUnit.NANOSECONDS.sleep(Math.min(PROGRESS_NS, Math.max(1, endNs - nowNs)));
        }
        // an overloaded GPU works its backlog off: about as long again at most
        final int limit = END_LIMIT_S + (int) duration.toSeconds();
        final int[] pids = new int[tasks.size()];
        for (int i = 0; i < tasks.size(); i++) {
            final Task task = workload.tasks().get(i);
            final Child child = tasks.get(i);
            if (child.awaitExit(limit) != 0) {
                throw new IllegalStateException("task " + task.name() + " failed: " + child.said());
            }
            final JsonNode summary = JSON.readTree(child.lastLine());
            beginsByPid.add(new long[] {child.pid(), summary.path("begins").asLong()});
            pids[i] = (int) child.pid();
        }
        TimeUnit.MILLISECONDS.sleep(POLL_MS);   // the daemon takes leave of them
        return pids;
    }

    /** Jobs and misses as the daemon counts them, of the tasks that are connected: those of this phase. */
    private void report(final String name, final int number, final long elapsedNs) {
        if (!progress.isWatched()) {
            return;
        }
        long jobs = 0;
        long misses = 0;
        for (final JsonNode task : machine.status().path("tasks")) {
            if (task.path("priority").asInt() > 0) {
                jobs += task.path("jobs").asLong();
                misses += task.path("job_misses").asLong();
            }
        }
        progress.phase(new DemoProgress.Phase(number, name, elapsedNs, duration.toNanos(), jobs, misses));
    }

    private Path jobs(final Task task, final String phase) {
        return out.resolve(phase + "-" + task.name() + ".csv");
    }

    private List<String> options(final Task task, final String phase, final long startNs) {
        final List<String> command = new ArrayList<>(List.of("--priority", Integer.toString(task.priority()),
            "--gpu-priority", Integer.toString(task.gpuPriority()), "--period", Workload.us(task.periodNs()),
            "--segments", Workload.segments(task), "--start-at", Long.toString(startNs), "--duration",
            duration.toMillis() + "ms", "--wait", workload.waitOption(), "--cpu-mode", spin ? "spin" : "sleep", "--out",
            jobs(task, phase).toString()));
        if (!task.bestEffort()) {
            command.addAll(List.of("--deadline", Workload.us(task.deadlineNs()), "--scheduling",
                "fifo:" + task.priority()));
        }
        if (pin && task.cpu() > 0) {
            command.addAll(List.of("--cpu", Integer.toString(task.cpu())));
        }
        return command;
    }

    /** Kills what still runs. May be called by another thread during {@link #run}, which then fails. */
    @Override
    public void close() {
        machine.close();
    }
}

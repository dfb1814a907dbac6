/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.amd.AmdGauge;
import dev.gpuseg.mechanisms.amd.AmdMechanism;
import dev.gpuseg.mechanisms.amd.ControlInterface;
import dev.gpuseg.tools.bench.EnforcementCosts;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.MemoryDirectory;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What an AMD GPU's changes cost, with the queues of processes that work on it: no kernel of ours is run, so what only
 * a kernel could show (theta, the time slice) stays unknown.
 *
 * <p>First each of them is disabled and enabled alone, then several together, by the same mechanism as the
 * daemon's; then a daemon does so for a task that begins and ends empty segments. All processes are enabled when this
 * is closed, or the program interrupted; when it is killed, the kernel or a watchdog enables them.
 */
public final class AmdCalibration implements AutoCloseable {
    /**
     * The longest that was observed; ns.
     *
     * @param epsilonNs from begin to the return of the call that waited for its grant, and what enabling all took:
     *                  no update exceeds both together ({@code analysis/docs/window.md}, section 7)
     * @param oneWayNs  the longer of the two: enough if no update both disables and enables
     * @param alphaNs   the longest of the daemon's calls, whatever it changed
     * @param commandNs of epsilon, what is not the driver's
     * @param changeNs  one change, as {@code analysis/docs/stalls.md} counts them
     */
    public record Costs(long epsilonNs, long oneWayNs, long alphaNs, long commandNs, long changeNs) {
    }

    private static final int LIMIT_S = 60;
    private static final int WARM_UP = 3;
    private static final int BEGINS_BEFORE = 20;
    private static final int ALONE_MOST = 8;
    private static final int FAILURES_MOST = 5;
    private static final int RUNLIST_BATCH = 64;
    private static final long MS = 1_000_000;
    private static final long SETTLE_MS = 500;
    private static final long PACE_LEAST_NS = 10 * MS;
    private static final long PACE_MOST_NS = 1_000 * MS;
    private static final double DEPENDENT = 1e-9;

    /** What a set of processes took, ns, in the order of the rounds. */
    private static final class Cell {
        private final List<Integer> which;
        private final int queues;
        private final int units;
        private final List<Long> holds = new ArrayList<>();
        private final List<Long> releases = new ArrayList<>();
        private final List<Long> took = new ArrayList<>();
        private final List<Long> last = new ArrayList<>();
        private long firstNs;
        private long remaps;

        Cell(final List<Integer> which, final int queues, final int units) {
            this.which = which;
            this.queues = queues;
            this.units = units;
        }

        void add(final AmdGauge.Change off, final AmdGauge.Change on) {
            holds.add(off.ns());
            releases.add(on.ns());
            for (final AmdGauge.Change c : List.of(off, on)) {
                if (c.tookNs() >= 0) {
                    took.add(c.tookNs());
                    last.add(c.lastNs());
                    remaps += c.remaps();
                }
            }
        }
    }

    private final Path root;
    private final int gpu;
    private final String idle;
    private final int jobs;
    private final Thread hook = new Thread(this::close, "gpuseg-calibrate-end");
    private final AmdGauge gauge;
    private final HeldFile held;
    private final Child guard;
    private final List<String> failures = new ArrayList<>();
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile Child daemon;

    public AmdCalibration(final int gpu, final List<Integer> pids, final String idle,
        final int jobs) throws IOException {
        this.gpu = gpu;
        this.idle = idle;
        this.jobs = jobs;
        root = MemoryDirectory.create("gpuseg-calibrate-" + ProcessHandle.current().pid() + "-");
        HeldFile file = null;
        AmdGauge opened = null;
        try {
            final RuntimeDirectory own = RuntimeDirectory.resolve(root.resolve("own").toString());
            own.create();
            file = HeldFile.openOrCreate(own.held());
            opened = new AmdGauge(gpu, pids, file);
            guard = Child.start("gpuseg-watchdog", List.of(NativePrograms.named("gpuseg-watchdog").toString(), "--dir",
                own.root().toString(), "--daemon-pid", Long.toString(ProcessHandle.current().pid()), "--period", "1s"),
                root.resolve("errors"));
        } catch (final RuntimeException e) {
            if (opened != null) {
                opened.close();
            }
            if (file != null) {
                file.close();
            }
            RuntimeDirectory.deleteTree(root);
            throw e;
        }
        held = file;
        gauge = opened;
        Runtime.getRuntime().addShutdownHook(hook);
    }

    /**
     * Measures.
     *
     * @param witness a process that is not disabled, or null
     * @param into    gets what was measured, and how
     * @return what the profile is made of, without margin
     */
    public Costs measure(final Witness witness, final ObjectNode into) throws IOException, InterruptedException,
        TimeoutException {
        final List<AmdGauge.Subject> subjects = gauge.subjects();
        into.put("mechanism", "amd").put("simulated", AmdGauge.isStandIn()).put("driver", gauge.description());
        into.put("gpu", gpu).put("interface", gauge.controlInterface().label()).put("mode", gauge.mode());
        into.put("processes", subjects.size()).put("queues", queues(IntStream.range(0, subjects.size()).boxed()
            .toList()));
        final List<Cell> cells = cells();
        long changeNs = 0;
        long updateNs = 0;
        for (final Cell cell : cells) {
            measure(cell, witness);
            for (final List<Long> values : List.of(cell.holds, cell.releases)) {
                final long longest = values.stream().mapToLong(Long::longValue).max().orElseThrow();
                changeNs = Math.max(changeNs, IntegerMath.ceilDiv(longest, cell.units));
                updateNs = Math.max(updateNs, longest);
            }
        }
        describe(cells, into);
        into.put("failed_changes", failures.size());
        if (!failures.isEmpty()) {
            into.put("last_failure", failures.get(failures.size() - 1));
        }
        if (witness != null) {
            into.set("witness", witness.result());
        }
        final String only = subjects.stream().map(s -> Integer.toString(s.pid())).collect(Collectors.joining(","));
        gauge.close();   // a process is traced by one at a time
        return withDaemon(only, subjects.size(), updateNs, changeNs, into);
    }

    private int queues(final List<Integer> which) {
        return which.stream().mapToInt(i -> gauge.subjects().get(i).queues()).sum();
    }

    /** Each alone, the first two, four, and so on, all. */
    private List<Cell> cells() {
        final int n = gauge.subjects().size();
        final Set<List<Integer>> sets = new LinkedHashSet<>();
        for (int i = 0; i < Math.min(n, ALONE_MOST); i++) {
            sets.add(List.of(i));
        }
        for (int size = 2; size < n; size *= 2) {
            sets.add(IntStream.range(0, size).boxed().toList());
        }
        sets.add(IntStream.range(0, n).boxed().toList());
        return sets.stream().map(s -> new Cell(s, queues(s), units(s.size(), queues(s)))).toList();
    }

    /** Changes in one update that takes these off, as {@code AmdCosts} of the analysis counts them. */
    private int units(final int processes, final int queues) {
        return !"hws".equals(gauge.mode()) || gauge.controlInterface() == ControlInterface.AGENT ? queues
            : gauge.batch() > 1 ? (processes + RUNLIST_BATCH - 1) / RUNLIST_BATCH : processes;
    }

    private void measure(final Cell cell, final Witness witness) throws InterruptedException {
        for (int round = -WARM_UP; round < jobs; round++) {
            AmdGauge.Change off = change(cell, true, witness);
            AmdGauge.Change on = change(cell, false, witness);
            while (!off.failure().isEmpty() || !on.failure().isEmpty()) {
                failures.add(off.failure().isEmpty() ? on.failure() : off.failure());
                if (failures.size() > FAILURES_MOST) {
                    throw new MechanismException(failures.size() + " changes failed, the last so: "
                        + failures.get(failures.size() - 1));
                }
                off = change(cell, true, witness);
                on = change(cell, false, witness);
            }
            if (round < 0) {
                cell.firstNs = Math.max(cell.firstNs, off.ns());
            } else {
                cell.add(off, on);
            }
            TimeUnit.NANOSECONDS.sleep(Math.max(MS, off.ns() + on.ns()));   // they work half of the time at least
        }
    }

    private AmdGauge.Change change(final Cell cell, final boolean off, final Witness witness) {
        final AmdGauge.Change change = gauge.change(cell.which, off, witness == null ? () -> 0 : witness::count);
        if (witness != null) {
            witness.changed(change);
        }
        return change;
    }

    private void describe(final List<Cell> cells, final ObjectNode into) {
        final ArrayNode all = into.putArray("changes");
        for (final Cell cell : cells) {
            final ObjectNode o = all.addObject().put("processes", cell.which.size()).put("queues", cell.queues)
                .put("units", cell.units).put("first_hold_ns", cell.firstNs);
            o.set("hold_ns", EnforcementCosts.figures(array(cell.holds)));
            o.set("release_ns", EnforcementCosts.figures(array(cell.releases)));
            if (!cell.took.isEmpty()) {
                o.set("kernel_took_ns", EnforcementCosts.figures(array(cell.took)));
                o.set("kernel_last_ns", EnforcementCosts.figures(array(cell.last)));
                o.put("runlists", cell.remaps);
            }
        }
        final long longest = gauge.kernelMaxNs();
        if (longest >= 0) {
            into.put("kernel_max_since_boot_ns", longest);
        }
        split(cells, into.putObject("hold_p50_split"));
    }

    private static long[] array(final List<Long> values) {
        return values.stream().mapToLong(Long::longValue).toArray();
    }

    /**
     * hold = per batch + processes x per process + queues x per queue, by least squares over the medians. What these
     * processes cannot tell apart is left out: unknown.
     */
    private static void split(final List<Cell> cells, final ObjectNode into) {
        final double[][] x = new double[cells.size()][];
        final double[] y = new double[cells.size()];
        for (int i = 0; i < y.length; i++) {
            final Cell c = cells.get(i);
            x[i] = new double[] {1, c.which.size(), c.queues};
            final long[] sorted = c.holds.stream().mapToLong(Long::longValue).sorted().toArray();
            y[i] = sorted[sorted.length / 2];
        }
        for (final int[] used : new int[][] {{0, 1, 2}, {0, 1}, {0, 2}, {0}}) {
            final double[] solved = leastSquares(x, y, used);
            if (solved != null) {
                final String[] names = {"per_batch_ns", "per_process_ns", "per_queue_ns"};
                for (int k = 0; k < used.length; k++) {
                    into.put(names[used[k]], Math.round(solved[k]));
                }
                into.put("told_apart", used.length == 3 ? "all" : used.length == 1
                    ? "nothing: one set of processes; per_batch is the whole" : used[1] == 1
                        ? "batch and process, with its queues" : "batch with its process, and queue");
                return;
            }
        }
    }

    /** Null if the columns depend on each other. */
    static double[] leastSquares(final double[][] x, final double[] y, final int... used) {
        final int n = used.length;
        final double[][] a = new double[n][n + 1];
        for (int row = 0; row < y.length; row++) {
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < n; j++) {
                    a[i][j] += x[row][used[i]] * x[row][used[j]];
                }
                a[i][n] += x[row][used[i]] * y[row];
            }
        }
        for (int i = 0; i < n; i++) {
            int pivot = i;
            for (int k = i + 1; k < n; k++) {
                pivot = Math.abs(a[k][i]) > Math.abs(a[pivot][i]) ? k : pivot;
            }
            if (Math.abs(a[pivot][i]) < DEPENDENT * y.length) {
                return null;
            }
            final double[] swapped = a[i];
            a[i] = a[pivot];
            a[pivot] = swapped;
            for (int k = 0; k < n; k++) {
                for (int j = n; k != i && j >= i; j--) {
                    a[k][j] -= a[i][j] * a[k][i] / a[i][i];
                }
            }
        }
        return IntStream.range(0, n).mapToDouble(i -> a[i][n] / a[i][i]).toArray();
    }

    private Costs withDaemon(final String only, final int subjects, final long updateNs, final long changeNs,
        final ObjectNode into) throws IOException, InterruptedException, TimeoutException {
        final Path directory = root.resolve("run");
        final Path samples = root.resolve("samples.csv");
        final List<String> command = JavaCommand.daemon(List.of("--dir", directory.toString(), "--mechanism", "amd",
            "--gpus", Integer.toString(gpu + 1), "--policy", "fp", "--anticipate", "off", "--idle", idle));
        command.add(1, "-D" + AmdMechanism.ONLY_PROPERTY + "=" + only);
        daemon = Child.start("gpuseg run", command, root.resolve("errors"));
        daemon.await("ready", LIMIT_S);
        Thread.sleep(SETTLE_MS);   // it looks at the processes that run already
        final long paceNs = Math.min(PACE_MOST_NS, Math.max(PACE_LEAST_NS, 3 * updateNs));
        try (Child task = Child.start("gpuseg-bench-ipc", List.of(NativePrograms.named("gpuseg-bench-ipc").toString(),
            "--dir", directory.toString(), "--n", Integer.toString(jobs), "--warmup", Integer.toString(BEGINS_BEFORE),
            "--pace", Long.toString(paceNs), "--gpu", Integer.toString(gpu), "--wait", "sleep", "--samples",
            samples.toString(), "begin"), root.resolve("errors"))) {
            final long worstS = TimeUnit.NANOSECONDS.toSeconds((jobs + BEGINS_BEFORE) * (paceNs + 10 * updateNs));
            if (task.awaitExit((int) Math.min(Integer.MAX_VALUE, 4 * LIMIT_S + 4 * worstS)) != 0) {
                throw new IllegalStateException("calibrate: " + task.said());
            }
        }
        daemon.terminate();
        daemon.awaitExit(LIMIT_S);
        final Path journal = RuntimeDirectory.resolve(directory.toString()).journal();
        final Map<Long, Long> calls = new TreeMap<>();
        final List<EnforcementCosts.Begin> begins = EnforcementCosts.begins(journal, "bench", calls);
        JournalReader.forEach(journal, event -> {
            if (event.kind() == EventKind.ENABLE && event.arg1() > 0) {
                calls.put(event.arg0(), event.arg1());
            }
        });
        final long[] seen = EnforcementCosts.beginTimes(samples);
        if (begins.size() != seen.length + BEGINS_BEFORE) {
            throw new IllegalStateException("calibrate: the journal has " + begins.size() + " begins of "
                + (seen.length + BEGINS_BEFORE) + "; measure again on a machine with less to do");
        }
        final List<Long> rest = new ArrayList<>();
        final List<Long> whole = new ArrayList<>();
        int most = 0;
        for (int i = 0; i < seen.length; i++) {
            final EnforcementCosts.Begin b = begins.get(i + BEGINS_BEFORE);
            most = Math.max(most, b.disabled());
            if (b.disabled() > 0) {   // else they were off, or it found no process
                whole.add(seen[i]);
                rest.add(Math.max(0, seen[i] - b.callsNs()));
            }
        }
        if (most < subjects) {
            throw new IllegalStateException("calibrate: the daemon took " + most + " of " + subjects
                + " processes off; let them work, with what they have, until calibrate is through");
        }
        into.set("begin_to_return_ns", EnforcementCosts.figures(array(whole)));
        into.set("of_it_not_the_driver_ns", EnforcementCosts.figures(array(rest)));
        into.set("daemon_calls_ns", EnforcementCosts.figures(calls.values().stream().mapToLong(Long::longValue)
            .toArray()));
        final long commandNs = rest.stream().mapToLong(Long::longValue).max().orElseThrow();
        final long callNs = calls.values().stream().mapToLong(Long::longValue).max().orElseThrow();
        final long beginNs = whole.stream().mapToLong(Long::longValue).max().orElseThrow();
        final long[] returns = array(EnforcementCosts.returns(journal));
        into.set("enable_ns", EnforcementCosts.figures(returns));
        final long backNs = Arrays.stream(returns).max().orElseThrow();
        final long offNs = Math.max(beginNs, commandNs + callNs);
        return new Costs(offNs + backNs, Math.max(offNs, commandNs + backNs), callNs, commandNs, changeNs);
    }

    /** Enables all processes. */
    @Override
    public void close() {
        if (closed.getAndSet(true)) {
            return;
        }
        gauge.close();
        final Child running = daemon;
        if (running != null) {
            running.terminate();   // it enables what it disabled
            try {
                running.awaitExit(LIMIT_S);
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            } catch (final TimeoutException e) {
                running.close();   // then its watchdog does
            }
        }
        guard.terminate();
        held.close();
        RuntimeDirectory.deleteTree(root);
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (final IllegalStateException e) {
            return;   // it is the hook that runs
        }
    }
}

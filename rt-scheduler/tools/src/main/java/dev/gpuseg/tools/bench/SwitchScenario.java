/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * Where the time of a short segment goes that is in time for its begin: the same control loop alone, with one thing
 * more in each line, up to begins that are anticipated against busy processes. The kernels of the loop last as long in
 * all of them.
 *
 * <p>A GPU that worked for another context since has to switch back, with or without a daemon: a line without one
 * measures that. An empty kernel shortly before the job ({@code touched}) moves the switch before the begin.
 */
final class SwitchScenario implements GpuScenario {
    static final String BUSY_ONLY = "busy, not anticipated";
    static final String BUSY_IDLE = "busy and 3 idle, not anticipated";
    static final String BUSY_ANTICIPATED = "busy, anticipated";
    static final String BUSY_TOUCHED = "busy, anticipated, touched by the library";
    static final String BUSY_IDLE_ANTICIPATED = "busy and 3 idle, anticipated";
    private static final PeriodicJob JOB = new PeriodicJob("switch", 0.35, 10, 10, 10);
    private static final int BUSY = 3;
    private static final double BUSY_MS = 20;
    private static final int IDLE = 3;
    private static final double BETWEEN_MS = 1;
    /** The loop begins at 0, the other process halfway between. */
    private static final List<String> ON_GRID = List.of("--phase-ms", "0");
    /** A process is known to be idle a second after it is, and up to five more if the driver's thread came late. */
    private static final List<String> LONG_WARM = List.of("--phase-ms", "0", "--warm", "800");
    private static final List<String> TOUCHED = List.of("--phase-ms", "0", "--touch-us", "250");
    private static final List<String> BY_LIBRARY = List.of("--phase-ms", "0", PeriodicJob.TOUCHES);
    private static final List<String> EARLY = List.of("--phase-ms", "0", "--hint-ms", "4");
    private static final List<String> OFF = List.of("--anticipate", "off");
    private static final List<String> DECLARED = List.of("--anticipate", "declared");

    /** Who else has a context. */
    private enum Company { NOBODY, BETWEEN, BUSY }

    /**
     * One line.
     *
     * @param title    in the table
     * @param key      in the names of files
     * @param strategy of the plan that stands for it
     * @param company  who else works
     * @param idle     processes with an idle context besides
     * @param daemon   options of the daemon; null = none
     * @param options  of the real-time process
     */
    private record Way(String title, String key, GpuStrategy strategy, Company company, int idle, List<String> daemon,
        List<String> options) {
        private int others() {
            return idle + (company == Company.BUSY ? SwitchScenario.BUSY : company == Company.BETWEEN ? 1 : 0);
        }
    }

    private static final List<Way> WAYS = List.of(
        new Way("alone, touched", "touched", GpuStrategy.NONE, Company.NOBODY, 0, null, TOUCHED),
        new Way("daemon, nobody else", "daemon", GpuStrategy.OPTIMISTIC, Company.NOBODY, 0, DECLARED, ON_GRID),
        new Way("daemon, 3 idle, not anticipated", "idle-off", GpuStrategy.OPTIMISTIC, Company.NOBODY, IDLE, OFF,
            ON_GRID),
        new Way("daemon, 3 idle, anticipated", "idle", GpuStrategy.OPTIMISTIC, Company.NOBODY, IDLE, DECLARED,
            ON_GRID),
        new Way("one works between, no daemon", "between", GpuStrategy.NONE, Company.BETWEEN, 0, null, ON_GRID),
        new Way("the same, touched", "between-touched", GpuStrategy.NONE, Company.BETWEEN, 0, null, TOUCHED),
        new Way("one works between, not anticipated", "between-off", GpuStrategy.OPTIMISTIC, Company.BETWEEN, 0, OFF,
            ON_GRID),
        new Way("one works between, anticipated", "between-declared", GpuStrategy.OPTIMISTIC, Company.BETWEEN, 0,
            DECLARED, ON_GRID),
        new Way(BUSY_ONLY, "busy-off", GpuStrategy.OPTIMISTIC, Company.BUSY, 0, OFF, LONG_WARM),
        new Way(BUSY_IDLE, "busy-idle-off", GpuStrategy.OPTIMISTIC, Company.BUSY, IDLE, OFF, LONG_WARM),
        new Way(BUSY_ANTICIPATED, "busy", GpuStrategy.OPTIMISTIC, Company.BUSY, 0, DECLARED, ON_GRID),
        new Way(BUSY_IDLE_ANTICIPATED, "busy-idle", GpuStrategy.OPTIMISTIC, Company.BUSY, IDLE, DECLARED,
            ON_GRID),
        new Way("busy, hint 4 ms ahead", "busy-hint", GpuStrategy.HINT, Company.BUSY, 0, OFF, EARLY),
        new Way(BUSY_TOUCHED, "busy-touched", GpuStrategy.OPTIMISTIC, Company.BUSY, 0, DECLARED, BY_LIBRARY));

    @Override
    public String name() {
        return JOB.name();
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("kernel_ms", JOB.kernelMs()).put("kernels_per_job", JOB.kernels()).put("period_ms", JOB.periodMs())
            .put("other_kernel_ms", BUSY_MS).put("warm_jobs", JOB.warm());
        final ObjectNode alone = bench.measured(name() + "-alone", JOB.command(bench, "none", ON_GRID), null);
        into.set("alone", alone);
        final ArrayNode cells = into.putArray("cells");
        for (final Company company : Company.values()) {
            final List<Way> ways = WAYS.stream().filter(way -> way.company() == company
                && bench.plan().strategies().contains(way.strategy())).toList();
            if (!ways.isEmpty()) {
                bench.against(company == Company.BUSY ? BUSY : 0, BUSY_MS, into,
                    running -> measure(bench, ways, running, alone, cells));
            }
        }
    }

    private void measure(final GpuBench bench, final List<Way> ways, final List<CudaBench.Other> running,
        final ObjectNode alone, final ArrayNode cells) throws IOException, InterruptedException {
        for (final Way way : ways) {
            bench.cell(way.title(), way.others(), cells, () -> {
                final ObjectNode cell = measureWay(bench, way, running);
                GpuBench.compare(cell, alone, 0);
                return cell.put("others_wrong", running.stream().mapToLong(CudaBench.Other::wrong).sum());
            });
        }
    }

    private ObjectNode measureWay(final GpuBench bench, final Way way, final List<CudaBench.Other> running)
        throws IOException, InterruptedException, TimeoutException {
        final String cellName = name() + "-" + way.key();
        final List<CudaBench.Other> more = new ArrayList<>();
        try {
            for (int i = 0; i < way.idle(); i++) {
                more.add(PeriodicJob.idle(bench, cellName + "-" + i));
            }
            if (way.company() == Company.BETWEEN) {
                more.add(between(bench, cellName + "-between"));
            }
            for (final CudaBench.Other process : more) {
                process.awaitSetUp();
            }
            try (GpuBench.Daemon daemon = way.daemon() == null ? null : bench.startDaemon(way.daemon())) {
                final List<String> command = JOB.command(bench, way.daemon() == null ? "none" : "segment",
                    way.options());
                command.addAll(List.of("--name", cellName));
                command.addAll(GpuBench.pages(running));
                final ObjectNode cell = bench.measured(cellName, command, daemon);
                if (daemon != null) {
                    cell.put("known_idle", knownIdle(AdminClient.ask(
                        RuntimeDirectory.find(daemon.directory().toString()), AdminClient.command("status"))));
                }
                return cell;
            }
        } finally {
            CudaBench.close(more);
        }
    }

    /** Processes that the daemon takes for idle. */
    private static int knownIdle(final JsonNode status) {
        int count = 0;
        for (final JsonNode context : status.path("gpus").path(0).path("contexts")) {
            count += context.path("idle").asBoolean() ? 1 : 0;
        }
        return count;
    }

    /** A process with a short kernel halfway between the begins of the loop: the GPU is idle at each of them. */
    private static CudaBench.Other between(final GpuBench bench, final String processName) throws IOException {
        return bench.cuda().startCounting(processName, page -> {
            final List<String> command = bench.realTimeCommand("none", BETWEEN_MS, PeriodicJob.ENDLESS);
            command.addAll(List.of("--period-ms", Double.toString(JOB.periodMs()), "--phase-ms",
                Double.toString(JOB.periodMs() / 2), "--jitter-ms", "0", "--own-page", page.toString()));
            return command;
        });
    }
}

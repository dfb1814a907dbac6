/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.conformance.ConformanceReport;
import dev.gpuseg.analysis.conformance.Effort;
import dev.gpuseg.analysis.conformance.PolicyConformance;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.TaskNeed;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The example of the documentation, as a user would use it: compiled, packed, loaded, checked and simulated. */
class LeastSlackFirstTest {
    private static final long MS = Sets.MS;

    @TempDir
    private Path directory;
    private PolicyJar jar;

    @BeforeEach
    void setUp() throws IOException {
        jar = PolicyJar.open(TestJar.leastSlackFirst(directory.resolve("jar")), PolicyCatalog.builtIn());
    }

    @AfterEach
    void tearDown() {
        jar.close();
    }

    @Test
    void shouldDescribeItself() {
        final PolicyDescription row = jar.catalog().get("least-slack");
        assertEquals(Set.of(TaskNeed.DEADLINE, TaskNeed.BUDGET), row.needs());
        assertTrue(row.enforces());
    }

    @Test
    void shouldConform() throws InterruptedException {
        final ConformanceReport report = PolicyConformance.verify(jar.catalog().create("least-slack"), Effort.FAST);
        assertTrue(report.passed(), report.failures()::toString);
    }

    /** Long work with a later deadline has less slack: it goes first, and the short one still ends in time. */
    @Test
    void shouldGoBySlackAndNotByDeadline() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 2, 0,
            new Task("short", 1, 0, 1000 * MS, 90 * MS, 0, 0, 10, 10, false, List.of(Sets.gpu(0, 10))),
            new Task("long", 2, 0, 1000 * MS, 100 * MS, 0, 0, 20, 20, false, List.of(Sets.gpu(0, 70))));
        final Simulator simulator = new Simulator(set);
        final SimulationOptions options = SimulationOptions.ofDurationNs(100 * MS);
        simulator.execute(options.with(Scheduler.EDF, CpuPolicy.FP));
        assertEquals(10 * MS, simulator.maxResponseNs(0), "the earlier deadline goes first");
        assertEquals(80 * MS, simulator.maxResponseNs(1));

        simulator.setPolicy(jar.catalog().create("least-slack"));
        simulator.setAttributes(0, 0, 10 * MS, OverrunAction.NOTIFY, 0, 0, 0);
        simulator.setAttributes(1, 0, 70 * MS, OverrunAction.NOTIFY, 0, 0, 0);
        simulator.execute(options.with(Scheduler.POLICY, CpuPolicy.FP));
        assertEquals(80 * MS, simulator.maxResponseNs(0), "80 ms of slack");
        assertEquals(70 * MS, simulator.maxResponseNs(1), "30 ms of slack");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the watch thread repeats must give the collector nothing to do, which would stop the dispatcher. */
@Timeout(120)
class ScanAllocationTest {
    private static final int ROUNDS = 3_000;
    private static final int SLOW_ROUNDS = 200;
    private static final int DESCRIPTORS = 60;

    private com.sun.management.ThreadMXBean threads;

    @TempDir
    private Path directory;

    @BeforeEach
    void counting() {
        assumeTrue(ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean,
            "this JVM cannot count allocated bytes: no com.sun.management.ThreadMXBean");
        threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    }

    /** Bytes for each round, after as many rounds that do not count. */
    private double allocatedBy(final Runnable round) {
        return allocatedBy(round, ROUNDS);
    }

    private double allocatedBy(final Runnable round, final int rounds) {
        for (int i = 0; i < rounds; i++) {
            round.run();
        }
        final long self = Thread.currentThread().getId();
        final long before = threads.getThreadAllocatedBytes(self);
        for (int i = 0; i < rounds; i++) {
            round.run();
        }
        return (threads.getThreadAllocatedBytes(self) - before) / (double) rounds;
    }

    @Test
    void shouldAllocateNothingForTheDescriptorsOfAProcessWithoutTheDriver() throws Exception {
        final Process process = new ProcessBuilder("bash", "-c", "for ((i = 10; i < " + (10 + DESCRIPTORS)
            + "; i++)); do eval \"exec $i< /dev/null\"; done; echo ready; exec sleep 100").start();
        try {
            assertEquals("ready", process.inputReader().readLine());
            final int pid = (int) process.pid();
            try (Stream<Path> open = Files.list(Path.of("/proc/" + pid + "/fd"))) {
                assertTrue(open.count() >= DESCRIPTORS);
            }
            final ControlSearch search = new ControlSearch();
            assertFalse(search.finds(pid));
            final double bytes = allocatedBy(() -> search.finds(pid));
            assertTrue(bytes < 1, "bytes for each process of a walk: " + bytes);
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    @Test
    void shouldAllocateNothingPerProcessWhereNoMpsServerRuns() throws Exception {
        final List<WatchedProcess> all = new ArrayList<>();
        for (int pid = 1; pid <= DESCRIPTORS; pid++) {
            Files.createDirectories(directory.resolve(Integer.toString(pid)));
            Files.writeString(directory.resolve(pid + "/environ"), "PATH=/bin\0");
            all.add(new WatchedProcess(pid, 1, 0));
        }
        final MpsRule rule = new MpsRule(directory);
        final double bytes = allocatedBy(() -> rule.update(all));
        assertTrue(bytes < 2 * DESCRIPTORS, "bytes for each update with " + DESCRIPTORS + " processes: " + bytes);
    }

    @Test
    void shouldReadAReportIntoMemoryThatIsKept() throws Exception {
        final Process process = new ProcessBuilder("bash", "-c", "exec 9< " + Files.write(directory.resolve("report"),
            new byte[CaptureReport.HEADER_BYTES + CaptureReport.ENTRIES_MAX * CaptureReport.ENTRY_BYTES])
            + "; echo ready; exec sleep 100").start();
        try {
            assertEquals("ready", process.inputReader().readLine());
            final int pid = (int) process.pid();
            final CaptureReport report = new CaptureReport();
            final double bytes = allocatedBy(() -> report.read(pid, 9));
            assertTrue(bytes < 1, "bytes for each look at a report: " + bytes);
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    /** On the stand-in; each of its own descriptors costs a call that makes objects. */
    @Test
    void shouldExamineAProcessAgainAndAgainWithoutObjects() throws Exception {
        final RmRig rig = new RmRig(directory);
        try {
            final RmProcess process = RmProcess.open(rig.start("", true, RmRig.appProgram()).pid(),
                new GpuIndex(List.of()), Scope.COMPUTE, new RmControl());
            assertEquals(RmProcess.Result.CHANGED, process.refresh(System.nanoTime(), ControlCloser.inPlace()));
            final double bytes = allocatedBy(() -> {
                process.invalidate();   // a full one
                process.refresh(System.nanoTime(), ControlCloser.inPlace());
            }, SLOW_ROUNDS);
            process.close();
            assertTrue(bytes < 1_024, "bytes for each examination: " + bytes);
        } finally {
            rig.close();
        }
    }

    @Test
    void shouldLookAtTheEnvironmentOfANewProcessWithoutItsText() throws Exception {
        Files.createDirectories(directory.resolve("1"));
        Files.writeString(directory.resolve("1/environ"), "VARIABLE=of the process\0".repeat(200));
        final MpsRule rule = new MpsRule(directory);
        final WatchedProcess process = new WatchedProcess(1, 1, 0);
        final List<WatchedProcess> all = List.of(process);
        final double bytes = allocatedBy(() -> {
            process.pipe = null;
            rule.update(all);
        });
        assertTrue(bytes < 128, "bytes for each new process: " + bytes);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.ipc.platform.ProcessCpuTime;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.ThreadControl;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** On threads of this process, and on a process whose only thread wakes every 8 ms. */
@Timeout(120)
class ProcDriverThreadsTest {
    private static final int NO_PROCESS = Integer.MAX_VALUE;
    private static final int LOOKS = 3_000;
    private static final long WORK_NS = 20_000_000;

    @TempDir
    private Path directory;
    private final ProcDriverThreads threads = new ProcDriverThreads();
    private final ProcessCpuTime clock = new ProcessCpuTime();

    @BeforeEach
    void kernelCounts() throws IOException {
        final Path own = Path.of("/proc/self/schedstat");
        assumeTrue(Files.exists(own) && !Files.readString(own).startsWith("0 "),
            "this kernel does not count the time of threads: /proc/self/schedstat is missing or 0 (CONFIG_SCHED_INFO)");
    }

    private List<Integer> found(final int pid) {
        final List<Integer> tids = new ArrayList<>();
        threads.find(pid, tids::add);
        return tids;
    }

    /** A thread of this process: says its id, works when told to, and ends. */
    private final class Worker implements AutoCloseable {
        private final SynchronousQueue<Integer> said = new SynchronousQueue<>();
        private final SynchronousQueue<Integer> go = new SynchronousQueue<>();
        private final Thread thread;
        private final int tid;

        private Worker(final String name) throws InterruptedException {
            thread = new Thread(this::run, name);
            thread.start();
            tid = said.take();
        }

        private void run() {
            final int self = ThreadControl.tid();
            final ProcessCpuTime own = new ProcessCpuTime();
            try {
                said.put(self);
                go.take();
                for (final long endNs = own.threadNs(self) + WORK_NS; own.threadNs(self) < endNs;) {
                    Thread.onSpinWait();
                }
                said.put(self);
                go.take();
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        private void work() throws InterruptedException {
            go.put(0);
            said.take();
        }

        @Override
        public void close() {
            thread.interrupt();
            // the kernel's thread ends after the JVM's
            while (Files.exists(Path.of("/proc/self/task/" + tid))) {
                LockSupport.parkNanos(1_000_000);
            }
        }
    }

    @Test
    void shouldFindThreadsByNameWithTheirTime() throws InterruptedException {
        final int self = ProcessStatus.pid();
        final int tid;
        try (Worker driver = new Worker(ProcDriverThreads.NAME); Worker other = new Worker("cuda-EvtHandl");
            Worker second = new Worker(ProcDriverThreads.NAME + "2")) {
            assertEquals(List.of(driver.tid, second.tid), found(self).stream().sorted().toList());
            tid = driver.tid;
            final long before = threads.usedNs(self, tid);
            assertTrue(before > 0, () -> "used " + before);
            driver.work();
            // the kernel counts what runs at ticks and when it sleeps
            while (threads.usedNs(self, tid) < before + WORK_NS) {
                Thread.sleep(1);
            }
            assertTrue(threads.usedNs(self, tid) <= clock.readNs(self), "a part of the process's time");
            assertTrue(threads.usedNs(self, other.tid) < 0, "its name is another one");
            assertTrue(threads.usedNs(NO_PROCESS, tid) < 0);
        }
        assertEquals(List.of(), found(self));
        assertTrue(threads.usedNs(self, tid) < 0, "it has ended");
        assertEquals(List.of(), found(NO_PROCESS));
    }

    /** A shell that wakes every 8 ms; its name is that of its only thread. */
    private Process waking(final String threadName) throws IOException {
        final Path never = directory.resolve("never");
        final Process process = new ProcessBuilder("bash", "-c", "mkfifo $1 && exec 9<> $1 && echo $2 > /proc/$$/comm "
            + "&& echo ready; while :; do read -t 0.008 -u 9; done", "bash", never.toString(), threadName)
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            assertEquals("ready", process.inputReader().readLine());
        } catch (final IOException | AssertionError e) {
            process.destroyForcibly();
            throw e;
        }
        return process;
    }

    /** One look after each time in which the process used more than a process without work may. */
    private final class Looks {
        private long cpuNs;
        private final List<Boolean> told = new ArrayList<>();
        private final IdleProcesses idle =
            new IdleProcesses(pid -> cpuNs, threads, (process, isIdle) -> told.add(isIdle));
        private final int pid;

        private Looks(final Process process) {
            pid = (int) process.pid();
            cpuNs = clock.readNs(pid);
        }

        private void look() throws InterruptedException {
            long nowNs = clock.readNs(pid);
            while (nowNs <= cpuNs + IdleProcesses.QUIET_NS) {
                assertTrue(nowNs >= 0, "it lives");
                Thread.sleep(1);
                nowNs = clock.readNs(pid);
            }
            cpuNs = nowNs;
            idle.look(List.of(new ProcessView(pid, 1, "worker", false, List.of(1))));
        }
    }

    @Test
    void shouldTakeAProcessForIdleInWhichOnlyTheDriversThreadWakes() throws IOException, InterruptedException {
        final Process process = waking(ProcDriverThreads.NAME);
        try {
            final Looks looks = new Looks(process);
            while (looks.told.isEmpty()) {   // on a busy machine some looks are late
                looks.look();
            }
            assertEquals(List.of(true), looks.told);
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    @Test
    void shouldNotTakeItForIdleIfItIsAnotherThread() throws IOException, InterruptedException {
        final Process process = waking("worker");
        try {
            final Looks looks = new Looks(process);
            for (int i = 0; i < 4 * IdleProcesses.QUIET_LOOKS; i++) {
                looks.look();
            }
            assertEquals(List.of(), looks.told);
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    /** Its threads are asked for in each look, and searched every five seconds. */
    @Test
    void shouldMakeNoObjectForALook() throws IOException, InterruptedException {
        assumeTrue(ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean,
            "this JVM cannot count allocated bytes: no com.sun.management.ThreadMXBean");
        final var counted = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long self = Thread.currentThread().getId();
        final Process process = waking(ProcDriverThreads.NAME);
        try {
            final int pid = (int) process.pid();
            final long[] cpuNs = {0};
            final IdleProcesses idle = new IdleProcesses(ofPid -> cpuNs[0] += IdleProcesses.BUSY_NS, threads,
                (which, isIdle) -> { });
            final List<ProcessView> all =
                new ArrayList<>(List.of(new ProcessView(pid, 1, "worker", false, List.of(1))));
            look(idle, all);
            final long before = counted.getThreadAllocatedBytes(self);
            look(idle, all);
            final double bytes = (counted.getThreadAllocatedBytes(self) - before) / (double) LOOKS;
            assertTrue(bytes < 1, "bytes for each look: " + bytes);
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    private static void look(final IdleProcesses idle, final List<ProcessView> all) {
        for (int i = 0; i < LOOKS; i++) {
            idle.look(all);
        }
    }
}

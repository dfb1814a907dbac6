/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.cgroup.ProcessView;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.Test;

class IdleProcessesTest {
    private static final int PID = 7;
    private static final int DRIVER = 71;
    /** What the driver's thread uses in a look. */
    private static final long HOUSEKEEPING_NS = 600_000;
    private final Map<Integer, Long> cpuNs = new HashMap<>();
    private final Threads threads = new Threads();
    private final List<String> told = new ArrayList<>();
    private final IdleProcesses idle = new IdleProcesses(pid -> cpuNs.getOrDefault(pid, -1L), threads,
        (process, isIdle) -> told.add(process.pid() + (isIdle ? " idle" : " busy")));
    private long startTicks = 1;

    /** The driver's threads of the process, as the test says. */
    private static final class Threads implements DriverThreads.Source {
        private final Map<Integer, Long> usedNs = new TreeMap<>();
        private int searches;
        private int questions;

        @Override
        public void find(final int pid, final IntConsumer found) {
            searches++;
            usedNs.keySet().forEach(found::accept);
        }

        @Override
        public long usedNs(final int pid, final int tid) {
            questions++;
            return usedNs.getOrDefault(tid, -1L);
        }
    }

    private void look(final int times, final long usesNs) {
        for (int i = 0; i < times; i++) {
            cpuNs.merge(PID, usesNs, Long::sum);
            idle.look(List.of(new ProcessView(PID, startTicks, "worker", false, List.of(1))));
        }
    }

    /** Looks at a process that has a context: some of what it uses, the driver's thread uses. */
    private void lookAtContext(final int times, final long driverNs, final long othersNs) {
        for (int i = 0; i < times; i++) {
            threads.usedNs.merge(DRIVER, driverNs, Long::sum);
            look(1, driverNs + othersNs);
        }
    }

    @Test
    void shouldCallAProcessIdleAfterAQuietSecondAndBusyAtOnce() {
        look(1, 5_000_000);
        look(IdleProcesses.QUIET_LOOKS - 1, IdleProcesses.QUIET_NS);
        assertEquals(List.of(), told);
        look(3, IdleProcesses.QUIET_NS);
        assertEquals(List.of("7 idle"), told, "once");
        look(1, IdleProcesses.QUIET_NS + 1);
        assertEquals(List.of("7 idle", "7 busy"), told);
        look(IdleProcesses.QUIET_LOOKS - 1, 0);
        assertEquals(2, told.size());
        look(1, 0);
        assertEquals("7 idle", told.get(2));
    }

    @Test
    void shouldStartAnewWithAnotherProcessOfTheSameNumber() {
        look(IdleProcesses.QUIET_LOOKS + 1, 0);
        startTicks = 2;
        look(IdleProcesses.QUIET_LOOKS, 0);
        assertEquals(List.of("7 idle"), told, "the new one has not been quiet for long enough");
        look(1, 0);
        assertEquals(List.of("7 idle", "7 idle"), told);
    }

    @Test
    void shouldForgetAProcessThatIsGone() {
        look(IdleProcesses.QUIET_LOOKS, 0);
        cpuNs.remove(PID);
        idle.look(List.of(new ProcessView(PID, 1, "worker", false, List.of(1))));
        idle.look(List.of());
        look(IdleProcesses.QUIET_LOOKS, 0);
        assertEquals(List.of(), told, "the first look at a new one tells nothing");
        look(1, 0);
        assertEquals(List.of("7 idle"), told);
    }

    @Test
    void shouldKeepTheOthersWhenSomeOfManyAreGone() {
        final List<ProcessView> all = new ArrayList<>();
        for (int pid = 1; pid <= 100; pid++) {
            cpuNs.put(pid, 1L);
            all.add(new ProcessView(pid, 1, "worker", false, List.of(pid)));
        }
        idle.look(all);
        all.removeIf(process -> process.pid() % 3 == 0);
        for (int i = 0; i < IdleProcesses.QUIET_LOOKS; i++) {
            idle.look(all);
        }
        assertEquals(all.stream().map(process -> process.pid() + " idle").toList(), told);
    }

    @Test
    void shouldNotCountWhatTheDriversThreadUses() {
        lookAtContext(2, HOUSEKEEPING_NS, IdleProcesses.QUIET_NS);
        assertEquals(1, threads.searches, "the second look finds the thread");
        lookAtContext(IdleProcesses.QUIET_LOOKS, HOUSEKEEPING_NS, IdleProcesses.QUIET_NS);
        assertEquals(List.of("7 idle"), told);
        lookAtContext(10 * DriverThreads.SEARCH_LOOKS, HOUSEKEEPING_NS, IdleProcesses.QUIET_NS);
        assertEquals(List.of("7 idle"), told, "it stays so");
        assertEquals(1, threads.searches, "and no thread is missed");
        lookAtContext(1, HOUSEKEEPING_NS, IdleProcesses.QUIET_NS + 1);
        assertEquals(List.of("7 idle", "7 busy"), told);
    }

    @Test
    void shouldCountTheSameOfAnotherThread() {
        look(3 * DriverThreads.SEARCH_LOOKS, HOUSEKEEPING_NS);
        assertEquals(List.of(), told);
        assertEquals(3, threads.searches, "one in five seconds");
        assertEquals(0, threads.questions);
    }

    @Test
    void shouldAskForNoThreadOfAProcessThatSleepsOrWorks() {
        threads.usedNs.put(DRIVER, 0L);
        look(IdleProcesses.QUIET_LOOKS, IdleProcesses.QUIET_NS);
        look(IdleProcesses.QUIET_LOOKS, IdleProcesses.BUSY_NS + 1);
        assertEquals(0, threads.searches + threads.questions);
    }

    @Test
    void shouldNotSubtractWhatAThreadUsedBeforeTheLastLook() {
        lookAtContext(2 + IdleProcesses.QUIET_LOOKS - 1, HOUSEKEEPING_NS, 0);
        lookAtContext(1, IdleProcesses.BUSY_NS, 1);   // its thread is not asked for
        look(1, IdleProcesses.QUIET_NS + 1);          // of other threads
        lookAtContext(IdleProcesses.QUIET_LOOKS - 1, HOUSEKEEPING_NS, 0);
        assertEquals(List.of(), told);
        lookAtContext(1, HOUSEKEEPING_NS, 0);
        assertEquals(List.of("7 idle"), told);
    }

    @Test
    void shouldSubtractBetweenLooksInWhichTheProcessSlept() {
        lookAtContext(2 + IdleProcesses.QUIET_LOOKS, HOUSEKEEPING_NS, 0);
        for (int i = 0; i < 10; i++) {
            lookAtContext(3, 0, IdleProcesses.QUIET_NS);
            lookAtContext(1, HOUSEKEEPING_NS, IdleProcesses.QUIET_NS);
        }
        assertEquals(List.of("7 idle"), told);
    }

    @Test
    void shouldForgetAThreadThatEndedAndFindItsSuccessor() {
        lookAtContext(2 + IdleProcesses.QUIET_LOOKS, HOUSEKEEPING_NS, 0);
        threads.usedNs.clear();
        look(1, HOUSEKEEPING_NS);
        assertEquals(List.of("7 idle", "7 busy"), told);
        final int successor = DRIVER + 1;
        for (int i = 0; i < DriverThreads.SEARCH_LOOKS + IdleProcesses.QUIET_LOOKS; i++) {
            threads.usedNs.merge(successor, HOUSEKEEPING_NS, Long::sum);
            look(1, HOUSEKEEPING_NS);
        }
        assertEquals(List.of("7 idle", "7 busy", "7 idle"), told);
    }

    @Test
    void shouldFindFurtherThreadsWithoutLosingTheFirst() {
        lookAtContext(2 + IdleProcesses.QUIET_LOOKS, HOUSEKEEPING_NS, 0);
        threads.usedNs.put(DRIVER + 1, 0L);
        boolean isIdle = false;
        for (int i = 0; i < DriverThreads.SEARCH_LOOKS + IdleProcesses.QUIET_LOOKS; i++) {
            assertFalse(isIdle && told.get(told.size() - 1).endsWith("busy"), "it stays idle");
            threads.usedNs.merge(DRIVER + 1, HOUSEKEEPING_NS, Long::sum);
            threads.usedNs.merge(DRIVER, HOUSEKEEPING_NS, Long::sum);
            look(1, 2 * HOUSEKEEPING_NS);
            isIdle = told.size() == 3;
        }
        assertTrue(isIdle, told::toString);
        assertEquals(2, threads.searches);
    }
}

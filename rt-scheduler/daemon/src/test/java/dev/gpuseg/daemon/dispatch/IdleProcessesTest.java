/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.daemon.cgroup.ProcessView;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class IdleProcessesTest {
    private static final int PID = 7;
    private final Map<Integer, Long> cpuNs = new HashMap<>();
    private final List<String> told = new ArrayList<>();
    private final IdleProcesses idle = new IdleProcesses(pid -> cpuNs.getOrDefault(pid, -1L),
        (process, isIdle) -> told.add(process.pid() + (isIdle ? " idle" : " busy")));
    private long startTicks = 1;

    private void look(final int times, final long usesNs) {
        for (int i = 0; i < times; i++) {
            cpuNs.merge(PID, usesNs, Long::sum);
            idle.look(List.of(new ProcessView(PID, startTicks, "worker", false, List.of(1))));
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
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ContextLimitsTest {
    private static final int OWN = 900;
    private static final int ALICE = 1001;
    private static final int BOB = 1002;

    @TempDir
    private Path directory;
    private final List<Integer> ended = new ArrayList<>();
    private final List<String> lines = new ArrayList<>();
    private boolean mayEnd = true;

    /** A process of user pid / 1000 + 1000, or of root below 100. */
    private static ProcessView process(final int pid) {
        return new ProcessView(pid, 1, "train\u001b[31m", false, List.of(pid));
    }

    private ContextLimits limits(final String text) throws IOException {
        Files.writeString(directory.resolve("50-site.conf"), text);
        return new ContextLimits(UserLimits.read(directory), OWN, lines::add, new ContextLimits.Processes() {
            @Override
            public int uid(final ProcessView process) {
                return process.pid() < 100 ? 0 : process.pid() < 200 ? OWN : process.pid() / 10_000 + 1000;
            }

            @Override
            public List<Integer> groups(final ProcessView process) {
                return List.of();
            }

            @Override
            public void end(final ProcessView process) {
                if (!mayEnd) {
                    throw new SystemCallException("pidfd_send_signal", "9", 1);
                }
                ended.add(process.pid());
            }
        });
    }

    private static List<ProcessView> processes(final int from, final int count) {
        final List<ProcessView> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(process(from + i));
        }
        return all;
    }

    @Test
    void shouldEndTheNewestOfAUserWhoHasTooManyAndNobodyElses() throws IOException {
        final ContextLimits limits = limits("* contexts 3\n");
        final List<ProcessView> all = processes(10_000, 5);
        all.addAll(processes(20_000, 3));
        assertEquals(2, limits.look(all));
        assertEquals(List.of(10_003, 10_004), ended);
        assertTrue(lines.get(0).contains("ended process 10003") && lines.get(0).contains("user " + ALICE)
            && lines.get(0).contains("limit contexts of user 1001 is 3") && lines.get(0).contains("50-site.conf:1"),
            lines.get(0));
        assertFalse(lines.get(0).contains("\u001b"), lines.get(0));
        assertEquals(2, limits.look(processes(20_000, 3)));
        assertEquals(4, limits.look(processes(20_000, 5)));
        assertTrue(lines.get(3).contains("user " + BOB), lines.get(3));
    }

    @Test
    void shouldEndNobodyWithoutALineAndNameAUserWithManyOnce() throws IOException {
        final ContextLimits limits = limits("");
        assertEquals(0, limits.look(processes(10_000, ContextLimits.MANY - 1)));
        assertEquals(List.of(), lines);
        assertEquals(0, limits.look(processes(10_000, ContextLimits.MANY)));
        assertEquals(0, limits.look(processes(10_000, 10 * ContextLimits.MANY)));
        assertEquals(1, lines.size());
        assertTrue(lines.get(0).contains("user " + ALICE) && lines.get(0).contains("pids.max"), lines.get(0));
        assertEquals(List.of(), ended);
    }

    @Test
    void shouldLeaveRootAndItsOwnUserAlone() throws IOException {
        final ContextLimits limits = limits("* contexts 0\n");
        final List<ProcessView> all = processes(1, 90);
        all.addAll(processes(100, 90));
        assertEquals(0, limits.look(all));
        assertEquals(List.of(), ended);
    }

    @Test
    void shouldSayOnceThatItMayNotEndAProcess() throws IOException {
        mayEnd = false;
        final ContextLimits limits = limits("* contexts 0\n");
        assertEquals(0, limits.look(processes(10_000, 2)));
        assertEquals(0, limits.look(processes(10_000, 1)));
        assertEquals(1, lines.size(), lines::toString);
        final String line = lines.get(0);
        assertTrue(line.contains("cannot end process 10000") && line.contains("CAP_KILL"), line);
    }

    @Test
    void shouldEndExactlyTheProcessThatWasSeen() throws Exception {
        final Process sleep = new ProcessBuilder("sleep", "60").start();
        try {
            final int pid = (int) sleep.pid();
            final ContextLimits.Processes living = new ContextLimits.Living();
            final long ticks = ProcessStatus.startTicks(pid);
            assertEquals(ProcessStatus.uid(ProcessStatus.pid()), living.uid(new ProcessView(pid, ticks, "", true,
                List.of())));
            living.end(new ProcessView(pid, ticks + 1, "another one of this pid", true, List.of()));
            assertFalse(sleep.waitFor(200, TimeUnit.MILLISECONDS));
            living.end(new ProcessView(pid, ticks, "sleep", true, List.of()));
            assertTrue(sleep.waitFor(15, TimeUnit.SECONDS));
            assertEquals(-1, living.uid(new ProcessView(pid, ticks, "", true, List.of())));
        } finally {
            sleep.destroyForcibly();
        }
    }
}

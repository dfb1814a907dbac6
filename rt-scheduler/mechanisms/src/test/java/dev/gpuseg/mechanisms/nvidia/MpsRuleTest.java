/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The rule alone; only the server is a real process, because it is recognised by its program. */
@Timeout(30)
class MpsRuleTest {
    private static final int FIRST = 4_200_000;   // above any pid that this kernel gives out

    @TempDir
    private Path proc;
    private Process program;
    private MpsRule rule;
    private WatchedProcess server;

    @BeforeEach
    void start() throws Exception {
        final Path file = Files.copy(Path.of("/bin/sleep"), proc.resolve("nvidia-cuda-mps-server"));
        program = new ProcessBuilder(file.toString(), "60").start();
        final int pid = (int) program.pid();
        while (!ProcessStatus.runs(pid, "nvidia-cuda-mps-server")) {
            Thread.sleep(1);   // the launcher has not become the program yet
        }
        rule = new MpsRule(proc);
        server = watched(pid, "/pipe");
    }

    @AfterEach
    void stop() throws Exception {
        program.destroyForcibly().waitFor();
    }

    private WatchedProcess watched(final int pid, final String pipe) throws Exception {
        final Path process = Files.createDirectory(proc.resolve(Integer.toString(pid)));
        Files.writeString(process.resolve("environ"), "CUDA_MPS_PIPE_DIRECTORY=" + pipe + "\0");
        return new WatchedProcess(pid, 1, 0);
    }

    @Test
    void shouldExemptNothingWhileNoClientIsRegistered() throws Exception {
        final WatchedProcess client = watched(FIRST, "/pipe");
        assertFalse(rule.update(List.of(server, client)));
        assertNull(client.exemption);
        assertEquals("MPS server: it is disabled for tasks that are not its clients", MpsRule.remark(server));
        assertEquals("", MpsRule.remark(client));
    }

    @Test
    void shouldExemptServerAndClientsWhileOneClientIsRegistered() throws Exception {
        final WatchedProcess task = watched(FIRST, "/pipe");
        final WatchedProcess client = watched(FIRST + 1, "/pipe");
        final WatchedProcess unrelated = watched(FIRST + 2, "/other");
        final List<WatchedProcess> all = List.of(server, task, client, unrelated);
        task.registered = true;
        assertTrue(rule.update(all));
        final MpsRule.Exemption expected = new MpsRule.Exemption(server.pid, FIRST, true);
        assertEquals(expected, server.exemption);
        assertEquals(expected, task.exemption);
        assertEquals(expected, client.exemption);
        assertNull(unrelated.exemption);
        assertFalse(rule.update(all), "nothing has changed");
        assertTrue(MpsRule.remark(server).startsWith("MPS server: it stays enabled, because pid " + FIRST));
        assertTrue(MpsRule.remark(client).startsWith("apparently an MPS client of server pid " + server.pid));
        task.dead = true;
        assertTrue(rule.update(all));
        assertNull(server.exemption);
        assertNull(client.exemption);
    }

    @Test
    void shouldTakeARegisteredProcessWithoutChannelsForAClientOfAnyServer() throws Exception {
        final WatchedProcess task = watched(FIRST, "/other");
        task.registered = true;
        assertFalse(rule.update(List.of(server, task)), "it has channels, and names another directory");
        task.withoutOwnChannels = true;
        assertTrue(rule.update(List.of(server, task)));
        assertEquals(new MpsRule.Exemption(server.pid, FIRST, false), server.exemption);
        assertTrue(MpsRule.remark(task).contains("has no channels of its own"), MpsRule.remark(task));
        server.detached = true;
        assertTrue(rule.update(List.of(server, task)));
        assertNull(task.exemption, "without the server there is no reason");
    }
}

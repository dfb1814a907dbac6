/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.enforce.FakeMechanism;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LeftoversTest {
    private static final int DEAD_PID = 1 << 22;

    @TempDir
    private Path directory;
    private final List<String> tool = new ArrayList<>();
    private final FakeMechanism mechanism = new FakeMechanism();
    private final int self = ProcessStatus.pid();
    private HeldFile held;

    @BeforeEach
    void open() {
        held = HeldFile.openOrCreate(directory.resolve("held"));
    }

    @AfterEach
    void close() {
        held.close();
    }

    private void hold(final int mechanismId, final int pid, final long startTicks) {
        held.hold(mechanismId, pid, startTicks, 0, 7, 1, new byte[0]);
    }

    private void enable(final Runnable releaseTool) {
        new Leftovers(held, List.of(mechanism), releaseTool, RuntimeDirectory.resolve(directory.toString())).enable();
    }

    @Test
    void shouldRefuseToStartBesideAContextThatStaysDisabled() {
        hold(Abi.MECHANISM_NVIDIA, self, ProcessStatus.startTicks(self));
        final StartUpException e = assertThrows(StartUpException.class, () -> enable(() -> tool.add("ran")));
        assertEquals(List.of("ran"), tool);
        assertTrue(e.getMessage().contains("1 contexts are still disabled"), e.getMessage());
        assertTrue(e.getMessage().contains("gpuseg release --dir " + directory), e.getMessage());
    }

    @Test
    void shouldEnableItsOwnMechanismsContextsWithoutTheTool() {
        hold(mechanism.id(), self, ProcessStatus.startTicks(self));
        enable(() -> tool.add("ran"));
        assertEquals(0, held.count());
        assertEquals(List.of(), tool);
    }

    @Test
    void shouldLeaveAnotherMechanismsContextsToTheTool() {
        hold(Abi.MECHANISM_NVIDIA, self, ProcessStatus.startTicks(self));
        enable(() -> held.forEach((index, id, pid, start, gpu, context, payload) -> held.release(index)));
        assertEquals(0, held.count());
    }

    @Test
    void shouldForgetWhatDiedWithItsProcess() {
        hold(Abi.MECHANISM_NVIDIA, DEAD_PID, 1);
        hold(mechanism.id(), self, ProcessStatus.startTicks(self) + 1);   // another process had that pid
        enable(() -> tool.add("ran"));
        assertEquals(0, held.count());
        assertEquals(List.of(), tool);
    }
}

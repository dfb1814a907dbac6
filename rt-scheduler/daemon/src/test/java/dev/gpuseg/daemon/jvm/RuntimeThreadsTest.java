/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Names as the kernel shows them: 15 characters. */
class RuntimeThreadsTest {
    private static String shown(final String name) {
        return name.substring(0, Math.min(15, name.length()));
    }

    @Test
    void shouldPutThreadsThatFollowProcessesBeforeCompilers() {
        for (final String name : List.of("gpuseg-observer", "gpuseg-nvidia-watch-0", "gpuseg-nvidia-close-0",
            "gpuseg-amd-scan", "gpuseg-tegra-scan")) {
            assertTrue(RuntimeThreads.followsProcesses(shown(name)), name);
            assertFalse(RuntimeThreads.stopsTheOthers(shown(name)), name);
        }
        for (final String name : List.of("C2 CompilerThread0", "C1 CompilerThread0", "gpuseg-journal", "VM Thread")) {
            assertFalse(RuntimeThreads.followsProcesses(shown(name)), name);
        }
        assertTrue(RuntimeThreads.FOLLOWERS > RuntimeThreads.LOWEST);
    }
}

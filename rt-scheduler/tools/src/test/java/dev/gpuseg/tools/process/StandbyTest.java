/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(240)
class StandbyTest {
    private static final int LIMIT_S = 90;

    @TempDir
    private Path directory;

    private Child standby() throws Exception {
        final Path classes = Files.write(directory.resolve("classes"), List.of(
            "dev.gpuseg.daemon.launch.DaemonMain source: shared objects file (top)",
            "dev.gpuseg.Lambda$1/0x0001 source: dev.gpuseg.Lambda", "no.such.Type source: jrt:/java.base"));
        final Child standby = Child.startListening("standby", JavaCommand.standby(classes),
            directory.resolve("standby.err"));
        standby.await(Standby.READY, LIMIT_S);
        return standby;
    }

    @Test
    void shouldRunTheCommandThatItIsToldAndExitAsItDoes() throws Exception {
        try (Child standby = standby()) {
            standby.tell(List.of("run", "--policy", "no-such-policy", "--dir", directory.toString(), ""));
            assertEquals(2, standby.awaitExit(LIMIT_S), standby.said());
            assertTrue(standby.said().contains("no-such-policy"), standby.said());
        }
    }

    @Test
    void shouldEndWithoutACommandWhenWhoStartedItIsGone() throws Exception {
        try (Child standby = standby()) {
            standby.tell(List.of("run"));   // no empty line, and then the end of its input
            assertEquals(0, standby.awaitExit(LIMIT_S), standby.said());
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ChurnTest {
    @TempDir
    private Path directory;

    private Churn churn(final String script) {
        return new Churn(50, i -> List.of("sh", "-c", "echo > " + directory + "/" + i + "; " + script));
    }

    private void await(final int files) throws Exception {
        while (directory.toFile().list().length < files) {
            Thread.sleep(5);
        }
    }

    @Test
    void shouldStartProcessesUntilItIsStoppedAndCountThem() throws Exception {
        try (Churn churn = churn("true")) {
            await(3);
            final int started = churn.stop();
            assertTrue(started >= 3, started + " started");
            assertEquals(started, directory.toFile().list().length);
        }
    }

    @Test
    void shouldNotFillTheMachine() throws Exception {
        final Churn churn = churn("sleep 60");
        try {
            await(Churn.AT_ONCE);
            Thread.sleep(100);
            assertEquals(Churn.AT_ONCE, directory.toFile().list().length);
        } finally {
            churn.close();
        }
        for (final ProcessHandle child : ProcessHandle.current().children().toList()) {
            if (child.info().arguments().map(a -> String.join(" ", a).contains(directory.toString())).orElse(false)) {
                child.onExit().get(15, TimeUnit.SECONDS);   // killed with it
            }
        }
    }

    @Test
    void shouldNotHideAProcessThatFails() throws Exception {
        try (Churn churn = churn("exit 7")) {
            await(1);
            assertTrue(assertThrows(IllegalStateException.class, churn::stop).getMessage().contains("status 7"));
        }
    }

    @Test
    void shouldNotHideAProgramThatIsMissing() throws Exception {
        try (Churn churn = new Churn(50, i -> List.of(directory.resolve("none").toString()))) {
            while (Thread.getAllStackTraces().keySet().stream().anyMatch(t -> t.getName().equals("gpuseg-churn"))) {
                Thread.sleep(5);
            }
            assertThrows(IllegalStateException.class, churn::stop);
        }
        assertEquals(0, Files.list(directory).count());
    }
}

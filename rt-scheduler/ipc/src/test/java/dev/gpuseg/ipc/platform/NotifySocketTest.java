/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(30)
class NotifySocketTest {
    @TempDir
    private Path directory;

    @Test
    void shouldRefuseAnAddressThatIsNone() {
        assertThrows(IllegalArgumentException.class, () -> NotifySocket.of(Map.of("NOTIFY_SOCKET", "relative"), 1));
        assertThrows(IllegalArgumentException.class,
            () -> NotifySocket.of(Map.of("NOTIFY_SOCKET", "/" + "x".repeat(200)), 1));
        assertThrows(SystemCallException.class,
            () -> NotifySocket.of(Map.of("NOTIFY_SOCKET", directory + "/nobody"), 1));
    }

    @Test
    void shouldSayNothingWhereNobodySupervises() {
        try (NotifySocket none = NotifySocket.of(Map.of("WATCHDOG_USEC", "1000"), 1)) {
            assertEquals(0, none.watchdogNs());
            assertFalse(none.send("READY=1"));
        }
    }

    @Test
    void shouldHeedTheWatchdogOnlyIfItIsMeant() {
        final Path path = directory.resolve("notify");
        try (NotifySupervisor supervisor = new NotifySupervisor(path.toString())) {
            final String where = supervisor.where();
            assertEquals(2_000_000, period(Map.of("NOTIFY_SOCKET", where, "WATCHDOG_USEC", "2000")));
            assertEquals(2_000_000,
                period(Map.of("NOTIFY_SOCKET", where, "WATCHDOG_USEC", "2000", "WATCHDOG_PID", "7")));
            assertEquals(0, period(Map.of("NOTIFY_SOCKET", where, "WATCHDOG_USEC", "2000", "WATCHDOG_PID", "8")));
            assertEquals(0, period(Map.of("NOTIFY_SOCKET", where, "WATCHDOG_USEC", "soon")));
        }
    }

    private static long period(final Map<String, String> environment) {
        try (NotifySocket socket = NotifySocket.of(environment, 7)) {
            return socket.watchdogNs();
        }
    }

    @Test
    void shouldWriteToNothingOnceClosed() throws Exception {
        final Path path = directory.resolve("notify");
        try (NotifySupervisor supervisor = new NotifySupervisor(path.toString())) {
            final NotifySocket socket = NotifySocket.of(Map.of("NOTIFY_SOCKET", path.toString()), 1);
            assertTrue(socket.send("READY=1"));
            assertEquals("READY=1", supervisor.next(5_000));
            socket.close();
            try (TakenNumbers files = new TakenNumbers(directory)) {
                assertFalse(socket.send("WATCHDOG=1"));
                socket.close();
                files.assertUntouched();
            }
        }
    }
}

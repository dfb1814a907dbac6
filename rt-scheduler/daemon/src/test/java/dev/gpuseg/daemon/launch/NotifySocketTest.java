/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.process.Supervision;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.BufferUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(30)
class NotifySocketTest {
    private static final int AF_UNIX = 1;
    private static final int SOCK_DGRAM = 2;
    private static final int SOCK_NONBLOCK = 0x800;

    @TempDir
    private Path directory;

    /** The supervisor's side. */
    private static final class Supervisor implements AutoCloseable {
        private final int fd = LibC.socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        private final ByteBuffer buffer = ByteBuffer.allocateDirect(4096);

        Supervisor(final byte[] name) {
            final ByteBuffer address = ByteBuffer.allocateDirect(2 + name.length).order(ByteOrder.nativeOrder());
            address.putShort(0, (short) AF_UNIX);
            for (int i = 0; i < name.length; i++) {
                address.put(2 + i, name[i]);
            }
            assertEquals(0, LibC.bind(fd, BufferUtil.address(address), 2 + name.length));
        }

        /** The next message; empty if none comes in that time. */
        String next(final long limitMs) throws InterruptedException {
            final long limitNs = System.nanoTime() + limitMs * 1_000_000;
            while (System.nanoTime() - limitNs < 0) {
                final long n = LibC.read(fd, BufferUtil.address(buffer), buffer.capacity());
                if (n >= 0) {
                    final byte[] text = new byte[(int) n];
                    buffer.get(0, text);
                    return new String(text, StandardCharsets.UTF_8);
                }
                Thread.sleep(1);
            }
            return "";
        }

        @Override
        public void close() {
            LibC.close(fd);
        }
    }

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
        try (Supervisor supervisor = new Supervisor(path.toString().getBytes(StandardCharsets.UTF_8))) {
            final String where = path.toString();
            assertTrue(supervisor.fd >= 0);
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
    void shouldGiveSignsOfLifeOnlyWhileTheDispatcherAnswers() throws Exception {
        final String name = "gpuseg-test-" + ProcessHandle.current().pid() + "-" + System.nanoTime();
        final AtomicBoolean answers = new AtomicBoolean(true);
        try (Supervisor supervisor = new Supervisor(("\0" + name).getBytes(StandardCharsets.UTF_8))) {
            final NotifySocket socket =
                NotifySocket.of(Map.of("NOTIFY_SOCKET", "@" + name, "WATCHDOG_USEC", "30000"), 7);
            final Supervision supervision = new Supervision(socket, limitNs -> answers.get(), "policy fp\nof two");
            assertEquals("READY=1\nSTATUS=policy fp of two", supervisor.next(5_000));
            assertEquals("WATCHDOG=1", supervisor.next(5_000));
            assertEquals("WATCHDOG=1", supervisor.next(5_000));
            answers.set(false);
            String late = supervisor.next(500);
            while (!late.isEmpty()) {   // what was on its way
                late = supervisor.next(500);
            }
            answers.set(true);
            assertEquals("WATCHDOG=1", supervisor.next(5_000));
            supervision.close();
            String last = supervisor.next(5_000);
            while ("WATCHDOG=1".equals(last)) {
                last = supervisor.next(5_000);
            }
            assertEquals("STOPPING=1", last);
            supervision.close();
            assertEquals("", supervisor.next(100), "it stops once");
        }
    }
}

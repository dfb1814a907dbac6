/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.ipc.platform.NotifySocket;
import dev.gpuseg.ipc.platform.NotifySupervisor;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class SupervisionTest {
    @Test
    void shouldGiveSignsOfLifeOnlyWhileTheDispatcherAnswers() throws Exception {
        final String name = "gpuseg-test-" + ProcessHandle.current().pid() + "-" + System.nanoTime();
        final AtomicBoolean answers = new AtomicBoolean(true);
        try (NotifySupervisor supervisor = new NotifySupervisor("@" + name)) {
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

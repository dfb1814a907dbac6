/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Clients that come and go fill the daemon's young generation, and its collection stops the dispatcher. */
class QueueAllocationTest {
    private static final int CLIENTS = 50;
    private static final double MOST_KIB = 48;

    private final QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN);

    @AfterEach
    void close() {
        rig.close();
    }

    private void comeAndGo() {
        for (int i = 0; i < CLIENTS; i++) {
            final ClientQueue queue = rig.add();
            rig.queues.remove(queue);
            queue.close();
        }
    }

    @Test
    void shouldAllocateLittleForAClientThatComesAndGoes() {
        assumeTrue(ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean,
            "this JVM cannot count allocated bytes: no com.sun.management.ThreadMXBean");
        final var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long self = Thread.currentThread().getId();
        comeAndGo();
        final long before = threads.getThreadAllocatedBytes(self);
        comeAndGo();
        final double kib = (threads.getThreadAllocatedBytes(self) - before) / 1024.0 / CLIENTS;
        assertTrue(kib < MOST_KIB, "KiB for each client: " + kib);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import net.openhft.chronicle.core.time.SetTimeProvider;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What reading costs: no allocation, and figures to look at. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class QueueCostTest {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final RecordCheck ANY = new RecordCheck() {
        @Override
        public int check(final RecordView view, final long nowNs) {
            return RecordValidator.VALID;
        }

        @Override
        public String reason() {
            return "";
        }
    };

    private long sum;

    private static long allocated() {
        return THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    @Test
    void shouldAllocateNothingWhenThereIsNothing() {
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN)) {
            final ClientQueue[] queues = new ClientQueue[16];
            for (int i = 0; i < queues.length; i++) {
                queues[i] = rig.add();
            }
            final RecordHandler handler = (client, record) -> sum++;
            double bestNs = Double.MAX_VALUE;
            long bytes = 0;
            for (int round = 0; round < 6; round++) {
                final long bytesBefore = allocated();
                final long startNs = System.nanoTime();
                for (int i = 0; i < 1_600_000; i++) {
                    queues[i & 15].poll(handler, 16, startNs);
                }
                bestNs = Math.min(bestNs, (System.nanoTime() - startNs) / 1_600_000.0);
                bytes = allocated() - bytesBefore;
            }
            System.out.printf("empty poll, 16 queues: %.1f ns%n", bestNs);
            assertEquals(0, bytes);
        }
    }

    private static void poll(final QueueRig rig, final ClientQueue queue, final RecordHandler handler,
        final long nowNs) {
        if (queue.poll(handler, 256, nowNs) < 0) {
            throw new AssertionError(rig.dump());
        }
    }

    @Test
    void shouldAllocateNothingPerRecord() throws Exception {
        final int count = 1_000_000;
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_DEFAULT)) {
            final ClientQueue queue = rig.add();
            queue.check(ANY);
            final RecordHandler handler = (client, record) -> sum += record.seq();
            final Process writer = NativeTool.start(NativeTool.queueWriter(), queue.directory(), 1, count, "-",
                "--sim-session");
            final long startNs = System.nanoTime();
            while (queue.records() < count / 2 && System.nanoTime() - startNs < 60_000_000_000L) {
                poll(rig, queue, handler, startNs);
            }
            final long bytesBefore = allocated();
            while (queue.records() < count && System.nanoTime() - startNs < 60_000_000_000L) {
                poll(rig, queue, handler, startNs);
            }
            final double bytes = (allocated() - bytesBefore) / (count / 2.0);
            assertTrue(writer.waitFor(20, TimeUnit.SECONDS));
            assertEquals((long) count * (count + 1) / 2, sum);
            System.out.printf("allocated %.4f bytes per record over %d rolls%n", bytes, queue.rolls() / 2);
            assertTrue(bytes < 0.2, () -> bytes + " bytes per record");
        }
    }

    @Test
    void shouldReadAndValidateRecordsFast() {
        final int records = 3_600;
        double bestNs = Double.MAX_VALUE;
        try (QueueRig rig = new QueueRig(1 << 19)) {
            for (int round = 0; round < 40; round++) {
                final ClientQueue queue = rig.add();
                queue.openTask(1);
                final QueueRig.Raw raw = rig.raw(queue);
                for (int i = 1; i <= records; i++) {
                    raw.record(QueueRig.record(i % 2 == 1 ? Abi.RECORD_BEGIN : Abi.RECORD_END, 0, 1, i,
                        (i + 1) / 2, 1, 0, 0));
                }
                final RecordHandler handler = (client, record) -> sum += record.seq();
                final long startNs = System.nanoTime();
                for (int n = 0; n < records;) {
                    n += queue.poll(handler, 64, startNs);
                }
                bestNs = Math.min(bestNs, (System.nanoTime() - startNs) / (double) records);
                assertEquals(0, queue.poisonCode(), rig::dump);
            }
        }
        System.out.printf("read, copied, validated: %.0f ns per record, %d bytes of queue each%n", bestNs,
            QueueFormat.DOCUMENT_BYTES);
        assertTrue(bestNs < 20_000);
    }

    @Test
    void shouldHoldTheClientUpFarLessThanARollByChronicle() throws Exception {
        final long[] ours = new long[40];
        final long[] chronicles = new long[40];
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN)) {
            final ClientQueue queue = rig.add();
            queue.openTask(1);
            long seq = 0;
            for (int cycle = 0; cycle < ours.length; cycle++) {
                final QueueRig.Raw raw = new QueueRig.Raw(QueueRig.file(queue, cycle), rig.template.cycle().length);
                final int before = cycle;
                while (queue.rolls() == before) {
                    raw.record(QueueRig.record(Abi.RECORD_HINT, 0, 1, ++seq, 0, 1, 0, 0));
                    assertEquals(1, queue.poll((client, record) -> { }, 8, 1), rig::dump);
                    if (queue.usagePercent() >= 60) {
                        Thread.sleep(2);
                    }
                }
                ours[cycle] = queue.lastRollNs();
                assertEquals(0, queue.poll((client, record) -> { }, 8, 1), rig::dump);
                Thread.sleep(3);
            }
            final Path directory = rig.root.resolve("plain");
            final SetTimeProvider time = new SetTimeProvider(0);
            try (SingleChronicleQueue plain = QueueTemplate.builder(directory, ClientQueue.BYTES_MIN)
                .timeProvider(time).build(); ExcerptAppender appender = plain.createAppender()) {
                for (int cycle = 0; cycle < chronicles.length; cycle++) {
                    appender.writeBytes(bytes -> bytes.writeLong(1));
                    time.advanceNanos(QueueFormat.DAY_NS);
                    final long startNs = System.nanoTime();
                    appender.writeBytes(bytes -> bytes.writeLong(1));
                    chronicles[cycle] = System.nanoTime() - startNs;
                }
            }
        }
        Arrays.sort(ours);
        Arrays.sort(chronicles);
        System.out.printf("queue's lock held to roll: median %d ns, max %d ns; by Chronicle's appender: %d ns, %d ns%n",
            ours[20], ours[39], chronicles[20], chronicles[39]);
        assertTrue(ours[20] * 5 < chronicles[20], "cycles made ahead do not pay");
    }
}

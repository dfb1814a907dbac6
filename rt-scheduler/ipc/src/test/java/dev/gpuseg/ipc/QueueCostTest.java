/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What reading must not cost: allocation, and a client that waits for a file. Times: {@code QueueBenchmark}. */
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

    /** Between a third, where the next cycle is made, and 60 %, where the current one is ended. */
    private static final int PREPARED_BEFORE_PERCENT = 50;
    private static final int ROLLED_AT_PERCENT = 60;

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
            long bytes = 0;
            for (int round = 0; round < 6; round++) {   // the first ones compile
                final long bytesBefore = allocated();
                for (int i = 0; i < 1_600_000; i++) {
                    queues[i & 15].poll(handler, 16, 1);
                }
                bytes = allocated() - bytesBefore;
            }
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
            assertTrue(bytes < 0.2, () -> bytes + " bytes per record");
        }
    }

    @Test
    void shouldAllocateNothingForAValidatedRecord() {
        final int records = 3_600;
        final int rounds = 40;
        long bytes = 0;
        try (QueueRig rig = new QueueRig(1 << 19)) {
            for (int round = 0; round < rounds; round++) {
                final ClientQueue queue = rig.add();
                queue.openTask(1);
                final QueueRig.Raw raw = rig.raw(queue);
                for (int i = 1; i <= records; i++) {
                    raw.record(QueueRig.record(i % 2 == 1 ? Abi.RECORD_BEGIN : Abi.RECORD_END, 0, 1, i,
                        (i + 1) / 2, 1, 0, 0));
                }
                final RecordHandler handler = (client, record) -> sum += record.seq();
                final long bytesBefore = allocated();
                for (int n = 0; n < records;) {
                    n += queue.poll(handler, 64, 1);
                }
                bytes = allocated() - bytesBefore;   // of the last round: the code is compiled by then
                assertEquals(0, queue.poisonCode(), rig::dump);
            }
        }
        final double perRecord = bytes / (double) records;
        assertTrue(perRecord < 0.2, () -> perRecord + " bytes per record");
    }

    /** Then a roll costs the client one look at a word, not the time that the file system takes for a file. */
    @Test
    void shouldMakeTheNextCycleBeforeTheCurrentOneEnds() throws Exception {
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN)) {
            final ClientQueue queue = rig.add();
            queue.openTask(1);
            long seq = 0;
            for (int cycle = 0; cycle < 5; cycle++) {
                final QueueRig.Raw raw = new QueueRig.Raw(QueueRig.file(queue, cycle), rig.template.cycle().length);
                while (queue.usagePercent() < PREPARED_BEFORE_PERCENT) {
                    raw.record(QueueRig.record(Abi.RECORD_HINT, 0, 1, ++seq, 0, 1, 0, 0));
                    assertEquals(1, queue.poll((client, record) -> { }, 8, 1), rig::dump);
                }
                while (!Files.exists(QueueRig.file(queue, cycle + 1))) {
                    assertEquals(0, queue.poll((client, record) -> { }, 8, 1), rig::dump);
                    Thread.sleep(1);   // housekeeping makes it, at some time; the limit of the test is the limit
                }
                assertEquals(cycle, queue.rolls(), "while the client can still append to the current one");
                while (queue.usagePercent() < ROLLED_AT_PERCENT) {
                    raw.record(QueueRig.record(Abi.RECORD_HINT, 0, 1, ++seq, 0, 1, 0, 0));
                    assertEquals(1, queue.poll((client, record) -> { }, 8, 1), rig::dump);
                }
                // nothing is written from here on: without the queue's lock it could land on the end of the cycle
                while (queue.rolls() == cycle || queue.usagePercent() >= PREPARED_BEFORE_PERCENT) {
                    assertEquals(0, queue.poll((client, record) -> { }, 8, 1), rig::dump);
                    Thread.sleep(1);
                }
            }
        }
    }
}

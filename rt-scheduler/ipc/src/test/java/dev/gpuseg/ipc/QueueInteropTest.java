/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The C appender of the client library against the daemon's reader. */
@Timeout(value = 180, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class QueueInteropTest {
    private static final int KILL_ROUNDS_PER_STEP = 26;
    private static final int STEPS = 8;
    private static final long LIMIT_S = 20;

    /** Follows one producer: checksums, order, repetitions after its death. */
    private static final class Follower implements RecordCheck, RecordHandler {
        private final int producer;
        private long last;
        private long torn;
        private long outOfOrder;
        private long repeated;

        Follower(final int producer) {
            this.producer = producer;
        }

        @Override
        public int check(final RecordView view, final long nowNs) {
            return RecordValidator.VALID;
        }

        @Override
        public String reason() {
            return "";
        }

        @Override
        public void onRecord(final int clientId, final RecordView record) {
            long hash = 0xcbf29ce484222325L;
            for (int i = 0; i < Abi.Record.SIZE; i++) {
                final boolean sum = i >= Abi.Record.ARG_NS_OFFSET && i < Abi.Record.ARG_NS_OFFSET + Long.BYTES;
                hash = (hash ^ (sum ? 0 : record.copy().getByte(i) & 0xff)) * 0x100000001b3L;
            }
            torn += hash != record.argNs() || record.taskId() != producer ? 1 : 0;
            if (record.seq() == last) {
                repeated++;
            } else {
                outOfOrder += record.seq() == last + 1 ? 0 : 1;
            }
            last = record.seq();
        }

        @Override
        public String toString() {
            return "producer " + producer + ": last " + last + ", torn " + torn + ", out of order " + outOfOrder
                + ", repeated " + repeated;
        }
    }

    @Test
    void shouldReadEveryRecordOfTwoWritersInOrderAcrossRolls() throws Exception {
        final long count = 1_000_000;
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_DEFAULT)) {
            final ClientQueue[] queues = {rig.add(), rig.add()};
            final Follower[] followers = {new Follower(1), new Follower(2)};
            final Process[] writers = new Process[2];
            for (int i = 0; i < 2; i++) {
                queues[i].check(followers[i]);
                writers[i] = NativeTool.start(NativeTool.queueWriter(), queues[i].directory(), i + 1, count, "-",
                    "--sim-session");
            }
            final long startNs = System.nanoTime();
            while ((followers[0].last < count || followers[1].last < count)
                && System.nanoTime() - startNs < 120_000_000_000L) {
                for (int i = 0; i < 2; i++) {
                    final int n = queues[i].poll(followers[i], 256, System.nanoTime());
                    assertTrue(n >= 0, () -> rig.dump());
                }
            }
            for (int i = 0; i < 2; i++) {
                assertTrue(writers[i].waitFor(LIMIT_S, TimeUnit.SECONDS), () -> rig.dump());
                assertEquals(0, writers[i].exitValue(), () -> rig.dump());
                assertEquals("producer " + (i + 1) + ": last " + count + ", torn 0, out of order 0, repeated 0",
                    followers[i].toString(), () -> rig.dump());
                assertTrue(queues[i].rolls() > 60, () -> rig.dump());
            }
            System.out.printf("interop: 2 x %d records in %d ms, %d + %d rolls, lock held %d ns at the last%n", count,
                (System.nanoTime() - startNs) / 1_000_000, queues[0].rolls(), queues[1].rolls(),
                queues[0].lastRollNs());
        }
    }

    @Test
    void shouldDeleteCyclesThatAreRead() throws Exception {
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN)) {
            final ClientQueue queue = rig.add();
            final Follower follower = new Follower(1);
            queue.check(follower);
            final Process writer = NativeTool.start(NativeTool.queueWriter(), queue.directory(), 1, 100_000, "-");
            final long startNs = System.nanoTime();
            while (follower.last < 100_000 && System.nanoTime() - startNs < 60_000_000_000L) {
                queue.poll(follower, 64, System.nanoTime());
            }
            assertTrue(writer.waitFor(LIMIT_S, TimeUnit.SECONDS));
            // The rest is the housekeeping thread's. Few looks: each makes garbage, and a collection unmaps, too. What
            // the last look saw counts: a file that is deleted after it stays mapped for a moment.
            long cycles = cycles(queue);
            long mapped = mappedDeleted(rig);
            for (long waitMs = 10; waitMs <= LIMIT_S * 1_000 && (cycles > 2 || mapped > 0); waitMs *= 2) {
                Thread.sleep(waitMs);
                cycles = cycles(queue);
                mapped = mappedDeleted(rig);
            }
            final String seen = cycles + " cycle files are left, " + mapped + " deleted ones are still mapped\n";
            assertTrue(cycles <= 2 && mapped == 0, () -> seen + rig.dump());
        }
    }

    private static long cycles(final ClientQueue queue) throws IOException {
        try (var files = Files.list(queue.directory())) {
            return files.filter(f -> f.toString().endsWith(".cq4")).count();
        }
    }

    private static long mappedDeleted(final QueueRig rig) throws IOException {
        return Files.readAllLines(Path.of("/proc/self/maps")).stream()
            .filter(line -> line.contains(rig.root.toString()) && line.contains("(deleted)")).count();
    }

    private static long acknowledged(final Path file) throws IOException {
        return Files.exists(file)
            ? ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.nativeOrder()).getLong(0) : 0;
    }

    private static void drain(final QueueRig rig, final ClientQueue queue, final Follower follower, final long until) {
        final long startNs = System.nanoTime();
        while (System.nanoTime() - startNs < LIMIT_S * 1_000_000_000L) {
            final int n = queue.poll(follower, 256, System.nanoTime());
            assertTrue(n >= 0, () -> rig.dump());
            if (n == 0 && follower.last >= until) {
                return;
            }
        }
        throw new AssertionError("the reader is stuck before " + until + ": " + follower + "\n" + rig.dump());
    }

    @Test
    void shouldLoseNoAcknowledgedRecordWhenTheWriterIsKilledAtAnyStep() throws Exception {
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN)) {
            final ClientQueue queue = rig.add();
            final Follower follower = new Follower(1);
            queue.check(follower);
            final Path ack = rig.root.resolve("ack");
            final Random random = new Random(20261121);
            long deaths = 0;
            for (int round = 0; round < KILL_ROUNDS_PER_STEP * STEPS; round++) {
                final Process writer = NativeTool.start(NativeTool.queueWriter(), queue.directory(), 1, 1_000_000, ack,
                    round % STEPS + 1, random.nextInt(400));
                while (writer.isAlive()) {
                    assertTrue(queue.poll(follower, 256, System.nanoTime()) >= 0, () -> rig.dump());
                }
                deaths += writer.exitValue() == 128 + 9 ? 1 : 0;
                drain(rig, queue, follower, acknowledged(ack));
            }
            assertEquals(KILL_ROUNDS_PER_STEP * STEPS, deaths, "every writer kills itself");
            assertEquals(0, follower.torn + follower.outOfOrder, follower::toString);
            assertTrue(follower.repeated <= deaths, follower::toString);
            assertTrue(queue.rolls() > 10, () -> rig.dump());
        }
    }

    @Test
    void shouldLoseNoAcknowledgedRecordWhenTheWriterIsKilledAtRandom() throws Exception {
        try (QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN)) {
            final ClientQueue queue = rig.add();
            final Follower follower = new Follower(1);
            queue.check(follower);
            final Path ack = rig.root.resolve("ack");
            final Random random = new Random(7);
            for (int round = 0; round < 200; round++) {
                final Process writer = NativeTool.start(NativeTool.queueWriter(), queue.directory(), 1,
                    100_000_000, ack);
                final long untilNs = System.nanoTime() + 1_000_000 + random.nextInt(12_000_000);
                while (System.nanoTime() - untilNs < 0) {
                    assertTrue(queue.poll(follower, 256, System.nanoTime()) >= 0, () -> rig.dump());
                }
                writer.destroyForcibly().waitFor();
                drain(rig, queue, follower, acknowledged(ack));
            }
            assertEquals(0, follower.torn + follower.outOfOrder, follower::toString);
            assertTrue(follower.repeated <= 200, follower::toString);
            System.out.printf("random kills: %s, %d rolls%n", follower, queue.rolls());
        }
    }
}

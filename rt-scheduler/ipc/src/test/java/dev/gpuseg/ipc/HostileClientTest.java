/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.FaultBarrier;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A client that writes anything into its files is dropped alone, with a reason, and without an exception. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostileClientTest {
    private static final int TASK = 3;
    private static final RecordHandler IGNORE = (client, record) -> { };

    private final QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN);
    private final ClientQueue honest = rig.add();
    private final QueueRig.Raw honestWriter = rig.raw(honest);
    private long honestSeq;

    @AfterEach
    void othersAreUnaffected() {
        honest.openTask(TASK);
        for (int i = 0; i < 100; i++) {
            honestWriter.record(valid(++honestSeq));
        }
        assertEquals(100, honest.poll(IGNORE, 1000, System.nanoTime()), rig::dump);
        assertTrue(honest.isIntact(), rig::dump);
        rig.close();
    }

    private static byte[] valid(final long seq) {
        return QueueRig.record(Abi.RECORD_HINT, 0, TASK, seq, 0, System.nanoTime(), 0, System.nanoTime());
    }

    private ClientQueue hostile() {
        final ClientQueue queue = rig.add();
        queue.openTask(TASK);
        return queue;
    }

    private int pollUntilPoisoned(final ClientQueue queue) {
        for (int i = 0; i < 1000; i++) {
            final int n = queue.poll(IGNORE, 64, System.nanoTime());
            if (n < 0) {
                assertFalse(queue.poisonText().isEmpty(), "a reason is given");
                assertEquals(n, queue.poll(IGNORE, 64, System.nanoTime()), "and stays");
                return -n;
            }
        }
        throw new AssertionError("not poisoned\n" + rig.dump());
    }

    @Test
    void shouldNoticeAForgedLengthAndNotEnlargeTheFile() throws Exception {
        for (final int header : new int[] {0x3ffffffc, 1, 63, 65, 128, 0x7fffffff, 0x40000040}) {
            final ClientQueue queue = hostile();
            final QueueRig.Raw raw = rig.raw(queue);
            raw.record(valid(1));
            raw.document(header, new byte[64]);
            assertEquals(Abi.POISON_LENGTH, pollUntilPoisoned(queue), () -> Integer.toHexString(header));
            assertEquals(1, queue.records());
            assertEquals(ClientQueue.BYTES_MIN, Files.size(QueueRig.file(queue, 0)));
        }
    }

    /** The client enlarges the length of a record while its handler runs: it is read, so its length is not used. */
    @Test
    void shouldReadOnWhateverBecomesOfARecordThatWasRead() throws Exception {
        final ClientQueue queue = hostile();
        final QueueRig.Raw raw = rig.raw(queue);
        final int at = raw.position();
        raw.record(valid(1));
        assertEquals(1, queue.poll((client, record) -> overwrite(queue, at, 0x3ffffffc), 64, System.nanoTime()));
        raw.record(valid(2));
        assertEquals(1, queue.poll(IGNORE, 64, System.nanoTime()));
        assertEquals(0, queue.poll(IGNORE, 64, System.nanoTime()));
        assertEquals(2, queue.records());
        assertEquals(ClientQueue.BYTES_MIN, Files.size(QueueRig.file(queue, 0)));
    }

    private static void overwrite(final ClientQueue queue, final int at, final int header) {
        try (FileChannel file = FileChannel.open(QueueRig.file(queue, 0), StandardOpenOption.WRITE)) {
            file.write(ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(0, header), at);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** An error of another client's file can surface in the handler of this one's record. */
    @Test
    void shouldReadOnAfterAnErrorOfTheHandler() {
        final ClientQueue queue = hostile();
        final QueueRig.Raw raw = rig.raw(queue);
        raw.record(valid(1));
        raw.record(valid(2));
        assertThrows(InternalError.class, () -> queue.poll((client, record) -> {
            throw new InternalError("another one's");
        }, 64, System.nanoTime()));
        assertEquals(1, queue.poll(IGNORE, 64, System.nanoTime()));
        assertEquals("", queue.poisonText());
    }

    @Test
    void shouldRefuseAnEndOfDataThatTheDaemonDidNotWrite() {
        final ClientQueue queue = hostile();
        rig.raw(queue).document(QueueFormat.END_OF_DATA, new byte[64]);
        assertEquals(Abi.POISON_LENGTH, pollUntilPoisoned(queue));
    }

    @Test
    void shouldWaitAtAnUnfinishedDocument() {
        final ClientQueue queue = hostile();
        rig.raw(queue).document(QueueFormat.NOT_COMPLETE | Abi.Record.SIZE, new byte[64]);
        for (int i = 0; i < 100; i++) {
            assertEquals(0, queue.poll(IGNORE, 64, System.nanoTime()));
        }
        rig.raw(queue).record(valid(1));
        assertEquals(1, queue.poll(IGNORE, 64, System.nanoTime()));
    }

    @Test
    void shouldSurviveAHeaderPageFullOfNoise() throws Exception {
        final ClientQueue queue = hostile();
        final byte[] noise = new byte[65536];
        new Random(3).nextBytes(noise);
        try (FileChannel file = FileChannel.open(QueueRig.file(queue, 0), StandardOpenOption.WRITE);
            FileChannel metadata = FileChannel.open(queue.directory().resolve(QueueFormat.METADATA),
                StandardOpenOption.WRITE)) {
            file.write(ByteBuffer.wrap(noise), 0);
            metadata.write(ByteBuffer.wrap(noise), 0);
        }
        final QueueRig.Raw raw = rig.raw(queue);
        for (int seq = 1; seq <= 2800; seq++) {
            if (raw.position() + 2 * QueueFormat.DOCUMENT_BYTES < ClientQueue.BYTES_MIN) {
                raw.record(valid(seq));
            }
        }
        int records = 0;
        for (int i = 0; i < 200; i++) {
            final int n = queue.poll(IGNORE, 64, System.nanoTime());
            records += Math.max(n, 0);
            Thread.sleep(1);
        }
        // the daemon believes none of what was there: it reads every record, and only cannot take the lock to roll
        assertTrue(records > 2700 || queue.poisonCode() != 0, rig::dump);
    }

    @Test
    void shouldFindTheClientThatTruncatedItsFile() throws Exception {
        final ClientQueue queue = hostile();
        final QueueRig.Raw raw = rig.raw(queue);
        for (int seq = 1; seq <= 200; seq++) {
            raw.record(valid(seq));
        }
        assertEquals(64, queue.poll(IGNORE, 64, System.nanoTime()));
        assertTrue(queue.isIntact());
        try (FileChannel file = FileChannel.open(QueueRig.file(queue, 0), StandardOpenOption.WRITE)) {
            file.truncate(0);
        }
        // the client has the daemon's user: the fault may surface anywhere in this thread
        boolean fault = false;
        for (int i = 0; i < 1000 && !fault; i++) {
            try {
                fault = queue.poll(IGNORE, 64, System.nanoTime()) < 0;
                FaultBarrier.settle();
            } catch (final InternalError e) {
                fault = true;
            }
        }
        assertTrue(fault, rig::dump);
        assertFalse(queue.isIntact(), rig::dump);
        assertTrue(honest.isIntact(), rig::dump);
        queue.drop(Abi.POISON_TRUNCATED, "truncated");
        assertTrue(queue.poll(IGNORE, 64, System.nanoTime()) < 0);
    }

    @Test
    void shouldFindTheTruncatedFileOfAnotherUserWithinThePoll() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "only root can make files of another user");
        for (int round = 0; round < 50; round++) {
            final ClientQueue queue = rig.add(65534);
            queue.openTask(TASK);
            final QueueRig.Raw raw = rig.raw(queue);
            for (int seq = 1; seq <= 100; seq++) {
                raw.record(valid(seq));
            }
            final int read = round % 2 == 0 ? 64 : 100; // with and without records left
            assertEquals(read, queue.poll(IGNORE, read, System.nanoTime()), rig::dump);
            try (FileChannel file = FileChannel.open(QueueRig.file(queue, 0), StandardOpenOption.WRITE)) {
                file.truncate(0);
            }
            assertEquals(-Abi.POISON_TRUNCATED, queue.poll((client, record) -> {
                throw new AssertionError("a record of a truncated file was used");
            }, 64, System.nanoTime()), rig::dump);
        }
    }

    @RepeatedTest(20)
    void shouldSurviveTruncationOfTheMetadata() throws Exception {
        final ClientQueue queue = hostile();
        try (FileChannel file = FileChannel.open(queue.directory().resolve(QueueFormat.METADATA),
            StandardOpenOption.WRITE)) {
            file.truncate(0);
        }
        assertFalse(queue.isIntact());
        final QueueRig.Raw raw = rig.raw(queue);
        for (int seq = 1; seq <= 2500; seq++) {
            raw.record(valid(seq));
        }
        final long untilNs = System.nanoTime() + 20_000_000_000L;
        while (queue.poll(IGNORE, 64, System.nanoTime()) >= 0 && System.nanoTime() - untilNs < 0) {
            Thread.sleep(1);
        }
        assertEquals(Abi.POISON_TRUNCATED, queue.poisonCode(), rig::dump);
    }

    @Test
    void shouldRefuseARecordAcrossTheEndOfItsQuota() {
        final ClientQueue queue = hostile();
        final QueueRig.Raw raw = rig.raw(queue);
        long seq = 0;
        while (raw.position() <= ClientQueue.BYTES_MIN - QueueFormat.HEADER_BYTES) {
            raw.record(valid(++seq));
        }
        assertEquals(Abi.POISON_QUOTA, pollUntilPoisoned(queue), rig::dump);
    }

    @Test
    void shouldRefuseTasksOfOthersAndSayWhich() {
        final ClientQueue queue = hostile();
        rig.raw(queue).record(QueueRig.record(Abi.RECORD_BEGIN, 0, 99, 1, 1, System.nanoTime(), 0, 0));
        assertEquals(Abi.POISON_TASK, pollUntilPoisoned(queue));
        assertTrue(queue.poisonText().contains("task=99"), queue::poisonText);
    }

    @Test
    void shouldSurviveAnyMutationOfRecords() {
        final int rounds = Integer.getInteger("gpuseg.fuzz.rounds", 100_000);
        final Random random = new Random(Long.getLong("gpuseg.fuzz.seed", 20261121));
        final RecordValidator[] validator = {new RecordValidator()};
        final RecordView view = new RecordView();
        long seq = 1;
        long refused = 0;
        validator[0].openTask(TASK);
        for (int i = 0; i < rounds; i++) {
            final byte[] record = valid(seq);
            for (int n = random.nextInt(4); n > 0; n--) {
                record[random.nextInt(record.length)] ^= (byte) (1 << random.nextInt(8));
            }
            view.copy().putBytes(0, record);
            final int verdict = validator[0].check(view, System.nanoTime());
            assertTrue(verdict >= RecordValidator.VALID && verdict <= Abi.POISON_PROTOCOL);
            if (verdict == RecordValidator.VALID) {
                assertEquals(TASK, view.taskId());
                assertEquals(seq, view.seq());
                seq++;
            } else {
                refused++;
                assertFalse(validator[0].reason().isEmpty());
            }
        }
        assertTrue(refused > rounds * 3L / 10 && seq > rounds / 5, "refused " + refused + ", accepted " + seq);
    }

    @Test
    void shouldSurviveRandomWritesAnywhereInTheFile() throws Exception {
        final Random random = new Random(Long.getLong("gpuseg.fuzz.seed", 42));
        for (int round = 0; round < Math.max(30, Integer.getInteger("gpuseg.fuzz.rounds", 0) / 1000); round++) {
            final ClientQueue queue = hostile();
            final QueueRig.Raw raw = rig.raw(queue);
            final byte[] noise = new byte[64];
            for (int i = 1; i <= 100; i++) {
                raw.record(valid(i));
                random.nextBytes(noise);
                try (FileChannel file = FileChannel.open(QueueRig.file(queue, 0), StandardOpenOption.WRITE)) {
                    file.write(ByteBuffer.wrap(noise, 0, 1 + random.nextInt(63)),
                        rig.template.cycle().length + random.nextInt(20_000));
                }
                queue.poll(IGNORE, random.nextInt(5), System.nanoTime());
            }
            final int n = queue.poll(IGNORE, 1000, System.nanoTime());
            assertEquals(n < 0, !queue.poisonText().isEmpty());
            assertEquals(ClientQueue.BYTES_MIN, Files.size(QueueRig.file(queue, 0)), queue::poisonText);
        }
    }

    @Test
    void shouldRefuseAQueueThatDoesNotFit() throws Exception {
        final Path mount = rig.root.resolve("small");
        Files.createDirectories(mount);
        final Process process = new ProcessBuilder("mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs",
            mount.toString()).redirectErrorStream(true).start();
        final String said = new String(process.getInputStream().readAllBytes());
        assumeTrue(process.waitFor() == 0, "no permission to mount a small tmpfs: " + said);
        try (Session session = Session.create(9, 1)) {
            final SystemCallException refused = assertThrows(SystemCallException.class, () -> ClientQueue.create(
                rig.template, mount.resolve("client"), 9, 0, 0, 1, session, () -> { }));
            assertEquals(Errno.ENOSPC, refused.errno());
            assertFalse(Files.exists(mount.resolve("client")), "nothing is left behind");
        } finally {
            new ProcessBuilder("umount", mount.toString()).start().waitFor();
        }
    }

    /** Nothing in /proc can be made or deleted, just as nothing can be without a descriptor. */
    @Test
    void shouldSayWhyAQueueWasNotMadeAlsoWhenNothingCanBeDeleted() {
        final Path task = Path.of("/proc", Integer.toString(ProcessStatus.pid()), "task");
        try (Session session = Session.create(9, 1)) {
            final String text = assertThrows(UncheckedIOException.class, () -> ClientQueue.create(rig.template, task, 9,
                0, 0, 1, session, () -> { })).getMessage();
            assertTrue(text.startsWith(task + "/queue cannot be made"), text);
        }
    }
}

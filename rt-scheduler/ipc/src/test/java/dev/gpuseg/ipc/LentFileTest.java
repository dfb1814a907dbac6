/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The files of its queue that a client is lent: the right ones, as long as they are in use. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LentFileTest {
    private static final int TASK = 3;
    private static final int NOBODY = 65534;

    private final QueueRig rig = new QueueRig(ClientQueue.BYTES_MIN);
    private long seq;

    @AfterEach
    void close() {
        rig.close();
    }

    private static Path opened(final int fd) {
        return Path.of("/proc/self/fd/" + fd);
    }

    /** The file behind a descriptor that is lent, or null if none is. The descriptor is closed. */
    private static Path lent(final ClientQueue queue, final long cycle) throws IOException {
        final int fd = queue.lend(cycle);
        if (fd < 0) {
            return null;
        }
        try {
            return opened(fd).toRealPath();
        } finally {
            Descriptor.close(fd);
        }
    }

    private void await(final String what, final BooleanSupplier condition) throws Exception {
        final long startNs = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - startNs < 30_000_000_000L, () -> what + " did not happen\n" + rig.dump());
            Thread.sleep(1);
        }
    }

    private void fill(final ClientQueue queue, final QueueRig.Raw raw, final int percent) {
        while (queue.usagePercent() < percent) {
            raw.record(QueueRig.record(Abi.RECORD_HINT, 0, TASK, ++seq, 0, System.nanoTime(), 0, System.nanoTime()));
            assertEquals(1, queue.poll((client, record) -> { }, 64, System.nanoTime()), rig::dump);
        }
    }

    private static boolean isLent(final ClientQueue queue, final long cycle) {
        final int fd = queue.lend(cycle);
        if (fd >= 0) {
            Descriptor.close(fd);
        }
        return fd >= 0;
    }

    @Test
    void shouldLendTheMetadataTheCycleInUseAndTheOneAfterIt() throws Exception {
        final ClientQueue queue = rig.add();
        queue.openTask(TASK);
        final Path own = queue.directory().resolveSibling("own");
        assertEquals(queue.directory().resolve(QueueFormat.METADATA), lent(queue, Abi.QUEUE_METADATA));
        assertEquals(own.resolve(QueueTemplate.cycleName(0)), lent(queue, 0));
        for (final long cycle : new long[] {1, -2, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 32}) {
            assertFalse(isLent(queue, cycle), () -> "cycle " + cycle);
        }
        fill(queue, rig.raw(queue), 40);
        await("the next cycle", () ->
            rig.sessions.get(0).buffer().getLongVolatile(Abi.Session.PREPARED_CYCLE_OFFSET) == 1);
        assertEquals(own.resolve(QueueTemplate.cycleName(1)), lent(queue, 1));
        assertTrue(isLent(queue, 0));
        assertFalse(isLent(queue, 2));
        fill(queue, new QueueRig.Raw(QueueRig.file(queue, 0), rig.template.cycle().length
            + (int) seq * QueueFormat.DOCUMENT_BYTES), 60);   // not beyond the end that housekeeping writes
        await("the roll", () -> {
            queue.poll((client, record) -> { }, 64, System.nanoTime());
            return queue.rolls() == 1 && !isLent(queue, 0);
        });
        assertTrue(isLent(queue, 1), "it is the one in use");
        assertTrue(isLent(queue, Abi.QUEUE_METADATA));
    }

    @Test
    void shouldLendNothingOfAClosedQueueAndKeepNothingOpen() throws Exception {
        final ClientQueue queue = rig.add();
        final int kept = queue.lend(0);
        queue.close();
        assertFalse(isLent(queue, 0));
        assertFalse(isLent(queue, Abi.QUEUE_METADATA));
        // Chronicle closes some of its own a little later
        await("closing of all but what was lent", () -> descriptorsBelow(queue.directory().getParent()) == 1);
        Descriptor.close(kept);
    }

    private static long descriptorsBelow(final Path directory) {
        try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
            return descriptors.filter(fd -> {
                try {
                    return Files.readSymbolicLink(fd).toString().startsWith(directory + "/");
                } catch (final IOException e) {
                    return false; // closed meanwhile
                }
            }).count();
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** One thread lends while another closes: never a descriptor of something else that got the same number. */
    @Test
    void shouldLendTheFileOrNothingWhileItIsClosed() throws Exception {
        final Path path = rig.root.resolve("file");
        Files.createFile(path);
        for (int round = 0; round < 200; round++) {
            final LentFile file = LentFile.open(path);
            final AtomicBoolean closed = new AtomicBoolean();
            final Thread closing = new Thread(() -> {
                file.close();
                closed.set(true);
                Descriptor.close(Descriptor.createSealedMemory("other", 4096)); // takes the number that became free
            });
            closing.start();
            boolean wasClosed;
            do {
                wasClosed = closed.get();
                final int fd = file.duplicate();
                if (fd >= 0) {
                    assertFalse(wasClosed);
                    assertTrue(Files.isSameFile(path, opened(fd)));
                    Descriptor.close(fd);
                }
            } while (!wasClosed);
            closing.join();
            file.close();
        }
        final Path link = Files.createSymbolicLink(rig.root.resolve("link"), path);
        assertThrows(SystemCallException.class, () -> LentFile.open(link));
    }

    /** A daemon without CAP_DAC_OVERRIDE could not open it any more. */
    @Test
    void shouldLendAFileThatBelongsToTheClientAlready() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "only root can give files to another user");
        final ClientQueue queue = rig.add(NOBODY);
        final int fd = queue.lend(0);
        try {
            assertEquals(NOBODY, Files.getAttribute(opened(fd), "unix:uid"));
            final String info = Files.readString(Path.of("/proc/self/fdinfo/" + fd));
            assertTrue(info.matches("(?s).*flags:\\s*[0-7]*2\\n.*"), () -> "not O_RDWR: " + info);
        } finally {
            Descriptor.close(fd);
        }
    }
}

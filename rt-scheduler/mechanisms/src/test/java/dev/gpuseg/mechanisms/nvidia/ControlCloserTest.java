/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class ControlCloserTest {
    private static final int ANY = 1;

    private final Object lock = new Object();

    private static ControlFile file() {
        final int fd = DriverCalls.DRIVER.open("/dev/null");
        return new ControlFile(fd, fd);
    }

    private static boolean isOpen(final ControlFile file) {
        return Files.exists(Path.of("/proc/self/fd/" + file.fd()), LinkOption.NOFOLLOW_LINKS);
    }

    private static RmContext context(final ControlFile file) {
        return new RmContext(0, file, ANY, ANY,
            new RmContext.Channels(new int[] {ANY}, new int[] {ANY}, new int[] {ANY}, true), List.of());
    }

    /** What RM does for the first keeps the thread; neither who retires nor who takes the lock waits for it. */
    @Test
    void shouldKeepNobodyWaitingWhileADriverTakesLong() throws Exception {
        final CountDownLatch busy = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final AtomicReference<String> said = new AtomicReference<>();
        final ControlCloser closer = ControlCloser.ofThread(0, lock, error -> {   // /dev/null refuses to enable
            said.set(error);
            busy.countDown();
            try {
                goOn.await();
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        final ControlFile first = file();
        final ControlFile second = file();
        closer.retire(List.of(first), () -> { }, context(first));
        busy.await();
        assertTrue(said.get().startsWith("channels of a dead process could not be enabled"), said.get());
        assertTrue(isOpen(first), "it is enabled before it is closed");
        closer.retire(List.of(second), () -> assertTrue(Thread.holdsLock(lock)));
        assertFalse(second.isOpen(), "nobody uses it any more");
        assertTrue(isOpen(second), "its turn has not come");
        assertEquals("free", CompletableFuture.supplyAsync(() -> {
            synchronized (lock) {
                return "free";
            }
        }).get(20, TimeUnit.SECONDS));
        goOn.countDown();
        closer.stop();
        assertFalse(isOpen(first));
        assertFalse(isOpen(second));
    }

    @Test
    void shouldCloseAtOnceWithoutAThread() {
        final ControlFile file = file();
        ControlCloser.inPlace().retire(List.of(file), () -> { });
        assertFalse(isOpen(file));
        assertFalse(file.isOpen());
    }
}

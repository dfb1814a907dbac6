/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ObserverTest {
    private static final long FROM_NS = 5_000_000_000L;
    private static final int LIMIT_S = 30;
    private static final String INTERRUPTED = "interrupted";

    private final BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
    private final PipedOutputStream sender = new PipedOutputStream();

    private Observer observer() throws IOException {
        final PipedInputStream in = new PipedInputStream(sender, 1 << 16);
        final Observer observer = Observer.of(() -> in, "a test");
        observer.listen(new ObservationListener() {
            @Override
            public void observed(final Observation what) {
                heard.add(what);
            }

            @Override
            public void interrupted() {
                heard.add(INTERRUPTED);
            }
        });
        return observer;
    }

    private static byte[] record(final Observation.Kind kind, final int pid, final long startNs, final int handle) {
        final ByteBuffer b = ByteBuffer.allocate(Observation.BYTES).order(ByteOrder.nativeOrder());
        b.putInt(0, kind.ordinal() + 1).putInt(4, pid).putLong(16, startNs).putInt(32, 7).putInt(48, handle);
        return b.array();
    }

    private void send(final byte[] bytes) throws IOException {
        sender.write(bytes);
        sender.flush();
    }

    private Object next() throws InterruptedException {
        final Object what = heard.poll(LIMIT_S, TimeUnit.SECONDS);
        assertTrue(what != null, "nothing was heard");
        return what;
    }

    @Test
    void shouldSeeNothingBeforeTheFirstRecord() throws IOException {
        try (Observer observer = observer()) {
            assertFalse(observer.isLive());
            assertFalse(observer.sawWhole(Long.MAX_VALUE));
        }
    }

    @Test
    void shouldTellProcessesThatAreOlderThanTheObserver() throws Exception {
        try (Observer observer = observer()) {
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION));
            send(record(Observation.Kind.OPEN, 41, FROM_NS - 1, 0));
            send(record(Observation.Kind.OPEN, 42, FROM_NS, 0));
            assertFalse(((Observation) next()).whole());
            final Observation later = (Observation) next();
            assertTrue(later.whole());
            assertEquals(42, later.pid());
            assertEquals(500, later.startTicks());
            assertEquals(7, later.fd());
            assertFalse(observer.sawWhole(500), "the tick in which it began is not certain");
            assertTrue(observer.sawWhole(501));
        }
    }

    @Test
    void shouldPutRecordsTogetherThatArriveInParts() throws Exception {
        try (Observer observer = observer()) {
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION));
            final byte[] record = record(Observation.Kind.EXIT, 43, FROM_NS, 0);
            send(java.util.Arrays.copyOf(record, 30));
            assertTrue(observer.await(TimeUnit.SECONDS.toMillis(LIMIT_S)));
            send(java.util.Arrays.copyOfRange(record, 30, record.length));
            assertEquals(43, ((Observation) next()).pid());
        }
    }

    @Test
    void shouldTrustNoOlderProcessAfterALoss() throws Exception {
        try (Observer observer = observer()) {
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION));
            send(record(Observation.Kind.LOST, 0, 2 * FROM_NS, 17));
            send(record(Observation.Kind.OPEN, 44, FROM_NS + 1, 0));
            assertEquals(INTERRUPTED, next());
            assertFalse(((Observation) next()).whole());
            assertEquals(17, observer.lost());
            assertTrue(observer.isLive());
        }
    }

    @Test
    void shouldSayThatItEnded() throws Exception {
        try (Observer observer = observer()) {
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION));
            assertTrue(observer.await(TimeUnit.SECONDS.toMillis(LIMIT_S)));
            sender.close();
            assertEquals(INTERRUPTED, next());
            assertFalse(observer.isLive());
            assertEquals("a test has ended", observer.problem());
        }
    }

    @Test
    void shouldRefuseAnotherVersion() throws Exception {
        try (Observer observer = observer()) {
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION + 1));
            assertFalse(observer.await(TimeUnit.SECONDS.toMillis(LIMIT_S)));
            assertTrue(observer.problem().contains("version " + (Observer.VERSION + 1)), observer.problem());
        }
    }

    @Test
    void shouldSayWhyAProgramDoesNotWork() {
        try (Observer observer = Observer.start(Path.of("/bin/sh"), List.of("-c", "echo no permission >&2; exit 1"))) {
            assertFalse(observer.await(TimeUnit.SECONDS.toMillis(LIMIT_S)));
            assertEquals("no permission", observer.problem());
        }
    }

    @Test
    void shouldRefuseAnUnknownMode() {
        assertEquals(ObserverMode.AUTO, ObserverMode.named("auto"));
        assertEquals("--observer is maybe; use auto, on, off",
            assertThrows(IllegalArgumentException.class, () -> ObserverMode.named("maybe")).getMessage());
    }
}

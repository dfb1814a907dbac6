/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

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
        b.putInt(0, kind.number()).putInt(4, pid).putLong(16, startNs).putInt(32, 7).putInt(48, handle);
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

    private static byte[] account(final Observation.Kind kind, final long cgroup, final long ioctls) {
        final ByteBuffer b = ByteBuffer.allocate(Observation.BYTES).order(ByteOrder.nativeOrder());
        return b.putInt(0, kind.number()).putInt(4, 1).putLong(8, 70).putLong(16, cgroup).putLong(24, ioctls)
            .putLong(32, 20).putLong(40, 30).putLong(48, 40).putLong(56, 50).array();
    }

    /** Has all that was sent before been taken? */
    private void awaitTaken() throws Exception {
        send(record(Observation.Kind.OPEN, 45, FROM_NS, 0));
        assertEquals(45, ((Observation) next()).pid());
    }

    @Test
    void shouldForgetTheAccountOfAControlGroupThatWasRemoved() throws Exception {
        try (Observer observer = observer()) {
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION));
            send(account(Observation.Kind.GROUP, 7, 10));
            send(account(Observation.Kind.GROUP, 8, 11));
            send(account(Observation.Kind.GROUP, 7, 12));
            awaitTaken();
            assertEquals(new GroupAccount(7, 1, 12, 20, 30, 40, 50, 70), observer.account(7));
            send(account(Observation.Kind.GROUP_GONE, 7, 13));
            awaitTaken();
            assertNull(observer.account(7));
            assertEquals(11, observer.account(8).ioctls());
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION));   // connected again
            awaitTaken();
            assertEquals(0, observer.accountCount());
        }
    }

    /** The kernel drops what was not used for long, and says nothing; a record of a removal can be lost. */
    @Test
    void shouldKeepNoMoreAccountsThanTheKernel() throws Exception {
        try (Observer observer = observer()) {
            send(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION));
            send(account(Observation.Kind.GROUP, 1, 10));
            send(account(Observation.Kind.GROUP, 2, 10));
            for (int i = 0; i < 3 * GroupAccounts.MOST; i++) {
                send(account(Observation.Kind.GROUP, 100 + i, 10));
                if (i % 1000 == 0) {
                    send(account(Observation.Kind.GROUP, 1, 11 + i));
                }
            }
            awaitTaken();
            assertEquals(GroupAccounts.MOST, observer.accountCount());
            assertNull(observer.account(2));
            assertEquals(12_011, observer.account(1).ioctls(), "it changed lately");
        }
    }

    @Test
    void shouldTellWhetherTheServiceListens(@TempDir final Path directory) throws Exception {
        final Path socket = directory.resolve("socket");
        assertTrue(Observer.refusal(socket).startsWith("gpuseg-observer at " + socket), Observer.refusal(socket));
        try (ServerSocketChannel service = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            service.bind(UnixDomainSocketAddress.of(socket));
            assertEquals("", Observer.refusal(socket));
        }
        assertTrue(Files.exists(socket));
        assertTrue(Observer.refusal(socket).contains("refused"), Observer.refusal(socket));
    }

    /** One daemon at a time is served: who only looks must not be taken for one. */
    @Test
    void shouldSayToTheServiceThatItIsADaemon(@TempDir final Path directory) throws Exception {
        final Path socket = directory.resolve("socket");
        try (ServerSocketChannel service = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            service.bind(UnixDomainSocketAddress.of(socket));
            try (Observer observer = Observer.connect(socket); SocketChannel daemon = service.accept()) {
                assertEquals(1, daemon.read(ByteBuffer.allocate(16)));
                daemon.write(ByteBuffer.wrap(record(Observation.Kind.HELLO, 1, FROM_NS, Observer.VERSION)));
                assertTrue(observer.await(TimeUnit.SECONDS.toMillis(LIMIT_S)), observer::problem);
            }
        }
    }

    @Test
    void shouldRefuseAnUnknownMode() {
        assertEquals(ObserverMode.AUTO, ObserverMode.named("auto"));
        assertEquals("observer is maybe; use auto, on, off",
            assertThrows(IllegalArgumentException.class, () -> ObserverMode.named("maybe")).getMessage());
    }
}

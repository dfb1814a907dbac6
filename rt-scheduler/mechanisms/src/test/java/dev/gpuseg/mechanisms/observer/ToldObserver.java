/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.LinkedBlockingQueue;

/** An observer that reports what a test says, in the records of gpuseg-observer. */
public final class ToldObserver implements AutoCloseable {
    private static final long WAIT_MS = 20_000;
    private static final byte[] END = {};

    /** Gives one record after the other, and waits for the next. */
    private static final class Records extends InputStream {
        private final LinkedBlockingQueue<byte[]> queue = new LinkedBlockingQueue<>();

        @Override
        public int read() {
            throw new UnsupportedOperationException("records are read whole");
        }

        @Override
        public int read(final byte[] into, final int at, final int length) {
            try {
                final byte[] record = queue.take();
                System.arraycopy(record, 0, into, at, record.length);
                return record.length == 0 ? -1 : record.length;
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
                return -1;
            }
        }

        @Override
        public int available() {
            return queue.size();
        }

        @Override
        public void close() {
            queue.add(END);
        }
    }

    private final Records records = new Records();
    private long told = 1;
    private final Observer observer;

    /** Sees everything from the beginning of the machine on. */
    public ToldObserver() {
        final ByteBuffer hello = record(Observation.Kind.HELLO, 0);
        records.queue.add(hello.putInt(48, Observer.VERSION).array());
        observer = Observer.of(() -> records, "a test");
        if (!observer.await(WAIT_MS)) {
            throw new IllegalStateException(observer.problem());
        }
    }

    /** What a mechanism is given. */
    public Observer observer() {
        return observer;
    }

    private static ByteBuffer record(final Observation.Kind kind, final int pid) {
        return ByteBuffer.allocate(Observation.BYTES).order(ByteOrder.nativeOrder()).putInt(0, kind.number())
            .putInt(4, pid).putLong(8, System.nanoTime());
    }

    /** Reports what an {@link Observation} says. */
    public void tell(final Observation o) {
        final ByteBuffer b = record(o.kind(), o.pid()).putLong(8, o.timeNs()).putLong(16, o.startTicks() * 10_000_000)
            .putInt(32, o.fd()).putInt(36, o.owner()).putInt(40, o.client()).putInt(44, o.parent());
        records.queue.add(b.putInt(48, o.handle()).putInt(52, o.classId()).putInt(56, o.engine()).array());
        told++;
    }

    /** Waits until mechanisms have received what was told. */
    public void awaitReceived() throws InterruptedException {
        records.queue.add(record(Observation.Kind.WORK, 0).array());   // once counted, those before are passed on
        told++;
        while (observer.records() < told) {
            Thread.sleep(1);
        }
    }

    @Override
    public void close() {
        observer.close();
    }
}

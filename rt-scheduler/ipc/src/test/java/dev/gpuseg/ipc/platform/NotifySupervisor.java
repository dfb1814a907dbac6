/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.agrona.BufferUtil;

/** A supervisor's end of the socket to which a service reports, for tests. */
public final class NotifySupervisor implements AutoCloseable {
    private static final int AF_UNIX = 1;
    private static final int SOCK_DGRAM = 2;
    private static final int SOCK_NONBLOCK = 0x800;

    private final String where;
    private final int fd = LibC.socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(4096);

    /**
     * Listens.
     *
     * @param where a path, or @ and a name of the abstract name space
     */
    public NotifySupervisor(final String where) {
        this.where = where;
        final byte[] name = where.getBytes(StandardCharsets.UTF_8);
        final ByteBuffer address = ByteBuffer.allocateDirect(2 + name.length).order(ByteOrder.nativeOrder());
        address.putShort(0, (short) AF_UNIX);
        for (int i = 0; i < name.length; i++) {
            address.put(2 + i, i == 0 && name[0] == '@' ? 0 : name[i]);
        }
        assertEquals(0, LibC.bind(fd, BufferUtil.address(address), 2 + name.length), where);
    }

    /** Where it listens, as NOTIFY_SOCKET says it. */
    public String where() {
        return where;
    }

    /**
     * The next message.
     *
     * @param limitMs how long to wait for it
     * @return its text; empty if none comes in that time
     * @throws InterruptedException if the thread is interrupted
     */
    public String next(final long limitMs) throws InterruptedException {
        final long limitNs = System.nanoTime() + limitMs * 1_000_000;
        while (System.nanoTime() - limitNs < 0) {
            final long n = LibC.read(fd, BufferUtil.address(buffer), buffer.capacity());
            if (n >= 0) {
                final byte[] text = new byte[(int) n];
                buffer.get(0, text);
                return new String(text, StandardCharsets.UTF_8);
            }
            Thread.sleep(1);
        }
        return "";
    }

    @Override
    public void close() {
        LibC.close(fd);
    }
}

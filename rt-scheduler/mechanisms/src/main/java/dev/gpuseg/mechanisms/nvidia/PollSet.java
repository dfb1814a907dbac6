/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/** The descriptors of one poll(2) call. Not thread-safe. */
final class PollSet {
    private static final int MAX = 1024;
    private static final int ENTRY_BYTES = 8;
    private static final int EVENTS_OFFSET = 4;
    private static final int RESULT_OFFSET = 6;
    private static final short POLLIN = 1;

    private final ByteBuffer entries = ByteBuffer.allocateDirect(MAX * ENTRY_BYTES).order(ByteOrder.nativeOrder());
    private int size;

    void clear() {
        size = 0;
    }

    /** Index of the descriptor in this set; -1: there is no room. */
    int add(final int fd) {
        if (size == MAX) {
            return -1;
        }
        final int at = size * ENTRY_BYTES;
        entries.putInt(at, fd).putShort(at + EVENTS_OFFSET, POLLIN).putShort(at + RESULT_OFFSET, (short) 0);
        return size++;
    }

    /** Waits until a descriptor is readable, at most this long. False if none is. */
    boolean await(final int timeoutMs) {
        return DriverCalls.poll(BufferUtil.address(entries), size, timeoutMs) > 0;
    }

    /** Whether the descriptor of an index was readable after {@link #await}. */
    boolean isReady(final int index) {
        return entries.getShort(index * ENTRY_BYTES + RESULT_OFFSET) != 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Memory for one message of a {@link SeqPacketSocket}: bytes and up to {@value #DESCRIPTORS_MAX} descriptors. Reusable,
 * for one thread at a time.
 */
public final class Packet {
    /** Most descriptors in one message. */
    public static final int DESCRIPTORS_MAX = 8;

    private static final int MSGHDR_BYTES = 56;
    private static final int IOVEC_OFFSET = 56;
    private static final int CONTROL_OFFSET = 72;
    private static final int CMSG_HEADER_BYTES = 16;
    private static final int CONTROL_BYTES = CMSG_HEADER_BYTES + 4 * DESCRIPTORS_MAX;
    private static final int NAME_AND_IOV_LENGTH_OFFSET = 24;
    private static final int CONTROL_POINTER_OFFSET = 32;
    private static final int CONTROL_LENGTH_OFFSET = 40;
    private static final int FLAGS_OFFSET = 48;
    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int MSG_TRUNC = 0x20;
    private static final int MSG_CTRUNC = 0x8;

    private final UnsafeBuffer data;
    private final ByteBuffer header = ByteBuffer.allocateDirect(CONTROL_OFFSET + CONTROL_BYTES)
        .order(ByteOrder.nativeOrder());
    private final long headerAddress = BufferUtil.address(header);
    private final int[] descriptors = new int[DESCRIPTORS_MAX];
    private int descriptorCount;
    private int length;
    private boolean truncated;

    /**
     * Memory for messages of a certain size.
     *
     * @param capacity bytes; a longer message that arrives is marked as truncated
     */
    public Packet(final int capacity) {
        data = new UnsafeBuffer(ByteBuffer.allocateDirect(capacity));
    }

    /**
     * The bytes. Valid from 0 to {@link #length} after a receive.
     *
     * @return the buffer, little-endian accessors by default
     */
    public UnsafeBuffer data() {
        return data;
    }

    /** Bytes received, or to be sent. 0 .. capacity. */
    public int length() {
        return length;
    }

    /**
     * Sets how many bytes are to be sent.
     *
     * @param bytes 0 .. capacity
     */
    public void length(final int bytes) {
        length = bytes;
    }

    /** Whether the message or its descriptors did not fit; true if something was truncated. */
    public boolean truncated() {
        return truncated;
    }

    /** Descriptors received, or to be sent; their number. */
    public int descriptorCount() {
        return descriptorCount;
    }

    /**
     * A received descriptor; the receiver owns it.
     *
     * @param index 0 .. {@link #descriptorCount} - 1
     * @return its number in this process
     */
    public int descriptor(final int index) {
        return descriptors[index];
    }

    /**
     * Adds a descriptor to be sent; the sender keeps its own.
     *
     * @param fd an open descriptor
     */
    public void addDescriptor(final int fd) {
        descriptors[descriptorCount++] = fd;
    }

    /** Removes the descriptors without closing them. */
    public void clearDescriptors() {
        descriptorCount = 0;
    }

    /** Closes received descriptors that are not needed. */
    public void closeDescriptors() {
        for (int i = 0; i < descriptorCount; i++) {
            Descriptor.close(descriptors[i]);
        }
        descriptorCount = 0;
    }

    long prepareReceive() {
        prepare(data.capacity(), CONTROL_BYTES);
        return headerAddress;
    }

    long prepareSend() {
        final int controlBytes = descriptorCount == 0 ? 0 : CMSG_HEADER_BYTES + 4 * descriptorCount;
        prepare(length, (controlBytes + 7) & ~7);
        if (controlBytes > 0) {
            header.putLong(CONTROL_OFFSET, controlBytes).putInt(CONTROL_OFFSET + 8, SOL_SOCKET)
                .putInt(CONTROL_OFFSET + 12, SCM_RIGHTS);
            for (int i = 0; i < descriptorCount; i++) {
                header.putInt(CONTROL_OFFSET + CMSG_HEADER_BYTES + 4 * i, descriptors[i]);
            }
        }
        return headerAddress;
    }

    private void prepare(final int dataBytes, final int controlBytes) {
        for (int i = 0; i < MSGHDR_BYTES; i += 8) {
            header.putLong(i, 0);
        }
        header.putLong(16, headerAddress + IOVEC_OFFSET).putLong(NAME_AND_IOV_LENGTH_OFFSET, 1);
        if (controlBytes > 0) {
            header.putLong(CONTROL_POINTER_OFFSET, headerAddress + CONTROL_OFFSET)
                .putLong(CONTROL_LENGTH_OFFSET, controlBytes);
        }
        header.putLong(IOVEC_OFFSET, data.addressOffset()).putLong(IOVEC_OFFSET + 8, dataBytes);
    }

    void received(final int bytes) {
        length = bytes;
        final int flags = header.getInt(FLAGS_OFFSET);
        truncated = (flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
        descriptorCount = 0;
        final long controlLength = header.getLong(CONTROL_LENGTH_OFFSET);
        int at = 0;
        while (at + CMSG_HEADER_BYTES <= controlLength) {
            final long size = header.getLong(CONTROL_OFFSET + at);
            if (size < CMSG_HEADER_BYTES || at + size > controlLength) {
                break;
            }
            if (header.getInt(CONTROL_OFFSET + at + 8) == SOL_SOCKET
                && header.getInt(CONTROL_OFFSET + at + 12) == SCM_RIGHTS) {
                for (int i = CMSG_HEADER_BYTES; i + 4 <= size; i += 4) {
                    descriptors[descriptorCount++] = header.getInt(CONTROL_OFFSET + at + i);
                }
            }
            at += (int) ((size + 7) & ~7L);
        }
    }
}

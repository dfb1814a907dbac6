/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.agrona.BufferUtil;

/**
 * Paths of a process's files below /proc, as a system call takes them: each is written into the same memory, so none is
 * an object. Not thread-safe.
 */
public final class ProcPath {
    private static final String PROC = "/proc";
    private static final String DESCRIPTORS = "fd/";
    private static final String THREADS = "task/";
    /** Behind the directory: two numbers, a name, slashes. */
    private static final int NAME_BYTES = 64;
    private static final int TEN = 10;
    private static final ThreadLocal<ProcPath> OF_THREAD = ThreadLocal.withInitial(() -> new ProcPath(PROC));

    private final int directoryBytes;
    private final ByteBuffer bytes;
    private final long address;

    /**
     * Memory for one path at a time.
     *
     * @param directory usually /proc
     */
    public ProcPath(final String directory) {
        final byte[] prefix = (directory + "/").getBytes(StandardCharsets.UTF_8);
        directoryBytes = prefix.length;
        bytes = ByteBuffer.allocateDirect(directoryBytes + NAME_BYTES).put(prefix);
        address = BufferUtil.address(bytes);
    }

    /**
     * The path of a descriptor, below /proc. Any thread: each has its own memory.
     *
     * @param pid the process
     * @param fd  its descriptor
     * @return address of a text that ends with 0; until the calling thread asks for another
     */
    public static long ofDescriptor(final int pid, final int fd) {
        return OF_THREAD.get().descriptor(pid, fd);
    }

    /** The path of the directory; address of a text that ends with 0, until the next call. */
    public long directory() {
        return end(directoryBytes);
    }

    /**
     * The path of a descriptor.
     *
     * @param pid the process
     * @param fd  its descriptor
     * @return address of a text that ends with 0, until the next call
     */
    public long descriptor(final int pid, final int fd) {
        return end(put(file(pid, DESCRIPTORS), fd));
    }

    /**
     * The path of another file.
     *
     * @param pid  the process
     * @param name ASCII, for instance "environ"; up to 32 characters
     * @return address of a text that ends with 0, until the next call
     */
    public long of(final int pid, final String name) {
        return end(file(pid, name));
    }

    /**
     * The path of a thread's file.
     *
     * @param pid  the process
     * @param tid  its thread, by the kernel's id
     * @param name ASCII, for instance "comm"; up to 32 characters
     * @return address of a text that ends with 0, until the next call
     */
    public long ofThread(final int pid, final int tid, final String name) {
        return end(put(put(put(file(pid, THREADS), tid), "/"), name));
    }

    private int file(final int pid, final String name) {
        return put(put(put(directoryBytes, pid), "/"), name);
    }

    private long end(final int at) {
        bytes.put(at, (byte) 0);
        return address;
    }

    private int put(final int from, final String characters) {
        for (int i = 0; i < characters.length(); i++) {
            bytes.put(from + i, (byte) characters.charAt(i));
        }
        return from + characters.length();
    }

    private int put(final int from, final int value) {
        int digits = 1;
        for (int rest = value; rest >= TEN; rest /= TEN) {
            digits++;
        }
        int rest = value;
        for (int at = from + digits - 1; at >= from; at--) {
            bytes.put(at, (byte) ('0' + rest % TEN));
            rest /= TEN;
        }
        return from + digits;
    }
}

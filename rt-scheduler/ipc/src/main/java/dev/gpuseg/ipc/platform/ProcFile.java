/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/**
 * Files of processes below /proc, read by system calls into memory that is kept: the daemon reads some of every process
 * that comes, and the objects of java.nio.file for each of them would make the JVM collect its garbage, which stops the
 * dispatcher. Not thread-safe; allocates only itself, and again where a file is longer than any before.
 *
 * <p>Source: openat(2), read(2), readlinkat(2); numbers of calls of the kernel's headers for x86-64 and aarch64.
 */
public final class ProcFile {
    private static final int SYS_OPENAT = LibC.ARM64 ? 56 : 257;
    private static final int SYS_READ = LibC.ARM64 ? 63 : 0;
    private static final int SYS_CLOSE = LibC.ARM64 ? 57 : 3;
    private static final int SYS_READLINKAT = LibC.ARM64 ? 78 : 267;
    private static final int AT_FDCWD = -100;
    private static final int CLOSED_ON_EXEC = 0x80000;
    private static final int USUAL_BYTES = 4096;
    private static final int NONE = -1;
    private static final ThreadLocal<ProcFile> OF_THREAD =
        ThreadLocal.withInitial(() -> new ProcFile("/proc", USUAL_BYTES));

    private final String directory;
    private final int bytesMax;
    private final ProcPath path;
    private ByteBuffer content;
    private long address;

    /**
     * Memory for one file at a time.
     *
     * @param directory usually /proc
     * @param bytesMax  what is longer is read up to this
     */
    public ProcFile(final String directory, final int bytesMax) {
        this.directory = directory;
        this.bytesMax = bytesMax;
        path = new ProcPath(directory);
        use(allocate(Math.min(USUAL_BYTES, bytesMax)));
    }

    /** Of /proc, up to 4096 bytes of a file; for the calling thread, until it reads again. */
    static ProcFile ofThread() {
        return OF_THREAD.get();
    }

    private static ByteBuffer allocate(final int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private void use(final ByteBuffer memory) {
        content = memory;
        address = BufferUtil.address(memory);
    }

    /** Where the processes are; usually /proc. */
    public String directory() {
        return directory;
    }

    /** What was read last, from 0 to its limit; until the next call. */
    public ByteBuffer content() {
        return content;
    }

    /**
     * Reads a file of a process.
     *
     * @param pid  the process
     * @param name ASCII, for instance "environ"
     * @return bytes, -1 if the process has ended or the file cannot be read
     */
    public int read(final int pid, final String name) {
        return read(path.of(pid, name));
    }

    /**
     * Reads what a descriptor of a process refers to.
     *
     * @param pid the process
     * @param fd  its descriptor
     * @return bytes, -1 if the process has ended or it cannot be read
     */
    public int readDescriptor(final int pid, final int fd) {
        return read(path.descriptor(pid, fd));
    }

    /**
     * Reads a file of a thread.
     *
     * @param pid  its process
     * @param tid  the thread, by the kernel's id
     * @param name ASCII, for instance "comm"
     * @return bytes, -1 if the process has no such thread or the file cannot be read
     */
    public int readThread(final int pid, final int tid, final String name) {
        return read(path.ofThread(pid, tid, name));
    }

    private int read(final long pathAddress) {
        content.clear();
        final long fd = LibC.syscall(SYS_OPENAT, AT_FDCWD, pathAddress, CLOSED_ON_EXEC, 0, 0, 0);
        if (fd < 0) {
            return failed();
        }
        int length = 0;
        long read;
        do {
            if (length == content.capacity()) {
                grow();
            }
            read = LibC.syscall(SYS_READ, fd, address + length, content.capacity() - length, 0, 0, 0);
            length += (int) Math.max(0, read);
        } while (read > 0 && length < bytesMax);
        LibC.syscall(SYS_CLOSE, fd, 0, 0, 0, 0, 0);
        return read < 0 ? failed() : filled(length);
    }

    private void grow() {
        final ByteBuffer longer = allocate((int) Math.min(bytesMax, 2L * content.capacity()));
        use(longer.put(content.clear()).clear());
    }

    private int failed() {
        content.limit(0);
        return NONE;
    }

    private int filled(final int length) {
        content.limit(length);
        return length;
    }

    /**
     * Reads where a link of a process leads.
     *
     * @param pid  the process
     * @param name ASCII, for instance "exe"
     * @return bytes, -1 if the process has ended or must not be examined
     */
    public int readLink(final int pid, final String name) {
        content.clear();
        final long length = LibC.syscall(SYS_READLINKAT, AT_FDCWD, path.of(pid, name), address, content.capacity(),
            0, 0);
        return length < 0 ? failed() : filled((int) length);
    }
}

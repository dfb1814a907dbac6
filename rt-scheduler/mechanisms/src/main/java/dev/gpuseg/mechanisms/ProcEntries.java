/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcPath;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;

/**
 * The entries of /proc, or of the descriptors or threads of a process, whose names are numbers. They are read by system
 * calls into memory that is kept, because the daemon reads thousands of them whenever a process opens a GPU: an object
 * for each would make the JVM collect its garbage, which stops the dispatcher. Not thread-safe; allocates only itself
 * and exceptions.
 *
 * <p>Source: getdents64(2), readlinkat(2), open(2); numbers of calls and flags of the kernel's headers for x86-64 and
 * aarch64.
 */
public final class ProcEntries implements AutoCloseable {
    private static final boolean ARM64 = "aarch64".equals(System.getProperty("os.arch"));
    private static final int SYS_OPENAT = ARM64 ? 56 : 257;
    private static final int SYS_GETDENTS64 = ARM64 ? 61 : 217;
    private static final int SYS_READLINKAT = ARM64 ? 78 : 267;
    private static final int DIRECTORY_READ_ONLY = (ARM64 ? 0x4000 : 0x10000) | 0x80000;
    private static final int AT_FDCWD = -100;
    // struct linux_dirent64
    private static final int LENGTH_OFFSET = 16;
    private static final int NAME_OFFSET = 19;
    private static final int ENTRIES_BYTES = 16 * 1024;
    private static final int TARGET_BYTES = 256;
    private static final int TEN = 10;
    private static final int NONE = -1;
    private static final String DESCRIPTORS = "fd";
    private static final String THREADS = "task";

    private final Memory entries = new Memory(ENTRIES_BYTES);
    private final ProcPath path = new ProcPath("/proc");
    private final Memory target = new Memory(TARGET_BYTES);
    private int directory = NONE;
    private int at;
    private int end;
    private int number;
    private int nameAt;
    private int pid;
    private String name = "";

    /**
     * Begins with the processes.
     *
     * @throws IOException if /proc cannot be read
     */
    public void openProcesses() throws IOException {
        pid = 0;
        open(path.directory());
    }

    /**
     * Begins with the descriptors of a process.
     *
     * @param ofPid the process
     * @throws NoSuchFileException   if it has ended
     * @throws AccessDeniedException if it may not be examined
     * @throws IOException           if they cannot be read for another reason
     */
    public void openDescriptors(final int ofPid) throws IOException {
        open(ofPid, DESCRIPTORS);
    }

    /**
     * Begins with the threads of a process.
     *
     * @param ofPid the process
     * @throws NoSuchFileException   if it has ended
     * @throws AccessDeniedException if it may not be examined
     * @throws IOException           if they cannot be read for another reason
     */
    public void openThreads(final int ofPid) throws IOException {
        open(ofPid, THREADS);
    }

    private void open(final int ofPid, final String ofName) throws IOException {
        pid = ofPid;
        name = ofName;
        open(path.of(ofPid, ofName));
    }

    private void open(final long pathAddress) throws IOException {
        close();
        final int fd = SystemCalls.call(SYS_OPENAT, AT_FDCWD, pathAddress, DIRECTORY_READ_ONLY, 0, 0);
        if (fd < 0) {
            throw failed(fd);
        }
        directory = fd;
        at = 0;
        end = 0;
    }

    private IOException failed(final int error) {
        final String what = pid == 0 ? "/proc" : "/proc/" + pid + "/" + name;
        return switch (-error) {
            case Errno.ENOENT, Errno.ESRCH -> new NoSuchFileException(what);
            case Errno.EACCES, Errno.EPERM -> new AccessDeniedException(what);
            default -> new FileSystemException(what, null, "errno " + -error);
        };
    }

    /**
     * Goes to the next entry.
     *
     * @return false after the last one
     * @throws IOException if the process has ended meanwhile, or the kernel refuses
     */
    public boolean next() throws IOException {
        while (true) {
            if (at >= end) {
                final int read = SystemCalls.call(SYS_GETDENTS64, directory, Pointer.nativeValue(entries),
                    ENTRIES_BYTES, 0, 0);
                if (read < 0) {
                    throw failed(read);
                }
                if (read == 0) {
                    return false;
                }
                at = 0;
                end = read;
            }
            nameAt = at + NAME_OFFSET;
            at += entries.getShort(at + LENGTH_OFFSET) & 0xffff;
            if (parse()) {
                return true;
            }
        }
    }

    private boolean parse() {
        int value = 0;
        int i = nameAt;
        for (byte c = entries.getByte(i); c != 0; c = entries.getByte(++i)) {
            if (c < '0' || c > '9') {
                return false;
            }
            value = value * TEN + c - '0';
        }
        number = value;
        return i > nameAt;
    }

    /** The entry's name; the PID, the descriptor, or the kernel's id of the thread. */
    public int number() {
        return number;
    }

    /**
     * What the entry refers to.
     *
     * @param into receives as many bytes as it has room for, 256 at most
     * @return how many; negative: -errno
     */
    public int readlink(final byte[] into) {
        final int length = SystemCalls.call(SYS_READLINKAT, directory, Pointer.nativeValue(entries) + nameAt,
            Pointer.nativeValue(target), Math.min(TARGET_BYTES, into.length), 0);
        if (length > 0) {
            target.read(0, into, 0, length);
        }
        return length;
    }

    /** Ends the reading; another one can begin. */
    @Override
    public void close() {
        if (directory != NONE) {
            final int fd = directory;
            directory = NONE;
            SystemCalls.closeOnce(fd);
        }
    }
}

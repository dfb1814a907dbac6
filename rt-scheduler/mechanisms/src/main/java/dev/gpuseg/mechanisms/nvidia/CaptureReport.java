/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcFile;
import java.nio.ByteBuffer;
import org.agrona.collections.Long2LongHashMap;

/**
 * The list of RM objects that libgpuseg-preload.so keeps inside an application
 * (segment-api/preload/gpuseg_rm_report.h). The application can write anything there, so a reader asks RM for the class
 * of a handle before it uses it.
 *
 * <p>Reports are read again and again while a process is new, so one object reads them all into memory that it keeps.
 * Not thread-safe.
 */
final class CaptureReport {
    static final String LINK_PREFIX = "/memfd:gpuseg-rm-report";
    static final int MAGIC = 0x52525347;
    static final int VERSION = 1;
    static final int HEADER_BYTES = 32;
    static final int ENTRY_BYTES = 32;
    static final int ENTRIES_MAX = 4096;
    static final int ALLOC = 1;
    static final int FREE = 2;

    private static final int GONE = 0;
    private static final long NONE = -1;
    private static final int CLIENT_OFFSET = 8;
    private static final int HANDLE_OFFSET = 16;
    private static final int CLASS_OFFSET = 20;
    private static final int ENGINE_OFFSET = 24;

    private final ProcFile file = new ProcFile("/proc", HEADER_BYTES + ENTRIES_MAX * ENTRY_BYTES);
    /** Where the entry of an object that was not freed is, by client and handle. */
    private final Long2LongHashMap live = new Long2LongHashMap(NONE);
    /** A copy: an entry of an object that was freed is not {@link #ALLOC} any more. */
    private ByteBuffer entries;
    private int count;
    private boolean lacking;

    /**
     * Reads the report of a process.
     *
     * @param pid its pid
     * @param fd  number of the memfd inside it
     * @return false if it is not one of that process (a forked child inherits its parent's) or unreadable, which it
     *     also is while the process is ending
     */
    boolean read(final int pid, final int fd) {
        return file.readDescriptor(pid, fd) >= 0 && parse(pid, file.content());
    }

    /** The same of what was read, which this object changes. */
    boolean parse(final int pid, final ByteBuffer b) {
        live.clear();
        count = 0;
        entries = b;
        if (b.limit() < HEADER_BYTES || b.getInt(0) != MAGIC || b.getInt(4) != VERSION || b.getInt(8) != pid) {
            return false;
        }
        final int written = b.getInt(12);
        if (written < 0 || written > ENTRIES_MAX || b.limit() < HEADER_BYTES + written * ENTRY_BYTES) {
            return false;
        }
        lacking = b.getInt(16) != 0;
        for (; count < written; count++) {
            final int kind = b.getInt(at(count));
            if (kind == ALLOC) {
                made();
            } else if (kind == FREE) {
                freed();
            }
        }
        return true;
    }

    private static int at(final int entry) {
        return HEADER_BYTES + entry * ENTRY_BYTES;
    }

    private static long key(final int client, final int handle) {
        return (long) client << Integer.SIZE | handle & 0xffffffffL;
    }

    /** An object that is made again keeps its place. */
    private void made() {
        final long key = key(client(count), handle(count));
        final long before = live.get(key);
        if (before == NONE) {
            live.put(key, count);
        } else {
            entries.put(at((int) before), entries, at(count), ENTRY_BYTES);
            entries.putInt(at(count), GONE);
        }
    }

    private void freed() {
        final int client = client(count);
        final long entry = live.remove(key(client, handle(count)));
        if (entry == NONE) {
            return;
        }
        entries.putInt(at((int) entry), GONE);
        for (int i = 0; client == handle(count) && i < count; i++) {
            if (exists(i) && client(i) == client) {
                live.remove(key(client, handle(i)));
                entries.putInt(at(i), GONE);
            }
        }
    }

    /** Whether it lacks nothing; then the process need not be searched. */
    boolean complete() {
        return !lacking && !live.isEmpty();
    }

    /** How many entries there are, in the order in which the objects were made. */
    int size() {
        return count;
    }

    /** Whether an entry is of an object that was not freed, as the application claims; the others mean nothing. */
    boolean exists(final int entry) {
        return entries.getInt(at(entry)) == ALLOC;
    }

    int client(final int entry) {
        return entries.getInt(at(entry) + CLIENT_OFFSET);
    }

    int handle(final int entry) {
        return entries.getInt(at(entry) + HANDLE_OFFSET);
    }

    int classId(final int entry) {
        return entries.getInt(at(entry) + CLASS_OFFSET);
    }

    int engine(final int entry) {
        return entries.getInt(at(entry) + ENGINE_OFFSET);
    }
}

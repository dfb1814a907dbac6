/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcFile;
import dev.gpuseg.mechanisms.Layouts;
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
    static final String LINK_PREFIX = "/memfd:" + Layouts.RM_REPORT_NAME;
    static final int MAGIC = Layouts.RM_REPORT_MAGIC;
    static final int VERSION = Layouts.RM_REPORT_VERSION;
    static final int HEADER_BYTES = Layouts.RmReport.ENTRIES_OFFSET;
    static final int ENTRY_BYTES = Layouts.RmReportEntry.SIZE;
    static final int ENTRIES_MAX = Layouts.RM_REPORT_ENTRIES;
    static final int ALLOC = Layouts.RM_REPORT_ALLOC;
    static final int FREE = Layouts.RM_REPORT_FREE;

    private static final int GONE = 0;
    private static final long NONE = -1;
    private static final int KIND_OFFSET = Layouts.RmReportEntry.KIND_OFFSET;
    private static final int CLIENT_OFFSET = Layouts.RmReportEntry.CLIENT_OFFSET;
    private static final int HANDLE_OFFSET = Layouts.RmReportEntry.HANDLE_OFFSET;
    private static final int CLASS_OFFSET = Layouts.RmReportEntry.CLASS_ID_OFFSET;
    private static final int ENGINE_OFFSET = Layouts.RmReportEntry.ENGINE_OFFSET;

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
        if (b.limit() < HEADER_BYTES || b.getInt(Layouts.RmReport.MAGIC_OFFSET) != MAGIC
            || b.getInt(Layouts.RmReport.VERSION_OFFSET) != VERSION
            || b.getInt(Layouts.RmReport.PID_OFFSET) != pid) {
            return false;
        }
        final int written = b.getInt(Layouts.RmReport.COUNT_OFFSET);
        if (written < 0 || written > ENTRIES_MAX || b.limit() < HEADER_BYTES + written * ENTRY_BYTES) {
            return false;
        }
        lacking = b.getInt(Layouts.RmReport.LOST_OFFSET) != 0;
        for (; count < written; count++) {
            final int kind = b.getInt(at(count) + KIND_OFFSET);
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
            entries.putInt(at(count) + KIND_OFFSET, GONE);
        }
    }

    private void freed() {
        final int client = client(count);
        final long entry = live.remove(key(client, handle(count)));
        if (entry == NONE) {
            return;
        }
        entries.putInt(at((int) entry) + KIND_OFFSET, GONE);
        for (int i = 0; client == handle(count) && i < count; i++) {
            if (exists(i) && client(i) == client) {
                live.remove(key(client, handle(i)));
                entries.putInt(at(i) + KIND_OFFSET, GONE);
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
        return entries.getInt(at(entry) + KIND_OFFSET) == ALLOC;
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

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The list of RM objects that libgpuseg-preload.so keeps inside an application
 * (segment-api/preload/gpuseg_rm_report.h). The application can write anything there, so a reader asks RM for the class
 * of a handle before it uses it.
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

    /** Reports are read again and again while a process is new: memory for the longest one is kept by each thread. */
    private static final ThreadLocal<ByteBuffer> BUFFER = ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(
        HEADER_BYTES + ENTRIES_MAX * ENTRY_BYTES).order(ByteOrder.LITTLE_ENDIAN));

    /** An object that the application claims to have made. */
    record Entry(int fd, int client, int parent, int handle, int classId, int engine) {
    }

    private final Map<Long, Entry> live;
    private final boolean complete;

    private CaptureReport(final Map<Long, Entry> live, final boolean complete) {
        this.live = live;
        this.complete = complete;
    }

    /**
     * Reads the report of a process.
     *
     * @param pid its pid
     * @param fd  number of the memfd inside it
     * @return the report, null if it is not one of that process (a forked child inherits its parent's) or unreadable
     */
    static CaptureReport read(final int pid, final int fd) {
        final ByteBuffer b = BUFFER.get().clear();
        try (FileChannel file = FileChannel.open(Path.of("/proc/" + pid + "/fd/" + fd))) {
            while (b.hasRemaining() && file.read(b) > 0) {
                continue;
            }
        } catch (final IOException e) {
            return null;   // the process is ending; the caller searches without a report
        }
        b.flip();
        return parse(pid, b);
    }

    static CaptureReport parse(final int pid, final ByteBuffer b) {
        if (b.limit() < HEADER_BYTES || b.getInt(0) != MAGIC || b.getInt(4) != VERSION || b.getInt(8) != pid) {
            return null;
        }
        final int count = b.getInt(12);
        if (count < 0 || count > ENTRIES_MAX || b.limit() < HEADER_BYTES + count * ENTRY_BYTES) {
            return null;
        }
        final Map<Long, Entry> live = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            final int at = HEADER_BYTES + i * ENTRY_BYTES;
            final Entry e = new Entry(b.getInt(at + 4), b.getInt(at + 8), b.getInt(at + 12), b.getInt(at + 16),
                b.getInt(at + 20), b.getInt(at + 24));
            final long key = (long) e.client << Integer.SIZE | e.handle & 0xffffffffL;
            if (b.getInt(at) == ALLOC) {
                live.put(key, e);
            } else if (b.getInt(at) == FREE && live.remove(key) != null && e.client == e.handle) {
                live.values().removeIf(x -> x.client == e.client);
            }
        }
        return new CaptureReport(live, b.getInt(16) == 0);
    }

    /** Objects that were not freed, in the order in which they were made. */
    Iterable<Entry> objects() {
        return live.values();
    }

    /** Whether it lacks nothing; then the process need not be searched. */
    boolean complete() {
        return complete && !live.isEmpty();
    }
}

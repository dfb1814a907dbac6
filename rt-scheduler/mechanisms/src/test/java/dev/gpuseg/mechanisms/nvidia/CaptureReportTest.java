/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CaptureReportTest {
    private static final int PID = 4711;

    private static ByteBuffer report(final int count, final int lost, final int[]... entries) {
        final int size = CaptureReport.HEADER_BYTES + entries.length * CaptureReport.ENTRY_BYTES;
        final ByteBuffer b = ByteBuffer.allocate(size)
            .order(ByteOrder.LITTLE_ENDIAN);
        b.putInt(CaptureReport.MAGIC).putInt(CaptureReport.VERSION).putInt(PID).putInt(count).putInt(lost);
        for (int i = 0; i < entries.length; i++) {
            for (int k = 0; k < entries[i].length; k++) {
                b.putInt(CaptureReport.HEADER_BYTES + i * CaptureReport.ENTRY_BYTES + 4 * k, entries[i][k]);
            }
        }
        return b;
    }

    private static int[] entry(final int kind, final int client, final int handle, final int classId) {
        return new int[] {kind, 9, client, 0, handle, classId, 1};
    }

    /** Null if it is refused. */
    private static CaptureReport parse(final int pid, final ByteBuffer content) {
        final CaptureReport report = new CaptureReport();
        return report.parse(pid, content) ? report : null;
    }

    private static List<Integer> handles(final CaptureReport r) {
        final List<Integer> found = new ArrayList<>();
        for (int i = 0; i < r.size(); i++) {
            if (r.exists(i)) {
                found.add(r.handle(i));
            }
        }
        return found;
    }

    @Test
    void shouldForgetWhatWasFreedAndAllOfAFreedClient() {
        final CaptureReport r = parse(PID, report(6, 0,
            entry(1, 1, 1, 0x41), entry(1, 1, 10, 0xa06c), entry(1, 2, 2, 0x41), entry(1, 2, 20, 0xa06c),
            entry(2, 2, 20, 0), entry(2, 1, 1, 0)));
        assertEquals(List.of(2), handles(r));
        assertTrue(r.complete());
    }

    @Test
    void shouldNotCountAsCompleteWhenEntriesWereLost() {
        assertFalse(parse(PID, report(1, 3, entry(1, 1, 1, 0x41))).complete());
        assertFalse(parse(PID, report(0, 0)).complete());
    }

    @Test
    void shouldRefuseAForgedOrForeignReport() {
        assertNull(parse(PID + 1, report(0, 0)), "a fork inherits its parent's report");
        assertNull(parse(PID, report(2, 0, entry(1, 1, 1, 0x41))), "count beyond the end");
        assertNull(parse(PID, report(-1, 0)));
        assertNull(parse(PID, report(CaptureReport.ENTRIES_MAX + 1, 0)));
        assertNull(parse(PID, ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN)));
        assertNull(parse(PID, report(0, 0).putInt(0, 1)));
    }
}

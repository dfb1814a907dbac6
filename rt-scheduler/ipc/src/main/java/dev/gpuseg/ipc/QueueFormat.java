/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

/** Numbers of Chronicle Queue's v5 files, as written by chronicle-queue 2026.4. */
final class QueueFormat {
    static final String METADATA = "metadata.cq4t";
    static final int NOT_COMPLETE = 0x80000000;
    static final int META = 0x40000000;
    static final int END_OF_DATA = 0xC0000000;
    static final int LENGTH_MASK = 0x3fffffff;
    static final int HEADER_BYTES = 4;
    /** Size of a document with one record. */
    static final int DOCUMENT_BYTES = HEADER_BYTES + Abi.Record.SIZE;
    static final long UNLOCKED = Long.MIN_VALUE;
    static final long DAY_NS = 86_400_000_000_000L;

    private QueueFormat() {
    }

    static int align(final int position) {
        return position + 3 & ~3;
    }
}

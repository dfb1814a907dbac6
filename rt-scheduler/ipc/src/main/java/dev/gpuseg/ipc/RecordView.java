/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * One record, copied out of shared memory and validated: {@code struct gpuseg_record}. Reused for the next record as
 * soon as the handler returns.
 */
public final class RecordView {
    private final UnsafeBuffer copy = new UnsafeBuffer(new byte[Abi.Record.SIZE]);

    /** An empty record. */
    public RecordView() {
    }

    UnsafeBuffer copy() {
        return copy;
    }

    /** What happened; {@code Abi.RECORD_*}. */
    public int kind() {
        return copy.getShort(Abi.Record.KIND_OFFSET) & 0xffff;
    }

    /** How it happened; bits of {@code Abi.FLAG_*}. */
    public int flags() {
        return copy.getShort(Abi.Record.FLAGS_OFFSET) & 0xffff;
    }

    /** The task, one that this client owns; positive. */
    public int taskId() {
        return copy.getInt(Abi.Record.TASK_ID_OFFSET);
    }

    /** Number of the record within its client; from 1. */
    public long seq() {
        return copy.getLong(Abi.Record.SEQ_OFFSET);
    }

    /** Number of the begin within its task; from 1, or 0 for kinds without one. */
    public long ticket() {
        return copy.getLong(Abi.Record.TICKET_OFFSET);
    }

    /** When the client wrote it; CLOCK_MONOTONIC ns. */
    public long timeNs() {
        return copy.getLong(Abi.Record.TIME_NS_OFFSET);
    }

    /** The job's release; CLOCK_MONOTONIC ns, or 0. */
    public long releaseNs() {
        return copy.getLong(Abi.Record.RELEASE_NS_OFFSET);
    }

    /** Absolute deadline (begin), device time (end), expected begin (hint); ns, or 0. */
    public long argNs() {
        return copy.getLong(Abi.Record.ARG_NS_OFFSET);
    }

    /** The caller's thread, for traces; tid. */
    public int tid() {
        return copy.getInt(Abi.Record.TID_OFFSET);
    }

    /** Which sample a job works on (release), any word that its messages carry; 0 = not said. */
    public long sample() {
        return copy.getLong(Abi.Record.SAMPLE_OFFSET);
    }

    /**
     * Whether a flag is set.
     *
     * @param flag {@code Abi.FLAG_*}
     * @return true if it is
     */
    public boolean has(final int flag) {
        return (flags() & flag) != 0;
    }

    @Override
    public String toString() {
        return "record{kind=" + kind() + " flags=" + flags() + " task=" + taskId() + " seq=" + seq() + " ticket="
            + ticket() + " timeNs=" + timeNs() + " releaseNs=" + releaseNs() + " argNs=" + argNs()
            + " tid=" + tid() + "}";
    }
}

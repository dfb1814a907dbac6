/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import dev.gpuseg.ipc.Abi;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The virtual GPU's own account of what was disabled when, read while it is written. Its times are those at which a
 * change took effect. One thread.
 */
public final class OperationLog implements AutoCloseable {
    private static final int CHUNK = 256 * Abi.SimOperation.SIZE;

    private record Interval(int pid, long fromNs, long toNs) {
    }

    private final FileChannel file;
    private final ByteBuffer chunk = ByteBuffer.allocate(CHUNK).order(ByteOrder.nativeOrder());
    private final Map<Integer, Long> disabledSince = new HashMap<>();
    private final List<Interval> intervals = new ArrayList<>();
    private long position;

    /**
     * Opens a log.
     *
     * @param path made by {@code gpuseg-vgpu --operations}
     * @throws IOException if it is not there
     */
    public OperationLog(final Path path) throws IOException {
        file = FileChannel.open(path, StandardOpenOption.READ);
    }

    /**
     * Reads what was added.
     *
     * @throws IOException if the file cannot be read
     */
    public void read() throws IOException {
        int n;
        do {
            chunk.clear();
            n = file.read(chunk, position);
            for (int at = 0; at + Abi.SimOperation.SIZE <= n; at += Abi.SimOperation.SIZE) {
                onChange(chunk.getLong(at + Abi.SimOperation.TIME_NS_OFFSET),
                    chunk.getInt(at + Abi.SimOperation.PID_OFFSET),
                    chunk.getInt(at + Abi.SimOperation.CHANGE_OFFSET));
                position += Abi.SimOperation.SIZE;
            }
        } while (n == CHUNK);
    }

    private void onChange(final long timeNs, final int pid, final int change) {
        if (change == Abi.SIM_DISABLED) {
            disabledSince.putIfAbsent(pid, timeNs);
        } else {
            final Long since = disabledSince.remove(pid);
            if (since != null) {
                intervals.add(new Interval(pid, since, timeNs));
            }
        }
    }

    /** Forgets the intervals that are over. */
    public void startAnew() {
        intervals.clear();
    }

    /** Processes whose context is disabled, as far as read. */
    public int disabled() {
        return disabledSince.size();
    }

    /**
     * The longest time that one context stayed disabled without a living holder because of a fault: of those that were
     * disabled while it lasted, counted from its beginning.
     *
     * @param fromNs  when the fault struck
     * @param untilNs when it was over (not its consequences); {@code fromNs} for one that only strikes
     * @param nowNs   up to which contexts count that are still disabled
     * @param holders real-time segments of processes that the fault does not concern, in order, not overlapping: while
     *                one is open, others are disabled by right
     * @return ns, 0 if nothing was disabled
     */
    public long longestNs(final long fromNs, final long untilNs, final long nowNs, final List<Ledger.Window> holders) {
        long longestNs = 0;
        for (final Interval interval : intervals) {
            if (interval.fromNs <= untilNs) {
                longestNs = Math.max(longestNs, uncoveredNs(Math.max(interval.fromNs, fromNs), interval.toNs, holders));
            }
        }
        for (final long sinceNs : disabledSince.values()) {
            if (sinceNs <= untilNs) {
                longestNs = Math.max(longestNs, uncoveredNs(Math.max(sinceNs, fromNs), nowNs, holders));
            }
        }
        return longestNs;
    }

    /** The longest piece of a span that no window covers. */
    private static long uncoveredNs(final long fromNs, final long toNs, final List<Ledger.Window> holders) {
        long longestNs = 0;
        long atNs = fromNs;
        for (final Ledger.Window window : holders) {
            if (window.toNs() > atNs && window.fromNs() < toNs) {
                longestNs = Math.max(longestNs, window.fromNs() - atNs);
                atNs = window.toNs();
            }
        }
        return Math.max(longestNs, toNs - atNs);
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.core.TimePartitions;
import java.util.ArrayList;
import java.util.List;

/**
 * The times at which one partition has its GPU: a frame of open and closed intervals, repeated. The first
 * {@code lossNs} of every open interval count as closed, for the updates that the opening causes. Immutable.
 *
 * <p>{@link #timeFor} is the inverse of the supply-bound function {@code sbf(w) = w - max_s |closed in [s, s + w)|}.
 */
final class Supply implements Recurrence.Stretch {
    private final long frameNs;
    /** Open intervals in order within one frame, the last of which may end in the next one. */
    private final long[] openFromNs;
    /** Open time of the frame before open interval k, and of the whole frame at the end. */
    private final long[] openBeforeNs;

    private Supply(final long frameNs, final List<long[]> open) {
        this.frameNs = frameNs;
        openFromNs = new long[open.size()];
        openBeforeNs = new long[open.size() + 1];
        for (int k = 0; k < openFromNs.length; k++) {
            openFromNs[k] = open.get(k)[0];
            openBeforeNs[k + 1] = openBeforeNs[k] + open.get(k)[1] - open.get(k)[0];
        }
    }

    /**
     * Reads a window table.
     *
     * @param table     the frame
     * @param partition 0..255
     * @param lossNs    removed from the start of every open interval, not negative
     * @return when that partition has the GPU, wherever the frame begins
     */
    static Supply of(final TimePartitions table, final int partition, final long lossNs) {
        final long frameNs = table.frameNs();
        final List<long[]> pieces = new ArrayList<>();
        // start at a boundary, so that the end of the frame cuts no interval
        final long startNs = firstClosing(table, partition);
        if (startNs < 0) {
            final boolean always = table.isOpen(partition, 0);
            return new Supply(frameNs, always ? List.of(new long[] {0, frameNs}) : List.of());
        }
        for (long atNs = startNs; atNs < startNs + frameNs;) {
            final long nextNs = Math.min(table.nextChangeNs(atNs), startNs + frameNs);
            if (table.isOpen(partition, atNs)) {
                final long[] last = pieces.isEmpty() ? null : pieces.get(pieces.size() - 1);
                if (last != null && last[1] == atNs - startNs) {
                    last[1] = nextNs - startNs;
                } else {
                    pieces.add(new long[] {atNs - startNs, nextNs - startNs});
                }
            }
            atNs = nextNs;
        }
        final List<long[]> open = new ArrayList<>();
        for (final long[] piece : pieces) {
            if (piece[1] - piece[0] > lossNs) {
                open.add(new long[] {piece[0] + lossNs, piece[1]});
            }
        }
        return new Supply(frameNs, open);
    }

    /** A time, at most one frame after some start of one, at which the partition is closed; -1 if it never closes. */
    private static long firstClosing(final TimePartitions table, final int partition) {
        for (long atNs = 0; atNs <= 2 * table.frameNs(); atNs = table.nextChangeNs(atNs)) {
            if (!table.isOpen(partition, atNs)) {
                return atNs;
            }
        }
        return -1;
    }

    /**
     * The longest time that a demand for the open GPU may take. The worst start is the start of a closed interval: a
     * later start within it waits less, and a start within an open interval has that much less to wait for.
     */
    @Override
    public long timeFor(final long demandNs) {
        final int n = openFromNs.length;
        final long perFrameNs = openBeforeNs[n];
        if (demandNs <= 0) {
            return 0;
        }
        if (perFrameNs == 0) {
            return Long.MAX_VALUE;
        }
        final long frames = (demandNs - 1) / perFrameNs;
        final long restNs = demandNs - frames * perFrameNs;   // 1..perFrameNs
        long longestNs = 0;
        for (int k = 0; k < n; k++) {
            longestNs = Math.max(longestNs, timeFromClosing(k, restNs));
        }
        return Math.addExact(Math.multiplyExact(frames, frameNs), longestNs);
    }

    /** From the closing before open interval k until some open time has passed, at most that of a frame. */
    private long timeFromClosing(final int k, final long restNs) {
        final int n = openFromNs.length;
        final int before = (k + n - 1) % n;
        final long closedFromNs = openFromNs[before] + openBeforeNs[before + 1] - openBeforeNs[before]
            - (k == 0 ? frameNs : 0);
        final long targetNs = openBeforeNs[k] + restNs;   // in open time since the frame's start
        final long wrapNs = targetNs > openBeforeNs[n] ? frameNs : 0;
        final long inFrameNs = wrapNs == 0 ? targetNs : targetNs - openBeforeNs[n];
        int low = 0;
        int high = n - 1;
        while (low < high) {   // the first interval at whose end that much open time has passed
            final int middle = (low + high) >>> 1;
            if (openBeforeNs[middle + 1] >= inFrameNs) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return wrapNs + openFromNs[low] + inFrameNs - openBeforeNs[low] - closedFromNs;
    }
}

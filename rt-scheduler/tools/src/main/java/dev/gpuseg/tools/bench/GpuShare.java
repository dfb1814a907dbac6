/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import dev.gpuseg.ipc.Abi;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/** Who had the virtual GPU, by its own execution log. Simulated. */
public final class GpuShare {
    private GpuShare() {
    }

    /** Called with what a process had of an interval. */
    private interface Piece {
        void had(long fromNs, long toNs);
    }

    /**
     * The part of an interval in which a process had the engine.
     *
     * @param log    execution log
     * @param pid    the process
     * @param fromNs start of the interval
     * @param toNs   its end, later than fromNs
     * @return 0..1
     */
    public static double of(final Path log, final long pid, final long fromNs, final long toNs) throws IOException {
        final long[] sum = new long[1];
        forEach(log, pid, fromNs, toNs, (from, to) -> sum[0] += to - from);
        return (double) sum[0] / (toNs - fromNs);
    }

    /**
     * The time for which a process had the engine outside its window of a frame that begins at multiples of its length.
     *
     * @param log      execution log
     * @param pid      the process
     * @param fromNs   start of the interval looked at
     * @param toNs     its end
     * @param frameNs  length of the frame
     * @param openNs   start of the window within the frame
     * @param closedNs its end
     * @return ns
     */
    public static long outside(final Path log, final long pid, final long fromNs, final long toNs, final long frameNs,
        final long openNs, final long closedNs) throws IOException {
        final long[] sum = new long[1];
        forEach(log, pid, fromNs, toNs, (from, to) -> {
            long inside = 0;
            for (long frame = Math.floorDiv(from, frameNs) * frameNs; frame < to; frame += frameNs) {
                inside += Math.max(0, Math.min(to, frame + closedNs) - Math.max(from, frame + openNs));
            }
            sum[0] += to - from - inside;
        });
        return sum[0];
    }

    private static void forEach(final Path log, final long pid, final long fromNs, final long toNs,
        final Piece piece) throws IOException {
        final ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(log)).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at + Abi.SimSpan.SIZE <= data.limit(); at += Abi.SimSpan.SIZE) {
            final long from = Math.max(fromNs, data.getLong(at + Abi.SimSpan.START_NS_OFFSET));
            final long to = Math.min(toNs, data.getLong(at + Abi.SimSpan.END_NS_OFFSET));
            if (data.getInt(at + Abi.SimSpan.PID_OFFSET) == pid && from < to) {
                piece.had(from, to);
            }
        }
    }
}

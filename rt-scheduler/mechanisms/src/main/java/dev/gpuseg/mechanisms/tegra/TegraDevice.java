/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.SystemCalls;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Set;
import java.util.TreeSet;
import org.agrona.BufferUtil;

/** nvgpu's device for schedulers: which TSGs exist, and to which process each belongs. One thread at a time. */
final class TegraDevice implements AutoCloseable {
    static final String PATH = Layouts.TEGRA_SCHED_DEVICE;
    private static final int BITMAP_BYTES = 512;   // 4096 TSGs; nvgpu has at most 512
    private static final int PARAMS_BYTES = Layouts.TegraParams.SIZE;

    private final int fd;
    private final ByteBuffer request = ByteBuffer.allocateDirect(PARAMS_BYTES).order(ByteOrder.nativeOrder());
    private final ByteBuffer bitmap = ByteBuffer.allocateDirect(BITMAP_BYTES).order(ByteOrder.nativeOrder());

    private TegraDevice(final int fd) {
        this.fd = fd;
    }

    /** Null if it cannot be opened; {@link TegraSurvey} says why. */
    static TegraDevice open() {
        final int fd = TegraCalls.DRIVER.open(PATH);
        return fd < 0 ? null : new TegraDevice(fd);
    }

    /** Processes that have a TSG; empty if the driver refuses the question. */
    Set<Integer> pids() {
        final Set<Integer> found = new TreeSet<>();
        request.putInt(Layouts.TegraGetTsgs.SIZE_OFFSET, BITMAP_BYTES).putInt(Layouts.TegraGetTsgs.PAD_OFFSET, 0)
            .putLong(Layouts.TegraGetTsgs.BUFFER_OFFSET, BufferUtil.address(bitmap));
        if (TegraCalls.DRIVER.ioctl(fd, Layouts.TEGRA_GET_TSGS, BufferUtil.address(request)) < 0) {
            return found;
        }
        final int bits = Byte.SIZE * Math.min(BITMAP_BYTES, request.getInt(Layouts.TegraGetTsgs.SIZE_OFFSET));
        for (int i = 0; i < bits; i++) {
            if ((bitmap.get(i / Byte.SIZE) >>> i % Byte.SIZE & 1) == 1) {
                for (int at = 0; at < PARAMS_BYTES; at += Long.BYTES) {
                    request.putLong(at, 0);
                }
                request.putInt(Layouts.TegraParams.TSGID_OFFSET, i);
                if (TegraCalls.DRIVER.ioctl(fd, Layouts.TEGRA_GET_PARAMS, BufferUtil.address(request)) >= 0) {
                    found.add((int) request.getLong(Layouts.TegraParams.PID_OFFSET));
                }
            }
        }
        return found;
    }

    @Override
    public void close() {
        SystemCalls.closeOnce(fd);
    }
}

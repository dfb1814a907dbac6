/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.Layouts;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/**
 * Issues RM controls through given descriptors. It has one control block and one parameter area outside the heap, so
 * an operation allocates nothing. Not thread-safe: one object per thread.
 *
 * <p>Every operation returns a status: 0 = done, positive = RM's answer ({@link RmStatus}), negative = -errno.
 */
final class RmControl {
    /** Channels of one disable or enable. */
    static final int BATCH_MAX = Layouts.RM_BATCH_MAX;
    static final int INFO_PARENT = 1;
    static final int INFO_CLASS = 2;

    /** Sets the close-on-exec flag, which is set already. The kernel does this for any file, without its driver. */
    private static final long FIOCLEX = 0x5451;
    private static final int PARAMS_AT = 64;
    private static final int PARAMS_MAX = Layouts.RmDisableChannels.SIZE;   // the largest
    private static final int CLIENTS_OFFSET = Layouts.RmDisableChannels.CLIENT_OFFSET;
    private static final int CHANNELS_OFFSET = Layouts.RmDisableChannels.CHANNEL_OFFSET;

    private final ByteBuffer memory =
        ByteBuffer.allocateDirect(PARAMS_AT + PARAMS_MAX).order(ByteOrder.LITTLE_ENDIAN);
    private final long blockAddress = BufferUtil.address(memory);
    private final long paramsAddress = blockAddress + PARAMS_AT;
    private final long request;
    private int batch;
    private long controls;

    RmControl() {
        this(Layouts.RM_IOCTL_CONTROL);
    }

    private RmControl(final long request) {
        this.request = request;
    }

    /** An object that reaches no driver: every operation on an open descriptor, of any file, succeeds at once. */
    static RmControl pretending() {
        return new RmControl(FIOCLEX);
    }

    /** How many controls this object has issued. */
    long controls() {
        return controls;
    }

    /** 32-bit result of the last query: a handle, a class, a GPU number. */
    int result() {
        return memory.getInt(PARAMS_AT + Layouts.RmHandleInfo.DATA_OFFSET);
    }

    /** Asks for class ({@link #INFO_CLASS}) or parent ({@link #INFO_PARENT}) of a handle; see {@link #result}. */
    int handleInfo(final int fd, final int client, final int handle, final int index) {
        memory.putInt(PARAMS_AT + Layouts.RmHandleInfo.OBJECT_OFFSET, handle)
            .putInt(PARAMS_AT + Layouts.RmHandleInfo.INDEX_OFFSET, index)
            .putLong(PARAMS_AT + Layouts.RmHandleInfo.DATA_OFFSET, 0);
        return control(fd, client, client, RmCommand.GET_HANDLE_INFO);
    }

    /** Asks for the GPU of a subdevice; {@link #word} is its number. */
    int gpuId(final int fd, final int client, final int subdevice) {
        memory.putInt(PARAMS_AT, 0);
        return control(fd, client, subdevice, RmCommand.GPU_GET_ID);
    }

    /** First 32-bit word of the parameters after a query. */
    int word() {
        return memory.getInt(PARAMS_AT);
    }

    /** Time slice of a channel group in microseconds, or a negative status (RM's negated, or -errno). */
    long timesliceUs(final int fd, final int client, final int tsg) {
        memory.putLong(PARAMS_AT, 0);
        final int status = control(fd, client, tsg, RmCommand.GET_TIMESLICE);
        return status == 0 ? memory.getLong(PARAMS_AT) : -Math.abs((long) status);
    }

    int setTimesliceUs(final int fd, final int client, final int tsg, final long timesliceUs) {
        memory.putLong(PARAMS_AT, timesliceUs);
        return control(fd, client, tsg, RmCommand.SET_TIMESLICE);
    }

    /** Begins a new list of channels. */
    void clear() {
        batch = 0;
    }

    int size() {
        return batch;
    }

    /** Adds a channel to the list; there must be room. */
    void add(final int client, final int channel) {
        if (batch == BATCH_MAX) {
            throw new IllegalStateException("a batch holds " + BATCH_MAX + " channels");
        }
        memory.putInt(PARAMS_AT + CLIENTS_OFFSET + Integer.BYTES * batch, client);
        memory.putInt(PARAMS_AT + CHANNELS_OFFSET + Integer.BYTES * batch, channel);
        batch++;
    }

    /** Disables or enables the listed channels, through a subdevice of any one client. */
    int switchChannels(final int fd, final int client, final int subdevice, final boolean disable) {
        for (int at = 0; at < CLIENTS_OFFSET; at += Long.BYTES) {
            memory.putLong(PARAMS_AT + at, 0);
        }
        memory.put(PARAMS_AT + Layouts.RmDisableChannels.DISABLE_OFFSET, (byte) (disable ? 1 : 0))
            .putInt(PARAMS_AT + Layouts.RmDisableChannels.COUNT_OFFSET, batch);
        for (int i = batch; i < BATCH_MAX; i++) {
            memory.putInt(PARAMS_AT + CLIENTS_OFFSET + Integer.BYTES * i, 0);
            memory.putInt(PARAMS_AT + CHANNELS_OFFSET + Integer.BYTES * i, 0);
        }
        return control(fd, client, subdevice, RmCommand.FIFO_DISABLE_CHANNELS);
    }

    /** The only place that issues a command; its type admits only those of the list. */
    private int control(final int fd, final int client, final int object, final RmCommand command) {
        memory.putInt(Layouts.RmControl.CLIENT_OFFSET, client).putInt(Layouts.RmControl.OBJECT_OFFSET, object)
            .putInt(Layouts.RmControl.COMMAND_OFFSET, command.number()).putInt(Layouts.RmControl.FLAGS_OFFSET, 0)
            .putLong(Layouts.RmControl.PARAMS_OFFSET, paramsAddress)
            .putInt(Layouts.RmControl.PARAMS_SIZE_OFFSET, command.parameterBytes())
            .putInt(Layouts.RmControl.STATUS_OFFSET, 0);
        controls++;
        int result;
        do {
            result = DriverCalls.DRIVER.ioctl(fd, request, blockAddress);
        } while (result == -Errno.EINTR || result == -Errno.EAGAIN);
        return result < 0 ? result : memory.getInt(Layouts.RmControl.STATUS_OFFSET);
    }
}

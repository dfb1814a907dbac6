/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.MechanismException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashSet;
import java.util.Set;
import org.agrona.BufferUtil;

/**
 * {@code /dev/gpuseg-kfd}, ABI 1 (kmod-patch/amdkfd/include/gpuseg_kfd.h). A hold keeps the queues of a process
 * disabled. It belongs to the open file: it ends when the descriptor is closed, at the latest when this process ends,
 * or when the kernel's watchdog is not re-armed in time. All processes of one call are one change of the GPU.
 */
final class PatchedKfdControl implements QueueControl {
    static final String PATH = Layouts.AMD_HOLD_DEVICE;
    static final int ABI = Layouts.KFD_ABI;
    /** Property: the kernel's watchdog over our holds, ms. */
    static final String WATCHDOG_PROPERTY = "gpuseg.amd.watchdog";
    static final int WATCHDOG_DEFAULT_MS = Layouts.KFD_WATCHDOG_DEFAULT_MS;

    /**
     * The kernel's state of one GPU: mode 1 no-hws, 2 hws, 3 mes; preemption 0 none, 1 drain, 2 save; reason 1 =
     * NO_HWS on gfx11 or later; runlists written because of holds (hws); the last and the longest change, ns.
     */
    record GpuState(int gpuId, int mode, int preemption, int reason, long remaps, long lastNs, long maxNs) {
    }

    private static final int MAX_BATCH = Layouts.KFD_MAX_BATCH;
    private static final int MAX_GPUS = 256;
    private static final int ENTRY_BYTES = Layouts.KfdEntry.SIZE;
    /** Of any call's argument but APPLY's entries. */
    private static final int ARGUMENT_BYTES = Layouts.KfdGpu.SIZE;
    private static final int KICKS_PER_PERIOD = 5;
    private static final int MS_IN_NS = 1_000_000;

    private final int fd;
    private final int gpuId;
    private final boolean computeOnly;
    private final int periodMs;
    private final ByteBuffer argument = ByteBuffer.allocateDirect(ARGUMENT_BYTES).order(ByteOrder.nativeOrder());
    private final ByteBuffer entries =
        ByteBuffer.allocateDirect(MAX_BATCH * ENTRY_BYTES).order(ByteOrder.nativeOrder());
    private final Set<AmdProcess> held = new HashSet<>();
    private final byte[] payload;
    private long kickedNs;
    private long tookNs;
    private boolean lapsed;

    private PatchedKfdControl(final int fd, final int gpuId, final boolean computeOnly, final int periodMs) {
        this.fd = fd;
        this.gpuId = gpuId;
        this.computeOnly = computeOnly;
        this.periodMs = periodMs;
        payload = HeldPayload.of(ControlInterface.KFD, fd);
    }

    /**
     * For one GPU, with its watchdog armed.
     *
     * @throws MechanismException if the device cannot be opened; {@link AmdSurvey} says why
     */
    static PatchedKfdControl open(final int gpuId, final boolean computeOnly, final int periodMs) {
        final int fd = AmdCalls.DRIVER.open(PATH);
        if (fd >= 0) {
            final PatchedKfdControl device = new PatchedKfdControl(fd, gpuId, computeOnly, periodMs);
            if (device.abi() == ABI && device.arm() >= 0) {
                return device;
            }
            AmdCalls.close(fd);
        }
        throw new MechanismException(PATH + " cannot be opened any more, or refuses a watchdog of " + periodMs
            + " ms (10 to 60000); run gpuseg doctor");
    }

    /** 0 if it can be opened and has our ABI, -errno if it cannot be opened, or the number of its other ABI. */
    static int probe() {
        final int fd = AmdCalls.DRIVER.open(PATH);
        if (fd < 0) {
            return fd;
        }
        final int abi = new PatchedKfdControl(fd, 0, true, WATCHDOG_DEFAULT_MS).abi();
        AmdCalls.close(fd);
        return abi == ABI ? 0 : abi;
    }

    /** The kernel's state of a GPU; null if it does not know that GPU. */
    static GpuState state(final int gpuId) {
        final int fd = AmdCalls.DRIVER.open(PATH);
        if (fd < 0) {
            return null;
        }
        final ByteBuffer gpu = ByteBuffer.allocateDirect(Layouts.KfdGpu.SIZE).order(ByteOrder.nativeOrder());
        GpuState found = null;
        for (int i = 0; i < MAX_GPUS && found == null; i++) {
            gpu.putInt(Layouts.KfdGpu.INDEX_OFFSET, i);
            if (AmdCalls.DRIVER.ioctl(fd, Layouts.KFD_IOC_GPU, BufferUtil.address(gpu)) < 0) {
                break;
            }
            if (gpu.getInt(Layouts.KfdGpu.GPU_ID_OFFSET) == gpuId) {
                found = new GpuState(gpuId, gpu.getInt(Layouts.KfdGpu.MODE_OFFSET),
                    gpu.getInt(Layouts.KfdGpu.PREEMPTION_OFFSET), gpu.getInt(Layouts.KfdGpu.REASON_OFFSET),
                    gpu.getLong(Layouts.KfdGpu.REMAPS_OFFSET), gpu.getLong(Layouts.KfdGpu.LAST_NS_OFFSET),
                    gpu.getLong(Layouts.KfdGpu.MAX_NS_OFFSET));
            }
        }
        AmdCalls.close(fd);
        return found;
    }

    private int abi() {
        final int rc = AmdCalls.DRIVER.ioctl(fd, Layouts.KFD_IOC_INFO, BufferUtil.address(argument));
        return rc < 0 ? rc : argument.getInt(Layouts.KfdInfo.ABI_OFFSET);
    }

    private int arm() {
        argument.putInt(Layouts.KfdWatchdog.PERIOD_MS_OFFSET, periodMs).putInt(Layouts.KfdWatchdog.LAPSES_OFFSET, 0);
        kickedNs = System.nanoTime();
        return AmdCalls.DRIVER.ioctl(fd, Layouts.KFD_IOC_WATCHDOG, BufferUtil.address(argument));
    }

    @Override
    public ControlInterface controlInterface() {
        return ControlInterface.KFD;
    }

    @Override
    public boolean coversFutureQueues() {
        return true;
    }

    @Override
    public int batchMax() {
        return MAX_BATCH;
    }

    @Override
    public void apply(final AmdProcess[] processes, final int count, final boolean disable) {
        tookNs = 0;
        for (int from = 0; from < count; from += MAX_BATCH) {
            batch(processes, from, Math.min(count, from + MAX_BATCH), disable);
        }
    }

    private void batch(final AmdProcess[] processes, final int from, final int to, final boolean disable) {
        int rc = call(processes, from, to, disable);
        if (rc == -Errno.ESTALE) {   // our holds have ended, those of other batches too
            lapsed = true;
            held.clear();
            rc = arm();
            rc = rc < 0 ? rc : call(processes, from, to, disable);
        }
        for (int i = from; i < to; i++) {
            int result = rc < 0 ? rc : entries.getInt((i - from) * ENTRY_BYTES + Layouts.KfdEntry.RESULT_OFFSET);
            if (!disable && (result == -Errno.ENOENT || result == -Errno.ESRCH)) {
                result = 0;   // there is no such hold, so it is enabled
            }
            processes[i].result(result, "");
            if (disable) {
                held.add(processes[i]);
            } else if (result == 0) {
                held.remove(processes[i]);
            }
        }
    }

    private int call(final AmdProcess[] processes, final int from, final int to, final boolean disable) {
        for (int i = from; i < to; i++) {
            final int at = (i - from) * ENTRY_BYTES;
            entries.putInt(at + Layouts.KfdEntry.PID_OFFSET, processes[i].pid())
                .putInt(at + Layouts.KfdEntry.OP_OFFSET, disable ? Layouts.KFD_HOLD : Layouts.KFD_RELEASE)
                .putLong(at + Layouts.KfdEntry.START_TICKS_OFFSET, processes[i].startTicks())
                .putInt(at + Layouts.KfdEntry.GPU_ID_OFFSET, gpuId)
                .putInt(at + Layouts.KfdEntry.QUEUE_ID_OFFSET, Layouts.KFD_ALL_QUEUES)
                .putInt(at + Layouts.KfdEntry.FLAGS_OFFSET, disable && computeOnly ? Layouts.KFD_COMPUTE_ONLY : 0)
                .putInt(at + Layouts.KfdEntry.RESULT_OFFSET, 0)
                .putInt(at + Layouts.KfdEntry.N_QUEUES_OFFSET, 0).putInt(at + Layouts.KfdEntry.N_HELD_OFFSET, 0);
        }
        argument.putLong(Layouts.KfdApply.ENTRIES_OFFSET, BufferUtil.address(entries))
            .putInt(Layouts.KfdApply.N_ENTRIES_OFFSET, to - from).putInt(Layouts.KfdApply.FLAGS_OFFSET, 0)
            .putInt(Layouts.KfdApply.N_FAILED_OFFSET, 0).putInt(Layouts.KfdApply.RESERVED_OFFSET, 0)
            .putLong(Layouts.KfdApply.TOOK_NS_OFFSET, 0);
        kickedNs = System.nanoTime();   // the call re-arms the watchdog
        final int rc = AmdCalls.DRIVER.ioctl(fd, Layouts.KFD_IOC_APPLY, BufferUtil.address(argument));
        tookNs += rc < 0 ? 0 : argument.getLong(Layouts.KfdApply.TOOK_NS_OFFSET);
        return rc;
    }

    @Override
    public long tookNs() {
        return tookNs;
    }

    /** The enforcer re-arms the watchdog, so it expires if the enforcer hangs. Dispatcher: {@link HeldPayload}. */
    @Override
    public boolean heartbeat() {
        if (System.nanoTime() - kickedNs > (long) periodMs * MS_IN_NS / KICKS_PER_PERIOD) {
            kickedNs = System.nanoTime();
            if (AmdCalls.DRIVER.ioctl(fd, Layouts.KFD_IOC_KICK, 0) == -Errno.ESTALE) {
                lapsed = true;
                held.clear();
                arm();
            }
        }
        final boolean told = lapsed;
        lapsed = false;
        return told;
    }

    @Override
    public byte[] heldPayload() {
        return payload;
    }

    @Override
    public void release(final AmdProcess process) {
        if (held.contains(process)) {
            apply(new AmdProcess[] {process}, 1, false);
            held.remove(process);
        }
    }

    @Override
    public void close() {
        AmdCalls.close(fd);   // releases all holds
    }
}

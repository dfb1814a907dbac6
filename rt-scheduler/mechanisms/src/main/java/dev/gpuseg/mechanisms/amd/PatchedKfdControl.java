/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
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
    static final String PATH = "/dev/gpuseg-kfd";
    static final int ABI = 1;
    /** Property: the kernel's watchdog over our holds, ms. */
    static final String WATCHDOG_PROPERTY = "gpuseg.amd.watchdog";
    static final int WATCHDOG_DEFAULT_MS = 100;

    /**
     * The kernel's state of one GPU: mode 1 no-hws, 2 hws, 3 mes; preemption 0 none, 1 drain, 2 save; reason 1 =
     * NO_HWS on gfx11 or later; runlists written because of holds (hws); the last and the longest change, ns.
     */
    record GpuState(int gpuId, int mode, int preemption, int reason, long remaps, long lastNs, long maxNs) {
    }

    private static final long INFO = 0x80184740L;
    private static final long GPU = 0xc0504741L;
    private static final long APPLY = 0xc0204742L;
    private static final long WATCHDOG = 0xc0084743L;
    private static final long KICK = 0x4744L;
    private static final int MAX_BATCH = 64;
    private static final int MAX_GPUS = 256;
    private static final int ENTRY_BYTES = 40;
    private static final int HOLD = 1;
    private static final int RELEASE = 2;
    private static final int COMPUTE_ONLY = 1;
    private static final int ALL_QUEUES = -1;
    private static final int KICKS_PER_PERIOD = 5;
    private static final int MS_IN_NS = 1_000_000;

    private final int fd;
    private final int gpuId;
    private final boolean computeOnly;
    private final int periodMs;
    private final ByteBuffer argument = ByteBuffer.allocateDirect(80).order(ByteOrder.nativeOrder());
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
        final ByteBuffer gpu = ByteBuffer.allocateDirect(80).order(ByteOrder.nativeOrder());
        GpuState found = null;
        for (int i = 0; i < MAX_GPUS && found == null; i++) {
            gpu.putInt(0, i);
            if (AmdCalls.DRIVER.ioctl(fd, GPU, BufferUtil.address(gpu)) < 0) {
                break;
            }
            if (gpu.getInt(4) == gpuId) {
                found = new GpuState(gpuId, gpu.getInt(8), gpu.getInt(12), gpu.getInt(16), gpu.getLong(56),
                    gpu.getLong(64), gpu.getLong(72));
            }
        }
        AmdCalls.close(fd);
        return found;
    }

    private int abi() {
        final int rc = AmdCalls.DRIVER.ioctl(fd, INFO, BufferUtil.address(argument));
        return rc < 0 ? rc : argument.getInt(0);
    }

    private int arm() {
        argument.putInt(0, periodMs).putInt(Integer.BYTES, 0);
        kickedNs = System.nanoTime();
        return AmdCalls.DRIVER.ioctl(fd, WATCHDOG, BufferUtil.address(argument));
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
            int result = rc < 0 ? rc : entries.getInt((i - from) * ENTRY_BYTES + 28);
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
            entries.putInt(at, processes[i].pid()).putInt(at + 4, disable ? HOLD : RELEASE);
            entries.putLong(at + 8, processes[i].startTicks());
            entries.putInt(at + 16, gpuId).putInt(at + 20, ALL_QUEUES);
            entries.putInt(at + 24, disable && computeOnly ? COMPUTE_ONLY : 0).putInt(at + 28, 0);
            entries.putLong(at + 32, 0);
        }
        argument.putLong(0, BufferUtil.address(entries)).putInt(8, to - from).putInt(12, 0);
        argument.putLong(16, 0).putLong(24, 0);
        kickedNs = System.nanoTime();   // the call re-arms the watchdog
        final int rc = AmdCalls.DRIVER.ioctl(fd, APPLY, BufferUtil.address(argument));
        tookNs += rc < 0 ? 0 : argument.getLong(24);
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
            if (AmdCalls.DRIVER.ioctl(fd, KICK, 0) == -Errno.ESTALE) {
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

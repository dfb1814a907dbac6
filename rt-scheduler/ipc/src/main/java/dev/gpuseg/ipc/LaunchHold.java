/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Futex;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The word by which the launches of one client on one GPU are held: {@code hold} of {@code struct gpuseg_session}. It
 * is honoured by programs under {@code gpuseg exec}. It has a mapping of its own, so that it may outlive the
 * {@link Session} that it was made from.
 *
 * <p>W: the enforcer of that GPU; one thread at a time uses an instance. The client can overwrite the word, which
 * concerns only itself; it is never read back.
 */
public final class LaunchHold implements AutoCloseable {
    private static final int WAKE_ALL = Integer.MAX_VALUE;

    private final MappedPage page;
    private final UnsafeBuffer buffer;
    private final int gpu;
    private final int at;

    private LaunchHold(final MappedPage page, final int gpu) {
        this.page = page;
        buffer = page.buffer();
        this.gpu = gpu;
        at = Abi.Session.HOLD_OFFSET + gpu * Integer.BYTES;
    }

    /**
     * Maps the word.
     *
     * @param session of the client; not closed yet
     * @param gpu     index of the GPU, 0..15
     * @return the word, as it stands; the caller closes it
     * @throws IllegalArgumentException if there is no such GPU
     */
    public static LaunchHold of(final Session session, final int gpu) {
        if (gpu < 0 || gpu >= Abi.GPUS_MAX) {
            throw new IllegalArgumentException("GPU " + gpu + " is out of range; use 0.." + (Abi.GPUS_MAX - 1));
        }
        return new LaunchHold(MappedPage.open(Descriptor.path(session.fd()), Abi.SESSION_BYTES, true), gpu);
    }

    /** From here on launches wait. Those that have passed their entry are not affected. */
    public void hold() {
        buffer.putIntOrdered(at, Abi.HOLD_WAIT);   // release; pairs with the acquire in held.c: waits
    }

    /** Launches go on: one system call, whether any waits or not. */
    public void go() {
        buffer.putIntOrdered(at, Abi.HOLD_GO);
        Futex.wake(buffer.addressOffset() + at, WAKE_ALL);
    }

    /**
     * Whether work of the client on that GPU is in flight, as far as it says. Not trustworthy.
     *
     * @return false also if the client says nothing
     */
    public boolean isInFlight() {
        for (int slot = 0; slot < Abi.SLOTS_MAX; slot++) {
            final int of = Abi.Session.SIZE + slot * Abi.Slot.SIZE;
            // acquire; pairs with the release in kernels.c: kernels_idle
            if (buffer.getIntVolatile(of + Abi.Slot.IN_FLIGHT_OFFSET) != 0
                && buffer.getIntVolatile(of + Abi.Slot.TASK_ID_OFFSET) != 0
                && buffer.getInt(of + Abi.Slot.GPU_OFFSET) == gpu) {
                return true;
            }
        }
        return false;
    }

    /** Unmaps it. The word stays as it is. */
    @Override
    public void close() {
        page.close();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Futex;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.lang.invoke.VarHandle;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Memory shared with one client: {@code struct gpuseg_session} and its slots, in a sealed memory file (it cannot
 * shrink, so access cannot fault). The client may overwrite all of it; the daemon reads back {@code waiting},
 * {@code wants_expected}, and what the client says of its kernels.
 *
 * <p>Slot words and {@code poisoned} are written by the dispatcher thread, {@code prepared_cycle} and
 * {@code roll_generation} by the housekeeping thread, the rest once before it is sent to the client.
 */
public final class Session implements AutoCloseable {
    private static final int SLOTS = Abi.Session.SIZE;
    private static final int WAKE_ALL = Integer.MAX_VALUE;

    private final int fd;
    private final MappedPage page;
    private final UnsafeBuffer buffer;
    private long freeSlots = -1L; // one bit per slot; dispatcher thread
    private int rollGeneration; // housekeeping thread
    private long wakes; // dispatcher thread

    private Session(final int fd, final MappedPage page) {
        this.fd = fd;
        this.page = page;
        buffer = page.buffer();
    }

    /**
     * Makes the session of one client.
     *
     * @param clientId      its id
     * @param incarnationNs the daemon's incarnation
     * @return the session, all slots free
     */
    public static Session create(final int clientId, final long incarnationNs) {
        final int fd = Descriptor.createSealedMemory("gpuseg-session-" + clientId, Abi.SESSION_BYTES);
        final Session session;
        try {
            session = new Session(fd, MappedPage.open(Descriptor.path(fd), Abi.SESSION_BYTES, true));
        } catch (final RuntimeException e) {
            Descriptor.close(fd);
            throw e;
        }
        final UnsafeBuffer buffer = session.buffer;
        buffer.putInt(Abi.Session.MAGIC_OFFSET, Abi.SESSION_MAGIC);
        buffer.putInt(Abi.Session.SIZE_OFFSET, Abi.SESSION_BYTES);
        buffer.putInt(Abi.Session.HEADER_SIZE_OFFSET, Abi.Session.SIZE);
        buffer.putInt(Abi.Session.SLOT_SIZE_OFFSET, Abi.Slot.SIZE);
        buffer.putInt(Abi.Session.SLOT_COUNT_OFFSET, Abi.SLOTS_MAX);
        buffer.putInt(Abi.Session.CLIENT_ID_OFFSET, clientId);
        buffer.putInt(Abi.Session.DAEMON_PID_OFFSET, ProcessStatus.pid());
        buffer.putLong(Abi.Session.INCARNATION_OFFSET, incarnationNs);
        buffer.putLong(Abi.Session.PREPARED_CYCLE_OFFSET, -1);
        buffer.putIntOrdered(Abi.Session.VERSION_OFFSET, Abi.ABI_VERSION); // release, last: the session is complete
        return session;
    }

    private static int slot(final int slot) {
        if (slot < 0 || slot >= Abi.SLOTS_MAX) {
            throw new IllegalArgumentException("slot " + slot + " is out of range; use 0.." + (Abi.SLOTS_MAX - 1));
        }
        return SLOTS + slot * Abi.Slot.SIZE;
    }

    /** The descriptor to send to the client; stays owned by this object. */
    public int fd() {
        return fd;
    }

    /**
     * Takes a free slot. Its words are cleared, except the ticket's high-water mark in the grant word.
     *
     * @return 0 .. 63, or -1 if the client has as many open tasks as it may
     */
    public int allocateSlot() {
        if (freeSlots == 0) {
            return -1;
        }
        final int slot = Long.numberOfTrailingZeros(freeSlots);
        freeSlots &= ~(1L << slot);
        buffer.setMemory(slot(slot), Abi.Slot.SIZE, (byte) 0);
        return slot;
    }

    /**
     * Frees a slot: no task, no pre-grant, state idle. The grant word is left as it is.
     *
     * @param slot as returned by {@link #allocateSlot}
     */
    public void releaseSlot(final int slot) {
        taskId(slot, 0);
        pregrant(slot, false);
        state(slot, Abi.SEGMENT_IDLE);
        freeSlots |= 1L << slot;
    }

    /**
     * Answers a begin. Release store, full fence, then one system call if the client waits.
     *
     * @param slot    the task's slot
     * @param ticket  the begin's ticket
     * @param verdict {@code Abi.VERDICT_*}
     */
    public void grant(final int slot, final long ticket, final int verdict) {
        final int at = slot(slot);
        // release; pairs with the acquire in the client's wait
        buffer.putLongOrdered(at + Abi.Slot.GRANT_OFFSET, ticket << Abi.GRANT_SHIFT | verdict);
        wakeIfWaiting(at);
    }

    /**
     * Tells the client that a begin of the task is expected, if it asked for that: one system call. It asks by touch.c
     * under {@code gpuseg exec}, else by {@code gpuseg_expected}.
     *
     * @param slot the task's slot
     */
    public void expected(final int slot) {
        final int at = slot(slot);
        if (buffer.getIntVolatile(at + Abi.Slot.WANTS_EXPECTED_OFFSET) == 0) {
            return;   // one that asks just now looks again by itself: touch.c
        }
        final int word = at + Abi.Slot.EXPECTED_OFFSET;
        buffer.putIntOrdered(word, buffer.getIntOpaque(word) + 1);   // release; pairs with the acquire in touch.c
        Futex.wake(buffer.addressOffset() + word, WAKE_ALL);
        wakes++;
    }

    private void wakeIfWaiting(final int at) {
        // Dekker: the client stores `waiting`, fences, then loads the grant word again before it sleeps
        VarHandle.fullFence();
        if (buffer.getIntVolatile(at + Abi.Slot.WAITING_OFFSET) != 0) {
            Futex.wake(buffer.addressOffset() + at + Abi.Slot.GRANT_OFFSET, WAKE_ALL);
            wakes++;
        }
    }

    /**
     * Sets whether the next begin of the task returns at once.
     *
     * @param slot      the task's slot
     * @param pregrant  true if begin need not wait
     */
    public void pregrant(final int slot, final boolean pregrant) {
        buffer.putIntOrdered(slot(slot) + Abi.Slot.PREGRANT_OFFSET, pregrant ? 1 : 0);
    }

    /**
     * Shows the segment's state to tools.
     *
     * @param slot  the task's slot
     * @param state {@code Abi.SEGMENT_*}
     */
    public void state(final int slot, final int state) {
        buffer.putIntOpaque(slot(slot) + Abi.Slot.STATE_OFFSET, state);
    }

    /**
     * Names the GPU of a slot; before {@link #taskId}.
     *
     * @param slot the task's slot
     * @param gpu  index of the GPU
     */
    public void gpu(final int slot, final int gpu) {
        buffer.putInt(slot(slot) + Abi.Slot.GPU_OFFSET, gpu);
    }

    /**
     * Publishes the task of a slot, last of all its words.
     *
     * @param slot   the task's slot
     * @param taskId its id, 0 = none
     */
    public void taskId(final int slot, final int taskId) {
        buffer.putIntOrdered(slot(slot) + Abi.Slot.TASK_ID_OFFSET, taskId);
    }

    /**
     * Counts a preemption.
     *
     * @param slot the task's slot
     */
    public void countPreemption(final int slot) {
        increment(slot(slot) + Abi.Slot.PREEMPTIONS_OFFSET);
    }

    /**
     * Counts an overrun of the budget.
     *
     * @param slot the task's slot
     */
    public void countOverrun(final int slot) {
        increment(slot(slot) + Abi.Slot.OVERRUNS_OFFSET);
    }

    /**
     * Counts a missed deadline.
     *
     * @param slot the task's slot
     */
    public void countMiss(final int slot) {
        increment(slot(slot) + Abi.Slot.MISSES_OFFSET);
    }

    private void increment(final int offset) {
        buffer.putLongOpaque(offset, buffer.getLong(offset) + 1);
    }

    /**
     * Whether work of the slot's program is in flight, as far as it says; only programs under {@code gpuseg exec} do.
     *
     * @param slot the task's slot
     * @return false also if the program says nothing
     */
    public boolean isInFlight(final int slot) {
        // acquire; pairs with the release in kernels.c: kernels_idle
        return buffer.getIntVolatile(slot(slot) + Abi.Slot.IN_FLIGHT_OFFSET) != 0;
    }

    /**
     * Since when none is, if {@link #isInFlight} said so. Not trustworthy.
     *
     * @param slot the task's slot
     * @return CLOCK_MONOTONIC ns, 0 if there never was any
     */
    public long drainedNs(final int slot) {
        return buffer.getLongOpaque(slot(slot) + Abi.Slot.DRAINED_NS_OFFSET);
    }

    /**
     * How long the longest kernels of the slot's program take lately. Not trustworthy.
     *
     * @param slot the task's slot
     * @return ns, 0 if it is not known
     */
    public long kernelNs(final int slot) {
        return buffer.getLongOpaque(slot(slot) + Abi.Slot.KERNEL_NS_OFFSET);
    }

    /**
     * What its kernels do to the GPU for most of their time. Not trustworthy.
     *
     * @param slot the task's slot
     * @return {@code Abi.KERNELS_*}, or any other number
     */
    public int kernelClass(final int slot) {
        return buffer.getIntOpaque(slot(slot) + Abi.Slot.KERNEL_CLASS_OFFSET);
    }

    /**
     * How much of the GPU's room for blocks its kernels use. Not trustworthy.
     *
     * @param slot the task's slot
     * @return per cent
     */
    public int kernelPercent(final int slot) {
        return buffer.getIntOpaque(slot(slot) + Abi.Slot.KERNEL_PERCENT_OFFSET);
    }

    /**
     * Tells the client that it is dropped and wakes all its waiting threads with {@code VERDICT_POISONED}, keeping
     * their tickets.
     *
     * @param code {@code Abi.POISON_*}
     */
    public void poison(final int code) {
        buffer.putIntOrdered(Abi.Session.POISONED_OFFSET, code);
        for (int slot = 0; slot < Abi.SLOTS_MAX; slot++) {
            final int at = slot(slot);
            final long grant = buffer.getLong(at + Abi.Slot.GRANT_OFFSET);
            buffer.putLongOrdered(at + Abi.Slot.GRANT_OFFSET,
                grant >>> Abi.GRANT_SHIFT << Abi.GRANT_SHIFT | Abi.VERDICT_POISONED);
            wakeIfWaiting(at);
        }
    }

    /**
     * Announces the next cycle of the client's queue, whose file is complete. Housekeeping thread.
     *
     * @param cycle the cycle
     */
    public void preparedCycle(final long cycle) {
        // release; pairs with the roll thread's acquire
        buffer.putLongOrdered(Abi.Session.PREPARED_CYCLE_OFFSET, cycle);
        buffer.putIntVolatile(Abi.Session.ROLL_GENERATION_OFFSET, ++rollGeneration);
        Futex.wake(buffer.addressOffset() + Abi.Session.ROLL_GENERATION_OFFSET, WAKE_ALL);
    }

    /** How often a client had to be woken by a system call; count. */
    public long wakes() {
        return wakes;
    }

    UnsafeBuffer buffer() {
        return buffer;
    }

    /** Unmaps and closes; the client's own mapping stays valid. */
    @Override
    public void close() {
        page.close();
        Descriptor.close(fd);
    }
}

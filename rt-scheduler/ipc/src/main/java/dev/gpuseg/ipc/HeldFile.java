/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.FileAccess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The contexts that are disabled, or have changed time slices, at this moment: {@code struct gpuseg_held}. An entry is
 * written before a context is disabled and cleared after it is enabled. So the next daemon, the watchdog or
 * {@code gpuseg release} can enable what a dead daemon left disabled. The file survives daemons but not a reboot, and
 * neither does the state that it describes.
 *
 * <p>{@link #hold} and {@link #release} may be called by several enforcer threads; a held entry belongs to the thread
 * that took it.
 */
public final class HeldFile implements AutoCloseable {
    /** {@link #hold}: all entries are taken. */
    public static final int FULL = -1;

    private static final int BYTES = Abi.Held.SIZE + Abi.HELD_MAX * Abi.HeldEntry.SIZE;

    private final MappedPage page;
    private final UnsafeBuffer buffer;
    /** Entries taken but perhaps not yet published; guarded by this. */
    private final boolean[] taken = new boolean[Abi.HELD_MAX];

    private HeldFile(final MappedPage page) {
        this.page = page;
        buffer = page.buffer();
    }

    /** Receives one held context. */
    public interface Visitor {
        /**
         * One entry.
         *
         * @param index      for {@link HeldFile#release}
         * @param mechanism  {@code Abi.MECHANISM_*}
         * @param pid        the process whose context is disabled
         * @param startTicks its start, 0 = not known
         * @param gpu        index of the GPU
         * @param contextId  the daemon's number for it
         * @param payload    what the mechanism needs to enable it (a copy)
         */
        void onHeld(int index, int mechanism, int pid, long startTicks, int gpu, int contextId, byte[] payload);
    }

    /**
     * Maps the file; creates it (0600, space reserved) if it is missing.
     *
     * @param path where
     * @return the file, with the entries that earlier daemons left
     * @throws IllegalStateException if it is of another version
     */
    public static HeldFile openOrCreate(final Path path) {
        if (!Files.exists(path)) {
            final Path temporary = path.resolveSibling(path.getFileName() + ".new");
            RuntimeDirectory.deleteTree(temporary);
            final HeldFile held = new HeldFile(MappedPage.create(temporary, BYTES));
            Descriptor.allocate(temporary, BYTES);
            FileAccess.chmod(temporary, 0600);
            held.buffer.putInt(Abi.Held.MAGIC_OFFSET, Abi.HELD_MAGIC);
            held.buffer.putInt(Abi.Held.ENTRY_SIZE_OFFSET, Abi.HeldEntry.SIZE);
            held.buffer.putInt(Abi.Held.ENTRY_COUNT_OFFSET, Abi.HELD_MAX);
            held.buffer.putIntOrdered(Abi.Held.VERSION_OFFSET, Abi.ABI_VERSION); // release, last
            try {
                Files.move(temporary, path);
            } catch (final IOException e) {
                throw new UncheckedIOException(path + " cannot be created: " + e.getMessage(), e);
            }
            return held;
        }
        final HeldFile held = new HeldFile(MappedPage.open(path, BYTES, true));
        final int version = held.buffer.getIntVolatile(Abi.Held.VERSION_OFFSET);
        final int magic = held.buffer.getInt(Abi.Held.MAGIC_OFFSET);
        if (magic != Abi.HELD_MAGIC || version >>> 16 != Abi.ABI_MAJOR
            || held.buffer.getInt(Abi.Held.ENTRY_SIZE_OFFSET) != Abi.HeldEntry.SIZE
            || held.buffer.getInt(Abi.Held.ENTRY_COUNT_OFFSET) != Abi.HELD_MAX) {
            held.close();
            throw new IllegalStateException(path + ": magic 0x" + Integer.toHexString(magic) + ", version 0x"
                + Integer.toHexString(version) + " is not a held file of version " + Abi.ABI_MAJOR
                + "; run `gpuseg release` of the version that wrote it, then delete it");
        }
        for (int i = 0; i < Abi.HELD_MAX; i++) {
            held.taken[i] = held.buffer.getIntVolatile(entry(i)) != Abi.HELD_FREE;
        }
        return held;
    }

    private static int entry(final int index) {
        return Abi.Held.SIZE + index * Abi.HeldEntry.SIZE;
    }

    /**
     * Records a context before it is disabled.
     *
     * @param mechanism  {@code Abi.MECHANISM_*}
     * @param pid        the process
     * @param startTicks its start, 0 = not checked
     * @param gpu        index of the GPU
     * @param contextId  the daemon's number for it
     * @param sinceNs    now, CLOCK_MONOTONIC ns
     * @param payload    what the mechanism needs to enable it, at most {@code Abi.HELD_PAYLOAD} bytes
     * @return index for {@link #release}, or {@link #FULL}
     */
    public int hold(final int mechanism, final int pid, final long startTicks, final int gpu, final int contextId,
        final long sinceNs, final byte[] payload) {
        return put(Abi.HELD_DISABLED, mechanism, pid, startTicks, gpu, contextId, sinceNs, payload);
    }

    /**
     * Records a context before its time slices are changed.
     *
     * @param mechanism  {@code Abi.MECHANISM_*}
     * @param pid        the process
     * @param startTicks its start, 0 = not checked
     * @param gpu        index of the GPU
     * @param contextId  the daemon's number for it
     * @param sinceNs    now, CLOCK_MONOTONIC ns
     * @param payload    what the mechanism needs to restore them, at most {@code Abi.HELD_PAYLOAD} bytes
     * @return index for {@link #release}, or {@link #FULL}
     */
    public int noteTimeslice(final int mechanism, final int pid, final long startTicks, final int gpu,
        final int contextId, final long sinceNs, final byte[] payload) {
        return put(Abi.HELD_TIMESLICE, mechanism, pid, startTicks, gpu, contextId, sinceNs, payload);
    }

    private int put(final int state, final int mechanism, final int pid, final long startTicks, final int gpu,
        final int contextId, final long sinceNs, final byte[] payload) {
        if (payload.length > Abi.HELD_PAYLOAD) {
            throw new IllegalArgumentException("held payload has " + payload.length + " bytes, at most "
                + Abi.HELD_PAYLOAD + " fit");
        }
        final int index = take();
        if (index == FULL) {
            return FULL;
        }
        final int at = entry(index);
        buffer.putInt(at + Abi.HeldEntry.MECHANISM_OFFSET, mechanism);
        buffer.putInt(at + Abi.HeldEntry.PID_OFFSET, pid);
        buffer.putInt(at + Abi.HeldEntry.GPU_OFFSET, gpu);
        buffer.putLong(at + Abi.HeldEntry.PID_START_TICKS_OFFSET, startTicks);
        buffer.putInt(at + Abi.HeldEntry.CONTEXT_ID_OFFSET, contextId);
        buffer.putInt(at + Abi.HeldEntry.PAYLOAD_SIZE_OFFSET, payload.length);
        buffer.putLong(at + Abi.HeldEntry.SINCE_NS_OFFSET, sinceNs);
        buffer.putBytes(at + Abi.HeldEntry.PAYLOAD_OFFSET, payload);
        // release, last; pairs with the acquire of the watchdog and of `gpuseg release`
        buffer.putIntOrdered(at + Abi.HeldEntry.STATE_OFFSET, state);
        return index;
    }

    private synchronized int take() {
        for (int i = 0; i < taken.length; i++) {
            if (!taken[i]) {
                taken[i] = true;
                return i;
            }
        }
        return FULL;
    }

    /**
     * Clears an entry after its context was enabled.
     *
     * @param index as returned by {@link #hold} or seen by {@link #forEach}
     */
    public void release(final int index) {
        buffer.putIntOrdered(entry(index) + Abi.HeldEntry.STATE_OFFSET, Abi.HELD_FREE);
        synchronized (this) {
            taken[index] = false;
        }
    }

    /**
     * Visits all held contexts.
     *
     * @param visitor called for each on this thread; may call {@link #release}
     */
    public void forEach(final Visitor visitor) {
        for (int i = 0; i < Abi.HELD_MAX; i++) {
            final int at = entry(i);
            if (buffer.getIntVolatile(at + Abi.HeldEntry.STATE_OFFSET) == Abi.HELD_DISABLED) {
                final int size = buffer.getInt(at + Abi.HeldEntry.PAYLOAD_SIZE_OFFSET);
                final byte[] payload = new byte[Math.max(0, Math.min(size, Abi.HELD_PAYLOAD))];
                buffer.getBytes(at + Abi.HeldEntry.PAYLOAD_OFFSET, payload);
                visitor.onHeld(i, buffer.getInt(at + Abi.HeldEntry.MECHANISM_OFFSET),
                    buffer.getInt(at + Abi.HeldEntry.PID_OFFSET),
                    buffer.getLong(at + Abi.HeldEntry.PID_START_TICKS_OFFSET),
                    buffer.getInt(at + Abi.HeldEntry.GPU_OFFSET), buffer.getInt(at + Abi.HeldEntry.CONTEXT_ID_OFFSET),
                    payload);
            }
        }
    }

    /** How many contexts are held. 0 .. {@code Abi.HELD_MAX}. */
    public int count() {
        return count(Abi.HELD_DISABLED);
    }

    /** How many contexts have changed time slices. 0 .. {@code Abi.HELD_MAX}. */
    public int timeslices() {
        return count(Abi.HELD_TIMESLICE);
    }

    private int count(final int state) {
        int n = 0;
        for (int i = 0; i < Abi.HELD_MAX; i++) {
            if (buffer.getIntVolatile(entry(i) + Abi.HeldEntry.STATE_OFFSET) == state) {
                n++;
            }
        }
        return n;
    }

    @Override
    public void close() {
        page.close();
    }
}

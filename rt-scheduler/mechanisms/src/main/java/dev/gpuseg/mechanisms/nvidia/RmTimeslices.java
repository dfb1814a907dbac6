/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Layouts;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Sets the time slices of compute work, and restores those that a process had before. What a process had is kept in
 * its {@link WatchedProcess#ownTimeslices}. Under the mechanism's lock.
 */
final class RmTimeslices {
    private static final int VERSION = Layouts.RM_TIMESLICES_VERSION;
    private static final int HEADER_BYTES = Layouts.RmTimeslices.TSGS_OFFSET;
    private static final int ENTRY_BYTES = Layouts.RmOwnTimeslice.SIZE;
    private static final int ENTRIES_MAX = Layouts.RM_TIMESLICES_MAX;
    private static final int US_IN_NS = 1_000;
    private static final byte[] NOTHING = new byte[0];

    /** What a channel group had before it was changed, and how it was reached last. */
    record Own(RmContext.Tsg tsg, long us) {
    }

    private final RmControl rm;
    private final Consumer<String> failed;

    /** {@code failed} receives why an operation failed, one line. */
    RmTimeslices(final RmControl rm, final Consumer<String> failed) {
        this.rm = rm;
        this.failed = failed;
    }

    /**
     * Of all compute channel groups of a context. What has it already is not set again: RM takes all its locks for
     * that, and the GPU stops what runs. False if RM refused one of them.
     */
    boolean set(final WatchedProcess of, final RmContext context, final long timesliceNs) {
        takeNew(of);
        if (of.sliced == context && of.slicedNs == timesliceNs) {
            return true;
        }
        boolean done = true;
        for (final RmContext.Tsg tsg : context.tsgs()) {
            done &= !tsg.compute() || set(of.ownTimeslices, tsg, timesliceNs);
        }
        of.sliced = done ? context : null;
        of.slicedNs = timesliceNs;
        return done;
    }

    /**
     * Restores those that were changed. Those that are gone have nothing to restore: their process has ended, or it has
     * closed or freed them. False if RM refused one of them.
     *
     * @param context what the process consists of now, null if nothing is known of it at the moment
     */
    boolean restore(final WatchedProcess of, final RmContext context) {
        takeNew(of);
        of.sliced = null;
        if (context != null) {
            context.tsgs().forEach(tsg -> reach(of.ownTimeslices, tsg));
        }
        boolean done = true;
        final Iterator<Own> changed = of.ownTimeslices.values().iterator();
        while (changed.hasNext()) {
            final Own own = changed.next();
            final int status = own.tsg.file().isOpen() ? set(own.tsg, own.us) : RmStatus.OK;
            if (status == RmStatus.OK || RmClient.meansAbsent(status)) {
                changed.remove();
            } else {
                done = refused(own.us, status);
            }
        }
        return done;
    }

    /** What a tool without this daemon's memory needs to restore them: {@code struct gpuseg_rm_timeslices}. */
    byte[] payload(final WatchedProcess of, final RmContext context) {
        takeNew(of);
        final ByteBuffer b = ByteBuffer.allocate(HEADER_BYTES + ENTRY_BYTES * ENTRIES_MAX)
            .order(ByteOrder.LITTLE_ENDIAN);
        int count = 0;
        for (final RmContext.Tsg tsg : context.tsgs()) {
            final long own = tsg.compute() && count < ENTRIES_MAX ? ownUs(of.ownTimeslices, tsg) : 0;
            if (own > 0) {
                final int at = HEADER_BYTES + count * ENTRY_BYTES;
                b.putInt(at + Layouts.RmOwnTimeslice.FD_OFFSET, tsg.file().remoteFd())
                    .putInt(at + Layouts.RmOwnTimeslice.CLIENT_OFFSET, tsg.client())
                    .putInt(at + Layouts.RmOwnTimeslice.TSG_OFFSET, tsg.handle())
                    .putInt(at + Layouts.RmOwnTimeslice.OWN_US_OFFSET, (int) Math.min(own, Integer.MAX_VALUE));
                count++;
            }
        }
        b.putInt(Layouts.RmTimeslices.VERSION_OFFSET, VERSION).putInt(Layouts.RmTimeslices.COUNT_OFFSET, count);
        return count == 0 ? NOTHING : Arrays.copyOf(b.array(), HEADER_BYTES + count * ENTRY_BYTES);
    }

    static long key(final int client, final int handle) {
        return (long) client << Integer.SIZE | handle & 0xffffffffL;
    }

    private static long key(final RmContext.Tsg tsg) {
        return key(tsg.client(), tsg.handle());
    }

    /** What the process itself has set meanwhile is its own from now on, and in effect. */
    private static void takeNew(final WatchedProcess of) {
        of.newTimeslices.forEach((key, us) -> {
            of.ownTimeslices.computeIfPresent(key, (same, own) -> new Own(own.tsg, us));
            of.sliced = null;
            of.newTimeslices.remove(key, us);   // unless it has set another one meanwhile
        });
    }

    /** What it had before it was changed, asked once; 0 if the driver does not say. */
    private long ownUs(final Map<Long, Own> known, final RmContext.Tsg tsg) {
        final Own own = reach(known, tsg);
        if (own != null) {
            return own.us;
        }
        final long us = rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle());
        if (us <= 0) {
            failed.accept("time slice cannot be read: " + RmStatus.name((int) -us));
            return 0;
        }
        known.put(key(tsg), new Own(tsg, us));
        return us;
    }

    /** The process may have another descriptor for it than before. Null if it was not changed. */
    private static Own reach(final Map<Long, Own> known, final RmContext.Tsg tsg) {
        return known.computeIfPresent(key(tsg), (key, own) -> own.tsg == tsg ? own : new Own(tsg, own.us));
    }

    private boolean set(final Map<Long, Own> known, final RmContext.Tsg tsg, final long timesliceNs) {
        if (ownUs(known, tsg) == 0) {
            return false;
        }
        final long us = Math.max(1, timesliceNs / US_IN_NS);
        final int status = set(tsg, us);
        return status == RmStatus.OK || refused(us, status);
    }

    private int set(final RmContext.Tsg tsg, final long us) {
        return rm.setTimesliceUs(tsg.file().fd(), tsg.client(), tsg.handle(), us);
    }

    /** False. */
    private boolean refused(final long us, final int status) {
        failed.accept("time slice of " + us + " us was refused: " + RmStatus.name(status));
        return false;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Sets the time slices of compute work, and restores those that a process had before. What a process had is kept in
 * its {@link WatchedProcess#ownTimeslicesUs}. Under the mechanism's lock.
 */
final class RmTimeslices {
    private static final int VERSION = 1;
    private static final int HEADER_BYTES = 16;
    private static final int ENTRY_BYTES = 16;
    private static final int ENTRIES_MAX = 123;
    private static final int US_IN_NS = 1_000;
    private static final byte[] NOTHING = new byte[0];

    private final RmControl rm;
    private final Consumer<String> failed;

    /** {@code failed} receives why an operation failed, one line. */
    RmTimeslices(final RmControl rm, final Consumer<String> failed) {
        this.rm = rm;
        this.failed = failed;
    }

    /** Of all compute channel groups of a context; 0 = what they had before. False if RM refused one of them. */
    boolean set(final WatchedProcess of, final RmContext context, final long timesliceNs) {
        boolean done = true;
        for (final RmContext.Tsg tsg : context.tsgs()) {
            done &= !tsg.compute() || set(of.ownTimeslicesUs, tsg, timesliceNs);
        }
        return done;
    }

    /** Restores those that were changed. */
    void restore(final WatchedProcess of, final RmContext context) {
        for (final RmContext.Tsg tsg : context.tsgs()) {
            if (of.ownTimeslicesUs.containsKey(key(tsg))) {
                set(of.ownTimeslicesUs, tsg, 0);
            }
        }
    }

    /** What a tool without this daemon's memory needs to restore them: {@code struct gpuseg_rm_timeslices}. */
    byte[] payload(final WatchedProcess of, final RmContext context) {
        final ByteBuffer b = ByteBuffer.allocate(HEADER_BYTES + ENTRY_BYTES * ENTRIES_MAX)
            .order(ByteOrder.LITTLE_ENDIAN);
        b.position(HEADER_BYTES);
        int count = 0;
        for (final RmContext.Tsg tsg : context.tsgs()) {
            final long own = tsg.compute() && count < ENTRIES_MAX ? ownUs(of.ownTimeslicesUs, tsg) : 0;
            if (own > 0) {
                b.putInt(tsg.file().remoteFd()).putInt(tsg.client()).putInt(tsg.handle())
                    .putInt((int) Math.min(own, Integer.MAX_VALUE));
                count++;
            }
        }
        b.putInt(0, VERSION).putInt(4, count);
        return count == 0 ? NOTHING : Arrays.copyOf(b.array(), b.position());
    }

    private static long key(final RmContext.Tsg tsg) {
        return (long) tsg.client() << Integer.SIZE | tsg.handle() & 0xffffffffL;
    }

    /** What it had before it was changed, asked once; 0 if the driver does not say. */
    private long ownUs(final Map<Long, Long> known, final RmContext.Tsg tsg) {
        final Long own = known.get(key(tsg));
        if (own != null) {
            return own;
        }
        final long us = rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle());
        if (us <= 0) {
            failed.accept("time slice cannot be read: " + RmStatus.name((int) -us));
            return 0;
        }
        known.put(key(tsg), us);
        return us;
    }

    private boolean set(final Map<Long, Long> known, final RmContext.Tsg tsg, final long timesliceNs) {
        final long own = ownUs(known, tsg);
        if (own == 0) {
            return false;
        }
        final long us = timesliceNs == 0 ? own : Math.max(1, timesliceNs / US_IN_NS);
        final int status = rm.setTimesliceUs(tsg.file().fd(), tsg.client(), tsg.handle(), us);
        if (status != RmStatus.OK) {
            failed.accept("time slice of " + us + " us was refused: " + RmStatus.name(status));
        } else if (timesliceNs == 0) {
            known.remove(key(tsg));
        }
        return status == RmStatus.OK;
    }
}

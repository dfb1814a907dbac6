/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Which of the best-effort contexts of one GPU has it while real-time tasks are open: one at a time. A real-time begin
 * then meets a single context, which has used up its time slice long ago and yields after one switch, so the begin
 * need not wait for a driver call (see {@code rt-scheduler/docs/adr/0066-turns-and-slices.md}).
 *
 * <p>The others <em>rest</em>: they are off the hardware, besides whatever the scheduler decides. The turn goes to the
 * one that had the GPU for the shortest time, ties to the lower id. It ends when best effort gets the GPU back from
 * real-time work, if it lasted {@value #LEAST_NS} ns: the next begin is then as far as it can be, and whom it meets
 * has used up its slice. Without such an occasion it ends after {@value #TURN_NS} ns. Time in which best effort does
 * not have the GPU does not count.
 *
 * <p>A turn is counted from when its context was enabled, as {@link #applied} reports it, and only while it is: slow
 * calls make turns longer, never shorter, and whoever stayed on meanwhile has it counted as had. A context that is not
 * enabled within {@value #MOST_NS} ns loses its turn. One that joins has had as much as the least of the others.
 *
 * <p>After a change that took {@value #LATE_NS} ns or more, a turn lasts {@value #LATE_FACTOR} times as long as the
 * change did, at most {@value #MOST_NS} ns: a late call may stop the kernel of a segment that began meanwhile.
 *
 * <p>All times in ns of CLOCK_MONOTONIC. Not thread-safe; starts nothing, reads no clock, and allocates nothing after
 * construction.
 */
public final class BestEffortTurns {
    /** The shortest turn, ns: a change costs two calls. */
    public static final long LEAST_NS = 10_000_000;
    /** The longest turn, ns. Source: ADR 66; a begin within a change meets two contexts, longer turns are felt. */
    public static final long TURN_NS = 40_000_000;
    /** A change that takes longer waited for others, ns. Source: ADR 66; usually it takes 0.8 to 2 ms. */
    public static final long LATE_NS = 4_000_000;
    /** The longest turn after a late change, ns. */
    public static final long MOST_NS = 1_000_000_000;
    /** Time slice of a best-effort context that takes turns, ns. Source: ADR 66; it has no other to yield to. */
    public static final long SHORT_SLICE_NS = 100_000;
    /** Time slice of the contexts of the highest real-time tasks, ns: longer than any segment. */
    public static final long LONG_SLICE_NS = 1_000_000_000;
    private static final int LATE_FACTOR = 40;
    private static final int NONE = -1;

    private final Target target;
    private final int[] member;
    private final int[] position;
    private int count;
    private final long[] hadNs;
    /** By context: disabled, as far as was reported. */
    private final boolean[] off;
    private int holder = NONE;
    /** It keeps the hardware until its disable is reported. */
    private int leaving = NONE;
    private long leftNs;
    private boolean awaitsOn;
    private long gaveNs;
    /** From when on the turn's context is to be enabled: since it has the turn, or best effort the GPU. */
    private long sinceNs;
    /** How long this turn lasts at least, since the change to it was late. */
    private long lateNs;
    private boolean paused;
    private long usedNs;
    private long countedNs;
    private long nextNs = Time.NEVER;

    /** Whose contexts rest. */
    @FunctionalInterface
    public interface Target {
        /**
         * A context begins to rest, or no longer does.
         *
         * @param contextId its id
         * @param rests     from now on
         */
        void rest(int contextId, boolean rests);
    }

    /**
     * Nobody takes part yet.
     *
     * @param contexts highest context id and one
     * @param target   told of changes, within {@link #takesPart} and {@link #decide}
     */
    public BestEffortTurns(final int contexts, final Target target) {
        this.target = target;
        member = new int[contexts];
        position = new int[contexts];
        Arrays.fill(position, NONE);
        hadNs = new long[contexts];
        off = new boolean[contexts];
    }

    /**
     * Says whether a context takes part; of effect with the next {@link #decide}.
     *
     * @param contextId its id
     * @param takesPart best effort with work; others never rest
     * @return whether that is new
     */
    public boolean takesPart(final int contextId, final boolean takesPart) {
        final int at = position[contextId];
        off[contextId] &= takesPart;   // one that is gone leaves its id to another
        if (takesPart == (at != NONE)) {
            return false;
        }
        if (takesPart) {
            hadNs[contextId] = count == 0 ? 0 : hadNs[least(NONE)];
            member[count] = contextId;
            position[contextId] = count++;
            target.rest(contextId, count > 1);
        } else {
            final int last = member[--count];
            member[at] = last;
            position[last] = at;
            position[contextId] = NONE;
            holder = holder == contextId ? NONE : holder;
            leaving = leaving == contextId ? NONE : leaving;
            target.rest(contextId, false);
        }
        return true;
    }

    /**
     * A context was reported on or off the hardware.
     *
     * @param contextId its id
     * @param on        enabled
     * @param atNs      when
     */
    public void applied(final int contextId, final boolean on, final long atNs) {
        final boolean isNews = atNs - countedNs > 0;
        if (contextId == holder && isNews) {
            charge(atNs);
        }
        off[contextId] = !on;
        if (on && contextId == holder && awaitsOn) {
            awaitsOn = false;
            final long tookNs = atNs - gaveNs;
            lateNs = tookNs < LATE_NS ? 0 : Math.min(LATE_FACTOR * tookNs, MOST_NS);
            if (!paused && isNews) {
                usedNs = 0;
            }
        } else if (!on && contextId == leaving) {
            hadNs[contextId] += Math.max(0, atNs - leftNs);
            leaving = NONE;
        }
        setNext();
    }

    /**
     * Decides whose turn it is.
     *
     * @param isTaken best effort does not have the GPU now
     * @param nowNs   now
     */
    public void decide(final boolean isTaken, final long nowNs) {
        charge(nowNs);
        final boolean givenBack = paused && !isTaken;
        paused = isTaken;
        if (givenBack) {
            sinceNs = nowNs;
        }
        if (count < 2) {
            if (count == 1 && holder != member[0]) {
                give(member[0], nowNs);
            }
        } else if (holder == NONE) {
            give(least(NONE), nowNs);
        } else if (!paused && isOver(givenBack ? Math.max(LEAST_NS, lateNs) : turnNs())) {
            give(least(holder), nowNs);
        }
        setNext();
    }

    private boolean isOver(final long lengthNs) {
        return usedNs >= lengthNs || off[holder] && countedNs - sinceNs >= MOST_NS;
    }

    private void setNext() {
        if (paused || count < 2 || holder == NONE) {
            nextNs = Time.NEVER;
        } else {
            nextNs = off[holder] ? sinceNs + MOST_NS : countedNs + turnNs() - usedNs;
        }
    }

    private long turnNs() {
        return Math.max(TURN_NS, lateNs);
    }

    private void charge(final long nowNs) {
        final long ranNs = Math.max(0, nowNs - countedNs);
        if (holder != NONE && !paused && !off[holder]) {
            hadNs[holder] += ranNs;
            usedNs += ranNs;
        }
        countedNs = nowNs;
    }

    private void give(final int next, final long nowNs) {
        if (holder != NONE) {
            target.rest(holder, true);
            leaving = holder;
            leftNs = nowNs;
        } else {
            for (int i = 0; i < count; i++) {
                target.rest(member[i], member[i] != next);
            }
        }
        target.rest(next, false);
        holder = next;
        awaitsOn = true;
        gaveNs = nowNs;
        sinceNs = nowNs;
        lateNs = 0;
        usedNs = 0;
    }

    /** Who had the GPU for the shortest time, one excepted. */
    private int least(final int except) {
        int best = NONE;
        for (int i = 0; i < count; i++) {
            final int c = member[i];
            if (c == except) {
                continue;
            }
            if (best == NONE || hadNs[c] < hadNs[best] || hadNs[c] == hadNs[best] && c < best) {
                best = c;
            }
        }
        return best;
    }

    /**
     * When a turn ends.
     *
     * @return ns, {@link Long#MAX_VALUE} if none does by itself
     */
    public long nextNs() {
        return nextNs;
    }

    /**
     * Who has the turn.
     *
     * @return its id, -1 if nobody takes part
     */
    public int holder() {
        return holder;
    }
}

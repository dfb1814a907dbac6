/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/**
 * Best effort beside a user who starts processes all the time: each is attached, given a slice and disabled within
 * segments, and every call of the driver waits for its lock. Turns, {@link Reconciler} and the order of an enforcer's
 * cycle, on a clock that the calls advance.
 */
class BestEffortUnderAttackTest {
    private static final long MS = 1_000_000;
    private static final long LOOKS_NS = 30_000 * MS;
    private static final long STEP_NS = MS / 4;
    private static final long PERIOD_NS = 17 * MS;
    private static final long SEGMENT_NS = 5 * MS;
    private static final int HONEST = 3;
    /** The process that comes and goes: never old enough to have a turn. */
    private static final int NEWCOMER = HONEST + 1;

    /** The device, the dispatcher and the attacker; the enforcer is {@link #cycle}. */
    private static final class World implements Reconciler.Desired, Reconciler.Effects {
        private final long callNs;
        private final long comesEveryNs;
        private final boolean isRefused;
        private final Set<Integer> resting = new HashSet<>();
        private final Set<Integer> disabled = new HashSet<>();
        private final BestEffortTurns turns = new BestEffortTurns(NEWCOMER + 1, this::rest);
        private final Reconciler reconciler = new Reconciler(NEWCOMER, false, this, this);
        private final long[] hadNs = new long[HONEST + 1];
        /** By how many contexts of best effort were on the device at a begin: each costs a slice and a switch. */
        private final long[] begins = new long[HONEST + 2];
        private long nowNs;
        private long version;
        private boolean inSegment;
        private boolean cameAnew;
        private boolean isAttaching;

        /** Calls take so long; a process comes so often; disables of it are refused, since it is gone already. */
        World(final long callNs, final long comesEveryNs, final boolean isRefused) {
            this.callNs = callNs;
            this.comesEveryNs = comesEveryNs;
            this.isRefused = isRefused;
            for (int c = 1; c <= NEWCOMER; c++) {
                reconciler.attach(c);
            }
            for (int c = 1; c <= HONEST; c++) {
                turns.takesPart(c, true);
            }
            turns.decide(false, 0);
        }

        private void rest(final int context, final boolean rests) {
            version += rests == resting.contains(context) ? 0 : 1;
            if (rests) {
                resting.add(context);
            } else {
                resting.remove(context);
            }
        }

        /** What happens meanwhile on other threads. */
        private void pass(final long ns) {
            for (final long untilNs = nowNs + ns; nowNs < untilNs; nowNs += STEP_NS) {
                final boolean begun = nowNs % PERIOD_NS < SEGMENT_NS;
                if (begun != inSegment || turns.nextNs() <= nowNs) {
                    if (begun && !inSegment) {
                        begins[HONEST - (int) disabled.stream().filter(c -> c <= HONEST).count()]++;
                    }
                    inSegment = begun;
                    version++;
                    turns.decide(inSegment, nowNs);
                }
                if (nowNs % comesEveryNs == 0) {
                    cameAnew = true;
                    isAttaching = true;
                    disabled.remove(NEWCOMER);
                }
                for (int c = 1; c <= HONEST; c++) {
                    hadNs[c] += disabled.contains(c) ? 0 : STEP_NS;
                }
            }
        }

        /** As the daemon's enforcer: attach, look for changes, set slices, reconcile. */
        private void cycle() {
            isAttaching = false;
            if (cameAnew) {
                cameAnew = false;
                reconciler.changed();
                pass(callNs);
            }
            if (!reconciler.cycle(nowNs)) {
                pass(STEP_NS);
            }
        }

        World play() {
            while (nowNs < LOOKS_NS) {
                cycle();
            }
            return this;
        }

        /** The least share of the time that one of the three had. */
        double leastShare() {
            return Math.min(hadNs[1], Math.min(hadNs[2], hadNs[3])) / (double) LOOKS_NS;
        }

        /** Contexts of best effort that a begin met, 99 of 100 times no more. */
        int metAtMost() {
            long left = LongStream.of(begins).sum() / 100;
            int met = HONEST;
            while (met > 0 && begins[met] <= left) {
                left -= begins[met--];
            }
            return met;
        }

        @Override
        public boolean isNewerThan(final long seen) {
            return seen != version;
        }

        @Override
        public long snapshot(final boolean[] off) {
            for (int c = 1; c <= NEWCOMER; c++) {
                off[c] = inSegment || resting.contains(c);
            }
            return version;
        }

        @Override
        public boolean awaitsAttach() {
            return isAttaching;
        }

        @Override
        public boolean hold(final int context) {
            return true;
        }

        @Override
        public void clear(final int context) {
            assertTrue(succeeded(context) && !disabled.contains(context), "cleared once it is enabled");
        }

        /** As the driver's: what is disabled already needs no call. */
        @Override
        public long apply(final int[] disable, final int disableCount, final int[] enable, final int enableCount) {
            final Set<Integer> wanted = new HashSet<>(disabled);
            for (int i = 0; i < disableCount; i++) {
                if (!isRefused || disable[i] != NEWCOMER) {
                    wanted.add(disable[i]);
                }
            }
            for (int i = 0; i < enableCount; i++) {
                wanted.remove(enable[i]);
            }
            if (!wanted.equals(disabled)) {
                pass(callNs);
                disabled.clear();
                disabled.addAll(wanted);
            }
            return nowNs;
        }

        @Override
        public boolean succeeded(final int context) {
            return !isRefused || context != NEWCOMER || disabled.contains(context) || !inSegment;
        }

        @Override
        public void disabled(final int context) {
            turns.applied(context, false, nowNs);
        }

        @Override
        public void enabled(final int context) {
            turns.applied(context, true, nowNs);
        }

        @Override
        public void failed() {
            assertTrue(isRefused, "only what is gone cannot be disabled");
        }

        @Override
        public void enforced(final long reached, final boolean isIncomplete) {
            assertTrue(isRefused || !isIncomplete, "all can be disabled");
        }

        @Override
        public void settled(final long reached) {
            assertTrue(reached <= version, "no state of the future");
        }
    }

    @Test
    void shouldHaveAThirdOfTheTimeOutsideSegmentsWhenNobodyAttacks() {
        final World quiet = new World(MS, LOOKS_NS, false).play();
        assertEquals(12.0 / 17 / 3, quiet.leastShare(), 0.05);
        assertEquals(1, quiet.metAtMost());
    }

    @Test
    void shouldGoOnWhenProcessesComeFasterThanCallsReturn() {
        final World attacked = new World(60 * MS, 10 * MS, false).play();
        assertTrue(attacked.leastShare() > 0.05, "share " + attacked.leastShare());
        assertTrue(attacked.metAtMost() <= 2, "a begin waits for one slice and one switch more: "
            + attacked.metAtMost());
    }

    @Test
    void shouldGoOnWhenProcessesCannotBeDisabledSinceTheyAreGone() {
        final World attacked = new World(20 * MS, 10 * MS, true).play();
        assertTrue(attacked.leastShare() > 0.05, "share " + attacked.leastShare());
        assertTrue(attacked.metAtMost() <= 2, "a begin waits for one slice and one switch more: "
            + attacked.metAtMost());
    }
}

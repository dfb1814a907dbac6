/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

/** The reconciler with a device that can fail, be slow, and lose its memory. */
class ReconcilerTest {
    private static final int CONTEXTS = 6;
    private static final long TAKES_NS = 5;

    /** A device and a held file, and a desired state. */
    private static class World implements Reconciler.Desired, Reconciler.Effects {
        final Reconciler reconciler;
        final List<String> log = new ArrayList<>();
        final Set<Integer> wanted = new HashSet<>();
        /** What is disabled on the device. */
        final Set<Integer> disabled = new HashSet<>();
        final Set<Integer> heldFile = new HashSet<>();
        final Set<Integer> failing = new HashSet<>();
        int room = CONTEXTS;
        long nowNs;
        long version;
        boolean awaitsAttach;
        boolean slow;
        long enforced = -1;
        boolean incomplete;
        long settled = -1;
        Set<Integer> wantedAtSnapshot = Set.of();

        World(final boolean atOnce) {
            reconciler = new Reconciler(CONTEXTS - 1, atOnce, this, this);
            for (int c = 0; c < CONTEXTS; c++) {
                reconciler.attach(c);
            }
        }

        World want(final Integer... off) {
            wanted.clear();
            wanted.addAll(List.of(off));
            version++;
            return this;
        }

        List<String> cycles(final long atNs) {
            nowNs = atNs;
            log.clear();
            int n = 0;
            while (reconciler.cycle(atNs)) {
                assertTrue(++n < 100, "it comes to rest");
            }
            return List.copyOf(log);
        }

        @Override
        public boolean isNewerThan(final long seen) {
            return seen != version;
        }

        @Override
        public long snapshot(final boolean[] off) {
            for (int c = 0; c < CONTEXTS; c++) {
                off[c] = wanted.contains(c);
            }
            wantedAtSnapshot = Set.copyOf(wanted);
            return version;
        }

        @Override
        public boolean awaitsAttach() {
            return awaitsAttach;
        }

        @Override
        public boolean hold(final int context) {
            if (!heldFile.contains(context) && heldFile.size() >= room) {
                log.add("no room " + context);
                return false;
            }
            heldFile.add(context);
            log.add("hold " + context);
            return true;
        }

        @Override
        public void clear(final int context) {
            assertTrue(heldFile.remove(context), "context " + context + " is held");
            log.add("clear " + context);
        }

        @Override
        public long apply(final int[] disable, final int disableCount, final int[] enable, final int enableCount) {
            for (int i = 0; i < disableCount; i++) {
                assertTrue(heldFile.contains(disable[i]), "held before it is disabled");
                if (!failing.contains(disable[i])) {
                    disabled.add(disable[i]);
                }
                log.add("disable " + disable[i]);
            }
            for (int i = 0; i < enableCount; i++) {
                if (!failing.contains(enable[i])) {
                    disabled.remove(enable[i]);
                }
                log.add("enable " + enable[i]);
            }
            return slow ? PENDING : nowNs + TAKES_NS;
        }

        @Override
        public boolean succeeded(final int context) {
            return !failing.contains(context);
        }

        @Override
        public void disabled(final int context) {
            log.add("disabled " + context);
        }

        @Override
        public void enabled(final int context) {
            assertFalse(heldFile.contains(context), "cleared after it is enabled");
            log.add("enabled " + context);
        }

        @Override
        public void failed() {
            log.add("failed");
        }

        @Override
        public void enforced(final long reached, final boolean isIncomplete) {
            enforced = reached;
            incomplete = isIncomplete;
            log.add("enforced " + reached + (isIncomplete ? " incomplete" : ""));
        }

        @Override
        public void settled(final long reached) {
            settled = reached;
            log.add("settled " + reached);
        }
    }

    @Test
    void shouldHoldThenDisableThenGrantThenEnable() {
        final World w = new World(false).want(1, 2);
        assertEquals(List.of("hold 1", "hold 2", "disable 1", "disable 2", "disabled 1", "disabled 2", "enforced 1",
            "enforced 1", "settled 1"), w.cycles(0));
        assertEquals(List.of("hold 3", "disable 3", "disabled 3", "enforced 2", "enforced 2", "enable 1", "enable 2",
            "clear 1", "enabled 1", "clear 2", "enabled 2", "settled 2"), w.want(3).cycles(1));
        assertEquals(List.of(), w.cycles(2));
    }

    @Test
    void shouldLookAgainBeforeItEnables() {
        final World w = new World(false).want(1);
        w.cycles(0);
        w.want(2);
        assertTrue(w.reconciler.cycle(1));
        w.want(1, 2, 3);
        w.cycles(1);
        assertFalse(w.log.contains("enable 1"), w.log::toString);
        assertEquals(Set.of(1, 2, 3), w.disabled);
    }

    @Test
    void shouldDoBothInOneStepWhereTheDeviceDoes() {
        final World w = new World(true).want(1);
        w.cycles(0);
        assertEquals(List.of("hold 2", "disable 2", "enable 1", "disabled 2", "clear 1", "enabled 1", "enforced 2",
            "settled 2"), w.want(2).cycles(1));
    }

    @Test
    void shouldFailOpenAndTryAgain() {
        final World w = new World(false).want(1, 2);
        w.failing.add(1);
        assertEquals(List.of("hold 1", "hold 2", "disable 1", "disable 2", "disabled 2", "failed",
            "enforced 1 incomplete"), w.cycles(0));
        assertEquals(-1, w.settled);
        assertEquals(5 + Reconciler.RETRY_NS, w.reconciler.dueNs());
        assertEquals(List.of(), w.cycles(4 + Reconciler.RETRY_NS), "not before its time");
        w.failing.clear();
        assertEquals(List.of("disable 1", "disabled 1", "enforced 1", "enforced 1", "settled 1"),
            w.cycles(5 + Reconciler.RETRY_NS));
    }

    /** The state that failed is the newest one still: what it wants enabled must not be forgotten. */
    @Test
    void shouldEnableTheRestWhenTheRetrySucceeds() {
        final World w = new World(false).want(1);
        w.cycles(0);
        w.failing.add(2);
        assertFalse(w.want(2).cycles(1).contains("enable 1"), "nothing is enabled while something is left to disable");
        w.failing.clear();
        assertTrue(w.cycles(1 + TAKES_NS + Reconciler.RETRY_NS).contains("enable 1"), w.log::toString);
        assertEquals(Set.of(2), w.disabled);
        assertEquals(w.version, w.settled);
    }

    /** It may be disabled or not: it is held, so it is enabled when nobody wants it disabled any more. */
    @Test
    void shouldEnableWhatCouldNotBeDisabled() {
        final World w = new World(false).want(1);
        w.failing.add(1);
        w.cycles(0);
        w.failing.clear();
        assertTrue(w.want().cycles(1).contains("enable 1"));
        assertEquals(Set.of(), w.heldFile);
    }

    @Test
    void shouldTryAgainToEnable() {
        final World w = new World(false).want(1);
        w.cycles(0);
        w.failing.add(1);
        assertEquals(List.of("enforced 2", "enable 1", "failed"), w.want().cycles(1));
        assertEquals(Set.of(1), w.heldFile, "it stays held until an enable succeeds");
        w.failing.clear();
        assertEquals(List.of("enforced 2", "enable 1", "clear 1", "enabled 1", "settled 2"),
            w.cycles(1 + TAKES_NS + Reconciler.RETRY_NS));
    }

    /** A device may answer too late, or enable some channels of many: whatever it said, the context may run. */
    @Test
    void shouldDisableAgainWhatItTriedToEnable() {
        final World w = new World(false).want(1);
        w.cycles(0);
        w.failing.add(1);
        assertTrue(w.want().cycles(1).contains("failed"));
        w.disabled.remove(1);
        w.failing.clear();
        assertFalse(w.reconciler.isOff(1));
        assertEquals(List.of("disable 1", "disabled 1", "enforced 3", "enforced 3", "settled 3"),
            w.want(1).cycles(2));
        assertEquals(Set.of(1), w.disabled);
        assertEquals(Set.of(1), w.heldFile);
    }

    @Test
    void shouldDisableAgainWhatItWasEnablingWhenAnErrorCameBetween() {
        final boolean[] broken = {false};
        final World w = new World(false) {
            @Override
            public long apply(final int[] disable, final int disableCount, final int[] enable,
                final int enableCount) {
                final long doneNs = super.apply(disable, disableCount, enable, enableCount);
                if (broken[0]) {
                    throw new IllegalStateException("planted");
                }
                return doneNs;
            }
        };
        w.want(1).cycles(0);
        broken[0] = true;
        assertThrows(IllegalStateException.class, () -> w.want().cycles(1));
        broken[0] = false;
        w.reconciler.invalidate();
        w.want(1).cycles(2);
        assertEquals(Set.of(1), w.disabled);
    }

    @Test
    void shouldLeaveEnabledWhatCannotBeWrittenDown() {
        final World w = new World(false).want(1, 2);
        w.room = 1;
        assertEquals(List.of("hold 1", "no room 2", "disable 1", "disabled 1", "enforced 1 incomplete"), w.cycles(0));
        w.room = 2;
        w.cycles(Reconciler.RETRY_NS);
        assertEquals(Set.of(1, 2), w.disabled);
        assertFalse(w.incomplete);
    }

    @Test
    void shouldNotCallTheDeviceIfNothingCanBeWrittenDown() {
        final World w = new World(false).want(1);
        w.room = 0;
        assertEquals(List.of("no room 1", "enforced 1 incomplete"), w.cycles(0));
        assertEquals(List.of("no room 1", "enforced 1 incomplete"), w.cycles(Reconciler.RETRY_NS));
    }

    @Test
    void shouldApplyAllAgainWhenTheWatchdogReleased() {
        final World w = new World(false).want(1);
        w.cycles(0);
        w.disabled.clear();
        w.reconciler.released();
        assertEquals(List.of("disable 1", "disabled 1", "enforced 1", "enforced 1", "settled 1"), w.cycles(1));
        w.disabled.clear();
        w.reconciler.released();
        assertTrue(w.want().cycles(2).contains("enable 1"), "its entry says that it may be disabled");
    }

    @Test
    void shouldWriteDownAndApplyAllAgainWhenTheDeviceChanged() {
        final World w = new World(false).want(1);
        w.cycles(0);
        w.log.clear();
        w.reconciler.changed();
        assertEquals(List.of("hold 0", "hold 1", "hold 2", "hold 3", "hold 4", "hold 5"), w.log);
        assertTrue(w.cycles(1).containsAll(List.of("disable 1", "enable 0", "enable 5")));
        assertEquals(Set.of(1), w.disabled);
        assertEquals(Set.of(1), w.heldFile);
    }

    @Test
    void shouldForgetADetachedContext() {
        final World w = new World(false).want(1, 2);
        w.cycles(0);
        w.reconciler.detach(1);
        assertFalse(w.reconciler.isAttached(1));
        assertEquals(Set.of(2), w.heldFile);
        assertFalse(w.cycles(1).contains("enable 1"));
        w.reconciler.attach(1);
        assertTrue(w.cycles(2).contains("disable 1"), "a new one is enabled, and to be disabled");
    }

    @Test
    void shouldWaitUntilContextsOfTheStateAreAttached() {
        final World w = new World(false).want(1);
        w.awaitsAttach = true;
        assertTrue(w.reconciler.cycle(0));
        assertEquals(List.of(), w.log);
        w.awaitsAttach = false;
        assertTrue(w.cycles(1).contains("disabled 1"));
    }

    @Test
    void shouldPutOffEnablesOnceForContextsThatAreNotAttached() {
        final World w = new World(false).want(1, 2);
        w.cycles(0);
        w.want(2);
        w.awaitsAttach = true;
        w.log.clear();
        assertTrue(w.reconciler.cycle(1));
        assertEquals(List.of(), w.log);
        assertTrue(w.reconciler.cycle(1));
        assertEquals(List.of("enable 1", "clear 1", "enabled 1"), w.log, "nothing is called enforced or settled");
        w.awaitsAttach = false;
        assertEquals(List.of("enforced 2", "settled 2"), w.cycles(1));
    }

    @Test
    void shouldPutOffEnablesOnceForAContextThatCannotBeDisabled() {
        final World w = new World(false).want(1);
        w.cycles(0);
        w.want(2);
        w.failing.add(2);
        assertEquals(List.of("hold 2", "disable 2", "failed", "enforced 2 incomplete"), w.cycles(1));
        assertEquals(List.of("disable 2", "failed", "enforced 2 incomplete", "enable 1", "clear 1", "enabled 1"),
            w.cycles(w.reconciler.dueNs()));
        assertTrue(w.reconciler.dueNs() > w.nowNs, "and tried again later");
        w.failing.clear();
        assertTrue(w.cycles(w.reconciler.dueNs()).contains("disabled 2"));
        assertEquals(Set.of(2), w.disabled);
    }

    @Test
    void shouldWaitForADeviceThatTakesTime() {
        final World w = new World(true).want(1);
        w.slow = true;
        assertEquals(List.of("hold 1", "disable 1"), w.cycles(0));
        assertTrue(w.reconciler.isPending());
        w.want(2);
        assertEquals(List.of(), w.cycles(1), "one change at a time");
        w.reconciler.complete(3);
        assertEquals(1, w.enforced);
        assertTrue(w.reconciler.isOff(1));
        w.cycles(3);
        w.reconciler.detach(2);
        w.reconciler.complete(6);
        assertFalse(w.reconciler.isOff(2), "it went while it was being disabled");
        assertEquals(2, w.enforced);
        assertThrows(IllegalStateException.class, () -> w.reconciler.complete(7));
        w.reconciler.reset();
        assertFalse(w.reconciler.isPending() || w.reconciler.isOff(1));
    }

    @Test
    void shouldEnableAllAtTheEnd() {
        final World w = new World(false).want(1, 2);
        w.cycles(0);
        w.failing.add(2);
        assertFalse(w.reconciler.enableAll());
        assertEquals(Set.of(2), w.disabled);
        w.failing.clear();
        assertTrue(w.reconciler.enableAll());
        assertEquals(Set.of(), w.disabled);
        assertEquals(Set.of(), w.heldFile);
    }

    /** Random states, failures, watchdogs and processes: whatever happens, the rules hold at every call. */
    @Property(tries = 2000)
    void shouldKeepItsRulesWhateverHappens(@ForAll final long seed, @ForAll final boolean atOnce) {
        final Random random = new Random(seed);
        final World w = new World(atOnce) {
            @Override
            public long apply(final int[] disable, final int disableCount, final int[] enable, final int enableCount) {
                assertTrue(disableCount + enableCount > 0, "a driver call has a reason");
                if (!reconcilesAtOnce()) {
                    assertTrue(disableCount == 0 || enableCount == 0, "one at a time");
                    for (int c = 0; enableCount > 0 && c < CONTEXTS; c++) {
                        assertTrue(!wantedAtSnapshot.contains(c) || !reconciler.isAttached(c) || reconciler.isOff(c)
                            || failing.contains(c) || !heldFile.contains(c),
                            "nothing is enabled while something is left that can be disabled");
                    }
                }
                for (int i = 0; i < enableCount; i++) {
                    assertFalse(wantedAtSnapshot.contains(enable[i]), "nothing is enabled that must be disabled");
                }
                return super.apply(disable, disableCount, enable, enableCount);
            }

            private boolean reconcilesAtOnce() {
                return atOnce;
            }

            @Override
            public void enforced(final long reached, final boolean isIncomplete) {
                assertEquals(version, reached);
                super.enforced(reached, isIncomplete);
                for (int c = 0; c < CONTEXTS && !isIncomplete; c++) {
                    assertTrue(!wanted.contains(c) || !reconciler.isAttached(c) || disabled.contains(c),
                        "all that must be disabled is, or the state is incomplete");
                }
            }
        };
        long nowNs = 0;
        for (int i = 0; i < 40; i++) {
            nowNs += random.nextInt(3) * (Reconciler.RETRY_NS / 2 + 3);
            final int c = random.nextInt(CONTEXTS);
            switch (random.nextInt(8)) {
                case 0 -> {
                    if (!w.failing.remove(c)) {
                        w.failing.add(c);
                    }
                }
                case 1 -> {
                    w.disabled.removeAll(w.heldFile);   // as the watchdog does
                    w.reconciler.released();
                }
                case 2 -> w.reconciler.changed();
                case 3 -> {
                    if (w.reconciler.isAttached(c)) {
                        w.reconciler.detach(c);
                        w.disabled.remove(c);
                    } else {
                        w.reconciler.attach(c);
                    }
                }
                case 4 -> w.room = random.nextInt(CONTEXTS + 1);
                default -> {
                    final List<Integer> off = new ArrayList<>();
                    for (int k = 0; k < CONTEXTS; k++) {
                        if (random.nextBoolean()) {
                            off.add(k);
                        }
                    }
                    w.want(off.toArray(new Integer[0]));
                }
            }
            w.cycles(nowNs);
            assertTrue(w.reconciler.dueNs() > nowNs, "what was due is done, or tried again later");
            for (final int d : w.disabled) {
                assertTrue(w.heldFile.contains(d), "what is disabled is held");
            }
        }
        w.failing.clear();
        w.room = CONTEXTS;
        w.cycles(nowNs + 2 * Reconciler.RETRY_NS);
        w.wanted.removeIf(c -> !w.reconciler.isAttached(c));
        assertEquals(w.wanted, w.disabled, "in the end what is wanted is applied");
        assertEquals(w.wanted, w.heldFile);
        assertEquals(w.version, w.settled);
        assertFalse(w.incomplete);
    }

    @Example
    void shouldAllocateNothing() {
        final boolean[] off = {false};
        final long[] version = {0};
        final Reconciler reconciler = new Reconciler(CONTEXTS, false, new Reconciler.Desired() {
            @Override
            public boolean isNewerThan(final long seen) {
                return seen != version[0];
            }

            @Override
            public long snapshot(final boolean[] wantedOff) {
                wantedOff[1] = off[0];
                return version[0];
            }
        }, new World(false) {
            @Override
            public boolean hold(final int context) {
                return true;
            }

            @Override
            public void clear(final int context) {
                // nothing to clear
            }

            @Override
            public long apply(final int[] disable, final int disableCount, final int[] enable, final int enableCount) {
                return 1;
            }

            @Override
            public void disabled(final int context) {
                // not told
            }

            @Override
            public void enabled(final int context) {
                // not told
            }

            @Override
            public void enforced(final long reached, final boolean isIncomplete) {
                enforced = reached;
            }

            @Override
            public void settled(final long reached) {
                settled = reached;
            }
        });
        reconciler.attach(1);
        final var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 10; round++) {
            final long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 20_000; i++) {
                off[0] = !off[0];
                version[0]++;
                while (reconciler.cycle(i)) {
                    version[0] += 0;
                }
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertTrue(least < 1_000, least + " bytes in 20,000 changes");
        assertTrue(reconciler.isOff(1) == off[0]);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.Test;

class DriverThreadsTest {
    private static final int PID = 7;
    private static final int LONG_AGO = 1_000_000;
    private final Map<Integer, Long> usedNs = new TreeMap<>();
    private int searches;
    private int questions;
    private final DriverThreads threads = new DriverThreads(new DriverThreads.Source() {
        @Override
        public void find(final int pid, final IntConsumer found) {
            searches++;
            usedNs.keySet().forEach(found::accept);
        }

        @Override
        public long usedNs(final int pid, final int tid) {
            questions++;
            return usedNs.getOrDefault(tid, -1L);
        }
    }, PID);

    private void uses(final int tid, final long ns) {
        usedNs.merge(tid, ns, Long::sum);
    }

    /** A thread that is known, with all that it used. */
    private void knows(final int tid) {
        uses(tid, LONG_AGO);
        threads.look();
        threads.search(0);
    }

    @Test
    void shouldCountOnlyWhatAThreadUsesAfterItWasFound() {
        uses(1, LONG_AGO);
        assertEquals(0, threads.look());
        threads.search(0);
        uses(1, 5);
        assertEquals(5, threads.look());
        assertEquals(0, threads.look());
    }

    @Test
    void shouldCountOnlyWhatAThreadUsedSinceTheLastLook() {
        knows(1);
        uses(1, 5);
        threads.skip();
        uses(1, 6);
        assertEquals(0, threads.look(), "5 or less of 11 were used before the last look");
        uses(1, 7);
        assertEquals(7, threads.look());
    }

    @Test
    void shouldCountNoneTwice() {
        knows(1);
        uses(1, 5);
        assertEquals(5, threads.look());
        threads.search(DriverThreads.SEARCH_LOOKS);
        assertEquals(2, searches);
        uses(1, 6);
        assertEquals(6, threads.look());
    }

    @Test
    void shouldKeepTimesOfKnownThreadsWhileItSearchesForMore() {
        knows(1);
        uses(2, LONG_AGO);
        uses(1, 5);
        assertEquals(5, threads.look());
        threads.search(DriverThreads.SEARCH_LOOKS);
        uses(1, 6);
        uses(2, 70);
        assertEquals(76, threads.look());
    }

    @Test
    void shouldForgetAThreadThatEndedAndKeepTheOthers() {
        uses(2, LONG_AGO);
        uses(3, LONG_AGO);
        knows(1);
        usedNs.remove(2);
        uses(1, 5);
        uses(3, 6);
        assertEquals(11, threads.look());
        uses(2, 5 * LONG_AGO);   // another thread, with the ID of the one that ended
        uses(3, 7);
        assertEquals(7, threads.look());
    }

    @Test
    void shouldCountNothingInItsFirstLookOfAnotherThreadWithTheSameId() {
        uses(2, LONG_AGO);
        knows(1);
        usedNs.put(2, 3L);   // less than it had
        uses(1, 5);
        assertEquals(5, threads.look());
        uses(2, 4);
        assertEquals(4, threads.look());
    }

    @Test
    void shouldSearchAtMostEveryFiveSeconds() {
        for (long look = 100; look < 100 + 2 * DriverThreads.SEARCH_LOOKS; look++) {
            threads.look();
            threads.search(look);
        }
        assertEquals(2, searches);
    }

    @Test
    void shouldBoundHowManyThreadsAreAskedFor() {
        for (int tid = 1; tid <= 3 * DriverThreads.THREADS_MAX; tid++) {
            uses(tid, LONG_AGO);
        }
        threads.look();
        threads.search(0);
        assertEquals(DriverThreads.THREADS_MAX, questions);
        usedNs.replaceAll((tid, ns) -> ns + 1);
        assertEquals(DriverThreads.THREADS_MAX, threads.look());
        assertEquals(2 * DriverThreads.THREADS_MAX, questions);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class BeginForecastTest {
    private static final long MS = 1_000_000;
    private static final long PERIOD_NS = 10 * MS;
    private static final long START_NS = 7_000 * MS;
    private static final int MANY = 400;

    private final BeginForecast forecast = new BeginForecast();
    private final SplittableRandom random = new SplittableRandom(1);

    private long latestNs() {
        return forecast.expectedNs() + forecast.errors().quantile(SortedWindow.PERMILLE);
    }

    private long earliestNs() {
        return forecast.expectedNs() + forecast.errors().quantile(0);
    }

    private void periodic(final int begins) {
        forecast.reset(PERIOD_NS, false);
        for (int i = 0; i < begins; i++) {
            forecast.begin(START_NS + i * PERIOD_NS, 0);
        }
    }

    @Test
    void shouldSayNothingBeforeItKnows() {
        forecast.reset(PERIOD_NS, false);
        for (int i = 0; i <= BeginForecast.FITS_MIN; i++) {
            assertFalse(forecast.isReady(), "after " + i + " begins");
            forecast.begin(START_NS + i * PERIOD_NS, 0);
        }
        assertTrue(forecast.isReady());
    }

    @Test
    void shouldExpectExactBeginsExactly() {
        periodic(MANY);
        assertEquals(START_NS + MANY * PERIOD_NS, forecast.expectedNs());
        assertEquals(0, forecast.errors().quantile(SortedWindow.PERMILLE));
    }

    @Test
    void shouldFollowAPhaseThatIsNotZero() {
        forecast.reset(PERIOD_NS, false);
        for (int i = 0; i < MANY; i++) {
            forecast.begin(START_NS + i * PERIOD_NS + 3 * MS, 0);
        }
        assertEquals(START_NS + MANY * PERIOD_NS + 3 * MS, forecast.expectedNs());
    }

    /** The phase of a grid averages the jitter out: the errors are those of one begin, not of two. */
    @Test
    void shouldNotDoubleTheJitterOfBeginsOnAGrid() {
        forecast.reset(PERIOD_NS, false);
        final long jitterNs = 2 * MS;
        for (int i = 0; i < MANY; i++) {
            forecast.begin(START_NS + i * PERIOD_NS + random.nextLong(jitterNs), 0);
        }
        final long widthNs = latestNs() - earliestNs();
        assertTrue(widthNs > jitterNs / 2 && widthNs < jitterNs * 5 / 4, "of " + jitterNs + ": " + widthNs);
        assertTrue(earliestNs() >= START_NS + MANY * PERIOD_NS - jitterNs / 4);
        assertTrue(latestNs() <= START_NS + MANY * PERIOD_NS + jitterNs + jitterNs / 4);
    }

    /** A program that sleeps for a period after its work, which takes more or less long, has no grid. */
    @Test
    void shouldFollowBeginsThatWander() {
        forecast.reset(PERIOD_NS, false);
        long atNs = START_NS;
        final long stepNs = MS;
        int met = 0;
        int asked = 0;
        for (int i = 0; i < MANY; i++) {
            if (forecast.isReady()) {
                asked++;
                met += atNs >= earliestNs() && atNs <= latestNs() ? 1 : 0;
            }
            forecast.begin(atNs, 0);
            atNs += PERIOD_NS + random.nextLong(stepNs);
        }
        assertTrue(latestNs() - earliestNs() <= stepNs * 5 / 4, "width " + (latestNs() - earliestNs()));
        assertTrue(met * 10L >= asked * 9L, met + " of " + asked);
    }

    @Test
    void shouldFollowAClockThatDrifts() {
        forecast.reset(PERIOD_NS, false);
        final long driftNs = PERIOD_NS / 1000;
        for (int i = 0; i < MANY; i++) {
            forecast.begin(START_NS + i * (PERIOD_NS + driftNs), 0);
        }
        final long dueNs = START_NS + MANY * (PERIOD_NS + driftNs);
        assertTrue(Math.abs(earliestNs() - dueNs) <= driftNs && Math.abs(latestNs() - dueNs) <= driftNs,
            earliestNs() + ".." + latestNs() + " of " + dueNs);
    }

    @Test
    void shouldLearnTwoPeriodsInTurn() {
        forecast.reset(0, true);
        long atNs = START_NS;
        for (int i = 0; i < 40; i++) {
            if (i > 10) {
                assertTrue(forecast.isReady(), "after " + i);
                assertEquals(atNs, forecast.expectedNs(), "begin " + i);
            }
            forecast.begin(atNs, 0);
            atNs += i % 2 == 0 ? 8 * MS : 25 * MS;
        }
        forecast.missed();
        assertEquals(atNs + (40 % 2 == 1 ? 8 : 25) * MS - 17 * MS, forecast.expectedNs(), "the one after that");
        assertEquals(33 * MS / 2, forecast.periodNs());
    }

    /** From a cycle to one period and back. */
    @Test
    void shouldFollowModesThatAlternate() {
        forecast.reset(0, true);
        long atNs = START_NS;
        final long[] periods = {10 * MS, 33 * MS};
        final int[] unready = new int[12];
        for (int mode = 0; mode < unready.length; mode++) {
            for (int i = 0; i < 50; i++) {
                final boolean isMet = forecast.isReady() && atNs >= earliestNs() - MS && atNs <= latestNs() + MS;
                unready[mode] += isMet ? 0 : 1;
                forecast.begin(atNs, 0);
                atNs += periods[mode % 2];
            }
        }
        assertTrue(unready[0] > 8, "it learns once");
        for (int mode = 4; mode < unready.length; mode++) {
            assertTrue(unready[mode] <= 9, "known from before, mode " + mode + ": " + unready[mode] + " begins");
        }
    }

    @Test
    void shouldStayOnItsGridWhenAFrameIsDropped() {
        periodic(50);
        forecast.missed();
        assertEquals(START_NS + 51 * PERIOD_NS, forecast.expectedNs(), "the one after that");
        forecast.begin(START_NS + 51 * PERIOD_NS, 0);
        assertTrue(forecast.isReady());
        assertEquals(0, forecast.misses());
        assertEquals(START_NS + 52 * PERIOD_NS, forecast.expectedNs());
    }

    @Test
    void shouldExpectNobodyAfterAFewMissesAndAgainAfterABegin() {
        periodic(50);
        for (int i = 0; i < BeginForecast.MISSES_MAX; i++) {
            assertTrue(forecast.isReady());
            forecast.missed();
        }
        assertFalse(forecast.isReady());
        forecast.begin(START_NS + 90 * PERIOD_NS, 0);
        assertTrue(forecast.isReady());
        assertEquals(START_NS + 91 * PERIOD_NS, forecast.expectedNs());
    }

    @Test
    void shouldIgnoreFurtherSegmentsOfAJob() {
        forecast.reset(PERIOD_NS, false);
        for (int i = 0; i < 50; i++) {
            forecast.begin(START_NS + i * PERIOD_NS, 0);
            forecast.begin(START_NS + i * PERIOD_NS + 3 * MS, 0);
        }
        assertTrue(forecast.isReady());
        assertEquals(START_NS + 50 * PERIOD_NS, forecast.expectedNs());
    }

    @Test
    void shouldTakeUpANewPhaseAfterThreeBegins() {
        periodic(50);
        final long shiftNs = 4 * MS;
        for (int i = 50; i < 60; i++) {
            forecast.begin(START_NS + i * PERIOD_NS + shiftNs, 0);
        }
        assertTrue(forecast.isReady());
        assertTrue(earliestNs() <= START_NS + 60 * PERIOD_NS + shiftNs
            && latestNs() >= START_NS + 60 * PERIOD_NS + shiftNs);
        assertEquals(START_NS + 60 * PERIOD_NS + shiftNs, forecast.expectedNs(), MS / 10d);
    }

    @Test
    void shouldExpectATaskThatBeginsInEverySecondPeriodThere() {
        periodic(51);
        for (int i = 52; i <= 60; i += 2) {
            forecast.begin(START_NS + i * PERIOD_NS, 0);
        }
        assertEquals(START_NS + 62 * PERIOD_NS, forecast.expectedNs());
        assertEquals(2 * PERIOD_NS, forecast.periodNs());
        forecast.missed();
        assertEquals(START_NS + 64 * PERIOD_NS, forecast.expectedNs());
        forecast.begin(START_NS + 61 * PERIOD_NS, 0);
        assertEquals(START_NS + 62 * PERIOD_NS, forecast.expectedNs(), "it is back in every period");
    }

    @Test
    void shouldForgetAnOutlier() {
        periodic(50);
        forecast.begin(START_NS + 50 * PERIOD_NS + 6 * MS, 0);
        forecast.begin(START_NS + 51 * PERIOD_NS, 0);
        assertTrue(forecast.isReady());
        assertEquals(START_NS + 52 * PERIOD_NS, forecast.expectedNs());
    }

    /** Releases are exact; begins follow them by a time that differs. */
    @Test
    void shouldExpectBeginsFromMarkedReleases() {
        forecast.reset(PERIOD_NS, false);
        for (int i = 0; i < MANY; i++) {
            final long releaseNs = START_NS + i * PERIOD_NS;
            forecast.begin(releaseNs + 2 * MS + random.nextLong(MS), releaseNs);
        }
        assertEquals(START_NS + MANY * PERIOD_NS, forecast.expectedNs());
        assertTrue(earliestNs() >= START_NS + MANY * PERIOD_NS + 2 * MS);
        assertTrue(latestNs() < START_NS + MANY * PERIOD_NS + 3 * MS);
    }

    @Test
    void shouldFindAPeriodThatIsNotDeclared() {
        forecast.reset(0, true);
        for (int i = 0; i < 20; i++) {
            forecast.begin(START_NS + i * PERIOD_NS + random.nextLong(MS / 10), 0);
        }
        assertTrue(forecast.isReady());
        assertEquals(PERIOD_NS, forecast.periodNs(), MS / 10d);
        assertEquals(START_NS + 20 * PERIOD_NS, forecast.expectedNs(), MS / 5d);
    }

    @Test
    void shouldFindNoPeriodWhereThereIsNone() {
        forecast.reset(0, true);
        long atNs = START_NS;
        for (int i = 0; i < MANY; i++) {
            forecast.begin(atNs, 0);
            atNs += MS + random.nextLong(20 * MS);
            assertFalse(forecast.isReady());
        }
    }

    @Test
    void shouldLearnNothingThatItMayNot() {
        forecast.reset(0, false);
        for (int i = 0; i < 50; i++) {
            forecast.begin(START_NS + i * PERIOD_NS, 0);
        }
        assertFalse(forecast.isReady());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class ResponseTimesTest {
    private static final double[] PERCENTILES = {0.1, 1, 25, 50, 90, 99, 99.9, 100};
    private static final int SERIES = 200;

    private final ResponsePages pages = new ResponsePages();

    @Test
    void shouldAnswerAsAnHdrHistogramOfTwoDigits() {
        final Random random = new Random(7);
        for (int series = 0; series < SERIES; series++) {
            final ResponseTimes times = new ResponseTimes(pages);
            final Histogram model = new Histogram(1, ResponseTimes.MAX_NS, 2);
            final long least = 1L << random.nextInt(36);
            final long range = Math.min(ResponseTimes.MAX_NS - least, least << random.nextInt(10));
            for (int i = random.nextInt(2000); i >= 0; i--) {
                final long ns = least + (long) (random.nextDouble() * range);
                times.record(ns);
                model.recordValue(ns);
            }
            for (final double percentile : PERCENTILES) {
                assertEquals(model.getValueAtPercentile(percentile), times.percentileNs(percentile),
                    "series " + series + ", percentile " + percentile);
            }
            assertEquals(model.getMaxValue(), times.maxNs(), "series " + series);
            assertEquals(model.getTotalCount(), times.count());
            times.close();
        }
    }

    @Test
    void shouldAnswerAsAnHdrHistogramAtTheEdgesOfItsBuckets() {
        for (int doubling = 0; doubling < 42; doubling++) {
            for (long ns = Math.max(1, (1L << doubling) - 2); ns <= Math.min((1L << doubling) + 2,
                ResponseTimes.MAX_NS); ns++) {
                final ResponseTimes times = new ResponseTimes(pages);
                final Histogram model = new Histogram(1, ResponseTimes.MAX_NS, 2);
                times.record(ns);
                model.recordValue(ns);
                assertEquals(model.getValueAtPercentile(50), times.percentileNs(50), ns + " ns");
                assertEquals(model.getMaxValue(), times.maxNs(), ns + " ns");
            }
        }
    }

    @Test
    void shouldCountWhatIsOutOfRangeAtItsEnds() {
        final ResponseTimes times = new ResponseTimes(pages);
        times.record(-5);
        assertEquals(1, times.maxNs());
        times.record(Long.MAX_VALUE);
        assertTrue(times.maxNs() >= ResponseTimes.MAX_NS, times.maxNs() + " ns");
        assertEquals(2, times.count());
    }

    @Test
    void shouldAnswerNothingBeforeTheFirst() {
        final ResponseTimes times = new ResponseTimes(pages);
        assertEquals(0, times.percentileNs(99));
        assertEquals(0, times.maxNs());
    }

    @Test
    void shouldTakeNoMorePagesThanItMayHoweverItsResponsesVary() {
        final ResponseTimes times = new ResponseTimes(pages);
        for (int round = 0; round < 2; round++) {
            for (long ns = ResponseTimes.MAX_NS; ns > 0; ns /= 2) {
                times.record(ns);
                times.record(ns - ns / 4);
            }
        }
        times.close();
        assertEquals(ResponseTimes.PAGES_MAX, pages.spares());
    }

    @Test
    void shouldCountWhatFindsNoPageAtTheNearestValueThatHasOne() {
        final ResponseTimes times = new ResponseTimes(pages);
        long ns = 1 << 20;
        for (int page = 0; page < ResponseTimes.PAGES_MAX; page += 2) {
            times.record(ns);
            times.record(ns + ns / 2);
            ns *= 2;
        }
        final long above = ns * 4;
        times.record(above);
        assertTrue(times.percentileNs(100) < ns && times.percentileNs(100) >= ns - ns / 64,
            times.percentileNs(100) + " ns");
        assertTrue(times.maxNs() >= above);
        times.record(1000);
        assertTrue(times.percentileNs(1) >= 1 << 20 && times.percentileNs(1) < (1 << 20) + (1 << 14),
            times.percentileNs(1) + " ns");
    }

    @Test
    void shouldUseThePagesOfClosedTasksAgainAndForgetTheirCounts() {
        pages.fill();
        final int before = pages.spares();
        final ResponseTimes first = new ResponseTimes(pages);
        first.record(1_000_000);
        assertEquals(before - 1, pages.spares());
        first.close();
        assertEquals(before, pages.spares());
        final ResponseTimes second = new ResponseTimes(pages);
        second.record(2_000_000);
        assertEquals(1, second.count());
        assertTrue(second.percentileNs(1) > 1_900_000, second.percentileNs(1) + " ns");
    }
}

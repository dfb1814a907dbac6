/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class ResponseHistogramTest {
    @Test
    void shouldGiveQuantilesOfAtMostOnePerMilleTooLong() {
        final SplittableRandom random = new SplittableRandom(3);
        final long[] all = random.longs(20_000, 0, 5_000_000_000L).map(ns -> ns >> random.nextInt(32)).toArray();
        final ResponseHistogram histogram = new ResponseHistogram();
        Arrays.stream(all).forEach(histogram::add);
        Arrays.sort(all);
        for (final double share : new double[] {0, 0.01, 0.5, 0.9, 0.99, 0.999, 1}) {
            final long exact = all[(int) Math.max(0, Math.ceil(share * all.length) - 1)];
            final long found = histogram.quantileNs(share);
            assertTrue(found >= exact && found <= exact * 1.001, share + ": " + found + " for " + exact);
        }
        assertEquals(all[all.length - 1], histogram.maxNs());
        assertEquals(20_000, histogram.total());
    }

    @Test
    void shouldBeTheSameInWhateverOrderPartsAreMerged() {
        final SplittableRandom random = new SplittableRandom(4);
        final ResponseHistogram whole = new ResponseHistogram();
        final ResponseHistogram[] parts = {new ResponseHistogram(), new ResponseHistogram(), new ResponseHistogram()};
        for (int i = 0; i < 9_000; i++) {
            final long ns = random.nextLong(1L << random.nextInt(1, 62));
            whole.add(ns);
            parts[random.nextInt(3)].add(ns);
        }
        final ResponseHistogram backwards = new ResponseHistogram();
        for (int i = parts.length - 1; i >= 0; i--) {
            backwards.add(ResponseHistogram.of(parts[i].toBytes()));
        }
        assertArrayEquals(whole.toBytes(), backwards.toBytes());
        assertEquals(0, new ResponseHistogram().quantileNs(0.5));
        assertThrows(IllegalArgumentException.class, () -> whole.add(-1));
    }
}

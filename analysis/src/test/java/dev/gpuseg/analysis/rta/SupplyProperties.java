/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.TimePartitions;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** The supply of a window table against counting instants one by one. */
class SupplyProperties {
    @Property(tries = 300)
    void shouldTakeAsLongAsTheWorstStartSaysInstantByInstant(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final int frame = 4 + random.nextInt(40);
        final int guard = random.nextInt(3);
        final List<TimePartitions.Window> windows = new ArrayList<>();
        for (int at = random.nextInt(4); at < frame - guard - 1;) {
            final int length = Math.min(frame - at, guard + 1 + random.nextInt(8));
            windows.add(new TimePartitions.Window(1 + random.nextInt(2), at, length));
            at += length + random.nextInt(4);
        }
        if (windows.isEmpty()) {
            return;
        }
        final TimePartitions table = new TimePartitions(FixedPriority.INSTANCE, frame, random.nextInt(frame), guard,
            false, windows.toArray(new TimePartitions.Window[0]));
        final int partition = random.nextInt(3);
        final int loss = random.nextInt(3);
        final Supply supply = Supply.of(table, partition, loss);
        final boolean[] open = open(table, partition, loss, frame);
        for (int demand = 0; demand <= 3 * frame; demand++) {
            assertEquals(slowest(open, demand), supply.timeFor(demand), "demand " + demand + " of seed " + seed);
        }
    }

    /** Open instants of three frames; those after a closed one count as closed, {@code loss} many. */
    private static boolean[] open(final TimePartitions table, final int partition, final int loss, final int frame) {
        final boolean[] open = new boolean[frame];
        for (int t = 0; t < frame; t++) {
            boolean served = table.isOpen(partition, t + frame);
            for (int before = 1; served && before <= loss; before++) {
                served = table.isOpen(partition, t + frame - before);
            }
            open[t] = served;
        }
        return open;
    }

    private static long slowest(final boolean[] open, final int demand) {
        long longest = 0;
        for (int start = 0; start < open.length; start++) {
            long time = 0;
            for (int served = 0; served < demand; time++) {
                served += open[(int) ((start + time) % open.length)] ? 1 : 0;
                if (time > (long) (demand + 1) * open.length) {
                    return Long.MAX_VALUE;
                }
            }
            longest = Math.max(longest, time);
        }
        return longest;
    }
}

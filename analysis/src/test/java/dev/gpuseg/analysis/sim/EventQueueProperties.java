/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

class EventQueueProperties {
    private static final int SOURCES = 9;

    /** Each number is a command: source times 16 plus time; time 15 removes, source 9 takes the first out. */
    @Property(tries = 500)
    void shouldAgreeWithASearchThroughAllSources(
        @ForAll @Size(max = 200) final List<@IntRange(min = 0, max = 10 * 16 - 1) Integer> commands) {
        final EventQueue queue = new EventQueue(SOURCES);
        final long[] plain = new long[SOURCES];
        Arrays.fill(plain, EventQueue.NEVER);
        for (final int command : commands) {
            final int source = command / 16;
            final int first = first(plain);
            if (source == SOURCES) {
                if (first >= 0) {
                    assertEquals(first, queue.poll());
                    plain[first] = EventQueue.NEVER;
                }
            } else {
                final long at = command % 16 == 15 ? EventQueue.NEVER : command % 16;
                queue.set(source, at);
                plain[source] = at;
            }
            final int now = first(plain);
            assertEquals(now < 0 ? EventQueue.NEVER : plain[now], queue.firstNs());
            if (now >= 0) {
                assertEquals(now, queue.first());
            }
        }
    }

    private static int first(final long[] plain) {
        int best = -1;
        for (int i = 0; i < plain.length; i++) {
            if (plain[i] != EventQueue.NEVER && (best < 0 || plain[i] < plain[best])) {
                best = i;
            }
        }
        return best;
    }
}

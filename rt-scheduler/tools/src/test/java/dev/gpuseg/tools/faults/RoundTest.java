/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RoundTest {
    private static final List<Fault> ALL = List.of(Fault.values());

    @Test
    void shouldDrawTheSameRoundsFromTheSameSeed() {
        assertEquals(Round.plan(300, 7, ALL), Round.plan(300, 7, ALL));
        assertEquals(Round.plan(300, 7, ALL).subList(0, 50), Round.plan(50, 7, ALL));
        assertNotEquals(Round.plan(300, 7, ALL), Round.plan(300, 8, ALL));
    }

    @Test
    void shouldDrawEveryFaultEquallyOftenAndEveryStepOfIt() {
        final Map<Fault, Integer> count = new EnumMap<>(Fault.class);
        final Map<Fault, EnumSet<Step>> steps = new EnumMap<>(Fault.class);
        for (final Round round : Round.plan(50 * ALL.size(), 1, ALL)) {
            count.merge(round.fault(), 1, Integer::sum);
            steps.computeIfAbsent(round.fault(), key -> EnumSet.noneOf(Step.class)).add(round.step());
            assertTrue(round.delayMs() >= 0 && round.delayMs() <= 60, round.toString());
            assertTrue(round.lengthMs() >= 150 && round.lengthMs() <= 500, round.toString());
        }
        for (final Fault fault : ALL) {
            assertEquals(50, count.get(fault), fault.label());
            assertEquals(EnumSet.copyOf(fault.steps()), steps.get(fault), fault.label());
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class HighestClassFirstTest {
    private static SegmentView segment(final int id, final int gpuPriority) {
        return SegmentView.of(id, gpuPriority, 0, 0, Long.MAX_VALUE, id, 0);
    }

    /** What the bounds of fixed priority need of this policy ({@code analysis/docs/classes.md}). */
    @Test
    void shouldDecideAsFixedPriorityDoesBetweenTasksOfDifferentClasses() {
        int compared = 0;
        for (int width = 1; width <= Priority.MAX; width++) {
            final HighestClassFirst classes = new HighestClassFirst(width);
            for (int a = 0; a <= Priority.MAX; a++) {
                for (int b = 0; b <= Priority.MAX; b++) {
                    if (a > 0 && b > 0 && classes.runTogether(a, b)) {
                        continue;
                    }
                    final SegmentView x = segment(1, a);
                    final SegmentView y = segment(2, b);
                    assertEquals(Integer.signum(FixedPriority.INSTANCE.compare(x, y)),
                        Integer.signum(classes.compare(x, y)), () -> a(x, y));
                    assertEquals(FixedPriority.INSTANCE.mayRunBeside(x, y), classes.mayRunBeside(x, y), () -> a(x, y));
                    assertEquals(FixedPriority.INSTANCE.admitsBackground(x), classes.admitsBackground(x));
                    assertEquals(b > FixedPriority.INSTANCE.pregrantCeiling(x), b > classes.pregrantCeiling(x),
                        () -> a(x, y));
                    compared++;
                }
            }
        }
        assertTrue(compared > 100_000, "compared " + compared);
    }

    private static String a(final SegmentView x, final SegmentView y) {
        return "priorities " + x.gpuPriority() + " and " + y.gpuPriority();
    }

    @Test
    void shouldRunTasksOfOneClassTogether() {
        final HighestClassFirst classes = new HighestClassFirst(10);
        assertTrue(classes.runTogether(1, 10) && classes.runTogether(31, 40));
        assertFalse(classes.runTogether(10, 11));
        assertTrue(classes.mayRunBeside(segment(1, 31), segment(2, 40)));
        assertFalse(FixedPriority.INSTANCE.mayRunBeside(segment(1, 31), segment(2, 40)));
    }
}

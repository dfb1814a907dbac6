/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class ReturnsTest {
    private final Returns returns = new Returns();

    @Test
    void shouldAddTheCallsOfAnUpdateAndCountEachOnce() {
        returns.disabled();
        returns.enabled(1_000_000, 400_000);
        returns.enabled(1_000_000, 400_000);   // another context of that call
        returns.enabled(1_410_000, 300_000);
        returns.disabled();
        returns.enabled(9_000_000, 200_000);
        assertEquals(List.of(700_000L, 200_000L), returns.sums());
    }

    @Test
    void shouldLeaveOutWhatIsEnabledBeforeAnythingWasDisabled() {
        returns.enabled(1_000_000, 2_000_000);
        returns.enabled(4_000_000, 2_000_000);
        returns.disabled();
        returns.enabled(9_000_000, 400_000);
        assertEquals(List.of(400_000L), returns.sums());
    }

    /** Processes that make channels meanwhile have all enabled anew, again and again. */
    @Test
    void shouldNotAddWhatLaterUpdatesTake() {
        returns.disabled();
        returns.enabled(1_000_000, 400_000);
        returns.enabled(1_400_000 + Returns.GAP_NS, 500_000);
        returns.enabled(1_900_000 + 2 * Returns.GAP_NS + 1, 600_000);
        assertEquals(List.of(900_000L, 600_000L), returns.sums());
    }

    @Test
    void shouldSayNothingOfACallThatTookNoTime() {
        returns.disabled();
        returns.enabled(1_000_000, 0);
        assertEquals(List.of(), returns.sums());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.rta.TurnErrors;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Theorem 16 and simulated turns meet. More: {@code gpuseg sweep --figure soundness --analysis turns-suspend}.
 */
@Timeout(300)
class TurnsSoundnessTest {
    private static final long SEED = 20_261_128;
    private static final int SETS = 300;
    private static final int RUNS = 4;
    private static final int CLIMBS = 30;
    private static final int STEP = 50;
    private static final int MOST_SETS = 1_000;

    @Test
    void shouldNeverExceedABoundByTurns() {
        final Claim claim = Claim.turns().get(0);
        final Campaign campaign = new Campaign(List.of(claim), k -> CampaignSets.mixed(SEED, k), SEED, RUNS, CLIMBS);
        final Map<String, Long> counts = campaign.run(0, SETS);
        assertEquals(0, counts.get("exceeded sets of " + claim.title()), () -> "" + campaign.excesses());
        assertEquals(0, counts.get("missed sets of " + claim.title()));
        assertTrue(counts.get("runs of " + claim.title()) >= 6_000, () -> "" + counts);
        assertEquals(1_000_000, counts.get("max ppm of " + claim.title()), "a bound that is reached cannot be lower");
    }

    @ParameterizedTest
    @EnumSource
    void shouldFindABoundThatHasForgottenSomething(final TurnErrors error) {
        final Claim claim = new Claim(error.analysis(), Claim.turns().get(0).mechanism(), false);
        final Campaign campaign = new Campaign(List.of(claim), k -> CampaignSets.mixed(SEED, k), SEED, RUNS, CLIMBS);
        long exceeded = 0;
        for (int sets = 0; sets < MOST_SETS && exceeded == 0; sets += STEP) {
            exceeded = campaign.run(sets, sets + STEP).get("exceeded sets of " + claim.title());
        }
        assertTrue(exceeded > 0, "without " + error + " no bound is exceeded in " + MOST_SETS + " sets");
    }
}

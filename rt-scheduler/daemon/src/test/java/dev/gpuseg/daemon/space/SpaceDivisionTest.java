/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SpaceDivisionTest {
    private static final int H200_MULTIPROCESSORS = 132;

    private static String refusal(final int reserve, final String places) {
        return assertThrows(IllegalArgumentException.class, () -> Space.of(reserve, places)).getMessage();
    }

    @Test
    void shouldGivePlacesByDefaultWithWhichProductsAreRightOnAnH200() {
        final Space space = Space.of(Space.RESERVE_DEFAULT, Space.PLACES_DEFAULT);
        final List<Integer> multiprocessors = space.places().stream()
            .map(percent -> (int) (percent.doubleValue() / 100 * H200_MULTIPROCESSORS) / 2 * 2).toList();   // in pairs
        assertEquals(List.of(42, 42, 32), multiprocessors);
        assertEquals("31.82 31.82 24.25", space.placesText());
        assertEquals(88, space.longPercent());
    }

    @Test
    void shouldDivideTheRestInEqualPartsRoundedDown() {
        assertEquals("29.33 29.33 29.33", Space.equal(12, 3).placesText());
        assertEquals("88.00", Space.equal(12, 1).placesText());
    }

    @Test
    void shouldRefuseWhatIsNoDivision() {
        final Map<String, String> refusals = Map.of(
            "3", "space-places is \"3\", and \"3\" is no percentage below 100 with at most two decimals; give one for "
                + "each place, like 31.82%,31.82%,24.25%",
            "44%,44.01%", "space-places is 44%,44.01%, together 88.01%, and a space-reserve of 12% leaves 88%; give "
                + "less (docs/space.md: not every limit computes right)",
            "0.5%", "space-places is 0.5%; give each 1% at least",
            "100%", "\"100%\" is no percentage below 100",
            "44%,,1%", "\"\" is no percentage");
        refusals.forEach((places, said) -> assertTrue(refusal(12, places).contains(said), refusal(12, places)));
        assertTrue(refusal(91, "1%").contains("space-reserve is 91%"));
        assertTrue(refusal(12, "1%,".repeat(64) + "1%").contains("65 places; use 1..64"));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TimeTest {
    @ParameterizedTest
    @CsvSource({"0, 0ns", "7, 7ns", "1500, 1500ns", "250000, 250us", "100000000, 100ms", "1001000000, 1001ms",
        "3600000000000, 3600s", "-5000000, -5ms", "9223372036854775807, 9223372036854775807ns"})
    void shouldWriteTheLargestUnitThatIsWhole(final long ns, final String text) {
        assertEquals(text, Time.text(ns));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.LongRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DurationsTest {
    @ParameterizedTest
    @ValueSource(strings = {"", "ms", "-1ms", "1.ms", ".5ms", "1e3ms", "1,5ms", "NaN", "nan ms", "0.5ns", "1.0005us",
        "5 m",
        "9007199254740993ns", "9223372036854775807ms", "99999999999999999999s", "1.123456789012345678s", "1ms\n2ms"})
    void shouldRefuseInOneLine(final String text) {
        final String message = assertThrows(IllegalArgumentException.class, () -> Durations.parse(text)).getMessage();
        assertFalse(message.contains("\n"), message);
    }

    @Test
    void shouldSayThatABareNumberNeedsAUnit() {
        final String message = assertThrows(IllegalArgumentException.class, () -> Durations.parse("80")).getMessage();
        assertTrue(message.contains("bare number 80") && message.contains("80ms"), message);
    }

    @ParameterizedTest
    @CsvSource({"2ms,2000000", "250us,250000", "1.5ms,1500000", "1024us,1024000", "1s,1000000000", "7ns,7", "0ms,0",
        "0.000001ms,1", "1.50us,1500", "3 ms,3000000", "5µs,5000", "9007199254740992ns,9007199254740992"})
    void shouldRead(final String text, final long ns) {
        assertEquals(ns, Durations.parse(text));
    }

    @Property
    void shouldReadBackWhatItWrites(@ForAll @LongRange(min = 0, max = Durations.MAX_NS) final long ns) {
        assertEquals(ns, Durations.parse(Durations.format(ns)));
    }
}

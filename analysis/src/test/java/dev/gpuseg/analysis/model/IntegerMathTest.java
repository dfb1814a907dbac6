/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigDecimal;
import java.math.RoundingMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.LongRange;
import org.junit.jupiter.api.Test;

class IntegerMathTest {
    @Test
    void shouldRefuseDivisorsThatAreNotPositive() {
        assertThrows(ArithmeticException.class, () -> IntegerMath.ceilDiv(1, 0));
        assertThrows(ArithmeticException.class, () -> IntegerMath.floorDiv(1, -1));
    }

    @Test
    void shouldNotOverflowAtTheEndsOfTheRange() {
        assertEquals(Long.MAX_VALUE, IntegerMath.ceilDiv(Long.MAX_VALUE, 1));
        assertEquals(1, IntegerMath.ceilDiv(Long.MAX_VALUE, Long.MAX_VALUE));
        assertEquals(2, IntegerMath.ceilDiv(Long.MAX_VALUE, Long.MAX_VALUE - 1));
        assertEquals(0, IntegerMath.ceilDiv(0, 7));
        assertEquals(0, IntegerMath.ceilDiv(-6, 7));
        assertEquals(-1, IntegerMath.ceilDiv(-7, 7));
    }

    @Property
    void shouldEqualTheMathematicalCeiling(@ForAll final long dividend,
        @ForAll @LongRange(min = 1) final long divisor) {
        final BigDecimal exact = BigDecimal.valueOf(dividend).divide(BigDecimal.valueOf(divisor), 0,
            RoundingMode.CEILING);
        assertEquals(exact.longValueExact(), IntegerMath.ceilDiv(dividend, divisor));
    }
}

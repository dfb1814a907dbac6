/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MessagesTest {
    @ParameterizedTest
    @CsvSource({"seven, seven", "twelve-chars, twelve-chars", "thirteen-chrs, thirteen-...",
        "eight-by\u00e4-and-more, eight-by..."})
    void shouldSayWhereTheEndOfATextIsMissing(final String text, final String field) {
        final UnsafeBuffer data = new UnsafeBuffer(new byte[20]);
        Messages.text(data, 2, 13, text);
        assertEquals(field, data.getStringWithoutLengthUtf8(2, 13).replace("\0", ""));
        assertEquals(0, data.getByte(14), "a NUL follows");
    }
}

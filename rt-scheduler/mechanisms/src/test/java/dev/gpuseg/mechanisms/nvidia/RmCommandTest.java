/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RmCommandTest {
    // scheduling policy of the whole device, GPU reset, clocks, interleave, realtime, schedule, ECC, power
    @ParameterizedTest
    @ValueSource(ints = {0x20801115, 0x20800103, 0x20801014, 0xa06c0107, 0xa06c0110, 0xa06c0101, 0x2080012f, 0x20802a01,
        0, -1})
    void shouldRefuseEveryCommandThatIsNotPerContext(final int number) {
        final String text = assertThrows(IllegalArgumentException.class, () -> RmCommand.of(number)).getMessage();
        assertTrue(text.contains(String.format("0x%08x", number)), text);
    }

    @Test
    void shouldKnowExactlyTheCommandsOfTheWhitelist() {
        final Set<Integer> numbers = Stream.of(RmCommand.values()).map(RmCommand::number).collect(Collectors.toSet());
        assertEquals(Set.of(0x00000d02, 0x20800142, 0x2080110b, 0xa06c0103, 0xa06c0104, 0xa06c0106), numbers);
        for (final RmCommand c : List.of(RmCommand.values())) {
            assertEquals(c, RmCommand.of(c.number()));
        }
    }

    @Test
    void shouldNameAStatus() {
        assertEquals("NV_OK (0x00)", RmStatus.name(0));
        assertEquals("NV_ERR_INVALID_CLIENT (0x23)", RmStatus.name(0x23));
        assertEquals("RM status (0x7777)", RmStatus.name(0x7777));
        assertEquals("errno 25", RmStatus.name(-25));
    }

    @Test
    void shouldNumberGpusInTheOrderOfTheirBus() {
        final GpuIndex two = new GpuIndex(List.of(0x0600, 0x3b00));
        assertEquals(0, two.of(0x0600));
        assertEquals(1, two.of(0x3b00));
        assertEquals(GpuIndex.UNKNOWN, two.of(0x4100));
        assertEquals(0x00010a02, GpuIndex.parse("0001:0a:02.0"));
        assertEquals(6, GpuIndex.parse("0000:00:06.0"));
        assertEquals("00000001:0A:02.0", new GpuIndex(List.of(6, 0x00010a02)).address(1));
        assertEquals("", new GpuIndex(List.of(6)).address(1));
        assertEquals(GpuIndex.UNKNOWN, GpuIndex.parse("by-name"));
        assertEquals(0, new GpuIndex(List.of()).of(77));
    }
}

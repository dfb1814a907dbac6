/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Large numbers, as 10 GB of events have them, stay within their boxes, columns and drawings. */
class FleetReportTest {
    @Test
    void shouldShortenCountsAndTimesThatWouldBeTooWide() {
        final ResponseHistogram times = new ResponseHistogram();
        times.add(84_753_084_000L);
        final Outcome outcome = new Outcome("a", "r", "1", Outcome.OK, "", 1, 146_418_791, 0, 1, "sim", true, "", "",
            "", 21_813_900, 1, 1);
        final String html = FleetReport.render(new Figures(List.of(outcome), List.of(new Figures.Responses("t", "1", "",
            0, 0, 1, 1, 0, times)), List.of(new Figures.OfRecording("a", "r", "1", "t", 0, 0, 1, 1, 0, 1, 1, 1)),
            List.of(), List.of(), null));
        assertTrue(html.contains("<dt>Events</dt><dd>146.4 M</dd>") && html.contains("<dd>21,813,900</dd>"), html);
        assertTrue(html.contains(">84753.1<") && !html.contains("84753.084"), html);
    }

    @Test
    void shouldKeepTheLastNumberOfAnAxisWithinTheDrawing() {
        final String svg = new QuantileChart("t", Map.of("1", List.of(96e9)), List.of("1"), 0).svg();
        assertTrue(svg.contains("text-anchor=\"end\">100000<"), svg);
        assertTrue(svg.contains("text-anchor=\"middle\">80000<"), svg);
        assertFalse(new QuantileChart("t", Map.of("1", List.of(9e6)), List.of("1"), 0).svg()
            .contains("text-anchor=\"end\">8<"));
    }
}

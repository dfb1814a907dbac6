/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

/** What loads did beside a loop is compared with what they did by the driver. */
class LoopScenarioTest {
    private final ArrayNode cells = JsonNodeFactory.instance.arrayNode();

    private ObjectNode cell(final String strategy, final int tasks, final double training, final double products) {
        final ObjectNode cell = cells.objectNode().put("strategy", strategy);
        for (int i = 0; i < tasks; i++) {
            cell.withArray("tasks").addObject();
        }
        cell.putObject("loads").put("train-vit", training).put("products", products);
        return cell;
    }

    @Test
    void shouldCompareEachLoadWithTheSameTasksByTheDriver() {
        cells.add(cell("driver", 1, 10, 200)).add(cell("driver, short too", 2, 8, 100))
            .add(cell("MPS, short too", 2, 1, 1));
        final ObjectNode space = cell("gpuseg, space, short too", 2, 6, 75);
        LoopScenario.compare(space, cells);
        assertEquals(0.75, space.path("loads_to_driver").path("train-vit").asDouble());
        assertEquals(0.75, space.path("loads_to_driver").path("products").asDouble());
    }

    @Test
    void shouldCompareNothingWithALoadThatDidNothing() {
        cells.add(cell("driver", 1, 0, 200));
        final ObjectNode space = cell("gpuseg, space", 1, 6, 50);
        LoopScenario.compare(space, cells);
        assertFalse(space.path("loads_to_driver").has("train-vit"));
        assertEquals(0.25, space.path("loads_to_driver").path("products").asDouble());
    }

    @Test
    void shouldSayNothingWithoutTheDriver() {
        final ObjectNode space = cell("gpuseg, space", 1, 6, 50);
        LoopScenario.compare(space, cells);
        assertFalse(space.has("loads_to_driver"));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.rig.StringOutput;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
@Tag("long")
class BenchLoadTest {
    @Test
    void shouldRefuseMoreClientsThanAUserMayHave() {
        assertEquals(ExitCode.USAGE, StringOutput.of("bench", "load", "--clients", "65").status());
    }

    @Test
    void shouldAccountForEveryRecordAndLeaveNoFile() throws Exception {
        final StringOutput load =
            StringOutput.of("bench", "load", "--clients", "4", "--rate", "200", "--duration", "2s", "--json");
        final JsonNode result = new ObjectMapper().readTree(load.out());
        assertEquals(4 * 200 * 3, result.path("begins").asLong(), "two seconds and one of warm-up: " + load.text());
        assertEquals(result.path("begins"), result.path("ends"));
        assertEquals(4 * 200 * 2, result.path("begin_ns").path("n").asLong());
        assertEquals(0, result.path("optimistic").asLong(), "every begin waits for the daemon");
        assertEquals(0, result.path("lost").asLong());
        assertEquals(0, result.path("journal_gaps").asLong());
        assertEquals(0, result.path("queue_files_left").asLong());
        assertTrue(result.path("queue_files_most").asLong() >= 4, load.text());
        assertTrue(result.path("begin_ns").path("p50").asLong() > 0, load.text());
    }

    @Test
    void shouldNameACauseForEveryStallOfTheTail() throws Exception {
        assumeTrue(Runtime.getRuntime().availableProcessors() >= 2, "client and dispatcher need a CPU each");
        final StringOutput tail = StringOutput.of("bench", "tail", "--duration", "1s", "--json");
        assertEquals(ExitCode.OK, tail.status(), tail.text());
        final JsonNode one = new ObjectMapper().readTree(tail.out()).path("settings").path("default");
        assertEquals(10_000, one.path("due_to_grant_ns").path("n").asLong());
        assertTrue(one.path("processes_came_and_went").asInt() > 0, tail.text());
        long named = 0;
        for (final JsonNode cause : one.path("stalls_by_cause")) {
            named += cause.path("count").asLong();
        }
        assertEquals(one.path("stalls_examined").asLong(), named, tail.text());
        assertTrue(one.path("due_to_grant_ns").path("max").asLong()
            >= one.path("begin_to_grant_ns").path("p50").asLong(), tail.text());
    }
}

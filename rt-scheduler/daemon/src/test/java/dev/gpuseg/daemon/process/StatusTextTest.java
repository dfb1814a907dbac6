/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.conductor.ConductorCounter;
import dev.gpuseg.daemon.dispatch.Counter;
import java.util.List;
import org.junit.jupiter.api.Test;

class StatusTextTest {
    private static ObjectNode status(final int value) {
        final ObjectNode status = JsonNodeFactory.instance.objectNode();
        for (final Counter counter : Counter.values()) {
            status.withArray("counters").addObject().put("label", counter.label()).put("value", value)
                .put("description", counter.description()).put("trouble", counter.isTrouble());
        }
        return status;
    }

    private static List<String> below(final ObjectNode status) {
        final List<String> lines = StatusText.of(status).lines().toList();
        return lines.subList(lines.lastIndexOf("") + 1, lines.size());
    }

    @Test
    void shouldShowCountersThatSayTroubleBelowTheTasksAndNoOthers() {
        final List<String> shown = below(status(3));
        assertEquals(List.of(), below(status(0)), "nothing happened");
        for (final Counter counter : Counter.values()) {
            final String start = String.format("%12d  %-28s ", 3, counter.label());
            assertEquals(counter.isTrouble(), shown.stream().anyMatch(line -> line.startsWith(start)), start);
        }
        for (final Counter counter : List.of(Counter.JOB_MISSES, Counter.BOUNDS_BROKEN, Counter.MECHANISM_ERRORS,
            Counter.JOURNAL_DROPS, Counter.TASKS_REFUSED)) {
            assertTrue(counter.isTrouble(), counter.label());
        }
        for (final Counter counter : List.of(Counter.RECORDS, Counter.BEGINS, Counter.PREEMPTIONS, Counter.SLEEPS,
            Counter.GC_PAUSES, Counter.ANTICIPATED)) {
            assertTrue(!counter.isTrouble(), counter.label());
        }
        assertTrue(ConductorCounter.CLIENTS_DIED.isTrouble() && !ConductorCounter.CLIENTS_CLOSED.isTrouble());
    }

    @Test
    void shouldSayThatTheProofIsBrokenOnceACallOrWaitWasAboveItsConstant() {
        final ObjectNode status = status(0);
        status.putObject("admission").put("proven", true).put("claim", "sound");
        assertTrue(StatusText.of(status).contains("proof    sound"), StatusText.of(status));
        final ObjectNode gpu = status.withArray("gpus").addObject();
        gpu.withArray("contexts").addObject().put("units", 8);
        gpu.withArray("contexts").addObject().put("units", 0);
        gpu.withArray("contexts").addObject();
        gpu.withArray("contexts").addObject();
        status.putObject("admission").put("proven", true).put("claim", "sound").put("contexts_measured", 3);
        assertTrue(!StatusText.of(status).contains("conditional"), "one has no channels");
        status.putObject("admission").put("proven", true).put("claim", "sound").put("contexts_measured", 2);
        assertTrue(StatusText.of(status).contains("conditional: 3 processes have a context of one GPU, the constants "
            + "were measured with 2 (gpuseg calibrate --others 2)"), StatusText.of(status));
        status.putObject("admission").put("proven", false).put("constants_broken", 4);
        assertTrue(StatusText.of(status).contains("proof    BROKEN: 4 driver calls and waits of begins took longer "
            + "than the constants"), StatusText.of(status));
    }

    @Test
    void shouldNameProgramsOutsideOfTheSpace() {
        final ObjectNode status = status(0);
        final ObjectNode space = status.putObject("space").put("reserve", 12).put("places", 3).put("pipe", "/run/mps");
        assertTrue(StatusText.of(status).contains("space    12% reserve, 3 places, MPS at /run/mps\n"),
            StatusText.of(status));
        assertTrue(!StatusText.of(status).contains("outside"));
        space.put("occupied", 3);
        assertTrue(!StatusText.of(status).contains("are inside"));
        space.put("occupied", 4);
        assertTrue(StatusText.of(status).contains("         4 best-effort processes are inside: together they may take "
            + "the reserve\n"), StatusText.of(status));
        space.putArray("outside").add("python3[11]").add("x[12]");
        assertTrue(StatusText.of(status).contains("         outside, in time slices of the whole GPU: python3[11], "
            + "x[12]\n"), StatusText.of(status));
    }

    @Test
    void shouldSayByWhichBoundsAndConstantsASetIsProven() {
        final ObjectNode status = status(0);
        status.putObject("admission").put("proven", true).put("claim", "sound").put("constants", "turns-suspend (x)");
        assertTrue(StatusText.of(status).contains("proof    sound\nbounds   turns-suspend (x)\n"),
            StatusText.of(status));
        status.withObject("/admission").put("claim", "");
        assertTrue(!StatusText.of(status).contains("bounds "), "nothing is open");
    }

    @Test
    void shouldShowSkippedJobsBelowTheTaskThatHasSome() {
        final ObjectNode status = status(0);
        status.withArray("tasks").addObject().put("name", "camera").put("skipped", 7);
        status.withArray("tasks").addObject().put("name", "lidar").put("skipped", 0);
        final List<String> lines = StatusText.of(status).lines().toList();
        final List<String> skipped = lines.stream().filter(line -> line.contains("skipped")).toList();
        assertEquals(1, skipped.size(), lines.toString());
        assertTrue(skipped.get(0).endsWith("skipped 7 of the jobs that it had released"), skipped.get(0));
        assertTrue(lines.get(lines.indexOf(skipped.get(0)) - 1).contains("camera"), lines.toString());
    }

    @Test
    void shouldShowEveryCounterOfADaemonThatDoesNotSayWhichMeanTrouble() {
        final ObjectNode status = status(3);
        status.path("counters").forEach(counter -> ((ObjectNode) counter).remove("trouble"));
        assertEquals(Counter.values().length, below(status).size());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.assign.PriorityAssignment;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KnownAnswersTest {
    /** Table 2 of the GCAPS paper; the GPU order is 1 &gt; 2 &gt; 4 &gt; 3. */
    private static final String TABLE_2 = """
        platform: {cpus: 2, epsilon: %s}
        tasks:
          - {name: t1, cpu: 1, period: 80ms, priority: 4, gpu_priority: 4,
             segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}, {cpu: 4ms}, {gpu: {host: 2ms, device: 2ms}},
             {cpu: 3ms}]}
          - {name: t2, cpu: 1, period: 150ms, priority: 3, segments: [{cpu: 40ms}]}
          - {name: t3, cpu: 2, period: 190ms, priority: 2, gpu_priority: %d,
             segments: [{cpu: 4ms}, {gpu: {host: 5ms, device: 80ms}}, {cpu: 30ms}]}
          - {name: t4, cpu: 1, period: 200ms, priority: 1, gpu_priority: %d,
             segments: [{cpu: 16ms}, {gpu: {host: 2ms, device: 10ms}}, {cpu: 2ms}]}
        """;

    static TaskSet read(final String yaml) {
        try {
            return new TaskSetReader().readText(yaml, "test.yaml");
        } catch (final InvalidFileException e) {
            throw new AssertionError(e);
        }
    }

    static List<Long> bounds(final String analysis, final TaskSet set) {
        final List<Long> bounds = new ArrayList<>();
        Analyses.get(analysis).analyse(set).tasks().forEach(t -> bounds.add(t.wcrtNs()));
        return bounds;
    }

    private static List<Long> milliseconds(final long... values) {
        final List<Long> list = new ArrayList<>();
        for (final long value : values) {
            list.add(value * 1_000_000);
        }
        return list;
    }

    @ParameterizedTest
    @ValueSource(strings = {"gcaps-suspend", "gcaps-busy", "gcaps-window-suspend", "gcaps-window-busy", "tsg-rr-busy",
        "gcaps-boost-suspend", "gate-suspend", "mpcp-suspend", "fmlp-suspend"})
    void shouldGiveTheClassicalBoundsForTasksWithoutGpu(final String analysis) {
        final TaskSet set = read("""
            platform: {cpus: 1}
            tasks:
              - {name: a, cpu: 1, period: 4ns, priority: 9, segments: [{cpu: 1ns}]}
              - {name: b, cpu: 1, period: 5ns, priority: 8, segments: [{cpu: 1ns}]}
              - {name: c, cpu: 1, period: 9ns, priority: 7, segments: [{cpu: 3ns}]}
              - {name: d, cpu: 1, period: 18ns, priority: 6, segments: [{cpu: 3ns}]}
            """);
        if (analysis.endsWith("suspend") && (analysis.startsWith("mpcp") || analysis.startsWith("fmlp"))) {
            // their published form keeps the jitter R - C of CPU-only tasks: larger, never smaller
            assertEquals(1L, bounds(analysis, set).get(0));
            assertTrue(bounds(analysis, set).get(1) >= 2);
            return;
        }
        assertEquals(List.of(1L, 2L, 7L, 18L), bounds(analysis, set));
    }

    @Test
    void shouldCompareTheFinalResponseWithTheDeadlineWhenThereIsJitter() {
        final TaskSet set = read("""
            platform: {cpus: 1}
            tasks: [{name: a, cpu: 1, period: 10ns, deadline: 5ns, jitter: 4ns, priority: 9, segments: [{cpu: 1ns}]},
                    {name: b, cpu: 1, period: 10ns, deadline: 5ns, jitter: 4ns, priority: 8, segments: [{cpu: 1ns}]}]
            """);
        final AnalysisResult result = Analyses.get("gcaps-suspend").analyse(set);
        assertEquals(5L, result.tasks().get(0).wcrtNs());
        assertNull(result.tasks().get(1).wcrtNs());
        assertFalse(result.schedulable());
    }

    @Test
    void shouldReproduceTheExampleOfTable2() {
        assertEquals(milliseconds(26, 75, 187, 143), bounds("gcaps-suspend", read(TABLE_2.formatted("1ms", 1, 2))));
        assertEquals(milliseconds(19, 66, 157, 127), bounds("gcaps-suspend", read(TABLE_2.formatted("0ms", 1, 2))));
        final AnalysisResult monotonic = Analyses.get("gcaps-suspend").analyse(read(TABLE_2.formatted("1ms", 2, 1)));
        assertFalse(monotonic.schedulable());
        assertNull(monotonic.tasks().get(3).wcrtNs());
        assertTrue(monotonic.tasks().get(2).schedulable());
    }

    @Test
    void shouldFindTheGpuOrderOfTable2() {
        final Analysis analysis = Analyses.get("gcaps-suspend");
        for (final PriorityAssignment assignment : List.of(PriorityAssignment.AUDSLEY, PriorityAssignment.OPA)) {
            final TaskSet assigned = assignment.assign(read(TABLE_2.formatted("1ms", 2, 1)), analysis);
            assertTrue(assigned.tasks().get(3).gpuPriority() > assigned.tasks().get(2).gpuPriority());
            assertTrue(analysis.analyse(assigned).schedulable());
        }
    }

    @Test
    void shouldChargeTheSpinningOfLocalTasksToCpuOnlyOnes() {
        final TaskSet set = read("""
            platform: {cpus: 1, epsilon: 0ms}
            tasks: [{name: a, cpu: 1, period: 100ms, priority: 9, segments: [{cpu: 1ms}, {gpu: {device: 10ms}}]},
                    {name: b, cpu: 1, period: 100ms, priority: 8, segments: [{cpu: 5ms}]}]
            """);
        assertEquals(milliseconds(11, 16), bounds("gcaps-busy", set));
        assertEquals(milliseconds(11, 6), bounds("gcaps-busy-printed", set));
        assertEquals(milliseconds(11, 16), bounds("gcaps-window-busy", set));
    }

    /**
     * The window gap. Schedule of the mechanism, by hand, epsilon 0: h runs its C in [0,1], begins at 1 and holds
     * the GPU; hc takes the core at 2 with 1 of 5 ms of h's host part done, until 32; host part until 36, device
     * part until 41. lo begins at 2 (released at 1, C = 1), waits for the end of the window at 41, and completes at
     * 51: response 50.
     */
    @Test
    void shouldBeExceededByTheMechanismWithoutWindowsAndNotWithThem() {
        final String yaml = """
            platform: {cpus: 2, epsilon: 0ms}
            tasks:
              - {name: hc, cpu: 1, period: 100ms, priority: 30, segments: [{cpu: 30ms}]}
              - {name: h, cpu: 1, period: 100ms, priority: 20, segments: [{cpu: 1ms}, {gpu: {host: 5ms, device: 5ms}}]}
              - {name: lo, cpu: 2, period: 100ms, deadline: %s, priority: 10, segments: [{cpu: 1ms},
                  {gpu: {device: 10ms}}]}
            """;
        final long beginH = 1;
        final long hostDone = 2 + 30 + (5 - (2 - beginH));
        final long endH = hostDone + 5;
        final long responseOfLo = endH + 10 - 1;
        assertEquals(50, responseOfLo);
        assertEquals(milliseconds(30, 41, 16), bounds("gcaps-suspend", read(yaml.formatted("40ms"))));
        assertFalse(Analyses.get("gcaps-window-suspend").analyse(read(yaml.formatted("40ms"))).schedulable());
        final long window = bounds("gcaps-window-suspend", read(yaml.formatted("100ms"))).get(2);
        assertTrue(window >= responseOfLo * 1_000_000, "bound " + window);
        assertEquals(51_000_000, window);
        assertEquals(21_000_000, bounds("gcaps-boost-suspend", read(yaml.formatted("40ms"))).get(2));
    }

    @Test
    void shouldBlockUnboostedTasksByBoostedHostParts() {
        final TaskSet set = read("""
            platform: {cpus: 1, epsilon: 0ms}
            tasks: [{name: a, cpu: 1, period: 100ms, priority: 9, segments: [{cpu: 5ms}]},
                    {name: b, cpu: 1, period: 100ms, priority: 8, segments: [{gpu: {host: 3ms, device: 10ms}}]}]
            """);
        assertEquals(milliseconds(5, 18), bounds("gcaps-window-suspend", set));
        assertEquals(milliseconds(8, 18), bounds("gcaps-boost-suspend", set));
        assertEquals(milliseconds(18, 18), bounds("gcaps-boost-busy", set));
    }

    @Test
    void shouldWaitForOneLowerWindowPerRequestAtAGate() {
        final TaskSet set = read("""
            platform: {cpus: 2, epsilon: 1ms, theta: 0ms}
            tasks: [{name: a, cpu: 1, period: 100ms, priority: 9, segments: [{gpu: {device: 2ms}},
                {gpu: {device: 2ms}}]},
                    {name: b, cpu: 2, period: 100ms, priority: 8, segments: [{gpu: {device: 10ms}}]}]
            """);
        assertEquals(milliseconds(24, 14), bounds("gate-suspend", set));
    }

    @Test
    void shouldLetTwoGpusMeetOnTheCoreOnly() {
        final TaskSet set = read("""
            platform: {cpus: 2, epsilon: 0ms, gpus: 2}
            tasks: [{name: a, cpu: 1, gpu: 0, period: 100ms, priority: 9, segments: [{gpu: {host: 1ms,
                device: 10ms}}]},
                    {name: b, cpu: 2, gpu: 1, period: 100ms, priority: 8, segments: [{gpu: {host: 1ms,
                    device: 20ms}}]},
                    {name: c, cpu: 1, gpu: 1, period: 100ms, priority: 7, segments: [{gpu: {host: 1ms, device: 3ms}}]}]
            """);
        assertEquals(milliseconds(11, 21, 26), bounds("gcaps-window-suspend", set));
    }

    @Test
    void shouldPreferTheEarlierDeadlineUnderEdfWhateverThePriorities() {
        final TaskSet set = read("""
            platform: {cpus: 2, epsilon: 0ms}
            tasks: [{name: a, cpu: 1, period: 20ms, segments: [{gpu: {device: 5ms}}]},
                    {name: b, cpu: 2, period: 200ms, segments: [{gpu: {device: 50ms}}]}]
            """);
        final AnalysisResult result = Analyses.get("edf-edf-suspend").analyse(set);
        assertEquals(5_000_000L, result.tasks().get(0).wcrtNs());
        assertTrue(result.schedulable());
        assertThrows(InvalidModelException.class, () -> Analyses.get("edf-fp-suspend").analyse(set));
    }

    @Test
    void shouldNameWhatIsMissing() {
        final TaskSet noCpu = read(
            "platform: {cpus: 1}\ntasks: [{name: a, period: 9ms, priority: 1, segments: [{cpu: 1ms}]}]");
        assertTrue(assertThrows(InvalidModelException.class,
            () -> Analyses.get("gcaps-suspend").analyse(noCpu)).getMessage()
            .contains("--partition"));
        assertTrue(assertThrows(IllegalArgumentException.class,
            () -> Analyses.parse("gcaps-suspend,nonsense")).getMessage()
            .contains("known are"));
        assertEquals(Analyses.all(), Analyses.parse("all"));
        assertEquals(12, Analyses.inFigures().size());
    }

    @Test
    void shouldTreatSumsBeyondTheRangeAsPastTheDeadlineOrRefuseThem() {
        final TaskSet set = read("""
            platform: {cpus: 2, epsilon: 9007199254740992ns}
            tasks: [{name: a, cpu: 1, period: 1ns, priority: 9, segments: [{cpu: 4503599627370496ns},
                {gpu: {device: 1ns}}]},
                    {name: b, cpu: 1, period: 9007199254740992ns, priority: 8,
                     segments: [{cpu: 1ns}, {gpu: {host: 2ns, device: 4503599627370496ns}}]},
                    {name: c, cpu: 2, period: 9007199254740992ns, priority: 7, segments: [{gpu: {device: 9s}}]}]
            """);
        for (final Analysis analysis : Analyses.all()) {
            try {
                assertFalse(analysis.analyse(set).schedulable(), analysis.name());
            } catch (final InvalidModelException e) {
                assertTrue(e.getMessage().contains("2^63"), e.getMessage());
            }
        }
        assertThrows(InvalidFileException.class, () -> new TaskSetReader().readText("""
            platform: {cpus: 1}
            tasks: [{name: a, cpu: 1, period: 1s, priority: 9,
                     segments: [{cpu: 9007199254740992ns}, {cpu: 9007199254740992ns}]}]
            """, "test.yaml"));
    }
}

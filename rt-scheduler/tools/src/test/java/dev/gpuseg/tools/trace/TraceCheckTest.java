/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What {@code trace check} prints of journals that are written by hand. */
@Timeout(60)
class TraceCheckTest {
    private static final long MS = 1_000_000;
    private static final int JOBS = 30;
    private static final String INTERRUPT = "\"policy\":\"fp\",\"mechanism\":\"sim\",\"level_name\":\"interrupt\","
        + "\"preemptive\":true";

    @TempDir
    private Path directory;

    private JournalRing ring;
    private long ticket;
    /** What admission says before a job, by its number. */
    private final Map<Integer, String> said = new HashMap<>();

    /** Thirty jobs of 3 ms of a task with deadline 5 ms, which is alone; the given one takes 9 ms, or all if -1. */
    private StringOutput check(final String start, final int late, final String... more) throws Exception {
        final Path journal = directory.resolve("journal");
        try (JournalRing opened = new JournalRing(directory.resolve("ring"), 1 << 18);
            JournalAgent agent = new JournalAgent(opened, journal, 1 << 20)) {
            ring = opened;
            ring.writeText(EventKind.START, 1, 0, 0, 0, 0, 0, 0, "{" + start + "}");
            ring.writeText(EventKind.TASK_OPEN, 1, 0, 1, 1, 1, 0, 0, "{\"name\":\"control\",\"priority\":10}");
            ring.writeText(EventKind.TASK_OPEN, 1, 0, 2, 2, 2, 0, 0, "{\"name\":\"logger\",\"priority\":0}");
            for (int k = 0; k < JOBS; k++) {
                if (said.containsKey(k)) {
                    ring.writeText(EventKind.POLICY, 10 * MS * (k + 1) - 1, 0, 0, 0, 0, 0, 0, "settings admission by "
                        + said.get(k) + " (epsilon 1ms)");
                }
                job(10 * MS * (k + 1), late == k || late == -1 ? 9 * MS : 3 * MS);
            }
            agent.drain();
        }
        final Path set = Files.writeString(directory.resolve("set.yaml"), """
            version: 1
            id: one
            platform: {cpus: 2, epsilon: 1ms, theta: 100us, turns: {slice: 100us, contexts: 1}}
            tasks:
              - {name: control, cpu: 1, period: 10ms, deadline: 5ms, priority: 10,
                 segments: [{gpu: {host: 0ms, device: 2ms}}, {cpu: 1ms}]}
              - {name: logger, cpu: 1, period: 40ms, best_effort: true, segments: [{gpu: {host: 0ms, device: 1ms}}]}
            """);
        final List<String> words = new ArrayList<>(List.of("trace", "check",
            journal.toString(), "--taskset", set.toString()));
        words.addAll(List.of(more));
        return StringOutput.of(words.toArray(new String[0]));
    }

    private void job(final long releaseNs, final long responseNs) {
        ticket++;
        Recordings.job(ring, ticket, releaseNs, responseNs);
    }

    @Test
    void shouldBeginWithATableOfTheTasks() throws Exception {
        final StringOutput checked = check(INTERRUPT, 4);
        assertEquals(ExitCode.NO, checked.status(), checked.text());
        final List<String> lines = checked.out().lines().toList();
        assertEquals("task       jobs   late    longest  of", lines.get(0), checked.out());
        assertEquals("control      30      1        9ms  bound 5ms (180 %)", lines.get(1), checked.out());
        assertEquals("logger        0      -          -  best effort", lines.get(2), checked.out());
        assertEquals(List.of("deadline: task \"control\" job 5 took 9ms, deadline 5ms",
            "bound: task \"control\" job 5 took 9ms, more than the bound 5ms of gcaps-window-suspend"),
            lines.subList(3, 5), checked.out());
    }

    @Test
    void shouldShowTenFindingsOfEachKind() throws Exception {
        final List<String> lines = check(INTERRUPT, -1).out().lines().toList();
        for (final String kind : List.of("deadline: ", "bound: ")) {
            final List<String> of = lines.stream().filter(line -> line.startsWith(kind)).toList();
            assertEquals(11, of.size(), lines.toString());
            assertEquals(kind + "20 more (--json shows all)", of.get(10));
        }
        assertTrue(lines.get(lines.size() - 1).startsWith("60 broken: 30 jobs judged, bounds of "), lines.toString());
    }

    @Test
    void shouldHoldResponsesToTheBoundOfTheRecordedPolicyAndMechanism() throws Exception {
        final String edf = check(INTERRUPT.replace("fp", "edf"), 4).out();
        assertTrue(edf.contains("more than the bound 5ms of edf-fp-suspend"), edf);
    }

    /** 3 ms, one turn and one more with a switch each, a switch back, two calls; whatever the policy. */
    @Test
    void shouldHoldResponsesToTheBoundByWhichAdmissionProvedThem() throws Exception {
        said.put(0, "turns: turns-suspend");
        final String turns = check(INTERRUPT.replace("fp", "classes"), 4).out();
        assertTrue(turns.contains("more than the bound 3.7ms of turns-suspend"), turns);
    }

    @Test
    void shouldCompareWithNoBoundWhereJobsWereProvenInTwoWays() throws Exception {
        said.put(0, "turns: turns-suspend");
        said.put(20, "calls: gcaps-window-suspend");
        final String both = check(INTERRUPT, 4).out();
        assertTrue(both.contains("not compared with bounds: jobs ran by turns and by calls")
            && !both.contains("bound: "), both);
    }

    @Test
    void shouldHoldResponsesToTheBoundOfAGate() throws Exception {
        final String gate = check(INTERRUPT.replace("interrupt", "gate").replace("true", "false"), 4).out();
        assertTrue(gate.contains(" of gate-suspend"), gate);
    }

    @Test
    void shouldCompareWithNoBoundWhereNoneIsSound() throws Exception {
        final StringOutput held = check(INTERRUPT.replace("interrupt", "gate").replace("sim", "launch"), 4);
        assertTrue(held.out().contains("note: response times are not compared with bounds: mechanism launch has no "
            + "sound analysis"), held.out());
        assertTrue(held.out().contains("deadline 5ms (180 %)") && !held.out().contains("bound: "), held.out());
    }

    @Test
    void shouldGiveTheTableInJson() throws Exception {
        final JsonNode task = new ObjectMapper().readTree(check(INTERRUPT, 4, "--json").out()).path("tasks").path(0);
        assertEquals(new ObjectMapper().readTree("{\"task\":\"control\",\"jobs\":30,\"late\":1,\"longest_ns\":9000000,"
            + "\"deadline_ns\":5000000,\"bound_ns\":5000000}"), task);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.analysis.policy.RenamedPolicy;
import dev.gpuseg.analysis.policy.TestJar;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The example of the documentation decides about real processes on the virtual GPU. */
@Timeout(240)
@Tag("long")
class PolicyJarSystemTest {
    private static final String TASKS = """
        version: 1
        id: slack
        platform: {cpus: 2, epsilon: 5s}
        tasks:
          - {name: short, cpu: 1, period: 100ms, deadline: 60ms, priority: 20,
             segments: [{gpu: {host: 1s, device: 1s}}]}
          - {name: long, cpu: 2, period: 100ms, deadline: 90ms, priority: 10,
             segments: [{gpu: {host: 1s, device: 1s}}]}
        """;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Child task(final long startNs, final String name, final String... more) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", rig.directory().root().toString(), "--name", name, "--period", "100ms", "--duration", "2s",
            "--start-at", Long.toString(startNs), "--cpu-mode", "sleep"));
        command.addAll(List.of(more));
        return rig.start(name, command);
    }

    @Test
    void shouldGiveTheGpuToTheLeastSlackAndReplayIt() throws Exception {
        final String dir = rig.directory().root().toString();
        final Path jar = TestJar.leastSlackFirst(rig.file("jar"));
        rig.gpu();
        final Child daemon = rig.daemon("--policy-jar", jar.toString());
        assertEquals("least-slack", rig.status().path("policy").asText(), "the only policy of the jar");
        final long startNs = System.nanoTime() + 1_000_000_000L;
        // slack at the begin of long: short 60 - 30 - 10 = 20 ms, long 90 - 80 = 10 ms; by deadline short is first
        final Child first = task(startNs, "short", "--priority", "20", "--deadline", "60ms", "--budget", "30ms",
            "--segments", "gpu:0ms+20ms");
        final Child second = task(startNs, "long", "--priority", "10", "--deadline", "90ms", "--budget", "80ms",
            "--segments", "gpu:0ms+30ms", "--offset", "10ms");
        final Child undeclared = task(startNs, "undeclared", "--priority", "10", "--segments", "gpu:0ms+1ms");
        assertTrue(undeclared.awaitExit(40) != 0 && undeclared.said().contains("goes by budgets and budget is 0"),
            undeclared.said());
        SystemRig.summary(first, 60);
        SystemRig.summary(second, 60);

        for (final String name : List.of("edf", "least-slack")) {
            final StringOutput set = StringOutput.of("policy", "--dir", dir, "--set", name);
            assertEquals(ExitCode.OK, set.status(), set.text());
            assertEquals(name, rig.status().path("policy").asText());
        }
        final StringOutput unknown = StringOutput.of("policy", "--dir", dir, "--set", "lottery");
        assertEquals(ExitCode.USAGE, unknown.status(), unknown.text());
        assertTrue(unknown.text().contains("policy \"lottery\" is unknown; use "
            + PolicyCatalog.builtIn().names().replace(" or ", ", ") + " or least-slack"), unknown.text());
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", dir).status());
        SystemRig.awaitEnd(daemon, 20_000);

        final Path journal = rig.directory().journal();
        final Map<String, Integer> preempted = preemptions(journal);
        assertTrue(preempted.getOrDefault("short by long", 0) > 0, "by deadline short would go on: " + preempted);
        assertReplays(journal, jar);
        assertIsPlayedAgain(journal, jar);
    }

    /** The tasks of the recording under the policy of the jar, on another virtual GPU. */
    private void assertIsPlayedAgain(final Path journal, final Path jar) throws Exception {
        final StringOutput unknown = StringOutput.of("replay", journal.toString(), "--policy", "least-slack");
        assertEquals(ExitCode.USAGE, unknown.status(), unknown.text());
        assertTrue(unknown.err().contains("policy \"least-slack\" is unknown"), unknown.err());
        final StringOutput played = StringOutput.of("replay", journal.toString(), "--policy-jar", jar.toString(),
            "--duration", "1s", "--out", rig.file("replayed").toString(), "--json");
        assertEquals(ExitCode.OK, played.status(), played.text());
        final JsonNode root = new ObjectMapper().readTree(played.out());
        assertEquals("least-slack", root.path("policy").asText(), "the only policy of the jar");
        assertEquals(2, root.path("tasks").size(), played.out());
        root.path("tasks").forEach(task -> assertTrue(task.path("replayed").path("jobs").asInt() > 0, played.out()));
    }

    /** What a journal says of one task. */
    private static final class Seen {
        private String name;
        private long deadlineNs;
        private long budgetNs;
        private long startByNs;
    }

    /** Counts who preempted whom, and holds the latest starts of both against each other. */
    private static Map<String, Integer> preemptions(final Path journal) {
        final Set<String> demoted = new HashSet<>();   // a stalled machine can let a segment use up its budget
        JournalReader.forEach(journal, event -> {
            if (event.kind() == EventKind.OVERRUN) {
                demoted.add(event.taskId() + "/" + event.ticket());
            }
        });
        final Map<Integer, Seen> tasks = new HashMap<>();
        final Map<String, Integer> preempted = new HashMap<>();
        final boolean[] judged = {true};
        JournalReader.forEach(journal, event -> {
            final Seen task = tasks.computeIfAbsent(event.taskId(), id -> new Seen());
            switch (event.kind()) {
                case TASK_OPEN -> {
                    final JsonNode opened = parse(event.text());
                    task.name = opened.path("name").asText();
                    task.deadlineNs = opened.path("deadline_ns").asLong();
                    task.budgetNs = opened.path("budget_ns").asLong();
                }
                case BEGIN -> {
                    final long releaseNs = event.arg1() > 0 ? event.arg1() : event.arg0();
                    task.startByNs = (event.arg2() > 0 ? event.arg2() : releaseNs + task.deadlineNs) - task.budgetNs;
                }
                case POLICY -> judged[0] &= !event.text().startsWith("policy edf");
                case PREEMPT -> {
                    final Seen by = tasks.get((int) event.arg0());
                    preempted.merge(task.name + " by " + by.name, 1, Integer::sum);
                    assertTrue(!judged[0] || by.startByNs < task.startByNs
                        || demoted.contains(event.taskId() + "/" + event.ticket()),
                        () -> event + ": latest start " + task.startByNs + ", of the other " + by.startByNs);
                }
                default -> {
                    // says nothing of the order
                }
            }
        });
        return preempted;
    }

    private static JsonNode parse(final String text) {
        try {
            return new ObjectMapper().readTree(text);
        } catch (final JsonProcessingException e) {
            throw new AssertionError(text, e);
        }
    }

    private void assertReplays(final Path journal, final Path jar) throws Exception {
        try (PolicySource source = PolicySource.open(jar)) {
            final DecisionReplay.Result same = DecisionReplay.of(Source.open(journal), source.reader());
            assertTrue(same.agrees(), same.toString());
            assertTrue(same.decisions() > 40, same.toString());
        }
        final DecisionReplay.Result other = DecisionReplay.of(Source.open(journal), new PolicyReader(PolicyCatalog
            .builtIn().with(new PolicyDescription("least-slack", "By deadline.", List.of(), Set.of(TaskNeed.DEADLINE),
                true, List.of(), a -> new RenamedPolicy("least-slack", EarliestDeadlineFirst.INSTANCE)))));
        assertFalse(other.differences().isEmpty(), "by deadline it would have been another order");
        final String tasks = Files.writeString(rig.file("tasks.yaml"), TASKS).toString();
        final StringOutput without =
            StringOutput.of("trace", "check", journal.toString(), "--taskset", tasks, "--decisions");
        assertTrue(without.out().contains("policy \"least-slack\" is unknown")
            && without.out().contains("replayed with that jar, see --policy-jar"), without.text());
        final StringOutput with = StringOutput.of("trace", "check", journal.toString(), "--taskset", tasks,
            "--decisions", "--policy-jar", jar.toString());
        assertFalse(with.out().contains("decisions: ") || with.out().contains("decision: "), with.text());
        assertTrue(with.out().matches("(?s).* [1-9][0-9]* decisions compared.*"), with.text());
    }
}

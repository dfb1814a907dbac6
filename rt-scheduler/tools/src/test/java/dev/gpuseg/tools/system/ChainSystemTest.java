/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Three processes of the C library hand a stamp on; the trace measures their chain and holds it against its bound. */
@Timeout(180)
class ChainSystemTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long MS = 1_000_000L;
    /** Far more time than the tasks need: the bound has room for what a busy machine adds. */
    private static final String SET = """
        version: 1
        id: car
        platform: {cpus: 3, epsilon: 2ms}
        tasks:
          - {name: camera, cpu: 1, period: 60ms, max_period: 60ms, priority: 70, segments: [{cpu: 20ms}]}
          - {name: detect, cpu: 2, period: 80ms, max_period: 80ms, priority: 60,
             segments: [{cpu: 10ms}, {gpu: {host: 10ms, device: 5ms}}]}
          - {name: brake, cpu: 3, period: 50ms, max_period: 50ms, priority: 80, segments: [{cpu: 20ms}]}
        chains:
          - {name: stop, tasks: [camera, detect, brake], edges: sampling LIMITS}
        """;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();
    private int runs;

    private Child task(final String name, final int priority, final String period, final String segments,
        final String... more) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", rig.directory().root().toString(), "--name", name, "--priority", Integer.toString(priority),
            "--period", period, "--segments", segments, "--duration", "3s", "--cpu-mode", "sleep"));
        command.addAll(List.of(more));
        return rig.start(name + runs, command);
    }

    private void play() throws Exception {
        runs++;
        final String first = rig.file("camera-detect" + runs).toString();
        final String second = rig.file("detect-brake" + runs).toString();
        final List<Child> tasks = List.of(task("camera", 70, "60ms", "cpu:1ms", "--stamp-out", first),
            task("detect", 60, "80ms", "cpu:1ms,gpu:1ms+3ms", "--stamp-in", first, "--stamp-out", second),
            task("brake", 80, "50ms", "cpu:1ms", "--stamp-in", second));
        for (final Child task : tasks) {
            SystemRig.summary(task, 60);
        }
    }

    private JsonNode check(final String limits, final String... more) throws Exception {
        final Path set = Files.writeString(rig.file("set.yaml"), SET.replace("LIMITS", limits));
        final List<String> arguments = new ArrayList<>(List.of("trace", "check",
            rig.directory().journal().toString(), "--taskset", set.toString(), "--json"));
        arguments.addAll(List.of(more));
        final StringOutput out = StringOutput.of(arguments.toArray(new String[0]));
        assertTrue(out.status() == ExitCode.OK || out.status() == ExitCode.NO, out::text);
        return JSON.readTree(out.out());
    }

    private static JsonNode first(final JsonNode checked, final String kind) {
        for (final JsonNode finding : checked.path("findings")) {
            if (kind.equals(finding.path("kind").asText())) {
                return finding;
            }
        }
        return null;
    }

    @Test
    void shouldMeasureAChainOfThreeProcessesBelowItsBoundAndNameTheJobThatBreaksALimit() throws Exception {
        rig.realTime();
        Attempts.of(4, () -> {
            play();
            final JsonNode checked = check("");
            final JsonNode chain = checked.path("chains").path(0);
            assertEquals("stop", chain.path("name").asText(), checked::toString);
            assertTrue(chain.path("outputs").asInt() > 10, checked::toString);
            // whoever samples at 60 and 80 ms cannot react to everything within 60 ms
            assertTrue(chain.path("max_reaction_ns").asLong() > 60 * MS, checked::toString);
            assertTrue(chain.path("max_age_ns").asLong() > 4 * MS, checked::toString);
            assertTrue(chain.path("max_age_ns").asLong() < chain.path("max_reaction_ns").asLong(), checked::toString);
            final JsonNode exceeded = first(checked, "chain-bound");
            if (exceeded != null) {   // a process stood still for longer than the slack of the bound
                return exceeded.toString();
            }
            assertTrue(chain.path("max_reaction_ns").asLong() <= chain.path("reaction_bound_ns").asLong() + MS);
            return null;
        });
        assertEquals(null, first(check(", reaction: 3600s, age: 3600s"), "chain-deadline"));
        final JsonNode late = first(check(", reaction: 60ms"), "chain-deadline");
        assertEquals("brake", late.path("task").asText());
        assertTrue(late.path("job").asInt() > 0 && late.path("measured").asLong() > 60 * MS, late::toString);
        assertTrue(late.path("text").asText().matches("task \"brake\" job \\d+ ended chain \"stop\" with reaction "
            + "[\\d.]+m?s, limit 60ms"), late::toString);
        final JsonNode old = first(check(", age: 4ms"), "chain-deadline");
        assertTrue(old.path("text").asText().contains("ended chain \"stop\" with age "), old::toString);
        namesArrivalsThatAreFurtherApartThanTheFileSays();

        final StringOutput stats = StringOutput.of("trace", "stats", rig.directory().journal().toString(),
            "--taskset", rig.file("set.yaml").toString(), "--json");
        final JsonNode measured = JSON.readTree(stats.out()).path("chains").path(0);
        assertTrue(measured.path("age_ns").path("max").asLong() >= measured.path("age_ns").path("p50").asLong()
            && measured.path("reaction_ns").path("count").asInt() > 5, stats::text);
        assertTrue(StringOutput.of("trace", "stats", rig.directory().journal().toString(), "--taskset",
            rig.file("set.yaml").toString()).out().contains("react p50"));
    }

    private void namesArrivalsThatAreFurtherApartThanTheFileSays() throws Exception {
        final Path set = Files.writeString(rig.file("short.yaml"), SET.replace("LIMITS", "")
            .replace("period: 60ms, max_period: 60ms", "period: 30ms, max_period: 31ms"));
        final StringOutput out = StringOutput.of("trace", "check", rig.directory().journal().toString(), "--taskset",
            set.toString(), "--json", "--tolerance", "1ms");
        assertEquals(ExitCode.NO, out.status(), out.text());
        final JsonNode pause = first(JSON.readTree(out.out()), "max-period");
        assertEquals("camera", pause.path("task").asText(), pause::toString);
        assertTrue(pause.path("text").asText().contains("the set says 31ms at most"), pause::toString);
    }
}

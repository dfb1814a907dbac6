/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.policy.TestJar;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.core.Policy;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Commands that take a jar with policies. */
@Timeout(240)
class PolicyJarCommandTest {
    /** Least slack first, but it grants a second real-time segment beside the first, and not the other way round. */
    private static final String CROOKED = """
            return leader.isRealTime() && other.isRealTime() && leader.gpuPriority() > other.gpuPriority();
        """;

    @TempDir
    private Path directory;

    private Path good() throws IOException {
        return TestJar.leastSlackFirst(directory.resolve("good"));
    }

    private Path crooked() throws IOException {
        final String source = Files.readString(Path.of("..", "docs", "examples", "least-slack-first", "example",
            "LeastSlackFirst.java"));
        final String changed = source.replace("return !leader.isRealTime() && !other.isRealTime();", CROOKED.strip())
            .replace("package example;", "").replace("LeastSlackFirst", "Crooked").replace("least-slack", "crooked");
        assertTrue(changed.contains(CROOKED.strip()), "the example has another mayRunBeside now");
        return new TestJar(directory.resolve("crooked")).source("Crooked", changed).service(Policy.class, "Crooked")
            .build("crooked.jar");
    }

    @Test
    void shouldVerifyAPolicyAndShowACounterexampleToEachLawThatItBreaks() throws Exception {
        final StringOutput good = StringOutput.of("policy", "verify", good().toString());
        assertEquals(ExitCode.OK, good.status(), good.text());
        assertTrue(good.out().contains("pass  transitive: ") && !good.out().contains("FAIL"), good.out());
        assertTrue(good.out().strip().endsWith("properties hold"), good.out());

        final String crooked = crooked().toString();
        final StringOutput bad = StringOutput.of("policy", "verify", crooked);
        assertEquals(ExitCode.NO, bad.status(), bad.text());
        assertTrue(bad.out().contains("FAIL  symmetric: mayRunBeside(a, b) equals mayRunBeside(b, a)"), bad.out());
        assertTrue(bad.out().contains("pass  transitive: "), bad.out());
    }

    @Test
    void shouldRefuseWhatIsNoJarWithPolicies() throws Exception {
        final Path text = Files.writeString(directory.resolve("text.jar"), "hello");
        for (final String file : new String[] {text.toString(), directory.resolve("none.jar").toString()}) {
            for (final String[] command : new String[][] {{"policy", "verify", file},
                {"run", "--dir", directory.resolve("run").toString(), "--policy-jar", file},
                {"demo", "--policy-jar", file}}) {
                final StringOutput refused = StringOutput.of(command);
                assertEquals(ExitCode.USAGE, refused.status(), refused.text());
                assertTrue(refused.err().contains(file), refused.err());
            }
        }
    }

    @Test
    void shouldNotStartADaemonUnderAPolicyThatBreaksALaw() throws Exception {
        final StringOutput refused = StringOutput.of("run", "--dir", directory.resolve("run").toString(),
            "--policy-jar", crooked().toString());
        assertEquals(ExitCode.USAGE, refused.status(), refused.text());
        assertTrue(refused.err().contains("cannot start: policy crooked of ")
            && refused.err().contains("breaks the law symmetric ("), refused.err());
        assertEquals(1, refused.err().strip().lines().count(), refused.err());
    }

    @Test
    void shouldNotStartADaemonThatAdmitsByProofUnderAPolicyWithoutOne() throws Exception {
        final Path platform = Files.writeString(directory.resolve("platform.yaml"), "cpus: 2\nepsilon: 1ms\n");
        final StringOutput refused = StringOutput.of("run", "--dir", directory.resolve("run").toString(),
            "--policy-jar", good().toString(), "--admission", "enforce", "--platform", platform.toString());
        assertEquals(ExitCode.USAGE, refused.status(), refused.text());
        assertTrue(refused.err().contains("policy least-slack has no sound analysis; use fp or edf"), refused.err());
    }

    @Test
    void shouldTakeTheJarFromTheSettingsFile() throws Exception {
        final Path settings = directory.resolve("gpuseg.yaml");
        Files.writeString(settings, "policy-jar: " + good() + "\npolicy: least-slack\n");
        final StringOutput fine = StringOutput.of("config", "check", settings.toString());
        assertEquals(ExitCode.OK, fine.status(), fine.text());
        Files.writeString(settings, "policy: fp\npolicy-jar: /nowhere/p.jar\n");
        final StringOutput bad = StringOutput.of("config", "check", settings.toString());
        assertEquals(ExitCode.USAGE, bad.status(), bad.text());
        assertTrue(bad.err().contains("gpuseg.yaml:2: policy-jar: '/nowhere/p.jar': "), bad.err());
        Files.writeString(settings, "policy: least-slack\n");
        assertTrue(StringOutput.of("config", "check", settings.toString()).err()
            .contains(":1: policy: 'least-slack': policy \"least-slack\" is unknown"));
    }

    @Test
    void shouldSimulateThePolicyOfAJar() throws Exception {
        final Path set = Files.writeString(directory.resolve("set.yaml"), """
            version: 1
            id: slack
            platform: {cpus: 2, epsilon: 0ms}
            tasks:
              - {name: short, cpu: 1, period: 1s, deadline: 90ms, priority: 20,
                 segments: [{gpu: {host: 0ms, device: 10ms}}]}
              - {name: long, cpu: 2, period: 1s, deadline: 100ms, priority: 10,
                 segments: [{gpu: {host: 0ms, device: 70ms}}]}
            """);
        final Path budgets = Files.writeString(directory.resolve("p.yaml"),
            "tasks: [{task: short, budget: 10ms}, {task: long, budget: 70ms}]\n");
        final JsonNode slack = simulate(set, "--scheduler", "least-slack", "--policy-jar", good().toString(),
            "--policy-file", budgets.toString());
        assertEquals("least-slack", slack.path("scheduler").asText());
        assertEquals(80_000_000, slack.path("tasks").path(0).path("max_response_ns").asLong(), "80 ms of slack");
        final JsonNode edf = simulate(set, "--scheduler", "edf");
        assertEquals(10_000_000, edf.path("tasks").path(0).path("max_response_ns").asLong(), "90 ms to the deadline");
        final StringOutput without = StringOutput.of("simulate", set.toString(), "--scheduler", "least-slack");
        assertEquals(ExitCode.USAGE, without.status());
        assertTrue(without.err().contains("--scheduler is 'least-slack'; it must be one of fp, edf"), without.err());
    }

    private static JsonNode simulate(final Path set, final String... options) throws IOException {
        final String[] all = new String[options.length + 4];
        System.arraycopy(new String[] {"simulate", set.toString(), "--format", "json"}, 0, all, 0, 4);
        System.arraycopy(options, 0, all, 4, options.length);
        final StringOutput done = StringOutput.of(all);
        assertEquals(ExitCode.OK, done.status(), done.text());
        return new ObjectMapper().readTree(done.out());
    }
}

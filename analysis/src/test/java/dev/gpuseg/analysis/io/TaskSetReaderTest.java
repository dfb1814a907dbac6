/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.RandomSets;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TaskSetReaderTest {
    private static final String GOOD = """
        version: 1
        id: demo
        platform: {cpus: 4, epsilon: 1ms, theta: 200us, timeslice: 1024us}
        mode: suspend
        tasks:
          - {name: camera, cpu: 1, period: 80ms, deadline: 80ms, priority: 70, gpu_priority: 70,
             segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}, {cpu: 4ms}, {gpu: {host: 2ms, device: 2ms,
             total: 3.5ms}}]}
          - {name: logger, cpu: 4, period: 200ms, best_effort: true, segments: [{cpu: 4ms}, {gpu: {host: 1ms,
              device: 44ms}}]}
        """;

    private static String refusal(final String content) {
        final String message = assertThrows(InvalidFileException.class,
            () -> new TaskSetReader().readText(content, "set.yaml")).getMessage();
        assertFalse(message.contains("\n"), message);
        assertTrue(message.startsWith("set.yaml:"), message);
        return message;
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "period: 80ms | period: 80 | set.yaml:6:36: task \"camera\": period is the bare number 80",
        "period: 80ms | period: -80ms | negative time",
        "period: 80ms | period: .nan | period",
        "period: 80ms | period: 0ms | period is 0",
        "period: 80ms | period: 9223372036854775807ns | longer than 2^53 ns",
        "period: 80ms | perod: 80ms | unknown key 'perod'; did you mean 'period'?",
        "cpu: 1, | cpu: 5, | cpu is '5'; it must be a whole number 1..4",
        "cpu: 1, | cpu: 0, | cpu is '0'",
        "cpu: 1, | cpu: 1.5, | cpu is '1.5'",
        "cpu: 1, | cpu: 0x1, | cpu is '0x1'",
        "cpu: 1, | gpu: 1, | gpu is '1'",
        "deadline: 80ms | deadline: 81ms | deadline is '81ms'",
        "priority: 70, gpu_priority | priority: 100, gpu_priority | priority is '100'",
        "priority: 70, gpu_priority | priority: 070, gpu_priority | priority is '070'; write it as a decimal number",
        "name: logger | name: /perception/lidar/node@Subscription(/points)@Service(/lidar/node/get) | has 69 bytes",
        "name: logger | name: カカカカカカカカカカカカカカカカカカカカカカ | has 66 bytes of UTF-8",
        "name: logger | name: \"a\u202eb\" | printable UTF-8",
        "best_effort: true | best_effort: 3 | write true or false",
        "best_effort: true | best_effort: true, priority: 5 | leave one of them out",
        "total: 3.5ms | total: 1ms | less than its longer part",
        "name: logger | name: camera | occurs already in line 6",
        "version: 1 | version: 2 | this reader knows version: 1",
        "mode: suspend | mode: sleep | write suspend or busy",
        "epsilon: 1ms, | '' | write the update delay",
        "cpus: 4 | cpus: many | cpus is 'many'",
        "tasks: | tusks: | set.yaml:5:1: the task set: unknown key 'tusks'",
        "id: demo | id: demo\\nid: twice | key 'id' occurs twice",
        "{cpu: 2ms} | {cpu: 2ms, gpu: {device: 1ms}} | write either cpu or gpu",
        "{cpu: 2ms} | {} | task \"camera\": segment 1 has 0 keys",
        "device: 4ms | devise: 4ms | task \"camera\": segment 2: gpu: unknown key 'devise'; did you mean 'device'",
    })
    void shouldRefuseWithFileLineThingAndRemedy(final String from, final String to, final String expected) {
        assertTrue(GOOD.contains(from), from);
        final String changed = to == null ? "" : to.replace("\\n", "\n");
        final String message = refusal(GOOD.replaceFirst(java.util.regex.Pattern.quote(from),
            java.util.regex.Matcher.quoteReplacement(changed)));
        assertTrue(message.contains(expected), message);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "'' | empty",
        "'{' | YAML",
        "'{\"a\": ' | JSON",
        "'[]' | the task set is a list",
        "'{\"tasks\": NaN}' | NaN",
        "'a: [1' | YAML",
        "'--- {}\n--- {}' | second document",
        "'&a [*a]' | alias",
        "'\"x\"' | write a mapping",
    })
    void shouldRefuseWhatIsNoTaskSet(final String content, final String expected) {
        final String message = refusal(content);
        assertTrue(message.contains(expected), message);
    }

    @Test
    void shouldRefuseDeepNesting() {
        refusal("{\"tasks\": " + "[".repeat(5_000) + "]".repeat(5_000) + "}");
        refusal("tasks: " + "[".repeat(5_000));
    }

    @Test
    void shouldRefuseAFileOfAHundredMegabytesAtOnce(@TempDir final Path directory) throws IOException {
        final Path big = directory.resolve("big.yaml");
        try (RandomAccessFile file = new RandomAccessFile(big.toFile(), "rw")) {
            file.setLength(100L << 20);
        }
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
            final String message = assertThrows(InvalidFileException.class,
                () -> new TaskSetReader().read(big)).getMessage();
            assertTrue(message.contains("104857600 bytes") && message.contains("--batch"), message);
        });
    }

    @Test
    void shouldRefuseMissingFilesDirectoriesAndBinaries(@TempDir final Path directory) throws IOException {
        assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(directory));
        assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(directory.resolve("none.yaml")));
        final Path binary = Files.write(directory.resolve("binary.yaml"), new byte[] {(byte) 0xff, (byte) 0xfe, 0});
        assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(binary));
    }

    @Test
    void shouldReadTheDocumentedExample() throws IOException {
        final TaskSet set = new TaskSetReader().readText(GOOD, "set.yaml");
        assertEquals("demo", set.id());
        assertEquals(WaitMode.SUSPEND, set.mode());
        assertEquals(1_000_000, set.platform().gpus().get(0).epsilonNs());
        assertEquals(6_000_000, set.tasks().get(0).cpuNs());
        assertEquals(9_500_000, set.tasks().get(0).gpuNs());
        assertEquals(4_000_000, set.tasks().get(0).hostNs());
        assertEquals(6_000_000, set.tasks().get(0).deviceNs());
        assertEquals(200_000_000, set.tasks().get(1).deadlineNs());
        assertTrue(set.tasks().get(1).bestEffort());
    }

    @Test
    void shouldKeepTheProcessOfATaskThroughEveryChange() throws InvalidFileException {
        final String shared = GOOD.replace("gpu_priority: 70,", "gpu_priority: 70, process: robot,");
        final TaskSet set = new TaskSetReader().readText(shared, "set.yaml");
        final var camera = set.tasks().get(0);
        assertEquals("robot", camera.process());
        assertNull(set.tasks().get(1).process());
        assertEquals(set, new TaskSetReader().readText(TaskSetWriter.json(set), "x"));
        assertEquals("robot", camera.withPriorities(1, 1).withPlacement(2, 0).withTimes(5, 1, 1)
            .withSegments(camera.segments()).withRank(0, 0, true).process());
        assertTrue(refusal(GOOD.replace("gpu_priority: 70,", "gpu_priority: 70, process: '',")).contains("process"));
    }

    @Test
    void shouldReadSeveralGpusWithAnEpsilonEach() throws IOException {
        final TaskSet set = new TaskSetReader().readText(GOOD.replace("epsilon: 1ms,",
            "epsilon: 1ms, gpus: [{epsilon: 2ms}, {theta: 100us}],"), "set.yaml");
        assertEquals(2_000_000, set.platform().gpus().get(0).epsilonNs());
        assertEquals(1_000_000, set.platform().gpus().get(1).epsilonNs());
        assertEquals(100_000, set.platform().gpus().get(1).thetaNs());
    }

    @Test
    void shouldReadAMeasuredProfileBesideTheFile(@TempDir final Path directory) throws IOException {
        Files.writeString(directory.resolve("h200-r580.yaml"), "cpus: 4\nepsilon: 90us\n");
        final Path file = Files.writeString(directory.resolve("set.yaml"), GOOD.replaceFirst("platform: .*",
            "platform: h200-r580"));
        final TaskSet set = new TaskSetReader().read(file);
        assertEquals(90_000, set.platform().gpus().get(0).epsilonNs());
        assertEquals("h200-r580", set.platform().profile());
        assertTrue(refusal(GOOD.replaceFirst("platform: .*", "platform: unknown")).contains("calibrate"));
        assertTrue(refusal(GOOD.replaceFirst("platform: .*", "platform: ../etc/passwd")).contains("letters"));
    }

    @Test
    void shouldTakeTheShorterDelaysOfAProfileWhereContextsDoNotComeAndGo(@TempDir final Path directory)
        throws IOException {
        Files.writeString(directory.resolve("h200.yaml"),
            "cpus: 4\nepsilon: 55ms\nalpha: 20ms\nquiet: {epsilon: 3ms, alpha: 1ms}\n");
        Files.writeString(directory.resolve("plain.yaml"), "cpus: 4\nepsilon: 55ms\n");
        final Path file = directory.resolve("set.yaml");
        Files.writeString(file, GOOD.replaceFirst("platform: .*", "platform: {profile: h200, churn: none}"));
        final TaskSet set = new TaskSetReader().read(file);
        assertEquals(3_000_000, set.platform().gpus().get(0).epsilonNs());
        assertEquals(1_000_000, set.platform().gpus().get(0).alphaNs());
        assertEquals("h200 without churn", set.platform().profile());
        Files.writeString(file, GOOD.replaceFirst("platform: .*", "platform: {profile: h200}"));
        assertEquals(55_000_000, new TaskSetReader().read(file).platform().gpus().get(0).epsilonNs());
        for (final String wrong : List.of("{profile: plain, churn: none}", "{profile: h200, churn: little}",
            "{cpus: 4, epsilon: 1ms, churn: none}")) {
            Files.writeString(file, GOOD.replaceFirst("platform: .*", "platform: " + wrong));
            assertTrue(assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(file)).getMessage()
                .contains("churn"), wrong);
        }
    }

    /** That tasks share the GPU is the set's to say, what it costs the machine's; other turns stand for themselves. */
    @Test
    void shouldTakeTurnsOfAProfileForTasksThatAreTogether(@TempDir final Path directory) throws IOException {
        Files.writeString(directory.resolve("h200.yaml"), "cpus: 4\nepsilon: 55ms\nturns: {slice: 100us, contexts: 3, "
            + "wait: 7ms, samples: 1000}\n");
        final Path file = directory.resolve("set.yaml");
        final String platform = "platform: {profile: h200, turns: {%s}}";
        Files.writeString(file, GOOD.replaceFirst("platform: .*", platform.formatted("together: true")));
        final TurnLimits together = new TurnLimits(100_000, 3, 7_000_000, 1000, true);
        assertEquals(together, new TaskSetReader().read(file).platform().limits().turns());
        assertNull(new TaskSetSchema().firstComplaint("{\"version\": 1, \"id\": \"s\", \"platform\": {\"profile\": "
            + "\"h200\", \"turns\": {\"together\": true}}, \"tasks\": [{\"name\": \"a\", \"period\": \"10ms\", "
            + "\"segments\": [{\"cpu\": \"1ms\"}]}]}"));
        Files.writeString(file, GOOD.replaceFirst("platform: .*", platform.formatted("slice: 1ms, contexts: 2")));
        assertEquals(new TurnLimits(1_000_000, 2), new TaskSetReader().read(file).platform().limits().turns());
        final PlatformLimits measured = PlatformLimits.NONE.withTurns(new TurnLimits(100_000, 3, 7_000_000, 1000,
            false));
        assertEquals(together, measured.over(PlatformLimits.NONE.withTurns(new TurnLimits(1, 1, 0, 0, true))).turns());
        assertEquals(measured, measured.over(PlatformLimits.NONE.withTurns(new TurnLimits(1, 1))));
        Files.writeString(file, GOOD.replaceFirst("platform: .*", "platform: {cpus: 4, epsilon: 1ms, turns: {together: "
            + "true}}"));
        assertTrue(assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(file)).getMessage()
            .contains("slice"));
    }

    @Property(tries = 200)
    void shouldReadBackWhatTheWriterWritesAndTheSchemaAccepts(@ForAll final long seed) throws IOException {
        final TaskSet set = RandomSets.of(seed);
        assertEquals(set, new TaskSetReader().readLine(TaskSetWriter.line(set), "batch", 1));
        assertEquals(set, new TaskSetReader().readText(TaskSetWriter.json(set), "set.json"));
        assertNull(new TaskSetSchema().firstComplaint(TaskSetWriter.line(set)));
    }

    @Test
    void shouldShipASchemaThatRefusesWhatTheReaderRefuses() throws IOException {
        final String good = TaskSetWriter.line(RandomSets.of(1));
        final TaskSetSchema schema = new TaskSetSchema();
        assertNull(schema.firstComplaint(good));
        assertTrue(schema.firstComplaint(good.replaceFirst("\"period\":\"[^\"]*\"", "\"period\":80")) != null);
        assertTrue(schema.firstComplaint(good.replaceFirst("\"period\"", "\"perod\"")) != null);
        assertTrue(schema.firstComplaint(good.replaceFirst("\"period\":\"", "\"period\":\"-")) != null);
    }

    @Test
    void shouldUnderstandAbbreviationsAndNameTheLineWhereAnOpenBracketIs() {
        final String head = "version: 1\nplatform: {cpus: 2, epsilon: 1ms}\n";
        assertTrue(refusal(head + "tasks:\n  - {name: a, cpu: 1, period: 9ms, prio: 3, segments: [{cpu: 1ms}]}\n")
            .contains("did you mean 'priority'?"));
        assertTrue(refusal(head + "tasks:\n  - {name: a, cpu: 1, period: 9ms, priority: 0, segments: [{cpu: 1ms}]}\n")
            .contains("best effort is best_effort: true"));
        final String open = refusal("version: 1\nid: x\nplatform: {cpus: 2, epsilon: 1ms\ntasks:\n  - {name: a}\n");
        assertTrue(open.contains(":3:11: not readable as YAML: while parsing a flow mapping: expected ',' or '}'"),
            open);
    }
}

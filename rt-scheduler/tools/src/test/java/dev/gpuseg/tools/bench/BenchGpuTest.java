/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The whole command on stand-ins: the bench's own programs on the RM stand-in (rt-scheduler/native/gpu-bench/standin),
 * a real daemon that takes their channels off, a script for nvidia-smi and one for Python. Times mean nothing here and
 * are not looked at.
 */
@Timeout(400)
@Tag("long")
class BenchGpuTest {
    private static final int LIMIT_S = 300;
    private static final int JOBS = 20;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path BUILD =
        Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native", "build").toAbsolutePath();
    private static final Path FAKE = BUILD.resolve("libgpuseg-rm-fake.so");

    /** With it a process is known after some hundred questions instead of thousands. */
    private static final Path CAPTURE = BUILD.resolve("libgpuseg-preload.so");

    /** What the bench expects of the PyTorch programs: their arguments, their page, their last line. */
    private static final String PYTHON = """
        #!/bin/sh
        case "$1" in
        -c) echo "CUDA True" ;;
        *resnet_training.py)
            [ "$2" = --page ] || exit 9
            printf '\\005' | dd of="$3" bs=1 seek=16 conv=notrunc 2> /dev/null
            printf '\\001' | dd of="$3" bs=1 seek=4 conv=notrunc 2> /dev/null
            while [ "$(dd if="$3" bs=1 skip=8 count=1 2> /dev/null | od -An -tu1 | tr -d ' ')" = 0 ]; do
                sleep 0.05
            done
            ;;
        *resnet_inference.py)
            jobs="$2"
            ns=1000
            mode=segment
            while [ $# -gt 0 ]; do
                case "$1" in
                --plain) mode=plain; ns=3000 ;;
                --samples) samples="$2" ;;
                esac
                shift
            done
            [ $mode = plain ] || [ -d "$GPUSEG_DIR" ] || exit 8
            echo response_ns > "$samples"
            i=0
            while [ $i -lt "$jobs" ]; do echo $ns >> "$samples"; i=$((i + 1)); done
            f="{\\"min\\":$ns,\\"p50\\":$ns,\\"p95\\":$ns,\\"p99\\":$ns,\\"max\\":$ns}"
            echo "{\\"mode\\":\\"$mode\\",\\"jobs\\":$jobs,\\"wrong\\":0,\\"loop_ns\\":9000000,\\"windows_ns\\":1000,"\\
        "\\"other_kernels\\":1,\\"response_ns\\":$f}"
            ;;
        *) exit 7 ;;
        esac
        """;

    private Path root;
    private Process standin;

    @BeforeEach
    void start() throws IOException {
        assumeTrue(Files.exists(FAKE) && Files.exists(BUILD.resolve("standin/gpuseg-bench-rt")),
            "the stand-ins are not built: make -C rt-scheduler/native");
        root = Files.createTempDirectory(Path.of("/dev/shm"), "gpuseg-test-bench-");
        startStandin(1);
        final Path programs = Files.createDirectory(root.resolve("programs"));
        final Path path = Files.createDirectory(root.resolve("path"));
        for (final String name : List.of("gpuseg-watchdog", "standin/gpuseg-bench-rt", "standin/gpuseg-bench-be")) {
            script(programs.resolve(Path.of(name).getFileName()), "#!/bin/sh\nLD_PRELOAD='" + CAPTURE + " " + FAKE
                + "' exec " + BUILD.resolve(name) + " \"$@\"\n");
        }
        script(path.resolve("nvidia-smi"), "#!/bin/sh\necho 'Stand-in GPU, 0.0, 1000 MHz, 500 MHz, 30'\n");
        script(path.resolve("python-standin"), PYTHON);
    }

    @AfterEach
    void stop() throws InterruptedException {
        if (standin != null) {
            standin.destroyForcibly().waitFor();
        }
        if (root != null) {
            RuntimeDirectory.deleteTree(root);
        }
    }

    private void startStandin(final int gpus) throws IOException {
        standin = new ProcessBuilder(BUILD.resolve("gpuseg-rm-standin").toString(), socket(), "0",
            Integer.toString(gpus)).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        assertEquals("ready", standin.inputReader().readLine());
        for (int gpu = 0; gpu < gpus; gpu++) {   // as /proc/driver/nvidia/gpus
            Files.createDirectories(root.resolve("gpus/0000:0" + (6 + gpu) + ":00.0"));
        }
    }

    private String socket() {
        return root.resolve("rm.sock").toString();
    }

    private static void script(final Path file, final String text) throws IOException {
        Files.writeString(file, text);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    /** What the command printed and how it ended. */
    private record Ended(int status, String out, String said) {
    }

    private Ended bench(final List<String> environment, final String... options) throws Exception {
        final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_RM_STANDIN=" + socket(), "PATH="
            + root.resolve("path") + ":" + System.getenv("PATH")));
        command.addAll(environment);
        final List<String> arguments = new ArrayList<>(List.of("bench", "gpu", "--jobs", Integer.toString(JOBS),
            "--pause", "1", "--settle", "4000", "--out", root.resolve("out").toString()));
        arguments.addAll(List.of(options));
        final List<String> java = JavaCommand.of(Gpuseg.class, arguments);
        java.addAll(1, List.of("-Dgpuseg.programs=" + root.resolve("programs"), "-Dgpuseg.nvidia.library=" + FAKE,
            "-Dgpuseg.nvidia.gpus=" + root.resolve("gpus")));
        command.addAll(java);
        try (Child child = Child.start("bench gpu", command, root.resolve("bench-errors"))) {
            final int status = child.awaitExit(LIMIT_S);
            return new Ended(status, String.join("\n", child.allLines()), child.said());
        }
    }

    private JsonNode results() throws IOException {
        return JSON.readTree(root.resolve("out/bench/results.json").toFile());
    }

    @Test
    void shouldMeasureEveryScenarioJudgeTheGoalsAndRecordTheRun() throws Exception {
        final Ended run = bench(List.of(), "--scenarios", "long,levels,burst,pytorch", "--others", "3", "--kernel",
            "2", "--other-kernel", "3", "--strategies", "NONE,BARE_BLOCKING,BLOCKING,OPTIMISTIC,HINT",
            "--python", "python-standin", "--require-goals");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertTrue(result.path("simulated").asBoolean(), "what a stand-in gave is labelled so");
        final JsonNode scenarios = result.path("scenarios");
        assertEquals(List.of("long", "levels", "burst", "pytorch"), names(scenarios));
        assertEquals(List.of("default", "bare calls, blocking", "interrupt, blocking", "interrupt, optimistic",
            "interrupt, hint 2 ms ahead"), strategies(scenarios.path("long")), all);
        assertEquals(List.of("default", "interrupt, optimistic", "interrupt, blocking"),
            strategies(scenarios.path("levels")));
        assertEquals(List.of("default", "interrupt, optimistic", "interrupt, optimistic, hold-off 500 us"),
            strategies(scenarios.path("burst")));
        assertEquals(List.of("default", "interrupt, optimistic"), strategies(scenarios.path("pytorch")));
        for (final JsonNode scenario : scenarios) {
            for (final JsonNode cell : scenario.path("cells")) {
                // a hold-off exists where the daemon knows it
                assertTrue(cell.has("response_ns") || cell.has("not_run"), () -> cell + "\n" + all);
            }
        }
        assertEquals(0, GpuGoals.wrong(result));
        final JsonNode blocking = scenarios.path("long").path("cells").get(2);
        final int calls = blocking.path("steps_ns").path("call").path("n").asInt();
        assertTrue(calls > 0 && calls <= JOBS, () -> "begins that took the others off: " + calls + "\n" + all);
        assertEquals(calls, blocking.path("steps_ns").path("grant_to_return").path("n").asInt());
        final JsonNode costs = scenarios.path("long").path("enforcement").get(0);
        assertEquals(3, costs.path("others").asInt());
        assertTrue(costs.path("begin_to_bare_p50").asDouble() > 0, all);
        assertTrue(costs.path("call_to_bare_p50").asDouble() > 0, all);
        assertTrue(scenarios.path("levels").path("cells").get(1).path("low").path("jobs").asInt() > 0, all);
        assertTrue(scenarios.path("burst").path("cells").get(1).path("later_ns").has("p50"), all);

        final JsonNode goals = result.path("goals");
        final boolean missed = StreamSupport.stream(goals.spliterator(), false)
            .anyMatch(goal -> goal.path("met").isBoolean() && !goal.path("met").asBoolean());
        assertEquals(missed ? ExitCode.NO : ExitCode.OK, run.status(), all);
        final JsonNode torch = StreamSupport.stream(goals.spliterator(), false)
            .filter(goal -> goal.path("goal").asText().startsWith("PyTorch")).findFirst().orElseThrow();
        assertEquals(1.0 / 3, torch.path("measured").asDouble(), 1e-4);
        assertTrue(torch.path("met").asBoolean());
        assertTrue(run.out().contains("SIMULATED") && run.out().contains("wrong results"), run.out());
        checkRecord();
    }

    private void checkRecord() throws Exception {
        final Path out = root.resolve("out");
        RecordedRunsTest.assertNamesEverything(out.resolve("manifest.json"));
        RecordedRunsTest.assertFollows(out.resolve("bench/results.json"));
        final JsonNode manifest = JSON.readTree(out.resolve("manifest.json").toFile());
        assertEquals("Stand-in GPU", manifest.path("machine").path("gpu").asText());
        assertEquals(1, manifest.path("seed").asInt());
        assertTrue(manifest.path("runs").get(0).path("command").asText()
            .startsWith("gpuseg bench gpu --jobs 20 --pause 1 --settle 4000 --out "), manifest.toString());
        assertEquals(0, manifest.path("wrong_results").asInt());
        assertTrue(manifest.has("commit") && manifest.has("xid_lines_in_dmesg") && manifest.has("privilege"));
        try (Stream<Path> files = Files.list(out.resolve("bench"))) {
            assertTrue(files.anyMatch(f -> f.getFileName().toString().equals("samples-long-3-blocking.csv")));
        }
        final var drawing = DocumentBuilderFactory.newInstance().newDocumentBuilder()
            .parse(out.resolve("bench/results.svg").toFile());
        assertTrue(drawing.getDocumentElement().getTextContent().contains("SIMULATED"));
        assertTrue(drawing.getDocumentElement().getTextContent().contains("ResNet-50"));
    }

    @Test
    void shouldMeasureWhatAnticipationGains() throws Exception {
        final Ended run = bench(List.of(), "--scenarios", "periodic", "--strategies", "OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("periodic");
        assertEquals(List.of("not anticipated", "period declared", "period learned", "declared, jitter of +-2 ms",
            "declared, then twice the period", "declared, 3 idle contexts more"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(3 * JOBS, cell.path("jobs").asInt(), all);
            assertTrue(cell.path("others_to_unanticipated").asDouble() > 0, all);
        }
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("best-effort work to that without anticipation"), run.out());
        RecordedRunsTest.assertFollows(root.resolve("out/bench/results.json"));
    }

    @Test
    void shouldMeasureTenTasksTogether() throws Exception {
        final Ended run = bench(List.of(), "--scenarios", "robot", "--strategies", "OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("robot");
        assertEquals(List.of("not anticipated", "anticipated"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(10, cell.path("tasks").size(), all);
            for (final JsonNode task : cell.path("tasks")) {
                assertTrue(task.path("jobs").asInt() > 0 && task.has("p99_to_alone") && task.has("missed"), all);
            }
        }
        assertTrue(scenario.path("cells").get(1).path("others_to_unanticipated").asDouble() > 0, all);
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("servo"), run.out());
        RecordedRunsTest.assertFollows(root.resolve("out/bench/results.json"));
    }

    @Test
    void shouldMeasureWhatASwitchOfContextsCosts() throws Exception {
        final Ended run = bench(List.of(), "--scenarios", "switch", "--strategies", "NONE,HINT");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("switch");
        assertEquals(List.of("alone, touched", "one works between, no daemon", "the same, touched",
            "busy, hint 4 ms ahead"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(10 * JOBS, cell.path("jobs").asInt(), all);
        }
        assertEquals(0, GpuGoals.wrong(result));
        RecordedRunsTest.assertFollows(root.resolve("out/bench/results.json"));
        assertTrue(goal(result, "3 idle contexts, 0.35 ms, not anticipated: p50").path("measured").isNull(), all);
    }

    @Test
    void shouldMeasureWhatAnIrregularTaskCostsOthers() throws Exception {
        final Ended run = bench(List.of(), "--scenarios", "disturb", "--strategies", "OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("disturb");
        assertEquals(List.of("regular", "stops", "doubles its period", "jitters by +-2 ms"), strategies(scenario), all);
        final List<Integer> jobsOfChanging = new ArrayList<>();
        for (final JsonNode cell : scenario.path("cells")) {
            assertTrue(cell.path("kept_free_share").asDouble() >= 0 && cell.has("anticipations_wasted"), all);
            jobsOfChanging.add(cell.path("tasks").get(1).path("jobs").asInt());
            for (final int kept : new int[] {0, 2}) {
                assertTrue(cell.path("tasks").get(kept).path("p99_to_regular").asDouble() > 0, all);
            }
        }
        assertEquals(List.of(5 * JOBS, 5 * JOBS / 2, (5 * JOBS * 2 + 2) / 3, 5 * JOBS), jobsOfChanging,
            "all; the first half; as many as fit if the second half has twice the period; all");
        assertEquals(1, scenario.path("cells").get(0).path("tasks").get(0).path("p99_to_regular").asDouble());
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("GPU kept free"), run.out());
        assertTrue(goal(result, "a task stops").path("measured").asDouble() > 0, all);
        RecordedRunsTest.assertFollows(root.resolve("out/bench/results.json"));
    }

    private static JsonNode goal(final JsonNode result, final String start) {
        return StreamSupport.stream(result.path("goals").spliterator(), false)
            .filter(goal -> goal.path("goal").asText().startsWith(start)).findFirst().orElseThrow();
    }

    @Test
    void shouldMeasureTwoGpusUnderOneDaemon() throws Exception {
        standin.destroyForcibly().waitFor();
        startStandin(2);
        final Ended run = bench(List.of(), "--scenarios", "gpus", "--kernel", "2", "--other-kernel", "3",
            "--strategies", "NONE,OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("gpus");
        assertEquals(2, scenario.path("gpus").asInt());
        assertEquals(List.of("default", "default, a task on each", "interrupt, optimistic",
            "interrupt, optimistic, a task on each"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(JOBS, cell.path("jobs").asInt(), all);
        }
        assertTrue(scenario.path("cells").get(2).path("other_gpu_kept").asDouble() > 0, all);
        assertTrue(scenario.path("cells").get(3).path("other_gpu").path("jobs").asInt() > 0, all);
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("the task on GPU 1"), run.out());
        final JsonNode kept = StreamSupport.stream(result.path("goals").spliterator(), false)
            .filter(goal -> goal.path("goal").asText().startsWith("two GPUs: best-effort")).findFirst().orElseThrow();
        assertTrue(kept.path("measured").asDouble() > 0, kept.toString());
        RecordedRunsTest.assertFollows(root.resolve("out/bench/results.json"));
    }

    @Test
    void shouldSayWhyTwoGpusAreNotMeasuredWhereThereIsOne() throws Exception {
        final Ended run = bench(List.of(), "--scenarios", "gpus", "--strategies", "NONE");
        assertEquals(ExitCode.FAILURE, run.status(), "asked for by name: " + run.said());
        assertEquals("it needs two GPUs, the driver lists 1",
            results().path("scenarios").path("gpus").path("not_run").asText());
    }

    @Test
    void shouldFailWhereAResultIsWrongAndWhereWhatWasAskedForCannotRun() throws Exception {
        final Ended run = bench(List.of("GPUSEG_CUDA_STANDIN_WRONG=1"), "--scenarios", "short,pytorch", "--strategies",
            "NONE", "--python", "/bin/false");
        assertEquals(ExitCode.FAILURE, run.status(), run.said());
        final JsonNode scenarios = results().path("scenarios");
        assertTrue(scenarios.path("short").path("alone").path("wrong").asLong() > 0, run.said());
        assertTrue(scenarios.path("pytorch").path("not_run").asText().contains("torch"), run.said());
        assertFalse(scenarios.path("pytorch").has("cells"));
    }

    @Test
    void shouldRecordTheFreezeOfEachRoundInWhichTheDaemonIsKilled() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/python3")), "python3 is not installed");
        final List<String> java = JavaCommand.of(Gpuseg.class, List.of());
        java.addAll(1, List.of("-Dgpuseg.programs=" + root.resolve("programs"), "-Dgpuseg.nvidia.library=" + FAKE));
        script(root.resolve("gpuseg"), java.stream().map(word -> "'" + word + "'")
            .collect(Collectors.joining(" ", "#!/bin/sh\nexec ", " \"$@\"\n")));
        final Path rounds = Path.of(System.getProperty("gpuseg.root", "."),
            "rt-scheduler/native/gpu-bench/fault_rounds.py");
        try (Child child = Child.start("fault rounds", List.of("env", "GPUSEG_RM_STANDIN=" + socket(),
            "/usr/bin/python3", rounds.toString(), "--kind", "daemon", "--rounds", "2", "--per", "1", "--build",
            root.resolve("programs").toString(), "--gpuseg", root.resolve("gpuseg").toString(), "--out",
            root.resolve("faults").toString()), root.resolve("fault-errors"))) {
            final int status = child.awaitExit(LIMIT_S);
            // 1: a process was frozen for longer than the period, which a busy machine can do
            assertTrue(status == 0 || status == 1, child.said());
            final JsonNode said = JSON.readTree(root.resolve("faults/faults-daemon.json").toFile());
            assertEquals(2, said.path("rounds").asInt(), child.said());
            assertEquals(0, said.path("wrong").asInt(), child.said());
            final List<String> lines = Files.readAllLines(root.resolve("faults/faults-daemon.csv"));
            assertEquals(3, lines.size(), lines.toString());
            final int column = List.of(lines.get(0).split(",")).indexOf("freeze_ms");
            for (final String line : lines.subList(1, lines.size())) {
                assertTrue(Double.parseDouble(line.split(",")[column]) > 0, line);
            }
        }
    }

    private static List<String> names(final JsonNode node) {
        return node.properties().stream().map(java.util.Map.Entry::getKey).toList();
    }

    private static List<String> strategies(final JsonNode scenario) {
        return StreamSupport.stream(scenario.path("cells").spliterator(), false)
            .map(cell -> cell.path("strategy").asText()).toList();
    }
}

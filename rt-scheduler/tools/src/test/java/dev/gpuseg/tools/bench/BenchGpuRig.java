/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
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
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/**
 * The whole command {@code gpuseg bench gpu} on stand-ins: the bench's own programs on the RM stand-in
 * (rt-scheduler/native/gpu-bench/standin), a real daemon that takes their channels off, a script for nvidia-smi and
 * one for Python. Times mean nothing here and are not looked at, so tests of this kind run beside each other
 * (tag {@code beside}); each has a stand-in of its own, and with it a driver of its own.
 */
@Timeout(600)
@Tag("long")
@Tag("beside")
abstract class BenchGpuRig {
    static final int JOBS = 20;
    static final int LIMIT_S = 500;

    /** Of daemons in milliseconds, where the others are to be known at the first job however busy the machine is. */
    static final String PATIENT = "4000";
    private static final String SETTLE = "1000";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path BUILD =
        Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native", "build").toAbsolutePath();
    private static final Path EXEC = BUILD.resolve("../../../segment-api/build/gpuseg-exec").normalize();
    static final Path FAKE = BUILD.resolve("libgpuseg-rm-fake.so");

    /** With it a process is known after some hundred questions instead of thousands. */
    private static final Path CAPTURE = BUILD.resolve("libgpuseg-preload.so");

    /** What is measured in five seconds of load: the stand-in's kernels take a nanosecond for each iteration. */
    private static final String CALIBRATED = "[ \"$1\" != --calibrate ] || exec echo 1.000000000\n";

    /**
     * What the bench expects of workload.py: its arguments, its page, its last line. Alone a job takes 1 us, beside
     * trainings 3 us, 2 us under exec, 1 us with marks. What it computed under exec differs if the file wrong is there.
     */
    private static final String PYTHON = """
        #!/bin/sh
        [ "$1" != -c ] || exec echo "CUDA True"
        case "$1" in */native/gpu-bench/workload.py) program="$2" ;; *) exit 7 ;; esac
        shift 2
        how=none digest=same ns=1000
        while [ $# -gt 0 ]; do
            case "$1" in
            --page) page="$2"; shift ;;
            --jobs) jobs="$2"; shift ;;
            --period) shift ;;
            --pages) ns=3000; shift ;;
            --samples) samples="$2"; shift ;;
            --marks) how=marks ;;
            *) exit 9 ;;
            esac
            shift
        done
        if [ -n "$page" ]; then
            case "$program" in train-*|llm|products) ;; *) exit 6 ;; esac
            printf '\\005' | dd of="$page" bs=1 seek=16 conv=notrunc 2> /dev/null
            printf '\\001' | dd of="$page" bs=1 seek=4 conv=notrunc 2> /dev/null
            while [ "$(dd if="$page" bs=1 skip=8 count=1 2> /dev/null | od -An -tu1 | tr -d ' ')" = 0 ]; do
                sleep 0.05
            done
            exit 0
        fi
        if [ -n "$GPUSEG_EXEC_NAME" ]; then
            [ "$GPUSEG_EXEC_NAME $GPUSEG_EXEC_PRIORITY" = "$program 80" ] && [ -d "$GPUSEG_DIR" ] || exit 8
            [ $ns = 1000 ] || ns=2000
            [ ! -e "${0%/*}/wrong" ] || digest=other
        elif [ $how = marks ]; then
            [ -d "$GPUSEG_DIR" ] || exit 8
            ns=1000
        fi
        echo response_ns > "$samples"
        i=0
        while [ $i -lt "$jobs" ]; do echo $ns >> "$samples"; i=$((i + 1)); done
        f="{\\"min\\":$ns,\\"p50\\":$ns,\\"p95\\":$ns,\\"p99\\":$ns,\\"max\\":$ns}"
        echo "{\\"mode\\":\\"$how\\",\\"jobs\\":$jobs,\\"wrong\\":0,\\"loop_ns\\":9000000,\\"windows_ns\\":1000,"\\
        "\\"other_kernels\\":1,\\"digest\\":\\"$digest\\",\\"response_ns\\":$f}"
        """;

    private Path root;
    private Process standin;

    @BeforeEach
    void start() throws IOException {
        assumeTrue(Files.exists(FAKE) && Files.exists(BUILD.resolve("standin/gpuseg-bench-rt")) && Files.exists(EXEC),
            "the stand-ins or gpuseg-exec are not built: make -C segment-api, make -C rt-scheduler/native");
        root = Files.createTempDirectory(Path.of("/dev/shm"), "gpuseg-test-bench-");
        startStandin(1);
        Files.createDirectory(programs());
        for (final String name : List.of("gpuseg-watchdog", "standin/gpuseg-bench-rt", "standin/gpuseg-bench-be")) {
            program(name, name.endsWith("-rt") ? CALIBRATED : "");
        }
        script(programs().resolve("gpuseg-exec"), "#!/bin/sh\nexec " + EXEC + " \"$@\"\n");
        Files.writeString(settings(), "warm-up: false\nidle: sleep\n");
        final Path path = Files.createDirectory(root.resolve("path"));
        script(path.resolve("nvidia-smi"), "#!/bin/sh\necho 'Stand-in GPU, 0.0, 1000 MHz, 500 MHz, 30'\n");
        script(python(), PYTHON);
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

    /** From now on the length of an iteration is measured, as on a GPU. */
    final void calibrateAsOnAGpu() throws IOException {
        program("standin/gpuseg-bench-rt", "");
    }

    private void program(final String name, final String before) throws IOException {
        script(programs().resolve(Path.of(name).getFileName()), "#!/bin/sh\n" + before + "LD_PRELOAD='" + CAPTURE + " "
            + FAKE + "' exec " + BUILD.resolve(name) + " \"$@\"\n");
    }

    /** Another stand-in, with GPUs in /proc/driver/nvidia/gpus, instead of the one that runs. */
    final void useGpus(final int gpus) throws Exception {
        standin.destroyForcibly().waitFor();
        startStandin(gpus);
    }

    private void startStandin(final int gpus) throws IOException {
        standin = new ProcessBuilder(BUILD.resolve("gpuseg-rm-standin").toString(), socket(), "0",
            Integer.toString(gpus)).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        assertEquals("ready", standin.inputReader().readLine());
        for (int gpu = 0; gpu < gpus; gpu++) {   // as /proc/driver/nvidia/gpus
            Files.createDirectories(root.resolve("gpus/0000:0" + (6 + gpu) + ":00.0"));
        }
    }

    /** Of the test; it is gone afterwards. */
    final Path root() {
        return root;
    }

    final Path programs() {
        return root.resolve("programs");
    }

    /** Of the daemons: times are not looked at, so nothing is compiled before they start, and none polls. */
    private Path settings() {
        return root.resolve("gpuseg.yaml");
    }

    /** The interpreter that the bench finds. */
    final Path python() {
        return root.resolve("path/python3");
    }

    final String socket() {
        return root.resolve("rm.sock").toString();
    }

    static void script(final Path file, final String text) throws IOException {
        Files.writeString(file, text);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    /** What the command printed and how it ended. */
    record Ended(int status, String out, String said) {
    }

    final Ended bench(final String... options) throws Exception {
        return bench(SETTLE, List.of(), options);
    }

    final Ended bench(final String settleMs, final List<String> environment, final String... options)
        throws Exception {
        final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_RM_STANDIN=" + socket(), "PATH="
            + root.resolve("path") + ":" + System.getenv("PATH")));
        command.addAll(environment);
        final List<String> arguments = new ArrayList<>(List.of("bench", "gpu", "--jobs", Integer.toString(JOBS),
            "--out", root.resolve("out").toString()));
        arguments.addAll(List.of(options));
        final List<String> java = JavaCommand.of(Gpuseg.class, arguments);
        java.addAll(1, List.of("-Dgpuseg.bench.settle=" + settleMs, "-Dgpuseg.bench.others=3",
            "-Dgpuseg.bench.disb=a",
            "-Dgpuseg.programs=" + programs(), "-Dgpuseg.nvidia.library=" + FAKE,
            "-Dgpuseg.config=" + settings(), "-Dgpuseg.nvidia.gpus=" + root.resolve("gpus")));
        command.addAll(java);
        try (Child child = Child.start("bench gpu", command, root.resolve("bench-errors"))) {
            try {
                final int status = child.awaitExit(LIMIT_S);
                return new Ended(status, String.join("\n", child.allLines()), child.said());
            } finally {   // killed, it would leave running what it has started
                ProcessHandle.of(child.pid())
                    .ifPresent(bench -> bench.descendants().forEach(ProcessHandle::destroyForcibly));
            }
        }
    }

    final JsonNode results() throws IOException {
        return JSON.readTree(root.resolve("out/bench/results.json").toFile());
    }

    static JsonNode json(final Path file) throws IOException {
        return JSON.readTree(file.toFile());
    }

    static JsonNode goal(final JsonNode result, final String start) {
        return StreamSupport.stream(result.path("goals").spliterator(), false)
            .filter(goal -> goal.path("goal").asText().startsWith(start)).findFirst().orElseThrow();
    }

    static List<String> strategies(final JsonNode scenario) {
        return StreamSupport.stream(scenario.path("cells").spliterator(), false)
            .map(cell -> cell.path("strategy").asText()).toList();
    }
}

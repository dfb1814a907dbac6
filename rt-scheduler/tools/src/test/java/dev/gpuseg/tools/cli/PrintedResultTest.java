/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.tools.process.JavaCommand;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What commands print, as processes: the locale changes nothing, and a result that cannot be written is a failure. */
@Tag("long")
@Tag("beside")
class PrintedResultTest {
    private static final String SET = """
        version: 1
        id: "größe"
        platform: {cpus: 1, epsilon: 1ms}
        mode: suspend
        tasks:
          - {name: "カメラ左", cpu: 1, period: 33ms, priority: 70, segments: [{cpu: 1ms}, {gpu: {device: 5ms}}]}
          - {name: "Größe", cpu: 1, period: 66ms, priority: 60, segments: [{cpu: 2ms}]}
        """;
    private static final long LIMIT_S = 120;

    @TempDir
    private Path directory;
    private Path set;

    private record Said(int status, String out, String err) {
    }

    @BeforeEach
    void writeTheSet() throws IOException {
        set = Files.writeString(directory.resolve("set.yaml"), SET);
    }

    /** The words run by a shell, with the command in place of {@code "$@"}. */
    private Said run(final String locale, final String shell, final String... arguments)
        throws IOException, InterruptedException {
        final Path out = directory.resolve("out");
        final Path err = directory.resolve("err");
        final List<String> command = new ArrayList<>(List.of("bash", "-c", shell, "bash"));
        command.addAll(JavaCommand.of(Gpuseg.class, List.of(arguments)).stream()
            .filter(word -> !word.startsWith("-Dfile.encoding")).toList());
        final ProcessBuilder builder = new ProcessBuilder(command).redirectOutput(out.toFile())
            .redirectError(err.toFile());
        builder.environment().remove("LANG");
        builder.environment().put("LC_ALL", locale);
        final Process process = builder.start();
        try {
            assertTrue(process.waitFor(LIMIT_S, TimeUnit.SECONDS), "it does not end");
        } finally {
            process.destroyForcibly();
        }
        return new Said(process.exitValue(), Files.readString(out, StandardCharsets.UTF_8),
            Files.readString(err, StandardCharsets.UTF_8));
    }

    private static void failsWith(final Said said, final String... words) {
        assertEquals(1, said.status(), said.err());
        for (final String word : words) {
            assertTrue(said.err().contains(word), said.err());
        }
        assertEquals(1, said.err().lines().count(), said.err());
    }

    @Test
    void shouldPrintNamesAsTheyAreInEveryLocale() throws Exception {
        final Said json = run("C", "\"$@\"", "analyze", set.toString(), "--format", "taskset");
        assertEquals(0, json.status(), json.err());
        final TaskSet again = new TaskSetReader().read(Files.writeString(directory.resolve("again.json"), json.out()));
        assertEquals(new TaskSetReader().read(set), again);
        for (final String[] arguments : new String[][] {{"analyze", set.toString()},
            {"analyze", set.toString(), "--format", "html"}, {"analyze", set.toString(), "--format", "json"},
            {"simulate", set.toString(), "--duration", "1s"}}) {
            final Said said = run("POSIX", "\"$@\"", arguments);
            assertEquals(0, said.status(), said.err());
            assertTrue(said.out().contains("カメラ左") && said.out().contains("Größe"), said.out());
        }
    }

    @Test
    void shouldNameAFileAsItIsCalled() throws Exception {
        final Path named = Files.copy(set, directory.resolve("カメラ.yaml"));
        final Said said = run("C.UTF-8", "\"$@\"", "analyze", named.toString(), "--out",
            directory.resolve("Größe.txt").toString());
        assertEquals(0, said.status(), said.err());
        assertTrue(Files.exists(directory.resolve("Größe.txt")));
        final Said missing = run("C.UTF-8", "\"$@\"", "analyze", directory.resolve("ない.yaml").toString());
        assertTrue(missing.err().contains("ない.yaml"), missing.err());
    }

    @Test
    void shouldFailWhenStandardOutputIsFull() throws Exception {
        for (final String[] arguments : new String[][] {{"analyze", set.toString(), "--format", "json"},
            {"analyze", set.toString(), "--format", "taskset"}, {"simulate", set.toString(), "--duration", "1s"},
            {"generate"}, {"--version"}, {"analyze", "--help"}}) {
            failsWith(run("C", "\"$@\" > /dev/full", arguments), "standard output cannot be written",
                "No space left on device");
        }
    }

    @Test
    void shouldFailWhenTheReaderOfAPipeHasEnded() throws Exception {
        failsWith(run("C", "\"$@\" | true; exit ${PIPESTATUS[0]}", "analyze", set.toString()), "Broken pipe");
    }

    @Test
    void shouldLeaveNoHalfFileWhenItsFileSystemIsFull() throws Exception {
        final Path results = Files.createDirectory(directory.resolve("results"));
        final Path out = results.resolve("sets.jsonl");
        // The limit for files of this process is met as the end of a full disk is.
        failsWith(run("C", "trap '' XFSZ; ulimit -f 64; exec \"$1\" -XX:-UsePerfData \"${@:2}\"", "generate",
            "--count", "400", "--out", out.toString()), out + " cannot be written: ",
            "File too large");
        try (Stream<Path> left = Files.list(results)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void shouldSayWhichFileCannotBeWrittenAndWhy() throws Exception {
        for (final String out : List.of("/dev/full", "/proc/none/x", directory.toString())) {
            final Said said = run("C", "\"$@\"", "analyze", set.toString(), "--format", "json", "--out", out);
            failsWith(said, out + " cannot be written: ");
            assertFalse(said.err().contains("set.yaml"), "it blames its input: " + said.err());
        }
    }
}

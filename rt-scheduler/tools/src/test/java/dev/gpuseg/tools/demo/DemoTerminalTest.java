/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The demo as a person runs it: in a terminal (that of {@code script}), ended by Ctrl-C or kill. */
@Timeout(300)
@Tag("long")
@Tag("beside")
class DemoTerminalTest {
    private static final String INTERRUPT = "\003";

    @TempDir
    private Path directory;

    private Process script;

    @AfterEach
    void end() throws InterruptedException {
        if (script != null) {
            script.descendants().forEach(ProcessHandle::destroyForcibly);
            script.destroyForcibly().waitFor();
        }
    }

    private Path typescript() {
        return directory.resolve("typescript");
    }

    /** Starts the demo in a terminal; temporary files go below the test's directory, so that they can be listed. */
    private void start(final String... arguments) throws IOException, InterruptedException {
        assumeTrue(new ProcessBuilder("sh", "-c", "command -v script > /dev/null").start().waitFor() == 0,
            "script (package bsdutils) is missing");
        Files.createDirectories(directory.resolve("tmp"));
        final List<String> command = new ArrayList<>(JavaCommand.of(Gpuseg.class, List.of("demo")));
        command.add(1, "-Djava.io.tmpdir=" + directory.resolve("tmp"));
        command.addAll(List.of(arguments));
        final String line = command.stream().map(word -> "'" + word.replace("'", "'\\''") + "'")
            .collect(Collectors.joining(" "));
        // as in a terminal, also if the tests were started in the background, where shells have this signal ignored
        final ProcessBuilder builder = new ProcessBuilder("script", "-q", "-e", "-f", "-c",
            "exec env --default-signal=INT " + line, typescript().toString()).directory(directory.toFile())
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(directory.resolve("script.err").toFile());
        builder.environment().put("TERM", "xterm");
        builder.environment().remove("NO_COLOR");
        script = builder.start();
    }

    private String shown() {
        try {
            return Files.exists(typescript()) ? Files.readString(typescript()) : "";
        } catch (final IOException e) {
            return e.toString();
        }
    }

    private void awaitShown(final String text) throws InterruptedException {
        assertTrue(Polling.until(() -> shown().contains(text), 120_000), () -> "not shown: " + text + "\n" + shown());
    }

    private static Set<Path> inMemory() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("/dev/shm"))) {
            return files.filter(file -> file.getFileName().toString().startsWith("gpuseg-demo-"))
                .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    private static String alive(final List<ProcessHandle> processes) {
        return "still alive: " + processes.stream().filter(ProcessHandle::isAlive).map(ProcessHandle::info).toList();
    }

    private List<String> temporary() throws IOException {
        try (Stream<Path> files = Files.list(directory.resolve("tmp"))) {
            return files.map(file -> file.getFileName().toString()).filter(name -> !name.startsWith("hsperf")).toList();
        }
    }

    @Test
    void shouldShowALiveLineAndWriteATimelineWithoutBeingAsked() throws Exception {
        start("--duration", "2s");
        assertTrue(script.waitFor(180, TimeUnit.SECONDS), () -> shown());
        final String shown = shown();
        assertEquals(0, script.exitValue(), shown);
        assertTrue(shown.contains("\r\033[Kwithout gpuseg [") && shown.contains("\r\033[Kwith gpuseg    ["), shown);
        assertTrue(shown.contains("\033[1;31m"), "a missed deadline is red: " + shown);
        assertTrue(shown.contains("see it: out/demo.html"), shown);
        final String timeline = Files.readString(directory.resolve("out/demo.html"));
        assertTrue(timeline.contains("obstacle_stop") && timeline.contains("<html"), "no timeline");
        assertTrue(Files.size(directory.resolve("out/demo.gpuseg")) > 0);
        assertEquals(List.of(), temporary());
    }

    @Test
    void shouldLeaveNothingBehindAfterCtrlC() throws Exception {
        final Set<Path> before = inMemory();
        start("--duration", "60s");
        awaitShown("jobs ");
        final List<ProcessHandle> processes = script.descendants().toList();
        assertTrue(processes.size() > 6, "demo, virtual GPU, daemon, watchdog, tasks: " + processes);
        assertTrue(inMemory().size() > before.size(), "runtime directory");
        script.getOutputStream().write(INTERRUPT.getBytes(StandardCharsets.US_ASCII));
        script.getOutputStream().flush();
        assertTrue(script.waitFor(60, TimeUnit.SECONDS), () -> shown());
        assertTrue(Polling.until(() -> processes.stream().noneMatch(ProcessHandle::isAlive), 30_000),
            () -> alive(processes));
        final Set<Path> after = inMemory();
        after.removeAll(before);
        assertEquals(Set.of(), after);
        assertEquals(List.of(), temporary());
        assertFalse(Files.exists(directory.resolve("out")));
        final String shown = shown();
        assertTrue(shown.contains("interrupted") && !shown.contains("failed") && !shown.contains("Exception"), shown);
    }

    @Test
    void shouldEndAllProcessesOfAKilledDemoAndRemoveItsFilesAtTheNext() throws Exception {
        final Set<Path> before = inMemory();
        start("--duration", "60s");
        awaitShown("jobs ");
        final List<ProcessHandle> processes = script.descendants().toList();
        final ProcessHandle demo = processes.stream().filter(p -> p.parent().filter(q -> q.pid() == script.pid())
            .isPresent()).findFirst().orElseThrow();
        demo.destroyForcibly();
        assertTrue(Polling.until(() -> processes.stream().noneMatch(ProcessHandle::isAlive), 60_000),
            () -> alive(processes));
        final Set<Path> left = inMemory();
        left.removeAll(before);
        assertFalse(left.isEmpty(), "a killed process deletes nothing");
        assertFalse(temporary().isEmpty());
        Files.delete(typescript());
        start("--duration", "500ms");
        assertTrue(script.waitFor(180, TimeUnit.SECONDS), () -> shown());
        final String shown = shown();
        assertTrue(left.stream().allMatch(path -> shown.contains("removed " + path)), shown);
        final Set<Path> after = inMemory();
        after.removeAll(before);
        assertEquals(Set.of(), after);
        assertEquals(List.of(), temporary());
    }
}

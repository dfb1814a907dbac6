/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** {@code run --space}: a daemon beside a stand-in of MPS's control daemon, and programs on the stand-ins of CUDA. */
@Timeout(300)
@Tag("beside")
class SpaceSystemTest {
    private static final int LIMIT_S = SpaceRig.LIMIT_S;
    private static final int LIMIT_MS = SpaceRig.LIMIT_MS;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();
    private final SpaceRig space = new SpaceRig(rig);

    /** A control daemon outlives its daemon, if somebody is inside. */
    @AfterEach
    void endControlDaemon() throws IOException {
        Files.deleteIfExists(space.note());
    }

    /** What MPS would tell a program: its lines of the environment, sorted. */
    private List<String> inside(final String... words) throws Exception {
        final List<String> command = new ArrayList<>(List.of(words));
        command.addAll(List.of("--", "env"));
        final Child program = space.exec(command.toArray(new String[0]));
        assertEquals(0, program.awaitExit(LIMIT_S), program.said());
        return program.allLines().stream().filter(line -> line.startsWith("CUDA_MPS_")).sorted().toList();
    }

    @Test
    void shouldPutProgramsWhereTheyBelong() throws Exception {
        space.daemon();
        final String at = "CUDA_MPS_PIPE_DIRECTORY=" + space.pipe();
        assertEquals(List.of("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=44", "CUDA_MPS_CLIENT_PRIORITY=1", at),
            inside("--best-effort"));
        assertEquals(List.of("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=44", "CUDA_MPS_CLIENT_PRIORITY=1", at),
            inside("--best-effort", "--", NativePrograms.ofClientLibrary("gpuseg-exec").toString(),
                "--best-effort"));
        assertEquals(List.of("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=88", at), inside("--priority", "50"));
        assertEquals(List.of(at), inside("--priority", "50", "--reserve", "5%"));
        final Child first = space.exec("--best-effort", "--", "sleep", "1000");
        // a look at a place takes it for a moment, so none is made before both are taken
        SystemRig.await("it has the first place", LIMIT_MS, () -> ProcessHandle.of(first.pid()).flatMap(
            process -> process.info().command()).filter(name -> name.endsWith("/sleep")).isPresent());
        final Child second = space.exec("--best-effort", "--", "sh", "-c", "env; sleep 1000 & exec sleep 0");
        second.awaitExit(LIMIT_S);   // what it started holds the place
        assertTrue(second.allLines().contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=40.5"), second.said());
        SystemRig.await("both have a place", LIMIT_MS, () -> !space.isFree(0) && !space.isFree(1));
        final Child third = space.exec("--best-effort", "--", "env");
        assertEquals(0, third.awaitExit(LIMIT_S));
        assertTrue(third.said().contains("all 2 places of the space are taken"), third.said());
        assertFalse(third.allLines().stream().anyMatch(line -> line.startsWith("CUDA_MPS_")), third.said());
        SystemRig.signal(first, "KILL");
        SystemRig.await("its place is free", LIMIT_MS, () -> space.isFree(0));
    }

    private long disabled() {
        final AtomicLong found = new AtomicLong();
        JournalReader.forEach(rig.directory().journal(), event -> found.addAndGet(
            event.kind() == EventKind.DISABLE ? 1 : 0));
        return found.get();
    }

    @Test
    void shouldHoldNobodyForAReservedTaskAndTheOthersForALongOne() throws Exception {
        space.daemon();
        final Child training = space.exec("--best-effort", "--", "APP", "without-end");
        training.await("launches", LIMIT_S);
        SystemRig.await("it has a segment", LIMIT_MS, () -> "running".equals(rig.state("exec:inject_app")));
        final Child loop = space.exec("--priority", "90", "--reserve", "10%", "--name", "loop", "--", "APP",
            "without-end");
        SystemRig.await("the loop has a segment", LIMIT_MS, () -> "running".equals(rig.state("loop")));
        assertEquals("running", rig.state("exec:inject_app"));
        final Child more = space.exec("--priority", "90", "--reserve", "10%", "--name", "more", "--", "APP", "while",
            "1");
        assertEquals(0, more.awaitExit(LIMIT_S), more.said());
        assertTrue(more.said().contains("reserve is 10%, and 2% of the reserve of 12% are free"), more.said());
        SystemRig.signal(loop, "TERM");
        assertEquals(0, loop.awaitExit(LIMIT_S), loop.said());
        assertEquals(0, disabled());
        final Child inference = space.exec("--priority", "80", "--name", "long", "--", "APP", "while", "500");
        assertEquals(0, inference.awaitExit(LIMIT_S), inference.said());
        SystemRig.await("the journal says it", LIMIT_MS, () -> disabled() > 0);
        SystemRig.signal(training, "TERM");
        assertEquals(0, training.awaitExit(LIMIT_S), training.said());
    }

    @Test
    void shouldRefuseRealTimeTasksOutsideOfTheSpace() throws Exception {
        space.daemon();
        final Child outside = space.exec("--priority", "80", "--name", "outside", "--", "env", "-u",
            "CUDA_MPS_PIPE_DIRECTORY", NativePrograms.ofClientLibrary("tests/cuda/inject_app").toString(),
            "while", "1");
        assertEquals(0, outside.awaitExit(LIMIT_S), outside.said());
        assertTrue(outside.said().contains("task \"outside\": its program is outside of the space; start it with "
            + "`gpuseg exec --priority 80`"), outside.said());
        final Child greedy = space.exec("--priority", "80", "--name", "greedy", "--", "env", "-u",
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", NativePrograms.ofClientLibrary("tests/cuda/inject_app").toString(),
            "while", "1");
        assertEquals(0, greedy.awaitExit(LIMIT_S), greedy.said());
        assertTrue(greedy.said().contains("may use 100% of the GPU and would take the reserve"), greedy.said());
    }

    @Test
    void shouldStartTheControlDaemonAgainAndLeaveItToTheNextDaemonWithProgramsInside() throws Exception {
        final Child daemon = space.daemon();
        final long first = space.controlPid();
        Files.delete(space.note());
        SystemRig.await("it was started again", LIMIT_MS,
            () -> rig.status().path("space").path("restarts").asLong() == 1 && space.controlPid() > 0
                && space.controlPid() != first);
        final long second = space.controlPid();
        Files.writeString(space.pipe().resolve("clients"), "4711\n4712\n");
        SystemRig.signal(daemon, "TERM");
        assertEquals(0, daemon.awaitExit(LIMIT_S), daemon.said());
        assertTrue(daemon.said().contains("goes on, since 2 programs are inside"), daemon.said());
        final Child next = space.daemon();
        assertEquals(second, space.controlPid());
        SystemRig.signal(next, "KILL");
        next.awaitExit(LIMIT_S);
        Files.delete(space.pipe().resolve("clients"));
        final Child last = space.daemon();
        assertEquals(second, space.controlPid());
        SystemRig.signal(last, "TERM");
        assertEquals(0, last.awaitExit(LIMIT_S), last.said());
        assertEquals(0, space.controlPid(), "nobody was inside: it has ended");
        assertFalse(Files.exists(rig.directory().root().resolve("space")));
    }

    /** A machine that is busy: its start takes longer than the daemon waits, and it is there all the same. */
    @Test
    void shouldFindTheControlDaemonThatCameUpLate() throws Exception {
        final Path slow = Files.createDirectories(rig.file("slow"));
        final Path once = rig.file("once");
        final Path program = Files.writeString(slow.resolve(SpaceRig.PROGRAM), "#!/bin/sh\nreal=" + SpaceRig.STAND_IN
            + "/" + SpaceRig.PROGRAM + "\nif [ \"${1:-}\" = -d ] && [ -e " + once + " ]; then\n  rm " + once
            + "\n  $real -d\n  exec sleep 60\nfi\nexec $real \"$@\"\n");
        assertTrue(program.toFile().setExecutable(true));
        final Child daemon = space.daemon(slow);
        Files.createFile(once);
        final long first = space.controlPid();
        Files.delete(space.note());
        SystemRig.await("its start was given up", LIMIT_MS, () -> daemon.said().contains("no answer within 5 s"));
        SystemRig.await("it is found", LIMIT_MS, () -> rig.status().path("space").path("failure").asText().isEmpty());
        assertTrue(space.controlPid() > 0 && space.controlPid() != first);
        SystemRig.signal(daemon, "TERM");
        assertEquals(0, daemon.awaitExit(LIMIT_S), daemon.said());
    }

    @Test
    void shouldSayWhatIsMissing() throws Exception {
        final Path java = Path.of(System.getProperty("java.home")).resolve("bin");
        final Child daemon = space.run(java.toString());
        assertEquals(ExitCode.FAILURE, daemon.awaitExit(LIMIT_S), daemon.said());
        assertTrue(daemon.said().contains("--space: ") && daemon.said().contains(SpaceRig.PROGRAM)
            && daemon.said().contains("leave --space out"), daemon.said());
    }
}

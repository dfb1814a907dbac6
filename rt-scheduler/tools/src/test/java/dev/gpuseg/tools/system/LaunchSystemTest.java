/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.SystemRig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Mechanism {@code launch}: a daemon and programs under {@code gpuseg exec} on the stand-ins of CUDA. */
@Timeout(300)
class LaunchSystemTest {
    private static final int LIMIT_S = 120;
    private static final int SEGMENT_MS = 2_000;
    private static final Pattern SUMMARY = Pattern.compile("launched (\\d+) in flight (\\d+) longest (\\d+)");

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Child program(final String name, final String segments, final String... words) {
        // The stand-ins are built by: make -C segment-api stand-ins
        final Path app = NativePrograms.ofClientLibrary("tests/cuda/inject_app");
        final Path cupti = NativePrograms.ofClientLibrary("tests/cuda/libcupti.so.13");
        final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_DIR=" + rig.directory().root(),
            "GPUSEG_CUPTI=" + cupti, "GPUSEG_EXEC_SEGMENTS=" + segments,
            NativePrograms.ofClientLibrary("gpuseg-exec").toString()));
        for (final String word : words) {
            command.add(word.equals("APP") ? app.toString() : word);
        }
        return rig.start(name, command);
    }

    private Child daemon(final String... options) throws InterruptedException {
        final List<String> command = JavaCommand.daemon(options);
        command.addAll(List.of("--dir", rig.directory().root().toString(), "--policy", "fp", "--mechanism", "launch"));
        command.addAll(rig.settings());
        final Child daemon = rig.start("run", command);
        daemon.await("daemon ready", LIMIT_S);
        return daemon;
    }

    private long longestMs(final Child program) throws Exception {
        SystemRig.signal(program, "TERM");
        assertEquals(0, program.awaitExit(LIMIT_S), program.said());
        final Matcher summary = SUMMARY.matcher(program.said());
        assertTrue(summary.find(), program.said());
        return Long.parseLong(summary.group(3));
    }

    private long events(final EventKind kind) {
        final AtomicLong found = new AtomicLong();
        JournalReader.forEach(rig.directory().journal(), event -> found.addAndGet(event.kind() == kind ? 1 : 0));
        return found.get();
    }

    private Child bestEffort() throws Exception {
        final Child program = program("training", "auto", "--best-effort", "--", "APP", "without-end");
        program.await("launches", LIMIT_S);
        SystemRig.await("it has a segment", 1_000 * LIMIT_S, () -> "running".equals(rig.state("exec:inject_app")));
        return program;
    }

    @Test
    void shouldHoldLaunchesOfLowerRankWhileASegmentRuns() throws Exception {
        daemon();
        final Child training = bestEffort();
        final Child inference = program("inference", "process", "--priority", "80", "--name",
            "inference", "--", "APP", "while", Integer.toString(SEGMENT_MS));
        assertEquals(0, inference.awaitExit(LIMIT_S), inference.said());
        SystemRig.await("its launches go on", 1_000 * LIMIT_S, () -> rig.held() == 0);
        final long longestMs = longestMs(training);
        assertTrue(longestMs >= SEGMENT_MS / 2, "longest launch: " + longestMs + " ms");
        SystemRig.await("the journal says it", 1_000 * LIMIT_S, () -> events(EventKind.ENABLE) > 0);
        assertTrue(events(EventKind.DISABLE) > 0);
    }

    @Test
    void shouldHoldNothingOnceTheDaemonIsKilled() throws Exception {
        final Child daemon = daemon();
        final Child training = bestEffort();
        program("inference", "process", "--priority", "80", "--name", "inference", "--", "APP", "while", "60000");
        SystemRig.await("a context is held", 1_000 * LIMIT_S, () -> rig.held() > 0);
        SystemRig.signal(daemon, "KILL");
        longestMs(training);   // held for ever, it would not end
    }
}

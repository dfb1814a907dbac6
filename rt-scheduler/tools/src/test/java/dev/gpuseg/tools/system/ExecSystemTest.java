/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A daemon and CUDA programs as they are, on the stand-ins of libcuda and libcupti. */
@Timeout(240)
@Tag("beside")
class ExecSystemTest {
    /** One that is learned would cover the program's pauses, and all of it would be one segment. */
    private static final String HOLD_OFF = "GPUSEG_EXEC_HOLD_OFF=200us";

    // Both are built by: make -C segment-api stand-ins
    private final Path app = NativePrograms.ofClientLibrary("tests/cuda/inject_app");
    private final Path cupti = NativePrograms.ofClientLibrary("tests/cuda/libcupti.so.13");

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Child program(final String name, final String... options) throws InterruptedException {
        final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_DIR=" + rig.directory().root(),
            "GPUSEG_CUPTI=" + cupti, HOLD_OFF, NativePrograms.ofClientLibrary("gpuseg-exec").toString()));
        command.addAll(List.of(options));
        command.addAll(List.of("--", app.toString(), "while", "120000"));
        final int before = rig.status().path("tasks").size();
        final Child child = rig.start(name, command);
        SystemRig.await(name + " has a task", 30_000, () -> rig.status().path("tasks").size() == before + 1);
        return child;
    }

    private JsonNode task(final Child program) {
        for (final JsonNode task : rig.status().path("tasks")) {
            if (task.path("pid").asLong() == program.pid()) {
                return task;
            }
        }
        throw new AssertionError("pid " + program.pid() + " has no task: " + rig.status().path("tasks"));
    }

    private long touches(final String variable) throws Exception {
        final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_DIR=" + rig.directory().root(),
            "GPUSEG_CUPTI=" + cupti, HOLD_OFF, variable, "GPUSEG_EXEC_VERBOSE=1",
            NativePrograms.ofClientLibrary("gpuseg-exec").toString(), "--priority", "50", "--period", "20ms"));
        command.addAll(List.of("--", app.toString(), "periodic", "150"));
        final Child child = rig.start("periodic", command);
        assertEquals(0, child.awaitExit(60), child.said());
        final Matcher said = Pattern.compile("(\\d+) touches before expected begins").matcher(child.said());
        return said.find() ? Long.parseLong(said.group(1)) : -1;
    }

    @Test
    void shouldTouchTheGpuBeforeBeginsThatTheDaemonExpects() throws Exception {
        rig.with("anticipation-budget: 50").realTime();
        rig.task("busy", 0, "1s", "gpu:0ms+900ms", "120s");
        SystemRig.await("busy works", 30_000, () -> "running".equals(rig.state("busy")));
        assertEquals(-1, touches("GPUSEG_EXEC_TOUCH=off"));
        final long before = rig.counter("anticipated");
        Attempts.of(3, () -> {
            final long touches = touches("GPUSEG_EXEC_TOUCH=on");
            final long anticipated = rig.counter("anticipated") - before;
            assertTrue(touches <= 2 * anticipated, touches + " touches, " + anticipated + " begins anticipated");
            return touches > 0 ? null : anticipated + " begins anticipated, no touch";
        });
    }

    @Test
    void shouldChangeRankWeightAndCapOfOneOfTwoProcessesOfTheSameName() throws Exception {
        rig.gpu();
        rig.daemon();
        final String dir = rig.directory().root().toString();
        final Child first = program("first", "--priority", "30");
        final Child second = program("second", "--best-effort");
        assertEquals("exec:inject_app", task(first).path("name").asText());
        assertEquals("exec:inject_app", task(second).path("name").asText());
        final StringOutput set = StringOutput.of("set", "--dir", dir, Long.toString(second.pid()), "--priority", "44",
            "--weight", "7", "--cap", "25ms/100ms");
        assertEquals(ExitCode.OK, set.status(), set.text());
        assertEquals(44, task(second).path("priority").asInt());
        assertEquals(30, task(first).path("priority").asInt());
        final String policy = StringOutput.of("policy", "--dir", dir).out();
        final String name = " \"exec:inject_app\" ";
        assertTrue(policy.contains("process " + second.pid() + name + "weight 7, cap 25ms/100ms"), policy);
        assertTrue(policy.contains("process " + first.pid() + name + "weight 100\n"), policy);
        final long ends = rig.counter("ends");
        SystemRig.await("both go on", 30_000, () -> rig.counter("ends") > ends + 20);
        for (final Child child : List.of(first, second)) {
            SystemRig.signal(child, "TERM");
            assertEquals(0, child.awaitExit(30), child.said());
        }
    }

    /** A name is the same for every part, also with characters that the request for its cap has to write otherwise. */
    @Test
    void shouldCapATaskWhoseNameHasQuotes() throws Exception {
        rig.gpu();
        rig.daemon();
        final String dir = rig.directory().root().toString();
        final Child child = program("quotes", "--name", "left \"a\\b\"", "--cap", "25ms/100ms");
        assertEquals("left \"a\\b\"", task(child).path("name").asText());
        final String policy = StringOutput.of("policy", "--dir", dir).out();
        assertTrue(policy.contains("process " + child.pid() + " \"exec:inject_app\" weight 100, cap 25ms/100ms"),
            policy);
        SystemRig.signal(child, "TERM");
        assertEquals(0, child.awaitExit(30), child.said());
    }
}

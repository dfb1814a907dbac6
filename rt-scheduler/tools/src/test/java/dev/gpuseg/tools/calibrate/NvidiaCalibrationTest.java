/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The command as it runs on a GPU, with the RM stand-in and the stand-ins of the bench. Its times mean nothing. */
@Timeout(900)
@Tag("long")
class NvidiaCalibrationTest {
    private static final int LIMIT_S = 840;
    private static final Path BUILD =
        Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native", "build").toAbsolutePath();
    private static final Path FAKE = BUILD.resolve("libgpuseg-rm-fake.so");

    @TempDir
    private Path root;

    private void script(final String name, final String body) throws Exception {
        final Path file = root.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, "#!/bin/sh\n" + body + "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private void preloaded(final String name, final Path program, final String libraries) throws Exception {
        script("programs/" + name, "LD_PRELOAD='" + libraries + "' exec " + program + " \"$@\"");
    }

    @Test
    void shouldMeasureTheWaitOfBeginsBesideProcessesAndMonitors() throws Exception {
        assumeTrue(Files.exists(FAKE) && Files.exists(BUILD.resolve("standin/gpuseg-bench-rt")),
            "the stand-ins are not built: make -C rt-scheduler/native");
        final String captured = BUILD.resolve("libgpuseg-preload.so") + " " + FAKE;
        preloaded("gpuseg-bench-rt", BUILD.resolve("standin/gpuseg-bench-rt"), captured);
        preloaded("gpuseg-bench-be", BUILD.resolve("standin/gpuseg-bench-be"), captured);
        preloaded("gpuseg-watchdog", BUILD.resolve("gpuseg-watchdog"), FAKE.toString());
        script("path/nvidia-smi", "[ \"$1\" != -lms ] || exec sleep 1000");
        final Path gpu = Files.createDirectories(root.resolve("gpus").resolve("0000:06:00.0"));
        Files.writeString(gpu.resolve("information"), "Model: \t\t Stand-in\n");
        final Path profile = root.resolve("gpu.yaml");
        final String socket = root.resolve("rm.sock").toString();
        final Process standin = new ProcessBuilder(BUILD.resolve("gpuseg-rm-standin").toString(), socket, "300", "1")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            assertEquals("ready", standin.inputReader().readLine());
            final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_RM_STANDIN=" + socket,
                "PATH=" + root.resolve("path") + ":" + System.getenv("PATH")));
            final List<String> java = JavaCommand.of(Gpuseg.class, List.of("calibrate", "--mechanism", "nvidia",
                "--jobs", "20", "--json", "--out", profile.toString()));
            java.addAll(1, List.of("-Dgpuseg.programs=" + root.resolve("programs"), "-Dgpuseg.nvidia.library=" + FAKE,
                "-Dgpuseg.nvidia.gpus=" + root.resolve("gpus")));
            command.addAll(java);
            try (Child calibrate = Child.start("calibrate", command, root.resolve("errors"))) {
                assertEquals(ExitCode.OK, calibrate.awaitExit(LIMIT_S), calibrate.said());
                final JsonNode json = new ObjectMapper().readTree(calibrate.lastLine());
                assertTrue(json.path("simulated").asBoolean(), "a stand-in is no GPU: " + json);
                assertEquals("Stand-in", json.path("gpu").asText());
                final JsonNode wait = json.path("wait_ns");
                assertEquals(40, wait.path("n").asInt(), json.toString());
                assertEquals(7.5, wait.path("longer_percent_at_most").asDouble());
                assertEquals(3, wait.path("contexts").asInt());
                assertTrue(wait.path("turns_taken").asInt() > 0, json.toString());
                assertEquals(2, wait.path("monitors").size(), json.toString());
                assertTrue(json.path("churn_processes").asInt() > 2, json.toString());
                final PlatformLimits limits = new TaskSetReader().readPlatform(profile).limits();
                assertEquals(3, limits.turns().contexts());
                assertEquals(40, limits.turns().samples());
                assertTrue(limits.turns().waitNs() >= wait.path("max").asLong(), limits.toString());
            }
        } finally {
            standin.destroyForcibly().waitFor();
        }
    }
}

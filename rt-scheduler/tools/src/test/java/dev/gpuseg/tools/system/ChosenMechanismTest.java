/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.Polling;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** `gpuseg run` without --mechanism, and with --virtual-gpu: what is chosen, and that it is said. */
@Timeout(400)
@Tag("beside")
class ChosenMechanismTest {
    private static final int LIMIT_S = 120;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private String said;

    private Child run(final String... options) throws InterruptedException {
        final List<String> command = JavaCommand.daemon(options);
        command.addAll(List.of("--dir", rig.directory().root().toString()));
        command.addAll(rig.settings());
        final Child daemon = rig.start("run", command);
        said = daemon.await("gpuseg enforces with", LIMIT_S);
        daemon.await("daemon ready", LIMIT_S);
        return daemon;
    }

    @Test
    void shouldTakeWhatDoctorCallsTheBestAndSayThatRunningWorkIsNotInterrupted() throws Exception {
        final MechanismCatalog.Surveyed best = MechanismCatalog.best(MechanismCatalog.survey(rig.directory()));
        assumeTrue(best.mechanism().name().equals("gate"), "this machine has a better mechanism than gate");
        run();
        assertEquals("gpuseg enforces with gate (level 1, chosen by --mechanism auto): begins wait for their turn; "
            + "running work is NOT interrupted; `gpuseg doctor` says what a higher level needs", said);
        assertEquals("gate", rig.status().path("daemon").path("mechanism").asText());
        final StringOutput doctor = StringOutput.of("doctor", "--dir", rig.directory().root().toString());
        assertTrue(doctor.out().contains("the daemon starts here with gate (--mechanism auto, the default): "
            + best.mechanism().consequence()), doctor.text());
    }

    @Test
    void shouldTakeTheVirtualGpuWhereOneRuns() throws Exception {
        assumeTrue(!Files.exists(Path.of("/dev/nvidiactl")), "this machine has an NVIDIA driver");
        rig.gpu();
        run();
        assertEquals("gpuseg enforces with sim (level 3, chosen by --mechanism auto): running work of lower rank is "
            + "interrupted; all results are simulated", said);
    }

    @Test
    void shouldStartTheVirtualGpuAndEndItWithTheDaemon() throws Exception {
        final Child daemon = run("--virtual-gpu");
        assertTrue(said.startsWith("gpuseg enforces with sim (level 3): "), said);
        assertTrue(rig.status().path("daemon").path("simulated").asBoolean());
        final RuntimeDirectory where = rig.directory();
        assertTrue(MechanismCatalog.get("sim").survey(where).usable());
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", where.root().toString()).status());
        assertEquals(ExitCode.OK, daemon.awaitExit(LIMIT_S));
        assertFalse(MechanismCatalog.get("sim").survey(where).usable(), "it ended with the daemon");

        final Child killed = run("--virtual-gpu");
        ProcessHandle.of(killed.pid()).orElseThrow().destroyForcibly();
        assertTrue(Polling.until(() -> !MechanismCatalog.get("sim").survey(where).usable(), LIMIT_S * 1000L),
            "the virtual GPU of a killed daemon ends");
    }

    @Test
    void shouldRefuseToEnforceAdmissionWhereLaunchesAreHeld() throws IOException {
        final Path set = rig.file("set.yaml");
        Files.writeString(set, "version: 1\nid: s\nplatform: {cpus: 1, epsilon: 1ms, space: {slowdown: 10%, "
            + "in_flight: 0ms}}\nmode: suspend\n"
            + "tasks:\n"
            + "  - {name: a, cpu: 1, period: 80ms, priority: 7, segments: [{gpu: {host: 1ms, device: 1ms}}]}\n");
        final StringOutput refused = StringOutput.of("run", "--mechanism", "launch", "--admission", "enforce",
            "--taskset", set.toString(), "--dir", rig.directory().root().toString(), "--policy", "fp");
        assertEquals(ExitCode.USAGE, refused.status(), refused.text());
        assertEquals(1, refused.err().lines().count(), refused.err());
        assertTrue(refused.err().contains("--admission enforce: a mechanism that only holds launches has no sound "
            + "analysis"), refused.err());
    }

    @Test
    void shouldRefuseAVirtualGpuForAnotherMechanism() {
        final StringOutput refused = StringOutput.of("run", "--virtual-gpu", "--mechanism", "gate", "--dir",
            rig.directory().root().toString());
        assertEquals(ExitCode.USAGE, refused.status());
        assertTrue(refused.err().contains("--virtual-gpu needs --mechanism sim, and --mechanism is gate"),
            refused.err());
    }
}

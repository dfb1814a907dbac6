/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a user reads on machines that no test machine is: which mechanism, its level, why, and what to do. */
@Timeout(120)
class DescribedMachinesTest {
    private static final String RESULT = "var/lib/gpuseg-selftest/result";

    @TempDir
    private Path root;

    @BeforeEach
    void noRealGpu() {
        assumeFalse(Files.exists(Path.of("/dev/kfd")), "this machine has an AMD GPU, which doctor would ask");
    }

    private static void says(final StringOutput doctor, final String... sentences) {
        final String text = doctor.out().replaceAll("\\s+", " ");
        for (final String sentence : sentences) {
            assertTrue(text.contains(sentence), "not \"" + sentence + "\": " + doctor.text());
        }
    }

    private static String result(final String driver, final String gpu, final String level, final int status) {
        return "selftest: 1\nsimulated: no\ndriver: " + driver + "\ngpu: " + gpu + "\nlevel: " + level
            + "\nexit_status: " + status + "\nsentence: So it is.\n";
    }

    private static String boardResult(final String mechanism, final String driver, final String gpu,
        final String level, final int status) {
        return result(driver, gpu, level, status).replace("simulated: no\n", "simulated: no\nmechanism: " + mechanism
            + "\n");
    }

    @Test
    void shouldSayOnThorThatTheSameMechanismWasNeverRunThere() throws IOException {
        try (DescribedMachine thor = new DescribedMachine("jetson-thor", root)) {
            says(thor.doctor(), "NVIDIA Thor, driver 580.00, on NVIDIA Jetson AGX Thor Developer Kit",
                "what waits there for camera or display is unknown: `gpuseg selftest` proves what holds here",
                "yes nvidia level 3", "no tegra level 3", "self-test none was made here -> run `gpuseg selftest`",
                "the daemon starts here with nvidia (--mechanism auto, the default): running work of lower rank is "
                    + "interrupted");
        }
    }

    @Test
    void shouldNotTakeTheDisplayDriverOfOrinForThatOfTheGpu() throws IOException {
        try (DescribedMachine orin = new DescribedMachine("jetson-orin", root)) {
            final StringOutput doctor = orin.doctor();
            says(doctor, "no nvidia level 3 the GPU of this board is driven by nvgpu, and NVIDIA's other driver has at "
                + "most the display; use mechanism tegra", "yes tegra level 3 experimental",
                "the daemon starts here with gate (--mechanism auto, the default): begins wait for their turn; running "
                    + "work is NOT interrupted", "experimental: --mechanism tegra");
            says(doctor, "self-test none was made here -> run `gpuseg selftest`");
        }
    }

    /** What a self-test proved there is not what the daemon is told to start with: the mechanism stays experimental. */
    @Test
    void shouldCorrectByASelfTestWhatAJetsonCanDo() throws IOException {
        try (DescribedMachine orin = new DescribedMachine("jetson-orin", root)) {
            final String board = "NVIDIA Jetson AGX Orin Developer Kit";
            orin.put(RESULT, boardResult("tegra", "R36.4.3", board, "preempts", 0));
            says(orin.doctor(), "ok self-test", "yes tegra level 3 experimental",
                "; proven here by `gpuseg selftest` on ", "the daemon starts here with gate");

            orin.put(RESULT, boardResult("tegra", "R36.4.3", board, "drains", 1));
            says(orin.doctor(), "could self-test", "yes tegra level 2 experimental", "`gpuseg selftest` found on ");

            orin.put(RESULT, boardResult("tegra", "R36.4.3", board, "launch", 1));
            says(orin.doctor(), "no tegra level 3 experimental (tested against a stand-in of nvgpu; never run on a "
                + "board): `gpuseg selftest` found on ", ": So it is.");

            orin.put(RESULT, boardResult("tegra", "R35.4.1", board, "launch", 1));
            says(orin.doctor(), "could self-test of driver R35.4.1 on " + board, "now driver R36.4.3 on " + board,
                "yes tegra level 3");
        }
    }

    @Test
    void shouldCorrectByASelfTestWhatAnAmdGpuCanDo() throws IOException {
        try (DescribedMachine mi200 = new DescribedMachine("amd-mi200", root)) {
            says(mi200.doctor(), "self-test none was made here -> run `gpuseg selftest`",
                "yes amd level 3 experimental", "GPU 0 (gfx9.0.10, hws): by agent");
            mi200.put(RESULT, boardResult("amd", "6.8.5", "gfx9.0.10", "preempts", 0));
            says(mi200.doctor(), "ok self-test", "; proven here by `gpuseg selftest` on ");

            mi200.put(RESULT, boardResult("amd", "6.8.5", "gfx9.0.10", "drains", 1));
            says(mi200.doctor(), "could self-test", "yes amd level 2 experimental");

            mi200.put(RESULT, boardResult("amd", "6.8.5", "gfx9.0.10", "gate", 1));
            says(mi200.doctor(), "no amd level 3 experimental (tested against a stand-in of KFD; never run on AMD "
                + "hardware): `gpuseg selftest` found on ");

            mi200.put(RESULT, boardResult("amd", "6.8.5", "gfx11.0.0", "gate", 1));
            says(mi200.doctor(), "of driver 6.8.5 on gfx11.0.0", "yes amd level 3");
        }
    }

    @Test
    void shouldNameWhatDrawsTheScreenOfADesktopAndIsNotProtected() throws IOException {
        try (DescribedMachine desktop = new DescribedMachine("geforce-display", root)) {
            says(desktop.doctor(), "could displays not protected: kiosk-shell; protected: Xwayland, kwin_wayland -> "
                + "what draws the screen must not be disabled: protect: [kiosk-shell] in the daemon's settings",
                "NVIDIA GeForce RTX 4090, driver 580.95.05", "mechanism nvidia was run on H100 and H200 only",
                "yes nvidia level 3");
            Files.delete(root.resolve("proc/900/fd/3"));
            says(desktop.doctor(), "ok displays protected: Xwayland, kwin_wayland ");
        }
    }

    @Test
    void shouldSayWhatAGpuWithoutFirmwareCanHave() throws IOException {
        try (DescribedMachine turing = new DescribedMachine("no-gsp", root)) {
            says(turing.doctor(), "no nvidia level 3 no GSP firmware on 0000:06:00.0",
                "NVreg_EnableGpuFirmware=1 turns it on where the GPU has it, else use mechanism launch",
                "yes launch level 1", "the daemon starts here with gate (--mechanism auto, the default)");
        }
    }

    @Test
    void shouldTakeAnOldDriverOnlyWhereASelfTestProvedIt() throws IOException {
        try (DescribedMachine old = new DescribedMachine("old-driver", root)) {
            says(old.doctor(), "no nvidia level 3 driver branch 470 is older than any that is known to disable "
                + "channels (515); install a newer driver, or let `gpuseg selftest` prove that it works. Until then "
                + "use mechanism launch", "the daemon starts here with gate");
            old.put(RESULT, result("470.256.02", "NVIDIA GeForce GTX 1080", "preempts", 0));
            says(old.doctor(), "yes nvidia level 3", "proven here by `gpuseg selftest` on ",
                "the daemon starts here with nvidia");
        }
    }

    @Test
    void shouldSayThatASegmentReachesIntoOtherMigInstances() throws IOException {
        try (DescribedMachine mig = new DescribedMachine("h100-mig", root)) {
            says(mig.doctor(), "could MIG on; instances: 2 -> the daemon takes all instances of a GPU for one: a "
                + "segment also disables programs in other instances. Never tested; turn MIG off",
                "ok NVIDIA GPU NVIDIA H100 80GB HBM3, driver 580.159.04");
        }
    }

    @Test
    void shouldUseTheLastSelfTestOfThisDriverAndGpuAlone() throws IOException {
        try (DescribedMachine h100 = new DescribedMachine("h100-mig", root)) {
            final String gpu = "NVIDIA H100 80GB HBM3";
            final Path file = h100.put(RESULT, result("580.159.04", gpu, "preempts", 0));
            says(h100.doctor(), "ok self-test 2", " So it is.", "; proven here by `gpuseg selftest` on ");

            h100.put(RESULT, result("580.159.04", gpu, "preempts", 1));
            says(h100.doctor(), "could self-test", "`gpuseg selftest` says what is missing, and why",
                "yes nvidia level 3");

            h100.put(RESULT, result("580.159.04", gpu, "slices", 1));
            says(h100.doctor(), "no nvidia level 3 `gpuseg selftest` found on ", "that running work is not "
                + "interrupted: So it is. Use mechanism launch, or run it again", "the daemon starts here with gate");

            h100.put(RESULT, result("580.159.04", "H100 80GB HBM3", "slices", 1));
            says(h100.doctor(), "no nvidia level 3 `gpuseg selftest` found on ");

            h100.put(RESULT, result("570.1.2", gpu, "slices", 1));
            says(h100.doctor(), "could self-test of driver 570.1.2 on " + gpu, "now driver 580.159.04 on " + gpu
                + " -> run `gpuseg selftest`", "yes nvidia level 3");
            h100.put(RESULT, result("580.159.04", "NVIDIA H200", "slices", 1));
            says(h100.doctor(), "of driver 580.159.04 on NVIDIA H200", "yes nvidia level 3");

            h100.put(RESULT, result("580.159.04", gpu, "slices", 1).replace("simulated: no", "simulated: yes"));
            says(h100.doctor(), "simulated, on ", "yes nvidia level 3");
            h100.put(RESULT, "selftest: 1\nlevel: preempts\n");
            says(h100.doctor(), "self-test none was made here");

            h100.put(RESULT, result("580.159.04", gpu, "preempts", 0));
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-r--"));
            says(h100.doctor(), "self-test none was made here");
            Files.delete(file);
            Files.createSymbolicLink(file, h100.put("elsewhere", result("580.159.04", gpu, "preempts", 0)));
            says(h100.doctor(), "self-test none was made here");
        }
    }

    /** As whom it ran is whose file it is. */
    @Test
    void shouldShowTheUsersOwnResultWhereRootLeftNone() throws IOException {
        final String state = System.getenv("XDG_STATE_HOME") == null ? System.getProperty("user.home")
            + "/.local/state" : System.getenv("XDG_STATE_HOME");
        try (DescribedMachine h100 = new DescribedMachine("h100-mig", root)) {
            h100.put(state.substring(1) + "/gpuseg/result", result("580.159.04", "NVIDIA H100 80GB HBM3", "preempts",
                0));
            says(h100.doctor(), "ok self-test", ProcessStatus.effectiveUid() == 0
                ? ", as root: So it is." : ", as this user: So it is.");
        }
    }

    @Test
    void shouldSayTheSameInJson() throws IOException {
        try (DescribedMachine orin = new DescribedMachine("jetson-orin", root)) {
            final StringOutput json = orin.doctor("--json");
            final JsonNode report = new ObjectMapper().readTree(json.out());
            assertEquals("gate", report.path("best").asText(), json.text());
        }
    }
}

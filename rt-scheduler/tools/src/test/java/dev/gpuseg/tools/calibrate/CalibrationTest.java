/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
@Tag("long")
class CalibrationTest {
    @TempDir
    private Path directory;

    private static Calibration.Samples samples(final double twoRate) {
        return new Calibration.Samples(new long[] {1_000_000, 1_005_000}, new long[] {1_300_000, 1_500_000},
            new long[] {1_400_000}, new long[] {1_100_000, 1_200_000, 1_300_000, 2_550_000, 90_000_000},
            new long[] {200_000, 310_000}, new long[] {250_000, 150_000}, 100, twoRate, 0);
    }

    @Test
    void shouldTakeTheLongestDelayWithMarginAndSplitATurnByWhatSharingLoses() {
        final Calibration c = Calibration.of(samples(90), 0.2);
        assertEquals(900_000, c.epsilonNs(), "all off and all back");
        assertEquals(600_000, c.oneWayNs());
        assertEquals(372_000, c.alphaNs());
        assertEquals(200_000, c.thetaNs(), 1);
        assertEquals(1_800_000, c.timesliceNs());
        assertEquals(1_000_000, c.aloneNs());
    }

    @Test
    void shouldTakeTheTimeSliceThatTheDriverTells() {
        final Calibration.Samples s = samples(90);
        final Calibration c = Calibration.of(new Calibration.Samples(s.alone(), s.blocking(), s.optimistic(),
            s.shared(), s.calls(), s.returns(), 100, 90, 2_048_000), 0.2);
        assertEquals(2_048_000, c.timesliceNs());
        assertEquals(300_000, c.thetaNs());
        assertEquals(900_000, c.epsilonNs());
    }

    @Test
    void shouldTakeTheLongerDelaysOfTwoCalibrations() {
        final Calibration quiet = Calibration.of(samples(90), 0.2);
        final Calibration.Samples s = samples(90);
        final Calibration busy = Calibration.of(new Calibration.Samples(s.alone(), s.blocking(), s.optimistic(),
            new long[] {1_100_000, 1_200_000, 1_900_000, 2_550_000}, new long[] {2_200_000}, s.returns(), 100, 90, 0),
            0.2);
        final Calibration both = quiet.orLonger(busy);
        assertEquals(2_940_000, both.epsilonNs(), "the longest call and the longest return, and a fifth");
        assertEquals(2_640_000, both.alphaNs());
        assertEquals(quiet.timesliceNs(), both.timesliceNs());
        assertEquals(both.epsilonNs(), busy.orLonger(quiet).epsilonNs());
    }

    @Test
    void shouldNotMakeANegativeSwitchOfNoise() {
        assertEquals(0, Calibration.of(samples(100.4), 0.2).thetaNs());
    }

    @Test
    void shouldRefuseMeasurementsInWhichSharingDelaysNobody() {
        final Calibration.Samples s = samples(90);
        final Calibration.Samples wrong = new Calibration.Samples(s.alone(), s.blocking(), s.optimistic(), s.alone(),
            s.calls(), s.returns(), 0, 0, 0);
        assertThrows(IllegalStateException.class, () -> Calibration.of(wrong, 0.2));
    }

    @Test
    void shouldSayOfWaitsWhatTheirNumberCanSay() {
        final BeginWaits waits = new BeginWaits(1_000, new long[] {1_200, 900, 1_100}, new long[] {6_000});
        assertEquals(4, waits.count());
        assertEquals(5_000, waits.longestNs());
        assertEquals(100, waits.quantileNs(500));
        assertEquals(200, waits.quantileNs(750));
        assertEquals(5_000, waits.quantileNs(990));
        assertEquals(0, waits.quantileNs(1), "a response below the shortest alone waited for nothing");
        assertEquals(75, waits.longerPercent());
        final long[] many = new long[2_000];
        assertEquals(0.15, new BeginWaits(0, many).longerPercent(), 1e-9);
        final ObjectNode said = JsonNodeFactory.instance.objectNode();
        waits.describe(said);
        assertFalse(said.has("p999"), "of 4 waits");
        new BeginWaits(0, many).describe(said);
        assertTrue(said.has("p999"));
        assertThrows(IllegalArgumentException.class, () -> new BeginWaits(0, new long[0]));
    }

    @Test
    void shouldRefuseAMeasurementDuringWhichAMonitorEnded() throws Exception {
        final Path starts = directory.resolve("starts");
        final Path polls = directory.resolve("polls");
        final Path monitor = script("monitor", "if [ \"$1\" = -lms ]; then echo x >> " + polls
            + "; exec sleep 1000; fi; echo x >> " + starts);
        try (Disturbances all = new Disturbances(5, i -> List.of("true"), monitor)) {
            SystemRig.await("the monitor polls", 20_000, () -> Files.exists(starts) && Files.exists(polls));
            assertTrue(all.stop() > 0);
            assertEquals(List.of("monitor -lms 100", "monitor, 2 starts/s"), List.copyOf(all.monitors()));
        }
        final Path broken = script("broken", "[ \"$1\" != -lms ] || exit 6");
        try (Disturbances all = new Disturbances(5, i -> List.of("true"), broken)) {
            SystemRig.await("the monitor ends", 20_000, () -> !all.isPolling());
            final String said = assertThrows(IllegalStateException.class, all::stop).getMessage();
            assertTrue(said.contains("broken -lms 100) ended with status 6"), said);
        }
        assertEquals(monitor, Disturbances.find("monitor", "/nowhere:" + directory));
        assertNull(Disturbances.find("monitor", "/nowhere"));
        assertNull(Disturbances.find("monitor", null));
    }

    private Path script(final String name, final String body) throws Exception {
        final Path file = directory.resolve(name);
        Files.writeString(file, "#!/bin/sh\n" + body + "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
        return file;
    }

    @Test
    void shouldSplitHoldsIntoPartsAsFarAsTheProcessesTellThemApart() {
        final double[][] x = {{1, 1, 1}, {1, 1, 3}, {1, 2, 4}, {1, 4, 5}};
        final double[] y = {6, 12, 17, 24};   // 1 + 2 processes + 3 queues
        assertArrayEquals(new double[] {1, 2, 3}, AmdCalibration.leastSquares(x, y, 0, 1, 2), 1e-6);
        final double[][] alike = {{1, 1, 2}, {1, 2, 4}, {1, 4, 8}};
        final double[] each = {9, 17, 33};    // 1 + 8 for a process with its two queues
        assertNull(AmdCalibration.leastSquares(alike, each, 0, 1, 2));
        assertArrayEquals(new double[] {1, 8}, AmdCalibration.leastSquares(alike, each, 0, 1), 1e-6);
        assertNull(AmdCalibration.leastSquares(new double[][] {{1, 1, 2}}, new double[] {9}, 0, 1));
    }

    /** The virtual GPU's constants are known: the profile must hold them, and not much more on a quiet machine. */
    @Test
    void shouldFindTheConstantsOfTheVirtualGpuAndWriteAProfileThatAnalyzeTakes() throws Exception {
        final Path profile = directory.resolve("virtual.yaml");
        Files.writeString(directory.resolve("like.yaml"), """
            version: 1
            id: like
            platform: {cpus: 1, alpha: 800us, theta: 400us, timeslice: 3ms}
            tasks:
              - {name: a, cpu: 1, period: 50ms, priority: 5, segments: [{gpu: {host: 0ms, device: 5ms}}]}
            """);
        Attempts.of(4, () -> calibrate(profile));
        assertEquals(ExitCode.OK,
            StringOutput.of("analyze", directory.resolve("set.yaml").toString(), "--analysis", "gcaps-window-suspend")
                .status());
    }

    private String calibrate(final Path profile) throws Exception {
        final StringOutput run = StringOutput.of("calibrate", "--mechanism", "sim", "--jobs", "50", "--out",
            profile.toString(), "--json", "--workload", directory.resolve("like.yaml").toString());
        assertEquals(ExitCode.OK, run.status(), run.text());
        // eight measurements of 50 kernels and two rates, each with a daemon of its own
        assertEquals("mechanism sim: takes about 72 s, more where the machine is busy", run.err().lines().findFirst()
            .orElse(""));
        final JsonNode json = new ObjectMapper().readTree(run.out());
        assertTrue(json.path("simulated").asBoolean());
        Files.writeString(directory.resolve("set.yaml"), """
            version: 1
            id: x
            platform: virtual
            tasks:
              - {name: a, cpu: 1, period: 10s, priority: 5, segments: [{gpu: {host: 0ms, device: 5ms}}]}
            """);
        final TaskSet set = new TaskSetReader().read(directory.resolve("set.yaml"));
        final Gpu gpu = set.platform().gpus().get(0);
        Files.writeString(directory.resolve("quiet.yaml"), Files.readString(directory.resolve("set.yaml"))
            .replace("platform: virtual", "platform: {profile: virtual, churn: none}"));
        final TaskSet quiet = new TaskSetReader().read(directory.resolve("quiet.yaml"));
        assertEquals("virtual without churn", quiet.platform().profile());
        // the profile rounds up to microseconds
        assertEquals(json.path("quiet_epsilon_ns").asLong(), quiet.platform().gpus().get(0).epsilonNs(), 1_000);
        assertEquals("virtual", set.platform().profile());
        // lower limits are exact, the virtual GPU never takes less; upper ones leave room for a busy machine
        assertTrue(gpu.alphaNs() >= 600_000, gpu.toString());
        assertTrue(gpu.epsilonNs() >= 1_000_000, gpu.toString());
        final long usual = json.path("blocking_ns").path("p50").asLong() - json.path("alone_ns").path("min").asLong();
        assertTrue(usual > 900_000, json.toString());
        assertEquals(2, json.path("churn_per_s").asDouble());
        assertTrue(json.path("churn_processes").asInt() > 2, "processes came and went: " + json);
        assertTrue(json.path("quiet_epsilon_ns").asLong() <= json.path("epsilon_ns").asLong(), json.toString());
        final JsonNode wait = json.path("wait_ns");
        assertEquals(100, wait.path("n").asInt(), "of both measurements");
        assertEquals(3, wait.path("longer_percent_at_most").asDouble());
        assertTrue(wait.path("turns_taken").asInt() > 0, json.toString());
        assertEquals(3, set.platform().limits().turns().contexts());
        assertEquals(100_000, set.platform().limits().turns().sliceNs());
        assertEquals(100, set.platform().limits().turns().samples());
        assertEquals(wait.path("max").asLong() * 1.2, set.platform().limits().turns().waitNs(), 1_001);
        assertEquals("virtual GPU", json.path("gpu").asText());
        assertTrue(Files.readString(profile).contains("hold while 2.0 processes a second make and free contexts"));
        return gpu.timesliceNs() > 1_500_000 && gpu.timesliceNs() < 12_000_000 && gpu.thetaNs() > 100_000
            && gpu.thetaNs() < 2_000_000 && usual < 15_000_000 ? null : gpu + ", " + json;
    }
}

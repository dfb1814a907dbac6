/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.daemon.space.Space;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The limits of a space, from figures, and from the stand-ins of CUDA and MPS. */
@Timeout(900)
class SpaceCalibrationTest {
    private static final int LIMIT_S = 300;
    private static final int MARGIN = 20;
    /** What the stand-in of CUDA takes for a copy of 64 MiB. */
    private static final long COPY_NS = (64L << 20) / 10;
    private static final Path MPS = Path.of(System.getProperty("gpuseg.root"), "rt-scheduler/native/tests/mps");
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    private Path directory;

    private static ObjectNode times(final ObjectNode into, final String name, final long minNs, final long maxNs) {
        into.putObject(name).put("min_ns", minNs).put("max_ns", maxNs).putObject("percentiles").put("50", minNs)
            .put("99", maxNs);
        return into;
    }

    private static ObjectNode measurement(final int kept, final int away, final long minNs, final long maxNs,
        final long inFlightNs) {
        final ObjectNode node = JsonNodeFactory.instance.objectNode().put("executions", kept).put("cpu_taken", away)
            .put("batches", inFlightNs == 0 ? 0 : 7);
        return times(times(node, "execution", minNs, maxNs), "in_flight", inFlightNs, inFlightNs);
    }

    private static SpaceRow row(final long longestNs, final long inFlightNs) {
        return new SpaceRow("100us", List.of("copies"), measurement(20, 0, 100_000, 900_000, 0),
            measurement(20, 1, 90_000, longestNs, inFlightNs));
    }

    private static SpaceLimits limits(final SpaceRow... rows) {
        return new SpaceCosts(Space.equal(12, 3), List.of(rows)).limits(MARGIN);
    }

    @Test
    void shouldTakeTheLongestOfAllRowsOverTheShortestAloneWithMargin() {
        assertEquals(new SpaceLimits(12, 60, 2_400_000), limits(row(150_000, 1_000_000), row(120_000, 2_000_000)));
        assertEquals(new SpaceLimits(12, 1, 1_200_000), limits(row(100_001, 1_000_000)));
        assertEquals(new SpaceLimits(12, 0, 1_200_000), limits(row(100_000, 1_000_000)));
        assertEquals(0, row(95_000, 1).slowdownPermille(), "no faster than alone");
    }

    @Test
    void shouldRefuseWhatSaysNothingOrNoAnalysisTakes() {
        String said = assertThrows(IllegalStateException.class, () -> limits(row(8_500_000, 1_000_000))).getMessage();
        assertTrue(said.contains("slowdown is 10080%; it must be 0%..10000%"), said);
        assertTrue(said.contains("100us beside copies"), said);
        said = assertThrows(IllegalStateException.class, () -> limits(row(120_000, 42_000_000))).getMessage();
        assertTrue(said.contains("in_flight is 50.4ms"), said);
        final ObjectNode busy = measurement(9, 11, 100_000, 200_000, 1_000_000);
        said = assertThrows(IllegalStateException.class, () -> new SpaceRow("100us", List.of("copies"), busy, busy))
            .getMessage();
        assertTrue(said.contains("the CPU was away in 11 of 20 executions of 100us"), said);
        assertThrows(IllegalStateException.class, () -> row(120_000, 0), "no load ended anything");
    }

    @Test
    void shouldKeepWhatCalibrateHasWrittenAndReplaceItsOwn() throws Exception {
        final Path file = directory.resolve("gpu.yaml");
        Files.writeString(file, "# Written by gpuseg calibrate. Longest delays observed\ncpus: 4\nepsilon: 1ms\n"
            + "measured: {\"driver\":\"real\",\"blocking_ns\":{\"n\":50}}\n");
        final ObjectNode result = JsonNodeFactory.instance.objectNode().put("simulated", true);
        for (final int percent : new int[] {70, 30}) {
            Files.writeString(file, new SpaceProfile(file).text(new SpaceLimits(12, percent, 2_000_000), MARGIN,
                result));
        }
        final String text = Files.readString(file);
        assertEquals(1, text.split("\nspace: ", -1).length - 1, text);
        assertTrue(text.contains("SIMULATED"), text);
        assertTrue(text.contains("\"driver\":\"real\",\"blocking_ns\":{\"n\":50}"), text);
        final var platform = new TaskSetReader().readPlatform(file);
        assertEquals(new SpaceLimits(12, 30, 2_000_000), platform.space());
        assertEquals(1_000_000, platform.gpus().get(0).epsilonNs());
        assertTrue(platform.simulated(), "a part of it is");
        Files.writeString(file, "cpus: 4\n");
        final String said = assertThrows(IllegalStateException.class, () -> new SpaceProfile(file)).getMessage();
        assertTrue(said.contains("calibrate has not written it; name another file with --out"), said);
    }

    @Test
    void shouldRefuseAReserveOutOfRange() {
        final StringOutput run = StringOutput.of("calibrate", "--mechanism", "space:91%", "--out",
            directory.resolve("gpu.yaml").toString());
        assertEquals(ExitCode.USAGE, run.status(), run.text());
        assertTrue(run.text().contains("space-reserve is 91%; use 1%..90%"), run.text());
    }

    private Child calibrate(final Path profile, final String path, final String slow) {
        final List<String> command = new ArrayList<>(List.of("env", "-u", "CUDA_MPS_PIPE_DIRECTORY", "PATH=" + path,
            "GPUSEG_STANDIN_SLOW=" + slow,
            "LD_LIBRARY_PATH=" + NativePrograms.named("standin/latency/libcuda.so.1").getParent()));
        command.addAll(JavaCommand.of(Gpuseg.class, List.of("calibrate", "--mechanism", "space", "--others", "2",
            "--jobs", "20", "--json", "--out", profile.toString())));
        return Child.start("calibrate", command, directory.resolve("errors"));
    }

    @Test
    void shouldSayInOneLineThatThereIsNoMps() throws Exception {
        final Path profile = directory.resolve("gpu.yaml");
        try (Child calibrate = calibrate(profile, "/nowhere", "")) {
            assertEquals(ExitCode.FAILURE, calibrate.awaitExit(LIMIT_S), calibrate.said());
            assertTrue(calibrate.said().contains("nvidia-cuda-mps-control is not on the PATH; it comes with NVIDIA's "
                + "driver"), calibrate.said());
            assertFalse(Files.exists(profile));
        }
    }

    /** Beside copies a kernel of the stand-in takes three times as long, beside products one and a half times. */
    @Test
    @Tag("long")
    void shouldMeasureASpaceThatAnalyzeCountsInTheBound() throws Exception {
        Attempts.of(4, () -> measured(directory.resolve("space.yaml")));
    }

    private String measured(final Path profile) throws Exception {
        final JsonNode json;
        Files.deleteIfExists(profile);
        try (Child calibrate = calibrate(profile, MPS + ":" + System.getenv("PATH"), "copies=300,products=150")) {
            if (calibrate.awaitExit(LIMIT_S) != ExitCode.OK) {
                assertTrue(calibrate.said().contains("the CPU was away") || calibrate.said().contains("it must be 0"),
                    calibrate.said());   // a busy machine; everything else is a failure
                return calibrate.said();
            }
            json = JSON.readTree(calibrate.lastLine());
        }
        final SpaceLimits limits = new TaskSetReader().readPlatform(withEpsilon(profile)).space();
        assertEquals(12, limits.reservePercent());
        assertEquals(json.path("slowdown_percent").asInt(), limits.slowdownPercent());
        assertTrue(json.path("simulated").asBoolean(), "a stand-in is no GPU: " + json);
        assertTrue(json.path("slowest").asText().contains("copies"), json.toString());
        assertTrue(limits.inFlightNs() * 100 >= (COPY_NS - 1_000) * (100 + MARGIN), json.toString());
        assertEquals(10, json.path("rows").size(), "two kinds of work, four of loads and their mix");
        for (final JsonNode row : json.path("rows")) {
            final JsonNode slower = row.path("slowdown_percent");
            assertTrue(slower.path("n").asInt() > 0 && slower.path("max").asDouble() * (100 + MARGIN) / 100
                <= limits.slowdownPercent(), row.toString());
            assertTrue(row.path("in_flight_ns").path("max").asLong() * (100 + MARGIN) / 100 <= limits.inFlightNs(),
                row.toString());
        }
        assertEquals(limits.slowdownPercent(), boundNs(profile) / 10_000 - 100, "a segment of 1 ms");
        return limits.slowdownPercent() >= 200 ? null : "the kernels were slowed by 200 %: " + json;
    }

    /** The profile has no epsilon, which a set gives. */
    private Path withEpsilon(final Path profile) throws Exception {
        final Path file = directory.resolve("whole.yaml");
        Files.writeString(file, Files.readString(profile) + "epsilon: 100us\n");
        return file;
    }

    private long boundNs(final Path profile) throws Exception {
        final Path set = directory.resolve("set.yaml");
        Files.writeString(set, """
            version: 1
            id: x
            platform: {profile: %s, epsilon: 100us}
            tasks:
              - name: loop
                cpu: 1
                period: 20ms
                priority: 90
                reserve: 12%%
                segments: [{gpu: {host: 0ms, device: 1ms}}]
            """.formatted(profile.getFileName().toString().replace(".yaml", "")));
        final StringOutput run = StringOutput.of("analyze", set.toString(), "--analysis", "gcaps-window-suspend",
            "--format", "json");
        assertEquals(ExitCode.OK, run.status(), run.text());
        return JSON.readTree(run.out()).findValue("wcrt_ns").asLong();
    }
}

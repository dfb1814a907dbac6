/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PlatformOriginTest {
    private static final String TASKS = "\ntasks: [{name: a, cpu: 1, period: 10ms, priority: 1, segments: [{gpu: "
        + "{host: 0ms, device: 1ms}}]}]\n";
    private static final Instant NOW = Instant.parse("2026-11-28T03:00:00Z");

    @TempDir
    private Path directory;

    private PlatformOrigin origin(final String platform) throws IOException {
        final TaskSetReader reader = new TaskSetReader();
        assertNull(reader.platformOrigin());
        reader.read(Files.writeString(directory.resolve("set.yaml"), "platform: " + platform + TASKS));
        return reader.platformOrigin();
    }

    private static Map<String, String> of(final PlatformOrigin origin) {
        return origin.constants().stream().collect(Collectors.toMap(Provenance.Constant::name,
            constant -> constant.value() + ", " + constant.origin()));
    }

    @Test
    void shouldTellWhatIsTypedFromWhatIsAssumed() throws IOException {
        final PlatformOrigin origin = origin("{cpus: 2, epsilon: 1ms, theta: 100us}");
        assertEquals(Map.of("cpus", "2, typed in the task set", "epsilon", "1ms, typed in the task set",
            "theta", "100us, typed in the task set", "timeslice", "1.024ms, default, not measured"), of(origin));
        assertEquals("", origin.measurement(NOW));
    }

    @Test
    void shouldNameTheProfileWithItsAgeAndItsSamples() throws IOException {
        final Path profile = Files.writeString(directory.resolve("h100.yaml"), """
            cpus: 16
            epsilon: 3400us
            quiet: {epsilon: 800us, alpha: 600us}
            theta: 165us
            timeslice: 2ms
            measured: {"begun":"2026-11-20T12:00:00Z","driver":"580.1","margin_percent":20,"churn_per_s":2,
              "blocking_ns":{"n":300,"max":7},"enable_ns":{"n":120,"max":9}}
            """);
        final PlatformOrigin origin = origin("{profile: h100, cpus: 4}");
        assertEquals(Map.of("cpus", "4, typed in the task set", "epsilon", "3400us, profile h100",
            "theta", "165us, profile h100", "timeslice", "2ms, profile h100"), of(origin));
        assertEquals(profile, origin.profile());
        assertEquals("measured 2026-11-20T12:00:00Z (7 days ago), n >= 120 for each figure, margin 20%, 580.1",
            origin.measurement(NOW));
        assertEquals("800us, profile h100 without churn", of(origin("{profile: h100, churn: none}")).get("epsilon"));
        assertEquals("16, profile h100", of(origin("h100")).get("cpus"));
    }

    @Test
    void shouldSayThatAProfileDoesNotSayWhenItWasMeasured() throws IOException {
        final Path profile = directory.resolve("p.yaml");
        Files.writeString(profile, "{cpus: 1, epsilon: 1ms}");
        assertEquals("does not say when it was measured, nor from how many samples", origin("p").measurement(NOW));
        Files.writeString(profile, "{cpus: 1, epsilon: 1ms, measured: {begun: yesterday, simulated: true}}");
        assertEquals("does not say when it was measured, n not said, SIMULATED", origin("p").measurement(NOW));
    }

    @Test
    void shouldHashAFileAsItsContent() throws IOException {
        final Path file = Files.writeString(directory.resolve("x"), "abc");
        assertEquals("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Provenance.sha256(file));
        assertTrue(Provenance.sha256(new byte[0]).startsWith("e3b0c442"));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The recorded runs are what their figures say: manifests name every file, and figures follow from the samples. */
class RecordedRunsTest {
    /** What only recorded runs have. */
    private static final Map<String, String> RETIRED = Map.of("slice by the daemon", "DAEMON_SLICE",
        "interrupt+slice by the daemon", "DAEMON_INTERRUPT_SLICE");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final double RATIO_DIGITS = 5e-5;
    private static final Path RUNS = Path.of(System.getProperty("gpuseg.root"), "traces", "runs");

    /** Each run: its manifest, and what its archive has. */
    @TempDir
    private static Path unpacked;

    @BeforeAll
    static void unpack() throws Exception {
        final List<Path> runs;
        try (Stream<Path> all = Files.list(RUNS)) {
            runs = all.toList();
        }
        for (final Path run : runs) {
            final Path to = Files.createDirectory(unpacked.resolve(run.getFileName()));
            Files.copy(run.resolve("manifest.json"), to.resolve("manifest.json"));
            tar("-xJf", run.resolve("samples.tar.xz").toString(), "-C", to.toString());
        }
    }

    /** A file of a run's archive. */
    static String recorded(final String run, final String name) throws Exception {
        return tar("-xJOf", RUNS.resolve(run).resolve("samples.tar.xz").toString(), name);
    }

    private static String tar(final String... arguments) throws Exception {
        final List<String> command = new ArrayList<>(List.of("tar"));
        command.addAll(List.of(arguments));
        final Process tar = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        final String out = new String(tar.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(tar.waitFor(30, TimeUnit.SECONDS), () -> command + " did not end");
        assertEquals(0, tar.exitValue(), () -> command + " failed; it needs tar and xz-utils");
        return out;
    }

    static List<Path> manifests() throws IOException {
        try (Stream<Path> files = Files.walk(unpacked)) {
            return files.filter(file -> file.getFileName().toString().equals("manifest.json")).sorted().toList();
        }
    }

    static List<Path> results() throws IOException {
        try (Stream<Path> files = Files.walk(unpacked)) {
            return files.filter(file -> file.getFileName().toString().equals("results.json")).sorted().toList();
        }
    }

    @ParameterizedTest
    @MethodSource("manifests")
    void shouldNameEveryFileInTheManifest(final Path manifest) throws IOException {
        assertNamesEverything(manifest);
    }

    static void assertNamesEverything(final Path manifest) throws IOException {
        final JsonNode content = JSON.readTree(manifest.toFile());
        for (final String key : List.of("machine", "driver", "date", "seed")) {
            assertTrue(content.has(key), () -> manifest + " does not say " + key);
        }
        final List<Path> named = new ArrayList<>();
        for (final JsonNode run : content.path("runs")) {
            final Path path = manifest.resolveSibling(run.path("path").asText());
            assertTrue(Files.exists(path), () -> path + " is named and missing");
            assertTrue(!run.path("command").asText().isEmpty(), () -> path + " has no command");
            named.add(path);
        }
        try (Stream<Path> files = Files.walk(manifest.getParent())) {
            files.filter(Files::isRegularFile).filter(file -> !file.equals(manifest)).forEach(file ->
                assertTrue(named.stream().anyMatch(file::startsWith), () -> file + " is in no manifest"));
        }
    }

    @ParameterizedTest
    @MethodSource("results")
    void shouldFollowFromTheSamples(final Path file) throws IOException {
        assertFollows(file);
    }

    /** Every figure of a results.json follows from the samples beside it. */
    static void assertFollows(final Path file) throws IOException {
        final JsonNode content = JSON.readTree(file.toFile());
        if (content.has("scenarios")) {
            for (final JsonNode scenario : content.path("scenarios")) {
                assertNamedSamples(file, scenario);
                for (final JsonNode cell : scenario.path("cells")) {
                    if (cell.has("samples")) {
                        assertRatios(file, cell, scenario.path("alone"));
                    }
                }
            }
            return;
        }
        final JsonNode alone = content.path("alone");
        assertFigures(file.resolveSibling("samples-alone.csv"), alone);
        for (final JsonNode cell : content.path("cells")) {
            final Path samples = file.resolveSibling("samples-" + cell.path("others").asInt() + "-"
                + strategy(cell.path("strategy").asText()).toLowerCase(Locale.ROOT) + ".csv");
            assertFigures(samples, cell);
            assertRatios(samples, cell, alone);
        }
    }

    private static void assertNamedSamples(final Path file, final JsonNode node) throws IOException {
        if (node.has("samples")) {
            assertFigures(file.resolveSibling(node.path("samples").asText()), node);
        }
        for (final JsonNode child : node) {
            assertNamedSamples(file, child);
        }
    }

    private static void assertRatios(final Path file, final JsonNode cell, final JsonNode alone) {
        for (final String p : List.of("p50", "p99")) {
            assertEquals(cell.path("response_ns").path(p).asDouble() / alone.path("response_ns").path(p).asDouble(),
                cell.path(p + "_to_alone").asDouble(), RATIO_DIGITS, () -> file + ": " + p + " to alone");
        }
    }

    private static String strategy(final String title) {
        for (final GpuStrategy strategy : GpuStrategy.values()) {
            if (strategy.title().equals(title)) {
                return strategy.name();
            }
        }
        if (RETIRED.containsKey(title)) {
            return RETIRED.get(title);
        }
        throw new AssertionError("no strategy \"" + title + "\"");
    }

    static void assertFigures(final Path samples, final JsonNode cell) throws IOException {
        final List<String> lines = Files.readAllLines(samples);
        final String[] columns = lines.get(0).split(",");
        assertEquals(cell.path("jobs").asInt(), lines.size() - 1, () -> samples + ": jobs");
        for (int c = 0; c < columns.length; c++) {
            final JsonNode figures = cell.path(columns[c]);
            if (figures.isMissingNode()) {
                continue;   // a column that is kept and not summed up
            }
            final long[] sorted = new long[lines.size() - 1];
            for (int i = 0; i < sorted.length; i++) {
                sorted[i] = Long.parseLong(lines.get(i + 1).split(",")[c]);
            }
            Arrays.sort(sorted);
            final String what = samples + ", " + columns[c] + ": ";
            assertEquals(sorted[0], figures.path("min").asLong(), what + "min");
            assertEquals(sorted[sorted.length - 1], figures.path("max").asLong(), what + "max");
            for (final int percent : new int[] {50, 95, 99}) {
                assertEquals(sorted[sorted.length * percent / 100], figures.path("p" + percent).asLong(),
                    what + "p" + percent);
            }
            if (figures.has("p99.9")) {
                assertEquals(sorted[(int) (sorted.length * 999L / 1000)], figures.path("p99.9").asLong(),
                    what + "p99.9");
            }
        }
    }
}

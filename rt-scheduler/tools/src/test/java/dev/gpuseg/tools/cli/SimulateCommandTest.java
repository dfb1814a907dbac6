/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

@Timeout(60)
class SimulateCommandTest {
    private static final String WINDOW_GAP = """
        version: 1
        id: window-gap
        platform: {cpus: 2, epsilon: 0ms}
        mode: suspend
        tasks:
          - {name: hc, cpu: 1, period: 100ms, priority: 9, segments: [{cpu: 30ms}]}
          - {name: h, cpu: 1, period: 100ms, priority: 8, segments: [{cpu: 1ms}, {gpu: {host: 5ms, device: 5ms}}]}
          - {name: lo, cpu: 2, period: 100ms, deadline: 40ms, priority: 7, segments: [{cpu: 1ms},
             {gpu: {host: 0ms, device: 10ms}}]}
        """;

    @TempDir
    private Path directory;
    private Path file;
    private String out;
    private String err;

    @BeforeEach
    void writeTaskSet() throws Exception {
        file = directory.resolve("set.yaml");
        Files.writeString(file, WINDOW_GAP);
    }

    private int run(final Callable<Integer> command, final String... arguments) {
        final StringWriter outText = new StringWriter();
        final StringWriter errText = new StringWriter();
        final int exit = new CommandLine(command).setOut(new PrintWriter(outText)).setErr(new PrintWriter(errText))
            .execute(arguments);
        out = outText.toString();
        err = errText.toString();
        return exit;
    }

    @Test
    void shouldExitWithThreeWhenADeadlineIsMissed() {
        assertEquals(3, run(new SimulateCommand(), file.toString(), "--duration", "3ms", "--first-arrivals",
            "2ms,0ms,1ms", "--format", "json"));
        assertTrue(out.contains("\"max_response_ns\" : 50000000"), out);
        assertEquals(0, run(new SimulateCommand(), file.toString(), "--duration", "3ms", "--first-arrivals",
            "2ms,0ms,1ms", "--hold", "boost"));
        assertTrue(out.startsWith("window-gap: no deadline missed"), out);
    }

    @ParameterizedTest
    @ValueSource(strings = {"--duration=3", "--duration=-1ms", "--duration=0ms", "--scheduler=best", "--cpu=rm",
        "--format=xml", "--random=colours", "--first-arrivals=1ms", "--seed=x", "--hold=never"})
    void shouldRefuseWrongUseWithOneLineAndTwo(final String arguments) {
        final String[] all = (file + " " + arguments).split(" ");
        assertEquals(2, run(new SimulateCommand(), all), err);
        assertTrue(!err.isBlank() && !err.contains("\tat "), err);
    }

    @Test
    void shouldSayWhichFileIsMissing() {
        assertEquals(2, run(new SimulateCommand(), directory.resolve("none.yaml").toString()));
        assertTrue(err.contains("none.yaml"), err);
    }

    @Test
    void shouldGenerateASetThatCanBeSimulated() throws Exception {
        final Path generated = directory.resolve("generated.yaml");
        assertEquals(0, run(new GenerateCommand(), "--seed", "3", "--out", generated.toString()));
        final int exit = run(new SimulateCommand(), generated.toString());
        assertTrue(exit == 0 || exit == 3, err);
        assertEquals(0, run(new GenerateCommand(), "--seed", "3"));
        assertEquals(Files.readString(generated), out);
    }

    @Test
    void shouldGenerateASetAloneAsInItsBatch() throws Exception {
        final String drs = experiment("utilisation: drs", "max_utilisation: 0.4");
        assertEquals(0, run(new GenerateCommand(), drs, "--count", "3"), err);
        final String third = out.lines().toList().get(2);
        final Path alone = directory.resolve("alone.jsonl");
        assertEquals(0, run(new GenerateCommand(), drs, "--first", "2", "--out", alone.toString()));
        assertEquals(third, Files.readString(alone).strip());
        assertEquals(0, run(new GenerateCommand(), "--first", "2", "--out", alone.toString()));
        assertNotEquals(third, Files.readString(alone).strip(), "the experiment counts");
        final Path json = directory.resolve("one.json");
        assertEquals(0, run(new GenerateCommand(), "--out", json.toString()));
        assertTrue(Files.readString(json).lines().count() > 1 && Files.readString(json).startsWith("{"), "JSON");
    }

    @ParameterizedTest
    @ValueSource(strings = {"--count=0", "--first=-1", "nowhere.yaml"})
    void shouldRefuseToGenerateNonsense(final String arguments) {
        assertEquals(2, run(new GenerateCommand(), arguments.split(" ")));
        assertTrue(!err.isBlank() && !err.contains("\tat "), err);
    }

    private String experiment(final String... lines) throws IOException {
        return Files.write(directory.resolve("experiment.yaml"), List.of(lines)).toString();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "cpus: 0            | cpus is '0'; it must be a whole number 1..1024",
        "gpu_ratio: 2       | gpu ratio is 2.0; it must be 0..1",
        "period_ms: 9..3    | period_ms is '9..3'; it must be 0 or more and in order",
        "period_ms: x       | period_ms is 'x'; write a number or two with .. between, like 3..6",
        "best_effort: 0..1  | best_effort is '0..1'; write one number",
        "epsilon: 1         | epsilon is the bare number 1; a duration needs a unit",
        "variant: mine      | variant is 'mine'; write as-coded or as-published",
        "tasks: 100         | tasks is '100'; it must be a whole number 1..99",
        "colour: red        | unknown key 'colour'",
        "max_utilisation: 0.01\\nutilisation: drs | the bounds allow 0.0..0.04",
    })
    void shouldRefuseAnExperimentWithKeyValueAndRemedy(final String text, final String says) throws Exception {
        assertEquals(2, run(new GenerateCommand(), experiment(text.split("\\\\n"))), out);
        assertTrue(err.lines().count() == 1 && err.contains(says), err);
    }

    @Test
    void shouldSweepAFigureAndACampaign() throws Exception {
        assertEquals(0, run(new SweepCommand(), "--figure", "8b,soundness", "--sets", "10", "--runs", "2", "--out",
            directory.resolve("sweep").toString()), err);
        assertTrue(out.contains("simulated runs of sound bounds, 0 sets with an exceeded bound"), out);
        for (final String name : new String[] {"figure-8b.csv", "figure-8b.svg", "comparison.md",
            "soundness.csv", "soundness.md"}) {
            assertTrue(Files.size(directory.resolve("sweep").resolve(name)) > 0, name);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"--figure=7a", "--figure=8b --sets=0", "--figure=8b --runs=0",
        "--figure=soundness --analysis=gcaps"})
    void shouldRefuseToSweepNonsense(final String arguments) {
        final String[] all = (arguments + " --out " + directory.resolve("x")).split(" ");
        assertEquals(2, run(new SweepCommand(), all));
        assertTrue(err.lines().count() >= 1 && !err.contains("\tat "), err);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.tools.cli.Gpuseg;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The documents against what they describe: programs, pictures, classes. Links and words: packaging/tests/links. */
@Timeout(60)
class DocumentationTest {
    private static final Path ROOT = Path.of(System.getProperty("gpuseg.root"));
    private static final int README_LINES = 120;

    @Test
    void shouldShowTheWholeProgramOfTheFirstExampleInTheReadme() throws IOException {
        final String readme = text("README.md");
        final Matcher block = Pattern.compile("(?s)```c\\n(.*?)```").matcher(readme);
        assertTrue(block.find(), "README.md shows no C program");
        final String example = text("segment-api/examples/00_camera.c");
        assertEquals(example.substring(example.indexOf('\n') + 1), block.group(1),
            "README.md and segment-api/examples/00_camera.c differ; the first line of the file is its licence");
    }

    @Test
    void shouldListEveryDocumentUnderAQuestion() throws IOException {
        final String questions = text("rt-scheduler/docs/README.md");
        for (final String directory : List.of("docs", "rt-scheduler/docs")) {
            try (Stream<Path> files = Files.list(ROOT.resolve(directory))) {
                for (final Path file : files.filter(name -> name.toString().endsWith(".md")).toList()) {
                    final String name = file.getFileName().toString();
                    assertTrue(name.equals("README.md") || questions.contains(name + ")")
                        || questions.contains(name + "#"), directory + "/" + name + " is listed under no question");
                }
            }
        }
    }

    @Test
    void shouldKeepTheReadmeOnOneScreen() throws IOException {
        final long lines = text("README.md").lines().count();
        assertTrue(lines <= README_LINES, "README.md has " + lines + " lines, " + README_LINES + " are enough");
    }

    @Test
    void shouldDrawTheReadmesPictureFromTheRecordedSamples() throws Exception {
        final Path directory = ROOT.resolve("rt-scheduler/docs/pictures");
        assumeTrue(new ProcessBuilder("sh", "-c", "command -v python3").start().waitFor() == 0,
            "python3 is missing");
        final Process python = new ProcessBuilder("python3", directory.resolve("before_after.py").toString(),
            "2026-11-21-h200-complete", "-").redirectError(ProcessBuilder.Redirect.INHERIT).start();
        final String drawn = new String(python.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(python.waitFor(30, TimeUnit.SECONDS), "before_after.py did not end");
        assertEquals(0, python.exitValue());
        assertEquals(drawn, Files.readString(directory.resolve("before-after.svg")), "run before_after.py again");
    }

    @Test
    void shouldShowTheMachinesThatSelfTestsWereRunOn() throws Exception {
        final Ran table = table("-");
        assertEquals(0, table.status(), table.text());
        assertTrue(table.text().contains("H100"), table.text());
        final List<String> shown = text("README.md").lines().filter(line -> line.contains("(traces/machines)"))
            .toList();
        assertEquals(table.text().lines().toList(), shown, "run traces/machines/table.py");
    }

    @Test
    void shouldRefuseEvidenceThatNamesAPersonOrAMachine(@TempDir final Path directory) throws Exception {
        final Path evidence = directory.resolve("evidence.json");
        final String right = text("traces/machines/h100-580.159.04-open.json");
        Files.writeString(evidence, right);
        assertEquals(new Ran(0, ""), table(evidence.toString()));
        Files.writeString(evidence, right.replace("\"selftest\": 1", "\"selftest\": 1, \"mechanism\": \"tegra\""));
        assertEquals(new Ran(0, ""), table(evidence.toString()));
        for (final List<String> wrong : List.of(
            List.of("as /proc/driver/nvidia/gpus says", "GPU-0b1c2d3e", "a UUID"),
            List.of("both count beside each other", "6f9619ff-8b86-d011-b42d-00c04fc964ff", "a UUID"),
            List.of("as /proc/driver/nvidia/gpus says", "0000:06:00.0", "an address on the PCI bus"),
            List.of("not loaded here", "52:54:00:12:34:56", "a hardware address"),
            List.of("\"board\": \"\"", "\"board\": \"1322621012345\"", "a serial number"),
            List.of("not loaded here", "/home/alice/gpuseg-watchdog is missing", "a user's directory"),
            List.of("not loaded here", "alice@robot", "a user at a host"),
            List.of("\"board\": \"\"", "\"board\": \"\", \"host\": \"robot\"", "machine: host"),
            List.of("\"took_s\": 5.4", "\"took_s\": 5.4, \"user\": \"alice\"", "the file: user"),
            List.of("\"selftest\": 1", "\"selftest\": 1, \"mechanism\": \"sim\"", "none of nvidia, tegra, amd"),
            List.of("\"simulated\": false", "\"simulated\": true", "it is simulated"))) {
            assertTrue(right.contains(wrong.get(0)), wrong.get(0));
            Files.writeString(evidence, right.replace(wrong.get(0), wrong.get(1)));
            final Ran table = table(evidence.toString());
            assertEquals(1, table.status(), wrong.toString());
            assertTrue(table.text().contains(wrong.get(2)) && table.text().lines().count() == 1, table.text());
        }
    }

    private record Ran(int status, String text) {
    }

    private static Ran table(final String argument) throws IOException, InterruptedException {
        assumeTrue(new ProcessBuilder("sh", "-c", "command -v python3").start().waitFor() == 0,
            "python3 is missing");
        final Process python = new ProcessBuilder("python3", ROOT.resolve("traces/machines/table.py").toString(),
            argument).redirectErrorStream(true).start();
        final String said = new String(python.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ran(python.waitFor(), said);
    }

    @Test
    void shouldNameOnlyClassesThatExistInTheArchitecture() throws IOException {
        final Set<String> sources;
        try (Stream<Path> all = Files.walk(ROOT)) {
            sources = all.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".java"))
                .map(name -> name.replace(".java", "")).collect(Collectors.toSet());
        }
        final List<String> unknown = new ArrayList<>();
        final Matcher name = Pattern.compile("`([A-Z][a-z]+[A-Z]?[A-Za-z]+)(\\.[a-z]\\w*)?`")
            .matcher(text("rt-scheduler/docs/architecture.md"));
        int found = 0;
        while (name.find()) {
            found++;
            if (!sources.contains(name.group(1))) {
                unknown.add(name.group(1));
            }
        }
        assertTrue(found > 50, "architecture.md names only " + found + " classes");
        assertEquals(List.of(), unknown, "architecture.md names classes that are not there");
    }

    /** {@code …shouldDoThis} belongs to the class that was named last. */
    @Test
    void shouldNameOnlyTestsThatExistInGuaranteesAndThreatModel() throws IOException {
        final Map<String, String> tests;
        try (Stream<Path> all = Files.walk(ROOT)) {
            tests = all.filter(file -> file.toString().contains("/src/test/java/") && file.toString().endsWith(".java"))
                .collect(Collectors.toMap(file -> file.getFileName().toString().replace(".java", ""),
                    DocumentationTest::read, (one, other) -> one + other));
        }
        final Pattern named = Pattern.compile(
            "`(?:([A-Z]\\w*(?:Test|Properties))(?:\\.(should\\w+))?|…(should\\w+))`");
        for (final String document : List.of("rt-scheduler/docs/guarantees.md", "rt-scheduler/docs/threat-model.md")) {
            final List<String> unknown = new ArrayList<>();
            final Matcher name = named.matcher(text(document));
            String type = "";
            int found = 0;
            while (name.find()) {
                found++;
                type = name.group(1) == null ? type : name.group(1);
                final String method = name.group(2) == null ? name.group(3) : name.group(2);
                if (!tests.getOrDefault(type, "").contains(method == null ? type : " " + method + "(")) {
                    unknown.add(type + "." + method);
                }
            }
            assertTrue(found > 20, document + " names only " + found + " tests");
            assertEquals(List.of(), unknown, document + " names tests that are not there");
        }
    }

    /** A row that begins with a number in bold is a promise or a threat; its last column names what shows it. */
    @Test
    void shouldNameATestForEveryPromiseAndEveryThreat() throws IOException {
        for (final String document : List.of("rt-scheduler/docs/guarantees.md", "rt-scheduler/docs/threat-model.md")) {
            int rows = 0;
            for (final String line : text(document).lines().filter(row -> row.startsWith("| **")).toList()) {
                final String last = line.substring(line.lastIndexOf(" | ") + 3);
                assertTrue(last.matches(".*`[^`]*([tT]est|Properties|should\\w|test_)[^`]*`.*"), document + ": "
                    + line);
                rows++;
            }
            assertTrue(rows > 15, document + " has only " + rows + " rows");
        }
    }

    @Test
    void shouldPromiseNothingAboutThreatsThatTheModelDoesNotHave() throws IOException {
        final String model = text("rt-scheduler/docs/threat-model.md");
        final Matcher threat = Pattern.compile("\\bT\\d+[a-e]?\\b").matcher(text("rt-scheduler/docs/guarantees.md"));
        int found = 0;
        while (threat.find()) {
            found++;
            assertTrue(model.contains("| **" + threat.group() + "** "), threat.group() + " is no threat of the model");
        }
        assertTrue(found > 8, "guarantees.md refers to only " + found + " threats");
    }

    private static String read(final Path file) {
        try {
            return Files.readString(file);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Command lines in code blocks: {@code gpuseg COMMAND …}, up to a comment, bracket, pipe or the next command. */
    @Test
    void shouldShowOnlyCommandLinesThatTheProgramUnderstands() throws IOException {
        final Pattern shown = Pattern.compile("(?m)^ *(?:\\$ )?(?:sudo )?(?:\\./)?(?:\\.\\./)*gpuseg ([^#\\n]*)");
        final Pattern launcher = Pattern.compile("(test|build)\\b.*");
        final List<String> refused = new ArrayList<>();
        int parsed = 0;
        for (final Path document : documents()) {
            final Matcher block = Pattern.compile("(?ms)^```[a-z]*\\n(.*?)^```|^((?: {4}.*\\n)+)")
                .matcher(Files.readString(document));
            while (block.find()) {
                final Matcher line = shown.matcher(block.group());
                while (line.find()) {
                    for (final String part : line.group(1).split("; *gpuseg |&&.*gpuseg ")) {
                        final String command = part.split("[\\[|>&;]")[0].replace("...", " ").strip();
                        if (!launcher.matcher(command).matches()) {
                            parsed++;
                            tryToParse(command).ifPresent(why -> refused.add(ROOT.relativize(document) + ": gpuseg "
                                + command + ": " + why));
                        }
                    }
                }
            }
        }
        assertTrue(parsed > 40, parsed + " command lines found");
        assertEquals(List.of(), refused, "documents show command lines that the program refuses");
    }

    private static Optional<String> tryToParse(final String command) {
        try {
            Gpuseg.commandLine().parseArgs(command.split(" +"));
            return Optional.empty();
        } catch (final CommandLine.MissingParameterException e) {
            return Optional.empty();   // a command line that the text abbreviates
        } catch (final CommandLine.ParameterException e) {
            return Optional.of(e.getMessage());
        }
    }

    /** Documents that people read; records of runs stay as they were written. */
    private static List<Path> documents() throws IOException {
        final Pattern notOurs = Pattern.compile("/(target|build|\\.git|\\.gpuseg|runs)/");
        try (Stream<Path> all = Files.walk(ROOT)) {
            return all.filter(file -> file.toString().endsWith(".md"))
                .filter(file -> !notOurs.matcher(file.toString()).find()).toList();
        }
    }

    private static String text(final String file) throws IOException {
        return Files.readString(ROOT.resolve(file));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.policy.TestJar;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.launch.RunSettings;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

@Timeout(60)
class ConfigCommandTest {
    private static final Path SHIPPED = Path.of(System.getProperty("gpuseg.root"), "packaging", "gpuseg.yaml");

    @TempDir
    private Path directory;

    private Path file(final String text) throws IOException {
        final Path file = directory.resolve("gpuseg.yaml");
        Files.writeString(file, text.replace("\\n", "\n"));
        return file;
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "polcy: fp                         | 1: polcy: 'fp': unknown key; did you mean 'policy'?",
        "policy: best                      | 1: policy: 'best': policy \"best\"",
        "idle: never                       | 1: idle: 'never'",
        "gpus: two                         | 1: gpus: 'two': 'two' is no whole number",
        "gpus: 010                         | 1: gpus: '010': '010' is no whole number; write decimal digits without",
        "gpus: 0                           | 1: gpus: '0': --gpus is 0; use 1..16",
        "gpus: [1, 2]                      | 1: gpus: a list; give it one value",
        "gpus: {of: {this: 1}}             | 1: gpus-of-this: '1': unknown key",
        "gpus:                             | 1: gpus: has no value",
        "a: &x 1\\ngpus: *x                | 2: '*x' is an alias",
        "watchdog-period: 100              | 1: watchdog-period: '100': \"100\" is not a duration; give a number and",
        "watchdog: {period: 1ms}           | 1: watchdog-period: '1ms': watchdog-period is 1ms; use 40ms..10s",
        "queue: {size: 300KiB}             | 1: queue-size: '300KiB': queue-size is 307200 bytes; use a power of two",
        "journal-size: 5                   | 1: journal-size: '5': \"5\" is not a size",
        "hold-launches: 1                  | 1: hold-launches: '1': is neither true nor false",
        "optimistic: maybe                 | 1: optimistic: 'maybe': is neither true nor false",
        "no-watchdog: 1                    | 1: no-watchdog: '1': is neither true nor false",
        "gpus: 1\\ngpus: 2                 | 2: key 'gpus' occurs twice; remove one",
        "queue-size: 1MiB\\nqueue: {size: 1MiB} | 2: queue-size: '1MiB': set in line 1 already",
        "gpus: 1\\npolicy-file: /nowhere  | 2: policy-file: '/nowhere': /nowhere: there is no such file",
        "config: /etc/other                | 1: config: '/etc/other': unknown key",
        "help: true                        | 1: help: 'true': unknown key",
        "[1]                               | 1: holds a list; write one",
        "gpus                              | 1: holds a single value",
        "gpus: 1\\n---\\ngpus: 2           | a second document",
        "gpus: [1                          | not readable as YAML",
    })
    void shouldRefuseWithFileLineKeyValueAndRemedy(final String text, final String says) throws Exception {
        final Path file = file(text);
        final StringOutput refused = StringOutput.of("config", "check", file.toString());
        assertEquals(ExitCode.USAGE, refused.status(), refused.text());
        final String expected = Character.isDigit(says.charAt(0)) ? file + ":" + says : says;
        assertTrue(refused.err().contains(expected), refused.err());
        assertTrue(refused.err().lines().allMatch(line -> line.startsWith(file.toString())), refused.err());
        final StringOutput run = StringOutput.of("run", "--config", file.toString(), "--dir", directory + "/run");
        assertEquals(ExitCode.USAGE, run.status(), run.text());
        assertTrue(run.err().contains(expected), run.err());
        assertFalse(Files.exists(directory.resolve("run")), "nothing was started");
    }

    @ParameterizedTest
    @CsvSource({"yes, true", "On, true", "TRUE, true", "no, false", "Off, false", "false, false"})
    void shouldTakeEveryTruthValueOfYamlAsTaskSetsDo(final String written, final boolean meant) throws Exception {
        final StringOutput checked = StringOutput.of("config", "check",
            file("virtual-gpu: " + written + "\nmechanism: gate\n").toString());
        assertEquals(meant ? ExitCode.USAGE : ExitCode.OK, checked.status(), checked.text());
        assertEquals(meant, checked.err().contains("--virtual-gpu needs --mechanism sim"), checked.text());
    }

    @Test
    void shouldNameAllProblemsInTheOrderOfTheLines() throws Exception {
        final Path file = file("gpus: 0\nflavour: sweet\npriority: 100\nwatchdog-period: 5\nqueue-size: 3KiB\n");
        final List<String> lines = StringOutput.of("config", "check", file.toString()).err().lines().toList();
        assertEquals(5, lines.size(), lines.toString());
        for (int i = 0; i < lines.size(); i++) {
            assertTrue(lines.get(i).startsWith(file + ":" + (i + 1) + ": "), lines.get(i));
        }
    }

    @Test
    void shouldRefuseAFileThatEverybodyCanWriteOrNobodyCanRead() throws Exception {
        final Path file = file("gpus: 1\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
        final StringOutput open = StringOutput.of("config", "check", file.toString());
        assertEquals(ExitCode.USAGE, open.status());
        assertTrue(open.err().contains("chmod o-w " + file), open.err());
        final StringOutput none = StringOutput.of("config", "check", directory + "/none.yaml");
        assertEquals(ExitCode.USAGE, none.status());
        assertTrue(none.err().contains("there is no such file"), none.err());
        assertEquals(ExitCode.USAGE, StringOutput.of("config", "check").status(), "none is installed in a checkout");
        assertEquals(ExitCode.USAGE, StringOutput.of("config").status());
    }

    @Test
    void shouldUseTheFileWhereTheCommandLineSaysNothing() throws Exception {
        final Path file = file("mechanism: sim\ndir: " + directory + "/from-file\noptimistic: false\n");
        final StringOutput fromFile = StringOutput.of("run", "--config", file.toString());
        assertEquals(ExitCode.FAILURE, fromFile.status(), "no virtual GPU runs there: " + fromFile.text());
        assertTrue(fromFile.err().contains("mechanism \"sim\": "), fromFile.err());
        assertTrue(Files.exists(directory.resolve("from-file")), "the daemon got as far as its directory");
        final StringOutput named = StringOutput.of("run", "--config", file.toString(), "--mechanism", "second");
        assertEquals(ExitCode.USAGE, named.status(), named.text());
        assertTrue(named.err().contains("mechanism \"second\" is unknown"), named.err());
        final StringOutput fromLine = StringOutput.of("run", "--config", file.toString(), "--dir",
            directory + "/from-line");
        assertEquals(ExitCode.FAILURE, fromLine.status(), fromLine.text());
        assertTrue(Files.exists(directory.resolve("from-line")));
    }

    @Test
    void shouldShowEveryValueWithItsOrigin() throws Exception {
        final Path file = file("# comment\nwatchdog: {period: 80ms}\nno-watchdog: true\n");
        final JsonNode json = new ObjectMapper().readTree(
            StringOutput.of("config", "show", "--json", file.toString()).out());
        assertEquals("80ms", json.path("watchdog-period").path("value").asText());
        assertEquals(file + ":2", json.path("watchdog-period").path("origin").asText());
        assertEquals("true", json.path("no-watchdog").path("value").asText());
        assertEquals("default", json.path("gpus").path("origin").asText());
        assertTrue(json.path("gpus").path("value").isNull(), "all that are found");
        assertEquals(new RunSettings().all().size(), json.size());
        final String text = StringOutput.of("config", "show", file.toString()).out();
        assertTrue(Pattern.compile("watchdog-period +80ms +" + Pattern.quote(file + ":2")).matcher(text).find(), text);
    }

    /** An option with a list and one with a mapping, as later options of run may have. */
    @Command(name = "run")
    private static final class OtherRun {
        @Option(names = "--weight")
        private java.util.Map<String, Integer> weight;

        @Option(names = {"-p", "--protect"})
        private List<String> protect;
    }

    @Test
    void shouldKnowEveryOptionOfTheCommandByConstruction() {
        final RunSettings keys = new RunSettings(new CommandLine(new OtherRun()).getCommandSpec());
        assertEquals(List.of("protect", "weight"), List.copyOf(keys.all()));
        assertTrue(keys.takesMapping("weight"));
        assertTrue(keys.takesList("protect"));
        assertFalse(keys.takesMapping("protect"));
    }

    @Test
    void shouldShipAFileThatIsGoodAndShowsEveryOption() throws Exception {
        final StringOutput good = StringOutput.of("config", "check", SHIPPED.toString());
        assertEquals(ExitCode.OK, good.status(), good.text());
        final String text = Files.readString(SHIPPED);
        final Path rules = directory.resolve("policy.yaml");
        Files.writeString(rules, "version: 1\nsharing: turns\n");
        final Path groups = directory.resolve("groups.yaml");
        Files.writeString(groups, "version: 1\ngroups: [{path: /robot.slice/**, weight: 400}]\n");
        final Path limits = Files.createDirectory(directory.resolve("limits.d"));
        Files.writeString(limits.resolve("robot.conf"), "* priority 30\n");
        final Path platform = directory.resolve("platform.yaml");
        Files.writeString(platform, "cpus: 6\nepsilon: 1ms\n");
        final String tasks =
            Path.of(System.getProperty("gpuseg.root"), "traces/workloads/gcaps-xavier.yaml").toString();
        final Path all = file(text.replaceAll("(?m)^#(?=[a-z])", "").replace("/etc/gpuseg/policy.yaml",
            rules.toString()).replace("admission: off", "admission: warn")   // taskset and platform need it
            .replace("/etc/gpuseg/policies.jar", TestJar.leastSlackFirst(directory.resolve("jar")).toString())
            .replace("/etc/gpuseg/groups.yaml", groups.toString())
            .replace("/etc/gpuseg/limits.d", limits.toString())
            .replace("/etc/gpuseg/platform.yaml", platform.toString()).replace("/etc/gpuseg/taskset.yaml", tasks));
        final StringOutput uncommented = StringOutput.of("config", "check", all.toString());
        assertEquals(ExitCode.OK, uncommented.status(), "with every setting active: " + uncommented.text());
        final RunSettings keys = new RunSettings();
        for (final String key : keys.all()) {
            final Matcher line = Pattern.compile("(?m)^(#?)" + key + ": *(.*)$").matcher(text);
            assertTrue(line.find(), "packaging/gpuseg.yaml shows no key \"" + key + "\"; add a line about it");
            final String fixed = keys.defaultOf(key);
            if (fixed != null && !line.group(1).isEmpty()) {
                assertEquals(fixed, line.group(2), key + ": the line that is commented out shows the default");
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

@Timeout(60)
class CommandLineTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Set<String> NEED_A_DEVICE = Set.of("nvidia", "tegra", "amd", "sim");

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "''                                | no command given",
        "fly                               | fly",
        "analyse set.yaml                  | 'analyse', 'set.yaml'; did you mean 'analyze'?",
        "run --prioriti 5                  | did you mean '--priority'?",
        "run --policy best                 | best",
        "run --idle never                  | never",
        "run --queue-size 300KiB           | write queue-size: SIZE into a file and give it with --config FILE",
        "run --no-warm-up                  | --no-warm-up is no option but a key of the settings file; write warm-",
        "run --cpu 9999                    | no such CPU",
        "run --gpus 0                      | 1..16",
        "run --priority 100                | 1..99",
        "run --priority 010                | '010' is no whole number; write decimal digits without leading zeros",
        "run --gpus 0x1                    | '0x1' is no whole number",
        "run --gpus 99999999999            | '99999999999' is too large",
        "demo --duration 10                | unit",
        "demo --duration 1ms               | 500ms",
        "demo --policy best                | best",
        "set                               | TASK",
        "set camera                        | --priority",
        "set camera --priority 100         | 0..99",
        "bench                             | ipc",
        "bench ipc --cpus 0,0                    | two different CPUs",
    })
    void shouldRefuseBadUsageWithStatus2AndSayWhatIsWrong(final String arguments, final String says) {
        final StringOutput refused = StringOutput.of(arguments.isEmpty() ? new String[0] : arguments.split(" +"));
        assertEquals(ExitCode.USAGE, refused.status(), refused.text());
        assertTrue(refused.err().contains(says), refused.err());
        assertEquals("", refused.out());
    }

    @ParameterizedTest
    @CsvSource({"''", "run", "status", "stop", "set", "release", "doctor", "demo", "bench", "bench ipc"})
    void shouldExplainEveryCommand(final String command) {
        final StringOutput help = StringOutput.of((command + " --help").strip().split(" +"));
        assertEquals(ExitCode.OK, help.status(), help.text());
        assertTrue(help.out().startsWith("Usage: gpuseg"), help.out());
    }

    @Test
    void shouldSayThatNoDaemonRuns() throws Exception {
        final StringOutput text = StringOutput.of("status", "--dir", directory.toString());
        assertEquals(ExitCode.NO, text.status());
        assertTrue(text.out().contains("no daemon answers in " + directory), text.out());
        final StringOutput json = StringOutput.of("status", "--json", "--dir", directory.toString());
        assertEquals(ExitCode.NO, json.status());
        assertEquals("{\"running\":false}", json.out().strip());
        assertEquals(ExitCode.NO, StringOutput.of("stop", "--dir", directory.toString()).status());
        assertEquals(ExitCode.OK, StringOutput.of("release", "--dir", directory.toString()).status());
    }

    @ParameterizedTest
    @ValueSource(strings = {"status", "status --watch --json", "cgroups", "top --once", "top --json", "policy",
        "stop", "live"})
    void shouldExitWithThreeWithoutADaemonWhateverIsAsked(final String command) {
        final StringOutput nobody = StringOutput.of((command + " --dir " + directory).split(" "));
        assertEquals(ExitCode.NO, nobody.status(), nobody.text());
        assertTrue(nobody.text().contains("no daemon answers in " + directory)
            || nobody.text().contains("\"running\":false"), nobody.text());
    }

    @ParameterizedTest
    @ValueSource(strings = {"status", "set", "cgroups", "stop", "top"})
    void shouldUnderstandAShortCommandLineAsTheWholeOneDoes(final String command) {
        final CommandLine one = Gpuseg.lineFor(command).getSubcommands().get(command);
        final CommandLine whole = Gpuseg.commandLine().getSubcommands().get(command);
        assertEquals(whole.getUsageMessage(), one.getUsageMessage());
        assertEquals(1, Gpuseg.lineFor(command).getSubcommands().size(), "the others cost time");
        assertEquals(ExitCode.NO, Gpuseg.lineFor("status").execute("status", "--dir", directory.toString()));
        assertTrue(Gpuseg.lineFor("status", "--json").getSubcommands().containsKey("status"));
        assertTrue(Gpuseg.lineFor("analyze").getSubcommands().size() > 15);
        assertEquals(0, Gpuseg.lineFor("--version").getSubcommands().size());
    }

    @Test
    void shouldPrintNoWarningOfItsOwnLibraryInAnyHelp() {
        assertEquals("", StringOutput.of("run", "--help").err());
        assertTrue(StringOutput.of("run", "--help").out().contains("auto, nvidia, tegra"));
    }

    @Test
    void shouldSayWhyTheDaemonDoesNotStart() {
        assumeTrue(!java.nio.file.Files.exists(Path.of("/dev/kfd")), "this machine has an AMD GPU");
        final StringOutput refused = StringOutput.of("run", "--dir", directory.toString(), "--mechanism", "amd");
        assertEquals(ExitCode.FAILURE, refused.status());
        assertTrue(refused.err().contains("cannot start") && refused.err().contains("load amdgpu")
            && refused.err().contains("--mechanism gate"), refused.err());
    }

    @Test
    void shouldDiagnoseThisMachineHonestly() throws Exception {
        assumeTrue(!java.nio.file.Files.exists(Path.of("/dev/nvidiactl")), "this machine has an NVIDIA driver");
        assumeTrue(!java.nio.file.Files.exists(Path.of("/dev/kfd")), "this machine has an AMD GPU");
        final StringOutput json = StringOutput.of("doctor", "--json", "--dir", directory.toString());
        final JsonNode report = JSON.readTree(json.out());
        assertEquals(report.path("can_run").asBoolean() ? ExitCode.OK : ExitCode.NO, json.status(), json.text());
        assertEquals("gate", report.path("best").asText(), "no virtual GPU runs here");
        for (final JsonNode mechanism : report.path("mechanisms")) {
            final boolean needsDevice = NEED_A_DEVICE.contains(mechanism.path("name").asText());
            assertEquals(!needsDevice, mechanism.path("usable").asBoolean(), mechanism.toString());
            assertFalse(mechanism.path("reason").asText().contains("not built"), mechanism.toString());
        }
        final StringOutput text = StringOutput.of("doctor", "--dir", directory.toString());
        assertTrue(text.out().contains("the daemon starts here with gate (--mechanism auto, the default): begins "
            + "wait"), text.out());
    }
}

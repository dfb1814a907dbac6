/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.config.ConfigFile;
import dev.gpuseg.daemon.config.ConfigProblem;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismVerdict;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

@Timeout(60)
class RunSettingsTest {
    /** Any name can be that of a program that is protected. */
    private static final List<String> WITHOUT_BAD_VALUE = List.of("protect");

    @TempDir
    private Path directory;
    private int surveys;

    private List<MechanismCatalog.Surveyed> survey(final RuntimeDirectory where) {
        surveys++;
        return List.of(new MechanismCatalog.Surveyed(MechanismCatalog.get("gate"),
            new MechanismVerdict(true, Capabilities.GATE, "works everywhere")));
    }

    private List<ConfigProblem> check(final Path file) {
        final RunSettings keys = new RunSettings(this::survey);
        return keys.check(ConfigFile.read(file, keys));
    }

    private Path file(final String... lines) throws IOException {
        return Files.write(directory.resolve("gpuseg.yaml"), List.of(lines));
    }

    private record Answer(int status, List<String> lines) {
    }

    private static Answer of(final String... arguments) {
        final StringWriter err = new StringWriter();
        final CommandLine line = CommandLines.of(new DaemonMain());
        line.setErr(new PrintWriter(err, true));
        final int status = line.execute(arguments);
        return new Answer(status, err.toString().lines().toList());
    }

    @Test
    void shouldSurveyTheDevicesOnceHoweverManySettingsAreWrong() throws IOException {
        final List<ConfigProblem> problems = check(file("gpus: 0", "priority: 100", "watchdog-period: 5ms",
            "queue-size: 300KiB", "policy: best", "idle: never"));
        assertEquals(6, problems.size(), problems.toString());
        assertEquals(1, surveys);
        assertEquals(List.of(), check(file("gpus: 1")));
        assertEquals(2, surveys, "once for each check");
    }

    @Test
    void shouldPlaceAProblemWhoseWordsNameAnotherOption() throws IOException {
        final Path file = file("admission: enforce", "unmanaged: allow", "platform: " + platform());
        assertEquals(List.of(file + ":1: admission: 'enforce': --admission enforce with unmanaged: allow: what "
            + "unregistered processes do on the GPU is in no analysis; use unmanaged: best-effort, or --admission "
            + "warn"), check(file).stream().map(ConfigProblem::toString).toList());
    }

    private Path platform() throws IOException {
        return Files.writeString(directory.resolve("platform.yaml"), "cpus: 2\nepsilon: 1ms\n");
    }

    private Map<String, String> oneBadValueEach() throws IOException {
        final String inTheWay = Files.writeString(directory.resolve("file"), "") + "/below";
        final Map<String, String> bad = new LinkedHashMap<>();
        for (final String named : List.of("mechanism", "policy", "idle", "anticipate", "admission", "core-order",
            "unmanaged", "observer", "nvidia-scope", "metrics")) {
            bad.put(named, "nope");
        }
        for (final String flag : List.of("hold-launches", "virtual-gpu", "space", "optimistic", "no-watchdog",
            "lock-memory", "warm-up")) {
            bad.put(flag, "perhaps");
        }
        for (final String number : List.of("gpus", "space-reserve", "space-places", "clients-per-user",
            "tasks-per-user")) {
            bad.put(number, "0");
        }
        for (final String path : List.of("policy-jar", "policy-file", "cgroup-rules", "limits", "dir", "journal")) {
            bad.put(path, inTheWay);
        }
        bad.put("taskset", "/nowhere.yaml\nadmission: warn");
        bad.put("platform", "/nowhere.yaml\nadmission: warn");
        bad.put("anticipation-budget", "101");
        bad.put("journal-size", "1KiB");
        bad.put("queue-size", "300KiB");
        bad.put("watchdog-period", "39ms");
        bad.put("admission-grace", "61min");
        bad.put("cpu", "4095");
        bad.put("priority", "100");
        return bad;
    }

    @Test
    void shouldRefuseABadValueOfAnyKeyAlikeAtBothDoors() throws IOException {
        final Map<String, String> bad = oneBadValueEach();
        final TreeSet<String> keys = new TreeSet<>(new RunSettings().all());
        keys.removeAll(WITHOUT_BAD_VALUE);
        assertEquals(keys, new TreeSet<>(bad.keySet()), "a bad value for each key");
        for (final Map.Entry<String, String> setting : bad.entrySet()) {
            final String key = setting.getKey();
            final Path file = file(key + ": " + setting.getValue());
            final Answer check = of("config", "check", file.toString());
            assertEquals(ExitCode.USAGE, check.status(), key + ": " + check);
            assertEquals(1, check.lines().size(), key + ": " + check);
            final String first = setting.getValue().lines().findFirst().orElseThrow();
            assertTrue(check.lines().get(0).startsWith(file + ":1: " + key + ": '" + first + "': "), check.toString());
            final Answer run = key.equals("dir") ? of("run", "--config", file.toString())
                : of("run", "--config", file.toString(), "--dir", directory + "/run");
            assertEquals(new Answer(ExitCode.USAGE, List.of("gpuseg: " + check.lines().get(0))), run, key);
        }
        assertFalse(Files.exists(directory.resolve("run")), "nothing was started");
    }

    @Test
    void shouldRefuseContradictionsAlikeAtBothDoors() throws IOException {
        for (final List<String> lines : List.of(List.of("policy: fp", "mechanism: observe"),
            List.of("mechanism: sim", "gpus: 2"), List.of("mechanism: gate", "observer: on"),
            List.of("mechanism: gate", "virtual-gpu: true"),
            List.of("platform: " + platform(), "unmanaged: allow", "admission: enforce"))) {
            final Path file = file(lines.toArray(new String[0]));
            final Answer check = of("config", "check", file.toString());
            assertEquals(ExitCode.USAGE, check.status(), check.toString());
            assertEquals(1, check.lines().size(), check.toString());
            assertTrue(check.lines().get(0).startsWith(file + ":" + lines.size() + ": "), check.toString());
            final Answer run = of("run", "--config", file.toString(), "--dir", directory + "/run");
            assertEquals(new Answer(ExitCode.USAGE, List.of("gpuseg: " + check.lines().get(0))), run);
        }
        assertFalse(Files.exists(directory.resolve("run")), "nothing was started");
    }

    @Test
    void shouldTakeWordsThatYamlCallsBoolean() throws IOException {
        for (final String off : List.of("off", "Off", "OFF", "no", "No", "false", "False", "\"off\"")) {
            assertEquals(List.of(), check(file("anticipate: " + off, "admission: " + off, "observer: " + off)), off);
        }
        final List<String> refused = check(file("observer: on", "mechanism: gate")).stream()
            .map(problem -> problem.toString().replaceFirst("'on'", "")).toList();
        assertTrue(refused.get(0).contains("observer is on with --mechanism gate"), refused.toString());
        for (final String on : List.of("On", "yes", "true", "TRUE")) {
            assertEquals(refused, check(file("observer: " + on, "mechanism: gate")).stream()
                .map(problem -> problem.toString().replaceFirst("'" + on + "'", "")).toList(), on);
        }
    }

    @Test
    void shouldLetTheCommandLineReplaceAValueOfTheFile() throws IOException {
        final Path file = file("mechanism: first");
        final Answer run = of("run", "--config", file.toString(), "--mechanism", "second", "--dir",
            directory + "/run");
        assertEquals(ExitCode.USAGE, run.status());
        assertEquals("gpuseg: mechanism \"second\" is unknown; use auto, " + MechanismCatalog.names(),
            run.lines().get(0));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Hypotheses;
import dev.gpuseg.analysis.rta.OutOfModel;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The analysis knows no daemon, so that the names in its texts are compared here with those that the daemon has. */
class OutOfModelTest {
    private static final Path ROOT = Path.of(System.getProperty("gpuseg.root"));
    private static final String ALL = Arrays.stream(OutOfModel.values()).map(e -> e.what() + "; " + e.daemon() + "; "
        + e.seen()).collect(Collectors.joining("\n"));

    /** How somebody finds out whether a hypothesis holds, of every analysis. */
    private static final String EVIDENCE = Analyses.all().stream().flatMap(analysis -> Soundness.of(
        analysis.description()).findings().stream()).map(Hypotheses.Finding::detail).distinct()
        .collect(Collectors.joining("\n"));

    private static Set<String> found(final String pattern) {
        return found(pattern, ALL);
    }

    private static Set<String> found(final String pattern, final String text) {
        final Set<String> found = new TreeSet<>();
        final Matcher matcher = Pattern.compile(pattern).matcher(text);
        while (matcher.find()) {
            found.add(matcher.group());
        }
        return found;
    }

    @Test
    void shouldNameCountersAndMetricsThatExist() throws Exception {
        final Set<String> counters = Arrays.stream(Counter.values()).map(Counter::label).collect(Collectors.toSet());
        final String metrics = Files.readString(ROOT.resolve("rt-scheduler/docs/metrics.md"));
        final Set<String> named = found("\\b[a-z]+_[a-z_]+\\b");
        named.add("overruns");
        assertTrue(ALL.contains("overruns") && named.size() >= 7, named.toString());
        for (final String name : named) {
            assertTrue(counters.contains(name) || metrics.contains("`" + name + "` | histogram"), name);
        }
    }

    @Test
    void shouldNameAlertsEventsAndOptionsThatExist() throws Exception {
        final String alerts = Files.readString(ROOT.resolve("rt-scheduler/daemon/monitoring/gpuseg-alerts.yml"));
        assertEquals(Set.of("GpusegEnforcementFailed", "GpusegEnforcementSlow"), found("\\bGpuseg\\w+"));
        for (final String alert : found("\\bGpuseg\\w+")) {
            assertTrue(alerts.contains("- alert: " + alert + "\n"), alert);
        }
        assertEquals(Set.of(EventKind.MECHANISM_ERROR.name()), found("\\b[A-Z]+_[A-Z]+\\b"));
        final String keys = Files.readString(ROOT.resolve("packaging/gpuseg.yaml"));
        assertTrue(keys.contains("#protect:") && keys.contains("#nvidia-scope:"), "keys of the settings file");
    }

    @Test
    void shouldSayByCommandsAndCountersThatExistWhetherAHypothesisHolds() throws Exception {
        final Set<String> commands = found("gpuseg [a-z]+(?: [a-z]+)?(?: --[a-z]+)?", EVIDENCE);
        assertTrue(commands.contains("gpuseg trace check --decisions") && commands.size() >= 4, commands.toString());
        for (final String command : commands) {
            final List<String> words = new ArrayList<>(List.of(command.split(" ")));
            words.remove(0);
            words.remove("under");
            final List<String> help = new ArrayList<>(words);
            help.removeIf(word -> word.startsWith("--"));
            help.add("--help");
            final StringOutput said = StringOutput.of(help.toArray(new String[0]));
            assertEquals(0, said.status(), command + ": " + said.text());
            words.stream().filter(word -> word.startsWith("--")).forEach(option ->
                assertTrue(said.out().contains(option), command));
        }
        final Set<String> counters = Arrays.stream(Counter.values()).map(Counter::label).collect(Collectors.toSet());
        final String metrics = Files.readString(ROOT.resolve("rt-scheduler/docs/metrics.md"));
        final Set<String> named = found("\\b[a-z]+_[a-z_]+\\b", EVIDENCE);
        named.removeAll(Set.of("sched_rt_runtime_us", "gpuseg_job", "boost_priority"));   // of kernel and library
        assertTrue(named.size() >= 4, named.toString());
        for (final String name : named) {
            assertTrue(counters.contains(name) || metrics.contains("`" + name + "` |"), name);
        }
        assertTrue(Files.readString(ROOT.resolve("rt-scheduler/daemon/monitoring/gpuseg-alerts.yml"))
            .contains("- alert: " + found("Gpuseg\\w+", EVIDENCE).iterator().next() + "\n"));
    }

    @Test
    void shouldNameTheSizesOfTheTables() throws Exception {
        assertEquals(256, Abi.HELD_MAX);
        assertTrue(OutOfModel.NUMBERS.what().contains("the 257th"));
        assertTrue(Files.readString(ROOT.resolve("rt-scheduler/daemon/src/main/java/dev/gpuseg/daemon/process/"
            + "Daemon.java")).contains("CONTEXTS_MAX = 1024;") && OutOfModel.NUMBERS.what().contains("1,024"));
        assertTrue(Files.readString(ROOT.resolve("rt-scheduler/daemon/src/main/java/dev/gpuseg/daemon/enforce/"
            + "AppliedState.java")).contains("\"held file is full: "), "the text of the event");
    }
}

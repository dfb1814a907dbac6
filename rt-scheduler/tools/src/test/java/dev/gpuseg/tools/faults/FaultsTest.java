/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(480)
@Tag("long")
class FaultsTest {
    private static final int LIMIT_MS = 1_000;
    private static final int ATTACKS = 30;

    @Test
    void shouldRefuseAnUnknownFaultByName() {
        final StringOutput refused = StringOutput.of("faults", "--fault", "earthquake");
        assertEquals(ExitCode.USAGE, refused.status());
        assertTrue(refused.text().contains("earthquake") && refused.text().contains("kill-client"), refused.text());
    }

    @Test
    void shouldKeepAccidentsAndAttacksApart() {
        final StringOutput attack = StringOutput.of("faults", "--fault", "flood-status");
        assertEquals(ExitCode.USAGE, attack.status());
        assertTrue(attack.text().contains("add --hostile"), attack.text());
        final StringOutput accident = StringOutput.of("faults", "--hostile", "--fault", "kill-client");
        assertEquals(ExitCode.USAGE, accident.status());
        assertTrue(accident.text().contains("leave out --hostile"), accident.text());
    }

    @Test
    void shouldRefuseARoundBeforeTheFirst() {
        final StringOutput refused = StringOutput.of("faults", "--rounds", "0..3");
        assertEquals(ExitCode.USAGE, refused.status());
        assertTrue(refused.text().contains("--rounds is 0..3; use 1.."), refused.text());
    }

    @Test
    void shouldRepeatOneRoundOfACampaign() throws Exception {
        final Round third = Round.plan(3, 11, List.of(Fault.CLOCK_STEP)).get(2);
        final StringOutput repeated = StringOutput.of("faults", "--fault", "clock-step", "--seed", "11",
            "--rounds", "3..3", "--watchdog-period", LIMIT_MS + "ms");
        assertTrue(repeated.text().contains(third.toString()), repeated.text());
        assertTrue(repeated.text().contains("1 rounds, seed 11: 1 injected, 1 survived"), repeated.text());
    }

    /** Without a daemon nobody is attacked: that must not pass for a round that was survived. */
    @Test
    void shouldNotTakeForAnAttackWhatDidTooLittle() throws Exception {
        final Process attack = new ProcessBuilder(NativePrograms.named("gpuseg-hostile").toString(), "flood-status",
            "--dir", "/nonexistent", "--seed", "1", "--duration", "5ms", "--at-most", "300ms").redirectErrorStream(true)
            .start();
        final long beganNs = System.nanoTime();
        final String said = new String(attack.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(3, attack.waitFor(), said);
        assertTrue(said.startsWith("0 status requests"), said);
        assertTrue(System.nanoTime() - beganNs >= 250_000_000L, "it tries for as long as it may: " + said);
    }

    /** Daemons, watchdogs and hostile programs of root would go on for ever, some of them with a real-time priority. */
    @Test
    void shouldLeaveNothingBehindWhenItIsEndedByASignal() throws Exception {
        final List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElseThrow()));
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream().filter(argument ->
            argument.startsWith("--add-") || argument.startsWith("-Dgpuseg.") || argument.startsWith("--enable-native")
            || argument.startsWith("--sun-misc")).forEach(command::add);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Gpuseg.class.getName(), "faults",
            "--hostile", "--rounds", "1000", "--seed", "1", "--watchdog-period", LIMIT_MS + "ms"));
        final Process faults = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        try {
            // virtual GPU, daemon, watchdog, three clients: the campaign is on its way
            SystemRig.await("the campaign", 120_000, () -> faults.descendants().count() >= 6 || !faults.isAlive());
            assertTrue(faults.isAlive(), "it ended by itself");
            final List<ProcessHandle> before = faults.descendants().toList();
            faults.destroy();   // SIGTERM; a process that a shell starts in the background ignores SIGINT
            assertTrue(faults.waitFor(120, TimeUnit.SECONDS), "it does not end");
            SystemRig.await("the end of what it had started", 120_000, () ->
                before.stream().noneMatch(ProcessHandle::isAlive));
        } finally {
            faults.descendants().forEach(ProcessHandle::destroyForcibly);
            faults.destroyForcibly();
        }
    }

    @Test
    void shouldSurviveEveryAttackOnceAndLoseNoDaemon() throws Exception {
        Attempts.of(3, FaultsTest::everyAttackOnce);
    }

    /** The honest client's figure depends on the machine as freezes do: it is there, and judged by the campaign. */
    private static String everyAttackOnce() throws Exception {
        final StringOutput attacks = StringOutput.of("faults", "--hostile", "--seed", "20261123", "--watchdog-period",
            LIMIT_MS + "ms", "--json");
        final JsonNode result = new ObjectMapper().readTree(attacks.out());
        assertEquals(0, result.path("lost").asLong(), attacks.text());
        assertEquals(0, result.path("hung").asLong(), attacks.text());
        assertEquals(0, result.path("daemons_exhausted").asLong(-1), attacks.text());
        assertEquals(Fault.attacks().size(), result.path("by_fault").size());
        if (result.path("longest_freeze_ms").asDouble() > LIMIT_MS) {
            return attacks.text();
        }
        assertEquals(result.path("injected").asInt(), result.path("survived").asInt(), attacks.text());
        for (final JsonNode attack : result.path("by_fault")) {
            assertTrue(attack.path("injected").asInt() == 1 || attack.has("skipped"), attacks.text());
        }
        if (ProcessStatus.effectiveUid() == 0) {
            assertTrue(result.path("innocent_segments").asLong() > 0, attacks.text());
            assertTrue(result.path("innocent_p99_ms").asDouble() > 0, attacks.text());
        }
        assertTrue(result.path("innocent_undisturbed_p99_ms").asDouble() > 0, attacks.text());
        return null;
    }

    /** What depends on the machine, freezes and the honest client's figure, is judged by the campaign. */
    @Test
    @Timeout(1200)
    void shouldSurviveManyAttacks() throws Exception {
        final StringOutput attacks = StringOutput.of("faults", "--hostile", "--rounds", Integer.toString(ATTACKS),
            "--seed", "20261123", "--watchdog-period", LIMIT_MS + "ms", "--json");
        final JsonNode result = new ObjectMapper().readTree(attacks.out());
        assertEquals(ATTACKS, result.path("rounds").asInt(), attacks.text());
        assertEquals(0, result.path("lost").asLong(), attacks.text());
        assertEquals(0, result.path("hung").asLong(), attacks.text());
        assertEquals(0, result.path("daemons_exhausted").asLong(-1), attacks.text());
        assertTrue(result.path("injected").asInt() > ATTACKS / 2 || ProcessStatus.effectiveUid() != 0, attacks.text());
    }

    @Test
    void shouldSurviveEveryFaultOnce() throws Exception {
        Attempts.of(3, FaultsTest::everyFaultOnce);
    }

    /** A period that a loaded test machine keeps, if it does not stall; what is lost or hangs does not depend on it. */
    private static String everyFaultOnce() throws Exception {
        final StringOutput faults = StringOutput.of("faults", "--rounds", Integer.toString(Fault.accidents().size()),
            "--seed", "20261121", "--watchdog-period", LIMIT_MS + "ms", "--json");
        final JsonNode result = new ObjectMapper().readTree(faults.out());
        final List<String> keys = new ArrayList<>();
        result.fieldNames().forEachRemaining(keys::add);
        assertEquals(List.of("rounds", "seed", "injected", "survived", "lost", "hung", "longest_freeze_ms", "by_fault",
            "daemons_started", "rounds_of_one_daemon_max", "descriptors_growth_max", "resident_growth_max_mib"), keys);
        assertEquals(0, result.path("lost").asLong(), faults.text());
        assertEquals(0, result.path("hung").asLong(), faults.text());
        if (result.path("longest_freeze_ms").asDouble() > LIMIT_MS) {
            return faults.text();
        }
        assertEquals(ExitCode.OK, faults.status(), faults.text());
        assertEquals(20261121, result.path("seed").asLong());
        assertEquals(Fault.accidents().size(), result.path("rounds").asInt());
        assertEquals(Fault.accidents().size(), result.path("by_fault").size());
        assertEquals(result.path("injected").asInt(), result.path("survived").asInt(), faults.text());
        for (final JsonNode fault : result.path("by_fault")) {
            assertTrue(fault.path("injected").asInt() == 1 || fault.has("skipped"), faults.text());
        }
        assertTrue(result.path("longest_freeze_ms").asDouble() > 0, "something was disabled when a fault struck");
        return null;
    }

    @Test
    void shouldFailWhenNobodyReleasesWhatAStoppedDaemonHolds() throws Exception {
        // seed 3: the daemon is stopped while something is held
        final StringOutput faults = StringOutput.of("faults", "--rounds", "1", "--seed", "3", "--fault", "stop-daemon",
            "--watchdog-period", "0s", "--json");
        assertEquals(ExitCode.FAILURE, faults.status(), faults.text());
        final JsonNode result = new ObjectMapper().readTree(faults.out());
        assertTrue(result.path("longest_freeze_ms").asDouble() > 100, faults.text());
    }
}

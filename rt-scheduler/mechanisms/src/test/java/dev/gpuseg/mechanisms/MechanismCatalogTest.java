/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.NativeTool;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.gate.GateMechanism;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class MechanismCatalogTest {
    @TempDir
    private Path directory;

    private MechanismSetup setup(final int gpu) {
        return new MechanismSetup(RuntimeDirectory.resolve(directory.toString()), gpu, Protection.DEFAULTS);
    }

    private static MechanismDescription.Builder gate(final String name, final int id, final int level) {
        return MechanismDescription.row(name, id, level).text("a", "b").testedOn("c")
            .survey(where -> new MechanismVerdict(true, Capabilities.GATE, "d"));
    }

    @Test
    void shouldRefuseAnUnknownNameAndListThoseThatExist() {
        final String refusal =
            assertThrows(MechanismException.class, () -> MechanismCatalog.get("teleport")).getMessage();
        for (final MechanismDescription row : MechanismCatalog.all()) {
            assertTrue(refusal.contains(row.name()), refusal);
        }
        assertTrue(MechanismCatalog.find("teleport").isEmpty());
        assertTrue(MechanismCatalog.names().endsWith(" gate or observe"), MechanismCatalog.names());
    }

    @Test
    void shouldRefuseToOpenMoreGpusThanTheMechanismDrives() {
        final String refusal = assertThrows(MechanismException.class,
            () -> MechanismCatalog.get("sim").open(setup(1))).getMessage();
        assertTrue(refusal.contains("GPU 1") && refusal.contains("\"sim\"") && refusal.contains("--gpus 1"), refusal);
    }

    @Test
    void shouldRefuseToOpenWhatDoesNotWorkHereAndNameTheNextLowerLevel() {
        final String refusal = assertThrows(MechanismException.class,
            () -> MechanismCatalog.get("sim").open(setup(0))).getMessage();
        assertTrue(refusal.contains("`gpuseg run --virtual-gpu` starts one"), refusal);
        assertTrue(refusal.contains("mechanism \"sim\"") && refusal.contains("gpuseg-vgpu --dir " + directory)
            && refusal.contains("--mechanism gate"), refusal);
    }

    @Test
    void shouldRefuseARowThatDisagreesWithItsMechanism() {
        final String name = assertThrows(IllegalStateException.class, () -> gate("door", Abi.MECHANISM_GATE,
            Capabilities.GATE).opens(s -> new GateMechanism()).open(setup(0))).getMessage();
        assertTrue(name.contains("\"gate\"") && name.contains("\"door\""), name);
        assertThrows(IllegalStateException.class, () -> gate("gate", Abi.MECHANISM_SIM,
            Capabilities.GATE).opens(s -> new GateMechanism()).open(setup(0)));
        assertThrows(IllegalStateException.class, () -> gate("gate", Abi.MECHANISM_GATE,
            Capabilities.OBSERVE).opens(s -> new GateMechanism()).open(setup(0)));
    }

    @Test
    void shouldRefuseARowThatLeavesSomethingOut() {
        assertThrows(NullPointerException.class, () -> MechanismDescription.row("x", 0, 0).text("a", "b")
            .testedOn("c").opens(s -> new GateMechanism()), "no survey");
        assertThrows(NullPointerException.class, () -> gate("x", 0, 0).text("a", null)
            .opens(s -> new GateMechanism()), "no consequence");
    }

    @Test
    void shouldOpenWhatWorksOnAnyMachine() {
        for (final String name : List.of("gate", "observe")) {
            try (Mechanism opened = MechanismCatalog.get(name).open(setup(0))) {
                assertEquals(name, opened.name());
                assertEquals(MechanismCatalog.get(name).level(), opened.capabilities().level());
            }
        }
    }

    @Test
    void shouldHaveOneRowForEveryMechanismOfTheBinaryInterface() throws Exception {
        final Set<Integer> ids = new HashSet<>();
        for (final Field field : Abi.class.getFields()) {
            if (field.getName().matches("MECHANISM_[A-Z]+") && field.getInt(null) != Abi.MECHANISM_NONE) {
                ids.add(field.getInt(null));
            }
        }
        final Set<String> names = new HashSet<>();
        for (final MechanismDescription row : MechanismCatalog.all()) {
            assertTrue(names.add(row.name()), row + " twice");
            if (row.id() != Abi.MECHANISM_NONE) {
                assertTrue(ids.remove(row.id()), row + ": id " + row.id() + " twice, or not in gpuseg_abi.h");
            }
        }
        assertEquals(Set.of(), ids, "no row for these");
    }

    @Test
    void shouldHaveARowInTheWatchdogsTableForEveryMechanismThatCanHoldAContext() throws Exception {
        final Path watchdog = NativeTool.root().resolve("rt-scheduler/native/build/gpuseg-watchdog");
        assumeTrue(Files.exists(watchdog), "gpuseg-watchdog is not built: make -C rt-scheduler/native");
        final Process holder = new ProcessBuilder("sleep", "60").start();
        final int pid = (int) holder.pid();
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve(Abi.HELD_NAME))) {
            for (final MechanismDescription row : MechanismCatalog.all()) {
                if (row.id() != Abi.MECHANISM_NONE) {
                    held.hold(row.id(), pid, ProcessStatus.startTicks(pid), 0, row.id(), System.nanoTime(),
                        new byte[0]);
                }
            }
            final Process release = new ProcessBuilder(watchdog.toString(), "--dir", directory.toString(), "--release",
                "--force").redirectErrorStream(true).start();
            final String text = new String(release.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            release.waitFor();
            for (final MechanismDescription row : MechanismCatalog.all()) {
                assertEquals(row.id() != Abi.MECHANISM_NONE,
                    text.contains("process " + pid + ", GPU 0 (" + row.name() + "): "), row + ": " + text);
            }
        } finally {
            holder.destroyForcibly().waitFor();
        }
    }

    @Test
    void shouldCalibrateTheGpuThatWorksAndNeverTheVirtualOneUnasked() {
        final MechanismVerdict yes = new MechanismVerdict(true, Capabilities.INTERRUPT, "here");
        final MechanismVerdict no = new MechanismVerdict(false, Capabilities.INTERRUPT, "missing");
        final Function<List<String>, List<MechanismCatalog.Surveyed>> machine = works -> MechanismCatalog.all().stream()
            .map(row -> new MechanismCatalog.Surveyed(row, works.contains(row.name()) ? yes : no)).toList();
        assertEquals("nvidia", MechanismCatalog.bestToCalibrate(machine.apply(List.of("nvidia", "amd", "sim", "gate")))
            .name());
        final String none = assertThrows(MechanismException.class,
            () -> MechanismCatalog.bestToCalibrate(machine.apply(List.of("sim", "gate", "observe")))).getMessage();
        assertTrue(none.endsWith("works here (`gpuseg doctor` says why); --mechanism sim measures the virtual GPU"),
            none);
        assertTrue(assertThrows(MechanismException.class, () -> MechanismCatalog.bestToCalibrate(
            machine.apply(List.of("amd")))).getMessage().contains("; --mechanism amd is experimental; "));
    }

    private static String best(final Function<MechanismDescription, MechanismVerdict> machine) {
        return MechanismCatalog.best(MechanismCatalog.all().stream()
            .map(row -> new MechanismCatalog.Surveyed(row, machine.apply(row))).toList()).mechanism().name();
    }

    @Test
    void shouldNeverChooseByItselfWhatIsSimulatedOrNeverRanOnHardware() {
        for (final MechanismDescription row : MechanismCatalog.all()) {
            assertFalse(row.automatic() && (row.simulated() || row.experimental()), row.name());
            assertFalse(row.summary().endsWith(".") || row.consequence().endsWith("."), row + ": helps add the stop");
        }
        assertTrue(MechanismCatalog.all().stream().anyMatch(r -> r.automatic()
            && r.survey(setup(0).directory()).usable()), "something must always work");
        final MechanismVerdict yes = new MechanismVerdict(true, 1, "works");
        final MechanismVerdict no = new MechanismVerdict(false, 1, "missing");
        assertEquals("nvidia", best(row -> yes));
        assertEquals("sim", best(row -> row.name().equals("nvidia") ? no : yes), "one runs in the directory");
        assertEquals("gate", best(row -> row.automatic() && row.level() < Capabilities.INTERRUPT
            || row.experimental() ? yes : no), "what never ran on its hardware is not chosen");
    }

    @Test
    void shouldSurveyEveryMechanismInTheOrderOfPreference() {
        final List<MechanismCatalog.Surveyed> found = MechanismCatalog.survey(setup(0).directory());
        assertEquals(MechanismCatalog.all(), found.stream().map(MechanismCatalog.Surveyed::mechanism).toList());
        for (int i = 1; i < found.size(); i++) {
            assertTrue(found.get(i - 1).mechanism().level() >= found.get(i).mechanism().level(), "best first");
        }
        for (final MechanismCatalog.Surveyed s : found) {
            assertFalse(s.verdict().reason().isEmpty() || s.verdict().reason().contains("\n"), s.toString());
            assertTrue(s.verdict().level() <= s.mechanism().level(), s.toString());
        }
    }
}

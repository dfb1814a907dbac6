/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.MechanismSetup;
import dev.gpuseg.mechanisms.Protection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Against the stand-in of nvgpu; no board. */
@Timeout(300)
class TegraMechanismTest {
    private static final ContextRef[] NONE = new ContextRef[0];
    private static final long QUIET_MS = 60;
    private static final long LIVELY_MS = 30_000;
    @TempDir
    private Path directory;
    private TegraRig rig;
    private TegraMechanism mechanism;

    @BeforeEach
    void start() throws Exception {
        rig = new TegraRig(directory);
        mechanism = new TegraMechanism(Protection.DEFAULTS);
    }

    @AfterEach
    void stop() throws Exception {
        if (mechanism != null) {
            mechanism.close();
            rig.close();
        }
    }

    private RuntimeDirectory where() {
        return RuntimeDirectory.resolve(directory.toString());
    }

    private ContextRef attached(final TegraRig.App app, final int id) throws Exception {
        final ContextRef context = app.context(id);
        mechanism.attach(context);
        TegraRig.await("TSGs of " + context, () -> mechanism.heldPayload(context).length > 0);
        return context;
    }

    private int disable(final ContextRef... contexts) {
        return mechanism.apply(contexts, contexts.length, NONE, 0);
    }

    private int enable(final ContextRef... contexts) {
        return mechanism.apply(NONE, 0, contexts, contexts.length);
    }

    @Test
    void shouldDisableAndEnableEveryTsgOfAProcess() throws Exception {
        final TegraRig.App app = rig.start(3);
        final ContextRef c = attached(app, 1);
        assertTrue(app.advances(LIVELY_MS));
        assertEquals(0, disable(c));
        assertEquals(ContextRef.SwitchResult.DONE, c.result());
        assertEquals(3, rig.disables());
        assertEquals(3, rig.preempts(), "a kernel that runs must be switched out");
        Thread.sleep(5);
        assertFalse(app.advances(QUIET_MS), "works while disabled");
        assertEquals(0, disable(c), "disabling twice is harmless");
        assertEquals(3, rig.disables());
        assertEquals(0, enable(c));
        assertEquals(3, rig.enables());
        assertTrue(app.advances(LIVELY_MS));
    }

    @Test
    void shouldSwitchOneProcessAndLeaveTheOtherAlone() throws Exception {
        final TegraRig.App app = rig.start(1);
        final TegraRig.App other = rig.start(1);
        final ContextRef c = attached(app, 1);
        final ContextRef d = attached(other, 2);
        assertEquals(0, mechanism.apply(new ContextRef[] {c}, 1, new ContextRef[] {d}, 1));
        Thread.sleep(5);
        assertFalse(app.advances(QUIET_MS));
        assertTrue(other.advances(LIVELY_MS));
    }

    @Test
    void shouldTellOfTsgsOpenedLaterAndSwitchThemToo() throws Exception {
        final TegraRig.App app = rig.start(1);
        final ContextRef c = attached(app, 1);
        TegraRig.await("the mechanism tells of the first", mechanism::changed);   // a little after the payload is there
        assertFalse(mechanism.changed());
        final int before = mechanism.heldPayload(c).length;
        app.page.putInt(12, 1);
        TegraRig.await("the mechanism tells", mechanism::changed);
        assertEquals(before + Integer.BYTES, mechanism.heldPayload(c).length);
        assertEquals(0, disable(c));
        assertEquals(2, rig.disables());
    }

    @Test
    void shouldCallAProcessWithoutTsgsAbsent() {
        final ContextRef self =
            new ContextRef(1, 0, ProcessStatus.pid(), ProcessStatus.startTicks(ProcessStatus.pid()), "self");
        mechanism.attach(self);
        assertEquals(0, disable(self));
        assertEquals(ContextRef.SwitchResult.ABSENT, self.result());
        assertEquals(0, mechanism.heldPayload(self).length);
        mechanism.detach(self);
    }

    @Test
    void shouldReleaseAProcessThatIsKilledWhileDisabled() throws Exception {
        final TegraRig.App victim = rig.start(2);
        final ContextRef c = attached(victim, 1);
        assertEquals(0, disable(c));
        victim.process.destroyForcibly().waitFor();
        TegraRig.await("its descriptors are let go", () -> mechanism.heldPayload(c).length == 0);
        assertEquals(0, enable(c));
        assertEquals(ContextRef.SwitchResult.ABSENT, c.result());
    }

    @Test
    void shouldNotTouchAProcessThatGotThePidOfADeadOne() throws Exception {
        final TegraRig.App app = rig.start(1);
        final ContextRef reused = new ContextRef(1, 0, app.pid(), ProcessStatus.startTicks(app.pid()) - 1, "gone");
        mechanism.attach(reused);
        Thread.sleep(QUIET_MS);
        assertEquals(0, disable(reused));
        assertEquals(ContextRef.SwitchResult.ABSENT, reused.result());
        assertEquals(0, rig.disables());
    }

    @Test
    void shouldLeaveNothingDisabledWhenTheDriverRefusesAndNameTheError() throws Exception {
        final TegraRig.App app = rig.start(1);
        final ContextRef c = attached(app, 1);
        rig.fail(1);
        assertEquals(1, disable(c));
        assertEquals(ContextRef.SwitchResult.FAILED, c.result());
        assertTrue(mechanism.lastError().contains("errno 5"), mechanism.lastError());
        assertTrue(app.advances(LIVELY_MS));
        assertEquals(0, disable(c));
        Thread.sleep(5);
        assertFalse(app.advances(QUIET_MS));
    }

    @Test
    void shouldSetAndRestoreTheTimeslice() throws Exception {
        final TegraRig.App app = rig.start(1);
        final ContextRef c = attached(app, 1);
        final TegraProcess p = (TegraProcess) c.attachment();
        assertTrue(mechanism.setTimeslice(c, 5_000_000));
        assertEquals(5_000, p.tsgs().get(0).timesliceUs());
        assertTrue(mechanism.setTimeslice(c, 2_000_000));
        assertFalse(mechanism.setTimeslice(c, 500_000), "nvgpu takes no less than 1 ms");
        assertTrue(mechanism.lastError().contains("500 us"), mechanism.lastError());
        assertTrue(mechanism.setTimeslice(c, 0));
        assertEquals(1_024, p.tsgs().get(0).timesliceUs());
        assertTrue(mechanism.setTimeslice(c, 5_000_000));
        app.process.destroyForcibly().waitFor();
        TegraRig.await("its end is known", () -> p.tsgs().isEmpty());
        assertFalse(mechanism.setTimeslice(c, 5_000_000), "there is nothing to set it on");
        assertTrue(mechanism.setTimeslice(c, 0), "nor anything to give back");
    }

    @Test
    void shouldEnableAProcessWhenItIsDetached() throws Exception {
        final TegraRig.App app = rig.start(2);
        final ContextRef c = attached(app, 1);
        assertEquals(0, disable(c));
        mechanism.detach(c);
        assertTrue(app.advances(LIVELY_MS));
    }

    @Test
    void shouldAnnounceProcessesThatNobodyAttachedAndNeverTheProtectedOnes() throws Exception {
        final Path xorg = directory.resolve("Xorg");
        Files.copy(TegraRig.build().resolve("gpuseg-tegra-app"), xorg);
        final TegraRig.App display = rig.start(1, xorg);
        final TegraRig.App early = rig.start(1);
        final TegraRig.App managed = rig.start(1);
        attached(managed, 1);
        final List<Integer> found = new CopyOnWriteArrayList<>();
        mechanism.processListener((pid, ticks, name) -> found.add(pid));
        TegraRig.await("the running one is announced", () -> found.contains(early.pid()));
        final TegraRig.App late = rig.start(1);
        TegraRig.await("the new one is announced", () -> found.contains(late.pid()));
        assertEquals(List.of(early.pid(), late.pid()), new ArrayList<>(found));
        assertFalse(found.contains(display.pid()));
    }

    @Test
    void shouldNeverAnnounceProgramsThatTheAdministratorProtects() throws Exception {
        mechanism.close();
        final Path camera = Files.copy(TegraRig.build().resolve("gpuseg-tegra-app"), directory.resolve("camera"));
        final TegraRig.App spared = rig.start(1, camera);
        final TegraRig.App other = rig.start(1);
        final List<Integer> found = new CopyOnWriteArrayList<>();
        try (Mechanism made = MechanismCatalog.get("tegra").open(new MechanismSetup(where(), 0,
            new Protection(Set.of("camera"), false)))) {
            made.processListener((pid, ticks, name) -> found.add(pid));
            TegraRig.await("the other one is announced", () -> found.contains(other.pid()));
            final TegraRig.App late = rig.start(1);   // a later scan lists all three
            TegraRig.await("the late one is announced", () -> found.contains(late.pid()));
        }
        assertFalse(found.contains(spared.pid()), "a protected program is announced");
    }

    @Test
    void shouldLeaveDisabledContextsToTheWatchdogWhenTheDaemonDies() throws Exception {
        final TegraRig.App app = rig.start(2);
        final ContextRef c = attached(app, 1);
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve(Abi.HELD_NAME))) {
            held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), 0, 1, System.nanoTime(), mechanism.heldPayload(c));
            disable(c);
            mechanism.close();   // descriptors gone, as after a kill
            Thread.sleep(5);
            assertFalse(app.advances(QUIET_MS), "the disabled state must outlive its maker");
            release();
            assertTrue(app.advances(LIVELY_MS));
            assertEquals(0, held.count());
        }
    }

    /** As the watchdog does. */
    private void release() throws Exception {
        final Process release = rig.withDevice(TegraRig.build().resolve("gpuseg-watchdog").toString(), "--dir",
            directory.toString(), "--release", "--force").inheritIO().start();
        assertTrue(release.waitFor(TegraRig.LIMIT_MS, TimeUnit.MILLISECONDS));
        assertEquals(0, release.exitValue());
    }

    @Test
    void shouldDisableAgainWhatTheWatchdogReleased() throws Exception {
        final TegraRig.App app = rig.start(2);
        final ContextRef c = attached(app, 1);
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve(Abi.HELD_NAME))) {
            held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), 0, 1, System.nanoTime(), mechanism.heldPayload(c));
            assertEquals(0, disable(c));
            release();
            assertTrue(app.advances(LIVELY_MS));
            mechanism.released();
            assertEquals(0, disable(c));
            assertEquals(4, rig.disables());
            Thread.sleep(5);
            assertFalse(app.advances(QUIET_MS), "works while disabled");
            assertEquals(0, enable(c));
        }
    }

    @Test
    void shouldRefuseToStartWithoutADeviceOrWithASecondGpu() {
        assertTrue(TegraSurvey.verdict().usable(), TegraSurvey.verdict().reason());
        final MechanismDescription row = MechanismCatalog.get("tegra");
        final String second = assertThrows(MechanismException.class,
            () -> row.open(new MechanismSetup(where(), 1, Protection.DEFAULTS))).getMessage();
        assertTrue(second.contains("GPU 1") && second.contains("--gpus 1"), second);
        TegraCalls.DRIVER.use("c");
        assumeTrue(!Files.exists(Path.of(TegraDevice.PATH)), "this machine has nvgpu");
        final String text = assertThrows(MechanismException.class,
            () -> new TegraMechanism(Protection.DEFAULTS)).getMessage();
        assertTrue(text.contains(TegraDevice.PATH) && text.contains("--mechanism gate"), text);
        assertFalse(TegraSurvey.verdict().usable());
        rig.use();
    }
}

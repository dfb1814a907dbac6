/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.amd.AmdRig.App;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every interface against the stand-in of KFD; no AMD hardware. */
@Timeout(600)
class AmdMechanismTest {
    private static final ContextRef[] NONE = new ContextRef[0];
    private static final int PATIENT_MS = 60_000;
    private static final int USR1 = 10;

    @TempDir
    private Path directory;
    private AmdRig rig;
    private AmdMechanism mechanism;

    @BeforeEach
    void start() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "tracing other processes needs root here");
        rig = new AmdRig(directory);
        System.setProperty(AgentControl.ANSWER_PROPERTY, "20000");   // a loaded machine is no error here
    }

    @AfterEach
    void stop() {
        System.clearProperty(AgentControl.ANSWER_PROPERTY);
        if (rig == null) {
            return;
        }
        if (mechanism != null) {
            mechanism.close();
        }
        rig.close();
        assertEquals(0, rig.table.getInt(AmdRig.FOREIGN), "an ioctl that is not in the table reached the driver");
    }

    private void use(final ControlInterface by) {
        mechanism = rig.mechanism(by, PATIENT_MS);
        assertEquals(by, mechanism.controlInterface());
    }

    private ContextRef attached(final App app, final int id) {
        final ContextRef context = app.context(id);
        mechanism.attach(context);
        return context;
    }

    private int disable(final ContextRef... contexts) {
        return mechanism.apply(contexts, contexts.length, NONE, 0);
    }

    private int enable(final ContextRef... contexts) {
        return mechanism.apply(NONE, 0, contexts, contexts.length);
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldDisableAndEnableAProcess(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(3);
        final App other = rig.start(1);
        final ContextRef c = attached(app, 1);
        app.mustAdvance("before");
        assertEquals(0, disable(c), mechanism.lastError());
        assertEquals(ContextRef.SwitchResult.DONE, c.result());
        assertTrue(app.standsStill());
        other.mustAdvance("untouched");
        assertEquals(0, disable(c), "disabling twice is harmless");
        assertEquals(0, enable(c));
        app.mustAdvance("again");
        assertEquals(0, enable(c), "enabling twice is harmless");
        assertEquals(0, disable(c));
        assertTrue(app.standsStill());
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldChangeOneForTheOther(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(1);
        final App other = rig.start(2);
        final ContextRef c = attached(app, 1);
        final ContextRef d = attached(other, 2);
        assertEquals(0, mechanism.apply(new ContextRef[] {c}, 1, new ContextRef[] {d}, 1));
        assertTrue(app.standsStill());
        other.mustAdvance("while the first is disabled");
        assertEquals(0, mechanism.apply(new ContextRef[] {d}, 1, new ContextRef[] {c}, 1));
        assertTrue(other.standsStill());
        app.mustAdvance("while the second is disabled");
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldEnableAProcessWhenItIsDetachedAndAllOnClose(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(2);
        final App other = rig.start(1);
        final ContextRef c = attached(app, 1);
        assertEquals(0, disable(c, attached(other, 2)));
        assertTrue(app.standsStill());
        mechanism.detach(c);
        app.mustAdvance("detached");
        assertTrue(other.standsStill());
        mechanism.close();
        mechanism = null;
        other.mustAdvance("after the stop");
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldReleaseAProcessThatIsKilledWhileDisabled(final ControlInterface by) throws Exception {
        use(by);
        final App victim = rig.start(2);
        final App other = rig.start(1);
        final ContextRef c = attached(victim, 1);
        final ContextRef d = attached(other, 2);
        assertEquals(0, disable(c, d));
        victim.kill();
        assertEquals(0, mechanism.apply(NONE, 0, new ContextRef[] {c, d}, 2));
        assertEquals(ContextRef.SwitchResult.ABSENT, c.result());
        other.mustAdvance("beside a dead one");
        mechanism.detach(c);
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldNotTouchAProcessThatGotThePidOfADeadOne(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(1);
        final ContextRef reused = new ContextRef(1, 0, app.pid(), ProcessStatus.startTicks(app.pid()) - 1, "gone");
        mechanism.attach(reused);
        assertEquals(0, disable(reused));
        assertEquals(ContextRef.SwitchResult.ABSENT, reused.result());
        app.mustAdvance("untouched");
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldNameTheErrorOfTheDriverAndSucceedTheNextTime(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(1);
        final ContextRef c = attached(app, 1);
        rig.table.putInt(AmdRig.FAIL, 1);
        assertEquals(1, disable(c));
        assertEquals(ContextRef.SwitchResult.FAILED, c.result());
        assertTrue(mechanism.lastError().contains("errno 5") && mechanism.lastError().contains(by.label()),
            mechanism.lastError());
        assertEquals(0, disable(c));
        assertTrue(app.standsStill());
        assertEquals(0, enable(c));
        app.mustAdvance("again");
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldDisableQueuesThatAreMadeWhileTheProcessIsDisabled(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(1);
        final ContextRef c = attached(app, 1);
        assertEquals(0, disable(c));
        app.more();
        assertTrue(app.standsStill());
        assertEquals(0, enable(c));
        app.mustAdvance("with both queues");
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldEnableWhatAHungDaemonHoldsWhenTheWatchdogAsks(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(2);
        final ContextRef c = attached(app, 1);
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve(Abi.HELD_NAME))) {
            held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), 0, 1, System.nanoTime(), mechanism.heldPayload(c));
            assertEquals(0, disable(c));
            assertTrue(app.standsStill());
            final ProcessBuilder builder = new ProcessBuilder(AmdRig.BUILD.resolve("gpuseg-watchdog").toString(),
                "--dir", directory.toString(), "--release", "--force").inheritIO();
            rig.environment(builder.environment());
            final Process release = builder.start();
            assertTrue(release.waitFor(AmdRig.LIMIT_MS, TimeUnit.MILLISECONDS));
            assertEquals(0, release.exitValue());
            app.mustAdvance("after the watchdog");
            assertEquals(0, held.count());
        }
        if (by != ControlInterface.KFD) {
            assertTrue(mechanism.changed(), "the enforcer must apply its state again");
        }
        assertEquals(0, disable(c));
        assertTrue(app.standsStill());
    }

    @ParameterizedTest
    @EnumSource(value = ControlInterface.class, names = "KFD", mode = EnumSource.Mode.EXCLUDE)
    void shouldPassSignalsOnToWhatItTraces(final ControlInterface by) throws Exception {
        use(by);
        final App app = rig.start(1);
        assertEquals(0, disable(attached(app, 1)));
        for (int i = 1; i <= 3; i++) {
            final int wanted = i;
            ProcessStatus.signal(app.pid(), USR1);
            AmdRig.await("signal " + i, () -> app.signals() == wanted);
        }
        assertTrue(app.standsStill());
    }

    /** What holds after any history: every process works once all are enabled. */
    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldKeepItsBooksThroughRandomHistories(final ControlInterface by) throws Exception {
        use(by);
        final Random random = new Random(20 + by.ordinal());
        final List<App> apps = new ArrayList<>();
        final List<ContextRef> contexts = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            apps.add(rig.start(1 + i));
            contexts.add(attached(apps.get(i), i));
        }
        for (int step = 0; step < 200; step++) {
            final int i = random.nextInt(apps.size());
            switch (random.nextInt(8)) {
                case 0 -> {
                    if (rig.table.getInt(AmdRig.FAIL) == 0) {
                        rig.table.putInt(AmdRig.FAIL, 1);
                    }
                }
                case 1 -> {
                    if (random.nextInt(4) == 0) {
                        apps.get(i).kill();
                        mechanism.detach(contexts.get(i));
                        apps.set(i, rig.start(1 + random.nextInt(3)));
                        contexts.set(i, attached(apps.get(i), i));
                    }
                }
                case 2, 3 -> enable(contexts.get(i));
                case 4 -> mechanism.changed();
                case 5 -> disable(contexts.toArray(ContextRef[]::new));
                default -> disable(contexts.get(i));
            }
        }
        rig.table.putInt(AmdRig.FAIL, 0);
        final ContextRef[] all = contexts.toArray(ContextRef[]::new);
        assertEquals(0, disable(all), mechanism.lastError());
        for (final App app : apps) {
            assertTrue(app.standsStill());
        }
        assertEquals(0, enable(all), mechanism.lastError());
        for (final App app : apps) {
            app.mustAdvance("at the end");
        }
        assertEquals(rig.table.getInt(AmdRig.HOLDS) > 0, by == ControlInterface.KFD);
        assertEquals(rig.table.getInt(AmdRig.DEACTIVATED) > 0, by == ControlInterface.AGENT);
    }

    @Test
    void shouldHoldAProcessBeforeItHasAQueue() throws Exception {
        use(ControlInterface.KFD);
        final App app = rig.start(0);
        final ContextRef c = attached(app, 1);
        app.mustAdvance("without queues");
        assertEquals(0, disable(c));
        assertEquals(ContextRef.SwitchResult.DONE, c.result());
        app.more();
        assertTrue(app.standsStill(), "its first queue starts held");
    }

    @ParameterizedTest
    @EnumSource(value = ControlInterface.class, names = "KFD", mode = EnumSource.Mode.EXCLUDE)
    void shouldCallAProcessWithoutQueuesAbsent(final ControlInterface by) throws Exception {
        use(by);
        final ContextRef c = attached(rig.start(0), 1);
        assertEquals(0, disable(c));
        assertEquals(ContextRef.SwitchResult.ABSENT, c.result());
    }

    @Test
    void shouldDisableABatchOfProcessesInOneChange() throws Exception {
        use(ControlInterface.KFD);
        final ContextRef c = attached(rig.start(1), 1);
        final ContextRef d = attached(rig.start(3), 2);
        final int before = rig.table.getInt(AmdRig.APPLIES);
        assertEquals(0, disable(c, d));
        assertEquals(before + 1, rig.table.getInt(AmdRig.APPLIES), "in mode HWS every call remaps the whole GPU");
        assertEquals(64, mechanism.capabilities().batchMax());
    }

    @Test
    void shouldLoseItsHoldsToTheKernelsWatchdogAndSaySo() throws Exception {
        mechanism = rig.mechanism(ControlInterface.KFD, 50);
        final App app = rig.start(1);
        final ContextRef c = attached(app, 1);
        disable(c);
        app.mustAdvance("once the watchdog is not re-armed any more");   // bounded: only the watchdog enables it
        assertTrue(mechanism.changed(), "the enforcer must apply its state again");
        assertEquals(0, disable(c), "armed again");
    }

    @Test
    void shouldKeepItsHoldsAliveByTheEnforcersVisits() throws Exception {
        mechanism = rig.mechanism(ControlInterface.KFD, 5_000);
        final App app = rig.start(1);
        assertEquals(0, disable(attached(app, 1)));
        final int before = rig.table.getInt(AmdRig.KICKS);
        AmdRig.await("kicks", () -> {
            mechanism.changed();
            return rig.table.getInt(AmdRig.KICKS) >= before + 2;
        });
        assertTrue(app.standsStill());
    }

    @Test
    void shouldLeaveCopiesAloneUnlessAllEnginesAreAskedFor() throws Exception {
        use(ControlInterface.KFD);
        final App app = rig.start(1, AmdRig.GPU_ID, "copies", AmdRig.BUILD.resolve("gpuseg-amd-app"));
        final ContextRef c = attached(app, 1);
        assertEquals(1, ((AmdProcess) c.attachment()).queues().size());
        mechanism.close();
        mechanism = new AmdMechanism(0, new Protection(Set.of(), true), rig.sysfs(), ControlInterface.KFD,
            PATIENT_MS);
        assertEquals(2, ((AmdProcess) attachment(app)).queues().size());
    }

    private Object attachment(final App app) {
        return attached(app, 2).attachment();
    }

    @Test
    void shouldAnnounceProcessesThatNobodyAttachedAndNeverTheProtectedOnes() throws Exception {
        use(ControlInterface.KFD);
        final Path xorg = directory.resolve("Xorg");
        Files.copy(AmdRig.BUILD.resolve("gpuseg-amd-app"), xorg);
        final App display = rig.start(1, AmdRig.GPU_ID, "compute", xorg);
        final App early = rig.start(1);
        attached(rig.start(1), 1);
        final List<Integer> found = new CopyOnWriteArrayList<>();
        mechanism.processListener((pid, ticks, name) -> found.add(pid));
        AmdRig.await("the running one is announced", () -> found.contains(early.pid()));
        final App late = rig.start(1);
        AmdRig.await("the new one is announced", () -> found.contains(late.pid()));
        assertEquals(List.of(early.pid(), late.pid()), new ArrayList<>(found));
        assertFalse(found.contains(display.pid()));
    }

    @Test
    void shouldLeaveTheOtherGpusQueuesAlone() throws Exception {
        final int second = 815;
        rig.gpu(2, second, AmdRig.GFX_90A);
        use(ControlInterface.KFD);
        final App app = rig.start(1, second, "compute", AmdRig.BUILD.resolve("gpuseg-amd-app"));
        final ContextRef c = attached(app, 1);
        assertEquals(0, disable(c));
        app.mustAdvance("on the other GPU");
    }
}

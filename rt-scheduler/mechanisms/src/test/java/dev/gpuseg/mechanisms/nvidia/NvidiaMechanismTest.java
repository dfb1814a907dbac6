/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.Protection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class NvidiaMechanismTest {
    private static final ContextRef[] NONE = new ContextRef[0];
    private static final long QUIET_MS = 60;
    private static final long LIVELY_MS = 30_000;
    @TempDir
    private Path directory;
    private RmRig rig;
    private NvidiaMechanism mechanism;

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory);
        mechanism = new NvidiaMechanism(0, Protection.DEFAULTS);
    }

    @AfterEach
    void stop() throws Exception {
        mechanism.close();
        final JsonNode stats = rig.stats();
        rig.close();
        assertEquals(0, stats.get("foreign_commands").asInt(), "a command outside the whitelist reached the driver");
        assertEquals(0, stats.get("ran_while_disabled").asInt());
    }

    private ContextRef attached(final RmRig.App app, final int id) throws Exception {
        final ContextRef context = app.context(id);
        mechanism.attach(context);
        RmRig.await("channels of " + context, () -> mechanism.heldPayload(context).length > 0);
        return context;
    }

    private int disable(final ContextRef... contexts) {
        return mechanism.apply(contexts, contexts.length, NONE, 0);
    }

    private int enable(final ContextRef... contexts) {
        return mechanism.apply(NONE, 0, contexts, contexts.length);
    }

    @Test
    void shouldPractiseWithoutReachingTheDriver() throws Exception {
        final RmRig.App app = rig.start();
        attached(app, 1);
        final int before = rig.stats().get("disables").asInt();
        final ContextRef made = new ContextRef(1, 0, app.context(1).pid(), 0, "made up");
        final ContextRef[] all = {made};
        try (Mechanism rehearsal = mechanism.rehearsal()) {
            rehearsal.attach(made);
            assertTrue(rehearsal.heldPayload(made).length > RmContext.HELD_HEADER_BYTES);
            for (int i = 0; i < 10; i++) {
                assertEquals(0, rehearsal.apply(all, 1, NONE, 0));
                assertEquals(ContextRef.SwitchResult.DONE, made.result());
                assertEquals(0, rehearsal.apply(NONE, 0, all, 1));
            }
            rehearsal.detach(made);
        }
        assertTrue(RmRig.advances(app, LIVELY_MS));
        assertEquals(before, rig.stats().get("disables").asInt(), "practice reached the driver");
    }

    @Test
    void shouldFreezeAContextAndLetItGoOnWithRightResults() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        assertTrue(RmRig.advances(app, LIVELY_MS));
        assertEquals(0, disable(c));
        assertEquals(ContextRef.SwitchResult.DONE, c.result());
        assertTrue(c.doneNs() > c.beganNs());
        assertFalse(RmRig.advances(app, QUIET_MS), "works while disabled");
        assertEquals(0, disable(c), "disabling twice is harmless");
        assertEquals(0, enable(c));
        assertTrue(RmRig.advances(app, LIVELY_MS));
        assertEquals(0, app.wrong());
    }

    @Test
    void shouldNeedOneEnableHoweverOftenItDisabled() throws Exception {
        final RmRig.App app = rig.start();
        final RmRig.App other = rig.start();
        final ContextRef a = attached(app, 1);
        final ContextRef b = attached(other, 2);
        for (int i = 0; i < 5; i++) {
            assertEquals(0, disable(a, b));
        }
        assertEquals(16, rig.stats().get("disabled_channels").asInt());
        assertEquals(0, enable(a, b));
        assertEquals(0, rig.stats().get("disabled_channels").asInt(), "the driver counts disables");
        assertTrue(RmRig.advances(app, LIVELY_MS));
        assertTrue(RmRig.advances(other, LIVELY_MS));
    }

    private int count(final String what) {
        try {
            return rig.stats().get(what).asInt();
        } catch (final Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private int enables() {
        return count("enables");
    }

    @Test
    void shouldNotEnableAgainWhatItHasJustEnabled() throws Exception {
        final ContextRef a = attached(rig.start(), 1);
        final ContextRef b = attached(rig.start(), 2);
        final int before = enables();
        assertEquals(0, enable(a));
        assertTrue(enables() > before, "once for certain");
        final int once = enables();
        assertEquals(0, enable(a));
        assertEquals(ContextRef.SwitchResult.DONE, a.result());
        assertEquals(once, enables(), "enabled a moment ago");
        assertEquals(0, enable(a, b));
        final int both = enables();
        assertTrue(both > once, "the other one was not");
        assertEquals(0, disable(a));
        assertEquals(8, rig.stats().get("disabled_channels").asInt());
        assertEquals(0, enable(a, b));
        assertEquals(0, rig.stats().get("disabled_channels").asInt(), "it was disabled since");
        RmRig.await("it is enabled once more after a second", () -> enable(a) == 0 && enables() > both + 1);
    }

    @Test
    void shouldEnableAgainWhatMayStillBeDisabledAfterARefusal() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef a = attached(app, 1);
        assertEquals(0, enable(a));
        rig.inject(RmCommand.FIFO_DISABLE_CHANNELS, 2, RmStatus.INVALID_CHANNEL);   // the batch, and the single call
        disable(a);
        RmRig.await("channels of " + a, () -> mechanism.heldPayload(a).length > 0);
        final int before = enables();
        RmRig.await("nothing is left disabled", () -> enable(a) == 0
            && count("disabled_channels") == 0);
        assertTrue(enables() > before, "a refused disable may have disabled some");
        assertTrue(RmRig.advances(app, LIVELY_MS));
    }

    /** RM may have enabled some of a list that it refused, so none of them counts as disabled any more. */
    @Test
    void shouldDisableAgainWhatItTriedToEnable() throws Exception {
        final ContextRef a = attached(rig.start(), 1);
        assertEquals(0, disable(a));
        rig.inject(RmCommand.FIFO_DISABLE_CHANNELS, 2, RmStatus.INVALID_CLIENT);   // the batch, and the single call
        assertEquals(1, enable(a));
        assertEquals(ContextRef.SwitchResult.FAILED, a.result());
        final int before = count("disables");
        assertEquals(0, disable(a));
        assertTrue(count("disables") > before, "it believes that the channels are disabled");
        assertEquals(8, count("disabled_channels"));
        assertEquals(0, enable(a));
        assertEquals(0, count("disabled_channels"));
    }

    @Test
    void shouldLeaveNobodyDisabledTwiceWhenABatchFailsHalfway() throws Exception {
        final RmRig.App app = rig.start();
        final RmRig.App other = rig.start();
        final ContextRef a = attached(app, 1);
        final ContextRef b = attached(other, 2);
        rig.inject(RmCommand.FIFO_DISABLE_CHANNELS, 1, RmStatus.INVALID_CHANNEL);
        assertEquals(0, disable(a, b));
        assertEquals(16, rig.stats().get("disabled_channels").asInt());
        assertEquals(0, enable(a, b));
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
    }

    /** Also when the daemon stops: nobody examines the process again before that. */
    @Test
    void shouldEnableWhatIsLeftOfAContextWhenTheProcessHasFreedAChannel() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        assertEquals(0, disable(c));
        rig.inject(RmCommand.FIFO_DISABLE_CHANNELS, 3, RmStatus.INVALID_CHANNEL);   // all, all again, the first one
        assertEquals(0, enable(c));
        assertEquals(ContextRef.SwitchResult.DONE, c.result());
        assertEquals(1, rig.stats().get("disabled_channels").asInt(), "all but the one that is gone");
        enable(c);
    }

    @Test
    void shouldSwitchAllProcessesInOneCallWhileTheyFit() throws Exception {
        final ContextRef[] all = new ContextRef[3];
        for (int i = 0; i < all.length; i++) {
            all[i] = attached(rig.start(), i + 1);
        }
        assertEquals(0, disable(all));
        JsonNode stats = rig.stats();
        assertEquals(1, stats.get("disables").asInt());
        assertEquals(24, stats.get("largest_batch").asInt());
        assertEquals(24, stats.get("disabled_channels").asInt());
        assertEquals(0, mechanism.apply(new ContextRef[] {all[0]}, 1, new ContextRef[] {all[1], all[2]}, 2));
        stats = rig.stats();
        assertEquals(8, stats.get("disabled_channels").asInt());
        assertEquals(0, enable(all));
    }

    @Test
    void shouldUseSeveralCallsForMoreThan64Channels() throws Exception {
        final ContextRef[] all = new ContextRef[9];
        for (int i = 0; i < all.length; i++) {
            all[i] = attached(rig.start(), i + 1);
        }
        assertEquals(0, disable(all));
        final JsonNode stats = rig.stats();
        assertEquals(2, stats.get("disables").asInt());
        assertEquals(64, stats.get("largest_batch").asInt());
        assertEquals(72, stats.get("disabled_channels").asInt());
        assertEquals(0, enable(all));
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
    }

    @Test
    void shouldSwitchTheOthersWhenOneProcessOfABatchIsKilled() throws Exception {
        final RmRig.App victim = rig.start();
        final RmRig.App other = rig.start();
        final ContextRef gone = attached(victim, 1);
        final ContextRef stays = attached(other, 2);
        victim.process.destroyForcibly().waitFor();
        final int failed = disable(gone, stays);
        assertEquals(ContextRef.SwitchResult.DONE, stays.result());
        assertEquals(gone.result() == ContextRef.SwitchResult.FAILED ? 1 : 0, failed);
        assertFalse(RmRig.advances(other, QUIET_MS));
        RmRig.await("the dead one's client is let go", () -> clients() == 1);
        assertEquals(0, disable(gone, stays), "what is gone is no failure");
        assertEquals(ContextRef.SwitchResult.ABSENT, gone.result());
        assertEquals(0, enable(gone, stays));
        assertTrue(RmRig.advances(other, LIVELY_MS));
    }

    private int clients() {
        return count("clients");
    }

    @Test
    void shouldTellOfChannelsMadeLaterAndSwitchThemToo() throws Exception {
        final RmRig.App app = rig.start("again", false, RmRig.appProgram());
        final ContextRef c = attached(app, 1);
        while (mechanism.changed()) {
            Thread.sleep(1);
        }
        disable(c);
        app.makeSecondContext();
        RmRig.await("second context works", () -> app.kernelsOfSecondContext() > 2);
        // it may tell of the first context once more: what counts is what it consists of when it tells
        RmRig.await("the mechanism tells", () -> mechanism.changed() && mechanism.units(c) == 16 && disable(c) == 0);
        final long before = app.kernelsOfSecondContext();
        Thread.sleep(QUIET_MS);
        assertTrue(app.kernelsOfSecondContext() <= before + 1, "the second context works on");
        assertEquals(0, enable(c));
        RmRig.await("second context continues", () -> app.kernelsOfSecondContext() > before + 3);
    }

    @Test
    void shouldCallAProcessWithoutGpuWorkAbsent() {
        final ContextRef self = new ContextRef(1, 0, (int) ProcessHandle.current().pid(), 0, "self");
        mechanism.attach(self);
        assertEquals(0, disable(self));
        assertEquals(ContextRef.SwitchResult.ABSENT, self.result());
        assertEquals(0, mechanism.heldPayload(self).length);
        mechanism.detach(self);
    }

    @Test
    void shouldNameTheStatusWhenTheDriverRefuses() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        rig.inject(RmCommand.FIFO_DISABLE_CHANNELS, 11, RmStatus.NOT_SUPPORTED);   // batch, its undoing, once more
        assertEquals(1, disable(c));
        assertEquals(ContextRef.SwitchResult.FAILED, c.result());
        assertTrue(mechanism.lastError().contains("NV_ERR_NOT_SUPPORTED (0x56)"), mechanism.lastError());
        assertTrue(RmRig.advances(app, LIVELY_MS));
        RmRig.await("it works again", () -> disable(c) == 0);
        assertEquals(0, enable(c));
        final int before = enables();
        assertEquals(0, enable(c));
        assertTrue(enables() > before, "what could not be undone may be disabled still: nothing is left out for it");
    }

    @Test
    void shouldSetAndRestoreTheTimeslice() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        final RmContext.Tsg tsg;
        final RmProcess p = RmProcess.open(app.pid(), new GpuIndex(List.of()), Scope.COMPUTE, new RmControl());
        p.refresh(System.nanoTime(), ControlCloser.inPlace());
        tsg = p.context(0).tsgs().stream().filter(RmContext.Tsg::compute).findFirst().orElseThrow();
        final RmControl rm = new RmControl();
        assertEquals(2048, rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle()));
        assertTrue(mechanism.setTimeslice(c, 1_000_000_000L));
        assertEquals(1_000_000, rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle()));
        assertTrue(mechanism.setTimeslice(c, 500_000));
        assertEquals(500, rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle()));
        mechanism.detach(c);
        assertEquals(2048, rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle()));
        p.close();
    }

    @Test
    void shouldSetNoTimesliceTwice() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        assertTrue(mechanism.setTimeslice(c, 500_000));
        rig.inject(RmCommand.SET_TIMESLICE, 1, RmStatus.NOT_SUPPORTED);
        assertTrue(mechanism.setTimeslice(c, 500_000), "no call, which would have been refused");
        assertFalse(mechanism.setTimeslice(c, 1_000_000));
        assertTrue(mechanism.setTimeslice(c, 500_000), "what a refused call left is not known");
        assertTrue(mechanism.setTimeslice(c, 0));
        assertEquals(2048, rig.timesliceUs(app));
        assertTrue(mechanism.setTimeslice(c, 500_000));
        assertEquals(500, rig.timesliceUs(app), "it had its own meanwhile");
    }

    @Test
    void shouldHaveNoTimesliceToGiveBackOfAProcessThatHasEnded() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        assertTrue(mechanism.setTimeslice(c, 1_000_000));
        app.process.destroyForcibly().waitFor();
        RmRig.await("its end is known", () -> mechanism.units(c) == 0);
        assertFalse(mechanism.setTimeslice(c, 1_000_000), "there is nothing to set it on");
        assertTrue(mechanism.setTimeslice(c, 0));
    }

    @Test
    void shouldSayWhetherATimesliceIsGivenBack() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        assertTrue(mechanism.setTimeslice(c, 0), "it was not changed");
        assertTrue(mechanism.setTimeslice(c, 1_000_000));
        rig.inject(RmCommand.SET_TIMESLICE, 1, RmStatus.NOT_SUPPORTED);
        assertFalse(mechanism.setTimeslice(c, 0));
        assertTrue(mechanism.lastError().contains("2048 us was refused"), mechanism.lastError());
        assertEquals(1_000, rig.timesliceUs(app));
        assertTrue(mechanism.setTimeslice(c, 0));
        assertEquals(2048, rig.timesliceUs(app));
        assertTrue(mechanism.setTimeslice(c, 1_000_000));
        rig.inject(RmCommand.SET_TIMESLICE, 1, RmStatus.OBJECT_NOT_FOUND);
        assertTrue(mechanism.setTimeslice(c, 0), "the process has freed that channel group");
    }

    @Test
    void shouldAnnounceProcessesThatNobodyAttachedAndNeverTheProtectedOnes() throws Exception {
        final RmRig.App display = rig.startAs("Xorg");
        final RmRig.App early = rig.start();
        final List<Integer> found = new CopyOnWriteArrayList<>();
        mechanism.processListener((pid, ticks, name) -> found.add(pid));
        RmRig.await("the running one is announced", () -> found.contains(early.pid()));
        final RmRig.App late = rig.start();
        RmRig.await("the new one is announced", () -> found.contains(late.pid()));
        Thread.sleep(600);
        assertEquals(List.of(early.pid(), late.pid()), new ArrayList<>(found));
        assertFalse(found.contains(display.pid()));
        final ContextRef c = attached(late, 1);
        assertEquals(0, disable(c));
        assertTrue(RmRig.advances(display, LIVELY_MS));
        assertTrue(RmRig.advances(early, LIVELY_MS));
        enable(c);
    }

    @Test
    void shouldLeaveDisabledContextsToTheWatchdogWhenTheDaemonDies() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1);
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve(Abi.HELD_NAME))) {
            held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), 0, 1, System.nanoTime(), mechanism.heldPayload(c));
            disable(c);
            mechanism.close();   // descriptors gone, as after a kill
            assertFalse(RmRig.advances(app, QUIET_MS), "the disabled state must outlive its maker");
            assertEquals(0, rig.run("gpuseg-watchdog", "--dir", directory.toString(), "--release", "--force"));
            assertTrue(RmRig.advances(app, LIVELY_MS));
            assertEquals(0, held.count());
        }
        assertEquals(0, app.wrong());
        mechanism = new NvidiaMechanism(0, Protection.DEFAULTS);
    }

    private Path pipe(final String name) throws Exception {
        return Files.createDirectories(directory.resolve(name));
    }

    private RmRig.App server(final Path pipe) throws Exception {
        final RmRig.App server = rig.startWithPipe("", rig.programAs("nvidia-cuda-mps-server"), pipe);
        assertEquals(1, computeChannels(server));
        return server;
    }

    private RmRig.App client(final Path pipe) throws Exception {
        final RmRig.App client = rig.startWithPipe("", RmRig.appProgram(), pipe);
        assertEquals(2, computeChannels(client), "as on an H200");
        return client;
    }

    private int computeChannels(final RmRig.App app) throws Exception {
        for (final JsonNode tsg : rig.list(app.pid()).path("tsgs")) {
            if (tsg.path("gr0").asBoolean()) {
                return tsg.path("channels").asInt();
            }
        }
        throw new AssertionError("no compute work: " + rig.list(app.pid()));
    }

    @Test
    void shouldDisableMpsServerAndClientsForATaskThatIsNoClient() throws Exception {
        final RmRig.App server = server(pipe("mps"));
        final RmRig.App client = client(pipe("mps"));
        final RmRig.App outside = rig.start();
        mechanism.processListener((pid, ticks, name) -> { });
        final ContextRef s = attached(server, 1);
        final ContextRef c = attached(client, 2);
        final ContextRef task = attached(outside, 3);
        mechanism.registered(task, true);
        RmRig.await("the server is known", () -> !mechanism.remark(s).isEmpty());
        assertEquals(0, disable(s, c));
        assertFalse(RmRig.advances(server, QUIET_MS));
        assertFalse(RmRig.advances(client, QUIET_MS));
        assertTrue(RmRig.advances(outside, LIVELY_MS));
        assertEquals("MPS server: it is disabled for tasks that are not its clients", mechanism.remark(s));
        assertEquals("", mechanism.remark(c) + mechanism.remark(task));
        assertEquals(0, enable(s, c));
        assertTrue(RmRig.advances(server, LIVELY_MS));
        assertTrue(RmRig.advances(client, LIVELY_MS));
        assertEquals(0, server.wrong() + client.wrong());
    }

    @Test
    void shouldKeepMpsServerAndItsClientsOnWhileATaskIsItsClient() throws Exception {
        final RmRig.App server = server(pipe("mps"));
        final RmRig.App other = client(pipe("mps"));
        final RmRig.App unrelated = rig.start();
        final RmRig.App elsewhere = rig.startWithPipe("", RmRig.appProgram(), pipe("elsewhere"));
        mechanism.processListener((pid, ticks, name) -> { });
        final ContextRef s = attached(server, 1);
        final ContextRef o = attached(other, 2);
        final ContextRef u = attached(unrelated, 3);
        final ContextRef e = attached(elsewhere, 4);
        assertEquals(0, disable(s, o, u, e), "no process has a task");
        assertFalse(RmRig.advances(other, QUIET_MS));

        final RmRig.App task = client(pipe("mps"));
        final ContextRef t = attached(task, 5);
        assertFalse(RmRig.advances(task, QUIET_MS), "its server is disabled: it hangs, as it did on an H200");
        while (mechanism.changed()) {
            Thread.sleep(1);
        }
        mechanism.registered(t, true);
        for (final ContextRef stays : List.of(s, o, t)) {
            RmRig.await(stays + " stays enabled", () -> mechanism.remark(stays).contains("stays enabled"));
        }
        RmRig.await("the mechanism tells, and the enforcer applies its state again", mechanism::changed);
        assertEquals(2, disable(s, o, u, e));
        assertTrue(RmRig.advances(task, LIVELY_MS), "the task hangs");
        assertTrue(RmRig.advances(server, LIVELY_MS));
        assertTrue(RmRig.advances(other, LIVELY_MS), "what the clients need of each other is unknown");
        assertFalse(RmRig.advances(unrelated, QUIET_MS));
        assertFalse(RmRig.advances(elsewhere, QUIET_MS));
        assertEquals(List.of(ContextRef.SwitchResult.FAILED, ContextRef.SwitchResult.FAILED,
            ContextRef.SwitchResult.DONE, ContextRef.SwitchResult.DONE),
            List.of(s.result(), o.result(), u.result(), e.result()));
        for (final ContextRef stays : List.of(s, o, t)) {
            final String why = "it stays enabled, because pid " + task.pid() + " is registered";
            assertTrue(mechanism.remark(stays).contains(why), mechanism.remark(stays));
        }
        assertTrue(mechanism.lastError().contains("CUDA_MPS_PIPE_DIRECTORY naming a directory without a server"),
            mechanism.lastError());
        assertEquals("", mechanism.remark(u) + mechanism.remark(e));

        mechanism.registered(t, false);
        RmRig.await("the task is closed", () -> !mechanism.remark(s).contains("stays enabled"));
        assertEquals(0, disable(s, o, u, e, t));
        assertFalse(RmRig.advances(server, QUIET_MS));
        assertFalse(RmRig.advances(task, QUIET_MS), "one among others, now");
        mechanism.registered(t, true);
        RmRig.await("it is a task again", () -> mechanism.remark(s).contains("stays enabled"));
        task.process.destroyForcibly().waitFor();
        RmRig.await("the task is gone", () -> !mechanism.remark(s).contains("stays enabled"));
        assertEquals(0, disable(s, o, u, e));
        assertFalse(RmRig.advances(other, QUIET_MS));
        assertEquals(0, enable(s, o, u, e));
        for (final RmRig.App app : List.of(server, other, unrelated, elsewhere)) {
            assertTrue(RmRig.advances(app, LIVELY_MS));
            assertEquals(0, app.wrong());
        }
    }

    @Test
    void shouldCallARegisteredProcessAClientWhoseEnvironmentCannotBeRead() throws Exception {
        final RmRig.App server = server(pipe("mps"));
        final RmRig.App hidden = rig.start();
        final Path proc = Files.createDirectory(directory.resolve("proc"));   // knows the server alone
        Files.createSymbolicLink(proc.resolve(Integer.toString(server.pid())), Path.of("/proc/" + server.pid()));
        mechanism.close();
        mechanism = new NvidiaMechanism(0, Protection.DEFAULTS, proc);
        mechanism.processListener((pid, ticks, name) -> { });
        final ContextRef s = attached(server, 1);
        final ContextRef h = attached(hidden, 2);
        assertEquals(0, disable(s, h), "it has no task");
        assertEquals(0, enable(s, h));
        mechanism.registered(h, true);
        RmRig.await("it may be a client", () -> mechanism.remark(s).contains("because pid " + hidden.pid() + " "));
        assertEquals(1, disable(s));
        assertTrue(RmRig.advances(server, LIVELY_MS));
    }

    @Test
    void shouldCallARegisteredProcessAClientThatHasCudaOpenAndNoChannels() throws Exception {
        final RmRig.App server = server(pipe("mps"));
        final RmRig.App other = rig.start();
        final List<Integer> found = new CopyOnWriteArrayList<>();
        mechanism.processListener((pid, ticks, name) -> found.add(pid));
        RmRig.await("the server is announced, as in a daemon", () -> found.contains(server.pid()));
        final ContextRef s = attached(server, 1);
        final ContextRef o = attached(other, 2);
        final RmRig.App client = rig.startWithPipe("client", RmRig.appProgram(), pipe("elsewhere"));
        final ContextRef c = client.context(3);
        mechanism.attach(c);
        mechanism.registered(c, true);
        RmRig.await("it may be a client", () -> mechanism.remark(s).contains("no channels of its own"));
        assertTrue(mechanism.remark(s).contains("pid " + client.pid() + " "), mechanism.remark(s));
        RmRig.await("the mechanism tells", mechanism::changed);
        assertEquals(1, disable(s, o), "the enforcer applies its state again");
        assertEquals(ContextRef.SwitchResult.FAILED, s.result());
        assertEquals(ContextRef.SwitchResult.DONE, o.result());
        assertTrue(RmRig.advances(server, LIVELY_MS), "its client may be the one whose segment runs");
        assertFalse(RmRig.advances(other, QUIET_MS));

        client.process.destroyForcibly().waitFor();
        RmRig.await("no process may be a client", () -> !mechanism.remark(s).contains("stays enabled"));
        assertEquals(0, disable(s, o));
        assertFalse(RmRig.advances(server, QUIET_MS));
        assertEquals(0, enable(s, o));
        assertTrue(RmRig.advances(server, LIVELY_MS));
        assertTrue(RmRig.advances(other, LIVELY_MS));
    }

    @Test
    void shouldLeaveTimeSlicesToTheWatchdogWhenTheDaemonDies() throws Exception {
        final RmRig.App app = rig.start();
        final RmRig.App dead = rig.start();
        final ContextRef c = attached(app, 1);
        final ContextRef d = attached(dead, 2);
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve(Abi.HELD_NAME))) {
            for (final ContextRef each : List.of(c, d)) {
                held.noteTimeslice(mechanism.id(), each.pid(), each.pidStartTicks(), 0, each.contextId(),
                    System.nanoTime(), mechanism.timeslicePayload(each));
                assertTrue(mechanism.setTimeslice(each, 1_000_000_000L));
            }
            assertEquals(1_000_000, rig.timesliceUs(app));
            assertEquals(mechanism.timeslicePayload(c).length, 2 * 16, "what it had is asked once");
            mechanism.close();   // descriptors gone, as after a kill
            assertEquals(1_000_000, rig.timesliceUs(app), "the driver keeps it");
            dead.process.destroyForcibly().waitFor();
            assertEquals(2, held.timeslices());
            assertEquals(0, held.count(), "no process is disabled for it");
            assertEquals(0, rig.run("gpuseg-watchdog", "--dir", directory.toString(), "--release", "--force"));
            assertEquals(2048, rig.timesliceUs(app));
            assertEquals(0, held.timeslices());
        }
        mechanism = new NvidiaMechanism(0, Protection.DEFAULTS);
    }

    @Test
    void shouldRefuseToStartWithoutADevice() {
        DriverCalls.DRIVER.use("c");
        final String text =
            assertThrows(MechanismException.class, () -> new NvidiaMechanism(0, Protection.DEFAULTS)).getMessage();
        assertTrue(text.contains("/dev/nvidiactl") && text.contains("--mechanism gate"), text);
        assertFalse(NvidiaSurvey.verdict().usable());
        DriverCalls.DRIVER.use(RmRig.program("libgpuseg-rm-fake.so").toString());
        assertTrue(NvidiaSurvey.verdict().usable(), NvidiaSurvey.verdict().reason());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.WatchdogPage;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(20)
class EnforcerTest {
    private static final int CONTEXTS = 4;

    /** Writes down what it is asked, and how many contexts the held file had at that moment. */
    private final class Recorder implements Mechanism {
        private final List<String> calls = new ArrayList<>();
        private boolean broken;
        private String error = "the device is broken";
        private boolean absent;
        private boolean changed;
        private boolean holdsLaunches;
        private Runnable during = () -> { };
        private Runnable duringDetach = () -> { };

        @Override
        public String name() {
            return "recorder";
        }

        @Override
        public int id() {
            return Abi.MECHANISM_SIM;
        }

        @Override
        public Capabilities capabilities() {
            return new Capabilities(Capabilities.INTERRUPT, 0, 0, 0, 0, 64, true, "process", holdsLaunches);
        }

        @Override
        public void joined(final ContextRef context, final Session session, final LaunchHold word) {
            calls.add("joined " + context.contextId());
            word.close();
        }

        @Override
        public void left(final ContextRef context, final Session session) {
            calls.add("left " + context.contextId());
        }

        @Override
        public void attach(final ContextRef context) {
            calls.add("attach " + context.contextId());
        }

        @Override
        public void registered(final ContextRef context, final boolean registered) {
            calls.add("registered " + context.contextId() + " " + registered);
        }

        @Override
        public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
            final int enableCount) {
            final StringBuilder call = new StringBuilder();
            for (int i = 0; i < disableCount; i++) {
                call.append("-").append(disable[i].contextId());
                disable[i].result(broken ? ContextRef.SwitchResult.FAILED : ContextRef.SwitchResult.DONE, 1, 2);
            }
            for (int i = 0; i < enableCount; i++) {
                call.append("+").append(enable[i].contextId());
                enable[i].result(broken ? ContextRef.SwitchResult.FAILED : ContextRef.SwitchResult.DONE, 1, 2);
            }
            calls.add(call + " held " + held.count());
            during.run();
            return broken ? disableCount + enableCount : 0;
        }

        @Override
        public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
            calls.add("slice " + context.contextId() + "=" + timesliceNs + " noted " + held.timeslices());
            return !broken;
        }

        @Override
        public byte[] timeslicePayload(final ContextRef context) {
            return new byte[] {1};
        }

        @Override
        public int units(final ContextRef context) {
            return absent ? 0 : 1;
        }

        @Override
        public boolean changed() {
            final boolean result = changed;
            changed = false;
            return result;
        }

        @Override
        public byte[] heldPayload(final ContextRef context) {
            return new byte[0];
        }

        @Override
        public void detach(final ContextRef context) {
            calls.add("detach " + context.contextId());
            duringDetach.run();
        }

        @Override
        public String lastError() {
            return broken ? error : "";
        }

        @Override
        public void close() {
            calls.add("close");
        }
    }

    @TempDir
    private Path directory;
    private HeldFile held;
    private Recorder device;
    private Enforcer enforcer;
    private int wakes;
    private long nowNs = 1;

    @BeforeEach
    void wire() {
        held = HeldFile.openOrCreate(directory.resolve("held"));
        device = new Recorder();
        enforcer = new Enforcer(0, device, held, null, CONTEXTS, 0, IdleMode.SLEEP, () -> wakes++);
        for (int i = 1; i <= CONTEXTS; i++) {
            enforcer.attach(new ContextRef(i, 0, 100 + i, 1, "test"));
        }
        settle();
        device.calls.clear();
        wakes = 0;
    }

    @AfterEach
    void close() {
        held.close();
    }

    private void settle() {
        for (int i = 0; i < 20; i++) {
            enforcer.cycle(nowNs++);
        }
    }

    /** A second later, when all that failed is tried again. */
    private void settleLater() {
        nowNs = System.nanoTime() + 1_000_000_000L;
        settle();
    }

    private List<String> results() {
        final List<String> told = new ArrayList<>();
        enforcer.poll((type, buffer, offset, length) -> told.add(switch (type) {
            case EnforcerResults.CONTEXT -> (buffer.getInt(offset + EnforcerResults.OFF_OFFSET) == 1 ? "-" : "+")
                + buffer.getInt(offset);
            case EnforcerResults.RELEASED -> "released " + buffer.getLong(offset);
            case EnforcerResults.REPEATED_ERROR -> "again";
            default -> buffer.getStringWithoutLengthUtf8(offset, length);
        }));
        return told;
    }

    private long want(final int... off) {
        for (int i = 1; i <= CONTEXTS; i++) {
            boolean wantedOff = false;
            for (final int o : off) {
                wantedOff |= o == i;
            }
            enforcer.desired().set(i, !wantedOff);
        }
        return enforcer.desired().commit();
    }

    @Test
    void shouldWriteTheHeldFileBeforeADisableAndClearItAfterAnEnable() {
        final long version = want(2, 3);
        settle();
        assertEquals(List.of("-2-3 held 2"), device.calls);
        assertEquals(version, enforcer.enforcedVersion());
        want();
        settle();
        assertEquals(List.of("-2-3 held 2", "+2+3 held 2"), device.calls);
        assertEquals(0, held.count());
    }

    @Test
    void shouldTellOfSessionsInOrderIfTheMechanismHoldsLaunches() {
        final ContextRef context = new ContextRef(1, 0, 200, 1, "next");
        try (Session session = Session.create(1, 1)) {
            enforcer.joined(context, session);
            enforcer.left(context, session);
            settle();
            assertEquals(List.of(), device.calls, "it holds none");
            device.holdsLaunches = true;
            enforcer.detach(1);
            enforcer.attach(context);
            enforcer.joined(context, session);
            enforcer.left(context, session);
            enforcer.detach(1);
            enforcer.joined(context, session);
            settle();
            assertEquals(List.of("detach 1", "attach 1", "joined 1", "left 1", "detach 1"), device.calls);
        }
    }

    @Test
    void shouldReportASessionWhoseLaunchesCannotBeHeld() {
        device.holdsLaunches = true;
        final Session session = Session.create(1, 1);
        session.close();
        enforcer.joined(new ContextRef(1, 0, 101, 1, "test"), session);
        settle();
        assertEquals(List.of(), device.calls);
        final List<String> told = results();
        assertEquals(1, told.size(), told.toString());
        assertTrue(told.get(0).contains("(pid 101") && told.get(0).contains("cannot be held"), told.get(0));
    }

    @Test
    void shouldDisableBeforeItEnables() {
        want(1);
        settle();
        want(2);
        settle();
        assertEquals(List.of("-1 held 1", "-2 held 2", "+1 held 2"), device.calls);
        assertEquals(1, held.count());
    }

    @Test
    void shouldApplyOnlyTheNewestOfABurst() {
        want(1);
        want(2);
        want(1, 2, 3);
        want(4);
        settle();
        assertEquals(List.of("-4 held 1"), device.calls);
    }

    @Test
    void shouldTakeANewDisableBeforeAPendingEnable() {
        want(1);
        settle();
        device.calls.clear();
        device.during = () -> {
            device.during = () -> { };
            want(2, 3);   // arrives while -2 is being applied and +1 is still due
        };
        want(2);
        settle();
        assertEquals(List.of("-2 held 2", "-3 held 3", "+1 held 3"), device.calls);
    }

    @Test
    void shouldNotHoldUpTheGrantWhenTheDeviceFailsButSayThatItIsNotEnforced() {
        device.broken = true;
        final long version = want(1);
        enforcer.cycle(nowNs);
        assertEquals(version, enforcer.enforcedVersion());
        assertTrue(enforcer.isIncomplete());
        assertEquals(1, held.count(), "it may be off: it stays written down");
        assertFalse(enforcer.isIdle());
        device.broken = false;
        settleLater();
        assertFalse(enforcer.isIncomplete());
        assertEquals(1, held.count());
        want();
        settle();
        assertEquals(0, held.count());
        assertTrue(enforcer.isIdle());
    }

    /** The state that failed is the newest one still: no decision may be needed to enable what it wants enabled. */
    @Test
    void shouldEnableTheRestWhenTheRetryOfADisableSucceeds() {
        want(1, 3);
        settle();
        device.broken = true;
        want(2);
        settle();
        device.calls.clear();
        device.broken = false;
        settleLater();
        assertEquals(List.of("-2 held 3", "+1+3 held 3"), device.calls);
        assertEquals(1, held.count());
        assertTrue(enforcer.isIdle());
    }

    @Test
    void shouldTellTheDispatcherWhatARetryChanged() {
        device.broken = true;
        want(1);
        settle();
        assertEquals(List.of("the device is broken"), results());
        device.broken = false;
        wakes = 0;
        settleLater();
        assertEquals(List.of("-1"), results());
        assertEquals(1, wakes, "the version was enforced before, but the context is disabled only now");
    }

    @Test
    void shouldWakeTheDispatcherOnceForADisableAndBeforeAndAfterAnEnable() {
        want(1);
        settle();
        assertEquals(1, wakes);
        want();
        final int[] before = {-1};
        device.during = () -> before[0] = wakes;
        settle();
        assertEquals(2, before[0], "nothing is left to disable: grants may go out");
        assertEquals(3, wakes);
        assertEquals(List.of("-1", "+1"), results());
        settle();
        assertEquals(3, wakes);
    }

    @Test
    void shouldSayThatAStateIsIncompleteBeforeItSaysThatItIsEnforced() {
        final List<String> seen = new ArrayList<>();
        final Enforcer[] watched = new Enforcer[1];
        watched[0] = new Enforcer(0, device, held, null, CONTEXTS, 0, IdleMode.SLEEP,
            () -> seen.add(watched[0].enforcedVersion() + " " + watched[0].isIncomplete()));
        watched[0].attach(new ContextRef(1, 0, 101, 1, "test"));
        watched[0].cycle(1);
        device.broken = true;
        watched[0].desired().set(1, false);
        final long version = watched[0].desired().commit();
        watched[0].cycle(2);
        assertEquals(List.of("0 false", version + " true"), seen, "the error, then the state");
    }

    @Test
    void shouldLeaveEnabledWhatTheHeldFileHasNoRoomFor() {
        int last = HeldFile.FULL;
        for (int i = 0; i < Abi.HELD_MAX; i++) {
            last = held.hold(Abi.MECHANISM_SIM, 1_000 + i, 1, 0, 0, 1, new byte[0]);
        }
        final long version = want(1);
        settle();
        assertEquals(List.of(), device.calls);
        assertEquals(version, enforcer.enforcedVersion());
        assertTrue(enforcer.isIncomplete());
        assertTrue(results().get(0).startsWith("held file is full: context 1 "));
        held.release(last);
        settleLater();
        assertEquals(List.of("-1 held " + Abi.HELD_MAX), device.calls);
        assertFalse(enforcer.isIncomplete());
    }

    @Test
    void shouldWriteAllDownAnewAndApplyTheStateToAllWhenProcessesGotMoreWork() {
        want(1);
        settle();
        device.calls.clear();
        device.changed = true;
        settle();
        assertEquals(List.of("-1 held 4", "+2+3+4 held 4"), device.calls);
        assertEquals(1, held.count());
    }

    private Path watchdogFile(final long releases) throws IOException {
        final ByteBuffer page = ByteBuffer.allocate(Abi.Watchdog.SIZE).order(ByteOrder.nativeOrder());
        page.putInt(Abi.Watchdog.MAGIC_OFFSET, Abi.WATCHDOG_MAGIC);
        page.putInt(Abi.Watchdog.VERSION_OFFSET, Abi.ABI_VERSION);
        page.putLong(Abi.Watchdog.RELEASES_OFFSET, releases);
        final Path file = directory.resolve("watchdog");
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
            channel.write(page.slice(0, Abi.Watchdog.SIZE), 0);   // into the mapped page, as another process does
        }
        return file;
    }

    @Test
    void shouldDisableAgainWhatTheWatchdogReleased() throws IOException {
        try (WatchdogPage watchdog = WatchdogPage.map(watchdogFile(0))) {
            enforcer.watchdog(watchdog);
            want(1, 2);
            settle();
            results();
            device.calls.clear();
            watchdogFile(1);
            settle();
            assertEquals(List.of("-1-2 held 2"), device.calls);
            assertEquals(List.of("released 1", "-1", "-2"), results());
        }
    }

    @Test
    void shouldCountNoStateAsEnforcedUntilWhatWasReleasedIsDisabledAgain() throws IOException {
        try (WatchdogPage watchdog = WatchdogPage.map(watchdogFile(0))) {
            enforcer.watchdog(watchdog);
            final long version = want(1, 2);
            settle();
            final List<String> seen = new ArrayList<>();
            device.during = () -> seen.add((enforcer.enforcedVersion() >= version) + " " + enforcer.isIncomplete());
            watchdogFile(1);
            settle();
            assertEquals(List.of("false true"), seen);
            assertEquals(version, enforcer.enforcedVersion());
            assertFalse(enforcer.isIncomplete());
            device.broken = true;
            watchdogFile(2);
            settle();
            assertTrue(enforcer.isIncomplete(), "it could not be disabled again");
        }
    }

    /** A watchdog that is killed while it enables what is held has not counted that yet. */
    @Test
    void shouldDisableAgainWhenAnotherWatchdogTookOver() throws IOException {
        try (WatchdogPage watchdog = WatchdogPage.map(watchdogFile(0))) {
            enforcer.watchdog(watchdog);
            want(1, 2);
            settle();
            device.calls.clear();
            results();
            enforcer.watchdog(watchdog);
            settle();
            assertEquals(List.of("-1-2 held 2"), device.calls);
            assertEquals(List.of("-1", "-2"), results());
            watchdogFile(1);
            enforcer.watchdog(watchdog);
            settle();
            assertEquals(List.of("released 1", "-1", "-2"), results(), "what the former one did is told");
        }
    }

    /** The mechanism may have to enable what it forgets: until then the entry must stay. */
    @Test
    void shouldClearTheEntryOfAContextAfterTheMechanismHasForgottenIt() {
        want(1);
        settle();
        device.duringDetach = () -> assertEquals(1, held.count());
        enforcer.detach(1);
        settle();
        assertEquals(0, held.count());
        assertTrue(device.calls.contains("detach 1"));
    }

    @Test
    void shouldCountTheSameErrorEachTimeButSayItOnce() {
        final List<Integer> told = new ArrayList<>();
        device.broken = true;
        want(1);
        nowNs = System.nanoTime() + 100_000_000_000L;   // later than any time to try again
        for (int i = 1; i <= 5; i++) {
            enforcer.cycle(nowNs);
        }
        enforcer.poll((type, buffer, offset, length) -> told.add(type));
        assertEquals(List.of(EnforcerResults.ERROR, EnforcerResults.REPEATED_ERROR, EnforcerResults.REPEATED_ERROR,
            EnforcerResults.REPEATED_ERROR, EnforcerResults.REPEATED_ERROR), told);
        told.clear();
        enforcer.cycle(nowNs + 11_000_000_000L);
        device.error = "another";
        enforcer.cycle(nowNs + 11_000_000_000L);
        enforcer.poll((type, buffer, offset, length) -> told.add(type));
        assertEquals(List.of(EnforcerResults.ERROR, EnforcerResults.ERROR), told, "after 10 s, and other words");
    }

    @Test
    void shouldTellTheMechanismWhoRegisteredAfterItKnowsTheProcess() {
        final ContextRef late = new ContextRef(1, 0, 201, 1, "late");
        enforcer.detach(1);
        enforcer.attach(late);
        enforcer.registered(late, true);
        enforcer.registered(late, false);
        settle();
        assertEquals(List.of("detach 1", "attach 1", "registered 1 true", "registered 1 false"),
            device.calls.subList(0, 4));
    }

    @Test
    void shouldForgetTheContextOfADeadProcess() {
        want(1);
        settle();
        enforcer.detach(1);
        settle();
        assertEquals(0, held.count());
        assertEquals(List.of("-1 held 1", "detach 1"), device.calls);
    }

    @Test
    void shouldEnableEverythingWhenItStops() throws InterruptedException {
        want(1, 2, 3);
        final Thread thread = enforcer.start();
        while (held.count() < 3) {
            Thread.sleep(1);   // the limit of the test is the limit
        }
        enforcer.stop();
        thread.join();
        assertEquals(0, held.count());
        assertEquals("+1+2+3 held 3", device.calls.get(device.calls.size() - 1));
    }

    @Test
    void shouldGoOnAfterAnErrorOfTheMechanism() throws InterruptedException {
        final int[] errors = {0};
        device.during = () -> {
            if (errors[0]++ < 3) {
                throw new IllegalStateException("planted");
            }
        };
        want(1, 2);
        final Thread thread = enforcer.start();
        final List<String> told = new ArrayList<>();
        while (told.stream().noneMatch("-2"::equals)) {
            told.addAll(results());
            Thread.sleep(1);   // the limit of the test is the limit
        }
        assertTrue(told.get(0).contains("planted"), told.toString());
        assertEquals(2, held.count());
        errors[0] = 2;   // once more, while it stops
        enforcer.stop();
        thread.join();
        assertEquals(0, held.count());
    }

    @Test
    void shouldNoteTimeSlicesBeforeItSetsThemAndForgetThemWhenTheyAreBack() {
        enforcer.timeslice(1, 500);
        settle();
        assertEquals(List.of("slice 1=500 noted 1"), device.calls);
        assertEquals(0, held.count(), "nobody is off for it");
        enforcer.timeslice(1, 700);
        enforcer.timeslice(1, 0);
        settle();
        assertEquals(List.of("slice 1=500 noted 1", "slice 1=700 noted 1", "slice 1=0 noted 1"), device.calls);
        assertEquals(0, held.timeslices());
    }

    @Test
    void shouldSetTheTimeSliceOfAProcessThatHasNoWorkYetWhenItHas() {
        device.absent = true;
        enforcer.timeslice(2, 500);
        settle();
        assertEquals(List.of(), device.calls);
        device.absent = false;
        device.changed = true;
        settle();
        assertTrue(device.calls.contains("slice 2=500 noted 1"), device.calls.toString());
        enforcer.detach(2);
        settle();
        assertEquals(0, held.timeslices(), "a dead process's slice is nobody's");
    }

    private void startAndStop() throws InterruptedException {
        final Thread thread = enforcer.start();
        enforcer.stop();
        thread.join();
    }

    @Test
    void shouldGiveTimeSlicesBackWhenItStops() throws InterruptedException {
        enforcer.timeslice(3, 500);
        settle();
        assertEquals(1, held.timeslices());
        startAndStop();
        assertEquals("slice 3=0 noted 1", device.calls.get(device.calls.size() - 1));
        assertEquals(0, held.timeslices());
    }

    @Test
    void shouldGiveATimeSliceBackWhenItStopsIfTheDeviceRefusedBefore() throws InterruptedException {
        enforcer.timeslice(3, 500);
        settle();
        device.broken = true;
        enforcer.timeslice(3, 0);
        settle();
        assertEquals(1, held.timeslices(), "it still has another slice than its own");
        device.broken = false;
        startAndStop();
        assertEquals("slice 3=0 noted 1", device.calls.get(device.calls.size() - 1));
        assertEquals(0, held.timeslices());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.observer.Observer;
import dev.gpuseg.mechanisms.observer.RealObserver;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Mechanism nvidia with a real gpuseg-observer: applications repeat their ioctls on a device that it watches. */
@Timeout(240)
class ObservedMechanismTest {
    private static final ContextRef[] NONE = {};
    private static final long LIVELY_MS = 30_000;
    private static final long QUIET_MS = 60;
    private static final int STARTED_LATER = 60;
    /** After the second when channels that nobody schedules count as scheduled; and before. */
    private static final int SCHEDULE_MS = 4_000;
    private static final int SCHEDULE_SOON_MS = 300;
    private static final int OWN_US = 3_000;
    private static final int MANY = 1000;
    private static final int AT_ONCE = 10;
    private static final long SPIN_MS = 2_000;
    /** A search asks more than 9,000 questions; the objects of one process are asked for with some 150. */
    private static final int FEW_QUESTIONS = 1_000;
    /** A record takes 72 bytes of 4 MiB. */
    private static final int OPENS_BEYOND_RING = 40_000;

    @TempDir
    private Path directory;
    private RmRig rig;
    private Observer observer;
    private NvidiaMechanism mechanism;
    private final Map<Integer, Long> found = new ConcurrentHashMap<>();

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory);
        observer = RealObserver.start(RmRig.SHADOW_OPTION);
        mechanism = new NvidiaMechanism(0, Protection.DEFAULTS, observer);
        mechanism.processListener((pid, ticks, name) -> found.put(pid, ticks));
    }

    @AfterEach
    void stop() throws Exception {
        if (mechanism != null) {
            mechanism.close();
        }
        if (observer != null) {
            observer.close();
        }
        rig.close();
    }

    private ContextRef attached(final RmRig.App app, final int id) {
        final ContextRef context = app.context(id);
        mechanism.attach(context);
        return context;
    }

    /** The only application, which has not said its pid yet. */
    private ContextRef attachedWhenAnnounced() throws InterruptedException {
        RmRig.await("it is announced", () -> found.size() == 1);
        final int pid = found.keySet().iterator().next();
        final ContextRef context = new ContextRef(1, 0, pid, found.get(pid), "app");
        mechanism.attach(context);
        return context;
    }

    private void awaitFound(final int pid) throws InterruptedException {
        RmRig.await("pid " + pid + " is announced", () -> found.containsKey(pid));
    }

    @Test
    void shouldControlAProcessWithoutSearchingIt() throws Exception {
        final int before = rig.stats().get("controls").asInt();
        final RmRig.App app = rig.start();
        awaitFound(app.pid());
        assertEquals(ProcessStatus.startTicks(app.pid()), found.get(app.pid()));
        final ContextRef c = attached(app, 1);
        RmRig.await("all channels", () -> mechanism.units(c) == 8);
        assertEquals(0, mechanism.apply(new ContextRef[] {c}, 1, NONE, 0));
        assertEquals(ContextRef.SwitchResult.DONE, c.result());
        assertEquals(8, rig.stats().get("disabled_channels").asInt());
        assertFalse(RmRig.advances(app, QUIET_MS), "works while disabled");
        assertEquals(0, mechanism.apply(NONE, 0, new ContextRef[] {c}, 1));
        assertTrue(RmRig.advances(app, LIVELY_MS));
        assertEquals(0, app.wrong());
        final int asked = rig.stats().get("controls").asInt() - before;
        assertTrue(asked < FEW_QUESTIONS, asked + " questions");
        assertEquals(0, observer.lost());
    }

    @Test
    void shouldDisableNewChannelsWithoutEnablingTheOthers() throws Exception {
        final RmRig.App app = rig.start("two", false, RmRig.appProgram());
        awaitFound(app.pid());
        final ContextRef c = attached(app, 1);
        RmRig.await("the first context", () -> mechanism.units(c) == 8);
        final ContextRef[] all = {c};
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        app.makeSecondContext();
        RmRig.await("both", () -> mechanism.units(c) == 16);
        final int enables = rig.stats().get("enables").asInt();
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        assertEquals(16, rig.stats().get("disabled_channels").asInt());
        assertEquals(enables, rig.stats().get("enables").asInt(), "the first context was enabled meanwhile");
        assertEquals(0, mechanism.apply(NONE, 0, all, 1));
        assertEquals(0, rig.stats().get("disabled_channels").asInt(), "one enable is enough");
        assertTrue(RmRig.advances(app, LIVELY_MS));
    }

    /** What a process schedules runs, even if it was disabled while the process made it. */
    @Test
    void shouldDisableAgainWhatWasScheduledAfterItWasDisabled() throws Exception {
        final CompletableFuture<RmRig.App> started = startedThatSchedulesAfter(SCHEDULE_MS);
        final ContextRef c = attachedWhenAnnounced();
        RmRig.await("all channels", () -> mechanism.units(c) == 8);
        final ContextRef[] all = {c};
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        assertEquals(8, rig.stats().get("disabled_channels").asInt());
        assertFalse(started.isDone(), "it was to schedule its channels later");
        while (mechanism.changed()) {
            Thread.onSpinWait();
        }
        final RmRig.App app = started.get();
        RmRig.await("it is seen", mechanism::changed);
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        assertEquals(8, rig.stats().get("disabled_channels").asInt());
        assertFalse(RmRig.advances(app, QUIET_MS), "works while disabled");
        assertEquals(0, mechanism.apply(NONE, 0, all, 1));
        assertEquals(0, rig.stats().get("disabled_channels").asInt(), "one enable is enough");
        assertTrue(RmRig.advances(app, LIVELY_MS));
    }

    /** One call stops it then: to disable it before would cost an enable at the moment that matters. */
    @Test
    void shouldDisableChannelsOnceWhenTheyAreScheduled() throws Exception {
        final CompletableFuture<RmRig.App> started = startedThatSchedulesAfter(SCHEDULE_SOON_MS);
        final ContextRef c = attachedWhenAnnounced();
        final ContextRef[] all = {c};
        while (!started.isDone()) {
            assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        }
        RmRig.await("its channels can run", () -> mechanism.units(c) == 8);
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        assertEquals(8, rig.stats().get("disabled_channels").asInt());
        assertEquals(0, rig.stats().get("enables").asInt(), "it was disabled before it could run");
        assertFalse(RmRig.advances(started.get(), QUIET_MS), "works while disabled");
        assertEquals(0, mechanism.apply(NONE, 0, all, 1));
        assertEquals(0, rig.stats().get("disabled_channels").asInt(), "one enable is enough");
        assertTrue(RmRig.advances(started.get(), LIVELY_MS));
    }

    /** CUDA sets the slice of a context when all else of it is made, over one that was chosen meanwhile. */
    @Test
    void shouldChooseATimesliceAgainWhenTheProcessHasSetItsOwn() throws Exception {
        rig.setsTimeslice(OWN_US);
        final CompletableFuture<RmRig.App> started = startedThatSchedulesAfter(SCHEDULE_MS);
        final ContextRef c = attachedWhenAnnounced();
        RmRig.await("all channels", () -> mechanism.units(c) == 8);
        assertTrue(mechanism.setTimeslice(c, 500_000));
        assertFalse(started.isDone(), "it was to set its own later");
        final RmRig.App app = started.get();
        RmRig.await("it is set again", () -> {
            assertTrue(mechanism.setTimeslice(c, 500_000));
            return rig.timesliceUs(app) == 500;
        });
        assertTrue(mechanism.setTimeslice(c, 0));
        assertEquals(OWN_US, rig.timesliceUs(app), "not what it was born with");
    }

    private CompletableFuture<RmRig.App> startedThatSchedulesAfter(final int ms) {
        return CompletableFuture.supplyAsync(() -> {
            try {
                return rig.startThatSchedulesAfter(ms);
            } catch (final Exception e) {
                throw new CompletionException(e);
            }
        });
    }

    @Test
    void shouldDisableAllAgainAfterARelease() throws Exception {
        final RmRig.App app = rig.start();
        awaitFound(app.pid());
        final ContextRef c = attached(app, 1);
        RmRig.await("all channels", () -> mechanism.units(c) == 8);
        final ContextRef[] all = {c};
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        final int before = rig.stats().get("disables").asInt();
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        assertEquals(before, rig.stats().get("disables").asInt(), "nothing is left to disable");
        mechanism.released();
        assertEquals(0, mechanism.apply(all, 1, NONE, 0));
        assertTrue(rig.stats().get("disables").asInt() > before, "the watchdog has enabled it");
        assertEquals(8, rig.stats().get("disabled_channels").asInt());
        assertEquals(0, mechanism.apply(NONE, 0, all, 1));
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
    }

    @Test
    void shouldNotTakeAForkedChildForTheOwner() throws Exception {
        final RmRig.App parent = rig.start("child", false, RmRig.appProgram());
        awaitFound(parent.pid());
        final RmRig.App later = rig.start();
        awaitFound(later.pid());
        assertFalse(found.containsKey(parent.childPid()), "its descriptors are its parent's");
    }

    @Test
    void shouldMissNoneOfManyShortLives() throws Exception {
        final Set<Integer> started = new HashSet<>();
        for (int i = 0; i < STARTED_LATER; i++) {
            final RmRig.App app = rig.start();
            started.add(app.pid());
            awaitFound(app.pid());
            app.process.destroyForcibly().waitFor();
        }
        assertTrue(found.keySet().containsAll(started));
        RmRig.await("no client of a dead process is kept", () -> clients() == 0);
    }

    /** /proc shows no descriptors of it any more, though it lives and works. */
    @Test
    void shouldKeepAProcessUnderControlWhoseMainThreadHasEndedAndNotSpin() throws Exception {
        final RmRig.App app = rig.start("leaderless", false, RmRig.appProgram());
        awaitFound(app.pid());
        final ContextRef c = attached(app, 1);
        RmRig.await("the first context", () -> mechanism.units(c) == 8);
        app.makeSecondContext();
        RmRig.await("its main thread has ended", () -> RemoteDescriptors.mainThreadEnded(app.pid()));
        RmRig.await("its second context", () -> app.kernelsOfSecondContext() > 0 && mechanism.units(c) == 16);
        final long before = watchCpuNs();
        Thread.sleep(SPIN_MS);
        final long used = watchCpuNs() - before;
        assertTrue(used < SPIN_MS * 1_000_000 / 4, "the watch used " + used / 1_000_000 + " of " + SPIN_MS + " ms");
        assertEquals(0, mechanism.apply(new ContextRef[] {c}, 1, NONE, 0));
        assertEquals(16, rig.stats().get("disabled_channels").asInt());
        assertEquals(0, mechanism.apply(NONE, 0, new ContextRef[] {c}, 1));
    }

    private static long watchCpuNs() {
        final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (final ThreadInfo info : threads.getThreadInfo(threads.getAllThreadIds())) {
            if (info != null && info.getThreadName().startsWith("gpuseg-nvidia-watch-")) {
                return threads.getThreadCpuTime(info.getThreadId());
            }
        }
        throw new IllegalStateException("there is no watch thread");
    }

    /** The test is the enforcer: what is announced is attached and disabled; each lives until then, 15 s at most. */
    @Test
    @Tag("long")
    @Timeout(1200)
    void shouldDisableEachOfAThousandProcessesThatComeAndGoAndHoldNone() throws Exception {
        final Map<Integer, ContextRef> disabled = new ConcurrentHashMap<>();
        final Deque<RmRig.App> alive = new ArrayDeque<>();
        for (int i = 0; i < MANY; i++) {
            alive.add(rig.start());
            disableFound(disabled);
            if (alive.size() == AT_ONCE) {
                end(alive.poll(), disabled);
            }
        }
        while (!alive.isEmpty()) {
            end(alive.poll(), disabled);
        }
        assertEquals(0, observer.lost());
        RmRig.await("no client of a dead process is kept", () -> clients() == 0);
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
    }

    private void disableFound(final Map<Integer, ContextRef> disabled) {
        for (final Map.Entry<Integer, Long> e : found.entrySet()) {
            if (disabled.containsKey(e.getKey())) {
                continue;
            }
            final ContextRef c = new ContextRef(1 + disabled.size(), 0, e.getKey(), e.getValue(), "app");
            mechanism.attach(c);
            disabled.put(e.getKey(), c);
        }
        for (final ContextRef c : disabled.values()) {
            if (mechanism.units(c) > 0) {
                mechanism.apply(new ContextRef[] {c}, 1, NONE, 0);
            }
        }
    }

    private void end(final RmRig.App app, final Map<Integer, ContextRef> disabled) throws Exception {
        RmRig.await("pid " + app.pid() + " is disabled", () -> {
            disableFound(disabled);
            final ContextRef c = disabled.get(app.pid());
            return c != null && mechanism.units(c) == 8 && c.result() == ContextRef.SwitchResult.DONE;
        });
        app.process.destroyForcibly().waitFor();
        found.remove(app.pid());
        mechanism.detach(disabled.remove(app.pid()));
    }

    private int clients() {
        try {
            return rig.stats().get("clients").asInt();
        } catch (final Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** The observer stands still while its ring in the kernel fills up: records of the process have no place there. */
    @Test
    void shouldFindAndDisableByAScanAProcessWhoseRecordsWereLost() throws Exception {
        final long pid = ProcessHandle.current().children()
            .filter(p -> p.info().command().orElse("").endsWith("/gpuseg-observer")).findAny().orElseThrow().pid();
        final int before = rig.stats().get("controls").asInt();
        signal("STOP", pid);
        final RmRig.App app;
        try {
            for (int i = 0; i < OPENS_BEYOND_RING; i++) {   // two records each; this process itself is not controlled
                Files.newOutputStream(Path.of(RmRig.SHADOW)).close();
            }
            app = rig.start();
            assertEquals(0, observer.lost(), "the observer has not stopped");
        } finally {
            signal("CONT", pid);
        }
        awaitFound(app.pid());
        RmRig.await("the loss is counted", () -> observer.lost() > 0);
        assertFalse(observer.sawWhole(found.get(app.pid())));
        final ContextRef c = attached(app, 1);
        RmRig.await("all channels", () -> mechanism.units(c) == 8);
        assertEquals(0, mechanism.apply(new ContextRef[] {c}, 1, NONE, 0));
        assertEquals(8, rig.stats().get("disabled_channels").asInt());
        assertFalse(RmRig.advances(app, QUIET_MS), "works while disabled");
        final int asked = rig.stats().get("controls").asInt() - before;
        assertTrue(asked > FEW_QUESTIONS, "it was not searched: " + asked + " questions");
        assertEquals(0, mechanism.apply(NONE, 0, new ContextRef[] {c}, 1));
        assertTrue(RmRig.advances(app, LIVELY_MS));
        assertTrue(observer.isLive(), observer::problem);
    }

    private static void signal(final String name, final long pid) throws Exception {
        assertEquals(0, new ProcessBuilder("kill", "-" + name, Long.toString(pid)).inheritIO().start().waitFor());
    }

    @Test
    void shouldScanOnceTheObserverIsGone() throws Exception {
        final RmRig.App seen = rig.start();
        awaitFound(seen.pid());
        observer.close();
        final ContextRef c = attached(seen, 1);
        RmRig.await("its channels are still known", () -> mechanism.units(c) == 8);
        final RmRig.App later = rig.start();
        awaitFound(later.pid());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.observer.Observer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Mechanism nvidia with a real gpuseg-observer: applications repeat their ioctls on a device that it watches. */
@Timeout(240)
class ObservedMechanismTest {
    private static final ContextRef[] NONE = {};
    private static final long LIVELY_MS = 10_000;
    private static final long QUIET_MS = 60;
    private static final int STARTED_LATER = 60;
    /** A search asks more than 9,000 questions; the objects of one process are asked for with some 150. */
    private static final int FEW_QUESTIONS = 1_000;

    @TempDir
    private Path directory;
    private RmRig rig;
    private Observer observer;
    private NvidiaMechanism mechanism;
    private final Map<Integer, Long> found = new ConcurrentHashMap<>();

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory);
        final Path program = RmRig.program("gpuseg-observer");
        assumeTrue(Files.exists(program), "gpuseg-observer is not built: apt install clang libbpf-dev");
        observer = Observer.start(program, List.of("--device", RmRig.SHADOW_OPTION));
        assumeTrue(observer.await(RmRig.LIMIT_MS), () -> observer.problem());
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
        assertEquals(ContextRef.Outcome.DONE, c.outcome());
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

    private int clients() {
        try {
            return rig.stats().get("clients").asInt();
        } catch (final Exception e) {
            throw new IllegalStateException(e);
        }
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

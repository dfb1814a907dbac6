/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Accidents of a daemon with {@code --space}: after each, everybody is inside again, with what he had before. More
 * rounds: -Dgpuseg.space.rounds=N, others: -Dgpuseg.space.seed=N.
 */
@Tag("long")
@Timeout(value = 2, unit = TimeUnit.HOURS)
class SpaceFaultsTest {
    private static final int LIMIT_S = SpaceRig.LIMIT_S;
    private static final int LIMIT_MS = SpaceRig.LIMIT_MS;
    private static final int ROUNDS = Integer.getInteger("gpuseg.space.rounds", 16);
    private static final long SEED = Long.getLong("gpuseg.space.seed", 34);
    private static final int PLACES = 2;
    private static final int STOPPED_MS = 150;
    private static final String LOOP = "loop";

    @RegisterExtension
    private final SystemRig rig = new SystemRig();
    private final SpaceRig space = new SpaceRig(rig);
    private final Child[] training = new Child[PLACES];
    private Child daemon;
    private Child loop;
    private int names;

    /** What happens, each as often as the others. */
    private enum Fault {
        CONTROL_DAEMON_KILLED, DAEMON_KILLED, DAEMON_STOPPED, DAEMON_ENDS, LOOP_KILLED, LOOP_STOPPED, TRAINING_KILLED,
        TRAINING_STOPPED, TOO_MUCH_ASKED
    }

    /** A control daemon outlives its daemon, if somebody is inside. */
    @AfterEach
    void endControlDaemon() throws IOException {
        Files.deleteIfExists(space.note());
    }

    private Child startTraining(final int place) {
        names++;
        return space.exec("--best-effort", "--name", "training" + place + "-" + names, "--", "APP", "without-end");
    }

    private Child startLoop() {
        return space.exec("--priority", "90", "--reserve", "10%", "--name", LOOP, "--", "APP", "without-end");
    }

    @Test
    void shouldHaveEverybodyInsideAgainAfterEachAccident() throws Exception {
        daemon = space.daemon();
        for (int i = 0; i < PLACES; i++) {
            training[i] = startTraining(i);
        }
        loop = startLoop();
        asBefore("at first", space.controlPid());
        final SplittableRandom random = new SplittableRandom(SEED);
        final int[] counts = new int[Fault.values().length];
        for (int round = 0; round < ROUNDS; round++) {
            // the first rounds have each fault once
            final Fault fault = Fault.values()[round < counts.length ? round : random.nextInt(counts.length)];
            counts[fault.ordinal()]++;
            TimeUnit.MICROSECONDS.sleep(random.nextInt(20_000));
            final long control = play(fault, random.nextInt(PLACES));
            asBefore("seed " + SEED + ", round " + round + ", " + fault, control);
        }
        final List<String> said = new ArrayList<>();
        for (final Fault fault : Fault.values()) {
            said.add(counts[fault.ordinal()] + " " + fault);
            assertTrue(counts[fault.ordinal()] > 0 || ROUNDS < counts.length, fault + " was never played");
        }
        System.out.println("space faults: " + ROUNDS + " survived of " + ROUNDS + ": " + String.join(", ", said));
    }

    /** Returns the process of the control daemon that must be there afterwards; 0 if it is another one. */
    private long play(final Fault fault, final int place) throws Exception {
        final long control = space.controlPid();
        switch (fault) {
            case CONTROL_DAEMON_KILLED -> {
                ProcessHandle.of(control).orElseThrow().destroyForcibly();
                SystemRig.await("another control daemon", LIMIT_MS, () -> space.controlPid() > 0
                    && space.controlPid() != control);
                return 0;
            }
            case DAEMON_KILLED -> {
                SystemRig.signal(daemon, "KILL");
                daemon.awaitExit(LIMIT_S);
                daemon = space.daemon();
            }
            case DAEMON_STOPPED -> {
                SystemRig.signal(daemon, "STOP");
                TimeUnit.MILLISECONDS.sleep(STOPPED_MS);
                SystemRig.signal(daemon, "CONT");
            }
            case DAEMON_ENDS -> {
                Files.writeString(space.pipe().resolve("clients"), loop.pid() + "\n");
                SystemRig.signal(daemon, "TERM");
                assertEquals(0, daemon.awaitExit(LIMIT_S), daemon.said());
                assertTrue(daemon.said().contains("goes on, since 1 programs are inside"), daemon.said());
                daemon = space.daemon();
                Files.delete(space.pipe().resolve("clients"));
            }
            case LOOP_KILLED -> {
                SystemRig.signal(loop, "KILL");
                SystemRig.await("its part of the reserve is free", LIMIT_MS, () -> "gone".equals(rig.state(LOOP)));
                loop = startLoop();
            }
            case LOOP_STOPPED -> stopped(loop);
            case TRAINING_KILLED -> {
                SystemRig.signal(training[place], "KILL");
                training[place].awaitExit(LIMIT_S);
                SystemRig.await("its place is free", LIMIT_MS, () -> space.isFree(0) || space.isFree(1));
                training[place] = startTraining(place);
            }
            case TRAINING_STOPPED -> stopped(training[place]);
            case TOO_MUCH_ASKED -> {
                final Child more = space.exec("--priority", "90", "--reserve", "3%", "--name", "more", "--", "APP",
                    "while", "1");
                final Child third = space.exec("--best-effort", "--", "APP", "while", "1");
                assertEquals(0, more.awaitExit(LIMIT_S), more.said());
                assertTrue(more.said().contains("reserve is 3%, and 2% of the reserve of 12% are free"), more.said());
                assertEquals(0, third.awaitExit(LIMIT_S), third.said());
                assertTrue(third.said().contains("all 2 places of the space are taken"), third.said());
            }
            default -> throw new IllegalStateException(fault.toString());
        }
        return control;
    }

    private static void stopped(final Child child) throws IOException, InterruptedException {
        SystemRig.signal(child, "STOP");
        TimeUnit.MILLISECONDS.sleep(STOPPED_MS);
        SystemRig.signal(child, "CONT");
    }

    private void asBefore(final String when, final long control) throws InterruptedException {
        SystemRig.await(when + ": the loop has a segment", LIMIT_MS, () -> "running".equals(rig.state(LOOP)));
        SystemRig.await(when + ": all have a segment", LIMIT_MS, () -> running() == PLACES + 1);
        assertFalse(space.isFree(0) || space.isFree(1), when + ": each training has a place");
        assertTrue(daemon.isAlive() && loop.isAlive() && training[0].isAlive() && training[1].isAlive(), when);
        assertTrue(control == 0 ? space.controlPid() > 0 : space.controlPid() == control, when + ": the control daemon "
            + control + " is " + space.controlPid());
        SystemRig.await(when + ": the space is whole", LIMIT_MS, () -> rig.status().path("space").path("failure")
            .asText("-").isEmpty());
    }

    private long running() {
        long running = 0;
        for (final var task : rig.status().path("tasks")) {
            running += "running".equals(task.path("state").asText()) ? 1 : 0;
        }
        return running;
    }
}

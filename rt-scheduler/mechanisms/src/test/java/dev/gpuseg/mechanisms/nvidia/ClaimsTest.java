/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.observer.Observation;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the memory of a process showed the observer is a claim, and RM is asked before it is used. */
@Timeout(60)
class ClaimsTest {
    private static final int CLASS_CLIENT = 0x41;
    private static final int CLASS_DEVICE = 0x80;
    private static final int CLASS_SUBDEVICE = 0x2080;
    private static final int CLASS_TSG = 0xa06c;
    private static final int CLASS_CHANNEL = 0xc86f;
    private static final int MADE_UP = 0x5c00f000;
    private static final int ROUNDS = 50;

    private final Object lock = new Object();
    private final RmControl rm = new RmControl();
    @TempDir
    private Path directory;
    private RmRig rig;

    /** What a process says. */
    private static final class Claims {
        private final int pid;
        private final int fd;
        private final int client;
        private ObservedProcess observed;

        Claims(final RmRig.App app, final int client) {
            pid = app.pid();
            fd = RmRig.controlDescriptors(pid).get(0);
            this.client = client;
            say(Observation.Kind.OPEN, 0, 0, 0, Observation.NVIDIA);
        }

        private void say(final Observation.Kind kind, final int parent, final int handle, final int classId,
            final int engine) {
            final Observation o = new Observation(kind, pid, ProcessStatus.startTicks(pid), true, System.nanoTime(), fd,
                pid, client, parent, handle, classId, engine, 0, System.nanoTime());
            observed = observed == null ? new ObservedProcess(o) : observed;
            observed.take(o);
        }

        void object(final int parent, final int handle, final int classId) {
            say(Observation.Kind.ALLOC, parent, handle, classId, classId == CLASS_TSG ? RmClient.ENGINE_GR0 : 0);
        }

        /** A client with a device. */
        void device(final int subdevice) {
            object(0, client, CLASS_CLIENT);
            object(client, subdevice - 1, CLASS_DEVICE);
            object(subdevice - 1, subdevice, CLASS_SUBDEVICE);
        }

        /** A channel group that runs. */
        void group(final int device, final int tsg, final int... channels) {
            object(device, tsg, CLASS_TSG);
            for (final int channel : channels) {
                object(tsg, channel, CLASS_CHANNEL);
            }
            say(Observation.Kind.SCHEDULED, 0, tsg, 0, 0);
        }
    }

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory);
    }

    @AfterEach
    void stop() throws Exception {
        if (rig != null) {
            rig.close();
        }
    }

    private RmProcess open(final RmRig.App app) {
        return RmProcess.open(app.pid(), new GpuIndex(List.of()), Scope.COMPUTE, rm);
    }

    /** The context as a search finds it, which believes nobody. */
    private RmContext found(final RmRig.App app) {
        final RmProcess p = open(app);
        assertEquals(RmProcess.Result.CHANGED, p.refresh(System.nanoTime(), lock));
        return p.context(0);
    }

    private RmContext believed(final RmRig.App app, final Claims claims) {
        final RmProcess p = open(app);
        for (int i = 0; i < ROUNDS; i++) {
            p.refreshObserved(System.nanoTime(), lock, x -> new OpenFiles(), claims.observed);
        }
        return p.context(0);
    }

    private static int compute(final RmContext c) {
        return c.tsgs().stream().filter(RmContext.Tsg::compute).findFirst().orElseThrow().handle();
    }

    private static Claims honest(final RmRig.App app, final RmContext c) {
        final Claims honest = new Claims(app, c.client());
        honest.device(c.subdevice());
        honest.group(c.subdevice() - 1, compute(c), RmRig.channels(c));
        return honest;
    }

    @Test
    void shouldBelieveWhatRmConfirmsAndNoObjectThatItDoesNotKnow() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext c = found(app);
        assertEquals(c.channelCount(), believed(app, honest(app, c)).channelCount());
        final Claims more = honest(app, c);
        more.group(c.subdevice() - 1, MADE_UP, MADE_UP + 1, MADE_UP + 2);
        more.object(compute(c), MADE_UP + 3, CLASS_CHANNEL);
        assertEquals(c.channelCount(), believed(app, more).channelCount());
        assertTrue(more.observed.isWhole());
    }

    @Test
    void shouldNotBelieveThatAnObjectIsAChannel() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext c = found(app);
        final Claims liar = new Claims(app, c.client());
        liar.device(c.subdevice());
        liar.group(c.subdevice() - 1, compute(c), c.subdevice(), c.subdevice() - 1);
        assertNull(believed(app, liar));
    }

    @Test
    void shouldNotControlTheClientOfAnotherProcess() throws Exception {
        final RmContext victim = found(rig.start());
        final RmRig.App attacker = rig.start("client", false, RmRig.appProgram());
        final Claims liar = new Claims(attacker, victim.client());
        liar.device(victim.subdevice());
        liar.group(victim.subdevice() - 1, compute(victim), RmRig.channels(victim));
        assertNull(believed(attacker, liar));
        assertFalse(liar.observed.isWhole(), "it is searched from now on");
        assertEquals(0, rig.stats().get("disables").asInt());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * What the memory of a process showed the observer is a claim. RM is asked for clients before they are used, and for
 * objects once it has refused one.
 */
@Timeout(300)
class ClaimsTest {
    private static final int MADE_UP = 0x5c00f000;
    private static final int CLIENT = 0xc1d00001;
    private static final int ROUNDS = 50;

    private final ControlCloser closer = ControlCloser.inPlace();
    private final RmControl rm = new RmControl();
    @TempDir
    private Path directory;
    private RmRig rig;

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
        assertEquals(RmProcess.Result.CHANGED, p.refresh(System.nanoTime(), closer));
        return p.context(0);
    }

    /** The context as its claims say, or as RM says after it has refused something. */
    private RmContext believed(final RmRig.App app, final Claims claims, final boolean refused) {
        final RmProcess p = open(app);
        if (refused) {
            p.invalidate();
        }
        return refreshed(p, claims);
    }

    private RmContext refreshed(final RmProcess p, final Claims claims) {
        for (int i = 0; i < ROUNDS; i++) {
            p.refreshObserved(System.nanoTime(), closer, x -> new OpenFiles(), claims.observed());
        }
        return p.context(0);
    }

    @Test
    void shouldBelieveWhatAProcessSaysOfItsOwnClientUntilRmRefusesIt() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext c = found(app);
        assertTrue(c.isConfirmed());
        final RmContext honest = believed(app, Claims.honest(app, c), false);
        assertEquals(c.channelCount(), honest.channelCount());
        assertFalse(honest.isConfirmed());
        final Claims more = Claims.honest(app, c);
        more.group(c.subdevice() - 1, MADE_UP, MADE_UP + 1, MADE_UP + 2);
        more.object(Claims.compute(c), MADE_UP + 3, Claims.CHANNEL);
        assertEquals(c.channelCount() + 3, believed(app, more, false).channelCount());
        final RmContext asked = believed(app, more, true);
        assertEquals(c.channelCount(), asked.channelCount());
        assertTrue(asked.isConfirmed());
        assertTrue(more.observed().isWhole());
    }

    @Test
    void shouldAskForClientAndSubdeviceAndForNothingElse() throws Exception {
        final RmRig.App app = rig.start();
        final Claims honest = Claims.honest(app, found(app));
        final int before = rig.stats().get("controls").asInt();
        assertNotNull(believed(app, honest, false));
        assertEquals(4, rig.stats().get("controls").asInt() - before);
    }

    @Test
    void shouldNotBelieveThatAnObjectIsAChannelOnceRmHasRefusedOne() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext c = found(app);
        final Claims liar = new Claims(app, c.client());
        liar.device(c.subdevice());
        liar.group(c.subdevice() - 1, Claims.compute(c), c.subdevice() - 1);
        assertFalse(believed(app, liar, false).isConfirmed());
        assertNull(believed(app, liar, true));
    }

    /** CUDA opens the device, makes a client, frees it, and closes the device; all that before it is looked at. */
    @Test
    void shouldForgetWhatWasMadeThroughDescriptorsThatAreClosed() throws Exception {
        final Process sleeps = new ProcessBuilder("sleep", "60").start();
        try {
            final Claims early = new Claims((int) sleeps.pid(), 3, CLIENT);
            early.device(CLIENT + 2);
            final RmProcess p = RmProcess.open((int) sleeps.pid(), new GpuIndex(List.of()), Scope.COMPUTE, rm);
            p.refreshObserved(System.nanoTime(), closer, x -> new OpenFiles(), early.observed());
            assertTrue(early.observed().isWhole(), "it is not searched");
            assertEquals(0, early.observed().objects().size());
            assertFalse(early.observed().hasNews());
            p.close();
        } finally {
            sleeps.destroyForcibly().waitFor();
        }
    }

    /** One of two descriptors is closed, and what was made through it is not freed: RM does not know it any more. */
    @Test
    void shouldSearchAProcessWhoseClientIsGoneWhenItIsAskedAgain() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext c = found(app);
        final Claims claims = new Claims(app, CLIENT + 0x7000);
        claims.device(CLIENT + 0x7002);
        claims.device(CLIENT + 0x7004);
        final RmProcess p = open(app);
        p.invalidate();
        p.refreshObserved(System.nanoTime(), closer, x -> new OpenFiles(), claims.observed());
        assertFalse(claims.observed().isWhole());
        p.refresh(System.nanoTime(), closer);
        assertEquals(c.channelCount(), p.context(0).channelCount());
    }

    /** A group says that it only copies, and then makes an object that computes. */
    @Test
    void shouldTakeAGroupForOneThatComputesAsSoonAsItDoes() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext c = found(app);
        final Claims late = new Claims(app, c.client());
        late.device(c.subdevice());
        late.copyingGroup(c.subdevice() - 1, Claims.compute(c), RmRig.channels(c));
        final RmProcess p = open(app);
        assertNull(refreshed(p, late));
        late.object(c.channel(0), MADE_UP, Claims.COMPUTE);
        assertEquals(c.channelCount(), refreshed(p, late).channelCount());
    }

    @Test
    void shouldNotControlTheClientOfAnotherProcess() throws Exception {
        final RmContext victim = found(rig.start());
        final RmRig.App attacker = rig.start("client", false, RmRig.appProgram());
        final Claims liar = new Claims(attacker, victim.client());
        liar.device(victim.subdevice());
        liar.group(victim.subdevice() - 1, Claims.compute(victim), RmRig.channels(victim));
        assertNull(believed(attacker, liar, false));
        assertFalse(liar.observed().isWhole(), "it is searched from now on");
        assertEquals(0, rig.stats().get("disables").asInt());
    }
}

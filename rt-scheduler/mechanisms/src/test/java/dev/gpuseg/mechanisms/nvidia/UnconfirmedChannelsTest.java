/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.observer.ToldObserver;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Mechanism nvidia with processes whose channels are what they claim, on the RM stand-in. */
@Timeout(120)
class UnconfirmedChannelsTest {
    private static final ContextRef[] NONE = {};
    private static final long LIVELY_MS = 30_000;
    private static final long QUIET_MS = 60;
    private static final int MADE_UP = 0x5c00f000;
    private static final int CHANNELS = 8;

    @TempDir
    private Path directory;
    private RmRig rig;
    private ToldObserver told;
    private NvidiaMechanism mechanism;

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory);
        told = new ToldObserver();
        mechanism = new NvidiaMechanism(0, Protection.DEFAULTS, told.observer());
    }

    @AfterEach
    void stop() throws Exception {
        if (mechanism != null) {
            mechanism.close();
        }
        if (told != null) {
            told.close();
        }
        assertEquals(0, stat("ran_while_disabled"));
        rig.close();
    }

    private int stat(final String name) throws Exception {
        return rig.stats().get(name).asInt();
    }

    private static RmContext found(final RmRig.App app) {
        final RmProcess p = RmProcess.open(app.pid(), new GpuIndex(List.of()), Scope.COMPUTE, new RmControl());
        assertEquals(RmProcess.Result.CHANGED, p.refresh(System.nanoTime(), ControlCloser.inPlace()));
        final RmContext c = p.context(0);
        p.close();
        return c;
    }

    private ContextRef attached(final RmRig.App app, final int id, final Claims claims, final int channels)
        throws Exception {
        claims.records().forEach(told::tell);
        told.awaitReceived();   // else it would be searched
        final ContextRef context = app.context(id);
        mechanism.attach(context);
        RmRig.await(channels + " channels", () -> mechanism.units(context) == channels);
        return context;
    }

    private int disable(final ContextRef... contexts) {
        return mechanism.apply(contexts, contexts.length, NONE, 0);
    }

    private int enable(final ContextRef... contexts) {
        return mechanism.apply(NONE, 0, contexts, contexts.length);
    }

    @Test
    void shouldControlWhatAProcessSaysOfItself() throws Exception {
        final RmRig.App app = rig.start();
        final ContextRef c = attached(app, 1, Claims.honest(app, found(app)), CHANNELS);
        assertEquals(0, disable(c));
        assertFalse(RmRig.advances(app, QUIET_MS), "works while disabled");
        assertEquals(0, enable(c));
        assertTrue(RmRig.advances(app, LIVELY_MS));
    }

    @Test
    void shouldShareACallOnceEachHasSucceededInOneOfItsOwn() throws Exception {
        final RmRig.App one = rig.start();
        final RmRig.App two = rig.start();
        final ContextRef a = attached(one, 1, Claims.honest(one, found(one)), CHANNELS);
        final ContextRef b = attached(two, 2, Claims.honest(two, found(two)), CHANNELS);
        assertEquals(0, disable(a, b));
        assertEquals(2, stat("disables"));
        assertEquals(CHANNELS, stat("largest_batch"));
        assertEquals(0, enable(a, b));
        assertEquals(1, stat("enables"));
        assertEquals(0, disable(a, b));
        assertEquals(3, stat("disables"));
        assertEquals(2 * CHANNELS, stat("largest_batch"));
        assertEquals(0, enable(a, b));
        assertEquals(0, stat("disabled_channels"));
    }

    /** Whatever the order, the honest one is disabled by the first call and the liar by a later one. */
    @Test
    void shouldRefuseFalseChannelsWithoutHarmToOthersAndAskThen() throws Exception {
        final RmRig.App honest = rig.start();
        final RmRig.App liar = rig.start();
        final RmContext has = found(liar);
        final Claims lies = Claims.honest(liar, has);
        lies.group(has.subdevice() - 1, MADE_UP, MADE_UP + 1, MADE_UP + 2);
        final ContextRef a = attached(honest, 1, Claims.honest(honest, found(honest)), CHANNELS);
        final ContextRef b = attached(liar, 2, lies, CHANNELS + 2);
        assertEquals(1, disable(b, a));
        assertEquals(ContextRef.SwitchResult.DONE, a.result());
        assertEquals(ContextRef.SwitchResult.FAILED, b.result());
        assertFalse(RmRig.advances(honest, QUIET_MS), "works while disabled");
        RmRig.await("the liar's channels are those that exist", () -> mechanism.units(b) == CHANNELS);
        assertEquals(0, disable(b, a));
        assertEquals(2 * CHANNELS, stat("disabled_channels"));
        assertFalse(RmRig.advances(liar, QUIET_MS), "works while disabled");
        assertEquals(0, enable(a, b));
        assertEquals(0, stat("disabled_channels"), "the driver counts disables");
        assertTrue(RmRig.advances(honest, LIVELY_MS));
        assertTrue(RmRig.advances(liar, LIVELY_MS));
    }

    /** It makes channels again and again: in the end RM is asked, and it shares calls as others do. */
    @Test
    void shouldAskAboutAProcessThatNeedsManyCallsOfItsOwn() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext has = found(app);
        final int[] all = RmRig.channels(has);
        final Claims grows = new Claims(app, has.client());
        grows.device(has.subdevice());
        grows.group(has.subdevice() - 1, Claims.compute(has), all[0]);
        final ContextRef c = attached(app, 1, grows, 1);
        assertEquals(0, disable(c));
        int before = 0;
        for (int i = 1; i < all.length; i++) {
            grows.object(Claims.compute(has), all[i], Claims.CHANNEL);
            told.tell(grows.records().get(grows.records().size() - 1));
            final int channels = i + 1;
            RmRig.await("one more", () -> mechanism.units(c) == channels);
            before = stat("controls");
            assertEquals(0, disable(c));
            assertTrue(i == all.length - 1 || stat("controls") - before < 2 * CHANNELS, "it was asked too early");
        }
        final int channelsAsked = before + 2 * CHANNELS;
        RmRig.await("RM is asked for class and parent of all channels", () -> asked(channelsAsked));
        assertEquals(CHANNELS, mechanism.units(c));
        assertEquals(0, enable(c));
        assertEquals(0, stat("disabled_channels"), "the driver counts disables");
    }

    private boolean asked(final int questions) {
        try {
            return stat("controls") >= questions;
        } catch (final Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** It makes more channels while it is disabled: those alone are disabled, the others stay so. */
    @Test
    void shouldKeepDisabledWhatIsWhenMoreIsClaimed() throws Exception {
        final RmRig.App app = rig.start();
        final RmContext has = found(app);
        final int[] all = RmRig.channels(has);
        final Claims grows = new Claims(app, has.client());
        grows.device(has.subdevice());
        grows.group(has.subdevice() - 1, Claims.compute(has), all[0], all[1]);
        final ContextRef c = attached(app, 1, grows, 2);
        assertEquals(0, disable(c));
        assertEquals(2, stat("disabled_channels"));
        final int before = grows.records().size();
        for (int i = 2; i < all.length; i++) {
            grows.object(Claims.compute(has), all[i], Claims.CHANNEL);
        }
        grows.records().subList(before, grows.records().size()).forEach(told::tell);
        RmRig.await("the others", () -> mechanism.units(c) == CHANNELS);
        final int enables = stat("enables");
        assertEquals(0, disable(c));
        assertEquals(CHANNELS, stat("disabled_channels"));
        assertEquals(enables, stat("enables"));
        assertEquals(0, enable(c));
        assertEquals(0, stat("disabled_channels"), "the driver counts disables");
        assertTrue(RmRig.advances(app, LIVELY_MS));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class LateAttachTest {
    private static final long LIMIT_NS = 20_000_000_000L;
    private static final GpuIndex GPUS = new GpuIndex(List.of());
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
        rig.close();
    }

    private RmProcess look(final RmRig.App app, final Scope scope) {
        final RmProcess p = RmProcess.open(app.pid(), GPUS, scope, rm);
        assertEquals(RmProcess.Result.CHANGED, p.refresh(System.nanoTime(), closer));
        return p;
    }

    @Test
    void shouldFindTheComputeChannelsOfAProcessThatLoadedNothing() throws Exception {
        final RmProcess p = look(rig.start(), Scope.COMPUTE);
        final RmContext c = p.context(0);
        assertEquals(8, c.channelCount());
        assertEquals(0x5c00001c, c.channel(0));
        assertEquals(0x5c000003, c.subdevice());
        assertEquals(4, c.tsgs().size());
        assertEquals(1, c.tsgs().stream().filter(RmContext.Tsg::compute).count());
        assertNull(p.context(1));
        assertEquals(RmProcess.Result.UNCHANGED, p.refresh(System.nanoTime(), closer));
        assertEquals(c, p.context(0));
        p.close();
        assertEquals(0, rig.stats().get("foreign_commands").asInt());
    }

    @Test
    void shouldFindCopyChannelsTooInScopeAll() throws Exception {
        final RmProcess p = look(rig.start(), Scope.ALL);
        assertEquals(20, p.context(0).channelCount());
        p.close();
    }

    @Test
    void shouldNeedFewQuestionsWhereTheProcessReports() throws Exception {
        final RmProcess p = look(rig.start("", true, RmRig.appProgram()), Scope.COMPUTE);
        assertEquals(8, p.context(0).channelCount());
        assertTrue(rm.controls() < 150, "a report names the handles, yet " + rm.controls() + " questions were asked");
        p.close();
    }

    @Test
    void shouldFindTheContextOfAForkedChild() throws Exception {
        final RmRig.App app = rig.start("fork", true, RmRig.appProgram());
        assertTrue(app.pid() != (int) app.process.pid());
        final RmProcess p = look(app, Scope.COMPUTE);
        assertEquals(8, p.context(0).channelCount());
        p.close();
    }

    @Test
    void shouldFindAContextMadeAfterTheFirstLook() throws Exception {
        final RmRig.App app = rig.start("again", false, RmRig.appProgram());
        final RmProcess p = look(app, Scope.COMPUTE);
        app.makeSecondContext();
        RmRig.await("second context works", () -> app.kernelsOfSecondContext() > 0);
        assertEquals(RmProcess.Result.CHANGED, p.refresh(System.nanoTime(), closer));
        assertEquals(16, p.context(0).channelCount());
        p.close();
    }

    @Test
    void shouldDescribeItselfForTheWatchdogInTheLayoutOfTheCHeader() throws Exception {
        final RmRig.App app = rig.start();
        final RmProcess p = look(app, Scope.COMPUTE);
        final RmContext c = p.context(0);
        final ByteBuffer b = ByteBuffer.wrap(c.heldPayload()).order(ByteOrder.LITTLE_ENDIAN);
        assertEquals(32 + 8 * 8, b.capacity());
        assertEquals(RmContext.HELD_VERSION, b.getInt(0));
        assertEquals(c.file().remoteFd(), b.getInt(4));
        assertEquals(c.client(), b.getInt(8));
        assertEquals(c.subdevice(), b.getInt(12));
        assertEquals(8, b.getInt(16));
        assertEquals(c.channelClient(7), b.getInt(32 + 7 * 8));
        assertEquals(c.channel(7), b.getInt(32 + 7 * 8 + 4));
        p.close();
    }

    @Test
    void shouldReleaseAClientWhenItsProcessIsDead() throws Exception {
        final RmRig.App app = rig.start();
        final RmProcess p = look(app, Scope.COMPUTE);
        app.process.destroyForcibly().waitFor();
        assertEquals(1, rig.stats().get("clients").asInt(), "our duplicate keeps it alive, as on the real driver");
        assertEquals(RmProcess.Result.GONE, p.refresh(System.nanoTime(), closer));
        p.close();
        // the stand-in is another process, and learns of the close a moment later
        int clients = rig.stats().get("clients").asInt();
        for (final long fromNs = System.nanoTime(); clients > 0 && System.nanoTime() - fromNs < LIMIT_NS;) {
            Thread.sleep(1);
            clients = rig.stats().get("clients").asInt();
        }
        assertEquals(0, clients);
    }

    /** Where many processes want the driver, its questions take seconds: others are served between them. */
    @Test
    void shouldLetOthersBeServedBetweenTheQuestionsOfASearch() throws Exception {
        final RmRig.App app = rig.start();
        final AtomicInteger served = new AtomicInteger();
        final RmProcess p = RmProcess.open(app.pid(), GPUS, Scope.COMPUTE, rm, served::incrementAndGet);
        final int before = rig.stats().get("controls").asInt();
        assertEquals(RmProcess.Result.CHANGED, p.refresh(System.nanoTime(), closer));
        final int asked = rig.stats().get("controls").asInt() - before;
        assertTrue(served.get() > asked / 2, served + " times in " + asked + " questions");
        p.close();
    }

    @Test
    void shouldFindNothingInAProcessWithoutTheDevice() throws Exception {
        final RmProcess p = RmProcess.open((int) ProcessHandle.current().pid(), GPUS, Scope.COMPUTE, rm);
        assertNotNull(p);
        assertEquals(RmProcess.Result.UNCHANGED, p.refresh(System.nanoTime(), closer));
        assertNull(p.context(0));
        p.close();
        assertNull(RmProcess.open(Integer.MAX_VALUE - 7, GPUS, Scope.COMPUTE, rm));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Protection;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A child has its parent's descriptors, and what its parent made through them is not its own. */
@Timeout(300)
class ForkedProcessesTest {
    private static final ContextRef[] NONE = new ContextRef[0];
    private static final long LIVELY_MS = 30_000;
    @TempDir
    private Path directory;
    private RmRig rig;
    private NvidiaMechanism mechanism;
    private final List<Integer> found = new CopyOnWriteArrayList<>();

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory);
        mechanism = new NvidiaMechanism(0, Protection.DEFAULTS);
    }

    @AfterEach
    void stop() throws Exception {
        mechanism.close();
        rig.close();
    }

    private ContextRef attached(final int id, final int pid) throws Exception {
        final ContextRef c = new ContextRef(id, 0, pid, ProcessStatus.startTicks(pid), "app" + id);
        mechanism.attach(c);
        return c;
    }

    @Test
    void shouldNotDisableTheParentWithItsForkedChild() throws Exception {
        final RmRig.App parent = rig.start("child", false, RmRig.appProgram());
        assertTrue(RmRig.controlDescriptors(parent.childPid()).size() > 0, "the child has the descriptors");
        final ContextRef child = attached(2, parent.childPid());
        final ContextRef own = attached(1, parent.pid());
        RmRig.await("channels of the parent", () -> mechanism.units(own) == 8);
        mechanism.processListener((pid, ticks, name) -> found.add(pid));
        final RmRig.App later = rig.start();   // when it is announced, all processes have been examined
        RmRig.await("the later one is announced", () -> found.contains(later.pid()));
        assertEquals(0, mechanism.units(child));
        assertEquals(0, mechanism.apply(new ContextRef[] {child}, 1, NONE, 0));
        assertEquals(ContextRef.SwitchResult.ABSENT, child.result());
        assertTrue(RmRig.advances(parent, LIVELY_MS), "the parent's channels are the parent's");
        assertFalse(found.contains(parent.childPid()), "a process without work of its own is not announced");
        assertEquals(0, rig.stats().get("disables").asInt());
    }

    @Test
    void shouldTellAnExecutedChildFromItsParent() throws Exception {
        final RmRig.App parent = rig.start("exec", false, RmRig.appProgram());
        final RmRig.App child = parent.child();
        RmRig.await("the executed program works", child::ready);
        assertEquals(parent.childPid(), child.pid());
        final ContextRef a = attached(1, parent.pid());
        final ContextRef b = attached(2, child.pid());
        RmRig.await("channels of both", () -> mechanism.units(a) == 8 && mechanism.units(b) == 8);
        assertEquals(0, mechanism.apply(new ContextRef[] {b}, 1, NONE, 0));
        assertTrue(RmRig.advances(parent, LIVELY_MS));
        final long before = child.kernels();
        Thread.sleep(60);
        assertTrue(child.kernels() <= before + 1, "the child is disabled");
        assertEquals(0, mechanism.apply(NONE, 0, new ContextRef[] {b}, 1));
        assertTrue(RmRig.advances(child, LIVELY_MS));
        parent.process.destroyForcibly().waitFor();
        assertTrue(RmRig.advances(child, LIVELY_MS), "it outlives its parent");
        child.stop();
    }

    @Test
    void shouldFindTwoContextsOfOneClientOnOneGpu() throws Exception {
        final RmRig.App app = rig.start("two", false, RmRig.appProgram());
        final ContextRef c = attached(1, app.pid());
        RmRig.await("the first", () -> mechanism.units(c) == 8);
        app.makeSecondContext();
        RmRig.await("both", () -> mechanism.units(c) == 16);
        assertEquals(0, mechanism.apply(new ContextRef[] {c}, 1, NONE, 0));
        assertEquals(16, rig.stats().get("disabled_channels").asInt());
        assertEquals(0, mechanism.apply(NONE, 0, new ContextRef[] {c}, 1));
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
        RmRig.await("both work", () -> app.kernelsOfSecondContext() > 2);
    }
}

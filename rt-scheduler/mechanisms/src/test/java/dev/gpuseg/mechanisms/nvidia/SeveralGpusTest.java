/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.Protection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** One mechanism per GPU of a machine with two. */
@Timeout(120)
class SeveralGpusTest {
    private static final ContextRef[] NONE = new ContextRef[0];
    private static final long QUIET_MS = 60;
    private static final long LIVELY_MS = 30_000;
    @TempDir
    private Path directory;
    private RmRig rig;
    private NvidiaMechanism first;
    private NvidiaMechanism second;

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory, 2);
        first = new NvidiaMechanism(0, Protection.DEFAULTS);
        second = new NvidiaMechanism(1, Protection.DEFAULTS);
    }

    @AfterEach
    void stop() throws Exception {
        first.close();
        second.close();
        final int foreign = rig.stats().get("foreign_commands").asInt();
        rig.close();
        assertEquals(0, foreign, "a command outside the whitelist reached the driver");
    }

    private RmRig.App startOn(final int gpu, final String mode) throws Exception {
        return rig.start(mode, false, RmRig.appProgram(), gpu);
    }

    private static ContextRef attached(final NvidiaMechanism mechanism, final int gpu, final int id,
        final RmRig.App app) {
        final ContextRef c = new ContextRef(id, gpu, app.pid(), ProcessStatus.startTicks(app.pid()), "app" + id);
        mechanism.attach(c);
        return c;
    }

    private static void awaitUnits(final NvidiaMechanism mechanism, final ContextRef c, final int units)
        throws InterruptedException {
        RmRig.await(units + " channels of " + c, () -> mechanism.units(c) == units);
    }

    private static int disable(final NvidiaMechanism mechanism, final ContextRef... contexts) {
        return mechanism.apply(contexts, contexts.length, NONE, 0);
    }

    private static int enable(final NvidiaMechanism mechanism, final ContextRef... contexts) {
        return mechanism.apply(NONE, 0, contexts, contexts.length);
    }

    @Test
    void shouldSwitchOnlyWhatWorksOnItsGpu() throws Exception {
        final RmRig.App here = startOn(0, "");
        final RmRig.App there = startOn(1, "");
        final ContextRef a = attached(first, 0, 1, here);
        final ContextRef b = attached(first, 0, 2, there);
        final ContextRef c = attached(second, 1, 3, there);
        awaitUnits(first, a, 8);
        awaitUnits(second, c, 8);
        assertEquals(0, first.units(b));
        assertEquals(0, disable(first, a, b));
        assertEquals(ContextRef.SwitchResult.DONE, a.result());
        assertEquals(ContextRef.SwitchResult.ABSENT, b.result());
        assertFalse(RmRig.advances(here, QUIET_MS));
        assertTrue(RmRig.advances(there, LIVELY_MS), "it works on the other GPU");
        assertEquals(0, disable(second, c));
        assertFalse(RmRig.advances(there, QUIET_MS));
        assertEquals(0, enable(first, a, b));
        assertTrue(RmRig.advances(here, LIVELY_MS));
        assertFalse(RmRig.advances(there, QUIET_MS));
        assertEquals(0, enable(second, c));
        assertTrue(RmRig.advances(there, LIVELY_MS));
        assertEquals(0, here.wrong() + there.wrong());
    }

    @Test
    void shouldDisableAProcessWithWorkOnBothGpusOnOneOfThemOnly() throws Exception {
        final RmRig.App app = startOn(0, "gpus");
        app.makeSecondContext();
        RmRig.await("it works on both", () -> app.kernelsOfSecondContext() > 1);
        final ContextRef a = attached(first, 0, 1, app);
        final ContextRef b = attached(second, 1, 2, app);
        awaitUnits(first, a, 8);
        awaitUnits(second, b, 8);
        assertEquals(0, disable(first, a));
        assertFalse(RmRig.advances(app, QUIET_MS));
        final long before = app.kernelsOfSecondContext();
        RmRig.await("GPU 1 continues", () -> app.kernelsOfSecondContext() > before + 2);
        assertEquals(0, disable(second, b));
        final long then = app.kernelsOfSecondContext();
        Thread.sleep(QUIET_MS);
        assertTrue(app.kernelsOfSecondContext() <= then + 1, "its context on GPU 1 is disabled too");
        assertEquals(0, enable(first, a));
        assertTrue(RmRig.advances(app, LIVELY_MS));
        assertEquals(0, enable(second, b));
        RmRig.await("both continue", () -> app.kernelsOfSecondContext() > then + 2);
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
    }

    @Test
    void shouldSwitchProcessesOfBothGpusByHand() throws Exception {
        final RmRig.App here = startOn(0, "");
        final RmRig.App there = startOn(1, "");
        assertEquals(0, rig.run("gpuseg-rm", "hold", "1", Integer.toString(here.pid()),
            Integer.toString(there.pid())));
        assertEquals(2, rig.stats().get("disables").asInt(), "one call for each GPU");
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
    }

    @Test
    void shouldGiveTurnsAndSlicesByHandAndGiveAllBack() throws Exception {
        final RmRig.App one = startOn(0, "");
        final RmRig.App other = startOn(0, "");
        final String[] both = {Integer.toString(one.pid()), Integer.toString(other.pid())};
        final int before = rig.stats().get("disables").asInt();
        final Process tool = rig.withDevice("gpuseg-rm", "turns", "5", "500", "60", both[0], both[1]).start();
        RmRig.await("slices are set", () -> rig.timesliceUs(one) == 500 && rig.timesliceUs(other) == 500);
        final long[] kernels = {one.kernels(), other.kernels()};
        RmRig.await("each has turns", () -> one.kernels() > kernels[0] + 2 && other.kernels() > kernels[1] + 2);
        tool.toHandle().destroy();   // SIGTERM; its output stays open
        final JsonNode said = new ObjectMapper().readTree(tool.inputReader().readLine());
        assertTrue(said.path("turns").asInt() >= 2, said.toString());
        assertTrue(rig.stats().get("disables").asInt() - before >= said.path("turns").asInt());
        assertEquals(0, rig.stats().get("disabled_channels").asInt());
        assertEquals(List.of(2048L, 2048L), List.of(rig.timesliceUs(one), rig.timesliceUs(other)));
    }

    @Test
    void shouldRefuseAGpuThatIsNotThere() {
        final String text = assertThrows(MechanismException.class,
            () -> new NvidiaMechanism(2, Protection.DEFAULTS)).getMessage();
        assertEquals("GPU 2 does not exist; the driver lists 2, numbered from 0", text);
    }

    @Test
    void shouldCountGpusInTheOrderOfTheBusAndOnlyThoseWithANode() throws Exception {
        final Path gpus = Files.createDirectory(directory.resolve("listed"));
        final Path dev = Files.createDirectory(directory.resolve("dev"));
        for (final String line : List.of("0000:cb:00.0 1", "0000:19:00.0 0", "0001:05:00.0 2")) {
            final Path gpu = Files.createDirectory(gpus.resolve(line.split(" ")[0]));
            Files.writeString(gpu.resolve("information"),
                "Model: \t\t X\nDevice Minor: \t " + line.split(" ")[1] + "\n");
        }
        assertEquals(3, GpuIndex.read(gpus, dev).count(), "no node at all: it cannot be told which are missing");
        Files.createFile(dev.resolve("nvidia1"));
        Files.createFile(dev.resolve("nvidia2"));
        final GpuIndex index = GpuIndex.read(gpus, dev);
        assertEquals(2, index.count());
        assertEquals(0, index.of(0xcb00));
        assertEquals(1, index.of(0x10500));
        assertEquals(GpuIndex.UNKNOWN, index.of(0x1900));
    }
}

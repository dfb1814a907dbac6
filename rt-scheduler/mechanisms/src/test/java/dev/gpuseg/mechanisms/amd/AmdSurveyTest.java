/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.MechanismVerdict;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which interface is chosen, and why the others are refused; no AMD hardware. */
class AmdSurveyTest {
    @TempDir
    private Path directory;
    private AmdRig rig;

    @BeforeEach
    void start() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "the capabilities of root are looked at");
        rig = new AmdRig(directory);
    }

    @AfterEach
    void stop() {
        if (rig != null) {
            rig.close();
        }
    }

    private ControlInterface chosen() {
        final AmdSurvey.Candidate best =
            AmdSurvey.best(AmdSurvey.candidates(rig.sysfs(), rig.sysfs().gpus().get(0)));
        return best == null ? null : best.by();
    }

    private String text() {
        final MechanismVerdict found = AmdSurvey.verdict(rig.sysfs());
        assertFalse(found.reason().contains("\n"), "one line");
        assertEquals(chosen() != null, found.usable());
        return found.reason();
    }

    private void says(final String... words) {
        final String text = text();
        for (final String word : words) {
            assertTrue(text.contains(word), text + " should say: " + word);
        }
    }

    @Test
    void shouldChooseThePatchedInterfaceWhereTheKernelHasIt() {
        assertEquals(ControlInterface.KFD, chosen());
        says("GPU 0 (gfx9.0.10, hws): by kfd", "level 3");
        assertFalse(text().contains("better ones"), text());
    }

    @Test
    void shouldLeaveItToTheApplicationsWithoutThePatch() {
        rig.table.putInt(AmdRig.HOLD_ABI, 0);
        assertEquals(ControlInterface.AGENT, chosen());
        says("by agent, UPDATE_QUEUE inside the applications that run with libgpuseg-preload.so, level 3",
            "better interfaces are not usable: kfd: /dev/gpuseg-kfd is missing; patch the kernel");
    }

    @Test
    void shouldRefuseNoHwsOnGenerationsThatCannotPreemptThere() throws Exception {
        rig.policy(2);
        for (final int gfx : new int[] {110_000, 110_501, 120_001}) {
            rig.gpu(1, AmdRig.GPU_ID, gfx);
            assertEquals(null, chosen());
            says("no interface is usable", "load amdgpu with sched_policy=0");
            final String refusal = assertThrows(MechanismException.class, () -> rig.mechanism(null, 100)).getMessage();
            assertTrue(refusal.contains("--mechanism gate"), refusal);
        }
        rig.gpu(1, AmdRig.GPU_ID, 100_300);
        assertEquals(ControlInterface.KFD, chosen());
        rig.policy(0);
        rig.gpu(1, AmdRig.GPU_ID, 110_000);
        assertEquals(AmdSysfs.Mode.MES, rig.sysfs().gpus().get(0).mode());
    }

    @Test
    void shouldChooseAnotherInterfaceWhereTheDeviceIsDeniedOrOfAnotherVersion() {
        rig.table.putInt(AmdRig.HOLD_DENIED, 1);
        assertEquals(ControlInterface.AGENT, chosen());
        says("cannot be opened (errno 1); run as root");
        rig.table.putInt(AmdRig.HOLD_DENIED, 0);
        rig.table.putInt(AmdRig.HOLD_ABI, 2);
        says("has ABI 2, this daemon 1");
        rig.table.putInt(AmdRig.HOLD_ABI, 1);
        rig.table.putInt(AmdRig.HOLD_REFUSED, 1);
        says("refuses to hold on this GPU (reason 1)");
    }

    @Test
    void shouldClaimNoMoreThanDrainingOnOldChips() throws Exception {
        rig.table.putInt(AmdRig.HOLD_ABI, 0);
        rig.gpu(1, AmdRig.GPU_ID, 80_002);
        assertEquals(AmdSysfs.Mode.NO_HWS, rig.sysfs().gpus().get(0).mode(), "Tonga, whatever the parameter says");
        says("by agent", "level 2");
        assertEquals(2, AmdSurvey.verdict(rig.sysfs()).level());
    }

    @Test
    void shouldSayThatThereIsNoGpu() throws Exception {
        rig.gpu(1, 0, 0);
        final MechanismVerdict found = AmdSurvey.verdict(rig.sysfs());
        assertFalse(found.usable());
        assertTrue(found.reason().contains("load amdgpu"), found.reason());
        assertThrows(MechanismException.class, () -> rig.mechanism(null, 100));
    }
}

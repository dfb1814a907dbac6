/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.TimePartitions;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import org.junit.jupiter.api.Test;

class SoundAnalysisTest {
    private static void namesEveryMechanismOfLevel3(final String reason) {
        for (final MechanismDescription row : MechanismCatalog.all()) {
            if (row.level() == Capabilities.INTERRUPT) {
                assertTrue(reason.contains(row.name()), row.name() + " in: " + reason);
            }
        }
    }

    @Test
    void shouldNameEveryMechanismThatWouldDo() {
        namesEveryMechanismOfLevel3(SoundAnalysis.of(FixedPriority.INSTANCE, Capabilities.OBSERVE, WaitMode.SUSPEND,
            CoreOrder.FP, MechanismCatalog.interrupting()).reason());
        final TimePartitions partitions = new TimePartitions(FixedPriority.INSTANCE, 100_000_000, 0, 1_000_000, false,
            new TimePartitions.Window[] {new TimePartitions.Window(1, 0, 40_000_000)});
        namesEveryMechanismOfLevel3(SoundAnalysis.of(partitions, Capabilities.GATE, WaitMode.SUSPEND,
            CoreOrder.FP, MechanismCatalog.interrupting()).reason());
        namesEveryMechanismOfLevel3(SoundAnalysis.of(FixedPriority.INSTANCE, Capabilities.GATE, WaitMode.SUSPEND,
            CoreOrder.FP, MechanismCatalog.interrupting()).boosted().reason());
    }

    @Test
    void shouldHaveNoneWhereOnlyLaunchesAreHeld() {
        final Capabilities gate = new Capabilities(Capabilities.GATE, 0, 0, 0, 0, 1, false, "process");
        final SoundAnalysis launch =
            ProvenAdmission.soundOn(FixedPriority.INSTANCE, gate.withHeldLaunches(), WaitMode.SUSPEND, CoreOrder.FP);
        assertFalse(launch.exists());
        namesEveryMechanismOfLevel3(launch.reason());
        assertTrue(launch.reason().contains("gate"), launch.reason());
        assertTrue(ProvenAdmission.soundOn(FixedPriority.INSTANCE, gate, WaitMode.SUSPEND, CoreOrder.FP).exists());
        final Capabilities both =
            new Capabilities(Capabilities.INTERRUPT, 0, 0, 0, 0, 1, false, "process").withHeldLaunches();
        assertTrue(ProvenAdmission.soundOn(FixedPriority.INSTANCE, both, WaitMode.SUSPEND, CoreOrder.FP).exists());
    }

    @Test
    void shouldHaveNoReasonWhereAnAnalysisHolds() {
        final SoundAnalysis fixed =
            SoundAnalysis.of(FixedPriority.INSTANCE, Capabilities.INTERRUPT, WaitMode.SUSPEND, CoreOrder.FP,
                MechanismCatalog.interrupting());
        assertTrue(fixed.exists());
        assertTrue(fixed.reason().isEmpty(), fixed.reason());
        final SoundAnalysis edf = SoundAnalysis.of(EarliestDeadlineFirst.INSTANCE, Capabilities.GATE, WaitMode.SUSPEND,
            CoreOrder.EDF, MechanismCatalog.interrupting());
        assertFalse(edf.exists());
        assertFalse(edf.reason().isEmpty());
    }
}

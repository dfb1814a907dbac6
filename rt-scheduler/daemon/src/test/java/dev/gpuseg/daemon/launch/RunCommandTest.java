/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import java.util.List;
import org.junit.jupiter.api.Test;

class RunCommandTest {
    private static final String HIGHER = "; `gpuseg doctor` says what a higher level needs";

    @Test
    void shouldSayTheLevelThatTheDeviceReachedAndWhereAHigherOneIsExplained() {
        final MechanismDescription amd = MechanismCatalog.get("amd");
        final String interrupts = RunCommand.enforcement(amd, Capabilities.INTERRUPT, "");
        assertEquals("amd (level 3): " + amd.consequence(), interrupts);
        final String ends = RunCommand.enforcement(amd, Capabilities.DEACTIVATE, "");
        assertEquals("amd (level 2): " + amd.consequence() + HIGHER, ends);
        assertTrue(RunCommand.enforcement(MechanismCatalog.get("gate"), Capabilities.GATE, ", chosen")
            .startsWith("gate (level 1, chosen): begins wait"));
    }

    @Test
    void shouldSayWhatAutoTakesAsItDoes() {
        final String help = String.join("\n", CommandLines.of(new RunCommand()).getCommandSpec().usageMessage()
            .footer());
        final List<String> taken = MechanismCatalog.all().stream().filter(MechanismDescription::automatic)
            .map(MechanismDescription::name).toList();
        assertTrue(help.contains("auto takes the first of " + String.join(" and ", taken) + " that works, or sim where "
            + "its virtual GPU runs"), help);
        assertFalse(taken.contains("launch"), taken.toString());
    }
}

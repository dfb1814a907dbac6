/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.Layouts;
import java.util.List;
import org.junit.jupiter.api.Test;

class DriverBranchesTest {
    @Test
    void shouldHaveAscendingBranchesThatTheControlsOfThisMechanismFit() {
        final List<DriverBranches.Range> ranges = DriverBranches.read();
        int before = 0;
        for (final DriverBranches.Range range : ranges) {
            assertTrue(before < range.first() && range.first() <= range.last(), range.toString());
            assertEquals(Layouts.RmDisableChannels.SIZE, range.disableBytes(), range.toString());
            assertFalse(range.privileged(), range + ": the mechanism's client is that of a user");
            assertTrue(range.disableFlags() > 0 && range.timesliceFlags() > 0, range.toString());
            before = range.last();
        }
        assertEquals(4, ranges.size());
    }

    @Test
    void shouldSayWhichBranchWasNotRead() {
        final String open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  ";
        assertEquals("", DriverBranches.remark(open + "580.159.04  Release Build  (a@b)"));
        assertEquals("", DriverBranches.remark("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun"));
        final String newer = DriverBranches.remark(open + "610.12  Release Build");
        assertTrue(newer.contains("branch 610 was not read") && newer.contains("gpuseg selftest"), newer);
        assertTrue(DriverBranches.remark(open + "530.41.03").contains("530"), "between two that were read");
        assertEquals("", DriverBranches.remark("NVRM version: unknown"));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class PrivilegeTest {
    @Test
    void shouldReadTheEffectiveSetAndNoOther() {
        final String status = "Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t0000000000080000\nCapBnd:\t0\n";
        assertTrue(Privilege.SYS_PTRACE.held(status));
        assertFalse(Privilege.SYS_ADMIN.held(status));
        assertTrue(Privilege.SYS_ADMIN.held("CapEff:\tffffffffffffffff\n"), "all bits set");
        assertFalse(Privilege.SYS_PTRACE.held("CapPrm:\tffffffffffffffff\n"), "no effective set");
    }
}

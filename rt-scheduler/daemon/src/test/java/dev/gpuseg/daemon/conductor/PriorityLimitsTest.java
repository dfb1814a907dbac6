/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PriorityLimitsTest {
    private static final int ALICE = 1001;
    private static final int BOB = 1002;
    private static final List<Integer> NO_GROUPS = List.of();

    @TempDir
    private Path directory;

    private PriorityLimits limits(final String text) throws IOException {
        Files.writeString(directory.resolve("50-site.conf"), text);
        return PriorityLimits.read(directory);
    }

    private void refused(final String line, final String... words) {
        final String message = assertThrows(IllegalArgumentException.class, () -> limits("\n" + line), line)
            .getMessage();
        assertTrue(message.contains("50-site.conf:2: "), message);
        for (final String word : words) {
            assertTrue(message.contains(word), message);
        }
    }

    @Test
    void shouldRefuseLinesThatItDoesNotUnderstand() {
        refused("alice", "1 words");
        refused("1001 priority 80 90", "4 words");
        refused("1001 prio 80", "limit is prio");
        refused("1001 priority 100", "highest priority is 100");
        refused("1001 priority -1", "highest priority is -1");
        refused("no-such-user priority 1", "user no-such-user", "use its number");
        refused("@no-such-group priority 1", "group no-such-group");
        assertThrows(IllegalArgumentException.class, () -> PriorityLimits.read(directory.resolve("missing")));
    }

    @Test
    void shouldAllowEverythingWithoutALine() throws IOException {
        assertNull(PriorityLimits.NONE.refuse(99, 0, ALICE, NO_GROUPS));
        assertTrue(limits("# nothing\n\n").isEmpty());
    }

    @Test
    void shouldPreferTheUserToGroupsAndGroupsToAll() throws IOException {
        final PriorityLimits limits = limits("*  priority 10  # most\n@7 priority 40\n@8 priority 60\n"
            + "1001 priority 5\n");
        assertEquals(10, limits.highest(PriorityLimits.Limit.PRIORITY, BOB, NO_GROUPS));
        assertEquals(40, limits.highest(PriorityLimits.Limit.PRIORITY, BOB, List.of(7)));
        assertEquals(60, limits.highest(PriorityLimits.Limit.PRIORITY, BOB, List.of(7, 8)));
        assertEquals(5, limits.highest(PriorityLimits.Limit.PRIORITY, ALICE, List.of(7, 8)));
        assertNull(limits.refuse(40, 0, BOB, List.of(7)));
        final String refused = limits.refuse(41, 0, BOB, List.of(7));
        assertTrue(refused.contains("priority is 41") && refused.contains("40 at most"), refused);
    }

    @Test
    void shouldLimitTasksWithoutABudgetApart() throws IOException {
        final PriorityLimits limits = limits("* unbudgeted 20");
        assertNull(limits.refuse(99, 1_000_000, ALICE, NO_GROUPS));
        assertNull(limits.refuse(20, 0, ALICE, NO_GROUPS));
        final String refused = limits.refuse(21, 0, ALICE, NO_GROUPS);
        assertTrue(refused.contains("without a budget") && refused.contains("declare a budget"), refused);
    }

    @Test
    void shouldLetLaterFilesAndLinesCountAndIgnoreOthers() throws IOException {
        Files.writeString(directory.resolve("90-last.conf"), "0 priority 3\n");
        Files.writeString(directory.resolve("99-off.conf.bak"), "0 priority 9\n");
        assertEquals(3, limits("root priority 1\nroot priority 2\n").highest(PriorityLimits.Limit.PRIORITY, 0,
            NO_GROUPS));
    }

    @Test
    void shouldKnowTheGroupsOfAProcess() {
        assertEquals(List.of(), ProcessStatus.groups(Integer.MAX_VALUE));
        assertTrue(ProcessStatus.groups(ProcessStatus.pid()).stream().allMatch(gid -> gid >= 0));
    }
}

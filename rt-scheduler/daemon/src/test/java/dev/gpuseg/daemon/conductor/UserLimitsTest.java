/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class UserLimitsTest {
    private static final int ALICE = 1001;
    private static final int BOB = 1002;
    private static final long MS = 1_000_000;
    private static final List<Integer> NO_GROUPS = List.of();

    @TempDir
    private Path directory;

    private UserLimits limits(final String text) throws IOException {
        Files.writeString(directory.resolve("50-site.conf"), text);
        return UserLimits.read(directory);
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
        refused("1001 prio 80", "limit is prio", "utilization");
        refused("1001 priority 100", "priority is 100", "0..99");
        refused("1001 priority -1", "priority is -1");
        refused("1001 priority 10%", "priority is 10%");
        refused("1001 budget 200", "budget is", "unit");
        refused("1001 budget 4000000ms", "budget is 4000000ms", "0ms..3600000ms");
        refused("1001 utilization 50", "utilization is 50", "0%..1600%");
        refused("1001 clients 257", "0..256");
        refused("1001 share 101%", "0%..100%");
        refused("1001 share 50", "share is 50");
        refused("no-such-user priority 1", "user no-such-user", "use its number");
        refused("@no-such-group priority 1", "group no-such-group");
        final Path missing = directory.resolve("missing");
        final String message = assertThrows(IllegalArgumentException.class, () -> UserLimits.read(missing))
            .getMessage();
        assertEquals("limits in " + missing + " cannot be read: there is no such file or directory; check the name",
            message);
    }

    @Test
    void shouldRefuseAFileWithoutEnd() throws IOException {
        final Path endless = Files.createSymbolicLink(directory.resolve("50-site.conf"), Path.of("/dev/zero"));
        final String message = assertThrows(IllegalArgumentException.class, () -> UserLimits.read(directory))
            .getMessage();
        assertTrue(message.contains(endless + " has more than 16777216 bytes"), message);
    }

    @Test
    void shouldGiveMembersHalfOfThePrioritiesAndABudgetUnlessAFileSaysOtherwise() throws IOException {
        for (final UserLimits builtIn : List.of(UserLimits.builtIn(), limits("# nothing\n\n"))) {
            assertEquals(49, builtIn.of(Limit.PRIORITY, ALICE, NO_GROUPS).value());
            assertEquals(200 * MS, builtIn.of(Limit.BUDGET, ALICE, NO_GROUPS).value());
            assertEquals(10_000 * MS, builtIn.of(Limit.HINT_LEAD, ALICE, NO_GROUPS).value());
            assertEquals(50, builtIn.of(Limit.SHARE, ALICE, NO_GROUPS).value());
            assertEquals(100_000, builtIn.of(Limit.RECORDS, ALICE, NO_GROUPS).value());
            assertTrue(builtIn.of(Limit.UTILIZATION, ALICE, NO_GROUPS).isUnlimited());
            assertTrue(builtIn.of(Limit.CONTEXTS, ALICE, NO_GROUPS).isUnlimited());
            assertEquals(17, builtIn.of(Limit.TASKS, ALICE, NO_GROUPS, 17).value());
        }
        final UserLimits.Bound changed = limits("* priority 80").of(Limit.PRIORITY, ALICE, NO_GROUPS);
        assertEquals(80, changed.value());
        assertEquals("limit priority of user 1001 is 80 (change " + directory.resolve("50-site.conf") + ":1)",
            changed.describe(ALICE, 90));
    }

    @Test
    void shouldNameTheLineThatHelpsWhereThereIsNone() throws IOException {
        final UserLimits limits = limits("");
        final String ending = "` into " + directory.resolve("site.conf") + ", restart the daemon)";
        assertEquals("limit priority of user 1001 is 49 (write `1001 priority 70" + ending,
            limits.of(Limit.PRIORITY, ALICE, NO_GROUPS).describe(ALICE, 70));
        assertEquals("limit budget of user 1001 is 200ms (write `1001 budget 350ms" + ending,
            limits.of(Limit.BUDGET, ALICE, NO_GROUPS).describe(ALICE, 350 * MS));
        assertEquals("limit share of user 1001 is 50% (write `1001 share unlimited" + ending,
            limits.of(Limit.SHARE, ALICE, NO_GROUPS).describe(ALICE, 101));
        assertEquals("limit clients of user 1001 is 64 (write `1001 clients 65" + ending,
            limits.of(Limit.CLIENTS, ALICE, NO_GROUPS, 64).describe(ALICE, 65));
        Files.writeString(directory.resolve("site.conf"), "1001 priority 70\n1001 share unlimited\n");
        assertEquals(70, UserLimits.read(directory).of(Limit.PRIORITY, ALICE, NO_GROUPS).value());
    }

    @Test
    void shouldGiveTheUserWhoIsServedTheLimitsOfTheRealTimeGroupAndNoOther() throws IOException {
        for (final UserLimits before : List.of(UserLimits.builtIn(), limits("@7 priority 30\n* budget 20ms\n"))) {
            final UserLimits serving = before.withRealTimeUser(ALICE);
            for (final Limit limit : List.of(Limit.PRIORITY, Limit.BUDGET, Limit.SHARE, Limit.RECORDS,
                Limit.HINT_LEAD)) {
                assertTrue(serving.of(limit, ALICE, List.of(7)).isUnlimited(), limit.word());
                assertEquals(before.of(limit, BOB, List.of(7)), serving.of(limit, BOB, List.of(7)));
            }
            assertEquals(64, serving.of(Limit.CLIENTS, ALICE, NO_GROUPS, 64).value());
            assertTrue(serving.describePriority(ALICE).startsWith("priorities up to 99 (a line `1001 priority N` in "),
                serving.describePriority(ALICE));
        }
        assertTrue(UserLimits.NONE.withRealTimeUser(ALICE).isEmpty());
    }

    @Test
    void shouldLetALineAboutTheUserWhoIsServedCount() throws IOException {
        final UserLimits serving = limits("1001 priority 60\n1001 budget 30ms\n").withRealTimeUser(ALICE);
        assertEquals(60, serving.of(Limit.PRIORITY, ALICE, NO_GROUPS).value());
        assertEquals(30 * MS, serving.of(Limit.BUDGET, ALICE, NO_GROUPS).value());
        assertTrue(serving.of(Limit.SHARE, ALICE, NO_GROUPS).isUnlimited());
        assertTrue(serving.describePriority(ALICE).startsWith("priorities up to 60 "));
    }

    @Test
    void shouldPreferTheUserToGroupsAndGroupsToAll() throws IOException {
        final UserLimits limits = limits("*  priority 10  # most\n@7 priority 40\n@8 priority 60\n"
            + "1001 priority 5\n@9 priority unlimited\n");
        assertEquals(10, limits.of(Limit.PRIORITY, BOB, NO_GROUPS).value());
        assertEquals(40, limits.of(Limit.PRIORITY, BOB, List.of(7)).value());
        assertEquals(60, limits.of(Limit.PRIORITY, BOB, List.of(7, 8)).value());
        assertTrue(limits.of(Limit.PRIORITY, BOB, List.of(7, 9)).isUnlimited());
        assertEquals(5, limits.of(Limit.PRIORITY, ALICE, List.of(7, 8)).value());
    }

    @Test
    void shouldLetLaterFilesAndLinesCountAndIgnoreOthers() throws IOException {
        Files.writeString(directory.resolve("90-last.conf"), "0 priority 3\n");
        Files.writeString(directory.resolve("99-off.conf.bak"), "0 priority 9\n");
        assertEquals(3, limits("root priority 1\nroot priority 2\n").of(Limit.PRIORITY, 0, NO_GROUPS).value());
    }

    @Test
    void shouldKnowTheMostThatAnybodyMayHave() throws IOException {
        assertEquals(64, UserLimits.builtIn().most(Limit.CLIENTS, 64));
        assertEquals(100, limits("1001 clients 100\n1002 clients 3\n").most(Limit.CLIENTS, 64));
    }

    @Test
    void shouldKnowTheGroupsOfAProcess() {
        assertEquals(List.of(), ProcessStatus.groups(Integer.MAX_VALUE));
        assertTrue(ProcessStatus.groups(ProcessStatus.pid()).stream().allMatch(gid -> gid >= 0));
    }
}

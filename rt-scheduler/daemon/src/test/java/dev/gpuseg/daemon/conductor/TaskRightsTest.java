/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.daemon.cgroup.GroupRule;
import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.PeerProcess;
import dev.gpuseg.ipc.platform.PidFd;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TaskRightsTest {
    private static final int OWN = 900;
    private static final int ALICE = 1001;
    private static final int ROBOT = 7;
    private static final long MS = 1_000_000;
    private static final PeerProcess MEMBER = client(ALICE, ALICE);

    @TempDir
    private Path directory;

    private TaskRights rights(final String text) throws IOException {
        Files.writeString(directory.resolve("50-site.conf"), text);
        return new TaskRights(UserLimits.read(directory), OWN, pid -> AskingGroup.FREE);
    }

    /** This process, as another user would have it, without groups but its own. */
    private static PeerProcess client(final int uid, final int gid) {
        final int pid = ProcessStatus.pid();
        return new PeerProcess(new PeerCredentials(pid, uid, gid), List.of(), PidFd.open(pid), true);
    }

    private static TaskOpen task(final int priority, final int gpuPriority, final long periodMs, final long budgetMs,
        final OverrunAction overrun) {
        return new TaskOpen(1, 1, "camera", priority, gpuPriority, 0, true, periodMs * MS, periodMs * MS,
            budgetMs * MS, overrun, 0, 0, 0, 0);
    }

    private static TaskOpen task(final int priority, final long periodMs, final long budgetMs) {
        return task(priority, priority, periodMs, budgetMs, OverrunAction.DEMOTE);
    }

    private static void refused(final TaskRights.Verdict verdict, final String... words) {
        assertNotNull(verdict.refusal());
        for (final String word : words) {
            assertTrue(verdict.refusal().contains(word), verdict.refusal());
        }
        final int longest = ("task \"" + "x".repeat(63) + "\": " + verdict.refusal()).length();
        assertTrue(longest < 256 || verdict.refusal().contains(".conf:"), longest + " bytes do not fit into a reply");
    }

    private static TaskRights inGroup(final int priority) {
        return new TaskRights(UserLimits.builtIn(), OWN, pid -> new AskingGroup("/kubepods.slice/pod1.slice",
            new GroupRule("/kubepods.slice/pod1.slice/**", 100, 0, 0, false, priority)));
    }

    @Test
    void shouldLetTheRuleOfTheControlGroupDecideInPlaceOfTheUsersLimit() {
        assertNull(inGroup(80).judge(task(80, 100, 10), MEMBER, 0).refusal(), "the user's limit is 49");
        refused(inGroup(40).judge(task(41, 100, 10), MEMBER, 0), "priority is 41",
            "the rule for control group /kubepods.slice/pod1.slice/** allows 40");
        refused(inGroup(80).judge(task(1, 81, 100, 10, OverrunAction.DEMOTE), MEMBER, 0), "priority is 81");
        assertNull(inGroup(0).judge(task(0, 0, 0), MEMBER, 0).refusal(), "best effort is always allowed");
        assertEquals(100, inGroup(80).judge(task(80, 100, 90), MEMBER, 0).request().share(), "pods share uids");
    }

    @Test
    void shouldTellTheShareOfAMemberAndRefuseWhatDeclaresMore() throws IOException {
        assertEquals(50, rights("").judge(task(40, 0, 0), MEMBER, 0).request().share());
        assertEquals(50, rights("").judge(task(40, 100, 50), MEMBER, 0).request().share());
        refused(rights("").judge(task(40, 100, 51), MEMBER, 0), "51% of a GPU", "limit share of user 1001 is 50%");
        refused(rights("").judge(task(40, 100, 40), MEMBER, 100_001), "limit share");
        assertNull(rights("").judge(task(40, 100, 0), MEMBER, 0).refusal(), "a budget by default is not declared");
        assertEquals(30, rights("* utilization 30%\n").judge(task(40, 100, 10), MEMBER, 0).request().share());
        assertEquals(100, rights("1001 share unlimited\n").judge(task(40, 100, 90), MEMBER, 0).request().share());
        assertEquals(100, rights("").judge(task(40, 100, 90), client(0, 0), 0).request().share());
    }

    /** Root of a container is root to the daemon, too, unless it has a user namespace. */
    @Test
    void shouldTreatRootInARuledGroupAsAUser() {
        final PeerProcess root = client(0, 0);
        refused(inGroup(0).judge(task(1, 100, 10), root, 0), "allows 0");
        final TaskRights.Verdict unbudgeted = inGroup(50).judge(task(50, 100, 0), root, 0);
        assertEquals(200 * MS, unbudgeted.request().budgetNs(), "it gets the budget of everybody");
        assertNull(inGroup(GroupRule.NOT_SAID).judge(task(99, 0, 0), root, 0).refusal());
    }

    @Test
    void shouldGiveTheGroupsThatAPeerHadWhenItConnected() throws IOException {
        final int pid = ProcessStatus.pid();
        try (PeerProcess robot = new PeerProcess(new PeerCredentials(pid, ALICE, ALICE), List.of(ROBOT),
            PidFd.open(pid), true)) {
            assertNull(rights("@7 priority 60").judge(task(60, 0, 10), robot, 0).refusal());
        }
    }

    /** As many containers as like have root; none may take what another one or the machine needs. */
    @Test
    void shouldBoundTheConnectionsOfRootInARuledGroupByItsRule() {
        assertEquals("/kubepods.slice/pod1.slice/**", inGroup(0).owner(client(0, 0)));
        assertNull(inGroup(GroupRule.NOT_SAID).owner(client(0, 0)));
        assertNull(inGroup(GroupRule.NOT_SAID).owner(client(OWN, OWN)));
        assertEquals(ALICE, inGroup(0).owner(MEMBER));
    }

    @Test
    void shouldRefuseMembersAPriorityAbove49AndSayWhereThatIsChanged() throws IOException {
        final TaskRights rights = new TaskRights(UserLimits.builtIn(), OWN, pid -> AskingGroup.FREE);
        refused(rights.judge(task(50, 100, 10), MEMBER, 0), "priority is 50", "limit priority of user 1001 is 49",
            "write `1001 priority 50` into /etc/gpuseg/limits.d/site.conf, restart the daemon");
        refused(rights.judge(task(10, 99, 100, 10, OverrunAction.DEMOTE), MEMBER, 0), "`1001 priority 99`");
        refused(rights.judge(task(40, 0, 350), MEMBER, 0), "`1001 budget 350ms`");
        refused(rights.judge(task(40, 100, 51), MEMBER, 0), "`1001 share 51%`");
        assertNull(rights.judge(task(49, 100, 10), MEMBER, 0).refusal());
        refused(rights("@7 priority 60").judge(task(61, 0, 10), client(ALICE, ROBOT), 0), "50-site.conf:1");
    }

    @Test
    void shouldLimitNeitherRootNorItsOwnUserNorBestEffort() throws IOException {
        final TaskRights rights = rights("* priority 0\n* budget 1ms\n* utilization 0%\n* tasks 0\n");
        for (final int uid : new int[] {0, OWN}) {
            final TaskOpen asked = task(99, 0, 0);
            assertSame(asked, rights.judge(asked, client(uid, uid), 0).request());
            assertEquals(5, rights.quota(Limit.TASKS, client(uid, uid), 5).value());
        }
        final TaskOpen bestEffort = task(0, 0, 0);
        assertSame(bestEffort, rights.judge(bestEffort, MEMBER, 0).request());
        assertEquals(0, rights.quota(Limit.TASKS, MEMBER, 5).value());
    }

    @Test
    void shouldGiveAMemberWithoutABudgetOneThatEndsItsSegment() throws IOException {
        final TaskRights rights = new TaskRights(UserLimits.builtIn(), OWN, pid -> AskingGroup.FREE);
        final TaskOpen given = rights.judge(task(40, 0, 0), MEMBER, 0).request();
        assertEquals(200 * MS, given.budgetNs());
        assertEquals(OverrunAction.DEMOTE, given.overrun());
        assertEquals(OverrunAction.DEMOTE,
            rights.judge(task(40, 40, 0, 0, OverrunAction.NOTIFY), MEMBER, 0).request().overrun());
        assertEquals(OverrunAction.SUSPEND,
            rights.judge(task(40, 40, 0, 0, OverrunAction.SUSPEND), MEMBER, 0).request().overrun());
        assertEquals(10_000 * MS, given.hintLeadNs());
        assertEquals(7 * MS, rights.judge(task(40, 0, 7), MEMBER, 0).request().budgetNs());
    }

    @Test
    void shouldRefuseBudgetsThatAreTooLongOrEndNothing() throws IOException {
        final TaskRights rights = new TaskRights(UserLimits.builtIn(), OWN, pid -> AskingGroup.FREE);
        refused(rights.judge(task(40, 0, 201), MEMBER, 0), "budget is 201ms", "limit budget", "200ms");
        refused(rights.judge(task(40, 40, 0, 10, OverrunAction.NOTIFY), MEMBER, 0), "notify", "use demote");
        assertNull(rights("* budget unlimited").judge(task(40, 40, 0, 10, OverrunAction.NOTIFY), MEMBER, 0).refusal());
        refused(rights("* unbudgeted 20").judge(task(21, 0, 0), MEMBER, 0), "without a budget", "declare a budget");
        assertNull(rights("* unbudgeted 20").judge(task(20, 0, 0), MEMBER, 0).refusal());
    }

    @Test
    void shouldAddUpWhatTheTasksOfAUserDeclare() throws IOException {
        final TaskRights rights = rights("* utilization 50%");
        assertEquals(200_000, TaskRights.load(task(40, 100, 20)));
        assertEquals(0, TaskRights.load(task(0, 100, 20)));
        assertNull(rights.judge(task(40, 100, 20), MEMBER, 300_000).refusal());
        refused(rights.judge(task(40, 100, 20), MEMBER, 300_001), "51% of a GPU", "limit utilization", "50%");
        refused(rights.judge(task(40, 0, 20), MEMBER, 0), "declare both");
        assertNull(rights.judge(task(40, 3_600_000, 200), MEMBER, 0).refusal(), "one hour does not overflow");
    }
}

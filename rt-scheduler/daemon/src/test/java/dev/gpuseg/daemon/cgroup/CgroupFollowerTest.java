/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(30)
class CgroupFollowerTest {
    private static final long S = 1_000_000_000L;

    @TempDir
    private Path proc;
    private final Map<Integer, GroupRule> groups = new HashMap<>();
    private final Map<Integer, Integer> groupOfPid = new HashMap<>();
    private final Map<Integer, Boolean> protectedPids = new HashMap<>();
    private final List<String> calls = new ArrayList<>();
    private final GroupSink sink = new GroupSink() {
        @Override
        public void define(final int groupId, final GroupRule rule) {
            groups.put(groupId, rule);
            calls.add("define " + groupId);
        }

        @Override
        public void assign(final ProcessView process, final int groupId, final boolean isProtected) {
            assertTrue(groups.containsKey(groupId), "defined before it is used");
            groupOfPid.put(process.pid(), groupId);
            protectedPids.put(process.pid(), isProtected);
            calls.add("assign " + process.pid() + " " + groupId);
        }
    };

    private void place(final int pid, final String content) throws IOException {
        Files.writeString(Files.createDirectories(proc.resolve(Integer.toString(pid))).resolve("cgroup"), content);
    }

    private static ProcessView process(final int pid) {
        return new ProcessView(pid, 1, "p" + pid, true, List.of(pid));
    }

    private CgroupFollower follower(final GroupRule... rules) {
        return new CgroupFollower(new CgroupTree(proc), LiveRules.fixed(new GroupRules(List.of(rules))),
            new GpuTimeAccount(), sink);
    }

    @Test
    void shouldReadTheUnifiedHierarchyAndNoOther() throws IOException {
        final CgroupTree tree = new CgroupTree(proc);
        place(1, "0::/robot.slice/camera.service\n");
        place(2, "9:name=systemd:/a\n1:cpu:/b\n0::/\n");
        place(3, "4:memory:/only/v1\n");
        place(4, "0::evil\n");
        assertEquals("/robot.slice/camera.service", tree.pathOf(1));
        assertEquals("/", tree.pathOf(2));
        assertEquals("", tree.pathOf(3), "no unified hierarchy");
        assertEquals("", tree.pathOf(4), "not a path");
        assertEquals("", tree.pathOf(5), "no such process");
        assertNull(tree.mountPoint());
        Files.createDirectories(proc.resolve("self"));
        Files.writeString(proc.resolve("self/mountinfo"), "25 1 0:22 / /sys rw - sysfs sysfs rw\n"
            + "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
        assertEquals(Path.of("/sys/fs/cgroup"), tree.mountPoint());
    }

    @Test
    void shouldSeeThisMachinesOwnGroup() throws IOException {
        final boolean unified = Files.readString(Path.of("/proc/self/cgroup")).contains("0::/");
        assumeTrue(unified, "this kernel has no unified hierarchy");
        assertTrue(new CgroupTree(Path.of("/proc")).pathOf((int) ProcessHandle.current().pid()).startsWith("/"));
    }

    @Test
    void shouldFollowAProcessThatMovesAndApplyTheRuleOfItsNewGroup() throws IOException {
        final CgroupFollower follower = follower(new GroupRule("/display/**", 100, 0, 0, true),
            new GroupRule("/robot/*", 400, 0, 0, false), new GroupRule("/user/**", 50, 20_000_000, 100_000_000, false));
        place(1, "0::/robot/camera\n");
        place(2, "0::/user/1000/app\n");
        place(3, "0::/elsewhere\n");
        final List<ProcessView> all = List.of(process(1), process(2), process(3));
        follower.look(all, 0);
        assertEquals(400, groups.get(groupOfPid.get(1)).weight());
        assertEquals(20_000_000, groups.get(groupOfPid.get(2)).quotaNs());
        assertEquals(GroupRule.DEFAULT, groups.get(groupOfPid.get(3)));
        calls.clear();
        follower.look(all, S);
        assertTrue(calls.isEmpty(), () -> "nothing moved: " + calls);
        place(1, "0::/display\n");
        follower.look(all, 2 * S);
        assertTrue(protectedPids.get(1));
        assertFalse(protectedPids.get(2));
        assertEquals(List.of("/display", "/user/1000/app", "/elsewhere"),
            follower.members().stream().map(CgroupFollower.Membership::path).toList());
        place(1, "0::/robot/camera\n");
        follower.look(all, 3 * S);
        assertFalse(protectedPids.get(1), "protection is lost with the group");
    }

    @Test
    void shouldApplyAnotherFileOfRulesToGroupsThatAreKnown() throws IOException {
        final Path file = Files.writeString(proc.resolve("rules.yaml"), "version: 1\ngroups:\n"
            + "  - {path: /pod/a, weight: 300}\n  - {path: /pod/b, protect: true}\n");
        final LiveRules rules = LiveRules.of(file);
        final CgroupFollower follower = new CgroupFollower(new CgroupTree(proc), rules, new GpuTimeAccount(), sink);
        place(1, "0::/pod/a\n");
        place(2, "0::/pod/b\n");
        place(3, "0::/other\n");
        final List<ProcessView> all = List.of(process(1), process(2), process(3));
        follower.look(all, 0);
        calls.clear();
        replace(file, "version: 1\ngroups:\n  - {path: /pod/a, weight: 7}\n");
        follower.look(all, S);
        assertEquals(7, groups.get(groupOfPid.get(1)).weight());
        assertFalse(protectedPids.get(2), "its rule is gone");
        assertEquals(List.of(1, 0), List.of(rules.generation(), (int) calls.stream().filter(call ->
            call.endsWith(" " + groupOfPid.get(3))).count()), "nothing is said of a group whose rule is the same");
        calls.clear();
        replace(file, "version: 1\ngroups:\n  - {path: pod, weight: 7}\n");
        follower.look(all, 2 * S);
        assertTrue(calls.isEmpty(), () -> "a file that is refused changes nothing: " + calls);
        assertTrue(rules.problem().contains("must begin with a slash") && rules.problem().contains("still hold"),
            rules::problem);
        Files.delete(file);
        follower.look(all, 3 * S);
        assertTrue(calls.isEmpty() && rules.problem().contains("rules.yaml"), rules::problem);
        replace(file, "version: 1\ngroups:\n  - {path: /pod/**, priority: 3}\n");
        follower.look(all, 4 * S);
        assertEquals("", rules.problem());
        assertEquals(3, groups.get(groupOfPid.get(2)).priority());
    }

    /** As a program should: nobody sees half of it. */
    private void replace(final Path file, final String text) throws IOException {
        final Path fresh = Files.writeString(file.resolveSibling("fresh"), text);
        Files.move(fresh, file, java.nio.file.StandardCopyOption.ATOMIC_MOVE);
    }

    @Test
    void shouldGiveEachPathAGroupOfItsOwnAndUseAnIdAgainWhenItIsEmpty() throws IOException {
        final CgroupFollower follower = follower(new GroupRule("/user/**", 50, 0, 0, false));
        place(1, "0::/user/a\n");
        place(2, "0::/user/b\n");
        place(3, "0::/user/a\n");
        follower.look(List.of(process(1), process(2), process(3)), 0);
        assertNotEquals(groupOfPid.get(1), groupOfPid.get(2));
        assertEquals(groupOfPid.get(1), groupOfPid.get(3));
        follower.look(List.of(process(2)), S);
        place(4, "0::/user/c\n");
        follower.look(List.of(process(2), process(4)), 2 * S);
        assertEquals(groupOfPid.get(1), groupOfPid.get(4), "the id of /user/a is free");
    }

    @Test
    void shouldTreatAReusedPidAsANewProcess() throws IOException {
        final CgroupFollower follower = follower();
        place(1, "0::/a\n");
        follower.look(List.of(process(1)), 0);
        calls.clear();
        follower.look(List.of(new ProcessView(1, 2, "other", true, List.of(9))), S);
        assertTrue(calls.stream().anyMatch(call -> call.startsWith("assign 1")), calls::toString);
    }

    @Test
    void shouldLookAgainAfterThePeriodThatItStates() throws IOException {
        final CgroupFollower follower = follower();
        assertTrue(follower.isDue(0));
        follower.look(List.of(process(1)), 0);
        assertFalse(follower.isDue(CgroupFollower.PERIOD_NS / 2));
        assertTrue(follower.isDue(CgroupFollower.PERIOD_NS));
        final List<ProcessView> many = new ArrayList<>();
        for (int i = 1; i <= CgroupFollower.QUICK_PROCESSES + 1; i++) {
            many.add(process(i));
        }
        follower.look(many, 0);
        assertFalse(follower.isDue(CgroupFollower.SLOW_PERIOD_NS / 2));
        assertTrue(follower.isDue(CgroupFollower.SLOW_PERIOD_NS));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.daemon.cgroup.CgroupTree;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.tools.bench.GpuShare;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Real processes in real control groups, where this machine lets us make some. */
@Timeout(300)
@Tag("long")
class CgroupSystemTest {
    private static final int ATTEMPTS = 5;
    private static final int MEASURED_MS = 2_000;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Path top;
    private String topPath;

    @BeforeEach
    void makeGroups() throws IOException {
        final Path mount = new CgroupTree(Path.of("/proc")).mountPoint();
        assumeTrue(mount != null, "cgroup v2 is not mounted");
        topPath = "/gpuseg-test-" + ProcessHandle.current().pid();
        top = mount.resolve(topPath.substring(1));
        try {
            Files.createDirectories(top.resolve("robot"));
            Files.createDirectories(top.resolve("user"));
        } catch (final IOException e) {
            assumeTrue(false, "no control group can be made below " + mount + ": " + e.getMessage());
        }
    }

    @AfterEach
    void removeGroups() throws IOException, InterruptedException {
        if (top == null) {
            return;
        }
        final Path mount = top.getParent();
        for (final Path group : new Path[] {top.resolve("robot"), top.resolve("user"), top}) {
            if (Files.exists(group)) {
                SystemRig.await(group + " is empty", 20_000, () -> isEmptied(group, mount));
                Files.delete(group);
            }
        }
    }

    /** A process may end before it is moved. */
    private static boolean isEmptied(final Path group, final Path into) {
        final List<String> pids = processes(group);
        for (final String pid : pids) {
            try {
                move(Long.parseLong(pid), into);
            } catch (final IllegalStateException e) {
                if (processes(group).contains(pid)) {
                    throw e;
                }
            }
        }
        return pids.isEmpty();
    }

    private static List<String> processes(final Path group) {
        try {
            return Files.readAllLines(group.resolve("cgroup.procs"));
        } catch (final IOException e) {
            throw new IllegalStateException(group + " cannot be read", e);
        }
    }

    private static void move(final long pid, final Path group) {
        try {
            Files.writeString(group.resolve("cgroup.procs"), Long.toString(pid));
        } catch (final IOException e) {
            throw new IllegalStateException("process " + pid + " cannot be moved to " + group, e);
        }
    }

    private JsonNode group(final String path) {
        for (final JsonNode group : rig.status().path("cgroups").path("groups")) {
            if (path.equals(group.path("path").asText())) {
                return group;
            }
        }
        return com.fasterxml.jackson.databind.node.MissingNode.getInstance();
    }

    @Test
    void shouldAccountByGroupFollowAMoveAndProtectByPath() throws Exception {
        final Path rules = Files.writeString(rig.file("groups.yaml"), "version: 1\ngroups:\n"
            + "  - {path: \"" + topPath + "/robot/**\", weight: 400, protect: true}\n"
            + "  - {path: \"" + topPath + "/user/**\", weight: 50, cap: {quota: 20ms, period: 100ms}}\n");
        rig.gpu();
        rig.daemon("--cgroup-rules", rules.toString());
        final Child robot = rig.task("robot", 0, "10ms", "gpu:0ms+4ms", "120s");
        final Child user = rig.task("user", 0, "10ms", "gpu:0ms+4ms", "120s");
        move(robot.pid(), top.resolve("robot"));
        move(user.pid(), top.resolve("user"));
        final long movedNs = System.nanoTime();
        SystemRig.await("both are followed", 20_000, () -> group(topPath + "/robot").path("processes").asInt() == 1
            && group(topPath + "/user").path("processes").asInt() == 1);
        final long followedMs = (System.nanoTime() - movedNs) / 1_000_000;
        System.out.println("moves were followed after " + followedMs + " ms");
        SystemRig.await("both have GPU time", 20_000, () ->
            group(topPath + "/robot").path("gpu_ns").asLong() > 1_000_000
            && group(topPath + "/user").path("gpu_ns").asLong() > 1_000_000);
        assertEquals(400, group(topPath + "/robot").path("weight").asInt());
        assertEquals(20_000_000, group(topPath + "/user").path("cap_quota_ns").asLong());
        assertTrue(rig.status().path("cgroups").path("fairness").path("jain").asDouble() > 0);
        final StringOutput table = StringOutput.of("cgroups", "--dir", rig.directory().root().toString());
        assertTrue(table.out().contains(topPath + "/robot") && table.out().contains("Jain"), table.text());
        // what is protected stays on the hardware while a real-time segment runs
        final Child holder = rig.task("holder", 90, "120s", "gpu:0ms+120s", "120s");
        // its cap takes the other off now and then too: only beside the holder it stays off
        SystemRig.await("the other is off the hardware", 20_000, () -> "running".equals(rig.state("holder"))
            && rig.held() == 1);
        for (final JsonNode context : rig.status().path("gpus").get(0).path("contexts")) {
            assertEquals(context.path("pid").asLong() != user.pid(), context.path("wanted_on").asBoolean(),
                context::toString);
        }
        // and is not once it has moved away
        move(robot.pid(), top.resolve("user"));
        SystemRig.await("both are off the hardware", 20_000, () -> rig.held() == 2);
        assertTrue(holder.isAlive());
        assertEquals(2, group(topPath + "/user").path("processes").asInt());
    }

    /** 1:3, and that the heavier one has at least one and a half times as much: the machine may be busy. */
    @Test
    void shouldShareTheGpuByTheWeightsOfTheGroups() throws Exception {
        final Path rules = Files.writeString(rig.file("groups.yaml"), "version: 1\ngroups:\n"
            + "  - {path: \"" + topPath + "/user/**\", weight: 100}\n"
            + "  - {path: \"" + topPath + "/robot/**\", weight: 300}\n");
        rig.realTime("--cgroup-rules", rules.toString());
        final Child light = rig.task("light", 0, "60s", "gpu:0ms+60s", "60s");
        final Child heavy = rig.task("heavy", 0, "60s", "gpu:0ms+60s", "60s");
        move(light.pid(), top.resolve("user"));
        move(heavy.pid(), top.resolve("robot"));
        SystemRig.await("both are followed", 20_000, () -> group(topPath + "/robot").path("processes").asInt() == 1
            && group(topPath + "/user").path("processes").asInt() == 1);
        SystemRig.await("both have begun", 20_000, () -> rig.counter("grants")
            + rig.counter("optimistic_begins") >= 2);
        Attempts.of(ATTEMPTS, () -> {
            final long fromNs = System.nanoTime();
            Thread.sleep(MEASURED_MS);
            final long toNs = System.nanoTime();
            Thread.sleep(300);   // the slice in progress is logged when it ends
            final double lightShare = GpuShare.of(rig.file("spans"), light.pid(), fromNs, toNs);
            final double heavyShare = GpuShare.of(rig.file("spans"), heavy.pid(), fromNs, toNs);
            return lightShare > 0 && heavyShare >= 1.5 * lightShare ? null
                : "weight 100: " + lightShare + ", weight 300: " + heavyShare + " of the simulated GPU";
        });
    }
}

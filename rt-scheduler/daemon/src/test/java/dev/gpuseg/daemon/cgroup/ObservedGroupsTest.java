/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.mechanisms.observer.GroupAccount;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ObservedGroupsTest {
    @TempDir
    private Path mounted;

    @Test
    void shouldAddTheAccountOfEachGroupThatExists() throws IOException {
        final Path robot = Files.createDirectory(mounted.resolve("robot"));
        final long inode = ((Number) Files.getAttribute(robot, "unix:ino")).longValue();
        final ObjectNode node = JsonNodeFactory.instance.objectNode().put("mounted", mounted.toString());
        node.withArray("groups").addObject().put("path", "/robot");
        node.withArray("groups").addObject().put("path", "/gone");
        ObservedGroups.add(node, id -> id == inode ? new GroupAccount(id, 1, 10, 20, 30, 40, 50, 60) : null);
        assertEquals(10, node.path("groups").path(0).path("gpu_ioctls").asLong());
        assertEquals(20, node.path("groups").path(0).path("gpu_ioctl_ns").asLong());
        assertEquals(30, node.path("groups").path(0).path("gpu_opens").asLong());
        assertEquals(40, node.path("groups").path(0).path("gpu_contexts").asLong());
        assertEquals(50, node.path("groups").path(0).path("gpu_lifetime_ns").asLong());
        assertEquals(60, node.path("groups").path(0).path("gpu_context_lifetime_ns").asLong());
        assertFalse(node.path("groups").path(1).has("gpu_ioctls"));
    }

    @Test
    void shouldAddNothingWithoutAUnifiedHierarchy() {
        final ObjectNode node = JsonNodeFactory.instance.objectNode().put("mounted", "");
        node.withArray("groups").addObject().put("path", "");
        ObservedGroups.add(node, id -> new GroupAccount(id, 1, 10, 20, 30, 40, 50, 60));
        assertFalse(node.path("groups").path(0).has("gpu_ioctls"));
    }
}

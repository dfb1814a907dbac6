/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.mechanisms.observer.GroupAccount;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.LongFunction;

/**
 * Adds to the control groups of the status what the observer counted of them: ioctls on GPU devices, the time inside
 * them, opens, contexts made, and the lifetime of processes and contexts that ended. Stateless.
 */
public final class ObservedGroups {
    private ObservedGroups() {
    }

    /**
     * Adds the accounts of the groups that are shown.
     *
     * @param cgroups  what {@link Cgroups#status} returned
     * @param accounts by inode of a group's directory; null for a group of which nothing was seen
     */
    public static void add(final ObjectNode cgroups, final LongFunction<GroupAccount> accounts) {
        final String mounted = cgroups.path("mounted").asText();
        if (mounted.isEmpty()) {
            return;
        }
        for (final JsonNode group : cgroups.path("groups")) {
            final GroupAccount account = accounts.apply(inode(Path.of(mounted + group.path("path").asText())));
            if (account != null) {
                ((ObjectNode) group).put("gpu_ioctls", account.ioctls()).put("gpu_ioctl_ns", account.ioctlNs())
                    .put("gpu_opens", account.opens()).put("gpu_contexts", account.contexts())
                    .put("gpu_lifetime_ns", account.lifetimeNs())
                    .put("gpu_context_lifetime_ns", account.contextNs());
            }
        }
    }

    /** 0 if the group is gone: no directory has that number. */
    private static long inode(final Path directory) {
        try {
            return ((Number) Files.getAttribute(directory, "unix:ino")).longValue();
        } catch (final IOException e) {
            return 0;
        }
    }
}

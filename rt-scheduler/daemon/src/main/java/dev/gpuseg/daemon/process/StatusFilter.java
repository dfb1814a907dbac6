/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.function.Predicate;

/** Takes out of a status what belongs to other users: their clients, tasks and processes. */
final class StatusFilter {
    private StatusFilter() {
    }

    /**
     * Keeps what belongs to one user, or to those of his processes that may be shown. Daemon, GPUs and counters stay:
     * they name no user.
     *
     * @param root what the dispatcher shows, changed in place
     * @param uid  the user
     * @param shown which of his processes
     */
    static void keepOwn(final ObjectNode root, final int uid, final IntPredicate shown) {
        final Set<Integer> clients = new HashSet<>();
        final Set<Integer> processes = new HashSet<>();
        for (final JsonNode client : root.path("clients")) {
            if (client.path("uid").asInt() == uid && shown.test(client.path("pid").asInt())) {
                clients.add(client.path("client").asInt());
                processes.add(client.path("pid").asInt());
            }
        }
        keep(root.path("clients"), client -> clients.contains(client.path("client").asInt()));
        keep(root.path("tasks"), task -> clients.contains(task.path("client").asInt()));
        final Set<Integer> tasks = new HashSet<>();
        root.path("tasks").forEach(task -> tasks.add(task.path("id").asInt()));
        for (final JsonNode gpu : root.path("gpus")) {
            keep(gpu.path("contexts"), context -> processes.contains(context.path("pid").asInt()));
            if (!tasks.contains(gpu.path("running_task").asInt())) {
                ((ObjectNode) gpu).remove("running_task");
            }
        }
    }

    private static void keep(final JsonNode list, final Predicate<JsonNode> own) {
        if (list instanceof ArrayNode array) {
            for (final Iterator<JsonNode> each = array.elements(); each.hasNext();) {
                if (!own.test(each.next())) {
                    each.remove();
                }
            }
        }
    }
}

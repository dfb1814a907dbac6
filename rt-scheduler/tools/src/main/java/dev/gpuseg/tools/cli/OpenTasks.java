/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.analysis.io.Spelling;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** The open tasks of a daemon's status, by what a user calls them. */
final class OpenTasks {
    private static final int PID_DIGITS = 9;

    private OpenTasks() {
    }

    /**
     * Whether a process is meant, and not a task.
     *
     * @param status the answer to {@code status}
     * @param called name or id of a task, or pid of a process
     * @return the pid; 0 if it is the name or the id of a task, or no number
     */
    static int pid(final JsonNode status, final String called) {
        if (called.isEmpty() || called.length() > PID_DIGITS || !called.chars().allMatch(c -> c >= '0' && c <= '9')) {
            return 0;
        }
        for (final JsonNode task : status.path("tasks")) {
            if (called.equals(task.path("name").asText()) || called.equals(task.path("id").asText())) {
                return 0;
            }
        }
        return Integer.parseInt(called);
    }

    /**
     * Looks tasks up.
     *
     * @param status the answer to {@code status}
     * @param called name or id of a task, or pid of a process
     * @return at least one task
     * @throws IllegalStateException if none is open, with what is
     */
    static List<JsonNode> named(final JsonNode status, final String called) {
        for (final String key : List.of("name", "id", "pid")) {
            final List<JsonNode> found = new ArrayList<>();
            status.path("tasks").forEach(task -> {
                if (called.equals(task.path(key).asText())) {
                    found.add(task);
                }
            });
            if (!found.isEmpty()) {
                return found;
            }
        }
        final Set<String> names = new TreeSet<>();
        status.path("tasks").forEach(task -> names.add(task.path("name").asText()));
        throw new IllegalStateException("no open task or process \"" + called + "\"; " + (names.isEmpty()
            ? "no task is open" : Spelling.advice(called, names)));
    }
}

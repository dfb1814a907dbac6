/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Priority;
import dev.gpuseg.core.TimePartitions;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.ipc.platform.PrivateFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The admitted tasks on disk: replaced as a whole at every change, readable by the daemon's user alone, and believed
 * only if every value in it is in range.
 */
final class AdmittedFile {
    private static final int VERSION = 1;
    private static final long BYTES_MAX = 4L << 20;
    private static final int TASKS_MAX = 4096;
    private static final int GPUS_MAX = 16;
    private static final long UID_MAX = 0xffff_ffffL;
    private static final int NAME_CHARS_MAX = 63;
    private static final long DURATION_MAX_NS = 3_600_000_000_000L;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path path;
    private final PrivateFile file;

    AdmittedFile(final Path path) {
        this.path = path;
        file = new PrivateFile(path, BYTES_MAX);
    }

    /**
     * Writes it anew.
     *
     * @param tasks what is admitted
     * @throws IOException if that fails; the former content stays
     */
    void write(final List<Admitted> tasks) throws IOException {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("version", VERSION);
        root.putArray("tasks");
        for (final Admitted task : tasks) {
            if (task.source() != Admitted.Source.UNKNOWN) {
                root.withArray("tasks").add(node(task));
            }
        }
        file.write((root + "\n").getBytes(StandardCharsets.UTF_8));
    }

    private static ObjectNode node(final Admitted task) {
        final TaskOpen request = task.request();
        return JsonNodeFactory.instance.objectNode().put("name", request.name())
            .put("uid", Integer.toUnsignedLong(task.uid()))
            .put("priority", request.priority()).put("gpu_priority", request.gpuPriority()).put("gpu", request.gpu())
            .put("optimistic", request.optimistic()).put("period_ns", request.periodNs())
            .put("deadline_ns", request.deadlineNs()).put("budget_ns", request.budgetNs())
            .put("on_overrun", request.overrun().label()).put("boost", request.boost())
            .put("partition", request.partition());
    }

    /**
     * Reads what an earlier daemon wrote.
     *
     * @param untilNs how long the places are kept
     * @return one place for each task; empty if there is no file
     * @throws IOException if the file is not one that a daemon of this user wrote: one line with the reason
     */
    List<Admitted> read(final long untilNs) throws IOException {
        final byte[] content = file.read();
        if (content == null) {
            return List.of();
        }
        final JsonNode root;
        try {
            root = JSON.readTree(content);
        } catch (final JsonProcessingException e) {
            throw new IOException(path + " is not JSON (" + e.getOriginalMessage() + "); it is ignored", e);
        }
        final JsonNode tasks = root.path("tasks");
        if (root.path("version").asInt() != VERSION || !tasks.isArray() || tasks.size() > TASKS_MAX) {
            throw new IOException(path + " is not of version " + VERSION + "; it is ignored");
        }
        final List<Admitted> places = new ArrayList<>();
        for (final JsonNode node : tasks) {
            places.add(place(node, untilNs));
        }
        return places;
    }

    private Admitted place(final JsonNode node, final long untilNs) throws IOException {
        final String name = node.path("name").asText("");
        if (name.isBlank() || name.length() > NAME_CHARS_MAX || name.chars().anyMatch(Character::isISOControl)) {
            throw new IOException(path + ": a task's name is \"" + name.replaceAll("\\p{Cntrl}", "?")
                + "\"; the file is ignored");
        }
        final int priority = (int) number(node, name, "priority", Priority.MAX);
        final int gpuPriority = (int) number(node, name, "gpu_priority", Priority.MAX);
        final TaskOpen request = new TaskOpen(0, 0, name, priority, gpuPriority,
            (int) number(node, name, "gpu", GPUS_MAX - 1), node.path("optimistic").asBoolean(true),
            number(node, name, "period_ns", DURATION_MAX_NS), number(node, name, "deadline_ns", DURATION_MAX_NS),
            number(node, name, "budget_ns", DURATION_MAX_NS)).with(priority, gpuPriority, overrun(node, name))
            .withBoost(node.has("boost") ? (int) number(node, name, "boost", Priority.MAX) : 0)
            .withPartition(node.has("partition")
                ? (int) number(node, name, "partition", TimePartitions.PARTITIONS_MAX) : 0);
        return new Admitted(request, (int) number(node, name, "uid", UID_MAX), 0, 0, 0, priority,
            gpuPriority, Admitted.Source.UNKNOWN, untilNs);
    }

    /** Files of the first daemons do not have it. */
    private OverrunAction overrun(final JsonNode node, final String name) throws IOException {
        try {
            return node.has("on_overrun") ? OverrunAction.named(node.path("on_overrun").asText())
                : OverrunAction.DEMOTE;
        } catch (final IllegalArgumentException e) {
            throw new IOException(path + ": task \"" + name + "\": on_overrun is " + node.path("on_overrun")
                + "; the file is ignored", e);
        }
    }

    private long number(final JsonNode node, final String name, final String key, final long max) throws IOException {
        final JsonNode value = node.path(key);
        if (!value.isIntegralNumber() || !value.canConvertToLong() || value.asLong() < 0 || value.asLong() > max) {
            throw new IOException(path + ": task \"" + name + "\": " + key + " is " + value
                + ", not a number of 0.." + max + "; the file is ignored");
        }
        return value.asLong();
    }

    Path path() {
        return path;
    }
}

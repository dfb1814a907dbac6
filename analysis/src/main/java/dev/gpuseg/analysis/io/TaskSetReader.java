/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.MissLimit;
import dev.gpuseg.analysis.model.Overload;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Reads task sets in YAML or JSON (one file) and as JSON lines (a batch). The format is described in
 * {@code analysis/README.md} and by the schema {@code task-set.schema.json} beside this class's package.
 *
 * <p>Not thread-safe; cheap to create.
 */
public final class TaskSetReader {
    /** Largest single file and largest batch line, in bytes. */
    public static final long MAX_BYTES = 16L << 20;

    private static final Set<String> SET_KEYS = Set.of("version", "id", "description", "platform", "mode", "tasks",
        "chains");
    private static final Set<String> TASK_KEYS = Set.of("name", "cpu", "gpu", "period", "deadline", "jitter",
        "blocking", "priority", "gpu_priority", "best_effort", "process", "segments", "description", "max_period",
        "weakly_hard", "overload", "reserve");
    private static final Set<String> MISS_KEYS = Set.of("misses", "jobs");
    private static final Set<String> OVERLOAD_KEYS = Set.of("period", "typical");
    private static final Set<String> SEGMENT_KEYS = Set.of("cpu", "gpu");
    private static final Set<String> GPU_SEGMENT_KEYS = Set.of("host", "device", "total", "bursts");
    private static final List<String> MODES = List.of(WaitMode.SUSPEND.word(), WaitMode.BUSY.word());

    /** Loaded on first use: batches do without it. */
    private static final class SchemaHolder {
        private static final TaskSetSchema SCHEMA = new TaskSetSchema();

        private SchemaHolder() {
        }
    }

    private final NodeReader files =
        new NodeReader("task set", MAX_BYTES, "put many sets one a line and use --batch");
    private final PlatformReader platforms;

    /** A reader that looks for platform profiles beside the file that names them. */
    public TaskSetReader() {
        this(List.of());
    }

    /**
     * A reader.
     *
     * @param profileDirectories where {@code NAME.yaml} or {@code NAME.json} of a named platform profile may be,
     *                           searched after the directory of the file
     */
    public TaskSetReader(final List<Path> profileDirectories) {
        platforms = new PlatformReader(profileDirectories);
    }

    /**
     * Reads one file; the content decides whether it is JSON (first character an opening brace) or YAML.
     *
     * @param path a task-set file
     * @return the task set
     * @throws InvalidFileException if the content is refused, with file, line, thing, value and remedy
     * @throws IOException          if the file cannot be read
     */
    public TaskSet read(final Path path) throws IOException {
        return check(files.read(path), path.toString(), path.toAbsolutePath().getParent());
    }

    /**
     * Where the constants of the platform that was read last come from.
     *
     * @return null before the first set
     */
    public PlatformOrigin platformOrigin() {
        return platforms.origin();
    }

    /**
     * Reads a platform alone: the keys that a task set has under {@code platform}, as a measured profile has them.
     *
     * @param path a profile in YAML or JSON
     * @return the platform; its profile is the name of the file without its suffix
     * @throws InvalidFileException if the content is refused, with file, line, thing, value and remedy
     * @throws IOException          if the file cannot be read
     */
    public Platform readPlatform(final Path path) throws IOException {
        return platforms.readProfile(path).withProfile(defaultId(path.toString()));
    }

    /**
     * Reads one task set from text.
     *
     * @param content YAML or JSON
     * @param name    what refusals call it
     * @return the task set
     * @throws InvalidFileException if the content is refused
     */
    public TaskSet readText(final String content, final String name) throws InvalidFileException {
        return check(files.read(content, name), name, null);
    }

    /**
     * Reads one line of a batch.
     *
     * @param line       one JSON object
     * @param name       name of the batch file, for refusals
     * @param lineNumber its line, from 1
     * @return the task set; its id is {@code set-LINE} where the line gives none
     * @throws InvalidFileException if the content is refused
     */
    public TaskSet readLine(final String line, final String name, final int lineNumber) throws InvalidFileException {
        return toTaskSet(files.readLine(line, name, lineNumber), "set-" + lineNumber, null);
    }

    private TaskSet check(final Node root, final String name, final Path directory) throws InvalidFileException {
        final TaskSet set = toTaskSet(root, defaultId(name), directory);
        // The checks above name line, task and remedy; the schema, which editors use too, must agree with them.
        final String complaint = SchemaHolder.SCHEMA.firstComplaint(root.toJson());
        if (complaint != null) {
            throw root.refusal("does not conform to the task-set schema: " + complaint);
        }
        return set;
    }

    private TaskSet toTaskSet(final Node root, final String defaultId, final Path directory)
        throws InvalidFileException {
        root.requireMapping(SET_KEYS);
        final Node version = root.get("version");
        if (version != null && !(version.kind() == Node.Kind.INTEGER && version.text().equals("1"))) {
            throw version.refuse("is " + version.show() + "; this reader knows version: 1");
        }
        final Node idNode = root.get("id");
        final String id = idNode == null ? defaultId : idNode.word();
        final Node tasksNode = root.required("tasks");
        final List<Node> taskNodes = tasksNode.requireList("task", "a list of tasks");
        final Node modeNode = root.get("mode");
        final WaitMode mode = modeNode != null && modeNode.oneOf(MODES).equals(WaitMode.BUSY.word()) ? WaitMode.BUSY
            : WaitMode.SUSPEND;
        final Platform platform = platforms.toPlatform(root.required("platform"), directory);
        final List<Task> tasks = new ArrayList<>(taskNodes.size());
        final Map<String, Integer> lines = new HashMap<>();
        for (final Node node : taskNodes) {
            final Task task = toTask(node, platform);
            final Integer earlier = lines.put(task.name(), node.line());
            if (earlier != null) {
                throw node.refusal(node.what() + ": the name occurs already in line " + earlier
                    + "; names must be unique");
            }
            tasks.add(task);
        }
        final TaskSet set;
        try {
            set = new TaskSet(id, platform, mode, tasks);
        } catch (final InvalidModelException e) {
            throw tasksNode.refusal(e.getMessage());
        }
        return ChainReader.withChains(set, root, taskNodes);
    }

    private static Task toTask(final Node node, final Platform platform) throws InvalidFileException {
        if (node.kind() != Node.Kind.MAPPING) {
            throw node.refuse("is " + node.show() + "; write a mapping like {name: camera, cpu: 1, period: 80ms, …}");
        }
        final Node nameNode = node.get("name");
        if (nameNode == null) {
            throw node.refusal(node.what() + ": name is missing; give each task a name");
        }
        final String name = nameNode.taskName();
        node.callIt("task \"" + name + "\"").requireMapping(TASK_KEYS);
        final Node periodNode = node.required("period");
        final long period = periodNode.durationNs();
        if (period == 0) {
            throw periodNode.refuse("is 0; it must be positive, like 10ms");
        }
        final Node deadlineNode = node.get("deadline");
        final long deadline = deadlineNode == null ? period : deadlineNode.durationNs();
        if (deadline > period || deadline == 0) {
            throw deadlineNode.refuse("is " + deadlineNode.show() + "; it must be positive and at most the period "
                + Durations.format(period));
        }
        final Node bestEffortNode = node.get("best_effort");
        final boolean bestEffort = bestEffortNode != null && bestEffortNode.flag();
        final Node cpuNode = node.get("cpu");
        final int cpu = cpuNode == null ? 0 : cpuNode.integer(1, platform.cpus());
        final Node gpuNode = node.get("gpu");
        final int gpu = gpuNode == null ? 0 : gpuNode.integer(0, Math.max(0, platform.gpus().size() - 1));
        final Node processNode = node.get("process");
        final MissLimit missLimit = toMissLimit(node.get("weakly_hard"));
        final Overload overload = toOverload(node.get("overload"));
        final Node reserveNode = node.get("reserve");
        final Node priorityNode = node.get("priority");
        final Node gpuPriorityNode = node.get("gpu_priority");
        if (bestEffort && (priorityNode != null || gpuPriorityNode != null)) {
            final Node wrong = priorityNode != null ? priorityNode : gpuPriorityNode;
            throw wrong.refuse("is " + wrong.show() + " but best_effort is true; leave one of them out");
        }
        if (priorityNode != null && priorityNode.show().equals("'0'")) {
            throw priorityNode.refuse("is 0; real-time priorities are 1..99, and best effort is best_effort: true "
                + "without a priority");
        }
        final int priority = priorityNode == null ? 0 : priorityNode.integer(1, Task.MAX_PRIORITY);
        final int gpuPriority = gpuPriorityNode == null ? priority : gpuPriorityNode.integer(1, Task.MAX_PRIORITY);
        final List<Node> segmentNodes = node.required("segments").requireList("segment",
            "a list like [{cpu: 2ms}, {gpu: {host: 1ms, device: 4ms}}]");
        final List<Segment> segments = new ArrayList<>(segmentNodes.size());
        for (final Node segmentNode : segmentNodes) {
            segments.add(toSegment(segmentNode));
        }
        try {
            final Task task = new Task(name, cpu, gpu, period, deadline, optionalNs(node, "jitter"),
                optionalNs(node, "blocking"), priority, gpuPriority, bestEffort, processNode == null ? null
                    : processNode.word(), missLimit, overload, reserveNode == null ? 0
                    : reserveNode.percent(1, SpaceLimits.MAX_RESERVE), segments);
            if (task.gpuSegmentCount() > 0 && platform.gpus().isEmpty()) {
                throw node.refusal(node.what() + ": it has GPU segments but the platform gives no epsilon; write the "
                    + "update delay of the GPU in platform, like epsilon: 1ms");
            }
            return task;
        } catch (final InvalidModelException e) {
            throw node.refusal(e.getMessage());
        }
    }

    private static MissLimit toMissLimit(final Node node) throws InvalidFileException {
        if (node == null) {
            return null;
        }
        node.requireMapping(MISS_KEYS, "{misses: 1, jobs: 10}");
        final int jobs = node.required("jobs").integer(1, MissLimit.MAX_JOBS);
        return new MissLimit(node.required("misses").integer(0, jobs - 1), jobs);
    }

    private static Overload toOverload(final Node node) throws InvalidFileException {
        if (node == null) {
            return null;
        }
        node.requireMapping(OVERLOAD_KEYS, "{period: 2s, typical: 60}");
        final Node typical = node.get("typical");
        return new Overload(node.required("period").durationNs(), typical == null ? 0 : typical.integer(0, 99));
    }

    private static Segment toSegment(final Node node) throws InvalidFileException {
        node.requireMapping(SEGMENT_KEYS);
        if (node.keys().size() != 1) {
            throw node.refuse("has " + node.keys().size() + " keys; write either cpu or gpu");
        }
        final Node cpuNode = node.get("cpu");
        if (cpuNode != null) {
            return new Segment.Cpu(cpuNode.durationNs());
        }
        final Node gpuNode = node.get("gpu").requireMapping(GPU_SEGMENT_KEYS);
        final long host = optionalNs(gpuNode, "host");
        final long device = gpuNode.required("device").durationNs();
        final Node totalNode = gpuNode.get("total");
        final Node burstsNode = gpuNode.get("bursts");
        final int bursts = burstsNode == null ? 1 : burstsNode.integer(1, Segment.Gpu.MAX_BURSTS);
        try {
            return (totalNode == null ? new Segment.Gpu(host, device)
                : new Segment.Gpu(host, device, totalNode.durationNs())).withBursts(bursts);
        } catch (final InvalidModelException e) {
            throw (totalNode == null ? gpuNode : totalNode).refusal(node.what() + ": " + e.getMessage());
        }
    }

    private static long optionalNs(final Node parent, final String key) throws InvalidFileException {
        final Node node = parent.get(key);
        return node == null ? 0 : node.durationNs();
    }

    private static String defaultId(final String name) {
        final String last = name.substring(name.replace('\\', '/').lastIndexOf('/') + 1);
        final int dot = last.indexOf('.');
        final String stem = dot > 0 ? last.substring(0, dot) : last;
        return stem.isBlank() ? "task-set" : stem;
    }
}

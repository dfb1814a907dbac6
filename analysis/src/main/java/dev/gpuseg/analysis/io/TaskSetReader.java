/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.yaml.snakeyaml.LoaderOptions;

/**
 * Reads task sets in YAML or JSON (one file) and as JSON lines (a batch). The format is described in
 * {@code analysis/README.md} and by the schema {@code task-set.schema.json} beside this class's package.
 *
 * <p>Not thread-safe; cheap to create.
 */
public final class TaskSetReader {
    /** Largest single file and largest batch line, in bytes. */
    public static final long MAX_BYTES = 16L << 20;

    private static final Set<String> SET_KEYS = Set.of("version", "id", "description", "platform", "mode", "tasks");
    private static final Set<String> PLATFORM_KEYS = Set.of("cpus", "gpus", "epsilon", "alpha", "theta", "timeslice",
        "optimistic", "profile", "description", "measured", "stall", "amd");
    private static final Set<String> GPU_KEYS = Set.of("epsilon", "alpha", "theta", "timeslice", "stall", "amd");
    private static final Set<String> STALL_KEYS = Set.of("length", "period");
    private static final Set<String> TASK_KEYS = Set.of("name", "cpu", "gpu", "period", "deadline", "jitter",
        "blocking",
        "priority", "gpu_priority", "best_effort", "segments", "description");
    private static final Set<String> SEGMENT_KEYS = Set.of("cpu", "gpu");
    private static final Set<String> GPU_SEGMENT_KEYS = Set.of("host", "device", "total");

    /** Loaded on first use: batches do without it. */
    private static final class SchemaHolder {
        private static final TaskSetSchema SCHEMA = new TaskSetSchema();

        private SchemaHolder() {
        }
    }

    private final JsonFactory json;
    private final YAMLFactory yaml;
    private final List<Path> profileDirectories;
    private final Map<String, Node> profiles = new HashMap<>();
    private String file = "?";

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
        this.profileDirectories = List.copyOf(profileDirectories);
        final StreamReadConstraints limits = StreamReadConstraints.builder()
            .maxNestingDepth(64).maxNumberLength(64).maxStringLength(1 << 16).maxNameLength(1 << 10).build();
        json = JsonFactory.builder().streamReadConstraints(limits).build();
        final LoaderOptions loader = new LoaderOptions();
        loader.setCodePointLimit((int) MAX_BYTES);
        loader.setNestingDepthLimit(64);
        loader.setMaxAliasesForCollections(0);
        yaml = YAMLFactory.builder().loaderOptions(loader).streamReadConstraints(limits).build();
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
        final String content = load(path);
        return readText(content, path.toString(), path.toAbsolutePath().getParent());
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
        file = path.toString();
        final Platform read = toPlatform(readProfile(path), path.toAbsolutePath().getParent());
        return new Platform(read.cpus(), read.gpus(), read.optimistic(), defaultId(path.toString()));
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
        return readText(content, name, null);
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
        file = name;
        if (line.length() > MAX_BYTES) {
            throw new InvalidFileException(name, lineNumber, "the line has " + line.length() + " characters; at most "
                + MAX_BYTES + " are read");
        }
        return toTaskSet(parse(json, line, lineNumber), "set-" + lineNumber, null);
    }

    private TaskSet readText(final String content, final String name,
        final Path directory) throws InvalidFileException {
        file = name;
        final Node root = parse(looksLikeJson(content) ? json : yaml, content, 1);
        final TaskSet set = toTaskSet(root, defaultId(name), directory);
        // The checks above name line, task and remedy; the schema, which editors use too, must agree with them.
        final String complaint = SchemaHolder.SCHEMA.firstComplaint(root.toJson());
        if (complaint != null) {
            throw refuse(root, "does not conform to the task-set schema: " + complaint);
        }
        return set;
    }

    static String load(final Path path) throws IOException {
        if (Files.isDirectory(path)) {
            throw new InvalidFileException(path.toString(), 0, "is a directory; name a file");
        }
        final long size;
        try {
            size = Files.size(path);
        } catch (final NoSuchFileException e) {
            throw new InvalidFileException(path.toString(), 0, "there is no such file; check the name");
        }
        if (size > MAX_BYTES) {
            throw new InvalidFileException(path.toString(), 0, "the file has " + size + " bytes; at most " + MAX_BYTES
                + " are read as one task set; put many sets one a line and use --batch");
        }
        final byte[] bytes = Files.readAllBytes(path);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(java.nio.ByteBuffer.wrap(bytes)).toString();
        } catch (final CharacterCodingException e) {
            throw new InvalidFileException(path.toString(), 0, "is not UTF-8 text; save it as UTF-8");
        }
    }

    private Node parse(final JsonFactory factory, final String content,
        final int firstLine) throws InvalidFileException {
        try (JsonParser parser = factory.createParser(content)) {
            final Node root = Node.read(parser, file, firstLine);
            if (parser.nextToken() != null) {
                final int line = firstLine - 1 + Math.max(1, parser.currentTokenLocation().getLineNr());
                throw new InvalidFileException(file, line, "a second document follows; write one task set in a file, "
                    + "or one a line and use --batch");
            }
            return root;
        } catch (final InvalidFileException e) {
            throw e;
        } catch (final JsonProcessingException e) {
            final JsonLocation at = e.getLocation();
            throw new InvalidFileException(file, at == null ? firstLine : firstLine - 1 + Math.max(1, at.getLineNr()),
                "not readable as " + (factory instanceof YAMLFactory ? "YAML" : "JSON") + ": " + firstLineOf(
                    e.getOriginalMessage()));
        } catch (final IOException | RuntimeException e) {
            throw new InvalidFileException(file, firstLine, "not readable as "
                + (factory instanceof YAMLFactory ? "YAML" : "JSON") + ": "
                + firstLineOf(String.valueOf(e.getMessage())));
        }
    }

    private TaskSet toTaskSet(final Node root, final String defaultId,
        final Path directory) throws InvalidFileException {
        requireObject(root, "the task set", SET_KEYS);
        final Node version = root.fields.get("version");
        if (version != null && !(version.kind == Node.Kind.INTEGER && version.text.equals("1"))) {
            throw refuse(version, "version is " + version.show() + "; this reader knows version: 1");
        }
        final Node idNode = root.fields.get("id");
        final String id = idNode == null ? defaultId : requireScalar(idNode, "id");
        final Node tasksNode = required(root, "the task set", "tasks");
        if (tasksNode.kind != Node.Kind.ARRAY) {
            throw refuse(tasksNode, "tasks is " + tasksNode.show() + "; write a list of tasks");
        }
        final Node modeNode = root.fields.get("mode");
        final WaitMode mode;
        if (modeNode == null || modeNode.kind == Node.Kind.TEXT && modeNode.text.equals("suspend")) {
            mode = WaitMode.SUSPEND;
        } else if (modeNode.kind == Node.Kind.TEXT && modeNode.text.equals("busy")) {
            mode = WaitMode.BUSY;
        } else {
            throw refuse(modeNode, "mode is " + modeNode.show() + "; write suspend or busy");
        }
        final Platform platform = toPlatform(required(root, "the task set", "platform"), directory);
        final List<Task> tasks = new ArrayList<>(tasksNode.items.size());
        final Map<String, Integer> lines = new HashMap<>();
        for (final Node node : tasksNode.items) {
            final Task task = toTask(node, tasks.size(), platform);
            final Integer earlier = lines.put(task.name(), node.line);
            if (earlier != null) {
                throw refuse(node, "task \"" + task.name() + "\": the name occurs already in line " + earlier
                    + "; names must be unique");
            }
            tasks.add(task);
        }
        try {
            return new TaskSet(id, platform, mode, tasks);
        } catch (final InvalidModelException e) {
            throw refuse(tasksNode, e.getMessage());
        }
    }

    private Platform toPlatform(final Node given, final Path directory) throws InvalidFileException {
        Node node = given;
        Node base = null;
        String profile = null;
        if (given.kind == Node.Kind.TEXT) {
            profile = given.text;
            base = loadProfile(given, directory);
            node = base;
        } else {
            requireObject(given, "platform", PLATFORM_KEYS);
            final Node profileNode = given.fields.get("profile");
            if (profileNode != null) {
                profile = requireScalar(profileNode, "platform: profile");
                base = loadProfile(profileNode, directory);
            }
        }
        final Node cpusNode = lookUp(node, base, "cpus");
        if (cpusNode == null) {
            throw refuse(given, "platform: cpus is missing; write the number of cores, like cpus: 4");
        }
        final int cpus = requireInt(cpusNode, "platform: cpus", 1, Platform.MAX_CPUS);
        final Node optimisticNode = lookUp(node, base, "optimistic");
        final boolean optimistic = optimisticNode != null && requireBoolean(optimisticNode, "platform: optimistic");
        final Node gpusNode = lookUp(node, base, "gpus");
        final Gpu common = toGpu(node, base, null);
        final List<Gpu> gpus = new ArrayList<>();
        if (gpusNode == null) {
            if (common != null) {
                gpus.add(common);
            }
        } else if (gpusNode.kind == Node.Kind.ARRAY) {
            for (final Node gpuNode : gpusNode.items) {
                requireObject(gpuNode, "platform: gpus", GPU_KEYS);
                gpus.add(needEpsilon(gpuNode, toGpu(gpuNode, null, common)));
            }
        } else {
            final int number = requireInt(gpusNode, "platform: gpus", 0, Platform.MAX_GPUS);
            for (int i = 0; i < number; i++) {
                gpus.add(needEpsilon(gpusNode, common));
            }
        }
        try {
            return new Platform(cpus, gpus, optimistic, profile);
        } catch (final InvalidModelException e) {
            throw refuse(given, e.getMessage());
        }
    }

    private Gpu needEpsilon(final Node node, final Gpu gpu) throws InvalidFileException {
        if (gpu == null) {
            throw refuse(node, "platform: epsilon is missing; write the update delay of the GPU, like epsilon: 1ms");
        }
        return gpu;
    }

    /** Constants of one GPU from its own keys over {@code defaults}; null if there is no epsilon to be found. */
    private Gpu toGpu(final Node node, final Node base, final Gpu defaults) throws InvalidFileException {
        final Node epsilonNode = lookUp(node, base, "epsilon");
        final Node alphaNode = lookUp(node, base, "alpha");
        final Node thetaNode = lookUp(node, base, "theta");
        final Node timesliceNode = lookUp(node, base, "timeslice");
        final Node amdNode = lookUp(node, base, "amd");
        if (amdNode != null) {   // what a profile leaves unknown is given key by key
            final Node amd = base == null ? amdNode : amdNode.over(base.fields.get("amd"));
            return toAmdGpu(amd, lookUp(node, base, "stall"), epsilonNode, alphaNode, thetaNode, timesliceNode);
        }
        if (epsilonNode == null && alphaNode == null && defaults == null) {
            return null;
        }
        final long theta = thetaNode != null ? duration(thetaNode, "platform: theta")
            : defaults != null ? defaults.thetaNs() : Gpu.DEFAULT_THETA_NS;
        final long timeslice = timesliceNode != null ? duration(timesliceNode, "platform: timeslice")
            : defaults != null ? defaults.timesliceNs() : Gpu.DEFAULT_TIMESLICE_NS;
        final long epsilon;
        if (epsilonNode != null) {
            epsilon = duration(epsilonNode, "platform: epsilon");
        } else if (alphaNode != null) {
            epsilon = duration(alphaNode, "platform: alpha") + theta;
        } else {
            epsilon = defaults.epsilonNs();
        }
        final long alpha = alphaNode != null ? alpha(alphaNode, epsilon) : Math.max(0, epsilon - theta);
        try {
            final Gpu gpu = new Gpu(epsilon, alpha, theta, timeslice);
            final Node stallNode = lookUp(node, base, "stall");
            return stallNode != null ? withStalls(gpu, stallNode)
                : defaults == null ? gpu : gpu.withStalls(defaults.stallNs(), defaults.stallPeriodNs());
        } catch (final InvalidModelException e) {
            throw refuse(timesliceNode != null ? timesliceNode : node, e.getMessage());
        }
    }

    private long alpha(final Node node, final long epsilonNs) throws InvalidFileException {
        final long alphaNs = duration(node, "platform: alpha");
        if (alphaNs > epsilonNs) {
            throw refuse(node, "platform: alpha is " + Durations.format(alphaNs) + ", more than epsilon = "
                + Durations.format(epsilonNs) + "; epsilon contains alpha");
        }
        return alphaNs;
    }

    private Gpu withStalls(final Gpu gpu, final Node node) throws InvalidFileException {
        requireObject(node, "platform: stall", STALL_KEYS);
        return gpu.withStalls(duration(required(node, "platform: stall", "length"), "platform: stall: length"),
            duration(required(node, "platform: stall", "period"), "platform: stall: period"));
    }

    private Gpu toAmdGpu(final Node amd, final Node stall, final Node epsilon, final Node alpha, final Node theta,
        final Node timeslice) throws InvalidFileException {
        if (stall != null) {
            throw refuse(stall, "platform: stall beside amd; write amd: foreign instead");
        }
        final AmdCosts costs = new AmdCosts(file, amd);
        try {
            final long thetaNs = costs.required(theta, "theta", "one switch between two processes that share the GPU");
            final long sliceNs = costs.required(timeslice, "timeslice", "the time slice that the firmware gives");
            final boolean measured = !AmdCosts.isUnknown(epsilon);
            final long epsilonNs = measured ? duration(epsilon, "platform: epsilon") : costs.epsilonNs();
            // an alpha that was measured belongs to the epsilon that was
            final long alphaNs = measured && !AmdCosts.isUnknown(alpha) ? alpha(alpha, epsilonNs)
                : Math.max(0, epsilonNs - thetaNs);
            return new Gpu(epsilonNs, alphaNs, thetaNs, sliceNs, costs.stallNs(), costs.stallPeriodNs());
        } catch (final InvalidModelException e) {
            throw refuse(amd, e.getMessage());
        }
    }

    private Node loadProfile(final Node named, final Path directory) throws InvalidFileException {
        final String name = named.text;
        if (!name.matches("[A-Za-z0-9][A-Za-z0-9._-]{0,99}")) {
            throw refuse(named, "platform: profile is " + named.show()
                + "; a profile name has letters, digits, '.', '_' and '-' only");
        }
        final Node known = profiles.get(name);
        if (known != null) {
            return known;
        }
        final List<Path> places = new ArrayList<>();
        if (directory != null) {
            places.add(directory);
        }
        places.addAll(profileDirectories);
        for (final Path place : places) {
            for (final String suffix : new String[] {".yaml", ".yml", ".json"}) {
                final Path path = place.resolve(name + suffix);
                if (Files.isRegularFile(path)) {
                    final Node profile = readProfile(path);
                    profiles.put(name, profile);
                    return profile;
                }
            }
        }
        throw refuse(named, "platform: there is no profile " + named.show() + " (looked for " + name
            + ".yaml in " + places.size() + " places); write one with 'calibrate', or give cpus and epsilon here");
    }

    private Node readProfile(final Path path) throws InvalidFileException {
        final String outer = file;
        file = path.toString();
        try {
            final String content = load(path);
            final Node root = parse(looksLikeJson(content) ? json : yaml, content, 1);
            requireObject(root, "the profile", PLATFORM_KEYS);
            return root;
        } catch (final InvalidFileException e) {
            throw e;
        } catch (final IOException e) {
            throw new InvalidFileException(file, 0, "cannot be read: " + e.getMessage());
        } finally {
            file = outer;
        }
    }

    private Task toTask(final Node node, final int position, final Platform platform) throws InvalidFileException {
        String who = "task " + (position + 1);
        if (node.kind != Node.Kind.OBJECT) {
            throw refuse(node, who + " is " + node.show()
                + "; write a mapping like {name: camera, cpu: 1, period: 80ms, …}");
        }
        final Node nameNode = node.fields.get("name");
        if (nameNode == null) {
            throw refuse(node, who + ": name is missing; give each task a name");
        }
        final String name = requireScalar(nameNode, who + ": name");
        who = "task \"" + name + "\"";
        requireObject(node, who, TASK_KEYS);
        final Node periodNode = required(node, who, "period");
        final long period = duration(periodNode, who + ": period");
        if (period == 0) {
            throw refuse(periodNode, who + ": period is 0; it must be positive, like 10ms");
        }
        final Node deadlineNode = node.fields.get("deadline");
        final long deadline = deadlineNode == null ? period : duration(deadlineNode, who + ": deadline");
        if (deadline > period || deadline == 0) {
            throw refuse(deadlineNode, who + ": deadline is " + deadlineNode.show()
                + "; it must be positive and at most the "
                + "period " + Durations.format(period));
        }
        final boolean bestEffort = optionalBoolean(node, who, "best_effort");
        final Node cpuNode = node.fields.get("cpu");
        final int cpu = cpuNode == null ? 0 : requireInt(cpuNode, who + ": cpu", 1, platform.cpus());
        final Node gpuNode = node.fields.get("gpu");
        final int gpu = gpuNode == null ? 0
            : requireInt(gpuNode, who + ": gpu", 0, Math.max(0, platform.gpus().size() - 1));
        final Node priorityNode = node.fields.get("priority");
        final Node gpuPriorityNode = node.fields.get("gpu_priority");
        if (bestEffort && (priorityNode != null || gpuPriorityNode != null)) {
            final Node wrong = priorityNode != null ? priorityNode : gpuPriorityNode;
            throw refuse(wrong, who + ": priority is " + wrong.show()
                + " but best_effort is true; leave one of them out");
        }
        final int priority = priorityNode == null ? 0
            : requireInt(priorityNode, who + ": priority", 1, Task.MAX_PRIORITY);
        final int gpuPriority = gpuPriorityNode == null ? priority
            : requireInt(gpuPriorityNode, who + ": gpu_priority", 1, Task.MAX_PRIORITY);
        final Node segmentsNode = required(node, who, "segments");
        if (segmentsNode.kind != Node.Kind.ARRAY) {
            throw refuse(segmentsNode, who + ": segments is " + segmentsNode.show()
                + "; write a list like [{cpu: 2ms}, {gpu: {host: 1ms, device: 4ms}}]");
        }
        final List<Segment> segments = new ArrayList<>(segmentsNode.items.size());
        for (final Node segmentNode : segmentsNode.items) {
            segments.add(toSegment(segmentNode, who + ": segment " + (segments.size() + 1)));
        }
        try {
            final Task task = new Task(name, cpu, gpu, period, deadline, optionalDuration(node, who, "jitter"),
                optionalDuration(node, who, "blocking"), priority, gpuPriority, bestEffort, segments);
            if (task.gpuSegmentCount() > 0 && platform.gpus().isEmpty()) {
                throw refuse(node, who
                    + ": it has GPU segments but the platform gives no epsilon; write the update delay of "
                    + "the GPU in platform, like epsilon: 1ms");
            }
            return task;
        } catch (final InvalidModelException e) {
            throw refuse(node, e.getMessage());
        }
    }

    private Segment toSegment(final Node node, final String who) throws InvalidFileException {
        requireObject(node, who, SEGMENT_KEYS);
        if (node.fields.size() != 1) {
            throw refuse(node, who + " has " + node.fields.size() + " keys; write either cpu or gpu");
        }
        final Node cpuNode = node.fields.get("cpu");
        if (cpuNode != null) {
            return new Segment.Cpu(duration(cpuNode, who + ": cpu"));
        }
        final Node gpuNode = node.fields.get("gpu");
        requireObject(gpuNode, who + ": gpu", GPU_SEGMENT_KEYS);
        final long host = optionalDuration(gpuNode, who, "host");
        final long device = duration(required(gpuNode, who + ": gpu", "device"), who + ": device");
        final Node totalNode = gpuNode.fields.get("total");
        try {
            return totalNode == null ? new Segment.Gpu(host, device)
                : new Segment.Gpu(host, device, duration(totalNode, who + ": total"));
        } catch (final InvalidModelException e) {
            throw refuse(totalNode == null ? gpuNode : totalNode, who + ": " + e.getMessage());
        }
    }

    private long optionalDuration(final Node parent, final String who, final String key) throws InvalidFileException {
        final Node node = parent.fields.get(key);
        return node == null ? 0 : duration(node, who + ": " + key);
    }

    private boolean optionalBoolean(final Node parent, final String who,
        final String key) throws InvalidFileException {
        final Node node = parent.fields.get(key);
        return node != null && requireBoolean(node, who + ": " + key);
    }

    private long duration(final Node node, final String what) throws InvalidFileException {
        switch (node.kind) {
            case INTEGER, DECIMAL, TEXT -> {
                try {
                    return Durations.parse(node.text);
                } catch (final IllegalArgumentException e) {
                    throw refuse(node, what + " " + e.getMessage());
                }
            }
            default -> throw refuse(node, what + " is " + node.show() + ", not a duration; write a number and a unit, "
                + "like 1.5ms");
        }
    }

    private int requireInt(final Node node, final String what, final int min,
        final int max) throws InvalidFileException {
        if (node.kind == Node.Kind.INTEGER && node.text.length() <= 11) {
            try {
                final long value = Long.parseLong(node.text);
                if (value >= min && value <= max) {
                    return (int) value;
                }
            } catch (final NumberFormatException e) {
                throw refuse(node, what + " is " + node.show() + "; write it as a decimal number " + min + ".." + max);
            }
        }
        throw refuse(node, what + " is " + node.show() + "; it must be a whole number " + min + ".." + max);
    }

    private boolean requireBoolean(final Node node, final String what) throws InvalidFileException {
        if (node.kind != Node.Kind.BOOLEAN) {
            throw refuse(node, what + " is " + node.show() + "; write true or false");
        }
        return node.text.equalsIgnoreCase("true");
    }

    private String requireScalar(final Node node, final String what) throws InvalidFileException {
        if (node.kind != Node.Kind.TEXT && node.kind != Node.Kind.INTEGER && node.kind != Node.Kind.DECIMAL) {
            throw refuse(node, what + " is " + node.show() + "; write a word");
        }
        if (node.text.isBlank() || node.text.length() > 200 || node.text.chars().anyMatch(Character::isISOControl)) {
            throw refuse(node, what + " is " + node.show() + "; write 1..200 printable characters");
        }
        return node.text;
    }

    private Node required(final Node parent, final String who, final String key) throws InvalidFileException {
        final Node node = parent.fields.get(key);
        if (node == null) {
            throw refuse(parent, who + ": " + key + " is missing; add it");
        }
        return node;
    }

    private void requireObject(final Node node, final String who, final Set<String> keys) throws InvalidFileException {
        if (node.kind != Node.Kind.OBJECT) {
            throw refuse(node, who + " is " + node.show() + "; write a mapping");
        }
        for (final Map.Entry<String, Node> entry : node.fields.entrySet()) {
            if (!keys.contains(entry.getKey())) {
                throw refuse(entry.getValue(), who + ": unknown key '" + entry.getKey() + "'"
                    + suggestion(entry.getKey(), keys));
            }
        }
    }

    private static String suggestion(final String key, final Set<String> keys) {
        final String[] sorted = keys.toArray(new String[0]);
        Arrays.sort(sorted);
        String best = null;
        int bestDistance = Integer.MAX_VALUE;
        for (final String candidate : sorted) {
            final int distance = distance(key, candidate);
            if (distance < bestDistance) {
                bestDistance = distance;
                best = candidate;
            }
        }
        if (best != null && bestDistance <= Math.max(1, best.length() / 3)) {
            return "; did you mean '" + best + "'?";
        }
        return "; known are " + String.join(", ", sorted);
    }

    private static int distance(final String a, final String b) {
        if (a.length() > 40) {
            return Integer.MAX_VALUE;
        }
        int[] previous = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            previous[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            final int[] current = new int[b.length() + 1];
            current[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                final int change = a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1;
                current[j] = Math.min(Math.min(current[j - 1], previous[j]) + 1, previous[j - 1] + change);
            }
            previous = current;
        }
        return previous[b.length()];
    }

    private static Node lookUp(final Node node, final Node base, final String key) {
        final Node own = node.fields.get(key);
        return own != null || base == null ? own : base.fields.get(key);
    }

    private static boolean looksLikeJson(final String content) {
        for (int i = 0; i < content.length(); i++) {
            final char c = content.charAt(i);
            if (!Character.isWhitespace(c) && c != '\uFEFF') {
                return c == '{' && content.indexOf('"') >= 0 && jsonKeyFollows(content, i + 1);
            }
        }
        return false;
    }

    /** A YAML flow mapping begins with a brace too, but its keys are rarely quoted. */
    private static boolean jsonKeyFollows(final String content, final int from) {
        for (int i = from; i < content.length(); i++) {
            final char c = content.charAt(i);
            if (!Character.isWhitespace(c)) {
                return c == '"' || c == '}';
            }
        }
        return false;
    }

    private static String defaultId(final String name) {
        final String last = name.substring(name.replace('\\', '/').lastIndexOf('/') + 1);
        final int dot = last.indexOf('.');
        final String stem = dot > 0 ? last.substring(0, dot) : last;
        return stem.isBlank() ? "task-set" : stem;
    }

    private static String firstLineOf(final String message) {
        final int end = message.indexOf('\n');
        return end < 0 ? message : message.substring(0, end);
    }

    private InvalidFileException refuse(final Node node, final String message) {
        return new InvalidFileException(file, node.line, message);
    }
}

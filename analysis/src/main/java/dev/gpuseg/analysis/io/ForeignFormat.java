/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Task sets of related projects. Each constant states what its format lacks; the user must add it: cores and priorities
 * by {@code --partition} and {@code --assign}, epsilon by {@code --epsilon} (1 ms otherwise).
 */
public enum ForeignFormat {
    /** Records of the published GCAPS generator, one a line: {@link GcapsArtifactImporter}. Batches only. */
    GCAPS_ARTIFACT("gcaps-artifact"),
    /**
     * {@code taskset.csv} of the GCAPS case study: columns {@code taskid,workload,period,wcet} with a header,
     * milliseconds. It gives one number for the whole job, so a workload whose name contains {@code cpu} becomes CPU
     * work, any other one GPU segment whose device part is the whole (host part 0): split it where you know better.
     */
    GCAPS_CSV("gcaps-csv"),
    /**
     * DISB workload: {@code {"tasks"|"clients": [{"name"|"id", "model", "load": {"type":
     * "uniform"|"poisson"|"periodic", "frequency": per second | "interval_ms"} , "latency_ms"|"exec_ms",
     * "deadline_ms", "priority": 0 = best effort}]}}. Loads without a minimal distance (closed loop, trace,
     * dependent, Poisson) have no worst case and become best effort.
     */
    DISB("disb"),
    /**
     * rt-app JSON, strict: {@code tasks: {NAME: {policy, priority, cpus, loop, phases|events: run, runtime, sleep,
     * timer: {period}, gpu: {host, device, deadline}}}}, microseconds. A {@code gpu} event is this project's
     * addition. The period is that of the {@code timer} event, or {@code dl-period}.
     */
    RT_APP("rt-app");

    private static final long DEFAULT_EPSILON_NS = 1_000_000L;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final NodeReader FILES = new NodeReader("task set", TaskSetReader.MAX_BYTES, "give one file each");

    private final String word;

    ForeignFormat(final String word) {
        this.word = word;
    }

    /**
     * Finds a format.
     *
     * @param word as on the command line
     * @return the format
     * @throws IllegalArgumentException if there is none of that name
     */
    public static ForeignFormat of(final String word) {
        for (final ForeignFormat format : values()) {
            if (format.word.equals(word)) {
                return format;
            }
        }
        throw new IllegalArgumentException("format '" + word
            + "' does not exist; known are gcaps-artifact, gcaps-csv, disb, rt-app");
    }

    /**
     * A reader of lines, for batches.
     *
     * @return the reader
     * @throws IllegalArgumentException if the format has one task set per file
     */
    public BatchRunner.LineReader lines() {
        if (this != GCAPS_ARTIFACT) {
            throw new IllegalArgumentException("format '" + word + "' holds one task set a file; leave out --batch");
        }
        return new GcapsArtifactImporter()::readLine;
    }

    /**
     * Reads one file.
     *
     * @param path      the file
     * @param cpus      number of cores, 1..1024
     * @param epsilonNs update delay of the GPU, negative for the default of 1 ms
     * @return the task set; cores and priorities only where the format gives them
     * @throws InvalidFileException     if the content is refused
     * @throws IOException              if the file cannot be read
     * @throws IllegalArgumentException if the format is for batches only
     */
    public TaskSet read(final Path path, final int cpus, final long epsilonNs) throws IOException {
        if (this == GCAPS_ARTIFACT) {
            throw new IllegalArgumentException("format '" + word + "' holds one task set a line; use --batch");
        }
        final String content = FILES.load(path);
        final String file = path.toString();
        try {
            final Platform platform = Platform.of(cpus, Gpu.ofEpsilon(epsilonNs < 0 ? DEFAULT_EPSILON_NS : epsilonNs));
            final List<Task> tasks = switch (this) {
                case GCAPS_CSV -> csv(content, file);
                case DISB -> disb(JSON.readTree(content), file);
                default -> rtApp(JSON.readTree(content), file);
            };
            final String last = path.getFileName().toString();
            return new TaskSet(last.contains(".") ? last.substring(0, Math.max(1, last.indexOf('.'))) : last, platform,
                WaitMode.SUSPEND, tasks);
        } catch (final InvalidModelException e) {
            throw new InvalidFileException(file, 0, e.getMessage());
        } catch (final com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new InvalidFileException(file, e.getLocation() == null ? 0 : e.getLocation().getLineNr(),
                "not readable as JSON: " + e.getOriginalMessage());
        }
    }

    private static List<Task> csv(final String content, final String file) throws InvalidFileException {
        final List<Task> tasks = new ArrayList<>();
        int line = 0;
        for (final String raw : content.split("\\R")) {
            line++;
            if (raw.isBlank() || line == 1 && !raw.isEmpty() && !Character.isDigit(raw.trim().charAt(0))) {
                continue;
            }
            final String[] cells = raw.split(",", -1);
            if (cells.length < 4) {
                throw new InvalidFileException(file, line, "has " + cells.length
                    + " columns; taskid,workload,period,wcet are needed");
            }
            final String workload = cells[1].trim();
            final long period = scaled(cells[2].trim(), 6, "period", file, line);
            final long wcet = scaled(cells[3].trim(), 6, "wcet", file, line);
            final Segment work = workload.contains("cpu") ? new Segment.Cpu(wcet) : new Segment.Gpu(0, wcet);
            tasks.add(task(cells[0].trim() + "-" + workload, 0, period, period, 0, false, List.of(work), file, line));
        }
        return tasks;
    }

    private static List<Task> disb(final JsonNode root, final String file) throws InvalidFileException {
        final JsonNode clients = root == null ? null : root.has("clients") ? root.get("clients") : root.get("tasks");
        if (clients == null || !clients.isArray()) {
            throw new InvalidFileException(file, 0,
                "there is no list 'tasks' (or 'clients'); this importer reads DISB workloads");
        }
        final List<Task> tasks = new ArrayList<>();
        for (final JsonNode client : clients) {
            final String name = client.path("name").asText(client.path("id").asText(
                client.path("model").asText("client"))) + "-" + (tasks.size() + 1);
            final JsonNode load = client.has("load") ? client.get("load") : client;
            final String type = load.path("type").asText(load.path("strategy").asText("uniform")).toLowerCase(
                java.util.Locale.ROOT);
            final boolean spaced = type.equals("uniform") || type.equals("periodic");
            final long execution = scaled(firstOf(client, "exec_ms", "latency_ms").asText(""), 6, name + ": exec_ms",
                file, 0);
            final long period;
            if (load.has("frequency")) {
                final BigDecimal hertz = decimal(load.get("frequency").asText(), name + ": frequency", file, 0);
                if (hertz.signum() <= 0) {
                    throw new InvalidFileException(file, 0, name + ": frequency is " + hertz
                        + "; it must be positive");
                }
                period = BigDecimal.valueOf(1_000_000_000L).divide(hertz, 0, RoundingMode.FLOOR).min(
                    BigDecimal.valueOf(Durations.MAX_NS)).longValue();
            } else if (load.has("interval_ms")) {
                period = scaled(load.get("interval_ms").asText(), 6, name + ": interval_ms", file, 0);
            } else if (spaced) {
                throw new InvalidFileException(file, 0, name + ": frequency is missing; write requests per second");
            } else {
                period = Math.max(1, execution);
            }
            final long deadline = client.has("deadline_ms")
                ? Math.min(period, scaled(client.get("deadline_ms").asText(), 6, name + ": deadline_ms", file, 0))
                : period;
            final boolean bestEffort = !spaced || client.has("priority") && client.path("priority").asInt() <= 0;
            tasks.add(task(name, 0, period, deadline, 0, bestEffort, List.of(new Segment.Gpu(0, execution)), file, 0));
        }
        return tasks;
    }

    private static List<Task> rtApp(final JsonNode root, final String file) throws InvalidFileException {
        final JsonNode all = root == null ? null : root.get("tasks");
        if (all == null || !all.isObject()) {
            throw new InvalidFileException(file, 0,
                "there is no mapping 'tasks'; this importer reads strict rt-app JSON");
        }
        final List<Task> tasks = new ArrayList<>();
        for (final Map.Entry<String, JsonNode> entry : all.properties()) {
            final JsonNode body = entry.getValue();
            final List<Segment> segments = new ArrayList<>();
            final long[] times = new long[2];
            if (body.has("phases")) {
                for (final JsonNode phase : body.get("phases")) {
                    events(phase, entry.getKey(), segments, times, file);
                }
            } else {
                events(body, entry.getKey(), segments, times, file);
            }
            if (body.has("dl-period")) {
                times[0] = micros(body.get("dl-period"), entry.getKey() + ": dl-period", file);
            }
            if (body.has("dl-deadline")) {
                times[1] = micros(body.get("dl-deadline"), entry.getKey() + ": dl-deadline", file);
            }
            if (times[0] == 0) {
                throw new InvalidFileException(file, 0, "task \"" + entry.getKey()
                    + "\": there is no period; give it a timer event with a period, or dl-period");
            }
            final String policy = body.path("policy").asText(root.path("global").path("default_policy").asText(
                "SCHED_OTHER"));
            final boolean realTime = policy.equals("SCHED_FIFO") || policy.equals("SCHED_RR")
                || policy.equals("SCHED_DEADLINE");
            final int cpu = body.path("cpus").isArray() && body.path("cpus").size() == 1
                ? body.path("cpus").get(0).asInt() + 1 : 0;
            final int priority = realTime ? body.path("priority").asInt(0) : 0;
            final int instances = Math.max(1, body.path("instance").asInt(1));
            for (int k = 0; k < instances && k < TaskSet.MAX_TASKS; k++) {
                tasks.add(task(instances == 1 ? entry.getKey() : entry.getKey() + "-" + (k + 1), cpu, times[0],
                    times[1] == 0 ? times[0] : times[1], priority, !realTime, segments, file, 0));
            }
        }
        return tasks;
    }

    private static void events(final JsonNode phase, final String task, final List<Segment> segments,
        final long[] times,
        final String file) throws InvalidFileException {
        for (final Map.Entry<String, JsonNode> event : phase.properties()) {
            final String what = task + ": " + event.getKey();
            if (event.getKey().startsWith("runtime") || event.getKey().startsWith("run")) {
                segments.add(new Segment.Cpu(micros(event.getValue(), what, file)));
            } else if (event.getKey().startsWith("gpu")) {
                final JsonNode gpu = event.getValue();
                segments.add(new Segment.Gpu(gpu.has("host") ? micros(gpu.get("host"), what + ": host", file) : 0,
                    micros(firstOf(gpu, "device", "kernel_us"), what + ": device", file)));
            } else if (event.getKey().startsWith("timer")) {
                times[0] = micros(event.getValue().path("period"), what + ": period", file);
            } else if (event.getKey().equals("deadline")) {
                times[1] = micros(event.getValue(), what, file);
            } else if (event.getKey().startsWith("sleep") || event.getKey().startsWith("lock")
                || event.getKey().startsWith("wait") || event.getKey().startsWith("mem")
                || event.getKey().startsWith("iorun") || event.getKey().startsWith("barrier")
                || event.getKey().startsWith("suspend")) {
                throw new InvalidFileException(file, 0, "task \"" + what
                    + "\" has no place in the task model; replace it by run, gpu and timer events");
            }
        }
    }

    private static Task task(final String name, final int cpu, final long period, final long deadline,
        final int priority,
        final boolean bestEffort, final List<Segment> segments, final String file, final int line)
        throws InvalidFileException {
        try {
            return new Task(name, cpu, 0, period, deadline, 0, 0, bestEffort ? 0 : priority, bestEffort ? 0 : priority,
                bestEffort, segments);
        } catch (final InvalidModelException e) {
            throw new InvalidFileException(file, line, e.getMessage());
        }
    }

    private static JsonNode firstOf(final JsonNode node, final String first, final String second) {
        return node.has(first) ? node.get(first) : node.path(second);
    }

    private static long micros(final JsonNode node, final String what, final String file) throws InvalidFileException {
        return scaled(node.asText(""), 3, what, file, 0);
    }

    private static BigDecimal decimal(final String text, final String what, final String file, final int line)
        throws InvalidFileException {
        if (text.matches("[0-9]{1,18}(\\.[0-9]{1,18})?")) {
            return new BigDecimal(text);
        }
        throw new InvalidFileException(file, line, what + " is '" + (text.length() > 40 ? text.substring(0, 40) : text)
            + "'; it must be a number, 0 or more");
    }

    private static long scaled(final String text, final int digits, final String what, final String file,
        final int line)
        throws InvalidFileException {
        final BigDecimal ns = decimal(text, what, file, line).movePointRight(digits).setScale(0, RoundingMode.CEILING);
        if (ns.compareTo(BigDecimal.valueOf(Durations.MAX_NS)) > 0) {
            throw new InvalidFileException(file, line, what + " is " + text
                + ", longer than 104 days; write a shorter time");
        }
        return ns.longValueExact();
    }
}

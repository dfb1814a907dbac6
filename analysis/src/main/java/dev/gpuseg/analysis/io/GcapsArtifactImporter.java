/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/**
 * Reads task sets that the published GCAPS program generated, as recorded one a line: {@code
 * {"kind","v","it","ncpu","tasks":[{"cpu","prio","T","C","G","Gm","Ge","ces":[..],"ges":[[G,Gm,Ge],..]}]}}, times in
 * milliseconds, cpu from 0, larger prio higher, -1 best effort.
 *
 * <p>That generator rounds segments and totals separately (differences up to 0.08 ms). The program decides by the
 * totals, so the difference is added to the largest segment: C, G, Gm and Ge of the imported task equal the recorded
 * totals exactly, to one nanosecond. Segments of length zero are kept. Constants of that program: epsilon 1 ms,
 * theta 0.2 ms, time slice 1 ms.
 */
public final class GcapsArtifactImporter {
    private static final long EPSILON_NS = 1_000_000L;
    private static final long THETA_NS = 200_000L;
    private static final long TIMESLICE_NS = 1_000_000L;
    /** What is more than rounding. */
    private static final long DIFFERENCE_MAX_NS = 1_000_000L;

    /** {@code res}, {@code id} and {@code lp_code} are results and numbers of that program, and do not count. */
    private static final Set<String> SET_KEYS = Set.of("kind", "v", "it", "ncpu", "tasks", "res");
    private static final Set<String> TASK_KEYS = Set.of("id", "cpu", "prio", "T", "C", "G", "Gm", "Ge", "ces", "ges",
        "lp_code");

    private final ObjectMapper mapper = JsonMapper.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();

    /**
     * Reads one line.
     *
     * @param line       the JSON object
     * @param file       name of the file, for refusals
     * @param lineNumber its line, from 1
     * @return the task set, mode suspend, id {@code kind-v-it}
     * @throws InvalidFileException if it is not such a record
     */
    public TaskSet readLine(final String line, final String file, final int lineNumber) throws InvalidFileException {
        try {
            final JsonNode root = mapper.readTree(line);
            if (root == null || !root.isObject()) {
                throw new InvalidFileException(file, lineNumber,
                    "is no JSON object; this importer reads one set a line");
            }
            known(root, SET_KEYS, "the record", file, lineNumber);
            final List<Task> tasks = new ArrayList<>();
            for (final JsonNode node : need(root, "tasks", file, lineNumber)) {
                // Recorded ids repeat in some sets; the position names the task.
                tasks.add(toTask(node, "t" + tasks.size(), file, lineNumber));
            }
            final int cpus = integer(root, "ncpu", file, lineNumber);
            final String id = root.path("kind").asText("set") + "-" + root.path("v").asText("0") + "-"
                + root.path("it").asText(Integer.toString(lineNumber));
            return new TaskSet(id, Platform.of(cpus, new Gpu(EPSILON_NS, EPSILON_NS - THETA_NS, THETA_NS,
                TIMESLICE_NS)),
                WaitMode.SUSPEND, tasks);
        } catch (final InvalidFileException e) {
            throw e;
        } catch (final InvalidModelException e) {
            throw new InvalidFileException(file, lineNumber, e.getMessage());
        } catch (final JsonProcessingException e) {
            throw new InvalidFileException(file, lineNumber, "not readable as JSON: " + e.getOriginalMessage()
                .lines().findFirst().orElse("") + "; this importer reads one set a line");
        }
    }

    private static Task toTask(final JsonNode node, final String name, final String file,
        final int line) throws InvalidFileException {
        known(node, TASK_KEYS, "task " + name, file, line);
        final int priority = integer(node, "prio", file, line);
        final boolean bestEffort = priority < 0;
        final long period = toNs(need(node, "T", file, line), name + ": T", file, line);
        final JsonNode cpuNodes = need(node, "ces", file, line);
        final JsonNode gpuNodes = need(node, "ges", file, line);
        final long[] cpu = new long[cpuNodes.size()];
        for (int i = 0; i < cpu.length; i++) {
            cpu[i] = toNs(cpuNodes.get(i), name + ": ces", file, line);
        }
        final long[][] gpu = new long[3][gpuNodes.size()];
        for (int j = 0; j < gpuNodes.size(); j++) {
            for (int k = 0; k < 3; k++) {
                gpu[k][j] = toNs(gpuNodes.get(j).path(k), name + ": ges", file, line);
            }
        }
        if (cpu.length == 0) {
            throw new InvalidFileException(file, line, "task " + name
                + ": ces is empty; at least one CPU segment is needed");
        }
        correct(cpu, largest(cpu), node, "C", name, file, line);
        if (gpuNodes.size() > 0) {
            final int at = largest(gpu[0]);
            correct(gpu[0], at, node, "G", name, file, line);
            correct(gpu[1], at, node, "Gm", name, file, line);
            correct(gpu[2], at, node, "Ge", name, file, line);
        }
        final List<Segment> segments = new ArrayList<>();
        for (int i = 0; i < Math.max(cpu.length, gpuNodes.size()); i++) {
            if (i < cpu.length) {
                segments.add(new Segment.Cpu(cpu[i]));
            }
            if (i < gpuNodes.size()) {
                final long total = Math.max(gpu[0][i], Math.max(gpu[1][i], gpu[2][i]));
                segments.add(new Segment.Gpu(gpu[1][i], gpu[2][i], total));
            }
        }
        return new Task(name, integer(node, "cpu", file, line) + 1, 0, period, period, 0, 0,
            bestEffort ? 0 : priority, bestEffort ? 0 : priority, bestEffort, segments);
    }

    private static int largest(final long[] values) {
        int at = 0;
        for (int i = 1; i < values.length; i++) {
            if (values[i] > values[at]) {
                at = i;
            }
        }
        return at;
    }

    private static void correct(final long[] values, final int at, final JsonNode node, final String key,
        final String name, final String file, final int line) throws InvalidFileException {
        long rest = toNs(need(node, key, file, line), name + ": " + key, file, line);
        for (final long value : values) {
            rest -= value;
        }
        if (Math.abs(rest) > DIFFERENCE_MAX_NS) {
            throw new InvalidFileException(file, line, name + ": " + key + " is " + node.get(key) + ", "
                + Durations.format(Math.abs(rest)) + (rest > 0 ? " more" : " less")
                + " than its segments take; only rounding is made up for");
        }
        values[at] += rest;
    }

    private static void known(final JsonNode node, final Set<String> keys, final String what, final String file,
        final int line) throws InvalidFileException {
        for (final Iterator<String> names = node.fieldNames(); names.hasNext();) {
            final String key = names.next();
            if (!keys.contains(key)) {
                throw new InvalidFileException(file, line, what + ": unknown key '" + key + "'; "
                    + Spelling.advice(key, keys));
            }
        }
    }

    private static int integer(final JsonNode node, final String key, final String file, final int line)
        throws InvalidFileException {
        final JsonNode value = need(node, key, file, line);
        if (!value.isInt()) {
            throw new InvalidFileException(file, line, key + " is " + value + "; it must be a whole number");
        }
        return value.intValue();
    }

    private static JsonNode need(final JsonNode node, final String key, final String file, final int line)
        throws InvalidFileException {
        final JsonNode value = node.get(key);
        if (value == null) {
            throw new InvalidFileException(file, line, "key '" + key
                + "' is missing; this importer reads records of the published GCAPS program");
        }
        return value;
    }

    private static long toNs(final JsonNode node, final String what, final String file, final int line)
        throws InvalidFileException {
        if (node.isNumber() && (!node.isFloatingPointNumber() || Double.isFinite(node.doubleValue()))) {
            final BigDecimal ns = node.decimalValue().movePointRight(6).setScale(0, RoundingMode.HALF_EVEN);
            if (ns.signum() >= 0 && ns.unscaledValue().bitLength() <= 53) {
                return ns.longValueExact();
            }
        }
        throw new InvalidFileException(file, line, what + " is " + node + "; it must be milliseconds, 0 or more");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.TaskResult;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Measured responses, for comparison with bounds. Read from the output of {@code gpuseg demo --json}, which is
 * {@code {"mechanism","tasks":[{"name","jobs","response_ms":{"max"}}]}}, or of {@code gpuseg trace stats --json}, which
 * has {@code response_ns}. Other fields are ignored. If a task appears twice, the longer response counts.
 *
 * @param source    the file
 * @param simulated measured on the virtual GPU
 * @param byTask    task name to its figures, in file order
 */
public record Measurement(String source, boolean simulated, Map<String, Figure> byTask) {
    private static final double NS_PER_MS = 1e6;
    private static final String GIVE = "give what gpuseg demo --json or gpuseg trace stats --json printed";
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * Figures of one task.
     *
     * @param jobs  jobs completed
     * @param maxNs longest response, ns
     */
    public record Figure(long jobs, long maxNs) {
    }

    /** Copies the map. */
    public Measurement {
        byTask = java.util.Collections.unmodifiableMap(new LinkedHashMap<>(byTask));
    }

    /**
     * Reads a file.
     *
     * @param file JSON
     * @return the measurement
     * @throws InvalidFileException if it is not of that form, with the thing, its value and the remedy
     * @throws IOException          if it cannot be read
     */
    public static Measurement read(final Path file) throws IOException {
        final JsonNode root;
        try {
            root = JSON.readTree(LimitedFile.text(file));
        } catch (final JsonProcessingException e) {
            throw new InvalidFileException(file.toString(), e.getLocation() == null ? 0 : e.getLocation().getLineNr(),
                "is not JSON: " + e.getOriginalMessage() + "; " + GIVE);
        }
        final Map<String, Figure> byTask = new LinkedHashMap<>();
        for (final JsonNode task : root.path("tasks")) {
            final boolean inNs = task.has("response_ns");
            final JsonNode max = task.path(inNs ? "response_ns" : "response_ms").path("max");
            final String name = task.path("name").asText();
            if (name.isEmpty() || !max.isNumber() || max.asDouble() < 0 || max.asDouble() > 1e18) {
                throw new InvalidFileException(file.toString(), 0, "tasks: " + task
                    + " has no name or no response_ms.max in milliseconds (response_ns.max); " + GIVE);
            }
            final long maxNs = Math.round(max.asDouble() * (inNs ? 1 : NS_PER_MS));
            byTask.merge(name, new Figure(task.path("jobs").asLong(), maxNs), Measurement::both);
        }
        if (byTask.isEmpty()) {
            throw new InvalidFileException(file.toString(), 0,
                "holds no tasks; " + GIVE);
        }
        return new Measurement(file.toString(), "sim".equals(root.path("mechanism").asText()), byTask);
    }

    private static Figure both(final Figure a, final Figure b) {
        return new Figure(a.jobs() + b.jobs(), Math.max(a.maxNs(), b.maxNs()));
    }

    /**
     * The longest response of a task.
     *
     * @param task its name
     * @return ns, or null if it was not measured
     */
    public Long maxNs(final String task) {
        final Figure figure = byTask.get(task);
        return figure == null ? null : figure.maxNs();
    }

    /**
     * Measured responses that exceed their bounds.
     *
     * @param result bounds
     * @return one line per task, empty if every bound held
     */
    public List<String> exceeded(final AnalysisResult result) {
        final List<String> found = new ArrayList<>();
        for (final TaskResult task : result.tasks()) {
            final Long max = maxNs(task.name());
            if (max != null && task.wcrtNs() != null && max > task.wcrtNs()) {
                found.add("task \"" + task.name() + "\": a response of "
                    + dev.gpuseg.analysis.model.Durations.milliseconds(max) + " ms was measured, above its bound of "
                    + dev.gpuseg.analysis.model.Durations.milliseconds(task.wcrtNs()) + " ms (" + result.analysis()
                    + "); is a part longer than the task set says, or epsilon?");
            }
        }
        return found;
    }

    /** A caption; for instance "run.json, simulated GPU". */
    public String caption() {
        return Objects.requireNonNull(Path.of(source).getFileName()) + (simulated ? ", simulated GPU" : "");
    }
}

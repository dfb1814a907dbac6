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
 * {@code {"mechanism","tasks":[{"name","jobs","misses","response_ms":{"p50","p99","max"}}]}}, or of {@code gpuseg trace
 * stats --json}, which has {@code response_ns}. Other fields are ignored. If a task appears twice, the longer response
 * counts and jobs add up; what ran under policy rr, which enforces nothing, is left out if anything else ran.
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
     * @param jobs   jobs completed
     * @param maxNs  longest response, ns
     * @param misses jobs that were late, 0 also if that was not measured
     * @param ranks  what is known of long responses
     */
    public record Figure(long jobs, long maxNs, long misses, List<Rank> ranks) {
        /** Copies the list. */
        public Figure {
            ranks = List.copyOf(ranks);
        }

        /**
         * How many jobs exceeded a bound, at least.
         *
         * @param boundNs    the bound
         * @param deadlineNs of the task; a late job exceeded a bound that is no longer
         * @return jobs; percentiles say no more than this
         */
        public long above(final long boundNs, final long deadlineNs) {
            return Math.max(longer(boundNs), boundNs <= deadlineNs ? misses : 0);
        }

        /** Whether every response is known, so that a count is exact. */
        public boolean isExact() {
            return ranks.size() >= jobs;
        }

        private long longer(final long limitNs) {
            long most = maxNs > limitNs ? 1 : 0;
            for (final Rank rank : ranks) {
                most = rank.ns() > limitNs ? Math.max(most, rank.jobs()) : most;
            }
            return most;
        }
    }

    /**
     * A percentile, from above.
     *
     * @param ns   a response
     * @param jobs so many jobs at least took that long
     */
    public record Rank(long ns, long jobs) {
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
        boolean enforced = false;
        for (final JsonNode task : root.path("tasks")) {
            enforced |= !isRoundRobin(task);
        }
        for (final JsonNode task : root.path("tasks")) {
            if (enforced && isRoundRobin(task)) {
                continue;
            }
            final boolean inNs = task.has("response_ns");
            final JsonNode max = task.path(inNs ? "response_ns" : "response_ms").path("max");
            final String name = task.path("name").asText();
            if (name.isEmpty() || !max.isNumber() || max.asDouble() < 0 || max.asDouble() > 1e18) {
                throw new InvalidFileException(file.toString(), 0, "tasks: " + task
                    + " has no name or no response_ms.max in milliseconds (response_ns.max); " + GIVE);
            }
            final double unit = inNs ? 1 : NS_PER_MS;
            final JsonNode response = task.path(inNs ? "response_ns" : "response_ms");
            final long jobs = task.path("jobs").asLong();
            byTask.merge(name, new Figure(jobs, Math.round(max.asDouble() * unit), task.path("misses").asLong(),
                List.of(rank(response.path("p50").asDouble() * unit, jobs, 50),
                    rank(response.path("p99").asDouble() * unit, jobs, 99))), Measurement::both);
        }
        if (byTask.isEmpty()) {
            throw new InvalidFileException(file.toString(), 0,
                "holds no tasks; " + GIVE);
        }
        return new Measurement(file.toString(), root.path("simulated").asBoolean()
            || "sim".equals(root.path("mechanism").asText()), byTask);
    }

    private static boolean isRoundRobin(final JsonNode task) {
        return "rr".equals(task.path("policy").asText());
    }

    /** A percentile by nearest rank: the jobs from it on are at least that long. */
    private static Rank rank(final double ns, final long jobs, final int percent) {
        return new Rank(Math.round(ns), jobs - (jobs * percent + 99) / 100 + 1);
    }

    private static Figure both(final Figure a, final Figure b) {
        final List<Rank> ranks = new ArrayList<>();
        for (final Figure one : List.of(a, b)) {
            for (final Rank rank : one.ranks()) {
                ranks.add(new Rank(rank.ns(), a.longer(rank.ns() - 1) + b.longer(rank.ns() - 1)));
            }
        }
        return new Figure(a.jobs() + b.jobs(), Math.max(a.maxNs(), b.maxNs()), a.misses() + b.misses(), ranks);
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

    /** Jobs of all tasks. */
    public long jobs() {
        return byTask.values().stream().mapToLong(Figure::jobs).sum();
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

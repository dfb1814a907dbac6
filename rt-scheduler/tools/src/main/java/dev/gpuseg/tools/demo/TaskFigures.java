/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.Task;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * What one task achieved in one phase.
 *
 * @param task   which
 * @param jobs   jobs completed
 * @param misses jobs of a real-time task that were late
 * @param p50Ns  median response
 * @param p99Ns  99th percentile of the response (nearest rank)
 * @param maxNs  longest response
 */
public record TaskFigures(Task task, int jobs, int misses, long p50Ns, long p99Ns, long maxNs) {
    private static final double NS_PER_MS = 1e6;
    private static final double DIGITS = 1e3;

    /**
     * Reads the file that a task wrote, one line per job.
     *
     * @param task which
     * @param file release_ns,response_ns,miss
     * @return its figures
     * @throws IOException if the file cannot be read
     */
    static TaskFigures read(final Task task, final Path file) throws IOException {
        final List<String> lines = Files.readAllLines(file);
        final long[] responses = new long[lines.size() - 1];
        int misses = 0;
        for (int i = 0; i < responses.length; i++) {
            final String[] fields = lines.get(i + 1).split(",");
            responses[i] = Long.parseLong(fields[1]);
            misses += Integer.parseInt(fields[2]);
        }
        java.util.Arrays.sort(responses);
        return new TaskFigures(task, responses.length, misses, at(responses, 50), at(responses, 99),
            at(responses, 100));
    }

    private static long at(final long[] sorted, final int percent) {
        return sorted.length == 0 ? 0 : sorted[(sorted.length * percent + 99) / 100 - 1];
    }

    public static double milliseconds(final long ns) {
        return Math.round(ns / NS_PER_MS * DIGITS) / DIGITS;
    }

    public void putInto(final ObjectNode node) {
        node.put("name", task.name());
        node.put("priority", task.priority());
        node.put("jobs", jobs);
        node.put("misses", misses);
        node.putObject("response_ms").put("p50", milliseconds(p50Ns)).put("p99", milliseconds(p99Ns))
            .put("max", milliseconds(maxNs));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.io.Measurement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The responses of a recording for comparison with bounds: every job counts, not only percentiles. What ran under
 * policy rr, which enforces nothing, is left out if anything else ran. Stateless.
 */
public final class TraceMeasurement {
    private static final String ROUND_ROBIN = "rr";

    private TraceMeasurement() {
    }

    /**
     * Counts.
     *
     * @param trace  what happened
     * @param source its file
     * @return figures of every task that ended a job
     * @throws IllegalArgumentException if none did
     */
    public static Measurement of(final Trace trace, final String source) {
        final boolean enforced = trace.tasks.stream().flatMap(task -> task.jobs.stream())
            .anyMatch(job -> !job.policy.equals(ROUND_ROBIN));
        final Map<String, List<Long>> responses = new LinkedHashMap<>();
        final Map<String, Long> misses = new LinkedHashMap<>();
        for (final Trace.Task task : trace.tasks) {
            for (final Trace.Job job : task.jobs) {
                if (enforced && job.policy.equals(ROUND_ROBIN)) {
                    continue;
                }
                if (job.isComplete()) {
                    responses.computeIfAbsent(task.name, name -> new ArrayList<>()).add(job.responseNs);
                }
                misses.merge(task.name, task.isRealTime() && task.deadlineNs > 0 && job.isLate() ? 1L : 0L, Long::sum);
            }
        }
        if (responses.isEmpty()) {
            throw new IllegalArgumentException(source + ": no job of any task ended; record for longer");
        }
        final Map<String, Measurement.Figure> figures = new LinkedHashMap<>();
        responses.forEach((name, times) -> {
            times.sort(Collections.reverseOrder());
            final List<Measurement.Rank> ranks = new ArrayList<>(times.size());
            for (final long ns : times) {
                ranks.add(new Measurement.Rank(ns, ranks.size() + 1));
            }
            figures.put(name, new Measurement.Figure(times.size(), times.get(0), misses.get(name), ranks));
        });
        return new Measurement(source, trace.simulated, figures);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Chains and worst jobs of recordings, computed from releases and ends alone: no rows, no tables, no histograms, no
 * Spark. All tasks must mark their jobs. What the report says is compared with it.
 */
final class OwnFigures {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A chain of one robot and version; quantiles by nearest rank. */
    record Chain(String source, String task, String version, String robot, int outputs, long p50Ns, long p99Ns,
        long maxNs, String recording) {
    }

    /** The worst job of a task, version and robot. */
    record Job(String recording, String robot, String version, String task, int number, long responseNs,
        long deadlineNs) {
        double ofDeadline() {
            return (double) responseNs / deadlineNs;
        }
    }

    /** A task that is open, and its job that is. */
    private static final class Open {
        private final String name;
        private final int priority;
        private final long deadlineNs;
        private int number;
        private boolean released;
        private long stampNs;

        Open(final JsonNode attributes) {
            name = attributes.path("name").asText();
            priority = attributes.path("priority").asInt();
            deadlineNs = attributes.path("deadline_ns").asLong();
        }
    }

    /** The age of an output. */
    private record Age(long ns, String recording) {
    }

    private final Map<List<String>, List<Age>> ages = new HashMap<>();
    private final Map<List<String>, Job> worst = new HashMap<>();

    /** Adds a recording. */
    void add(final Path file, final Outcome of) throws IOException {
        final Map<Integer, Open> open = new HashMap<>();
        final Map<Long, String> takenBy = new HashMap<>();
        Source.open(file).forEach(event -> {
            final Open task = open.get(event.taskId());
            if (event.kind() == EventKind.TASK_OPEN) {
                open.put(event.taskId(), new Open(attributes(event)));
            } else if (event.kind() == EventKind.RELEASE) {
                task.number++;
                task.released = true;
                task.stampNs = event.arg1();
                takenBy.putIfAbsent(task.stampNs, task.name);
            } else if (event.kind() == EventKind.JOB_END && task.released) {
                task.released = false;
                if (task.stampNs != 0 && !takenBy.get(task.stampNs).equals(task.name)) {
                    ages.computeIfAbsent(List.of(takenBy.get(task.stampNs), task.name, of.version(), of.robot()),
                        key -> new ArrayList<>()).add(new Age(event.arg0() - task.stampNs, of.name()));
                }
                if (task.priority > 0 && task.deadlineNs > 0) {
                    worst.merge(List.of(task.name, of.version(), of.robot()), new Job(of.name(), of.robot(),
                        of.version(), task.name, task.number, event.arg1(), task.deadlineNs), OwnFigures::worse);
                }
            }
        });
    }

    private static JsonNode attributes(final JournalEvent event) {
        try {
            return JSON.readTree(event.text());
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Of equals the later one of the last recording. */
    private static Job worse(final Job a, final Job b) {
        return Comparator.comparingDouble(Job::ofDeadline).thenComparing(Job::recording).thenComparingInt(Job::number)
            .compare(a, b) >= 0 ? a : b;
    }

    /** All chains, the one with the largest age first; equals by name. */
    List<Chain> chains() {
        final List<Chain> all = new ArrayList<>();
        ages.forEach((key, found) -> {
            found.sort(Comparator.comparingLong(Age::ns).thenComparing(Age::recording));
            final Age largest = found.get(found.size() - 1);
            all.add(new Chain(key.get(0), key.get(1), key.get(2), key.get(3), found.size(),
                found.get(rank(50, found.size())).ns(), found.get(rank(99, found.size())).ns(), largest.ns(),
                largest.recording()));
        });
        all.sort(Comparator.comparingLong(Chain::maxNs).reversed().thenComparing(Chain::source)
            .thenComparing(Chain::task).thenComparing(Chain::version).thenComparing(Chain::robot));
        return all;
    }

    private static int rank(final int percent, final int count) {
        return (percent * count + 99) / 100 - 1;
    }

    /** One job of each task, version and robot, the one that used most of its deadline first. */
    List<Job> worstJobs() {
        return worst.values().stream().sorted(Comparator.comparingDouble(Job::ofDeadline).reversed()
            .thenComparing(Job::recording).thenComparing(Job::task)).toList();
    }
}

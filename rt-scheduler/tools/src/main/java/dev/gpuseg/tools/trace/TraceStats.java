/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** Figures of each task under each policy. Percentiles by nearest rank. Stateless. */
public final class TraceStats {
    private static final double NS_PER_MS = 1e6;

    /**
     * Three figures of many times, ns; 0 if there are none.
     *
     * @param count how many
     * @param p50Ns median
     * @param p99Ns 99th percentile
     * @param maxNs longest
     */
    public record Times(int count, long p50Ns, long p99Ns, long maxNs) {
        static Times of(final List<Long> values) {
            final long[] sorted = values.stream().mapToLong(Long::longValue).sorted().toArray();
            return new Times(sorted.length, at(sorted, 50), at(sorted, 99), at(sorted, 100));
        }

        private static long at(final long[] sorted, final int percent) {
            return sorted.length == 0 ? 0 : sorted[(sorted.length * percent + 99) / 100 - 1];
        }

        void putInto(final ObjectNode node) {
            node.put("count", count).put("p50", p50Ns).put("p99", p99Ns).put("max", maxNs);
        }
    }

    /**
     * One row.
     *
     * @param task        its name
     * @param policy      in force when the jobs were released
     * @param priority    0 = best effort
     * @param gpu         index
     * @param jobs        complete jobs
     * @param misses      jobs that ended late or were given up late; -1 for a task without deadline
     * @param skipped     jobs that the application released and cancelled, without those that missed
     * @param response    of complete jobs, from release
     * @param waiting      of segments, from begin until the application could go on
     * @param segments    begun
     * @param preemptions of these segments
     * @param overruns    of these segments
     * @param busyNs      time it had the GPU, divided where several shared it
     * @param gpuShare    time it had the GPU (divided where several shared it), by the time of the policy, 0..1
     */
    public record Row(String task, String policy, int priority, int gpu, int jobs, int misses, int skipped,
        Times response, Times waiting, int segments, int preemptions, int overruns, long busyNs,
        double gpuShare) {
    }

    /**
     * The jobs of one process.
     *
     * @param misses   those that ended late or were given up late; 0 for best effort
     * @param response of complete jobs, from release
     */
    public record Jobs(int misses, Times response) {
    }

    private TraceStats() {
    }

    /**
     * The jobs of one process, whatever the policy was.
     *
     * @param trace what happened
     * @param pid   of the process that released them
     * @return its figures; no job if the trace does not have the process
     */
    public static Jobs jobsOf(final Trace trace, final int pid) {
        final List<Long> responses = new ArrayList<>();
        int misses = 0;
        for (final Trace.Task one : trace.tasks) {
            for (final Trace.Job job : one.jobs) {
                if (job.pid == pid) {
                    misses += job.isLate() ? 1 : 0;
                    if (job.isComplete()) {
                        responses.add(job.responseNs);
                    }
                }
            }
        }
        return new Jobs(misses, Times.of(responses));
    }

    /** One row per task and policy under which it released a job, in order of policies and tasks. */
    public static List<Row> of(final Trace trace) {
        final Map<String, Long> lengths = new HashMap<>();
        final Set<String> policies = new LinkedHashSet<>();
        for (final Trace.Phase phase : trace.phases) {
            policies.add(phase.policy());
            lengths.merge(phase.policy(), phase.toNs() - phase.fromNs(), Long::sum);
        }
        final List<Row> rows = new ArrayList<>();
        final List<Trace.Task> tasks = new ArrayList<>(trace.tasks);
        tasks.sort(Comparator.comparingInt((Trace.Task t) -> -t.priority));
        for (final String policy : policies) {
            for (final Trace.Task task : tasks) {
                final Row row = row(task, policy, Math.max(1, lengths.get(policy)));
                if (row.jobs() + row.skipped() + row.segments() > 0) {
                    rows.add(row);
                }
            }
        }
        return rows;
    }

    private static Row row(final Trace.Task task, final String policy, final long lengthNs) {
        final List<Long> responses = new ArrayList<>();
        final List<Long> waits = new ArrayList<>();
        int misses = 0;
        int skipped = 0;
        int preemptions = 0;
        int overruns = 0;
        int segments = 0;
        double busyNs = 0;
        for (final Trace.Job job : task.jobs) {
            if (job.policy.equals(policy)) {
                misses += job.isLate() ? 1 : 0;
                skipped += job.isSkipped() ? 1 : 0;
                if (job.isComplete()) {
                    responses.add(job.responseNs);
                }
            }
        }
        for (final Trace.Segment segment : task.segments) {
            if (segment.policy.equals(policy)) {
                segments++;
                preemptions += segment.preemptions.size();
                overruns += segment.overrunNs != 0 ? 1 : 0;
                busyNs += segment.busyNs;
                if (segment.isComplete()) {
                    waits.add(segment.waitNs());
                }
            }
        }
        return new Row(task.name, policy, task.priority, task.gpu, responses.size(),
            task.isRealTime() && task.deadlineNs > 0 ? misses : -1, skipped, Times.of(responses), Times.of(waits),
            segments, preemptions, overruns, (long) busyNs, busyNs / lengthNs);
    }

    /** As JSON, with the chains of a task set, or null. */
    public static ObjectNode json(final Trace trace, final TaskSet set) {
        final ObjectNode root = json(trace);
        if (set != null) {
            for (final TraceChains.Seen seen : TraceChains.of(trace, set)) {
                final ObjectNode node = root.withArray("chains").addObject().put("name", seen.chain().name());
                reactions(seen).putInto(node.putObject("reaction_ns"));
                ages(seen).putInto(node.putObject("age_ns"));
                node.put("unmatched", seen.unmatched()).put("remark", seen.problem());
            }
        }
        return root;
    }

    /** As a table, with the chains of a task set, or null. */
    public static String text(final Trace trace, final TaskSet set) {
        final StringBuilder out = new StringBuilder(text(trace));
        if (set != null) {
            out.append(String.format("%n%-20s %8s | %9s %9s %9s | %9s %9s %9s%n", "chain", "outputs", "react p50",
                "p99", "max ms", "age p50", "p99", "max ms"));
            for (final TraceChains.Seen seen : TraceChains.of(trace, set)) {
                final Times reaction = reactions(seen);
                final Times age = ages(seen);
                out.append(String.format(Locale.ROOT, "%-20s %8d | %9.3f %9.3f %9.3f | %9.3f %9.3f %9.3f%s%n",
                    seen.chain().name(), age.count(), reaction.p50Ns() / NS_PER_MS, reaction.p99Ns() / NS_PER_MS,
                    reaction.maxNs() / NS_PER_MS, age.p50Ns() / NS_PER_MS, age.p99Ns() / NS_PER_MS,
                    age.maxNs() / NS_PER_MS, seen.problem().isEmpty() ? "" : "   " + seen.problem()));
            }
        }
        return out.toString();
    }

    private static Times reactions(final TraceChains.Seen seen) {
        return Times.of(seen.outputs().stream().map(TraceChains.Output::reactionNs).filter(ns -> ns >= 0).toList());
    }

    private static Times ages(final TraceChains.Seen seen) {
        return Times.of(seen.outputs().stream().map(TraceChains.Output::ageNs).toList());
    }

    /** As JSON: times in ns. */
    public static ObjectNode json(final Trace trace) {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("source", trace.title).put("mechanism", trace.mechanism).put("level_name", trace.levelName)
            .put("consequence", trace.consequence).put("simulated", trace.simulated)
            .put("events", trace.events).put("duration_ns", trace.lastNs - trace.firstNs)
            .put("lost_events", trace.lost());
        for (final Trace.Phase phase : trace.phases) {
            root.withArray("phases").addObject().put("policy", phase.policy()).put("from_ns", phase.fromNs())
                .put("to_ns", phase.toNs());
        }
        for (final Row row : of(trace)) {
            final ObjectNode node = root.withArray("tasks").addObject();
            node.put("name", row.task()).put("policy", row.policy()).put("priority", row.priority())
                .put("gpu", row.gpu()).put("jobs", row.jobs());
            if (row.misses() >= 0) {
                node.put("misses", row.misses());
            } else {
                node.putNull("misses");
            }
            node.put("skipped", row.skipped());
            row.response().putInto(node.putObject("response_ns"));
            row.waiting().putInto(node.putObject("wait_ns"));
            node.put("segments", row.segments()).put("preemptions", row.preemptions())
                .put("overruns", row.overruns()).put("busy_ns", row.busyNs())
                .put("gpu_share", Math.round(row.gpuShare() * 1e6) / 1e6);
        }
        final ObjectNode kinds = root.putObject("events_by_kind");
        trace.counts.forEach(kinds::put);
        return root;
    }

    /** As a table: times in ms. */
    public static String text(final Trace trace) {
        final StringBuilder out = new StringBuilder(1 << 12);
        out.append(trace.title).append(": ").append(trace.events).append(" events in ")
            .append(String.format(Locale.ROOT, "%.3f s", (trace.lastNs - trace.firstNs) / 1e9)).append(", ")
            .append(trace.lost()).append(" lost; mechanism ").append(trace.mechanism)
            .append(trace.simulated ? " (SIMULATED GPU)" : "").append(trace.consequence.isEmpty() ? ""
            : ": " + trace.consequence).append('\n');
        String policy = "";
        for (final Row r : of(trace)) {
            if (!r.policy().equals(policy)) {
                policy = r.policy();
                out.append(String.format("%npolicy %s%n%-20s %4s %6s %6s | %9s %9s %9s | %9s %9s %9s | %6s %6s %6s%n",
                    policy, "task", "prio", "jobs", "misses", "resp p50", "p99", "max ms", "wait p50", "p99", "max ms",
                    "preem.", "overr.", "GPU %"));
            }
            out.append(String.format(Locale.ROOT,
                "%-20s %4s %6d %6s | %9.3f %9.3f %9.3f | %9.3f %9.3f %9.3f | %6d %6d %6.1f%s%n", r.task(),
                r.priority() == 0 ? "BE" : Integer.toString(r.priority()), r.jobs(),
                r.misses() < 0 ? "-" : Integer.toString(r.misses()), r.response().p50Ns() / NS_PER_MS,
                r.response().p99Ns() / NS_PER_MS, r.response().maxNs() / NS_PER_MS, r.waiting().p50Ns() / NS_PER_MS,
                r.waiting().p99Ns() / NS_PER_MS, r.waiting().maxNs() / NS_PER_MS, r.preemptions(), r.overruns(),
                100 * r.gpuShare(), r.skipped() == 0 ? "" : "   " + r.skipped() + " jobs skipped"));
        }
        return out.toString();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A trace as trace viewers think of it: tracks with nested slices, instants, flows and counters. Times in ns. */
final class Timeline {
    /** Parent of tracks that have none. */
    static final int ROOT = 0;

    /** A row; {@code pid} is that of the process it shows, 0 if none. */
    record Track(int id, int parent, String name, int pid, boolean counter) {
    }

    /** {@code flow} is 0 where no arrow touches it. Children lie within. */
    record Slice(int track, String name, String category, long fromNs, long toNs, long flow,
        Map<String, Object> arguments, List<Slice> children) {
        Slice(final int track, final String name, final String category, final long fromNs, final long toNs,
            final long flow, final Map<String, Object> arguments) {
            this(track, name, category, fromNs, toNs, flow, arguments, new ArrayList<>());
        }
    }

    record Instant(int track, String name, String category, long timeNs, long flow, Map<String, Object> arguments) {
    }

    record Count(int track, long timeNs, long value) {
    }

    private static final String SEGMENT = "segment";

    final List<Track> tracks = new ArrayList<>();
    final List<Slice> slices = new ArrayList<>();
    final List<Instant> instants = new ArrayList<>();
    final List<Count> counts = new ArrayList<>();
    private final Trace trace;
    private long flow;

    private Timeline(final Trace trace) {
        this.trace = trace;
    }

    static Timeline of(final Trace trace) {
        final Timeline timeline = new Timeline(trace);
        timeline.build();
        return timeline;
    }

    private int track(final int parent, final String name, final int pid, final boolean counter) {
        final int id = tracks.size() + 1;
        tracks.add(new Track(id, parent, name, pid, counter));
        return id;
    }

    private void build() {
        final String label = trace.simulated ? " (simulated)" : "";
        final Map<Trace.Segment, Long> flows = new LinkedHashMap<>();
        for (final Trace.Task task : trace.tasks) {
            for (final Trace.Segment segment : task.segments) {
                flows.put(segment, ++flow);
            }
        }
        for (int gpu = 0; gpu < trace.gpus; gpu++) {
            final int parent = track(ROOT, "GPU " + gpu + label, 0, false);
            holders(gpu, parent, flows);
            kernels(gpu, parent);
            counters(gpu, parent);
        }
        final int tasks = track(ROOT, "Tasks", 0, false);
        for (final Trace.Task task : trace.tasks) {
            task(task, tasks, flows);
        }
        final int contexts = track(ROOT, "Contexts" + label, 0, false);
        for (final Trace.Context context : trace.contexts) {
            final int row = track(contexts, context.name + " (pid " + context.pid + ", GPU " + context.gpu + ")",
                context.pid, false);
            long onSinceNs = 0;
            for (final Trace.Span off : context.off) {
                final long fromNs = Math.max(onSinceNs, off.fromNs());
                onSinceNs = Math.max(fromNs, off.toNs());
                slices.add(new Slice(row, "off the hardware", "context", fromNs, onSinceNs, 0, Map.of()));
            }
        }
        final int daemon = track(ROOT, "Daemon", 0, false);
        for (final Trace.Mark mark : trace.marks) {
            final Map<String, Object> arguments = Map.of("what", mark.text(), "task",
                mark.task() == null ? "" : mark.task().name);
            instants.add(new Instant(daemon, mark.kind() + (mark.task() == null ? "" : " " + mark.task().name), "mark",
                mark.timeNs(), 0, arguments));
        }
    }

    /** One lane where the GPU has one holder; as many as share it otherwise. */
    private void holders(final int gpu, final int parent, final Map<Trace.Segment, Long> flows) {
        record Hold(Trace.Segment segment, Trace.Span span, int number) {
        }
        final List<Hold> holds = new ArrayList<>();
        for (final Trace.Segment segment : flows.keySet()) {
            if (segment.task.gpu == gpu) {
                for (int i = 0; i < segment.holds.size(); i++) {
                    holds.add(new Hold(segment, segment.holds.get(i), i));
                }
            }
        }
        holds.sort(Comparator.comparingLong((Hold h) -> h.span().fromNs()).thenComparing(h -> h.segment().seq));
        final List<Integer> lanes = new ArrayList<>();
        final List<Long> busyUntilNs = new ArrayList<>();
        for (final Hold hold : holds) {
            int lane = 0;
            while (lane < lanes.size() && busyUntilNs.get(lane) > hold.span().fromNs()) {
                lane++;
            }
            if (lane == lanes.size()) {
                lanes.add(track(parent, lane == 0 ? "holder" : "holder, shared " + (lane + 1), 0, false));
                busyUntilNs.add(0L);
            }
            busyUntilNs.set(lane, hold.span().toNs());
            final Trace.Segment s = hold.segment();
            slices.add(new Slice(lanes.get(lane), s.task.name, "gpu", hold.span().fromNs(), hold.span().toNs(),
                flows.get(s), arguments(s)));
        }
    }

    /** As many lanes as kernels overlap. */
    private void kernels(final int gpu, final int parent) {
        final List<Integer> lanes = new ArrayList<>();
        final List<Long> busyUntilNs = new ArrayList<>();
        for (final Kernels.Kernel kernel : trace.kernels == null ? List.<Kernels.Kernel>of() : trace.kernels.all) {
            if (kernel.gpu() != gpu) {
                continue;
            }
            int lane = 0;
            while (lane < lanes.size() && busyUntilNs.get(lane) > kernel.fromNs()) {
                lane++;
            }
            if (lane == lanes.size()) {
                lanes.add(track(parent, "kernels, +-" + trace.kernels.errorNs + " ns" + (lane == 0 ? ""
                    : ", " + (lane + 1)), 0, false));
                busyUntilNs.add(0L);
            }
            busyUntilNs.set(lane, kernel.toNs());
            slices.add(new Slice(lanes.get(lane), kernel.name(), "kernel", kernel.fromNs(), kernel.toNs(), 0,
                Map.of()));
        }
    }

    private void counters(final int gpu, final int parent) {
        record Step(long timeNs, int change) {
        }
        final List<Step> ready = new ArrayList<>();
        for (final Trace.Task task : trace.tasks) {
            if (task.gpu == gpu) {
                for (final Trace.Segment s : task.segments) {
                    ready.add(new Step(s.beginNs, 1));
                    ready.add(new Step(s.endNs == 0 ? trace.lastNs : Math.max(s.endNs, s.beginNs), -1));
                }
            }
        }
        final List<Step> off = new ArrayList<>();
        for (final Trace.Context context : trace.contexts) {
            if (context.gpu == gpu) {
                for (final Trace.Span span : context.off) {
                    off.add(new Step(span.fromNs(), 1));
                    off.add(new Step(span.toNs(), -1));
                }
            }
        }
        final Map<String, List<Step>> series = new LinkedHashMap<>();
        series.put("begun segments", ready);
        series.put("held contexts", off);
        series.forEach((name, steps) -> {
            final int row = track(parent, name, 0, true);
            steps.sort(Comparator.comparingLong(Step::timeNs).thenComparing(Step::change));
            long value = 0;
            for (final Step step : steps) {
                value += step.change();
                counts.add(new Count(row, step.timeNs(), value));
            }
        });
    }

    private void task(final Trace.Task task, final int parent, final Map<Trace.Segment, Long> flows) {
        final String rank = task.isRealTime() ? "priority " + task.priority : "best effort";
        final int row = track(parent, task.name + " (" + rank + ")", task.pid, false);
        final int jobRow = task.account.marks() ? track(parent, task.name + " jobs", task.pid, false) : 0;
        long freeNs = 0;
        for (final Trace.Job job : task.jobs) {
            if (jobRow != 0 && job.isComplete()) {
                final Map<String, Object> arguments = new LinkedHashMap<>();
                arguments.put("release_ns", job.releaseNs);
                arguments.put("response_ns", job.responseNs);
                arguments.put("late", job.isLate());
                if (job.stampNs != 0) {
                    arguments.put("stamp_ns", job.stampNs);
                }
                if (job.sample != 0) {
                    arguments.put("sample", Long.toUnsignedString(job.sample));
                }
                // a job that was released before the one before was done is drawn from then on
                slices.add(new Slice(jobRow, "job " + job.number + (job.isLate() ? " LATE" : ""), "job",
                    Math.max(freeNs, job.releaseNs), Math.max(freeNs, job.endNs), 0, arguments));
                freeNs = Math.max(freeNs, job.endNs);
            }
            if (job.isLate()) {
                instants.add(new Instant(row, "deadline missed", "miss", job.releaseNs + task.deadlineNs, 0,
                    Map.of("job", job.number, "response_ns", job.responseNs, "deadline_ns", task.deadlineNs)));
            }
        }
        long freeFromNs = 0;
        for (final Trace.Segment s : task.segments) {
            freeFromNs = segment(row, s, flows.get(s), freeFromNs);
        }
    }

    /** Applications write the times of begin and end: one that begins before the last one's end is drawn from there. */
    private long segment(final int row, final Trace.Segment s, final long id, final long freeFromNs) {
        final long beginNs = Math.max(freeFromNs, s.beginNs);
        final long endNs = Math.max(beginNs, s.endNs == 0 ? trace.lastNs : s.endNs);
        final Slice whole = new Slice(row, s.cancelled ? "given up" : "segment " + s.ticket, SEGMENT, beginNs, endNs,
            id, arguments(s));
        long atNs = beginNs;
        boolean first = true;
        for (final Trace.Span hold : s.holds) {
            final long fromNs = Math.min(endNs, Math.max(atNs, hold.fromNs()));
            final long toNs = Math.max(fromNs, Math.min(endNs, hold.toNs()));
            if (fromNs > atNs) {
                whole.children().add(new Slice(row, first ? "waiting" : "preempted", SEGMENT, atNs, fromNs, 0,
                    Map.of()));
            }
            whole.children().add(new Slice(row, "running", SEGMENT, fromNs, toNs, id, Map.of()));
            atNs = toNs;
            first = false;
        }
        if (endNs > atNs) {
            whole.children().add(new Slice(row, first ? "waiting" : "preempted", SEGMENT, atNs, endNs, 0, Map.of()));
        }
        slices.add(whole);
        if (s.endNs != 0) {
            instants.add(new Instant(row, "end", SEGMENT, endNs, id, Map.of()));
        }
        return endNs;
    }

    private static Map<String, Object> arguments(final Trace.Segment s) {
        final Map<String, Object> all = new LinkedHashMap<>();
        all.put("task", s.task.name);
        all.put("priority", s.task.priority);
        all.put("policy", s.policy);
        all.put("ticket", s.ticket);
        all.put("job", s.job == null ? 0 : s.job.number);
        all.put("optimistic", s.optimistic);
        all.put("wait_ns", s.waitNs());
        if (s.enforcedNs != 0) {
            all.put("enforced_after_ns", s.enforcedNs - s.beginNs);
        }
        if (s.deviceNs != 0) {
            all.put("device_ns", s.deviceNs);
        }
        all.put("preemptions", s.preemptions.size());
        if (!s.preemptions.isEmpty()) {
            final Trace.Task by = s.preemptions.get(0).by();
            all.put("first_preempted_by", by == null ? "unknown" : by.name);
        }
        return all;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ThreadConfiguration;
import dev.gpuseg.analysis.model.Durations;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Draws a task set from a trace: what was measured, with a margin, in the form that the analysis reads. Only jobs that
 * were released while decisions were enforced are looked at. Stateless.
 *
 * <ul>
 *   <li>period: what the task was opened with; if it stated none, the shortest distance of two releases. Deadline as
 *       opened, at most the period;</li>
 *   <li>device part of the n-th segment of a job: the longest that the client reported;</li>
 *   <li>host part: the longest time in which it had the GPU without being preempted, less its device part; for
 *       best-effort tasks, which share the GPU, the shortest, of n that share it each counted for 1/n;</li>
 *   <li>where no device time was reported, both parts are the whole window: safe, and up to twice too long;</li>
 *   <li>CPU parts: the longest time between windows; it contains whatever interfered there, but not the backlog of
 *       earlier jobs;</li>
 *   <li>"longest" is a percentile if the user asks for one;</li>
 *   <li>core: the least loaded of those that the machine has, the longest tasks first; or, with a configuration of the
 *       threads, of those that it gives ({@link DrawnThreads});</li>
 *   <li>epsilon: the longest time from the call of begin until all others were off (or until one was back on), plus
 *       theta, which no trace shows;</li>
 *   <li>of several processes that opened a task of the same name one after the other, the last one is drawn.</li>
 * </ul>
 *
 * <p>What the user must know of the result (a part longer than its period, an early release, a process that is left
 * out) stands as a warning in the file and is returned.
 */
public final class TaskSetDrawing {
    private static final long NS_PER_US = 1000;
    private static final long THETA_NS = 200_000;
    /** Releases may be early by a hundredth of the period before that is worth a warning. */
    private static final int EARLY_PART = 100;
    private static final double BEST_EFFORT = 1e-6;

    /** Of all measured values: the longest. */
    public static final int LONGEST = 100;
    /** The one in the middle, to imitate a typical run. */
    static final int MEDIAN = 50;

    /**
     * How to draw.
     *
     * @param id            of the set
     * @param marginPercent added to every measured time but periods, 0 or more
     * @param percentile    of the measured times that counts, 1..100; 100 = the longest
     * @param cpus          cores to place the tasks on; 0 = those of the machine that recorded
     */
    public record Wish(String id, int marginPercent, int percentile, int cpus) {
    }

    /**
     * A task set.
     *
     * @param yaml     for the analysis
     * @param warnings what the user must know of it, one line each
     */
    public record Drawing(String yaml, List<String> warnings) {
    }

    /**
     * A measured task, times without margin.
     *
     * @param task      which
     * @param jobs      jobs it was measured from
     * @param periodNs  as declared, else the shortest distance of two releases; 0 if unknown
     * @param seenNs    the shortest distance of two releases; 0 if unknown
     * @param cpuNs     CPU part before each window and after the last: one more than windows
     * @param hostNs    of each window
     * @param deviceNs  of each window
     * @param wholeOnly no device time was reported: both parts are the whole window
     */
    record Measured(Trace.Task task, int jobs, long periodNs, long seenNs, long[] cpuNs, long[] hostNs,
        long[] deviceNs, boolean wholeOnly) {
        /** All parts one after the other, without margin, ns. */
        long sumNs() {
            long sum = 0;
            for (final long ns : cpuNs) {
                sum += ns;
            }
            for (int i = 0; i < hostNs.length; i++) {
                sum += hostNs[i] + (wholeOnly ? 0 : deviceNs[i]);
            }
            return sum;
        }
    }

    private TaskSetDrawing() {
    }

    /**
     * Measures the tasks.
     *
     * @param trace      what happened
     * @param percentile of the measured values
     * @return the tasks that completed a job while decisions were enforced
     */
    static List<Measured> measure(final Trace trace, final int percentile) {
        final List<Measured> all = new ArrayList<>();
        for (final Trace.Task task : trace.tasks) {
            final List<Trace.Job> jobs = new ArrayList<>();
            final Map<Trace.Job, Long> free = new IdentityHashMap<>();
            int windows = 0;
            final int pid = lastProcess(task);
            long overNs = 0;
            for (final Trace.Job job : task.jobs) {
                if (job.pid == pid) {
                    if (overNs > 0) {
                        free.put(job, overNs);
                    }
                    overNs = Math.max(overNs, overNs(job));
                }
                if (job.pid == pid && job.isComplete() && Trace.isEnforced(job.policy)
                    && job.segments.stream().allMatch(Trace.Segment::isComplete)) {
                    jobs.add(job);
                    windows = Math.max(windows, job.segments.size());
                }
            }
            if (!jobs.isEmpty()) {
                all.add(measure(task, jobs, free, windows, percentile));
            }
        }
        return all;
    }

    /**
     * One task. A job that was released before an earlier one of its process was over (free) had to wait for that,
     * which is no CPU time. Best effort may lag without end, so of its first job, before which nothing is known, the
     * first CPU part does not count.
     */
    private static Measured measure(final Trace.Task task, final List<Trace.Job> jobs,
        final Map<Trace.Job, Long> free, final int windows, final int percentile) {
        final List<List<Long>> cpu = lists(windows + 1);
        final List<List<Long>> host = lists(windows);
        final List<List<Long>> undisturbed = lists(windows);
        final List<List<Long>> device = lists(windows);
        boolean reported = true;
        long shortestNs = 0;
        Trace.Job before = null;
        for (final Trace.Job job : jobs) {
            if (before != null && job.number == before.number + 1) {
                final long distanceNs = job.releaseNs - before.releaseNs;
                shortestNs = shortestNs == 0 ? distanceNs : Math.min(shortestNs, distanceNs);
            }
            long fromNs = Math.max(job.releaseNs, free.getOrDefault(job, job.releaseNs));
            before = job;
            for (int i = 0; i < job.segments.size(); i++) {
                final Trace.Segment s = job.segments.get(i);
                if (i > 0 || task.isRealTime() || free.containsKey(job)) {
                    cpu.get(i).add(Math.max(0, s.beginNs - fromNs));
                }
                final long heldNs = task.isRealTime() ? s.heldNs() : (long) s.busyNs;
                final long restNs = Math.max(0, heldNs - s.deviceNs);
                host.get(i).add(restNs);
                if (s.preemptions.isEmpty()) {
                    undisturbed.get(i).add(restNs);
                }
                device.get(i).add(s.deviceNs);
                reported &= s.deviceNs > 0;
                fromNs = s.endNs;
            }
            cpu.get(job.segments.size()).add(job.marked ? Math.max(0, job.endNs - fromNs) : 0);
        }
        final long[] cpuNs = new long[windows + 1];
        final long[] hostNs = new long[windows];
        final long[] deviceNs = new long[windows];
        for (int i = 0; i <= windows; i++) {
            cpuNs[i] = pick(cpu.get(i), percentile);
        }
        for (int i = 0; i < windows; i++) {
            final List<Long> rest = undisturbed.get(i).isEmpty() ? host.get(i) : undisturbed.get(i);
            hostNs[i] = task.isRealTime() ? pick(rest, percentile) : rest.stream().mapToLong(v -> v).min().orElse(0);
            deviceNs[i] = reported ? pick(device.get(i), percentile) : hostNs[i];
        }
        return new Measured(task, jobs.size(), task.periodNs == 0 ? shortestNs : task.periodNs, shortestNs,
            cpuNs, hostNs, deviceNs, windows > 0 && !reported);
    }

    /** When the last earlier job of the process was over, as far as is known. */
    private static long overNs(final Trace.Job job) {
        long overNs = job.endNs;
        for (final Trace.Segment segment : job.segments) {
            overNs = Math.max(overNs, segment.endNs);
        }
        return overNs;
    }

    private static List<List<Long>> lists(final int count) {
        final List<List<Long>> lists = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            lists.add(new ArrayList<>());
        }
        return lists;
    }

    /** The process whose jobs were judged last. */
    private static int lastProcess(final Trace.Task task) {
        int pid = task.pid;
        for (final Trace.Job job : task.jobs) {
            if (job.isComplete() && Trace.isEnforced(job.policy)) {
                pid = job.pid;
            }
        }
        return pid;
    }

    /** By nearest rank; 0 of nothing. */
    private static long pick(final List<Long> values, final int percentile) {
        final long[] sorted = values.stream().mapToLong(Long::longValue).sorted().toArray();
        return sorted.length == 0 ? 0 : sorted[Math.max(0, (sorted.length * percentile + 99) / 100 - 1)];
    }

    /**
     * Longest time until the hardware obeyed, without theta. Where lower work was always disabled ahead of the begins
     * (anticipation), no segment had to wait for it, and the operations themselves tell.
     */
    static long enforcementNs(final Trace trace) {
        long longestNs = trace.longestDisableNs;
        for (final Trace.Task task : trace.tasks) {
            for (final Trace.Segment s : task.segments) {
                if (Trace.isEnforced(s.policy) && task.isRealTime() && s.enforcedNs != 0 && s.decidedNs != 0
                    && s.preemptions.isEmpty()) {
                    longestNs = Math.max(longestNs,
                        s.enforcedNs - s.decidedNs + Math.max(0, s.receivedNs - s.beginNs));
                }
            }
        }
        return longestNs;
    }

    /**
     * Writes the set.
     *
     * @param trace what happened
     * @param wish  how to draw
     * @return YAML, with its origin as comments, and warnings
     * @throws IllegalArgumentException if no task completed a job while decisions were enforced
     */
    public static Drawing draw(final Trace trace, final Wish wish) {
        try {
            return draw(trace, wish, null);
        } catch (final InvalidFileException e) {
            throw new IllegalStateException(e);   // there is no file
        }
    }

    /**
     * Writes the set with the cores and the priorities of its threads.
     *
     * @param trace         what happened
     * @param wish          how to draw
     * @param configuration of the threads; null = what the tasks were opened with
     * @return YAML, with its origin as comments, and warnings
     * @throws IllegalArgumentException if no task completed a job while decisions were enforced
     * @throws InvalidFileException     if the configuration says what no task set can, or not which thread is a task's
     */
    public static Drawing draw(final Trace trace, final Wish wish, final ThreadConfiguration configuration)
        throws InvalidFileException {
        final List<Measured> all = measure(trace, wish.percentile());
        if (all.isEmpty()) {
            throw new IllegalArgumentException(trace.title + ": no task completed a job while decisions were enforced; "
                + "record under policy fp or edf");
        }
        final int marginPercent = wish.marginPercent();
        final long epsilonNs = margin(enforcementNs(trace), marginPercent) + THETA_NS;
        final List<String> warnings = new ArrayList<>();
        all.forEach(m -> warn(m, wish, warnings));
        final DrawnThreads threads = DrawnThreads.of(all, configuration, warnings);
        final int cpus = Math.max(wish.cpus() > 0 ? wish.cpus() : trace.cpus, threads.cpus());
        final int[] cores = place(all, threads, cpus);
        threads.warn(cores, warnings);
        final StringBuilder out = new StringBuilder(1 << 12);
        out.append("# Drawn from ").append(trace.title).append(trace.simulated ? " (SIMULATED GPU)" : "").append(": ")
            .append(trace.events).append(" events, ").append(trace.lost()).append(" lost.\n");
        out.append("# Measured ").append(wish.percentile() == LONGEST ? "maxima" : "percentile " + wish.percentile()
            + " (what was longer is not in it)").append(" plus ").append(marginPercent)
            .append(" %; a longer run may show longer ones.\n");
        out.append("# CPU parts contain what interfered with them. ").append(configuration == null
            ? "Each task is on the least loaded core; write the cores that you use.\n" : "Cores and priorities: "
            + DrawnThreads.oneLine(configuration.file()) + ".\n");
        threads.others().forEach(line -> out.append("# ").append(line).append('\n'));
        out.append("# epsilon: longest measured enforcement plus the margin, plus theta (").append(
            Durations.format(THETA_NS)).append(", assumed: no trace shows it).\n");
        warnings.forEach(warning -> out.append("# WARNING: ").append(warning).append('\n'));
        out.append("version: 1\nid: ").append(quoted(wish.id())).append("\nplatform: {cpus: ").append(cpus)
            .append(", optimistic: true").append(trace.simulated ? ", simulated: true" : "");
        for (int gpu = 0; gpu < trace.gpus; gpu++) {
            out.append(gpu == 0 ? trace.gpus == 1 ? ", " : ", gpus: [{" : ", {").append("epsilon: ")
                .append(Durations.format(epsilonNs)).append(", theta: ").append(Durations.format(THETA_NS))
                .append(trace.gpus == 1 ? "" : "}");
        }
        out.append(trace.gpus == 1 ? "}\n" : "]}\n").append("mode: suspend\ntasks:\n");
        for (int i = 0; i < all.size(); i++) {
            final Measured m = all.get(i);
            final Trace.Task task = m.task();
            if (m.periodNs() <= 0) {
                out.append("  # ").append(task.name).append(" is left out: one job and no stated period\n");
                continue;
            }
            out.append("  # ").append(task.name).append(": ").append(m.jobs()).append(" jobs")
                .append(m.wholeOnly() ? "; no device time was reported, so both parts are the whole window" : "")
                .append(task.isRealTime() ? "" : "; host part: the shortest, windows of best effort contain "
                    + "others' work").append('\n');
            out.append("  - {name: ").append(quoted(task.name)).append(", cpu: ").append(cores[i]).append(task.gpu == 0
                ? "" : ", gpu: " + task.gpu).append(", period: ").append(Durations.format(m.periodNs()));
            if (task.isRealTime()) {
                if (task.deadlineNs > 0 && task.deadlineNs < m.periodNs()) {
                    out.append(", deadline: ").append(Durations.format(task.deadlineNs));
                }
                out.append(", priority: ").append(threads.priority(i));
                if (task.gpuPriority != threads.priority(i)) {
                    out.append(", gpu_priority: ").append(task.gpuPriority);
                }
            } else {
                out.append(", best_effort: true");
            }
            out.append(",\n     segments: [");
            segments(out, m, marginPercent);
            out.append("]}\n");
        }
        return new Drawing(out.toString(), warnings);
    }

    private static void warn(final Measured m, final Wish wish, final List<String> warnings) {
        final Trace.Task task = m.task();
        final String who = "task \"" + task.name + "\": ";
        final Map<Integer, Integer> others = new LinkedHashMap<>();
        for (final Trace.Job job : task.jobs) {
            if (job.isComplete() && Trace.isEnforced(job.policy) && job.pid != lastProcess(task)) {
                others.merge(job.pid, 1, Integer::sum);
            }
        }
        if (!others.isEmpty()) {
            warnings.add(who + "drawn from process " + lastProcess(task) + " alone; left out: " + others.entrySet()
                .stream().map(e -> "process " + e.getKey() + " of the same name (" + e.getValue() + " jobs)")
                .collect(Collectors.joining(", ")) + "; record them apart to draw them");
        }
        if (task.periodNs > 0 && m.seenNs() > 0 && task.isRealTime()
            && m.seenNs() < task.periodNs - task.periodNs / EARLY_PART) {
            warnings.add(who + "two releases were " + Durations.format(m.seenNs()) + " apart, less than its declared "
                + "period " + Durations.format(task.periodNs) + ", which is kept; the bounds hold only if jobs come "
                + "no closer");
        }
        final long needsNs = margin(m.sumNs(), wish.marginPercent());
        if (task.isRealTime() && m.periodNs() > 0 && needsNs > m.periodNs()) {
            warnings.add(who + "its parts take " + Durations.format(needsNs) + " with the margin, longer than its "
                + "period " + Durations.format(m.periodNs()) + ", so nothing can admit it; one hiccup of "
                + m.jobs() + " jobs does that: try --percentile 99, a smaller --margin, or an idle machine");
        }
    }

    /**
     * A core of 1..cpus for each task: those with one core first, then the busiest, each on the core with the least
     * load of those that it may use.
     */
    private static int[] place(final List<Measured> all, final DrawnThreads threads, final int cpus) {
        final int[] cores = new int[all.size()];
        final double[] load = new double[cpus];
        final List<Integer> order = new ArrayList<>();
        for (int i = 0; i < all.size(); i++) {
            order.add(i);
        }
        order.sort(Comparator.comparing((Integer i) -> threads.cores(i).size() != 1)
            .thenComparingDouble(i -> -load(all.get(i))));
        for (final int i : order) {
            int least = -1;
            for (int c = 0; c < cpus; c++) {
                if (threads.mayUse(i, c)) {
                    least = least < 0 || load[c] < load[least] ? c : least;
                }
            }
            cores[i] = least + 1;
            load[least] += load(all.get(i));
        }
        return cores;
    }

    private static double load(final Measured m) {
        // best effort comes last: no bound depends on its core
        return m.periodNs() <= 0 ? 0 : (double) m.sumNs() / m.periodNs() * (m.task().isRealTime() ? 1 : BEST_EFFORT);
    }

    private static void segments(final StringBuilder out, final Measured m, final int marginPercent) {
        String separator = "";
        for (int i = 0; i < m.cpuNs().length; i++) {
            final long cpuNs = margin(m.cpuNs()[i], marginPercent);
            if (cpuNs > 0 || m.cpuNs().length == 1) {
                out.append(separator).append("{cpu: ").append(Durations.format(Math.max(NS_PER_US, cpuNs))).append('}');
                separator = ", ";
            }
            if (i < m.hostNs().length) {
                final long hostNs = margin(m.hostNs()[i], marginPercent);
                final long deviceNs = margin(m.deviceNs()[i], marginPercent);
                out.append(separator).append("{gpu: {host: ").append(Durations.format(hostNs)).append(", device: ")
                    .append(Durations.format(deviceNs))
                    .append(m.wholeOnly() ? ", total: " + Durations.format(hostNs) : "").append("}}");
                separator = ", ";
            }
        }
    }

    /** With the margin, rounded up to whole microseconds. */
    private static long margin(final long ns, final int percent) {
        final long more = Math.addExact(ns, Math.multiplyExact(ns, percent) / 100);
        return (more + NS_PER_US - 1) / NS_PER_US * NS_PER_US;
    }

    private static String quoted(final String text) {
        return text.matches("[A-Za-z][A-Za-z0-9_.-]*") && !List.of("true", "false", "null", "yes", "no", "on", "off")
            .contains(text.toLowerCase(Locale.ROOT)) ? text
            : '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ") + '"';
    }
}

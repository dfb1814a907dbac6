/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads rt-app files: {@link ForeignFormat#RT_APP}. A thread repeats its phases, and each phase its events; what stands
 * between two timers is one job. A task of this project repeats one job at one period, so a thread whose jobs or
 * periods differ is refused, as is one that ends, or whose period depends on another thread.
 *
 * <p>Source of what a key means: rt-app's tutorial and parser, read at 55cb0c0. One reader per file; not thread-safe.
 */
final class RtAppImporter {
    private static final Set<String> ROOT_KEYS = Set.of("tasks", "global", "resources");
    /** What concerns the run and its logs, not the tasks; {@code default_policy} alone is used. */
    private static final Set<String> GLOBAL_KEYS = Set.of("duration", "calibration", "default_policy", "pi_enabled",
        "lock_pages", "logdir", "log_basename", "log_size", "ftrace", "gnuplot", "io_device", "mem_buffer_size",
        "cumulative_slack", "frag");
    /** What a thread and a phase may have beside events. */
    private static final Set<String> PHASE_KEYS = Set.of("loop", "policy", "priority", "cpus", "dl-runtime",
        "dl-period", "dl-deadline", "util_min", "util_max", "nodes_membind", "taskgroup", "events");
    private static final Set<String> TASK_KEYS = with(PHASE_KEYS, "instance", "delay", "phases", "period", "deadline");
    /** Known, and the model has no place for them. */
    private static final Set<String> FOREIGN_EVENTS = Set.of("lock", "unlock", "wait", "signal", "broad", "sync",
        "sleep", "suspend", "resume", "mem", "memrun", "iorun", "barrier", "fork", "sem_post", "sem_wait");
    private static final Set<String> EVENTS = with(FOREIGN_EVENTS, "run", "runtime", "timer", "gpu", "yield");
    /** An event, and what makes it another key than the one before: {@code run}, {@code run1}, {@code run_b}. */
    private static final Pattern EVENT = Pattern.compile("([a-z]+(?:_(?:post|wait))?)(?:[0-9A-Z_-].*)?");
    private static final List<String> POLICIES = List.of("SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE", "SCHED_OTHER",
        "SCHED_BATCH", "SCHED_IDLE");
    private static final String DEADLINE_POLICY = "SCHED_DEADLINE";
    /** That of rt-app for SCHED_FIFO and SCHED_RR. */
    private static final int DEFAULT_PRIORITY = 10;
    private static final int NICE = 20;
    private static final String UNIQUE = "unique";
    private static final String SERVER = "yield";

    /** When a job ends and the next may begin; ref null for a timer without one, which is its own. */
    private record Timer(String ref, long periodNs) {
    }

    /** A step of a thread: work, or the end of a job. */
    private record Step(Segment work, Timer timer) {
    }

    /** Of a SCHED_DEADLINE thread; ns. */
    private record Reservation(long runtimeNs, long periodNs, long deadlineNs) {
    }

    private final int cpus;
    /** Which task uses a timer that is not one of its own. */
    private final Map<String, String> timers = new HashMap<>();

    RtAppImporter(final int cpus) {
        this.cpus = cpus;
    }

    List<Task> tasks(final Node root) throws InvalidFileException {
        root.requireMapping(ROOT_KEYS, "{\"tasks\": {...}}");
        final Node all = root.required("tasks");
        requireMapping(all);
        String defaultPolicy = "SCHED_OTHER";
        if (root.get("global") != null) {
            final Node given = root.get("global").requireMapping(GLOBAL_KEYS).get("default_policy");
            defaultPolicy = given == null ? defaultPolicy : given.oneOf(POLICIES);
        }
        final List<Task> tasks = new ArrayList<>();
        for (final String name : all.keys()) {
            final Node body = all.get(name).callIt("task \"" + name + "\"");
            requireMapping(body);
            add(tasks, name, body, defaultPolicy);
        }
        return tasks;
    }

    private void add(final List<Task> tasks, final String name, final Node body, final String defaultPolicy)
        throws InvalidFileException {
        final String policy = body.get("policy") == null ? defaultPolicy : body.get("policy").oneOf(POLICIES);
        final Reservation reservation = policy.equals(DEADLINE_POLICY) ? reservation(body) : null;
        if (reservation == null) {
            refuseReservation(body, policy);
        }
        final List<Step> steps = steps(body, reservation);
        final int instances = body.get("instance") == null ? 1 : body.get("instance").integer(1, TaskSet.MAX_TASKS);
        if (body.get("delay") != null) {   // the analyses take every offset
            ForeignTime.ns(body.get("delay"), ForeignTime.MICROSECONDS);
        }
        final Timer timer = timer(body, steps, name, instances);
        final boolean realTime = List.of("SCHED_FIFO", "SCHED_RR", DEADLINE_POLICY).contains(policy);
        final int priority = priority(body, policy);
        final int cpu = cpu(body);
        final List<Segment> job;
        final long period;
        if (timer == null && reservation != null && steps.stream().allMatch(s -> s.work() instanceof Segment.Cpu)) {
            // It never waits: in each period it takes all that the kernel gives it.
            period = reservation.periodNs();
            job = List.of(new Segment.Cpu(reservation.runtimeNs()));
        } else if (timer == null) {
            throw body.refuse("has no period; give it a timer event with a period");
        } else {
            period = timer.periodNs();
            job = job(body, steps);
            fit(body, reservation, timer, job);
        }
        final Node given = one(body, "dl-deadline", "deadline");
        final long deadline = reservation != null ? reservation.deadlineNs() : given == null ? period
            : ForeignTime.ns(given, ForeignTime.MICROSECONDS);
        for (int k = 1; k <= instances; k++) {
            tasks.add(ForeignFormat.task(body, instances == 1 ? name : name + "-" + k, cpu, period, deadline,
                realTime ? priority : 0, !realTime, job));
        }
    }

    // ---- the thread's properties ----

    private static int priority(final Node body, final String policy) throws InvalidFileException {
        final Node given = body.get("priority");
        return switch (policy) {
            case "SCHED_FIFO", "SCHED_RR" -> given == null ? DEFAULT_PRIORITY : given.integer(1, Task.MAX_PRIORITY);
            case DEADLINE_POLICY -> given == null ? 0 : given.integer(0, 0);
            default -> given == null ? 0 : given.integer(-NICE, NICE - 1);
        };
    }

    private int cpu(final Node body) throws InvalidFileException {
        final Node given = body.get("cpus");
        if (given == null) {
            return 0;
        }
        final Set<Integer> cores = new LinkedHashSet<>();
        for (final Node core : given.requireList("core", "a list of cores, like [0]")) {
            cores.add(core.integer(0, cpus - 1));
        }
        if (cores.size() != 1 && cores.size() != cpus) {
            throw given.refuse("names " + cores.size() + " cores of " + cpus
                + "; a task stays on one: name it, or leave cpus out and add --partition");
        }
        return cores.size() == 1 ? cores.iterator().next() + 1 : 0;
    }

    private static Reservation reservation(final Node body) throws InvalidFileException {
        final Node runtime = body.get("dl-runtime");
        if (runtime == null) {
            throw body.refuse("is SCHED_DEADLINE without dl-runtime; add it, in microseconds");
        }
        final long runtimeNs = ForeignTime.ns(runtime, ForeignTime.MICROSECONDS);
        final Node period = one(body, "dl-period", "period");
        final long periodNs = period == null ? runtimeNs : ForeignTime.ns(period, ForeignTime.MICROSECONDS);
        final Node deadline = one(body, "dl-deadline", "deadline");
        final long deadlineNs = deadline == null ? periodNs : ForeignTime.ns(deadline, ForeignTime.MICROSECONDS);
        if (runtimeNs > deadlineNs) {
            throw runtime.refuse("is " + Durations.format(runtimeNs) + ", longer than the deadline of "
                + Durations.format(deadlineNs) + "; the kernel refuses that");
        }
        return new Reservation(runtimeNs, periodNs, deadlineNs);
    }

    /** What rt-app reads with SCHED_DEADLINE only; a deadline is taken for every task. */
    private static void refuseReservation(final Node body, final String policy) throws InvalidFileException {
        for (final String key : List.of("dl-runtime", "dl-period", "period")) {
            final Node given = body.get(key);
            if (given != null && (!key.equals("dl-runtime") || policy.equals("SCHED_FIFO")
                || policy.equals("SCHED_RR"))) {   // else the length of a slice
                throw given.refuse("has no effect with " + policy
                    + "; give the task a timer event with a period, or policy SCHED_DEADLINE");
            }
        }
    }

    private static Node one(final Node of, final String first, final String second) throws InvalidFileException {
        if (of.get(first) != null && of.get(second) != null) {
            throw of.get(second).refuse("stands beside '" + first + "'; write one of them");
        }
        return of.get(first) != null ? of.get(first) : of.get(second);
    }

    /** A reservation must suffice for every job, or the job would run over into the next period. */
    private static void fit(final Node body, final Reservation reservation, final Timer timer, final List<Segment> job)
        throws InvalidFileException {
        if (reservation == null) {
            return;
        }
        long cpuNs = 0;
        for (final Segment work : job) {
            cpuNs += work instanceof Segment.Cpu c ? c.durationNs() : ((Segment.Gpu) work).hostNs();
        }
        if (cpuNs > reservation.runtimeNs() || timer.periodNs() < reservation.periodNs()) {
            throw body.refuse("has jobs of " + Durations.format(cpuNs) + " every " + Durations.format(timer.periodNs())
                + ", but a dl-runtime of " + Durations.format(reservation.runtimeNs()) + " every "
                + Durations.format(reservation.periodNs()) + "; raise dl-runtime, or lower dl-period");
        }
    }

    // ---- the thread's work ----

    /** What the thread repeats for ever. */
    private List<Step> steps(final Node body, final Reservation reservation) throws InvalidFileException {
        final Node phases = body.get("phases");
        final Node loop = body.get("loop");
        if (loop != null && loop.wholeNumber(Integer.MIN_VALUE, Integer.MAX_VALUE) != -1) {
            throw loop.refuse("is " + loop.show() + ", so the task ends; a task here repeats for ever: remove loop "
                + "from the task, or write -1");
        }
        if (phases == null) {
            return events(body, TASK_KEYS, reservation);
        }
        requireMapping(phases);
        for (final String key : body.keys()) {
            if (!TASK_KEYS.contains(key) || key.equals("events")) {
                event(body.get(key), key, TASK_KEYS);
                throw body.get(key).refuse("stands beside 'phases', where rt-app does not run it; "
                    + "move it into a phase");
            }
        }
        final List<Step> steps = new ArrayList<>();
        for (final String key : phases.keys()) {
            final Node phase = phases.get(key);
            requireMapping(phase);
            same(phase, body);
            final long times = times(phase, phases);
            final List<Step> once = events(phase, PHASE_KEYS, reservation);
            if (once.isEmpty()) {
                throw phase.refuse("has no event; add one, or remove it");
            }
            repeat(phase, once, times, steps);
        }
        if (steps.isEmpty()) {
            throw phases.refuse("has no phase; add one");
        }
        return steps;
    }

    private static long times(final Node phase, final Node phases) throws InvalidFileException {
        final Node loop = phase.get("loop");
        if (loop == null) {
            return 1;
        }
        final long times = loop.wholeNumber(Integer.MIN_VALUE, Integer.MAX_VALUE);
        if (times == -1 && phases.keys().size() == 1) {
            return 1;
        }
        if (times < 1) {
            throw loop.refuse("is " + loop.show() + (times == -1 ? ", so the other phases do not take part; remove them"
                : "; it must be 1 or more"));
        }
        return times;
    }

    /** A phase cannot change what a task keeps. */
    private static void same(final Node phase, final Node body) throws InvalidFileException {
        for (final String key : List.of("policy", "priority", "cpus", "dl-runtime", "dl-period", "dl-deadline")) {
            final Node here = phase.get(key);
            if (here != null && (body.get(key) == null || !here.toJson().equals(body.get(key).toJson()))) {
                throw here.refuse("differs from that of the task, which keeps one; move it to the task");
            }
        }
    }

    private static void repeat(final Node phase, final List<Step> once, final long times, final List<Step> to)
        throws InvalidFileException {
        if (once.stream().allMatch(step -> step.work() instanceof Segment.Cpu)) {
            long sumNs = 0;
            for (final Step step : once) {
                sumNs += ((Segment.Cpu) step.work()).durationNs();
                sumNs = Math.min(sumNs, Durations.MAX_NS + 1);
            }
            if (sumNs > 0 && times > Durations.MAX_NS / sumNs) {
                throw phase.refuse("is longer than 104 days with its loop; write a shorter time");
            }
            to.add(new Step(new Segment.Cpu(sumNs * times), null));
            return;
        }
        // The jobs within a phase with a timer are alike from the second time on.
        final boolean jobs = once.stream().anyMatch(step -> step.timer() != null);
        final long copies = jobs ? Math.min(2, times) : times;
        if (copies * once.size() + to.size() > Task.MAX_SEGMENTS) {
            throw phase.refuse("makes more than " + Task.MAX_SEGMENTS + " segments with its loop; write fewer");
        }
        for (long k = 0; k < copies; k++) {
            to.addAll(once);
        }
    }

    private List<Step> events(final Node of, final Set<String> properties, final Reservation reservation)
        throws InvalidFileException {
        final Node list = of.get("events");
        final List<Step> steps = new ArrayList<>();
        for (final String key : of.keys()) {
            if (properties.contains(key)) {
                continue;
            }
            final String kind = event(of.get(key), key, properties);
            if (list != null) {
                throw of.get(key).refuse("stands beside 'events'; write all events in the list, in their order");
            }
            add(steps, kind, of.get(key), reservation);
        }
        if (list != null) {
            for (final Node item : list.requireList("event", "a list of events, like [{\"run\": 1000}]")) {
                requireMapping(item);
                for (final String key : item.keys()) {
                    add(steps, event(item.get(key), key, Set.of()), item.get(key), reservation);
                }
            }
        }
        return steps;
    }

    /** Which event a key means. */
    private static String event(final Node value, final String key, final Set<String> properties)
        throws InvalidFileException {
        final Matcher matcher = EVENT.matcher(key);
        if (matcher.matches() && EVENTS.contains(matcher.group(1))) {
            return matcher.group(1);
        }
        throw value.refuse("is an unknown key; " + Spelling.advice(key, with(EVENTS,
            properties.toArray(new String[0]))));
    }

    private static void add(final List<Step> steps, final String kind, final Node value, final Reservation reservation)
        throws InvalidFileException {
        switch (kind) {
            case "run", "runtime" -> steps.add(new Step(new Segment.Cpu(ForeignTime.ns(value,
                ForeignTime.MICROSECONDS)), null));
            case "gpu" -> {
                value.requireMapping(Set.of("host", "device", "kernel_us"), "{\"host\": 500, \"device\": 4000}");
                final Node device = one(value, "device", "kernel_us");
                steps.add(new Step(new Segment.Gpu(value.get("host") == null ? 0 : ForeignTime.ns(value.get("host"),
                    ForeignTime.MICROSECONDS), ForeignTime.ns(device == null ? value.required("device") : device,
                    ForeignTime.MICROSECONDS)), null));
            }
            case "timer" -> {
                value.requireMapping(Set.of("ref", "period", "mode"), "{\"ref\": \"unique\", \"period\": 10000}");
                if (value.get("mode") != null) {   // they differ after a job that ran over only
                    value.get("mode").oneOf(List.of("relative", "absolute"));
                }
                final long periodNs = ForeignTime.ns(value.required("period"), ForeignTime.MICROSECONDS);
                if (periodNs == 0) {
                    throw value.get("period").refuse("is 0; it must be positive");
                }
                steps.add(new Step(null, new Timer(value.get("ref") == null ? null : value.get("ref").word(),
                    periodNs)));
            }
            case "yield" -> {
                if (reservation == null) {
                    throw foreign(value);
                }
                steps.add(new Step(null, new Timer(SERVER, reservation.periodNs())));
            }
            default -> {
                if (!kind.equals("sleep") || ForeignTime.ns(value, ForeignTime.MICROSECONDS) != 0) {
                    throw foreign(value);
                }
            }
        }
    }

    private static InvalidFileException foreign(final Node event) {
        return event.refuse("is an event that has no place in the task model; replace it by run, gpu and timer events");
    }

    // ---- jobs ----

    /** The timer of all jobs; null if there is none. */
    private Timer timer(final Node body, final List<Step> steps, final String name, final int instances)
        throws InvalidFileException {
        Timer first = null;
        for (final Step step : steps) {
            if (step.timer() == null) {
                continue;
            }
            if (first != null && !step.timer().equals(first)) {
                throw body.refuse("has timers of " + Durations.format(first.periodNs()) + " and "
                    + Durations.format(step.timer().periodNs()) + (first.periodNs() == step.timer().periodNs()
                    ? " with refs that differ" : "") + " in its phases and loops; a task here has one period: "
                    + "write one task for each");
            }
            first = step.timer();
        }
        if (first != null && first.ref() != null && !first.ref().equals(SERVER) && !first.ref().startsWith(UNIQUE)) {
            final String other = timers.putIfAbsent(first.ref(), name);
            if (other != null || instances > 1) {
                throw body.refuse("shares the timer '" + first.ref() + "' with " + (other == null
                    ? "its other instances" : "task \"" + other + "\"")
                    + ", so neither has that period; write a ref that begins with unique");
            }
        }
        return first;
    }

    /** What happens between two timers, the last and the first included; all must be alike. */
    private static List<Segment> job(final Node body, final List<Step> steps) throws InvalidFileException {
        int start = 0;
        while (steps.get(start).timer() == null) {
            start++;
        }
        final List<List<Segment>> jobs = new ArrayList<>();
        List<Segment> job = new ArrayList<>();
        for (int k = 1; k <= steps.size(); k++) {
            final Step step = steps.get((start + k) % steps.size());
            if (step.timer() != null) {
                jobs.add(merged(job));
                job = new ArrayList<>();
            } else {
                job.add(step.work());
            }
        }
        for (final List<Segment> other : jobs) {
            if (!other.equals(jobs.get(0))) {
                throw body.refuse("has jobs that differ, of " + span(jobs.get(0)) + " and of " + span(other)
                    + ", by its phases, loops or timers; a task here repeats one job: write one task for each, or one "
                    + "with the longest");
            }
        }
        if (jobs.get(0).isEmpty()) {
            throw body.refuse("has no work beside its timer; add a run or gpu event");
        }
        return jobs.get(0);
    }

    private static List<Segment> merged(final List<Segment> job) {
        final List<Segment> merged = new ArrayList<>();
        for (final Segment work : job) {
            final int last = merged.size() - 1;
            if (work instanceof Segment.Cpu cpu && last >= 0 && merged.get(last) instanceof Segment.Cpu before
                && cpu.durationNs() + before.durationNs() <= Durations.MAX_NS) {
                merged.set(last, new Segment.Cpu(cpu.durationNs() + before.durationNs()));
            } else {
                merged.add(work);
            }
        }
        return merged;
    }

    private static String span(final List<Segment> job) {
        return Durations.format(job.stream().mapToLong(work -> work instanceof Segment.Cpu cpu ? cpu.durationNs()
            : ((Segment.Gpu) work).spanNs()).sum());
    }

    private static void requireMapping(final Node node) throws InvalidFileException {
        node.requireMapping(node.keys());
    }

    private static Set<String> with(final Set<String> words, final String... more) {
        final Set<String> all = new TreeSet<>(words);
        all.addAll(List.of(more));
        return Set.copyOf(all);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What the scheduler should do, written for plainness: maps, sets and sorting, every answer computed from the list of
 * begun segments with the sentences of the design, nothing remembered between events but what the outside knows too
 * (who was granted, who runs). It shares neither data structure nor algorithm nor policy class with the scheduler.
 */
final class Reference {
    /** A known context. */
    record Context(int gpu, ContextKind kind) {
    }

    /** An open task. */
    record Task(int contextId, int priority, long relativeNs, long budgetNs, boolean optimistic,
        OverrunAction overrun, long windowNs, int partition) {
    }

    /** A begun segment. */
    static final class Segment {
        final int task;
        final long ticket;
        final long beginNs;
        final long deadlineNs;
        final List<long[]> ran = new ArrayList<>();
        boolean granted;
        String state = "waiting";
        boolean missTold;
        boolean overrunTold;
        long grantedNs;
        boolean demoted;
        boolean suspended;

        Segment(final int task, final long ticket, final long beginNs, final long deadlineNs) {
            this.task = task;
            this.ticket = ticket;
            this.beginNs = beginNs;
            this.deadlineNs = deadlineNs;
        }

        long ranNs(final long nowNs) {
            return ran.stream().mapToLong(r -> (r[1] < 0 ? nowNs : r[1]) - r[0]).sum();
        }
    }

    private record Due(long atNs, int task, Call call, Runnable told) {
    }

    final boolean preemptive;
    final boolean optimistic;
    final Unmanaged unmanaged;
    final boolean keepReady;
    String policy;
    long nowNs;

    final Map<Integer, Context> contexts = new TreeMap<>();
    final Map<Integer, Task> tasks = new TreeMap<>();
    final Map<Integer, Long> lastTicket = new HashMap<>();
    final List<Segment> begun = new ArrayList<>();
    final Set<Integer> off = new TreeSet<>();
    final Set<Integer> pregranted = new TreeSet<>();
    final Set<Integer> skipNext = new TreeSet<>();
    private final Map<Integer, Long> boundaryNs = new TreeMap<>();

    /** What the sink should hear of the last event: phases in order; "sorted" ones in any order within. */
    final List<List<Call>> phases = new ArrayList<>();

    Reference(final History h) {
        policy = h.policy();
        preemptive = h.preemptive();
        optimistic = h.optimistic();
        unmanaged = h.unmanaged();
        keepReady = h.keepReady();
    }

    // ---- questions -------------------------------------------------------------------------------------------------

    int gpuOf(final int task) {
        return contexts.get(tasks.get(task).contextId()).gpu();
    }

    int contextOf(final Segment s) {
        return tasks.get(s.task).contextId();
    }

    int priorityOf(final Segment s) {
        return s.demoted ? 0 : tasks.get(s.task).priority();
    }

    boolean partitioned() {
        return policy.startsWith("partitions");
    }

    /** Whose time it is; -1 if the owner changes within the guard. */
    int ownerAt(final long ns) {
        final int owner = tenth(ns);
        for (long d = 1; d <= History.GUARD_NS; d++) {
            if (tenth(ns + d) != owner) {
                return -1;
            }
        }
        return owner;
    }

    private static int tenth(final long ns) {
        return History.OWNERS[(int) (Math.floorMod(ns - History.PHASE_NS, History.FRAME_NS) / 10)];
    }

    int partitionOf(final int contextId) {
        return tasks.values().stream().filter(t -> t.contextId() == contextId).mapToInt(Task::partition).findAny()
            .orElse(0);
    }

    private boolean suspended(final int contextId) {
        return begun.stream().anyMatch(s -> s.suspended && contextOf(s) == contextId);
    }

    /** Held back, whatever the order says. */
    boolean blocked(final int contextId) {
        if (policy.equals("rr")) {
            return false;
        }
        if (suspended(contextId)) {
            return true;
        }
        if (!partitioned()) {
            return false;
        }
        final int owner = ownerAt(nowNs);
        final int gpu = contexts.get(contextId).gpu();
        final boolean ownerIsIdle = begun.stream().noneMatch(s -> gpuOf(s.task) == gpu && !suspended(contextOf(s))
            && partitionOf(contextOf(s)) == owner);
        final boolean lent = policy.equals("partitions-edf") && owner >= 0 && ownerIsIdle;
        return !lent && partitionOf(contextId) != owner;
    }

    /** Ranked, without those held back. */
    List<Segment> free(final int gpu) {
        return ranked(gpu).stream().filter(s -> !blocked(contextOf(s))).collect(Collectors.toList());
    }

    List<Segment> freeRealTime(final int gpu) {
        return free(gpu).stream().filter(this::realTime).collect(Collectors.toList());
    }

    boolean realTime(final Segment s) {
        return priorityOf(s) >= 1;
    }

    Segment segmentOf(final int task) {
        return begun.stream().filter(s -> s.task == task).findAny().orElse(null);
    }

    /** All begun segments of a GPU, best first. */
    List<Segment> ranked(final int gpu) {
        final Comparator<Segment> ties = Comparator.comparingLong((Segment s) -> s.beginNs)
            .thenComparingInt(s -> s.task);
        final Comparator<Segment> order = switch (policy) {
            case "fp", "classes", "partitions-fp" -> Comparator.comparingInt((Segment s) -> -priorityOf(s))
                .thenComparing(ties);
            case "edf", "partitions-edf" -> Comparator.comparing((Segment s) -> !realTime(s))
                .thenComparingLong(s -> realTime(s) ? s.deadlineNs : 0).thenComparing(ties);
            default -> ties;
        };
        return begun.stream().filter(s -> gpuOf(s.task) == gpu).sorted(order).collect(Collectors.toList());
    }

    List<Segment> realTimeRanked(final int gpu) {
        return ranked(gpu).stream().filter(this::realTime).collect(Collectors.toList());
    }

    boolean exclusive(final int gpu) {
        return !policy.equals("rr") && !freeRealTime(gpu).isEmpty();
    }

    boolean steerable(final int contextId) {
        final ContextKind kind = contexts.get(contextId).kind();
        return kind == ContextKind.MANAGED || kind == ContextKind.UNMANAGED && unmanaged == Unmanaged.BEST_EFFORT;
    }

    /** Who should run, by the words of the design. */
    List<Segment> shouldRun(final int gpu) {
        if (policy.equals("rr")) {
            return ranked(gpu);
        }
        final List<Segment> all = free(gpu);
        final List<Segment> rt = freeRealTime(gpu);
        if (policy.equals("classes")) {
            return preemptive ? shouldRunClass(all) : shouldRunClassGate(gpu, all);
        }
        return preemptive ? shouldRunPreemptive(all, rt) : shouldRunGate(gpu, all, rt);
    }

    private List<Segment> shouldRunPreemptive(final List<Segment> all, final List<Segment> rt) {
        if (rt.isEmpty()) {
            return all;
        }
        final Segment best = rt.get(0);
        final List<Segment> holders = all.stream().filter(s -> s.granted && contextOf(s) == contextOf(best)).toList();
        if (holders.isEmpty()) {
            return List.of(best);
        }
        return oneRealTimeOrAll(holders);
    }

    /** Each context by itself: what was granted goes on, and else the best class enters. */
    private List<Segment> shouldRunClass(final List<Segment> all) {
        final List<Segment> run = new ArrayList<>();
        final int best = all.isEmpty() ? 0 : priorityOf(all.get(0));
        for (final Segment s : all) {
            final List<Segment> mates = all.stream().filter(o -> contextOf(o) == contextOf(s)).toList();
            final int inherited = mates.stream().filter(o -> o.granted).mapToInt(this::priorityOf).findFirst()
                .orElse(best);
            final boolean admitted = mates.stream().anyMatch(o -> priorityOf(o) == best);
            if (admitted && priorityOf(s) == inherited && (s.granted || priorityOf(s) == best)) {
                run.add(s);
            }
        }
        return run;
    }

    private List<Segment> shouldRunClassGate(final int gpu, final List<Segment> all) {
        final List<Segment> held = ranked(gpu).stream().filter(s -> s.state.equals("running")).toList();
        if (all.isEmpty()) {
            return held;
        }
        final int best = priorityOf(all.get(0));
        final int level = Stream.concat(held.stream(), all.stream().filter(s -> s.granted)).map(this::priorityOf)
            .findFirst().orElse(best);
        return ranked(gpu).stream().filter(s -> held.contains(s)
            || all.contains(s) && priorityOf(s) == level && (s.granted || level == best)).toList();
    }

    private List<Segment> shouldRunGate(final int gpu, final List<Segment> all, final List<Segment> rt) {
        final List<Segment> held = ranked(gpu).stream().filter(s -> s.state.equals("running")).toList();
        final List<Segment> base;
        if (!held.isEmpty()) {
            base = held;
        } else if (all.stream().anyMatch(s -> s.granted)) {
            base = oneRealTimeOrAll(all.stream().filter(s -> s.granted).toList());
        } else {
            base = rt.isEmpty() ? all : List.of(rt.get(0));
        }
        if (base.stream().anyMatch(this::realTime)) {
            return base;
        }
        // Best effort has the GPU: what was granted may go on beside it, what waits only if no real-time segment does.
        return ranked(gpu).stream().filter(s -> base.contains(s)
            || all.contains(s) && !realTime(s) && (s.granted || rt.isEmpty())).toList();
    }

    private List<Segment> oneRealTimeOrAll(final List<Segment> ranked) {
        return ranked.stream().anyMatch(this::realTime)
            ? List.of(ranked.stream().filter(this::realTime).findFirst().orElseThrow()) : ranked;
    }

    Set<Integer> shouldBeOff(final int gpu) {
        if (!preemptive) {
            return Set.of();
        }
        final List<Segment> rt = exclusive(gpu) ? freeRealTime(gpu) : List.of();
        final Set<Integer> winners = new HashSet<>();
        rt.stream().filter(s -> s == rt.get(0) || policy.equals("classes") && priorityOf(s) == priorityOf(rt.get(0)))
            .forEach(s -> winners.add(contextOf(s)));
        return contexts.entrySet().stream()
            .filter(e -> e.getValue().gpu() == gpu && steerable(e.getKey())
                && (blocked(e.getKey()) || !rt.isEmpty() && !winners.contains(e.getKey()) && !isReady(e.getKey())))
            .map(Map.Entry::getKey).collect(Collectors.toCollection(TreeSet::new));
    }

    /** Its only task could begin over all that is begun; undefined while suspended segments hold back others. */
    private boolean isReady(final int contextId) {
        final List<Integer> own = tasks.keySet().stream().filter(t -> tasks.get(t).contextId() == contextId).toList();
        return keepReady && own.size() == 1 && segmentOf(own.get(0)) == null && shouldBePregranted(own.get(0))
            && begun.stream().noneMatch(s -> s.suspended && gpuOf(s.task) == contexts.get(contextId).gpu());
    }

    boolean shouldBePregranted(final int task) {
        final Task t = tasks.get(task);
        final long inContext = tasks.values().stream().filter(o -> o.contextId() == t.contextId()).count();
        if (!optimistic || !preemptive || !t.optimistic() || inContext != 1 || !steerable(t.contextId())
            || skipNext.contains(task) || partitioned()) {
            return false;
        }
        final int gpu = gpuOf(task);
        if (t.priority() == 0 && !policy.equals("rr")
            && begun.stream().anyMatch(s -> s.suspended && gpuOf(s.task) == gpu)) {
            return false;
        }
        final List<Segment> others = realTimeRanked(gpuOf(task)).stream().filter(s -> s.task != task).toList();
        return switch (policy) {
            case "fp" -> others.stream().allMatch(s -> priorityOf(s) < t.priority());
            case "classes" -> others.stream().allMatch(s -> priorityOf(s) <= t.priority());
            case "edf" -> others.isEmpty();
            default -> true;
        };
    }

    // ---- events ----------------------------------------------------------------------------------------------------

    void time(final long ns) {
        phases.clear();
        nowNs = Math.max(nowNs, ns);
        while (true) {
            final Due due = dues().min(Comparator.comparingLong(Due::atNs).thenComparingInt(Due::task)
                .thenComparing(d -> d.call() == null ? Call.Kind.PREGRANT : d.call().kind())).orElse(null);
            if (due == null || due.atNs() > nowNs) {
                return;
            }
            if (due.call() != null) {
                phases.add(List.of(due.call()));
            }
            due.told().run();
        }
    }

    /** All that time brings: misses, overruns with what follows, windows that open and close. */
    private Stream<Due> dues() {
        final List<Due> due = new ArrayList<>();
        for (final Segment s : begun) {
            if (!s.missTold && s.deadlineNs != Long.MAX_VALUE) {
                due.add(new Due(s.deadlineNs + 1, s.task,
                    new Call(Call.Kind.MISS, -1, s.task, s.ticket, s.deadlineNs), () -> s.missTold = true));
            }
            final long heldAt = overrunAtNs(s);
            final long windowAt = windowAtNs(s);
            if (Math.min(heldAt, windowAt) != Long.MAX_VALUE) {
                final Task t = tasks.get(s.task);
                due.add(new Due(Math.min(heldAt, windowAt), s.task, new Call(Call.Kind.OVERRUN, -1, s.task, s.ticket,
                    windowAt < heldAt ? t.windowNs() : t.budgetNs()), () -> {
                        s.overrunTold = true;
                        act(s);
                    }));
            }
        }
        boundaryNs.forEach((gpu, atNs) -> due.add(new Due(atNs, 1000 + gpu, null, () -> settle(gpu))));
        return due.stream();
    }

    private void act(final Segment s) {
        final OverrunAction action = tasks.get(s.task).overrun();
        if (action == OverrunAction.NOTIFY || policy.equals("rr")) {
            return;
        }
        final int gpu = gpuOf(s.task);
        if (action == OverrunAction.SKIP_NEXT) {
            skipNext.add(s.task);
        }
        if (!preemptive) {
            begun.remove(s);
        } else if (action == OverrunAction.SUSPEND) {
            s.suspended = true;
        } else {
            s.demoted = true;
        }
        settle(gpu);
    }

    void setOverrunAction(final int task, final OverrunAction action) {
        final Task t = tasks.get(task);
        if (t == null) {
            return;
        }
        tasks.put(task, new Task(t.contextId(), t.priority(), t.relativeNs(), t.budgetNs(), t.optimistic(), action,
            t.windowNs(), t.partition()));
        final Segment s = segmentOf(task);
        if (s != null && s.overrunTold) {
            s.suspended = false;
            s.demoted = false;
            skipNext.remove(task);
            act(s);
        } else if (action != OverrunAction.SKIP_NEXT) {
            skipNext.remove(task);
        }
        settle(gpuOf(task));
    }

    private long overrunAtNs(final Segment s) {
        final long budget = tasks.get(s.task).budgetNs();
        if (budget == 0 || s.overrunTold || !s.state.equals("running")) {
            return Long.MAX_VALUE;
        }
        final long[] now = s.ran.get(s.ran.size() - 1);
        final long before = s.ranNs(now[0]);
        return now[0] + budget - before + 1;
    }

    private long windowAtNs(final Segment s) {
        final long window = tasks.get(s.task).windowNs();
        return window == 0 || s.overrunTold || s.state.equals("waiting") ? Long.MAX_VALUE : s.grantedNs + window + 1;
    }

    long nextTimerNs() {
        return dues().mapToLong(Due::atNs).min().orElse(Long.MAX_VALUE);
    }

    int begin(final int task, final long ticket, final long deadlineNs, final boolean didNotWait, final long beginNs) {
        if (!tasks.containsKey(task)) {
            return Outcome.UNKNOWN_TASK;
        }
        final Segment current = segmentOf(task);
        if (current != null && ticket >= current.ticket) {
            return Outcome.ALREADY_BEGUN;
        }
        if (ticket <= lastTicket.getOrDefault(task, 0L)) {
            return Outcome.OLD_TICKET;
        }
        final boolean skip = skipNext.remove(task);
        if (skip && !didNotWait) {
            settle(gpuOf(task));
            lastTicket.put(task, ticket);
            return Outcome.SKIPPED;
        }
        final long relative = tasks.get(task).relativeNs();
        final long deadline = deadlineNs > 0 ? deadlineNs : relative > 0 ? beginNs + relative : Long.MAX_VALUE;
        final Segment s = new Segment(task, ticket, beginNs, deadline);
        s.granted = didNotWait;
        s.demoted = skip;
        begun.add(s);
        lastTicket.put(task, ticket);
        settle(gpuOf(task));
        return Outcome.ACCEPTED;
    }

    int end(final int task, final long ticket) {
        if (!tasks.containsKey(task)) {
            return Outcome.UNKNOWN_TASK;
        }
        final Segment s = segmentOf(task);
        if (s != null && s.ticket == ticket) {
            begun.remove(s);
            settle(gpuOf(task));
            return Outcome.ACCEPTED;
        }
        return ticket > 0 && ticket <= lastTicket.getOrDefault(task, 0L) ? Outcome.OLD_TICKET : Outcome.NOT_BEGUN;
    }

    void addContext(final int contextId, final int gpu, final ContextKind kind) {
        contexts.put(contextId, new Context(gpu, kind));
        settle(gpu);
    }

    void setKind(final int contextId, final ContextKind kind) {
        final int gpu = contexts.get(contextId).gpu();
        contexts.put(contextId, new Context(gpu, kind));
        settle(gpu);
    }

    void removeContext(final int contextId) {
        final Context gone = contexts.get(contextId);
        if (gone == null) {
            return;
        }
        final Set<Integer> dead = new HashSet<>();
        tasks.forEach((id, t) -> {
            if (t.contextId() == contextId) {
                dead.add(id);
            }
        });
        begun.removeIf(s -> dead.contains(s.task));
        dead.forEach(this::forget);
        contexts.remove(contextId);
        off.remove(contextId);
        settle(gone.gpu());
    }

    void addTask(final TaskParameters p) {
        tasks.put(p.taskId(), new Task(p.contextId(), p.gpuPriority(), p.relativeDeadlineNs(), p.budgetNs(),
            p.optimistic(), p.overrun(), p.windowNs(), p.partition()));
        settle(gpuOf(p.taskId()));
    }

    void removeTask(final int task) {
        if (!tasks.containsKey(task)) {
            return;
        }
        final int gpu = gpuOf(task);
        begun.removeIf(s -> s.task == task);
        forget(task);
        settle(gpu);
    }

    void setPriority(final int task, final int priority) {
        final Task t = tasks.get(task);
        if (t != null) {
            tasks.put(task, new Task(t.contextId(), priority, t.relativeNs(), t.budgetNs(), t.optimistic(),
                t.overrun(), t.windowNs(), t.partition()));
            settle(gpuOf(task));
        }
    }

    void setPolicy(final String name) {
        policy = name;
        for (int gpu = 0; gpu < History.GPUS; gpu++) {
            settle(gpu);
        }
    }

    private void forget(final int task) {
        tasks.remove(task);
        lastTicket.remove(task);
        pregranted.remove(task);
        skipNext.remove(task);
    }

    /** Compares what is with what should be, and writes down the difference. */
    private void settle(final int gpu) {
        final List<Segment> ranked = ranked(gpu);
        final List<Segment> run = shouldRun(gpu);
        final Set<Integer> offNow = shouldBeOff(gpu);
        final List<Call> disable = new ArrayList<>();
        final List<Call> enable = new ArrayList<>();
        contexts.forEach((id, c) -> {
            if (c.gpu() == gpu && offNow.contains(id) != off.contains(id)) {
                (offNow.contains(id) ? disable : enable).add(Call.desired(gpu, id, !offNow.contains(id)));
            }
        });
        contexts.forEach((id, c) -> {
            if (c.gpu() == gpu) {
                off.remove(id);
            }
        });
        off.addAll(offNow);
        phases.add(disable);
        for (final Segment s : ranked) {
            if (run.contains(s)) {
                continue;
            }
            final int by = run.isEmpty() ? SegmentScheduler.NONE : run.get(0).task;
            final Call preempt = new Call(Call.Kind.PREEMPT, gpu, s.task, s.ticket, by);
            if (s.state.equals("running")) {
                s.ran.get(s.ran.size() - 1)[1] = nowNs;
                s.state = "preempted";
                phases.add(List.of(preempt));
            } else if (s.granted && s.state.equals("waiting")) {
                s.state = "preempted";
                s.grantedNs = nowNs;
                phases.add(List.of(new Call(Call.Kind.GRANT, gpu, s.task, s.ticket, 0)));
                phases.add(List.of(preempt));
            }
        }
        phases.add(enable);
        for (final Segment s : run) {
            if (!s.state.equals("running")) {
                final Call.Kind kind = s.state.equals("waiting") ? Call.Kind.GRANT : Call.Kind.RESUME;
                phases.add(List.of(new Call(kind, gpu, s.task, s.ticket, 0)));
                s.granted = true;
                s.grantedNs = s.state.equals("waiting") ? nowNs : s.grantedNs;
                s.state = "running";
                s.ran.add(new long[] {nowNs, -1});
            }
        }
        final boolean idle = ranked.isEmpty() && contexts.entrySet().stream()
            .noneMatch(e -> e.getValue().gpu() == gpu && steerable(e.getKey()));
        boundaryNs.remove(gpu);
        if (partitioned() && !idle) {
            long at = nowNs + 1;
            while (ownerAt(at) == ownerAt(nowNs)) {
                at++;
            }
            boundaryNs.put(gpu, at);
        }
        tellPregrants(gpu);
    }

    private void tellPregrants(final int gpu) {
        final List<Call> pregrants = new ArrayList<>();
        for (final int task : tasks.keySet()) {
            final boolean wanted = shouldBePregranted(task);
            if (gpuOf(task) == gpu && wanted != pregranted.contains(task)) {
                pregrants.add(Call.pregrant(task, wanted));
                if (wanted) {
                    pregranted.add(task);
                } else {
                    pregranted.remove(task);
                }
            }
        }
        phases.add(pregrants);
    }
}

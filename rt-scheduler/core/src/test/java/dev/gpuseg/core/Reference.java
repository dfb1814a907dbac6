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
    record Task(int contextId, int priority, long relativeNs, long budgetNs, boolean optimistic) {
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
    String policy;
    long nowNs;

    final Map<Integer, Context> contexts = new TreeMap<>();
    final Map<Integer, Task> tasks = new TreeMap<>();
    final Map<Integer, Long> lastTicket = new HashMap<>();
    final List<Segment> begun = new ArrayList<>();
    final Set<Integer> off = new TreeSet<>();
    final Set<Integer> pregranted = new TreeSet<>();

    /** What the sink should hear of the last event: phases in order; "sorted" ones in any order within. */
    final List<List<Call>> phases = new ArrayList<>();

    Reference(final History h) {
        policy = h.policy();
        preemptive = h.preemptive();
        optimistic = h.optimistic();
        unmanaged = h.unmanaged();
    }

    // ---- questions -------------------------------------------------------------------------------------------------

    int gpuOf(final int task) {
        return contexts.get(tasks.get(task).contextId()).gpu();
    }

    int contextOf(final Segment s) {
        return tasks.get(s.task).contextId();
    }

    int priorityOf(final Segment s) {
        return tasks.get(s.task).priority();
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
            case "fp" -> Comparator.comparingInt((Segment s) -> -priorityOf(s)).thenComparing(ties);
            case "edf" -> Comparator.comparing((Segment s) -> !realTime(s))
                .thenComparingLong(s -> realTime(s) ? s.deadlineNs : 0).thenComparing(ties);
            default -> ties;
        };
        return begun.stream().filter(s -> gpuOf(s.task) == gpu).sorted(order).collect(Collectors.toList());
    }

    List<Segment> realTimeRanked(final int gpu) {
        return ranked(gpu).stream().filter(this::realTime).collect(Collectors.toList());
    }

    boolean exclusive(final int gpu) {
        return !policy.equals("rr") && !realTimeRanked(gpu).isEmpty();
    }

    boolean steerable(final int contextId) {
        final ContextKind kind = contexts.get(contextId).kind();
        return kind == ContextKind.MANAGED || kind == ContextKind.UNMANAGED && unmanaged == Unmanaged.BEST_EFFORT;
    }

    /** Who should run, by the words of the design. */
    List<Segment> shouldRun(final int gpu) {
        final List<Segment> all = ranked(gpu);
        if (policy.equals("rr")) {
            return all;
        }
        final List<Segment> rt = realTimeRanked(gpu);
        return preemptive ? shouldRunPreemptive(all, rt) : shouldRunGate(all, rt);
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

    private List<Segment> shouldRunGate(final List<Segment> all, final List<Segment> rt) {
        final List<Segment> held = all.stream().filter(s -> s.state.equals("running")).toList();
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
        return all.stream().filter(s -> base.contains(s) || !realTime(s) && (s.granted || rt.isEmpty())).toList();
    }

    private List<Segment> oneRealTimeOrAll(final List<Segment> ranked) {
        return ranked.stream().anyMatch(this::realTime)
            ? List.of(ranked.stream().filter(this::realTime).findFirst().orElseThrow()) : ranked;
    }

    Set<Integer> shouldBeOff(final int gpu) {
        if (!preemptive || !exclusive(gpu)) {
            return Set.of();
        }
        final int winner = contextOf(realTimeRanked(gpu).get(0));
        return contexts.entrySet().stream()
            .filter(e -> e.getValue().gpu() == gpu && e.getKey() != winner && steerable(e.getKey()))
            .map(Map.Entry::getKey).collect(Collectors.toCollection(TreeSet::new));
    }

    boolean shouldBePregranted(final int task) {
        final Task t = tasks.get(task);
        final long inContext = tasks.values().stream().filter(o -> o.contextId() == t.contextId()).count();
        if (!optimistic || !preemptive || !t.optimistic() || inContext != 1 || !steerable(t.contextId())) {
            return false;
        }
        final List<Segment> others = realTimeRanked(gpuOf(task)).stream().filter(s -> s.task != task).toList();
        return switch (policy) {
            case "fp" -> others.stream().allMatch(s -> priorityOf(s) < t.priority());
            case "edf" -> others.isEmpty();
            default -> true;
        };
    }

    // ---- events ----------------------------------------------------------------------------------------------------

    void time(final long ns) {
        phases.clear();
        nowNs = Math.max(nowNs, ns);
        final List<Due> due = new ArrayList<>();
        for (final Segment s : begun) {
            if (!s.missTold && s.deadlineNs != Long.MAX_VALUE && nowNs > s.deadlineNs) {
                due.add(new Due(s.deadlineNs + 1, s.task,
                    new Call(Call.Kind.MISS, -1, s.task, s.ticket, s.deadlineNs), () -> s.missTold = true));
            }
            final long overrunAt = overrunAtNs(s);
            if (overrunAt <= nowNs) {
                due.add(new Due(overrunAt, s.task,
                    new Call(Call.Kind.OVERRUN, -1, s.task, s.ticket, tasks.get(s.task).budgetNs()),
                    () -> s.overrunTold = true));
            }
        }
        due.sort(Comparator.comparingLong(Due::atNs).thenComparingInt(Due::task).thenComparing(d -> d.call().kind()));
        due.forEach(d -> d.told().run());
        due.forEach(d -> phases.add(List.of(d.call())));
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

    long nextTimerNs() {
        return begun.stream().flatMap(s -> Stream.of(overrunAtNs(s),
            s.missTold || s.deadlineNs == Long.MAX_VALUE ? Long.MAX_VALUE : s.deadlineNs + 1))
            .min(Long::compare).orElse(Long.MAX_VALUE);
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
        final long relative = tasks.get(task).relativeNs();
        final long deadline = deadlineNs > 0 ? deadlineNs : relative > 0 ? beginNs + relative : Long.MAX_VALUE;
        final Segment s = new Segment(task, ticket, beginNs, deadline);
        s.granted = didNotWait;
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
            p.optimistic()));
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
            tasks.put(task, new Task(t.contextId(), priority, t.relativeNs(), t.budgetNs(), t.optimistic()));
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
                s.state = "running";
                s.ran.add(new long[] {nowNs, -1});
            }
        }
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

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Keeps track of which process is in which group. The kernel does not tell when a process moves, so it looks: a move is
 * seen at the next look, {@link #PERIOD_NS} later at most, or {@link #SLOW_PERIOD_NS} where there are more than
 * {@link #QUICK_PROCESSES} processes. One thread.
 */
public final class CgroupFollower {
    /** Between two looks: 200 ms. */
    public static final long PERIOD_NS = 200_000_000L;
    /** Between two looks where there are many processes: 1 s. */
    public static final long SLOW_PERIOD_NS = 1_000_000_000L;
    /** So many processes are looked at in every period. */
    public static final int QUICK_PROCESSES = 64;

    /** The background thread looks around every 200 ms; a little early is on time. */
    private static final long JITTER_NS = 20_000_000L;

    private final CgroupTree tree;
    private final LiveRules rules;
    private final GpuTimeAccount account;
    private final GroupSink sink;
    private final Map<String, Group> groupByPath = new HashMap<>();
    private final Map<Integer, Place> placeByPid = new HashMap<>();
    private volatile List<Membership> members = List.of();
    private long lookedNs = Long.MIN_VALUE / 2;

    /**
     * Who is where.
     *
     * @param process the process
     * @param path    its group
     * @param rule    the group's rule
     */
    public record Membership(ProcessView process, String path, GroupRule rule) {
    }

    /** A group that has members. */
    private record Group(int id, GroupRule rule) {
    }

    /** Where a process was at the last look. */
    private record Place(ProcessView process, String path) {
    }

    /**
     * A follower that knows no process yet.
     *
     * @param tree    where processes are looked up
     * @param rules   of the administrator
     * @param account told whose time a context's is
     * @param sink    told of groups and members
     */
    public CgroupFollower(final CgroupTree tree, final LiveRules rules, final GpuTimeAccount account,
        final GroupSink sink) {
        this.tree = tree;
        this.rules = rules;
        this.account = account;
        this.sink = sink;
    }

    /** Whether it is time to look, CLOCK_MONOTONIC. */
    public boolean isDue(final long nowNs) {
        return nowNs - lookedNs >= (members.size() > QUICK_PROCESSES ? SLOW_PERIOD_NS : PERIOD_NS - JITTER_NS);
    }

    /** Looks at all processes that the scheduler knows now; CLOCK_MONOTONIC. */
    public void look(final List<ProcessView> processes, final long nowNs) {
        lookedNs = nowNs;
        final Set<String> ruledAnew = rules.refresh() ? applyToKnown(rules.now()) : Set.of();
        final List<Membership> found = new ArrayList<>();
        final Set<String> inUse = new HashSet<>();
        final Set<Integer> alive = new HashSet<>();
        for (final ProcessView process : processes) {
            final String seen = tree.pathOf(process.pid());
            final Place before = placeByPid.get(process.pid());
            // between its end and the scheduler's notice of it a process has no group: the last one stays
            final String path = seen.isEmpty() && before != null ? before.path() : seen;
            final GroupRule rule = path.isEmpty() ? GroupRule.DEFAULT : rules.now().of(path);
            alive.add(process.pid());
            inUse.add(path);
            found.add(new Membership(process, path, rule));
            final Place now = new Place(process, path);
            if (!now.equals(before) || ruledAnew.contains(path)) {
                placeByPid.put(process.pid(), now);
                account.belongs(process.contexts(), path, nowNs);
                sink.assign(process, idOf(path, rule), rule.protect());
            }
        }
        placeByPid.keySet().retainAll(alive);
        groupByPath.keySet().retainAll(inUse);
        members = List.copyOf(found);
    }

    /** Other rules hold: tells of groups whose rule is another one now, and returns their paths. */
    private Set<String> applyToKnown(final GroupRules now) {
        final Set<String> changed = new HashSet<>();
        groupByPath.replaceAll((path, group) -> {
            final GroupRule rule = path.isEmpty() ? GroupRule.DEFAULT : now.of(path);
            if (rule.equals(group.rule())) {
                return group;
            }
            changed.add(path);
            sink.define(group.id(), rule);
            return new Group(group.id(), rule);
        });
        return changed;
    }

    private int idOf(final String path, final GroupRule rule) {
        final Group known = groupByPath.get(path);
        if (known != null) {
            return known.id();
        }
        final Set<Integer> taken = new HashSet<>();
        groupByPath.values().forEach(group -> taken.add(group.id()));
        int id = 1;
        while (taken.contains(id)) {
            id++;
        }
        groupByPath.put(path, new Group(id, rule));
        sink.define(id, rule);
        return id;
    }

    /** Who was where at the last look. An immutable list. Any thread. */
    public List<Membership> members() {
        return members;
    }
}

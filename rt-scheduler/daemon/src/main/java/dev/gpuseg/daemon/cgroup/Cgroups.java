/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.journal.EventTap;
import dev.gpuseg.ipc.platform.PlainText;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;

/** Groups of a running daemon: members, rules, time and fairness. Thread-safe, save that one thread looks. */
public final class Cgroups {
    /** Characters of a path; users can make groups of their own and name them. */
    private static final int PATH_SHOWN = 1024;
    private static final long SAMPLE_NS = 1_000_000_000L;
    private static final int SAMPLES = 10;

    private final CgroupTree tree;
    private final LiveRules rules;
    private final GpuTimeAccount account = new GpuTimeAccount();
    private final CgroupFollower follower;
    private final Deque<Sample> samples = new ArrayDeque<>();

    /** What the groups had had at some time. */
    private record Sample(long timeNs, Map<String, GpuTimeAccount.Usage> usage) {
    }

    /**
     * Groups of the machine.
     *
     * @param tree  where processes are looked up
     * @param rules of the administrator
     * @param sink  told of groups and members
     */
    public Cgroups(final CgroupTree tree, final LiveRules rules, final GroupSink sink) {
        this.tree = tree;
        this.rules = rules;
        follower = new CgroupFollower(tree, rules, account, sink);
    }

    /** Shows it the journal's events; for {@code JournalAgent.addTap}. */
    public EventTap tap() {
        return account;
    }

    /** Whether it is time to look, CLOCK_MONOTONIC. */
    public boolean isDue(final long nowNs) {
        return follower.isDue(nowNs);
    }

    /** Looks where all processes are that the scheduler knows now; CLOCK_MONOTONIC. */
    public void look(final List<ProcessView> processes, final long nowNs) {
        follower.look(processes, nowNs);
        synchronized (samples) {
            if (samples.isEmpty() || nowNs - samples.getLast().timeNs() >= SAMPLE_NS) {
                samples.addLast(new Sample(nowNs, byPath(nowNs)));
                if (samples.size() > SAMPLES + 1) {
                    samples.removeFirst();
                }
            }
        }
    }

    private Map<String, GpuTimeAccount.Usage> byPath(final long nowNs) {
        final Map<String, GpuTimeAccount.Usage> map = new LinkedHashMap<>();
        account.usage(nowNs).forEach(usage -> map.put(usage.path(), usage));
        return map;
    }

    /**
     * Members, rules, time of each group, and how fair the best-effort time is.
     *
     * @param nowNs CLOCK_MONOTONIC
     * @param shown which processes the asking user may see; groups without one of them are left out
     * @return a new node
     */
    public ObjectNode status(final long nowNs, final IntPredicate shown) {
        final ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("mounted", tree.mountPoint() == null ? "" : tree.mountPoint().toString());
        node.put("look_period_ns", follower.members().size() > CgroupFollower.QUICK_PROCESSES
            ? CgroupFollower.SLOW_PERIOD_NS : CgroupFollower.PERIOD_NS);
        node.put("rules_file", rules.file() == null ? "" : PlainText.of(rules.file().toString(), PATH_SHOWN));
        node.put("rules_changes", rules.generation());
        node.put("rules_problem", PlainText.of(rules.problem(), PATH_SHOWN));
        node.put("event_gaps", account.gaps());
        final Map<String, GpuTimeAccount.Usage> now = byPath(nowNs);
        final Map<String, Integer> processes = new HashMap<>();
        final Map<String, Boolean> visible = new HashMap<>();
        for (final CgroupFollower.Membership member : follower.members()) {
            now.putIfAbsent(member.path(), new GpuTimeAccount.Usage(member.path(), 0, 0, 0, 0));
            if (shown.test(member.process().pid())) {
                processes.merge(member.path(), 1, Integer::sum);
                visible.put(member.path(), true);
            }
        }
        final boolean all = shown.test(0);
        final ArrayNode groups = node.putArray("groups");
        for (final GpuTimeAccount.Usage usage : now.values()) {
            if (all || visible.containsKey(usage.path())) {
                groups.add(group(usage, processes.getOrDefault(usage.path(), 0)));
            }
        }
        node.set("fairness", fairness(now, Map.of()));
        synchronized (samples) {
            final Sample oldest = samples.peekFirst();
            final ObjectNode recent = fairness(now, oldest == null ? Map.of() : oldest.usage());
            recent.put("over_ns", oldest == null ? 0 : nowNs - oldest.timeNs());
            node.set("fairness_recent", recent);
        }
        return node;
    }

    /** The pids of the processes of a group, as they were at the last look. */
    public Set<Integer> processesOf(final String path) {
        return follower.members().stream().filter(member -> member.path().equals(path))
            .map(member -> member.process().pid()).collect(Collectors.toSet());
    }

    private ObjectNode group(final GpuTimeAccount.Usage usage, final int processes) {
        final GroupRule rule = usage.path().isEmpty() ? GroupRule.DEFAULT : rules.now().of(usage.path());
        return JsonNodeFactory.instance.objectNode().put("path", PlainText.of(usage.path(), PATH_SHOWN))
            .put("processes", processes)
            .put("rule", rule.equals(GroupRule.DEFAULT) ? "" : rule.pattern()).put("weight", rule.weight())
            .put("cap_quota_ns", rule.quotaNs()).put("cap_period_ns", rule.periodNs())
            .put("protected", rule.protect()).put("priority_max", rule.priority()).put("gpu_ns", usage.gpuNs())
            .put("best_effort_ns", usage.bestEffortNs()).put("window_ns", usage.windowNs())
            .put("windows", usage.windows());
    }

    /** Among groups that have had best-effort time since then. */
    private ObjectNode fairness(final Map<String, GpuTimeAccount.Usage> now,
        final Map<String, GpuTimeAccount.Usage> before) {
        final long[] shares = new long[now.size()];
        final int[] weights = new int[now.size()];
        int n = 0;
        for (final GpuTimeAccount.Usage usage : now.values()) {
            final GpuTimeAccount.Usage then = before.get(usage.path());
            shares[n] = usage.bestEffortNs() - (then == null ? 0 : then.bestEffortNs());
            weights[n] = usage.path().isEmpty() ? GroupRule.DEFAULT_WEIGHT : rules.now().of(usage.path()).weight();
            n += shares[n] > 0 ? 1 : 0;
        }
        final Fairness fairness = Fairness.of(java.util.Arrays.copyOf(shares, n), java.util.Arrays.copyOf(weights, n));
        return JsonNodeFactory.instance.objectNode().put("groups", fairness.groups()).put("jain", fairness.jain())
            .put("coefficient_of_variation", fairness.coefficientOfVariation());
    }
}

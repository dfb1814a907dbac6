/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;

/**
 * The policy and its parameters while the daemon runs: which changes this daemon can make, how they reach the
 * scheduler, and what holds for tasks that open later. Every change is journaled, so that a replay makes it, too.
 * Dispatcher thread only, unless said otherwise; rare, may allocate.
 */
public final class PolicyControl {
    private static final int ENOENT = -2;
    private static final int PPM_PER_PERCENT = 10_000;

    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final ProcessRegistry processes;
    private final TaskTable tasks;
    private final DecisionApplier decisions;
    private final DispatcherJournal journal;
    private final CycleClock clock;
    private final Consumer<String> shown;
    private final Anticipation anticipation;

    /** Settings of tasks from policy files and commands, by name; for tasks that open later. */
    private final Map<String, PolicySettings.TaskRule> taskRules = new HashMap<>();
    private final Set<Integer> groupsNamed = new TreeSet<>();
    private Sharing sharing = Sharing.TURNS;
    private long quantumNs = PolicySettings.QUANTUM_NS;
    private Anticipate anticipate = Anticipate.DECLARED;
    private int anticipationPpm = Anticipator.BUDGET_DEFAULT_PPM;
    private volatile boolean stopping;

    /**
     * @param scheduler  decides
     * @param desired    the enforcers, for what their mechanisms can do
     * @param processes  whose groups are named by process
     * @param tasks      the open ones
     * @param decisions  carries out what the scheduler decided
     * @param journal    where changes are written down
     * @param clock      of the duty cycle
     * @param shown      receives the name of the policy, for the status page
     * @param anticipation of begins
     */
    PolicyControl(final SegmentScheduler scheduler, final DesiredStates desired, final ProcessRegistry processes,
        final TaskTable tasks, final DecisionApplier decisions, final DispatcherJournal journal,
        final CycleClock clock, final Consumer<String> shown, final Anticipation anticipation) {
        this.scheduler = scheduler;
        this.desired = desired;
        this.processes = processes;
        this.tasks = tasks;
        this.decisions = decisions;
        this.journal = journal;
        this.clock = clock;
        this.shown = shown;
        this.anticipation = anticipation;
        anticipation.mode(anticipate);
        scheduler.setKeepReady(true, 0);
    }

    // ---- what can be done -----------------------------------------------------------------------------------------

    /**
     * Refuses what this daemon's mechanism cannot do. Any thread.
     *
     * @throws IllegalArgumentException with the reason
     */
    public void requireUsable(final PolicySettings settings) {
        if (observes() && settings.policy() != null && settings.policy().enforces()) {
            throw new IllegalArgumentException("policy " + settings.policy().name() + ": this daemon's mechanism only "
                + "observes; restart it with --mechanism gate or better");
        }
        if (settings.sharing() == Sharing.TIMESLICES) {
            requireTimeslices("sharing is timeslices", "use turns");
        }
    }

    private boolean observes() {
        return desired.gpus() > 0
            && desired.enforcer(0).mechanism().capabilities().level() == Capabilities.OBSERVE;
    }

    private void requireTimeslices(final String what, final String remedy) {
        for (int g = 0; g < desired.gpus(); g++) {
            if (!desired.enforcer(g).mechanism().capabilities().timeslice()) {
                throw new IllegalArgumentException(what + "; mechanism " + desired.enforcer(g).mechanism().name()
                    + " cannot set time slices, " + remedy);
            }
        }
    }

    // ---- tasks that open ------------------------------------------------------------------------------------------

    /** Applies the settings of a policy file or command to a task of that name, after it is opened. */
    void applyRule(final TaskEntry task) {
        final PolicySettings.TaskRule rule = taskRules.get(task.request.name());
        if (rule != null) {
            apply(task, rule);
            decisions.settle();
        }
    }

    /** A process asks for a weight; the caller settles. */
    void weigh(final ProcessEntry process, final int weight) {
        for (final int contextId : process.contexts) {
            changeWeight(scheduler.ownGroup(contextId), weight);
        }
    }

    // ---- changes --------------------------------------------------------------------------------------------------

    /** Journals what a replay has to know before the first event: it begins with a scheduler that keeps none ready. */
    void started() {
        journal.keepsReady();
        anticipation.started();
        journal.anticipate(anticipate, anticipationPpm);
    }

    /** The daemon stops: all begins are granted and all contexts are enabled; no later change counts. */
    void stop() {
        final Policy observing = PolicyCatalog.builtIn().observing();
        scheduler.setPolicy(observing, clock.nowNs());
        journal.policy(observing.name());
        decisions.settle();
        stopping = true;   // after the desired state is published
    }

    /** Any thread: {@link #stop} has run. */
    public boolean isStopping() {
        return stopping;
    }

    /** Makes all changes of a policy file or command. */
    public void apply(final PolicySettings settings) {
        if (stopping) {
            return;   // all contexts stay enabled
        }
        if (settings.policy() != null) {
            scheduler.setPolicy(settings.policy(), clock.nowNs());
            shown.accept(settings.policy().name());
            journal.policy(settings.policyText());
        }
        if (settings.sharing() != null) {
            final long usualNs = settings.sharing() == Sharing.TURNS ? PolicySettings.QUANTUM_NS
                : PolicySettings.TIMESLICE_NS;
            sharing = settings.sharing();
            quantumNs = settings.quantumNs() == 0 ? usualNs : settings.quantumNs();
            scheduler.setSharing(sharing, quantumNs, clock.nowNs());
            journal.sharing(sharing, quantumNs);
        }
        anticipate(settings.ahead());
        for (final PolicySettings.GroupRule rule : settings.groupRules()) {
            apply(rule.group(), rule.share());
            groupsNamed.add(rule.group());
        }
        for (final PolicySettings.TaskRule rule : settings.taskRules()) {
            taskRules.merge(rule.task(), rule, PolicyControl::merged);
            tasks.forEach(task -> {
                if (task.request.name().equals(rule.task())) {
                    apply(task, rule);
                }
            });
        }
        if (!settings.text().isEmpty()) {
            journal.settings(settings.text());
        }
        decisions.settle();
    }

    private void anticipate(final PolicySettings.Ahead ahead) {
        if (ahead.equals(PolicySettings.Ahead.UNSAID)) {
            return;
        }
        if (ahead.mode() != null) {
            anticipate = ahead.mode();
            anticipation.mode(anticipate);
        }
        if (ahead.budgetPercent() >= 0) {
            anticipationPpm = ahead.budgetPercent() * PPM_PER_PERCENT;
            anticipation.budget(anticipationPpm);
        }
        journal.anticipate(anticipate, anticipationPpm);
    }

    /** What a later rule does not say, an earlier one of the same task still does. */
    private static PolicySettings.TaskRule merged(final PolicySettings.TaskRule before,
        final PolicySettings.TaskRule now) {
        final PolicySettings.Share share = now.share();
        final boolean cap = share.hasCap();
        return new PolicySettings.TaskRule(now.task(),
            new PolicySettings.Share(share.weight() == 0 ? before.share().weight() : share.weight(),
                cap ? share.quotaNs() : before.share().quotaNs(), cap ? share.periodNs() : before.share().periodNs()),
            now.overrun() == null ? before.overrun() : now.overrun(),
            now.partition(), now.budgetNs(), now.anticipate() == null ? before.anticipate() : now.anticipate());
    }

    private void apply(final TaskEntry task, final PolicySettings.TaskRule rule) {
        if (rule.overrun() != null) {
            scheduler.setOverrunAction(task.id, rule.overrun(), clock.nowNs());
            journal.overrunAction(task, rule.overrun());
        }
        if (rule.anticipate() != null) {
            anticipation.wish(task, rule.anticipate());
            journal.anticipateTask(task, rule.anticipate());
        }
        for (final int contextId : task.client.process.contexts) {
            apply(scheduler.ownGroup(contextId), rule.share());
        }
    }

    private void apply(final int group, final PolicySettings.Share share) {
        if (share.weight() > 0) {
            changeWeight(group, share.weight());
        }
        if (share.hasCap()) {
            changeCap(group, share.quotaNs(), share.periodNs());
        }
    }

    private void changeWeight(final int group, final int weight) {
        scheduler.setWeight(group, weight, clock.nowNs());
        journal.weight(group, weight);
    }

    private void changeCap(final int group, final long quotaNs, final long periodNs) {
        scheduler.setCap(group, quotaNs, periodNs, clock.nowNs());
        journal.cap(group, quotaNs, periodNs);
    }

    /**
     * Puts a context into a group for weights and caps.
     *
     * @param contextId as in CONTEXT_OPEN events and {@code status}
     * @param groupId   1..{@code maxContexts}, chosen by the caller; {@link SegmentScheduler#NONE} = its own
     * @return false if there is no such context
     */
    boolean setGroup(final int contextId, final int groupId) {
        final int wanted = groupId == SegmentScheduler.NONE ? scheduler.ownGroup(contextId) : groupId;
        if (scheduler.group(contextId) == wanted) {
            return true;
        }
        final boolean known = scheduler.setGroup(contextId, groupId, clock.nowNs());
        if (known) {
            journal.contextGroup(contextId, groupId);
        }
        decisions.settle();
        return known;
    }

    /**
     * As {@link #setGroup}, for a process's contexts on all GPUs.
     *
     * @param pid        a process that is registered or was found
     * @param startTicks tells a reused pid; 0 = not looked at
     * @param groupId    as {@link #setGroup}
     * @return false if there is no such process
     */
    public boolean setProcessGroup(final int pid, final long startTicks, final int groupId) {
        final boolean[] known = {false};
        processes.forEach(process -> {
            if (process.pid == pid && (startTicks == 0 || process.startTicks == startTicks)) {
                known[0] = true;
                for (final int contextId : process.contexts) {
                    setGroup(contextId, groupId);
                }
            }
        });
        return known[0];
    }

    /**
     * Sets the weight of a group.
     *
     * @param groupId as {@link #setGroup}; need not have members
     * @param weight  1..10000
     */
    public void setWeight(final int groupId, final int weight) {
        changeWeight(groupId, weight);
        decisions.settle();
    }

    /**
     * Caps a group.
     *
     * @param groupId  as {@link #setGroup}; need not have members
     * @param quotaNs  GPU time of each period, 0 = no cap
     * @param periodNs 1 ms..10 s
     */
    public void setCap(final int groupId, final long quotaNs, final long periodNs) {
        changeCap(groupId, quotaNs, periodNs);
        decisions.settle();
    }

    /**
     * Sets weight and cap of one process. They hold until it ends.
     *
     * @param pid   a process that is registered or was found
     * @param share what is not said stays as it is
     * @param told  receives one line for each such process: in PID namespaces there may be several
     * @return false if there is no such process
     */
    public boolean setShare(final int pid, final PolicySettings.Share share, final Consumer<String> told) {
        final boolean[] known = {false};
        processes.forEach(process -> {
            if (process.pid == pid) {
                known[0] = true;
                for (final int contextId : process.contexts) {
                    apply(scheduler.ownGroup(contextId), share);
                }
                told.accept("process " + pid + " \"" + process.name + "\""
                    + share(scheduler.ownGroup(process.contexts[0])));
            }
        });
        decisions.settle();
        return known[0];
    }

    /**
     * Sets the priorities of one task, or of all of a name.
     *
     * @param taskId      0 = by name
     * @param name        of the tasks
     * @param priority    0..99
     * @param gpuPriority 0..99
     * @param told        receives one line for each task
     * @return 0 or a negative errno
     */
    public int setPriority(final int taskId, final String name, final int priority, final int gpuPriority,
        final Consumer<String> told) {
        final int[] changed = {0};
        tasks.forEach(task -> {
            if (taskId > 0 ? task.id == taskId : task.request.name().equals(name)) {
                setPriority(task, priority, gpuPriority, told);
                changed[0]++;
            }
        });
        return changed[0] > 0 ? 0 : ENOENT;
    }

    private void setPriority(final TaskEntry task, final int priority, final int gpuPriority,
        final Consumer<String> told) {
        task.priority = priority;
        task.gpuPriority = gpuPriority;
        scheduler.setPriority(task.id, priority, gpuPriority, clock.nowNs());
        anticipation.ranked(task);
        decisions.answer();
        journal.priority(task, priority, gpuPriority);
        decisions.record();
        final String text = "task " + task.id + " \"" + task.request.name() + "\" priority " + priority
            + " gpu_priority " + gpuPriority;
        journal.prioritySet(task, priority, gpuPriority, text);
        told.accept(text);
    }

    // ---- what holds -----------------------------------------------------------------------------------------------

    /** The policy and its parameters, for a human; one line each. */
    public void describe(final Consumer<String> told) {
        told.accept("policy " + scheduler.policy().describe());
        told.accept("anticipate " + anticipate.label() + ", budget " + anticipationPpm / PPM_PER_PERCENT
            + " % of best-effort time");
        told.accept("sharing " + sharing.name().toLowerCase(Locale.ROOT) + ", quantum " + Durations.format(quantumNs));
        for (final int group : groupsNamed) {
            told.accept("group " + group + share(group));
        }
        processes.forEach(process -> {
            final int group = scheduler.group(process.contexts[0]);
            told.accept("process " + process.pid + " \"" + process.name + "\""
                + (group == scheduler.ownGroup(process.contexts[0]) ? "" : " in group " + group) + share(group));
        });
        tasks.forEach(task -> told.accept("task " + task.id + " \"" + task.request.name() + "\" overrun "
            + scheduler.overrunAction(task.id).label() + ", partition " + task.request.partition()));
    }

    private String share(final int group) {
        final long quota = scheduler.quotaNs(group);
        return " weight " + scheduler.weight(group)
            + (quota == 0 ? "" : ", cap " + Durations.format(quota) + "/"
                + Durations.format(scheduler.periodNs(group)));
    }
}

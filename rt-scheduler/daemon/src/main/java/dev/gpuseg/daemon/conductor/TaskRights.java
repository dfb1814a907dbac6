/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Priority;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.daemon.cgroup.GroupRule;
import dev.gpuseg.ipc.platform.PeerProcess;
import dev.gpuseg.ipc.platform.PlainText;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/**
 * Judges requests by the limits of their user. Root and the daemon's own user have none: they may stop the daemon
 * anyway. Where a rule for the control group of the process says which priorities its tasks may have, that counts in
 * place of the user's limit, and root in that group is a user as others: root of a container is no administrator. A
 * share is not looked at there, because users of different containers have the same numbers. One thread.
 */
final class TaskRights {
    /** So that the whole line fits into a reply. */
    private static final int PATTERN_SHOWN = 60;
    private static final int NO_PROCESS = 0;
    private static final long PERCENT = 100;
    private static final long MILLION = 1_000_000;

    /**
     * What becomes of a request to open a task.
     *
     * @param refusal null if it is allowed, else limit, value and remedy
     * @param request what is opened: as asked for, or with the budget that its user has by default
     */
    record Verdict(String refusal, TaskOpen request) {
    }

    private final UserLimits limits;
    private final int ownUid;
    private final IntFunction<AskingGroup> controlGroups;

    /**
     * @param limits        of users
     * @param ownUid        the daemon's
     * @param controlGroups of processes, by pid
     */
    TaskRights(final UserLimits limits, final int ownUid, final IntFunction<AskingGroup> controlGroups) {
        this.limits = limits;
        this.ownUid = ownUid;
        this.controlGroups = controlGroups;
    }

    /** The control group of a peer; if the peer has ended, or cannot be told from another process, an unknown one. */
    AskingGroup controlGroup(final PeerProcess peer) {
        return peer.about(controlGroups, controlGroups.apply(NO_PROCESS));
    }

    /**
     * Whose a connection is, for a bound on their number: the user's. Of root and the daemon's own user nobody's, but
     * in a control group with a rule about priorities that rule's, so that no container uses up what is left to others.
     */
    Object owner(final PeerProcess peer) {
        final int uid = peer.credentials().uid();
        if (uid != 0 && uid != ownUid) {
            return uid;
        }
        final AskingGroup group = controlGroup(peer);
        return group.isRuled() ? group.rule().pattern() : null;
    }

    private boolean isExempt(final int uid) {
        return uid == 0 || uid == ownUid || limits.isEmpty();
    }

    private static List<Integer> groups(final PeerProcess peer) {
        final List<Integer> groups = new ArrayList<>(peer.groups());
        groups.add(peer.credentials().gid());
        return groups;
    }

    /**
     * How many tasks or clients a user may have.
     *
     * @param limit TASKS or CLIENTS
     * @param peer  the process that asks
     * @param quota without a line about it
     * @return the bound
     */
    UserLimits.Bound quota(final Limit limit, final PeerProcess peer, final long quota) {
        final int uid = peer.credentials().uid();
        return isExempt(uid) ? UserLimits.NONE.of(limit, uid, List.of(), quota)
            : limits.of(limit, uid, groups(peer), quota);
    }

    /**
     * GPU time per period that a task declares: millionths of a GPU, 0 for best effort and for what is not declared.
     */
    static long load(final TaskOpen request) {
        return !Priority.isRealTime(request.priority()) || request.periodNs() == 0 ? 0
            : request.budgetNs() * MILLION / request.periodNs();
    }

    /**
     * Judges a request.
     *
     * @param request valid by itself
     * @param peer    who asks
     * @param load    that the other tasks of its user declare, millionths of a GPU
     * @return the verdict
     */
    Verdict judge(final TaskOpen request, final PeerProcess peer, final long load) {
        if (!Priority.isRealTime(request.priority())) {
            return new Verdict(null, request);
        }
        final GroupRule rule = controlGroup(peer).rule();
        final int uid = peer.credentials().uid();
        if (!rule.limitsPriority() && isExempt(uid)) {
            return new Verdict(null, request);
        }
        final List<Integer> groups = groups(peer);
        final int priority = Priority.higher(request.priority(), request.gpuPriority());
        if (rule.limitsPriority() && Priority.isHigherThan(priority, rule.priority())) {
            return refused("priority is " + priority + "; the rule for control group " + PlainText.of(rule.pattern(),
                PATTERN_SHOWN) + " allows " + rule.priority() + "; change that rule");
        }
        final UserLimits.Bound highest = limits.of(Limit.PRIORITY, uid, groups);
        if (!rule.limitsPriority() && priority > highest.value()) {
            return refused("priority is " + priority + "; " + highest.describe(uid, priority));
        }
        final UserLimits.Bound unbudgeted = limits.of(Limit.UNBUDGETED, uid, groups);
        if (request.budgetNs() == 0 && priority > unbudgeted.value()) {
            return refused("priority is " + priority + " without a budget; " + unbudgeted.describe(uid, priority)
                + "; or declare a budget");
        }
        final UserLimits.Bound budget = limits.of(Limit.BUDGET, uid, groups);
        if (request.budgetNs() > budget.value()) {
            return refused("budget is " + budget.limit().show(request.budgetNs()) + "; "
                + budget.describe(uid, request.budgetNs()));
        }
        if (!budget.isUnlimited() && request.budgetNs() > 0 && request.overrun() == OverrunAction.NOTIFY) {
            return refused("action notify ends no segment; " + budget.describe(uid, Long.MAX_VALUE)
                + "; or use demote");
        }
        final TaskOpen bounded = bounded(request, budget, limits.of(Limit.HINT_LEAD, uid, groups).value());
        final UserLimits.Bound utilization = limits.of(Limit.UTILIZATION, uid, groups);
        String beyond = beyondUtilization(bounded, utilization, uid, load);
        final UserLimits.Bound share = rule.limitsPriority() ? UserLimits.NONE.of(Limit.SHARE, uid, groups)
            : limits.of(Limit.SHARE, uid, groups);
        if (beyond == null && request.periodNs() > 0 && request.budgetNs() > 0) {
            beyond = beyondUtilization(request, share, uid, load);
        }
        return beyond != null ? refused(beyond) : new Verdict(null, bounded.withShare((int) Math.min(
            TaskOpen.WHOLE_GPU, Math.min(utilization.value(), share.value()))));
    }

    /** A task that declares no budget gets the longest one; NOTIFY, which would make it worthless, becomes DEMOTE. */
    private static TaskOpen bounded(final TaskOpen request, final UserLimits.Bound budget, final long hintLeadNs) {
        final TaskOpen hints = request.withHintLead(hintLeadNs);
        if (budget.isUnlimited() || request.budgetNs() > 0) {
            return hints;
        }
        return hints.withBudget(budget.value(), request.overrun() == OverrunAction.NOTIFY ? OverrunAction.DEMOTE
            : request.overrun());
    }

    private static String beyondUtilization(final TaskOpen request, final UserLimits.Bound utilization, final int uid,
        final long load) {
        if (utilization.isUnlimited()) {
            return null;
        }
        if (request.periodNs() == 0 || request.budgetNs() == 0) {
            return "period or budget is 0; " + utilization.describe(uid, Long.MAX_VALUE) + "; declare both";
        }
        final long sum = load + load(request);
        final long percent = (sum * PERCENT + MILLION - 1) / MILLION;
        return sum <= utilization.value() * MILLION / PERCENT ? null : "it makes the budgets of this user " + percent
            + "% of a GPU; " + utilization.describe(uid, percent);
    }

    private static Verdict refused(final String why) {
        return new Verdict(why, null);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Which of the begun segments of a GPU run: sorts them in the order of the policy and chooses the leader and those that
 * may run beside it, one grant for each context. Remembers nothing from decision to decision but the memory it uses.
 */
final class SegmentChooser {
    private static final int NONE = SegmentScheduler.NONE;

    private final SegmentTable segments;
    private final ContextTable contexts;
    private final SegmentView one;
    private final SegmentView other;
    /** For each task, whether the decision being made lets it run. */
    private final boolean[] chosen;
    private Policy policy;

    SegmentChooser(final SegmentTable segments, final ContextTable contexts, final int maxTasks, final Policy policy) {
        this.segments = segments;
        this.contexts = contexts;
        this.policy = policy;
        one = new SegmentView(segments);
        other = new SegmentView(segments);
        chosen = new boolean[maxTasks + 1];
    }

    void policy(final Policy newPolicy) {
        policy = newPolicy;
    }

    boolean isChosen(final int t) {
        return chosen[t];
    }

    void chooseNone(final int[] order, final int count) {
        for (int i = 0; i < count; i++) {
            chosen[order[i]] = false;
        }
    }

    boolean admitsBackground(final int leader) {
        return policy.admitsBackground(one.at(leader));
    }

    int pregrantCeiling(final int t) {
        return policy.pregrantCeiling(one.at(t));
    }

    /** Insertion sort: linear where the order still holds, which is nearly always. */
    void sort(final int[] order, final int count) {
        for (int i = 1; i < count; i++) {
            final int t = order[i];
            int at = i;
            while (at > 0 && isBefore(t, order[at - 1])) {
                order[at] = order[at - 1];
                at--;
            }
            order[at] = t;
        }
    }

    private boolean isBefore(final int a, final int b) {
        final int byPolicy = policy.compare(one.at(a), other.at(b));
        if (byPolicy != 0) {
            return byPolicy < 0;
        }
        final long aBeginNs = segments.beginNs[a];
        final long bBeginNs = segments.beginNs[b];
        return aBeginNs != bBeginNs ? aBeginNs < bBeginNs : a < b;
    }

    boolean mayRunBeside(final int a, final int b) {
        return a == b || policy.mayRunBeside(one.at(a), other.at(b));
    }

    /** A context is admitted by its best segment; what then runs in it is the first of its granted ones, if any. */
    void markContexts(final int[] order, final int count, final int leader, final long decision) {
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            final int c = segments.contextId[t];
            if (contexts.seen[c] != decision) {
                contexts.seen[c] = decision;
                contexts.firstGranted[c] = NONE;
                contexts.admitted[c] = false;
            }
            if (segments.granted[t] && contexts.firstGranted[c] == NONE) {
                contexts.firstGranted[c] = t;
            }
            if (!contexts.admitted[c] && !contexts.blocked[c] && mayRunBeside(leader, t)) {
                contexts.admitted[c] = true;
            }
        }
    }

    /** Chooses where contexts can be disabled; returns the first chosen one, {@link SegmentScheduler#NONE} if none. */
    int chooseByContext(final int[] order, final int count, final int leader) {
        int first = NONE;
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            final int c = segments.contextId[t];
            boolean choose = false;
            if (contexts.admitted[c]) {
                final int holder = contexts.firstGranted[c];
                if (holder == NONE) {
                    choose = mayRunBeside(leader, t);
                    if (choose) {
                        contexts.firstGranted[c] = t;
                    }
                } else {
                    choose = mayRunBeside(holder, t) && (segments.granted[t] || mayRunBeside(leader, t));
                }
            }
            chosen[t] = choose;
            if (choose && first == NONE) {
                first = t;
            }
        }
        return first;
    }

    /** Chooses where what runs is never preempted; returns the first chosen one. */
    int chooseByGate(final int[] order, final int count, final int leader) {
        int holder = NONE;
        int granted = NONE;
        for (int i = count - 1; i >= 0; i--) {
            final int t = order[i];
            if (segments.state[t] == SegmentState.RUNNING) {
                holder = t;
            }
            if (segments.granted[t] && !isBlocked(t)) {
                granted = t;
            }
        }
        if (holder == NONE) {
            holder = granted == NONE ? leader : granted;
        }
        int first = NONE;
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            chosen[t] = segments.state[t] == SegmentState.RUNNING
                || !isBlocked(t) && mayRunBeside(holder, t) && (segments.granted[t] || mayRunBeside(leader, t));
            if (chosen[t] && first == NONE) {
                first = t;
            }
        }
        return first;
    }

    boolean isBlocked(final int t) {
        return contexts.blocked[segments.contextId[t]];
    }

    /** The first that is not held back, {@link SegmentScheduler#NONE} if all are. */
    int firstFree(final int[] order, final int count) {
        for (int i = 0; i < count; i++) {
            if (!isBlocked(order[i])) {
                return order[i];
            }
        }
        return NONE;
    }
}

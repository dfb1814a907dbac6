/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import dev.gpuseg.core.Policy;
import dev.gpuseg.core.Priority;
import dev.gpuseg.core.SegmentView;
import java.util.SplittableRandom;

/** Asks a policy about random segments, without a scheduler: what its answers must have in common. */
final class Questions {
    private static final int[] PRIORITIES = {0, 0, 1, 2, 10, 10, 11, 50, 98, 99};
    private static final int PARTITIONS = 4;
    private static final int TIMES = 200;
    private static final int STEPS = 8;

    private final Policy policy;
    private final Findings findings;
    private final long seed;
    private final SegmentView[] views;
    private final long[] timesNs = new long[TIMES];
    private long spare;   // answers that only must not be left out
    private final long[] answers;

    Questions(final Policy policy, final Effort effort, final Findings findings) {
        this.policy = policy;
        this.findings = findings;
        seed = effort.seed();
        views = views(effort.segments());
        final SplittableRandom random = new SplittableRandom(~seed);
        for (int i = 0; i < TIMES; i++) {
            timesNs[i] = random.nextLong(1L << (1 + random.nextInt(40)));
        }
        answers = ask(views);
    }

    /** Equal segments every time. Few values each, so that ties are common. */
    private SegmentView[] views(final int count) {
        final SplittableRandom random = new SplittableRandom(seed);
        final SegmentView[] all = new SegmentView[count];
        for (int i = 0; i < count; i++) {
            final long beginNs = 1_000 + random.nextLong(5);
            all[i] = view(random, i, PRIORITIES[random.nextInt(PRIORITIES.length)], beginNs);
        }
        return all;
    }

    private static SegmentView view(final SplittableRandom random, final int task, final int priority,
        final long beginNs) {
        final long releaseNs = beginNs - random.nextLong(500);
        final long deadlineNs = random.nextInt(4) == 0 ? Long.MAX_VALUE
            : releaseNs + (random.nextBoolean() ? 1_000 * (1 + random.nextLong(4)) : random.nextLong(1L << 40));
        final long budgetNs = random.nextInt(3) == 0 ? 0 : 500 * random.nextLong(5);
        return SegmentView.of(task, priority, random.nextInt(PARTITIONS), releaseNs, deadlineNs, beginNs, budgetNs);
    }

    static String text(final SegmentView v) {
        return "{task " + v.taskId() + ", priority " + v.gpuPriority() + ", partition " + v.partition() + ", release "
            + v.releaseNs() + ", deadline " + (v.deadlineNs() == Long.MAX_VALUE ? "none" : v.deadlineNs()) + ", begin "
            + v.beginNs() + ", budget " + v.budgetNs() + "}";
    }

    private String of(final SegmentView a, final SegmentView b) {
        return " for a = " + text(a) + ", b = " + text(b) + " (seed " + seed + ")";
    }

    /** All answers but those about time, in one array. */
    private long[] ask(final SegmentView[] about) {
        final int n = about.length;
        final long[] all = new long[n * n + 2 * n + 3 * TIMES];
        int at = 0;
        for (final SegmentView a : about) {
            for (final SegmentView b : about) {
                all[at++] = 2L * Integer.signum(policy.compare(a, b)) + (policy.mayRunBeside(a, b) ? 1 : 0);
            }
            all[at++] = policy.pregrantCeiling(a);
            all[at++] = policy.admitsBackground(a) ? 1 : 0;
        }
        for (int i = 0; i < TIMES; i++) {
            all[at++] = policy.isOpen(i % PARTITIONS, timesNs[i]) ? 1 : 0;
            all[at++] = policy.lendsIdle(timesNs[i]) ? 1 : 0;
            all[at++] = policy.nextChangeNs(timesNs[i]);
        }
        return all;
    }

    void order() {
        for (final SegmentView a : views) {
            for (final SegmentView b : views) {
                final int ab = Integer.signum(policy.compare(a, b));
                final int ba = Integer.signum(policy.compare(b, a));
                findings.require(Law.ANTISYMMETRIC, ab == -ba,
                    () -> "compare(a, b) is " + ab + " and compare(b, a) is " + ba + of(a, b));
                final boolean beside = policy.mayRunBeside(a, b);
                findings.require(Law.SYMMETRIC, a == b || beside == policy.mayRunBeside(b, a),
                    () -> "mayRunBeside(a, b) is " + beside + ", mayRunBeside(b, a) is not" + of(a, b));
                if (policy.enforces() && a.isRealTime() && !b.isRealTime()) {
                    findings.require(Law.REAL_TIME_FIRST, ab < 0, () -> "compare(a, b) is " + ab + of(a, b));
                    findings.require(Law.REAL_TIME_APART, !beside, () -> "mayRunBeside(a, b)" + of(a, b));
                }
            }
            if (policy.enforces() && a.isRealTime()) {
                findings.require(Law.REAL_TIME_APART, !policy.admitsBackground(a),
                    () -> "admitsBackground(a) for a = " + text(a) + " (seed " + seed + ")");
            }
        }
        for (final SegmentView a : views) {
            for (final SegmentView b : views) {
                final int ab = policy.compare(a, b);
                for (int i = 0; ab <= 0 && i < views.length; i++) {
                    final SegmentView c = views[i];
                    final int bc = policy.compare(b, c);
                    if (bc <= 0) {
                        final int ac = Integer.signum(policy.compare(a, c));
                        final boolean tie = ab == 0 && bc == 0;
                        findings.require(Law.TRANSITIVE, tie ? ac == 0 : ac < 0, () -> "compare(a, b) is " + ab
                            + ", compare(b, c) is " + bc + ", but compare(a, c) is " + ac + " for c = " + text(c)
                            + of(a, b));
                    }
                }
            }
        }
    }

    /** Any later begin of a task above the ceiling, with any deadline, budget and partition. */
    void pregrants() {
        final SplittableRandom random = new SplittableRandom(seed + 1);
        for (final SegmentView begun : views) {
            final int ceiling = policy.pregrantCeiling(begun);
            findings.require(Law.PREGRANT_SOUND, ceiling >= Priority.BELOW_ALL && ceiling <= Priority.MAX,
                () -> "pregrantCeiling(b) is " + ceiling + "; it must be " + Priority.BELOW_ALL + ".." + Priority.MAX
                    + " for b = " + text(begun));
            for (int i = 0; i < 4 * STEPS; i++) {
                final int lowest = Math.max(Priority.BEST_EFFORT, ceiling + 1);
                if (lowest > Priority.MAX || policy.isTimed()) {
                    continue;   // none is above it; under windows of time the scheduler grants none beforehand
                }
                final int priority = i % 2 == 0 ? lowest : lowest + random.nextInt(Priority.MAX - lowest + 1);
                final SegmentView later = view(random, views.length + i, priority,
                    begun.beginNs() + random.nextLong(3));
                findings.require(Law.PREGRANT_SOUND,
                    policy.compare(later, begun) < 0 || policy.mayRunBeside(begun, later),
                    () -> "pregrantCeiling(b) is " + ceiling + ", but a does not come before b, nor run beside it"
                        + of(later, begun));
            }
        }
    }

    void windows() {
        final SplittableRandom random = new SplittableRandom(seed + 2);
        for (final long nowNs : timesNs) {
            final long nextNs = policy.nextChangeNs(nowNs);
            findings.require(Law.WINDOWS, nextNs > nowNs,
                () -> "nextChangeNs(" + nowNs + ") is " + nextNs + (" (seed " + seed + ")"));
            for (int i = 0; i < STEPS && nextNs > nowNs; i++) {
                final long atNs = i == 0 ? nextNs - 1 : nowNs + random.nextLong(Math.min(nextNs - nowNs, 1L << 40));
                final int partition = i % PARTITIONS;
                findings.require(Law.WINDOWS, policy.isOpen(partition, nowNs) == policy.isOpen(partition, atNs)
                    && policy.lendsIdle(nowNs) == policy.lendsIdle(atNs), () -> "isOpen(" + partition
                    + ", t) or lendsIdle(t) changes between t = " + nowNs + " and " + atNs
                    + ", but nextChangeNs says " + nextNs + " (seed " + seed + ")");
                findings.require(Law.WINDOWS, policy.isTimed() || policy.isOpen(partition, atNs),
                    () -> "isTimed is false, but isOpen(" + partition + ", " + atNs + ") is too");
            }
        }
    }

    /** Once more, long after the first time, about equal segments in other objects. */
    void askAgain() {
        compareAnswers(ask(views));
        // one question more: what depends on the number of questions must not meet the same ones again in step
        spare += policy.compare(views[0], views[0]) + (policy.mayRunBeside(views[0], views[0]) ? 1 : 0)
            + policy.pregrantCeiling(views[0]) + (policy.admitsBackground(views[0]) ? 1 : 0);
        compareAnswers(ask(views(views.length)));
    }

    private void compareAnswers(final long[] again) {
        final int n = views.length;
        for (int i = 0; i < answers.length; i++) {
            if (answers[i] != again[i]) {
                final int row = i / (n + 2);
                final int column = i % (n + 2);
                findings.add(Law.PURE, (row >= n ? "a question about time has another answer when it is asked again"
                    : column >= n ? (column == n ? "pregrantCeiling" : "admitsBackground")
                    + "(a) has another answer when it is asked again, for a = " + text(views[row])
                    : "compare(a, b) or mayRunBeside(a, b) has another answer when it is asked again"
                    + of(views[row], views[column])) + " (seed " + seed + ")");
                return;
            }
        }
    }

    /** Everything that can be asked, once; returns something that depends on all answers. */
    long askAll() {
        return spare + askAboutPairs() + askAboutEach() + askAboutTimes() + (policy.isTimed() ? 1 : 0)
            + (policy.enforces() ? 1 : 0);
    }

    /** Two questions about each pair. */
    long askAboutPairs() {
        long sum = 0;
        for (final SegmentView a : views) {
            for (final SegmentView b : views) {
                sum += policy.compare(a, b) + (policy.mayRunBeside(a, b) ? 1 : 0);
            }
        }
        return sum;
    }

    int countAboutPairs() {
        return 2 * views.length * views.length;
    }

    /** Two questions about each segment. */
    long askAboutEach() {
        long sum = 0;
        for (final SegmentView a : views) {
            sum += policy.pregrantCeiling(a) + (policy.admitsBackground(a) ? 1 : 0);
        }
        return sum;
    }

    int countAboutEach() {
        return 2 * views.length;
    }

    /** Three questions about each instant. */
    long askAboutTimes() {
        long sum = 0;
        for (int i = 0; i < TIMES; i++) {
            sum += (policy.isOpen(i % PARTITIONS, timesNs[i]) ? 1 : 0) + (policy.lendsIdle(timesNs[i]) ? 1 : 0)
                + policy.nextChangeNs(timesNs[i]);
        }
        return sum;
    }

    int countAboutTimes() {
        return 3 * TIMES;
    }

    /** How many questions {@link #askAll} asks. */
    int count() {
        return countAboutPairs() + countAboutEach() + countAboutTimes() + 2;
    }
}

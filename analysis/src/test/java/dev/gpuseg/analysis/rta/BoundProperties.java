/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.RandomSets;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class BoundProperties {
    /** Analyses whose jitters come from response times: these never shrink when something grows. */
    private static final List<Analysis> MONOTONE = Analyses.parse(
        "tsg-rr-busy,tsg-rr-suspend,gcaps-busy,gcaps-suspend,"
        + "gcaps-window-busy,gcaps-window-suspend,gcaps-boost-busy,gcaps-boost-suspend,fmlp-busy,fmlp-suspend");

    @Property(tries = 300)
    void shouldBeTheSumOfItsTermsAndAgreeWithTheQuickVerdict(@ForAll final long seed) {
        final TaskSet set = RandomSets.of(seed);
        final PreparedSet prepared = PreparedSet.of(set);
        for (final Analysis analysis : Analyses.all()) {
            final AnalysisResult result = analysis.analyse(prepared);
            assertEquals(result.schedulable(), analysis.isSchedulable(prepared), analysis.name());
            for (int i = 0; i < set.tasks().size(); i++) {
                final TaskResult task = result.tasks().get(i);
                assertEquals(set.tasks().get(i).name(), task.name());
                if (task.wcrtNs() != null) {
                    assertEquals(task.wcrtNs(), task.terms().totalNs(), analysis.name() + " " + task.name());
                    assertTrue(task.wcrtNs() <= task.deadlineNs());
                    assertTrue(task.wcrtNs() >= set.tasks().get(i).cpuNs() + set.tasks().get(i).gpuNs());
                }
            }
        }
    }

    @Property(tries = 300)
    void shouldNotShrinkWhenWorkJitterBlockingOrEpsilonGrow(@ForAll final long seed,
        @ForAll @IntRange(max = 7) final int which, @ForAll @IntRange(max = 5) final int what) {
        final TaskSet set = RandomSets.of(seed);
        final int changed = which % set.tasks().size();
        final TaskSet more = grow(set, changed, what);
        for (final Analysis analysis : MONOTONE) {
            final AnalysisResult before = analysis.analyse(set);
            final AnalysisResult after = analysis.analyse(more);
            if (!after.schedulable()) {
                continue;
            }
            assertTrue(before.schedulable(), analysis.name() + " accepts only the set with more work");
            for (int i = 0; i < set.tasks().size(); i++) {
                final Long old = before.tasks().get(i).wcrtNs();
                if (old != null) {
                    assertTrue(old <= after.tasks().get(i).wcrtNs(), analysis.name() + " task " + i);
                }
            }
        }
    }

    @Property(tries = 300)
    void shouldNeverBeLargerWithTheRequestDrivenCap(@ForAll final long seed) {
        final PreparedSet set = PreparedSet.of(RandomSets.of(seed));
        final AnalysisResult plain = Analyses.get("gcaps-suspend").analyse(set);
        if (plain.schedulable()) {
            final AnalysisResult capped = Analyses.get("gcaps-suspend-capped").analyse(set);
            for (int i = 0; i < plain.tasks().size(); i++) {
                if (plain.tasks().get(i).wcrtNs() != null) {
                    assertTrue(capped.tasks().get(i).wcrtNs() <= plain.tasks().get(i).wcrtNs());
                }
            }
        }
    }

    @Property(tries = 300)
    void shouldAcceptWithTheFrontierWhateverThePublishedSearchAccepts(@ForAll final long seed) {
        final PreparedSet set = PreparedSet.of(RandomSets.of(seed));
        for (final Analysis analysis
            : Analyses.parse("gcaps-suspend,gcaps-suspend-capped,gcaps-busy,gcaps-window-suspend,"
            + "gcaps-window-busy,gcaps-boost-suspend,gcaps-boost-busy")) {
            if (GpuPrioritySearch.levels(set, analysis, GpuPrioritySearch.Strategy.PUBLISHED) != null) {
                assertTrue(GpuPrioritySearch.levels(set, analysis, GpuPrioritySearch.Strategy.FRONTIER) != null,
                    analysis.name());
            }
        }
    }

    private static TaskSet grow(final TaskSet set, final int changed, final int what) {
        if (what == 5) {
            return set.withPlatform(set.platform().withEpsilonNs(
                set.platform().gpus().stream().mapToLong(g -> g.epsilonNs()).max().orElse(0) + 300_000));
        }
        final List<Task> tasks = new ArrayList<>(set.tasks());
        final Task t = tasks.get(changed);
        final List<Segment> segments = new ArrayList<>();
        for (final Segment segment : t.segments()) {
            if (segment instanceof Segment.Cpu c && what == 0) {
                segments.add(new Segment.Cpu(c.durationNs() + 500_000));
            } else if (segment instanceof Segment.Gpu g && what == 1) {
                segments.add(new Segment.Gpu(g.hostNs(), g.deviceNs() + 700_000, g.totalNs() + 700_000));
            } else if (segment instanceof Segment.Gpu g && what == 2) {
                segments.add(new Segment.Gpu(g.hostNs() + 300_000, g.deviceNs(), g.totalNs() + 300_000));
            } else {
                segments.add(segment);
            }
        }
        final long jitter = what == 3 && !t.bestEffort() ? t.jitterNs() + 900_000 : t.jitterNs();
        final long blocking = what == 4 && !t.bestEffort() ? t.blockingNs() + 900_000 : t.blockingNs();
        tasks.set(changed, t.withTimes(t.deadlineNs(), jitter, blocking).withSegments(segments));
        return set.withTasks(tasks);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisDescription;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.PreparedSet;
import dev.gpuseg.analysis.rta.TaskResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Theorem 10 of {@code docs/processes.md} against the simulator, whose tasks of one process share a context of the live
 * scheduler. Every set has processes of several real-time tasks.
 */
@Timeout(300)
@Tag("long")
class SharedProcessSoundnessTest {
    private static final int SETS = Integer.getInteger("gpuseg.shared.sets", 1500);
    private static final int RUNS = Integer.getInteger("gpuseg.shared.runs", 3);
    private static final int CLIMBS = Integer.getInteger("gpuseg.shared.climbs", 20);
    private static final long SEED = Long.getLong("gpuseg.shared.seed", 31);
    /** Sets within which each planted error is found. */
    private static final int PLANTED = 1200;

    /** A campaign set whose real-time tasks with GPU segments are in one or two processes. */
    private static TaskSet shared(final long k) {
        final TaskSet set = CampaignSets.generate(SEED, k);
        final SplittableRandom random = Seeds.random(SEED, 77, k);
        final List<Task> tasks = new ArrayList<>();
        for (final Task task : set.tasks()) {
            tasks.add(task.inProcess(task.bestEffort() || random.nextInt(5) == 0 ? null : "p" + random.nextInt(2)));
        }
        return set.withTasks(tasks);
    }

    private static Claim claim(final Analysis analysis, final boolean claimed) {
        return new Claim(analysis, Claim.Simulated.of(analysis.description().model()), claimed);
    }

    @ParameterizedTest
    @ValueSource(strings = {"gcaps-window-suspend", "edf-edf-suspend", "edf-fp-suspend"})
    void shouldNeverExceedABoundOfTasksThatShareAProcess(final String name) {
        final Claim claim = claim(Analyses.get(name), true);
        final Campaign campaign = new Campaign(List.of(claim), SharedProcessSoundnessTest::shared, SEED, RUNS, CLIMBS);
        final Map<String, Long> counts = campaign.run(0, SETS);
        assertEquals(0, counts.get("exceeded sets of " + claim.title()), () -> campaign.excesses().toString());
        assertEquals(0, counts.get("missed sets of " + claim.title()));
        assertTrue(counts.get("accepted of " + claim.title()) > SETS / 10, counts.toString());
        assertTrue(counts.get("max ppm of " + claim.title()) > 900_000, counts.toString());
    }

    /** An analysis that was changed. */
    private record Changed(Analysis whole, BiFunction<Analysis, TaskSet, AnalysisResult> change) implements Analysis {
        @Override
        public AnalysisDescription description() {
            return whole.description();
        }

        @Override
        public boolean needsPriorities() {
            return whole.needsPriorities();
        }

        @Override
        public AnalysisResult analyse(final TaskSet set) {
            return change.apply(whole, set);
        }

        @Override
        public AnalysisResult analyse(final PreparedSet set) {
            return analyse(set.taskSet());
        }

        @Override
        public boolean isSchedulable(final PreparedSet set) {
            return analyse(set).schedulable();
        }
    }

    /** The processes that a condition keeps. */
    private static TaskSet keep(final TaskSet set, final String process) {
        return set.withTasks(set.tasks().stream().map(task -> process != null && process.equals(task.process()) ? task
            : task.inProcess(null)).toList());
    }

    private static AnalysisResult forgetProcesses(final Analysis analysis, final TaskSet set) {
        return analysis.analyse(keep(set, null));
    }

    /** Only the task's own process delays it. */
    private static AnalysisResult forgetOthers(final Analysis analysis, final TaskSet set) {
        final AnalysisResult whole = analysis.analyse(set);
        final List<TaskResult> tasks = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            tasks.add(analysis.analyse(keep(set, set.tasks().get(i).process())).tasks().get(i));
        }
        return new AnalysisResult(whole.analysis(), whole.taskSetId(), whole.schedulable(), tasks);
    }

    /** Only other processes delay a task. */
    private static AnalysisResult forgetOwn(final Analysis analysis, final TaskSet set) {
        final AnalysisResult whole = analysis.analyse(set);
        final List<TaskResult> tasks = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            final List<Task> alone = new ArrayList<>(set.tasks());
            alone.set(i, alone.get(i).inProcess(null));
            tasks.add(analysis.analyse(set.withTasks(alone)).tasks().get(i));
        }
        return new AnalysisResult(whole.analysis(), whole.taskSetId(), whole.schedulable(), tasks);
    }

    private static List<Changed> planted() {
        final List<Changed> all = new ArrayList<>();
        for (final String name : List.of("gcaps-window-suspend", "edf-edf-suspend", "edf-fp-suspend")) {
            final Analysis whole = Analyses.get(name);
            all.add(new Changed(whole, SharedProcessSoundnessTest::forgetProcesses));
            all.add(new Changed(whole, SharedProcessSoundnessTest::forgetOwn));
            if (name.startsWith("gcaps")) {
                // by deadlines nearly every process delays every task, so that push-through is hidden by the own one
                all.add(new Changed(whole, SharedProcessSoundnessTest::forgetOthers));
            }
        }
        return all;
    }

    @ParameterizedTest
    @MethodSource("planted")
    void shouldFindABoundThatForgetsAProcess(final Changed changed) {
        final Claim claim = claim(changed, false);
        final Campaign campaign = new Campaign(List.of(claim), SharedProcessSoundnessTest::shared, SEED, 4, 40);
        long exceeded = 0;
        int sets = 0;
        for (; sets < PLANTED && exceeded == 0; sets += 50) {
            exceeded = campaign.run(sets, sets + 50).get("exceeded sets of " + claim.title());
        }
        assertTrue(exceeded > 0, claim.title() + " is not exceeded in " + PLANTED + " sets");
    }
}

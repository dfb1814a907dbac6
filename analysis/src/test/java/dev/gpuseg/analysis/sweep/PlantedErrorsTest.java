/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisDescription;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.PreparedSet;
import dev.gpuseg.analysis.rta.TaskResult;
import dev.gpuseg.analysis.rta.Terms;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A campaign that cannot find a wrong bound proves nothing: each bound without one of its terms must be exceeded within
 * {@link #SETS} sets of {@link #RUNS} runs.
 */
@Timeout(300)
class PlantedErrorsTest {
    private static final int SETS = 400;
    private static final int STEP = 50;
    private static final int RUNS = 4;
    private static final long SEED = 7;

    private static final Map<String, ToLongFunction<Terms>> TERMS = Map.of("own", Terms::ownNs, "jitter",
        Terms::jitterNs, "preemption", Terms::preemptionNs, "interference", Terms::interferenceNs, "overhead",
        Terms::overheadNs, "blocking", Terms::blockingNs);

    /** An analysis that has forgotten a term. */
    private record Without(Analysis whole, String term) implements Analysis {
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
            return weaken(whole.analyse(set));
        }

        @Override
        public AnalysisResult analyse(final PreparedSet set) {
            return weaken(whole.analyse(set));
        }

        private AnalysisResult weaken(final AnalysisResult result) {
            final List<TaskResult> tasks = new ArrayList<>();
            for (final TaskResult task : result.tasks()) {
                tasks.add(task.wcrtNs() == null ? task : new TaskResult(task.name(),
                    task.wcrtNs() - TERMS.get(term).applyAsLong(task.terms()), task.deadlineNs(), task.schedulable(),
                    task.terms()));
            }
            return new AnalysisResult(result.analysis(), result.taskSetId(), result.schedulable(), tasks);
        }

        @Override
        public boolean isSchedulable(final PreparedSet set) {
            return whole.isSchedulable(set);
        }
    }

    static List<Arguments> errors() {
        final List<Arguments> errors = new ArrayList<>();
        for (final Claim claim : Claim.all()) {
            for (final String term : TERMS.keySet().stream().sorted().toList()) {
                if (claim.claimed()) {
                    errors.add(Arguments.of(claim, term));
                }
            }
        }
        return errors;
    }

    @ParameterizedTest
    @MethodSource("errors")
    void shouldFindABoundThatHasForgottenATerm(final Claim claim, final String term) {
        final Campaign campaign = new Campaign(List.of(new Claim(new Without(claim.analysis(), term),
            claim.mechanism(), false)), k -> CampaignSets.mixed(SEED, k), SEED, RUNS);
        long exceeded = 0;
        int sets = 0;
        for (; sets < SETS && exceeded == 0; sets += STEP) {
            exceeded = campaign.run(sets, sets + STEP).get("exceeded sets of " + claim.title());
        }
        assertTrue(exceeded > 0, claim.title() + " without " + term + " is not exceeded in " + SETS + " sets");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * Bounds on reaction time and data age of chains, from the response-time bounds of their tasks.
 *
 * <p>Hypotheses (theorem 9 of {@code analysis/docs/chains.md}):
 * <ul>
 * <li>those of the analysis that bounds the tasks, which must be sound for the scheduler that runs;</li>
 * <li>each job reads its input once, between arrival and end, and writes its output at its end; a read returns what was
 *     written last;</li>
 * <li>arrivals of a task that samples are at most {@code max_period} apart;</li>
 * <li>an event edge releases the successor at the end of the predecessor, at most the jitter of the successor
 *     later.</li>
 * </ul>
 * With M = max_period, and a chain cut at its sampling edges into parts of event edges, R_p = time from the arrival
 * that starts part p to the end of its last job: {@code reaction = sum_p (M_p + R_p)}, {@code age = reaction - M_last}.
 *
 * <p>Source: the sum for sampling edges is that of Davare et al. (DAC 2007), the definitions are those of Feiertag et
 * al. (CRTS 2008) in the form of D&uuml;rr et al. (EMSOFT 2019); the propagation of jitter is that of holistic analysis
 * (Tindell and Clark 1994). Proofs for this model: this project. Stateless and thread-safe.
 */
public final class ChainAnalysis {
    /** Where an absolute deadline follows the release, jitter moves it, and the recurrences do not contain that. */
    private static final Set<Model> EVENT_MODELS = EnumSet.of(Model.TIME_SLICES, Model.DEVICE_PARTS, Model.WINDOWS,
        Model.BOOSTED_WINDOWS, Model.GATED_WINDOWS, Model.LOCK);

    private ChainAnalysis() {
    }

    /**
     * Analyses a set with chains.
     *
     * @param analysis bounds the response times
     * @param set      every real-time task with a core and priorities
     * @return bounds of tasks and chains
     * @throws InvalidModelException if a core or priority is missing, or a sum of times exceeds 2^63 ns
     */
    public static AnalysisResult analyse(final Analysis analysis, final TaskSet set) {
        try {
            if (!refusal(analysis, set.chains()).isEmpty()) {
                return refused(analysis, set);
            }
            final EventJitter bounds = new EventJitter(analysis, set);
            final List<ChainResult> chains = new ArrayList<>();
            boolean schedulable = bounds.schedulable();
            for (final Chain chain : set.chains().all()) {
                final ChainResult result = result(chain, set.chains(), bounds);
                schedulable &= result.schedulable();
                chains.add(result);
            }
            return new AnalysisResult(analysis.name(), set.id(), schedulable, bounds.tasks(), chains,
                bounds.misses());
        } catch (final ArithmeticException e) {
            throw new InvalidModelException("task set \"" + set.id() + "\": a sum of times exceeds 2^63 ns"
                + "; use shorter times or longer periods");
        }
    }

    /**
     * Why an analysis gives no bound for a set with these chains.
     *
     * @param analysis bounds the response times
     * @param chains   of the set
     * @return one line with the remedy, empty if it gives one
     */
    public static String refusal(final Analysis analysis, final Chains chains) {
        return chains.eventPredecessors().isEmpty() || EVENT_MODELS.contains(analysis.description().model()) ? ""
            : "event edges have no proof for " + analysis.name() + "; use fixed priorities without time partitions, or "
            + "write sampling";
    }

    private static AnalysisResult refused(final Analysis analysis, final TaskSet set) {
        final List<TaskResult> tasks = new ArrayList<>();
        set.tasks().forEach(task -> tasks.add(new TaskResult(task.name(), null, task.deadlineNs(), task.bestEffort(),
            null)));
        final List<ChainResult> chains = new ArrayList<>();
        set.chains().all().forEach(chain -> chains.add(none(chain, refusal(analysis, set.chains()))));
        return new AnalysisResult(analysis.name(), set.id(), false, tasks, chains);
    }

    private static ChainResult none(final Chain chain, final String problem) {
        return new ChainResult(chain.name(), new ChainResult.Latency(null, chain.reactionNs()),
            new ChainResult.Latency(null, chain.ageNs()), List.of(), problem);
    }

    private static ChainResult result(final Chain chain, final Chains chains, final EventJitter bounds) {
        final List<ChainResult.Step> steps = new ArrayList<>();
        int lastSample = 0;
        for (int k = 1; k < chain.tasks().size(); k++) {
            lastSample = chain.edges().get(k - 1) == Chain.Edge.SAMPLING ? k : lastSample;
        }
        long reactionNs = 0;
        long ageNs = 0;
        long before = 0;
        for (int k = 0; k < chain.tasks().size(); k++) {
            final String task = chain.tasks().get(k);
            final Long fromRootNs = bounds.fromRootNs(task);
            if (fromRootNs == null) {
                return none(chain, bounds.reason(task));
            }
            final boolean samples = k == 0 || chain.edges().get(k - 1) == Chain.Edge.SAMPLING;
            final long waitNs = samples ? chains.maxPeriodNs().get(chains.rootOf(task)) : 0;
            final long responseNs = samples ? fromRootNs : fromRootNs - before;
            before = fromRootNs;
            final ChainResult.Step step = new ChainResult.Step(task, k == 0 ? "input"
                : chain.edges().get(k - 1).word(), waitNs, responseNs, k != lastSample);
            steps.add(step);
            reactionNs = Math.addExact(reactionNs, step.totalNs());
            ageNs = Math.addExact(ageNs, step.inAge() ? step.totalNs() : responseNs);
        }
        return new ChainResult(chain.name(), new ChainResult.Latency(reactionNs, chain.reactionNs()),
            new ChainResult.Latency(ageNs, chain.ageNs()), steps, "");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.ChainResult;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The chains of a task-set file as far as their tasks are open. The limits of a chain count when its last task opens.
 * Before that its event edges count: they make releases irregular, which delays others.
 */
final class DeclaredChains {
    private DeclaredChains() {
    }

    /**
     * The chains of those tasks of a file that are part of the analysed set.
     *
     * @param declared the file; null if there is none
     * @param placed   tasks of it that are analysed
     * @return whole chains with their limits, and of the others the event edges
     */
    static Chains of(final TaskSet declared, final List<Task> placed) {
        if (declared == null) {
            return Chains.NONE;
        }
        final Set<String> present = new HashSet<>();
        placed.forEach(task -> present.add(task.name()));
        final List<Chain> chains = new ArrayList<>();
        for (final Chain chain : declared.chains().all()) {
            if (present.containsAll(chain.tasks())) {
                chains.add(chain);
            } else {
                addEventEdges(chain, present, chains);
            }
        }
        final Set<String> released = new Chains(chains, Map.of()).eventPredecessors().keySet();
        final Map<String, Long> maxPeriods = new HashMap<>();
        for (final String name : present) {
            final Long longest = declared.chains().maxPeriodNs().get(declared.chains().rootOf(name));
            if (longest != null && !released.contains(name)) {
                maxPeriods.put(name, longest);
            }
        }
        return new Chains(chains, maxPeriods);
    }

    private static void addEventEdges(final Chain chain, final Set<String> present, final List<Chain> out) {
        for (int k = 0; k < chain.edges().size(); k++) {
            final List<String> both = chain.tasks().subList(k, k + 2);
            if (chain.edges().get(k) == Chain.Edge.EVENT && present.containsAll(both)) {
                out.add(new Chain(chain.name() + " " + both.get(0) + " to " + both.get(1), both,
                    List.of(Chain.Edge.EVENT), 0, 0));
            }
        }
    }

    /**
     * Why a chain fails, if one does.
     *
     * @param prospect one that is not proven
     * @param newcomer name of the task that asks; null if none does
     * @return one line, or null if every chain keeps its limits
     */
    static String refusal(final Prospect prospect, final String newcomer) {
        for (final ChainResult chain : prospect.result().chains()) {
            if (!chain.schedulable()) {
                final ChainResult.Latency wrong = chain.reaction().holds() ? chain.age() : chain.reaction();
                return (newcomer == null ? "" : "task \"" + newcomer + "\": with it ") + "chain \"" + chain.name()
                    + "\" can miss: " + (chain.reaction().holds() ? "age " : "reaction ")
                    + (wrong.boundNs() == null ? "has no bound, " + chain.problem() : "bound "
                    + Durations.format(wrong.boundNs()) + ", limit " + Durations.format(wrong.deadlineNs()) + " ("
                    + prospect.analysis().name() + "); most comes from task \"" + chain.dominant().task()
                    + "\", which waits up to " + Durations.format(chain.dominant().waitNs())
                    + " for its sample and adds a response of " + Durations.format(chain.dominant().responseNs()));
            }
        }
        return null;
    }
}

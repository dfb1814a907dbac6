/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Reaction time and data age of the chains of a task set, as a trace shows them: from the stamps that the jobs of the
 * first and of the last task gave with their release ({@code gpuseg_job_release_stamped}).
 *
 * <p>A job of the last task that ends at e with the stamp s shows the age e - s. If the output before had an earlier
 * stamp s', an event just after s' has waited until e: its reaction time is e - s'. The first output after the start of
 * a daemon shows no reaction time, because outputs before it may be missing. Stateless.
 */
final class TraceChains {
    /**
     * An output of a chain.
     *
     * @param job        of the last task, complete
     * @param ageNs      of its sample
     * @param reactionNs of an event just after the sample of the output before; -1 if the sample is no newer, or there
     *                   is no output before since the daemon started
     */
    record Output(Trace.Job job, long ageNs, long reactionNs) {
    }

    /**
     * What was seen of one chain.
     *
     * @param chain   the chain
     * @param outputs in order of their ends
     * @param problem why there are none, or why they may be of another chain; empty if all is well
     */
    record Seen(Chain chain, List<Output> outputs, String problem) {
        long maxAgeNs() {
            return outputs.stream().mapToLong(Output::ageNs).max().orElse(0);
        }

        long maxReactionNs() {
            return Math.max(0, outputs.stream().mapToLong(Output::reactionNs).max().orElse(0));
        }
    }

    private TraceChains() {
    }

    static List<Seen> of(final Trace trace, final TaskSet set) {
        final List<Seen> all = new ArrayList<>();
        for (final Chain chain : set.chains().all()) {
            all.add(of(trace, chain));
        }
        return all;
    }

    private static Seen of(final Trace trace, final Chain chain) {
        final String head = chain.tasks().get(0);
        final String last = chain.tasks().get(chain.tasks().size() - 1);
        final Trace.Task first = taskOf(trace, head);
        final Trace.Task output = taskOf(trace, last);
        if (output == null || output.jobs.stream().noneMatch(job -> job.stampNs != 0)) {
            return new Seen(chain, List.of(), "task \"" + last + "\" gave no stamps; call gpuseg_job_release_stamped "
                + "in each task of the chain");
        }
        // a task may end several chains: those of this one begin with a sample of its first task
        final Set<Long> samples = new HashSet<>();
        if (first != null) {
            first.jobs.forEach(job -> samples.add(job.stampNs));
        }
        final List<Trace.Job> jobs = new ArrayList<>();
        for (final Trace.Job job : output.jobs) {
            if (job.isComplete() && job.stampNs != 0 && Trace.isEnforced(job.policy)
                && (first == null || samples.contains(job.stampNs))) {
                jobs.add(job);
            }
        }
        jobs.sort(Comparator.comparingLong(job -> job.endNs));
        final List<Output> outputs = new ArrayList<>();
        long beforeNs = 0;
        int run = -1;
        for (final Trace.Job job : jobs) {
            if (job.run != run) {
                beforeNs = 0;   // outputs that ended while no daemon ran are not in the trace
                run = job.run;
            }
            outputs.add(new Output(job, job.endNs - job.stampNs, beforeNs != 0 && job.stampNs > beforeNs
                ? job.endNs - beforeNs : -1));
            beforeNs = job.stampNs;
        }
        if (outputs.isEmpty()) {
            return new Seen(chain, outputs, "no job of task \"" + last + "\" ended with a stamp of task \"" + head
                + "\" while decisions were enforced");
        }
        return new Seen(chain, outputs, first != null ? "" : "task \"" + head + "\" is not in the trace, so every "
            + "stamp of task \"" + last + "\" is taken for one of its samples");
    }

    private static Trace.Task taskOf(final Trace trace, final String name) {
        return trace.tasks.stream().filter(task -> task.name.equals(name)).findFirst().orElse(null);
    }
}

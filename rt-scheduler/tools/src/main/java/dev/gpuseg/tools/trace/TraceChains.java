/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Reaction time and data age of the chains of a task set, as a trace shows them: from the stamps that the jobs of the
 * first and of the last task gave with their release ({@code gpuseg_job_release_stamped}).
 *
 * <p>A job of the last task that ends at e and works on a sample of s shows the age e - s. If the output before had an
 * earlier sample s', an event just after s' has waited until e: its reaction time is e - s'. The first output after the
 * start of a daemon, or after one whose sample is not known, shows no reaction time, because outputs before it may be
 * missing.
 *
 * <p><b>Which sample an output has.</b> Where both tasks say which one it is ({@code gpuseg_job_release_sample}), that
 * one. Otherwise the one of the first task with an equal stamp. Programs that convert the stamp of a message to
 * CLOCK_MONOTONIC themselves differ by nanoseconds, sometimes by 0.1 ms: without an equal one, the nearest sample
 * counts, if it is less than half a period of the first task away and no later than the end of the output. Its time is
 * the one that the first task gave. A task may end several chains, so the first tasks of the others are asked, too.
 * Stateless.
 */
final class TraceChains {
    /**
     * An output of a chain.
     *
     * @param job        of the last task, complete
     * @param ageNs      of its sample
     * @param reactionNs of an event just after the sample of the output before; -1 if the sample is no newer, or it is
     *                   not known which sample that was
     */
    record Output(Trace.Job job, long ageNs, long reactionNs) {
    }

    /**
     * What was seen of one chain.
     *
     * @param chain     the chain
     * @param outputs   in order of their ends
     * @param unmatched outputs beside these that carry a stamp to which no sample belongs
     * @param problem   why there are none, why some are left out, or why they may be of another chain; empty if all is
     *                  well
     */
    record Seen(Chain chain, List<Output> outputs, int unmatched, String problem) {
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
            all.add(of(trace, set, chain));
        }
        return all;
    }

    private static Seen of(final Trace trace, final TaskSet set, final Chain chain) {
        final String head = chain.tasks().get(0);
        final String last = lastOf(chain);
        final Trace.Task output = taskOf(trace, last);
        if (output == null || output.jobs.stream().noneMatch(TraceChains::isStamped)) {
            return new Seen(chain, List.of(), 0, "task \"" + last + "\" gave no stamps; call "
                + "gpuseg_job_release_stamped in each task of the chain");
        }
        final List<Trace.Job> jobs = new ArrayList<>();
        for (final Trace.Job job : output.jobs) {
            if (job.isComplete() && isStamped(job) && Trace.isEnforced(job.policy)) {
                jobs.add(job);
            }
        }
        jobs.sort(Comparator.comparingLong(job -> job.endNs));
        final boolean known = taskOf(trace, head) != null;
        final Origin origin = known ? new Origin(trace, set, chain, jobs) : null;
        final List<Output> outputs = new ArrayList<>();
        int unmatched = 0;
        long beforeNs = 0;
        int run = -1;
        for (final Trace.Job job : jobs) {
            final long sampleNs = known ? origin.sampleOf(job) : job.stampNs;
            if (sampleNs == Origin.OTHER) {
                continue;
            }
            if (job.run != run) {
                beforeNs = 0;   // outputs that ended while no daemon ran are not in the trace
                run = job.run;
            }
            if (sampleNs == Origin.NONE) {
                unmatched++;
                beforeNs = 0;
                continue;
            }
            outputs.add(new Output(job, job.endNs - sampleNs, beforeNs != 0 && sampleNs > beforeNs
                ? job.endNs - beforeNs : -1));
            beforeNs = sampleNs;
        }
        return new Seen(chain, outputs, unmatched, problem(head, last, outputs.size(), unmatched, origin));
    }

    private static boolean isStamped(final Trace.Job job) {
        return job.stampNs != 0 || job.sample != 0;
    }

    private static String problem(final String head, final String last, final int matched, final int unmatched,
        final Origin origin) {
        final List<String> problems = new ArrayList<>();
        if (matched == 0 && unmatched == 0) {
            problems.add("no job of task \"" + last + "\" ended with a stamp of task \"" + head
                + "\" while decisions were enforced");
        } else if (origin == null) {
            problems.add("task \"" + head + "\" is not in the trace, so every stamp of task \"" + last
                + "\" is taken for one of its samples");
        }
        if (unmatched > 0) {
            problems.add(unmatched + " of " + (matched + unmatched) + " outputs match no sample of task \"" + head
                + "\"");
        }
        if (origin != null) {
            for (final Rival rival : origin.rivals) {
                if (!rival.isHead && rival.taken > 0) {
                    problems.add(rival.taken + " outputs carry stamps of task \"" + rival.samples.name
                        + "\", which is not in the chain, and are left out");
                }
            }
        }
        return String.join("; ", problems);
    }

    private static String lastOf(final Chain chain) {
        return chain.tasks().get(chain.tasks().size() - 1);
    }

    private static Trace.Task taskOf(final Trace trace, final String name) {
        return trace.tasks.stream().filter(task -> task.name.equals(name)).findFirst().orElse(null);
    }

    /** The samples on which the jobs of a task work. */
    private static final class Samples {
        final String name;
        private final TreeSet<Long> stamps = new TreeSet<>();
        /** By what a message says of itself; a recording that is played again says the same again. */
        private final Map<Long, TreeSet<Long>> stampsOf = new HashMap<>();
        /** Two stamps of one sample are less than half of it apart. */
        private final long periodNs;

        /** The period is what the program said, or else what the task set says. */
        Samples(final Trace.Task task, final TaskSet set) {
            name = task.name;
            for (final Trace.Job job : task.jobs) {
                if (job.stampNs != 0) {
                    stamps.add(job.stampNs);
                    if (job.sample != 0) {
                        stampsOf.computeIfAbsent(job.sample, sample -> new TreeSet<>()).add(job.stampNs);
                    }
                }
            }
            periodNs = task.periodNs > 0 ? task.periodNs : set.tasks().stream()
                .filter(model -> model.name().equals(name)).mapToLong(model -> model.periodNs()).findFirst().orElse(0);
        }

        /** Whether job and task both say which samples they have; then times do not count. */
        private boolean areNamed(final Trace.Job job) {
            return job.sample != 0 && !stampsOf.isEmpty();
        }

        /** Whether the task says that it works on the sample of that job: the same one, or an equal stamp. */
        boolean contain(final Trace.Job job) {
            return areNamed(job) ? stampsOf.containsKey(job.sample) : stamps.contains(job.stampNs);
        }

        /** Time of the sample on which a job works, {@link Origin#NONE} if it is none of these. */
        long sampleOf(final Trace.Job job) {
            if (areNamed(job)) {
                return nearest(stampsOf.getOrDefault(job.sample, new TreeSet<>()), job);
            }
            final long sampleNs = nearest(stamps, job);
            return sampleNs == job.stampNs || Math.abs(sampleNs - job.stampNs) < periodNs - periodNs / 2 ? sampleNs
                : Origin.NONE;
        }

        /** How far a job's stamp is from that of its sample; 0 if they are certainly the same. */
        long distanceNs(final Trace.Job job) {
            final long sampleNs = sampleOf(job);
            return sampleNs == Origin.NONE ? Long.MAX_VALUE : areNamed(job) ? 0 : Math.abs(sampleNs - job.stampNs);
        }

        /** The equal one, or the nearest one before the end of the job; of two equally near ones the older. */
        private static long nearest(final TreeSet<Long> times, final Trace.Job job) {
            if (times.contains(job.stampNs)) {
                return job.stampNs;
            }
            final long stampNs = job.stampNs != 0 ? job.stampNs : job.endNs;
            final Long older = times.floor(Math.min(stampNs, job.endNs));
            final Long newer = times.higher(stampNs);
            if (newer != null && newer <= job.endNs && (older == null || newer - stampNs < stampNs - older)) {
                return newer;
            }
            return older == null ? Origin.NONE : older;
        }
    }

    /** A task outside a chain whose samples its last task may work on, too. */
    private static final class Rival {
        final Samples samples;
        /** It is the first task of another chain that ends with the same task. */
        final boolean isHead;
        /** The last task passes on its stamps unchanged. */
        boolean isPassedOn;
        /** Outputs that are its own. */
        int taken;

        Rival(final Samples samples, final boolean isHead) {
            this.samples = samples;
            this.isHead = isHead;
        }
    }

    /** Where the stamps of the last task of one chain come from. */
    private static final class Origin {
        /** No sample is near. */
        static final long NONE = 0;
        /** The sample is another chain's. */
        static final long OTHER = -1;
        /** Stamps of one sample that were converted apart differ by less, unless a program was held up in between. */
        private static final long NEAR_NS = 1_000_000;
        /** Stamps that are converted apart are equal by chance in a few of a hundred; if they are passed on, in all. */
        private static final int SHARE = 4;

        final List<Rival> rivals = new ArrayList<>();
        private final Samples own;

        Origin(final Trace trace, final TaskSet set, final Chain chain, final List<Trace.Job> outputs) {
            final String head = chain.tasks().get(0);
            final Set<String> family = new HashSet<>();   // what hands on samples of the first task, or gives it them
            final Set<String> heads = new HashSet<>();
            for (final Chain other : set.chains().all()) {
                if (other.tasks().contains(head)) {
                    family.addAll(other.tasks());
                }
                if (lastOf(other).equals(lastOf(chain))) {
                    heads.add(other.tasks().get(0));
                }
            }
            own = new Samples(taskOf(trace, head), set);
            for (final Trace.Task task : trace.tasks) {
                if (!family.contains(task.name)) {
                    final Rival rival = new Rival(new Samples(task, set), heads.contains(task.name));
                    final long equal = outputs.stream().filter(job -> isPassedOn(job, rival)).count();
                    rival.isPassedOn = equal > 0 && SHARE * equal >= outputs.size();
                    if (rival.isPassedOn || rival.isHead) {
                        rivals.add(rival);
                    }
                }
            }
        }

        private boolean isPassedOn(final Trace.Job job, final Rival rival) {
            return rival.samples.contain(job) && !own.contain(job)
                && (rival.isHead || own.distanceNs(job) > NEAR_NS);
        }

        /** Time of the sample on which an output works, {@link #NONE} or {@link #OTHER}. */
        long sampleOf(final Trace.Job job) {
            final long distanceNs = own.distanceNs(job);
            if (distanceNs == 0) {
                return own.sampleOf(job);
            }
            for (final Rival rival : rivals) {
                if (rival.isPassedOn ? rival.samples.contain(job)
                    : distanceNs > NEAR_NS && rival.samples.distanceNs(job) < distanceNs) {
                    rival.taken++;
                    return OTHER;
                }
            }
            return own.sampleOf(job);
        }
    }
}

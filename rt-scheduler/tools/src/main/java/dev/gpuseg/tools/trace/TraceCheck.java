/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.ChainResult;
import dev.gpuseg.analysis.rta.MissBound;
import dev.gpuseg.analysis.rta.TaskResult;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.SegmentView;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Holds a trace against a task set: did what was assumed come true, and what was promised?
 *
 * <ul>
 *   <li>{@code lost}: sequence numbers are missing, so nothing below is complete;</li>
 *   <li>{@code period}: two releases were closer than the period less the jitter;</li>
 *   <li>{@code max-period}: two releases were further apart than max_period and the jitter, so the bounds of its
 *       chains and misses did not hold;</li>
 *   <li>{@code segments}: a job had more GPU segments than the set says;</li>
 *   <li>{@code wcet}: a device part (as the client reported it), a whole window (from going on to its end, without the
 *       time in which it was preempted, allowing one epsilon for its start and each preemption), or a CPU part (only of
 *       tasks that the set gives a core of their own: elsewhere it cannot be told from interference);</li>
 *   <li>{@code deadline}: a job was late, of a task that may not miss a deadline;</li>
 *   <li>{@code weakly-hard}: more of so many consecutive jobs were late than the set allows;</li>
 *   <li>{@code miss-bound}: more were late than the analysis says is possible;</li>
 *   <li>{@code overload}: two jobs with more than typical device parts were closer than the set says;</li>
 *   <li>{@code bound}: a job took longer than the analysis says is possible;</li>
 *   <li>{@code enforcement}: from the decision until all others were off took longer than epsilon;</li>
 *   <li>{@code inversion}: a segment had the GPU for longer than epsilon while a better one of another context waited
 *       or was preempted;</li>
 *   <li>{@code chain-deadline}: an output of a chain was older, or its reaction slower, than the limit of the set;</li>
 *   <li>{@code chain-bound}: it was older or slower than the analysis says is possible;</li>
 *   <li>{@code unknown-task}: a real-time task that the set does not have.</li>
 * </ul>
 *
 * Everything but loss is judged only where decisions were enforced: what ran under round robin is left out. Measured
 * times are held to limit + tolerance. Stateless.
 */
public final class TraceCheck {
    /**
     * A rule that was broken.
     *
     * @param kind       one of the words above
     * @param task       its name, empty if none
     * @param job        number of the job of that task, from 1; 0 if none
     * @param timeNs     when
     * @param measuredNs what was seen; for {@code lost}, {@code segments},
     *                   {@code weakly-hard} and {@code miss-bound} a count
     * @param limitNs    what was allowed, without the tolerance
     * @param text       one line
     */
    public record Finding(String kind, String task, int job, long timeNs, long measuredNs, long limitNs,
        String text) {
    }

    /**
     * What was found.
     *
     * @param findings what was broken, in order of time within each kind
     * @param judged   jobs that were judged
     * @param leftOut  complete jobs that were released while nothing was enforced
     * @param notes    what could not be judged
     * @param chains   what was seen of the chains of the set, in its order
     * @param misses   what was seen of the tasks that may miss deadlines, in its order
     * @param tasks    what was seen of the tasks of the set, in its order
     */
    public record Result(List<Finding> findings, int judged, int leftOut, List<String> notes,
        List<ChainRow> chains, List<MissRow> misses, List<TaskRow> tasks) {
    }

    /**
     * What was seen of one task.
     *
     * @param task       its name
     * @param jobs       jobs that were judged
     * @param late       of these, later than the deadline of the set; 0 for best effort
     * @param longestNs  longest response time, 0 if no job was judged
     * @param deadlineNs of the set; 0 for best effort
     * @param boundNs    bound of the response time; null if there is none, or none was asked for
     */
    public record TaskRow(String task, int jobs, int late, long longestNs, long deadlineNs, Long boundNs) {
    }

    /**
     * What was seen of one task that may miss deadlines.
     *
     * @param task  its name
     * @param late  late jobs in all
     * @param most  of any {@code jobs} consecutive ones at most so many were late
     * @param jobs  of the limit
     * @param limit so many may be late
     * @param bound so many can be late; null if there is no bound, or none was asked for
     */
    public record MissRow(String task, int late, int most, int jobs, int limit, Long bound) {
    }

    /**
     * What was seen of one chain. Times in nanoseconds.
     *
     * @param name            of the chain
     * @param outputs         jobs of its last task that ended and work on a sample of its first one
     * @param unmatched       jobs of its last task that ended with a stamp to which no sample belongs
     * @param maxReactionNs   longest reaction time, 0 if none was seen
     * @param reactionBoundNs its bound; null if there is none, or none was asked for
     * @param reactionLimitNs its limit, 0 = none
     * @param maxAgeNs        largest data age, 0 if none was seen
     * @param ageBoundNs      its bound; null if there is none, or none was asked for
     * @param ageLimitNs      its limit, 0 = none
     */
    public record ChainRow(String name, int outputs, int unmatched, long maxReactionNs, Long reactionBoundNs,
        long reactionLimitNs, long maxAgeNs, Long ageBoundNs, long ageLimitNs) {
    }

    private final Trace trace;
    private final TaskSet set;
    private final AnalysisResult bounds;
    private final long toleranceNs;
    private final List<Finding> findings = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();
    private final List<ChainRow> chains = new ArrayList<>();
    private final List<MissRow> misses = new ArrayList<>();
    private final List<TaskRow> rows = new ArrayList<>();
    private int judged;
    private int leftOut;

    private TraceCheck(final Trace trace, final TaskSet set, final AnalysisResult bounds, final long toleranceNs) {
        this.trace = trace;
        this.set = set;
        this.bounds = bounds;
        this.toleranceNs = toleranceNs;
    }

    /**
     * Judges.
     *
     * @param trace       what happened
     * @param set         what was assumed
     * @param bounds      what was promised, or null
     * @param toleranceNs allowed on top of every limit for a measured time, ns
     * @return the result
     */
    public static Result of(final Trace trace, final TaskSet set, final AnalysisResult bounds,
        final long toleranceNs) {
        final TraceCheck check = new TraceCheck(trace, set.slowed(), bounds, toleranceNs);
        check.lost();
        check.tasks();
        check.inversions();
        check.chains();
        return new Result(check.findings, check.judged, check.leftOut, check.notes, check.chains,
            check.misses, check.rows);
    }

    // ---- chains ----------------------------------------------------------------------------------------------------

    private void chains() {
        final List<TraceChains.Seen> all = TraceChains.of(trace, set);
        for (int c = 0; c < all.size(); c++) {
            final TraceChains.Seen seen = all.get(c);
            final ChainResult bound = bounds == null ? null : bounds.chains().get(c);
            final Long reactionBoundNs = bound == null ? null : bound.reaction().boundNs();
            final Long ageBoundNs = bound == null ? null : bound.age().boundNs();
            if (!seen.problem().isEmpty()) {
                notes.add("chain \"" + seen.chain().name() + "\": " + seen.problem());
            }
            if (bound != null && !bound.problem().isEmpty()) {
                notes.add("chain \"" + seen.chain().name() + "\": no bound: " + bound.problem());
            }
            for (final TraceChains.Output output : seen.outputs()) {
                output(seen.chain(), output.job(), "reaction", output.reactionNs(), seen.chain().reactionNs(),
                    reactionBoundNs);
                output(seen.chain(), output.job(), "age", output.ageNs(), seen.chain().ageNs(), ageBoundNs);
            }
            chains.add(new ChainRow(seen.chain().name(), seen.outputs().size(), seen.unmatched(),
                seen.maxReactionNs(), reactionBoundNs, seen.chain().reactionNs(), seen.maxAgeNs(), ageBoundNs,
                seen.chain().ageNs()));
        }
    }

    private void output(final Chain chain, final Trace.Job job, final String what, final long measuredNs,
        final long limitNs, final Long boundNs) {
        if (limitNs > 0 && measuredNs > limitNs) {
            add("chain-deadline", job, job.endNs, measuredNs, limitNs, "ended chain \"" + chain.name() + "\" with "
                + what + " " + ms(measuredNs) + ", limit " + ms(limitNs));
        }
        if (boundNs != null && measuredNs > boundNs + toleranceNs) {
            add("chain-bound", job, job.endNs, measuredNs, boundNs, "ended chain \"" + chain.name() + "\" with "
                + what + " " + ms(measuredNs) + ", more than the bound " + ms(boundNs) + " of "
                + bounds.analysis());
        }
    }

    private void lost() {
        for (final Trace.Gap gap : trace.gaps) {
            findings.add(new Finding("lost", "", 0, gap.timeNs(), gap.count(), 0, gap.count()
                + " event(s) missing between numbers " + gap.afterSeq() + " and " + gap.beforeSeq()));
        }
    }

    private void tasks() {
        final Map<String, Trace.Task> seen = new LinkedHashMap<>();
        for (final Trace.Task task : trace.tasks) {
            seen.put(task.name, task);
        }
        final Map<Integer, Integer> tasksOfCore = new HashMap<>();
        for (final Task task : set.tasks()) {
            tasksOfCore.merge(task.cpu(), 1, Integer::sum);
        }
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task model = set.tasks().get(i);
            final Trace.Task task = seen.remove(model.name());
            if (task == null) {
                notes.add("task \"" + model.name() + "\" is in the set and not in the trace");
                continue;
            }
            final boolean ownCore = model.cpu() > 0 && tasksOfCore.get(model.cpu()) == 1;
            if (!ownCore) {
                notes.add("task \"" + model.name() + "\": CPU parts are not judged, it shares its core");
            }
            final TaskResult bound = bounds == null ? null : bounds.tasks().get(i);
            if (bound != null && bound.wcrtNs() == null && !model.bestEffort()) {
                notes.add("task \"" + model.name() + "\": " + bounds.analysis() + " has no bound for it");
            }
            final long skipped = task.jobs.stream().filter(j -> Trace.isEnforced(j.policy) && j.isSkipped()).count();
            if (skipped > 0) {
                notes.add("task \"" + model.name() + "\": its program skipped " + skipped + " of the jobs that it had "
                    + "released; they " + (model.missLimit() == null ? "have no response time" : "count as late"));
            }
            task(model, task, bound == null ? null : bound.wcrtNs(), ownCore);
            if (model.missLimit() != null) {
                misses(model, task);
            }
            if (model.overload() != null) {
                overload(model, task);
            }
        }
        for (final Trace.Task task : seen.values()) {
            if (task.isRealTime() && task.jobs.stream().anyMatch(j -> Trace.isEnforced(j.policy))) {
                findings.add(new Finding("unknown-task", task.name, 0, trace.firstNs, 0, 0, "task \"" + task.name
                    + "\" of priority " + task.priority + " ran and is not in the set; no bound covers it"));
            } else if (!task.isRealTime()) {
                notes.add("best-effort task \"" + task.name + "\" is not in the set");
            }
        }
    }

    private void task(final Task model, final Trace.Task task, final Long wcrtNs, final boolean ownCore) {
        // what the end of another job releases has no distance of its own
        final boolean released = set.chains().eventPredecessors().containsKey(model.name());
        Trace.Job before = null;
        int jobs = 0;
        int late = 0;
        long longestNs = 0;
        for (final Trace.Job job : task.jobs) {
            if (!Trace.isEnforced(job.policy)) {
                leftOut += job.isComplete() ? 1 : 0;
                before = null;
                continue;
            }
            // between two runs of the daemon jobs may be missing
            if (before != null && before.run == job.run && !model.bestEffort() && !released) {
                distance(model, job, job.releaseNs - before.releaseNs);
            }
            before = job;
            if (!job.isComplete()) {
                continue;
            }
            jobs++;
            longestNs = Math.max(longestNs, job.responseNs);
            parts(model, job, ownCore);
            if (model.bestEffort()) {
                continue;
            }
            late += job.responseNs > model.deadlineNs() ? 1 : 0;
            if (model.missLimit() == null && job.responseNs > model.deadlineNs()) {
                add("deadline", job, job.endNs, job.responseNs, model.deadlineNs(), "took " + ms(job.responseNs)
                    + ", deadline " + ms(model.deadlineNs()));
            }
            if (wcrtNs != null && job.responseNs > wcrtNs + toleranceNs) {
                add("bound", job, job.endNs, job.responseNs, wcrtNs, "took " + ms(job.responseNs) + ", more than the "
                    + "bound " + ms(wcrtNs) + " of " + bounds.analysis());
            }
        }
        judged += jobs;
        rows.add(new TaskRow(model.name(), jobs, late, longestNs, model.bestEffort() ? 0 : model.deadlineNs(),
            model.bestEffort() ? null : wcrtNs));
    }

    private void misses(final Task model, final Trace.Task task) {
        final int limit = model.missLimit().misses();
        final int jobs = model.missLimit().jobs();
        final MissBound bound = bounds == null ? null : bounds.misses().stream()
            .filter(b -> b.task().equals(model.name())).findFirst().orElse(null);
        final Long most = bound == null ? null : bound.bound();
        final List<TraceMisses.Late> late = TraceMisses.late(model, task, trace.lastNs);
        for (final TraceMisses.Late one : late) {
            final String text = "is the " + one.late() + ". late one of " + jobs + " in a row; ";
            if (one.late() > limit) {
                add("weakly-hard", one.job(), one.job().endNs, one.late(), limit, text + "the set allows " + limit);
            }
            if (most != null && one.late() > most) {
                add("miss-bound", one.job(), one.job().endNs, one.late(), most, text + bounds.analysis() + " says "
                    + most + " at most");
            }
        }
        misses.add(new MissRow(model.name(), late.size(), late.stream().mapToInt(TraceMisses.Late::late).max()
            .orElse(0), jobs, limit, most));
    }

    private void overload(final Task model, final Trace.Task task) {
        for (final TraceMisses.Early early : TraceMisses.early(model, task)) {
            if (early.distanceNs() + toleranceNs < model.overload().periodNs() - model.jitterNs()) {
                add("overload", early.job(), early.job().releaseNs, early.distanceNs(), model.overload().periodNs(),
                    "has a device part above the typical one " + ms(early.distanceNs()) + " after another such job; "
                    + "the set says " + ms(model.overload().periodNs()) + " at least");
            }
        }
    }

    private void distance(final Task model, final Trace.Job job, final long distanceNs) {
        final long leastNs = model.periodNs() - model.jitterNs();
        if (distanceNs + toleranceNs < leastNs) {
            add("period", job, job.releaseNs, distanceNs, leastNs, "released " + ms(distanceNs)
                + " after the job before; the set says " + ms(leastNs) + " at least");
        }
        final Long maxPeriodNs = set.chains().maxPeriodNs().get(model.name());
        if (maxPeriodNs != null && distanceNs > maxPeriodNs + model.jitterNs() + toleranceNs) {
            add("max-period", job, job.releaseNs, distanceNs, maxPeriodNs + model.jitterNs(), "released "
                + ms(distanceNs) + " after the job before; the set says " + ms(maxPeriodNs + model.jitterNs())
                + " at most");
        }
    }

    private void parts(final Task model, final Trace.Job job, final boolean ownCore) {
        final int windows = model.gpuSegmentCount();
        if (job.segments.size() > windows) {
            add("segments", job, job.releaseNs, job.segments.size(), windows, "has " + job.segments.size()
                + " GPU segments, the set says " + windows);
        }
        if (job.segments.size() != windows) {
            return;
        }
        final long epsilonNs = epsilonNs(model.gpu());
        long fromNs = job.releaseNs;
        long cpuNs = 0;
        int at = 0;
        for (final Segment part : model.segments()) {
            if (part instanceof Segment.Cpu cpu) {
                cpuNs += cpu.durationNs();
                continue;
            }
            final Trace.Segment seen = job.segments.get(at++);
            cpuPart(model, job, ownCore && job.marked, fromNs, seen.beginNs, cpuNs);
            if (seen.isComplete()) {
                window((Segment.Gpu) part, job, seen, at, epsilonNs, model.bestEffort());
            }
            fromNs = seen.endNs;
            cpuNs = 0;
        }
        cpuPart(model, job, ownCore && job.marked, fromNs, job.endNs, cpuNs);
    }

    private void cpuPart(final Task model, final Trace.Job job, final boolean judge, final long fromNs,
        final long toNs, final long limitNs) {
        if (judge && !model.bestEffort() && toNs - fromNs > limitNs + toleranceNs) {
            add("wcet", job, toNs, toNs - fromNs, limitNs, "CPU part took " + ms(toNs - fromNs) + ", the set says "
                + ms(limitNs));
        }
    }

    private void window(final Segment.Gpu part, final Trace.Job job, final Trace.Segment seen, final int number,
        final long epsilonNs, final boolean bestEffort) {
        if (seen.deviceNs > part.deviceNs()) {
            add("wcet", job, seen.endNs, seen.deviceNs, part.deviceNs(), "device part of segment " + number + " took "
                + ms(seen.deviceNs) + ", the set says " + ms(part.deviceNs()));
        }
        final long limitNs = part.spanNs() + (1 + seen.preemptions.size()) * epsilonNs;
        if (!bestEffort && seen.heldNs() > limitNs + toleranceNs) {   // best-effort windows contain others' work
            add("wcet", job, seen.endNs, seen.heldNs(), limitNs, "window " + number + " had the GPU for "
                + ms(seen.heldNs()) + ", the set says " + ms(part.spanNs()) + " and " + (1 + seen.preemptions.size())
                + " epsilon");
        }
        if (!bestEffort && seen.enforcedNs != 0 && seen.decidedNs != 0 && seen.preemptions.isEmpty()
            && seen.enforcedNs - seen.decidedNs > epsilonNs + toleranceNs) {
            add("enforcement", job, seen.enforcedNs, seen.enforcedNs - seen.decidedNs, epsilonNs, "segment " + number
                + " had the GPU to itself " + ms(seen.enforcedNs - seen.decidedNs) + " after the decision, epsilon is "
                + ms(epsilonNs));
        }
    }

    private long epsilonNs(final int gpu) {
        return gpu < set.platform().gpus().size() ? set.platform().gpus().get(gpu).epsilonNs() : 0;
    }

    // ---- priority inversion ----------------------------------------------------------------------------------------

    private void inversions() {
        final List<Trace.Segment> all = new ArrayList<>();
        for (final Trace.Task task : trace.tasks) {
            for (final Trace.Segment segment : task.segments) {
                if (Trace.isEnforced(segment.policy)) {
                    all.add(segment);
                }
            }
        }
        all.sort((a, b) -> Long.compare(a.receivedNs, b.receivedNs));
        long longestNs = 0;
        for (final Trace.Segment segment : all) {
            longestNs = Math.max(longestNs,
                (segment.endNs == 0 ? trace.lastNs : Math.max(segment.endNs, segment.receivedNs)) - segment.receivedNs);
        }
        boolean unknownOrder = false;
        int first = 0;
        for (final Trace.Segment high : all) {
            while (all.get(first).receivedNs < high.receivedNs - longestNs) {
                first++;   // over before this one began
            }
            if (judge(high.policy).isEmpty()) {
                unknownOrder = true;
            } else if (high.task.rankAt(high.receivedNs) > 0) {
                for (final Trace.Span denied : denied(high)) {
                    denied(high, denied, all, first);
                }
            }
        }
        if (unknownOrder) {
            notes.add("priority inversions are judged under " + PolicyCatalog.builtIn().all().stream()
                .filter(TraceCheck::isJudge).map(PolicyDescription::name).collect(Collectors.joining(" and "))
                + " alone");
        }
    }

    /** The times in which it was begun and did not have the GPU. */
    private List<Trace.Span> denied(final Trace.Segment high) {
        final List<Trace.Span> spans = new ArrayList<>();
        long fromNs = high.receivedNs;
        for (final Trace.Span hold : high.holds) {
            if (hold.fromNs() > fromNs) {
                spans.add(new Trace.Span(fromNs, hold.fromNs()));
            }
            fromNs = hold.toNs();
        }
        final long endNs = high.endNs == 0 ? trace.lastNs : high.endNs;
        if (fromNs < endNs && !high.forced) {
            spans.add(new Trace.Span(fromNs, endNs));
        }
        return spans;
    }

    private void denied(final Trace.Segment high, final Trace.Span span, final List<Trace.Segment> all,
        final int first) {
        final long limitNs = epsilonNs(high.task.gpu);
        if (span.lengthNs() <= limitNs + toleranceNs) {
            return;
        }
        for (int i = first; i < all.size() && all.get(i).receivedNs < span.toNs(); i++) {
            final Trace.Segment low = all.get(i);
            if (low == high || low.task.gpu != high.task.gpu || low.task.contextId == high.task.contextId
                || !trace.preemptive && low.decidedNs <= high.receivedNs) {
                continue;
            }
            for (final Trace.Span hold : low.holds) {
                final long fromNs = Math.max(hold.fromNs(), span.fromNs());
                final long heldNs = Math.min(hold.toNs(), span.toNs()) - fromNs;
                if (heldNs > limitNs + toleranceNs && isBetter(high, low, fromNs)
                    && !inherits(low, high, all, fromNs)) {
                    findings.add(new Finding("inversion", high.task.name, high.job == null ? 0 : high.job.number,
                        fromNs, heldNs, limitNs, "task \"" + high.task.name + "\"" + jobOf(high) + " waited while \""
                        + low.task.name + "\"" + jobOf(low) + " had the GPU for " + ms(heldNs) + ", epsilon is "
                        + ms(limitNs)));
                }
            }
        }
    }

    /** A trace says the name of a policy and not its parameters. */
    private static boolean isJudge(final PolicyDescription row) {
        return row.parameters().isEmpty() && row.enforces();
    }

    static Optional<Policy> judge(final String policy) {
        return PolicyCatalog.builtIn().find(policy).filter(TraceCheck::isJudge)
            .map(row -> PolicyCatalog.builtIn().create(policy));
    }

    private static boolean isBetter(final Trace.Segment a, final Trace.Segment b, final long timeNs) {
        return judge(a.policy).orElseThrow().compare(view(a, timeNs), view(b, timeNs)) < 0;
    }

    private static SegmentView view(final Trace.Segment s, final long timeNs) {
        return SegmentView.of(1, s.task.rankAt(timeNs), 0, s.releaseNs,
            s.deadlineNs > 0 ? s.deadlineNs : Long.MAX_VALUE, s.beginNs, 0);
    }

    /** Within one context what runs has the rank of the best that waits there. */
    private static boolean inherits(final Trace.Segment low, final Trace.Segment high, final List<Trace.Segment> all,
        final long timeNs) {
        for (final Trace.Segment other : all) {
            if (other.receivedNs > timeNs) {
                return false;
            }
            if (other != low && other.task.contextId == low.task.contextId && other.task.gpu == low.task.gpu
                && (other.endNs == 0 || other.endNs > timeNs) && !isBetter(high, other, timeNs)) {
                return true;
            }
        }
        return false;
    }

    private static String jobOf(final Trace.Segment segment) {
        return segment.job == null ? "" : " job " + segment.job.number;
    }

    private void add(final String kind, final Trace.Job job, final long timeNs, final long measuredNs,
        final long limitNs, final String text) {
        findings.add(new Finding(kind, job.task.name, job.number, timeNs, measuredNs, limitNs,
            "task \"" + job.task.name + "\" job " + job.number + " " + text));
    }

    private static String ms(final long ns) {
        return Durations.format(ns);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.core.Policy;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The bounds that a recording can be held to: those by turns, if admission proved all by them, else those of the
 * analysis that is sound for its policy and mechanism. How cores order their threads a recording does not say; they are
 * taken to do it by priority, the daemon's default.
 *
 * @param result the bounds of the set; null if there are none
 * @param reason one line: why there are none; empty if there are some
 */
public record TraceBounds(AnalysisResult result, String reason) {
    private static final String GATE = "gate";
    /** As the daemon journals it, before the task is opened that makes the difference. */
    private static final Pattern PROOF = Pattern.compile("^settings admission by (?:turns|calls): ([a-z-]+) ");
    /** Early recordings do not say the level: their mechanisms interrupted running work. */
    private static final List<String> LEVELS = List.of("", GATE, "interrupt");

    /**
     * Chooses the analysis and computes.
     *
     * @param trace what happened
     * @param set   what was assumed
     * @return its bounds, or why there are none
     */
    public static TraceBounds of(final Trace trace, final TaskSet set) {
        final List<String> policies = trace.tasks.stream().flatMap(task -> task.jobs.stream()).map(job -> job.policy)
            .filter(Trace::isEnforced).distinct().sorted().toList();
        if (policies.size() != 1) {
            return none(policies.isEmpty() ? "no decision was enforced" : "jobs ran under several policies ("
                + String.join(", ", policies) + ")");
        }
        final Set<String> proofs = proofs(trace);
        if (proofs.contains(Analyses.byTurns().name())) {
            return proofs.size() > 1 ? none("jobs ran by turns and by calls, whose bounds differ")
                : analysed(Analyses.byTurns(), set);
        }
        final Optional<Policy> policy = TraceCheck.judge(policies.get(0));
        if (policy.isEmpty()) {
            return none("a recording does not say the parameters of policy " + policies.get(0)
                + "; `gpuseg analyze --policy-file` takes them");
        }
        if (!LEVELS.contains(trace.levelName) || trace.preemptive == trace.levelName.equals(GATE)) {
            return none("mechanism " + trace.mechanism + " has no sound analysis");
        }
        final SoundAnalysis sound = SoundAnalysis.of(policy.get(), trace.levelName.equals(GATE) ? Capabilities.GATE
            : Capabilities.INTERRUPT, set.mode(), CoreOrder.FP, MechanismCatalog.interrupting());
        if (!sound.exists()) {
            return none(sound.reason());
        }
        return analysed(sound.analysis(), set);
    }

    private static TraceBounds analysed(final Analysis analysis, final TaskSet set) {
        try {
            return new TraceBounds(analysis.analyse(set), "");
        } catch (final InvalidModelException e) {
            return none(e.getMessage());
        }
    }

    /** By what admission said that each enforced job was proven: the name of an analysis; empty if it said nothing. */
    private static Set<String> proofs(final Trace trace) {
        final NavigableMap<Long, String> said = new TreeMap<>();
        for (final Trace.Mark mark : trace.marks) {
            final Matcher proof = PROOF.matcher(mark.kind().equals(EventKind.POLICY.name()) ? mark.text() : "");
            if (proof.find()) {
                said.put(mark.timeNs(), proof.group(1));
            }
        }
        return trace.tasks.stream().flatMap(task -> task.jobs.stream()).filter(job -> Trace.isEnforced(job.policy))
            .map(job -> said.floorEntry(job.releaseNs)).map(last -> last == null ? "" : last.getValue())
            .collect(Collectors.toSet());
    }

    private static TraceBounds none(final String reason) {
        return new TraceBounds(null, "response times are not compared with bounds: " + reason);
    }
}

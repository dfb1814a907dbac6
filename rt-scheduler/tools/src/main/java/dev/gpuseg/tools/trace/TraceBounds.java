/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.core.Policy;
import dev.gpuseg.daemon.admission.CoreOrder;
import dev.gpuseg.daemon.admission.SoundAnalysis;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.List;
import java.util.Optional;

/**
 * The bounds that a recording can be held to: those of the analysis that is sound for its policy and mechanism. How
 * cores order their threads a recording does not say; they are taken to do it by priority, the daemon's default.
 *
 * @param result the bounds of the set; null if there are none
 * @param reason one line: why there are none; empty if there are some
 */
public record TraceBounds(AnalysisResult result, String reason) {
    private static final String GATE = "gate";
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
        final Optional<Policy> policy = TraceCheck.judge(policies.get(0));
        if (policy.isEmpty()) {
            return none("a recording does not say the parameters of policy " + policies.get(0)
                + "; `gpuseg analyze --policy-file` takes them");
        }
        if (!LEVELS.contains(trace.levelName) || trace.preemptive == trace.levelName.equals(GATE)) {
            return none("mechanism " + trace.mechanism + " has no sound analysis");
        }
        final SoundAnalysis sound = SoundAnalysis.of(policy.get(), trace.levelName.equals(GATE) ? Capabilities.GATE
            : Capabilities.INTERRUPT, set.mode(), CoreOrder.FP);
        if (!sound.exists()) {
            return none(sound.reason());
        }
        try {
            return new TraceBounds(sound.analysis().analyse(set), "");
        } catch (final InvalidModelException e) {
            return none(e.getMessage());
        }
    }

    private static TraceBounds none(final String reason) {
        return new TraceBounds(null, "response times are not compared with bounds: " + reason);
    }
}

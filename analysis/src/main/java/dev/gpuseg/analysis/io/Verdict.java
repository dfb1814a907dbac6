/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.ChainResult;
import dev.gpuseg.analysis.rta.Hypotheses;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TaskResult;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The answer of a report in one sentence, the same in text, JSON and HTML. Of several analyses those that are sound
 * for this scheduler decide, and of these the worst answer counts.
 *
 * @param kind         what it says
 * @param sentence     without a full stop
 * @param contradicted whether a measured job broke what a sound analysis promises
 * @param simulated    whether constants or measurement are those of the virtual GPU; the sentence says so, too
 */
public record Verdict(Kind kind, String sentence, boolean contradicted, boolean simulated) {
    /** What a verdict says, from the best to the worst. */
    public enum Kind {
        /** Every deadline holds, if the hypotheses do. */
        HOLDS,
        /** It does, if hypotheses hold that the set does not state, or that nothing checks. */
        CONDITIONAL,
        /** A deadline or a limit may be missed. */
        REFUSED,
        /** A measured job broke what the analysis promises. */
        CONTRADICTED,
        /** No analysis that was made is sound for this scheduler. */
        NO_PROOF
    }

    private static final int NAMED = 3;
    private static final String HOLDS = "every deadline holds, if the hypotheses below hold";

    /**
     * Judges.
     *
     * @param set      the analysed set
     * @param results  one per analysis, at least one
     * @param measured or null
     * @return the verdict
     */
    public static Verdict of(final TaskSet set, final List<AnalysisResult> results, final Measurement measured) {
        final boolean constants = set.platform().simulated();
        final boolean measurement = measured != null && measured.simulated();
        final String simulated = !constants && !measurement ? "" : " (simulated " + (constants ? "constants" : "")
            + (constants && measurement ? " and " : "") + (measurement ? "measurement" : "") + ")";
        Verdict worst = null;
        String by = "";
        int sound = 0;
        for (final AnalysisResult result : results) {
            final Soundness soundness = Soundness.of(Analyses.describe(result.analysis()), set);
            if (soundness.verdict() != Soundness.Verdict.NOT_SOUND) {
                final Verdict one = of(set, result, soundness, measured);
                sound++;
                if (worst == null || one.kind.compareTo(worst.kind) > 0) {
                    worst = one;
                    by = result.analysis();
                }
            }
        }
        if (worst == null) {
            worst = new Verdict(Kind.NO_PROOF, "no proof: " + (results.size() > 1 ? "none of " + results.size()
                + " analyses is sound for this scheduler" : results.get(0).analysis() + " is "
                + Soundness.of(Analyses.describe(results.get(0).analysis()), set).text())
                + also(results.size() > 1 ? "" : broken(set, results.get(0), measured)), false, false);
        }
        final String which = results.size() == 1 || sound == 0 ? "" : " [" + (worst.holds()
            ? sound + " sound of " + results.size() + " analyses" : by) + "]";
        return new Verdict(worst.kind, worst.sentence + which + simulated, worst.contradicted, constants
            || measurement);
    }

    private static Verdict of(final TaskSet set, final AnalysisResult result, final Soundness soundness,
        final Measurement measured) {
        final String broken = broken(set, result, measured);
        if (!result.schedulable()) {
            return new Verdict(Kind.REFUSED, "NOT schedulable: " + refused(set, result, measured) + also(broken),
                !broken.isEmpty(), false);
        }
        if (!broken.isEmpty()) {
            return new Verdict(Kind.CONTRADICTED, "CONTRADICTED BY THE MEASUREMENT: " + broken, true, false);
        }
        final String open = soundness.findings().stream().filter(Hypotheses.Finding::isOpen)
            .map(finding -> finding.hypothesis().id()).collect(Collectors.joining(", "));
        return open.isEmpty() ? new Verdict(Kind.HOLDS, HOLDS, false, false)
            : new Verdict(Kind.CONDITIONAL, HOLDS + "; left open: " + open, false, false);
    }

    private static String also(final String broken) {
        return broken.isEmpty() ? "" : "; measured: " + broken;
    }

    private static String refused(final TaskSet set, final AnalysisResult result, final Measurement measured) {
        final List<String> names = new ArrayList<>();
        String first = "";
        for (int i = 0; i < result.tasks().size(); i++) {
            final TaskResult task = result.tasks().get(i);
            if (!task.schedulable()) {
                names.add('"' + task.name() + '"');
                if (first.isEmpty()) {
                    first = "task \"" + task.name() + "\" may miss its deadline" + (task.passed() == null
                        || set.tasks().get(i).missLimit() != null
                        ? "" : ": its bound is at least " + apart(task.passed().totalNs(), task.deadlineNs(),
                        "deadline")) + missed(task, measured);
                }
            }
        }
        if (names.isEmpty()) {
            for (final ChainResult chain : result.chains()) {
                if (!chain.schedulable()) {
                    return "chain \"" + chain.name() + "\" may exceed its limit";
                }
            }
            return "a limit may be exceeded";
        }
        names.remove(0);
        return first + (names.isEmpty() ? "" : "; so may " + String.join(", ", names.subList(0, Math.min(NAMED,
            names.size()))) + (names.size() > NAMED ? " and " + (names.size() - NAMED) + " more" : ""));
    }

    private static String missed(final TaskResult task, final Measurement measured) {
        final Measurement.Figure figure = measured == null ? null : measured.byTask().get(task.name());
        return figure == null || figure.misses() == 0 ? "" : "; measured: " + figure.misses() + " of " + figure.jobs()
            + " jobs late";
    }

    /** What a measurement broke of what an analysis says; empty if nothing. */
    private static String broken(final TaskSet set, final AnalysisResult result, final Measurement measured) {
        if (measured == null) {
            return "";
        }
        TaskResult worst = null;
        Measurement.Figure worstFigure = null;
        TaskResult late = null;
        long jobs = 0;
        long above = 0;
        boolean exact = true;
        long misses = 0;
        for (int i = 0; i < result.tasks().size(); i++) {
            final TaskResult task = result.tasks().get(i);
            final Measurement.Figure figure = measured.byTask().get(task.name());
            if (figure == null || set.tasks().get(i).bestEffort()) {
                continue;
            }
            jobs += figure.jobs();
            if (task.schedulable() && set.tasks().get(i).missLimit() == null && figure.misses() > 0) {
                misses += figure.misses();
                late = late == null ? task : late;
            }
            if (task.wcrtNs() != null && figure.maxNs() > task.wcrtNs()) {
                above += figure.above(task.wcrtNs(), task.deadlineNs());
                exact &= figure.isExact();
                if (worst == null || (double) figure.maxNs() / task.wcrtNs()
                    > (double) worstFigure.maxNs() / worst.wcrtNs()) {
                    worst = task;
                    worstFigure = figure;
                }
            }
        }
        if (worst != null) {
            return "task \"" + worst.name() + "\" took " + apart(worstFigure.maxNs(), worst.wcrtNs(), "bound") + " ("
                + (exact ? "" : "at least ") + above + " of " + jobs + " jobs above their bound"
                + (misses == 0 ? "" : ", " + misses + " late") + ")";
        }
        return late == null ? "" : "task \"" + late.name() + "\" missed its deadline (" + misses + " of " + jobs
            + " jobs late)";
    }

    /** One decimal is read from afar; more are given where they are needed to see the difference. */
    private static String apart(final long longNs, final long limitNs, final String what) {
        final BigDecimal time = BigDecimal.valueOf(longNs, 6).setScale(1, RoundingMode.FLOOR);
        final BigDecimal limit = BigDecimal.valueOf(limitNs, 6).setScale(1, RoundingMode.CEILING);
        final boolean differ = time.compareTo(limit) > 0;
        return (differ ? time.toPlainString() : Durations.milliseconds(longNs)) + " ms, its " + what + " is "
            + (differ ? limit.toPlainString() : Durations.milliseconds(limitNs)) + " ms";
    }

    /** Whether every deadline is proven, under conditions perhaps, and nothing measured contradicts it. */
    public boolean holds() {
        return kind == Kind.HOLDS || kind == Kind.CONDITIONAL;
    }

    /**
     * Writes the field {@code verdict} into the object that is open.
     *
     * @param out where to
     * @throws IOException if that fails
     */
    public void write(final JsonGenerator out) throws IOException {
        out.writeObjectFieldStart("verdict");
        out.writeStringField("sentence", sentence);
        out.writeBooleanField("holds", holds());
        out.writeBooleanField("conditional", kind == Kind.CONDITIONAL);
        out.writeBooleanField("contradicted", contradicted);
        out.writeBooleanField("simulated", simulated);
        out.writeEndObject();
    }
}

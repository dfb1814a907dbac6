/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;

/**
 * Within which limits the constants of a platform and the times of its tasks hold. What is not stated is a condition
 * of every bound. Immutable.
 *
 * @param clockPermille    by how much device times are longer at the lowest clock, beside the heaviest load, than
 *                         declared, in thousandths: 1000 = they were measured there, {@link #CLOCK_MAX} at most; 0 =
 *                         not stated
 * @param withoutNewcomers true if no process makes a context of the GPU while a real-time task is open
 * @param newcomerNs       longest time from the first work of a new context until it is disabled, that update
 *                         included; 0 = not stated
 * @param newcomerPeriodNs shortest time from one new context to the next, more than the delay; 0 = not stated
 * @param contexts         number of contexts with which epsilon was measured, the task's own included; 0 = not stated
 * @param samples          number of updates that were measured; 0 = not stated
 * @param turns            how best effort takes turns; null = not stated
 */
public record PlatformLimits(int clockPermille, boolean withoutNewcomers, long newcomerNs, long newcomerPeriodNs,
    int contexts, int samples, TurnLimits turns) {
    /** Nothing is stated. */
    public static final PlatformLimits NONE = new PlatformLimits(0, false, 0, 0, 0, 0);
    /** A clock that changes nothing. */
    public static final int CLOCK_MIN = 1000;
    /** The largest factor of the clock, in thousandths. */
    public static final int CLOCK_MAX = 10_000;
    /** Digits of the factor behind its point. */
    public static final int CLOCK_DIGITS = 3;
    /** Most contexts that may be stated. */
    public static final int MAX_CONTEXTS = 1024;

    /** Validates the ranges. */
    public PlatformLimits {
        if (clockPermille != 0 && (clockPermille < CLOCK_MIN || clockPermille > CLOCK_MAX)) {
            throw new InvalidModelException("platform: clock is " + clockPermille / (double) CLOCK_MIN
                + "; it must be 1..10");
        }
        Task.requireTime("platform: newcomers: delay", newcomerNs);
        Task.requireTime("platform: newcomers: period", newcomerPeriodNs);
        if (newcomerNs == 0 != (newcomerPeriodNs == 0) || newcomerNs > 0 && newcomerPeriodNs <= newcomerNs) {
            throw new InvalidModelException("platform: newcomers: a new context that runs for "
                + Durations.format(newcomerNs) + " every " + Durations.format(newcomerPeriodNs)
                + " leaves no GPU time; the period must be longer than the delay");
        }
        if (contexts < 0 || contexts > MAX_CONTEXTS || samples < 0) {
            throw new InvalidModelException("platform: contexts is " + contexts + " and samples is " + samples
                + "; contexts must be 1.." + MAX_CONTEXTS + ", samples 1 or more");
        }
    }

    /**
     * Limits that say nothing of turns.
     *
     * @param clockPermille    as above
     * @param withoutNewcomers as above
     * @param newcomerNs       as above
     * @param newcomerPeriodNs as above
     * @param contexts         as above
     * @param samples          as above
     */
    public PlatformLimits(final int clockPermille, final boolean withoutNewcomers, final long newcomerNs,
        final long newcomerPeriodNs, final int contexts, final int samples) {
        this(clockPermille, withoutNewcomers, newcomerNs, newcomerPeriodNs, contexts, samples, null);
    }

    /** A copy with other turns; null = not stated. */
    public PlatformLimits withTurns(final TurnLimits newTurns) {
        return new PlatformLimits(clockPermille, withoutNewcomers, newcomerNs, newcomerPeriodNs, contexts, samples,
            newTurns);
    }

    /**
     * These, and of others what these do not state. Real-time tasks are together if either says so: that is the set's
     * to say, what turns cost the machine's.
     *
     * @param others of the task set, say, where these are of a profile
     * @return the limits that hold
     */
    public PlatformLimits over(final PlatformLimits others) {
        final boolean said = withoutNewcomers || newcomerNs > 0;
        return new PlatformLimits(clockPermille == 0 ? others.clockPermille : clockPermille,
            said ? withoutNewcomers : others.withoutNewcomers, said ? newcomerNs : others.newcomerNs,
            said ? newcomerPeriodNs : others.newcomerPeriodNs, contexts == 0 ? others.contexts : contexts,
            contexts == 0 ? others.samples : samples, turns == null ? others.turns
            : others.turns != null && others.turns.together() ? turns.takenTogether() : turns);
    }

    /** The factor of the clock as files have it, such as 1.53. */
    public String clock() {
        return BigDecimal.valueOf(clockPermille, CLOCK_DIGITS).stripTrailingZeros().toPlainString();
    }

    /** What is stated, for a report; without a full stop; empty if nothing is. */
    public String text() {
        final List<String> said = new ArrayList<>();
        if (clockPermille > 0) {
            said.add("clock " + clock());
        }
        if (withoutNewcomers) {
            said.add("no new contexts");
        } else if (newcomerNs > 0) {
            said.add("a new context for " + Durations.format(newcomerNs) + " every "
                + Durations.format(newcomerPeriodNs));
        }
        if (contexts > 0) {
            said.add(contexts + " contexts");
        }
        if (turns != null) {
            said.add("turns of " + Durations.format(turns.sliceNs()) + " slices, " + turns.contexts()
                + (turns.contexts() == 1 ? " context" : " contexts") + " met"
                + (turns.isMeasured() ? ", waits of at most " + Durations.format(turns.waitNs()) + " measured" : "")
                + (turns.together() ? ", real-time tasks together" : ""));
        }
        return String.join(", ", said);
    }

    /** Whether device times count longer than declared. */
    boolean slowsDevice() {
        return clockPermille > CLOCK_MIN;
    }

    /** What is left of them in {@link TaskSet#slowed}: the bounds count the clock and the newcomers already. */
    PlatformLimits counted() {
        return new PlatformLimits(Math.min(clockPermille, CLOCK_MIN), withoutNewcomers || newcomerNs > 0, 0, 0,
            contexts, samples, turns);
    }

    /**
     * A GPU that new contexts stop, too. Stops and newcomers are counted as one: both together, as often as the more
     * frequent of them.
     */
    Gpu disturbed(final Gpu gpu) {
        if (newcomerNs == 0) {
            return gpu;
        }
        return gpu.withStalls(Math.addExact(gpu.stallNs(), newcomerNs),
            gpu.stallNs() == 0 ? newcomerPeriodNs : Math.min(gpu.stallPeriodNs(), newcomerPeriodNs));
    }
}

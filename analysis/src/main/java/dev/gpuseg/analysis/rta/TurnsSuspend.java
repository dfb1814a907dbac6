/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.core.BestEffortTurns;
import dev.gpuseg.core.Priority;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Begins that wait for no driver call: contexts of real-time tasks are never disabled and have long time slices, best
 * effort takes turns with short ones.
 *
 * <p>Hypotheses (theorem 16 of {@code docs/turns.md}): those of {@link GcapsWindow} on tasks and cores, and
 * <ul>
 * <li>U1: begins do not wait;</li>
 * <li>U2: in a wait, a stretch in which the device part of a task is ready and the GPU is switched or serves others,
 *     each other context has one turn, of a switch and its slice, and one of them one more;</li>
 * <li>U3: a wait meets at most N best-effort contexts, with slices of at most L0;</li>
 * <li>U4: the device part of a window becomes ready at most as often as the set says;</li>
 * <li>U5: no context of a real-time task is disabled, and its slice is at least {@link #slices};</li>
 * <li>U6: a call that disables or enables others takes at most theta from the context that is served, and does not end
 *     its turn.</li>
 * </ul>
 * Recurrence, for a task with device parts Ge_ij of k_ij bursts and the slice L_i:
 * <pre>
 *  q_i = sum_j ( k_ij + floor((Ge_ij + c_i - 1) / L_i) ),  v_x = Ge_x + theta q_x
 *  c_i = 2 N theta + ceil((D_i + delay) / P) 2 theta
 *  w = C_i + G_i + B_i + theta (q_i + 2 N eta_i) + q_i N (L0 + theta)
 *    + sum_{h in hpp(i)} ceil((w + R_h - C_h - Gm_h) / T_h) (C_h + Gm_h)
 *    + sum_{x, same GPU} min( q_i (L_x + theta), ceil((w + R_x - v_x) / T_x) v_x ) + one more turn of each wait
 *    + ceil((w + delay) / P) ( min( q_i (Ld + theta), delay ) + 2 theta )
 * </pre>
 * where a new context comes every P at most and keeps the driver's slice Ld for the delay.
 *
 * <p>If the platform states a measured wait W, that comes in place of U2 and U3 for best effort and new contexts: in a
 * wait the GPU is switched to the task, or switched to and serves best effort and new contexts, for at most W. Then
 * q_i W replaces theta q_i, q_i N (L0 + theta) and the turns of new contexts, and the one turn more of a wait is one of
 * a real-time context.
 *
 * <p>Source: this project.
 */
final class TurnsSuspend extends FixedPointAnalysis<TurnsSuspend.Work> {
    /** How often all bounds are computed: each task of a GPU delays each other one. */
    private static final int ROUNDS = 8;
    static final String NAME = "turns-suspend";

    /** How many turns more than one of each other context a wait can meet. */
    private final int more;

    TurnsSuspend(final AnalysisDescription description) {
        this(description, 1);
    }

    TurnsSuspend(final AnalysisDescription description, final int more) {
        super(description);
        this.more = more;
    }

    /** The time slices of real-time contexts, and what follows from them. By position. */
    static final class Work implements Recurrence.Extra {
        final long[] slice;
        /** Most waits of a job, q; GPU time of a job with its switches, v. */
        final long[] waits;
        final long[] demand;
        private final PreparedSet s;
        private final long[] r;
        private final TurnLimits turns;
        private final int more;
        private int analysed;
        /** A turn that a wait can meet at any time, the longest. */
        private long anyTurn;
        private final long[] length;
        private final long[] often;

        Work(final PreparedSet s, final long[] r, final TurnLimits turns, final int more) {
            this.more = more;
            this.s = s;
            this.r = r;
            this.turns = turns;
            slice = new long[s.count];
            waits = new long[s.count];
            demand = new long[s.count];
            length = new long[2 * s.count];
            often = new long[2 * s.count];
        }

        void setSlice(final int p, final long ns) {
            slice[p] = ns;
            waits[p] = 0;
            for (int j = s.segmentStart[p]; j < s.segmentStart[p + 1]; j++) {
                if (s.segmentDevice[j] > 0) {
                    waits[p] = Math.addExact(waits[p], s.segmentBursts[j]
                        + (s.segmentDevice[j] + calls(p) + callsForNew(p) - 1) / ns);
                }
            }
            demand[p] = Math.addExact(s.device[p], Math.multiplyExact(waits[p], s.theta[p]));
        }

        /** What the calls of one window take. */
        long calls(final int p) {
            return Math.multiplyExact(2L * turns.contexts(), s.theta[p]);
        }

        /** What calls for new contexts take at most from a job that keeps its deadline. */
        private long callsForNew(final int p) {
            final long delay = s.limits.newcomerNs();
            return delay == 0 ? 0 : Math.multiplyExact(2 * s.theta[p], IntegerMath.ceilDiv(s.deadline[p] + delay,
                s.limits.newcomerPeriodNs()));
        }

        /** All that is neither own nor of another task, for a job that keeps its deadline; no other has windows. */
        long waitNs(final int p) {
            final long turn = Math.addExact(turns.sliceNs(), s.theta[p]);
            final long delay = s.limits.newcomerNs();
            // a measured wait contains the switch, all turns, and those of new contexts
            final long born = delay == 0 || turns.isMeasured() ? 0 : Math.addExact(s.timeslice[p], s.theta[p]);
            final long wait = turns.isMeasured() ? turns.waitNs() : Math.addExact(s.theta[p], Math.addExact(
                Math.multiplyExact(turns.contexts(), turn), Math.multiplyExact(more, Math.max(turn, born))));
            final long regular = Math.addExact(Math.multiplyExact(waits[p], wait),
                Math.multiplyExact((long) s.eta[p], calls(p)));
            return delay == 0 ? regular : Math.addExact(regular, Math.multiplyExact(
                IntegerMath.ceilDiv(s.deadline[p] + delay, s.limits.newcomerPeriodNs()),
                Math.addExact(Math.min(Math.multiplyExact(waits[p], born), delay), 2 * s.theta[p])));
        }

        void of(final int i, final long longestTurnNs) {
            analysed = i;
            anyTurn = longestTurnNs;
        }

        boolean meets(final int i, final int x) {
            return x != i && x < s.realTimeCount && s.gpu[x] >= 0 && s.gpu[x] == s.gpu[i] && s.device[x] > 0;
        }

        /** Turns of other real-time contexts, and one more turn of each wait: of whichever contexts it hurts most. */
        @Override
        public long at(final long w, final Recurrence at) {
            final int i = analysed;
            long sum = 0;
            int size = 0;
            for (int x = 0; x < s.realTimeCount; x++) {
                if (!meets(i, x)) {
                    continue;
                }
                final long turn = Math.addExact(slice[x], s.theta[x]);
                final long jobs = IntegerMath.ceilDiv(Math.max(1, w) + Math.max(0, r[x] - demand[x]), s.period[x]);
                final long most = Math.multiplyExact(jobs, demand[x]);
                final long regular = turn > most / waits[i] ? most : Math.min(most, turn * waits[i]);
                sum = Math.addExact(sum, regular);
                if (turn > anyTurn && most > regular) {
                    length[size] = turn;
                    often[size++] = (most - regular) / turn;
                    length[size] = (most - regular) % turn;
                    often[size++] = 1;
                }
            }
            return Math.addExact(sum, oneMore(Math.multiplyExact(waits[i], more), size));
        }

        /** The longest {@code left} turns among those that are possible and {@link #anyTurn}, which always is. */
        private long oneMore(final long waitsOfJob, final int size) {
            long left = waitsOfJob;
            long sum = 0;
            while (left > 0) {
                int longest = -1;
                for (int k = 0; k < size; k++) {
                    if (often[k] > 0 && length[k] > anyTurn && (longest < 0 || length[k] > length[longest])) {
                        longest = k;
                    }
                }
                if (longest < 0) {
                    return Math.addExact(sum, Math.multiplyExact(left, anyTurn));
                }
                final long taken = Math.min(left, often[longest]);
                sum = Math.addExact(sum, Math.multiplyExact(taken, length[longest]));
                often[longest] = 0;
                left -= taken;
            }
            return sum;
        }
    }

    @Override
    int rounds() {
        return ROUNDS;
    }

    @Override
    boolean coversStalls() {
        return true;   // those that are new contexts; others are refused
    }

    @Override
    boolean usesDeadlineJitter(final PreparedSet s) {
        return false;   // the order of the GPU decides nothing
    }

    @Override
    Work begin(final PreparedSet s, final long[] r) {
        if (s.limits.turns() == null) {
            throw new InvalidModelException("platform: turns is missing, and " + name() + " bounds them; write turns: "
                + "{slice: 100us, contexts: 2}");
        }
        if (s.declaredStalls) {
            throw new InvalidModelException("platform: something else stops a GPU (stall, or foreign of amd), which "
                + name() + " does not contain; use gcaps-window-" + mode().word() + ", or another of docs/stalls.md");
        }
        final Work work = new Work(s, r, s.limits.turns(), more);
        for (int p = 0; p < s.realTimeCount; p++) {
            if (s.gpu[p] >= 0) {
                work.setSlice(p, s.limits.turns().sliceNs());
            }
        }
        chooseSlices(s, work);
        return work;
    }

    /**
     * By GPU priority from the highest: the longest slice with which those above keep their deadlines. The highest of
     * each GPU has the one that the daemon gives.
     */
    private void chooseSlices(final PreparedSet s, final Work work) {
        final List<Integer> order = new ArrayList<>();
        for (int p = 0; p < s.realTimeCount; p++) {
            if (s.gpu[p] >= 0) {
                order.add(p);
            }
        }
        order.sort((a, b) -> Priority.isHigherThan(s.gpuPriority[a], s.gpuPriority[b]) ? -1
            : Priority.isHigherThan(s.gpuPriority[b], s.gpuPriority[a]) ? 1 : Integer.compare(a, b));
        final Recurrence recurrence = new Recurrence(2 * s.count + 2);
        final long[] deadlines = s.deadline.clone();
        final Work trial = new Work(s, deadlines, s.limits.turns(), more);
        for (final int p : order) {
            trial.setSlice(p, work.slice[p]);
        }
        for (int k = 0; k < order.size(); k++) {
            final int p = order.get(k);
            long longest = s.limits.turns().sliceNs();
            for (final long candidate : candidates(s, p)) {
                trial.setSlice(p, candidate);
                if (passes(s, order, k, trial, recurrence)) {
                    longest = candidate;
                    break;
                }
            }
            trial.setSlice(p, longest);
            work.setSlice(p, longest);
        }
    }

    private boolean passes(final PreparedSet s, final List<Integer> order, final int below, final Work trial,
        final Recurrence recurrence) {
        for (int k = 0; k < below; k++) {
            final int i = order.get(k);
            if (s.gpu[i] == s.gpu[order.get(below)]
                && bound(s, i, trial.r, trial, recurrence) == Recurrence.EXCEEDED) {
                return false;
            }
        }
        return true;
    }

    /** Slices to try, longest first: all of a window, and halves of it down to that of best effort. */
    private static long[] candidates(final PreparedSet s, final int p) {
        long longest = 0;
        for (int j = s.segmentStart[p]; j < s.segmentStart[p + 1]; j++) {
            longest = Math.max(longest, s.segmentDevice[j]);
        }
        final long[] all = new long[Long.SIZE];
        int size = 0;
        all[size++] = BestEffortTurns.LONG_SLICE_NS;
        for (long parts = 2; longest / parts >= s.limits.turns().sliceNs() && size < all.length; parts++) {
            all[size++] = IntegerMath.ceilDiv(longest, parts);
        }
        return Arrays.copyOf(all, size);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Work work, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], s.gpuWork[i]));
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.cpu[h] == s.cpu[i] && s.isCpuHigher(h, i)) {
                final long cost = s.cpuWork[h] + s.host[h];
                out.add(Recurrence.PREEMPTION, s.period[h], r[h] - cost, cost);
            }
        }
        final long q = work.waits[i];
        if (q == 0) {
            return;
        }
        final TurnLimits turns = s.limits.turns();
        if (turns.isMeasured()) {
            buildMeasured(s, i, work, out);
            return;
        }
        final long turn = Math.addExact(turns.sliceNs(), s.theta[i]);
        out.addBase(Recurrence.OVERHEAD, Math.addExact(Math.multiplyExact(q, s.theta[i]),
            Math.multiplyExact((long) s.eta[i], work.calls(i))));
        out.addBase(Recurrence.INTERLEAVING, Math.multiplyExact(Math.multiplyExact(q, turns.contexts()), turn));
        long longest = turn;
        if (s.limits.newcomerNs() > 0) {
            final long born = Math.addExact(s.timeslice[i], s.theta[i]);
            longest = Math.max(longest, born);
            out.add(Recurrence.INTERLEAVING, s.limits.newcomerPeriodNs(), s.limits.newcomerNs(), Math.addExact(
                Math.min(Math.multiplyExact(q, born), s.limits.newcomerNs()), 2 * s.theta[i]));
        }
        work.of(i, longest);
        out.setExtra(work, Recurrence.INTERFERENCE);
    }

    /** A measured wait contains the turns of best effort and of new contexts and the switch; calls come besides. */
    private static void buildMeasured(final PreparedSet s, final int i, final Work work, final Recurrence out) {
        out.addBase(Recurrence.OVERHEAD, Math.multiplyExact((long) s.eta[i], work.calls(i)));
        out.addBase(Recurrence.INTERLEAVING, Math.multiplyExact(work.waits[i], s.limits.turns().waitNs()));
        if (s.limits.newcomerNs() > 0) {
            out.add(Recurrence.OVERHEAD, s.limits.newcomerPeriodNs(), s.limits.newcomerNs(), 2 * s.theta[i]);
        }
        work.of(i, 0);
        out.setExtra(work, Recurrence.INTERFERENCE);
    }
}

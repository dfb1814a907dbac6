/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.Reservation;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.JournalEvent;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * The part of a replay that concerns expected begins: tells the core's {@link Anticipator} what the daemon's was told,
 * and compares what it decides. Journals of daemons that did not anticipate have nothing of it. One thread.
 */
final class AnticipationReplay implements Anticipator.Sink {
    private static final Pattern MODE = Pattern.compile("anticipate [a-z]+, budget \\d+ ppm");
    private static final Pattern WISH = Pattern.compile("anticipation of task \\d+ is [a-z]+");
    private static final Pattern COST = Pattern.compile("disabling on GPU \\d+ takes .*");

    private record Decision(int what, int gpu, int task, long arg0, long arg1, long arg2) {
        static Decision of(final JournalEvent e) {
            return new Decision(e.flags(), e.gpu(), e.taskId(), e.arg0(), e.arg1(), e.arg2());
        }
    }

    /** Contexts are not in a journal: what is disabled for a begin follows from who is expected. */
    private static final class Nowhere implements Reservation.Target {
        @Override
        public void reserve(final int contextId) {
            // as above
        }

        @Override
        public void spare(final int contextId) {
            // as above
        }

        @Override
        public void unreserve() {
            // as above
        }
    }

    private final Anticipator anticipator;
    private final int gpus;
    private final Deque<Decision> expected = new ArrayDeque<>();
    /** The daemon has one. */
    private boolean inUse;

    AnticipationReplay(final SchedulerConfig config, final SegmentScheduler scheduler) {
        gpus = config.gpuCount();
        final Reservation.Target[] targets = new Reservation.Target[gpus];
        for (int g = 0; g < gpus; g++) {
            targets[g] = new Nowhere();
        }
        anticipator = new Anticipator(config, scheduler, targets, this);
    }

    /** A POLICY event; false if it is about something else. */
    boolean policy(final JournalEvent e) {
        if (MODE.matcher(e.text()).matches()) {
            inUse = true;
            anticipator.setMode(Anticipate.values()[(int) e.arg0()]);
            anticipator.setBudget((int) e.arg1());
        } else if (WISH.matcher(e.text()).matches()) {
            anticipator.setWish((int) e.arg0(), Anticipate.values()[(int) e.arg1()], e.timeNs());
        } else if (COST.matcher(e.text()).matches()) {
            anticipator.stateCost(e.gpu(), e.arg0(), e.arg1());
        } else {
            return false;
        }
        return true;
    }

    void open(final JournalEvent e, final JsonNode attributes) {
        if (inUse) {
            anticipator.open(e.taskId(), e.gpu(), e.contextId(),
                attributes.path("reserve").asInt() > 0 ? 0
                    : rank(attributes.path("priority").asInt(), attributes.path("gpu_priority").asInt()),
                attributes.path("period_ns").asLong());
        }
    }

    private static int rank(final int priority, final int gpuPriority) {
        return priority == 0 ? 0 : gpuPriority > 0 ? gpuPriority : priority;
    }

    /** Before the scheduler is told. */
    void close(final JournalEvent e) {
        if (inUse) {
            anticipator.close(e.taskId(), e.timeNs());
        }
    }

    /** What it decides about a task in the event that closes it is not in the journal. */
    void closed(final JournalEvent e) {
        follow(e.timeNs());
        expected.removeIf(decision -> decision.task == e.taskId());
    }

    void priority(final JournalEvent e) {
        if (inUse) {
            anticipator.setRank(e.taskId(), rank((int) e.arg0(), (int) e.arg1()), e.timeNs());
        }
    }

    void hint(final JournalEvent e) {
        if (inUse) {
            anticipator.hint(e.taskId(), e.arg0(), e.timeNs());
        }
    }

    /** Before {@link #follow}, and only of a begin that the scheduler took. */
    void begin(final JournalEvent e) {
        if (inUse) {
            anticipator.begin(e.taskId(), e.timeNs());
        }
    }

    /** After the scheduler has accepted it. */
    void learn(final JournalEvent e) {
        if (inUse) {
            follow(e.timeNs());
            anticipator.learn(e.taskId(), e.arg0(), e.arg1(), e.timeNs());
        }
    }

    /** After the scheduler has accepted it. */
    void end(final JournalEvent e) {
        if (inUse) {
            anticipator.end(e.taskId(), e.timeNs());
        }
    }

    /** After every event that the scheduler was told of. */
    void follow(final long nowNs) {
        for (int g = 0; inUse && g < gpus; g++) {
            anticipator.follow(g, nowNs);
        }
    }

    /** An ANTICIPATE event: whether it tells what was decided, so that it was compared; else it is an input. */
    boolean event(final JournalEvent e) {
        if (e.flags() == Abi.ANTICIPATION_COST) {
            anticipator.enforced(e.gpu(), (int) e.arg2(), e.arg0(), e.arg1());
            return false;
        }
        if (e.flags() == Abi.ANTICIPATION_DUE) {
            anticipator.onTimer(e.timeNs());
            follow(e.timeNs());
            return false;
        }
        return true;
    }

    /** Whether nothing was decided that is yet to be compared. */
    boolean isDone() {
        return expected.isEmpty();
    }

    /** Compares a decision; empty if it agrees, else one line. */
    Optional<String> compare(final JournalEvent e) {
        final Decision seen = Decision.of(e);
        final Decision due = expected.poll();
        return seen.equals(due) ? Optional.empty() : Optional.of("event " + e.seq() + ": the daemon decided "
            + seen + ", the core " + (due == null ? "nothing" : due.toString()));
    }

    /** What the journal lacks. */
    Optional<String> left() {
        return expected.isEmpty() ? Optional.empty()
            : Optional.of("at the end the core decided " + expected.peek() + ", the daemon did not");
    }

    @Override
    public void onAnticipated(final int gpu, final int taskId, final long expectedNs, final long leadNs,
        final boolean isHint) {
        expected.add(new Decision(Abi.ANTICIPATION_ACTED, gpu, taskId, expectedNs, leadNs, isHint ? 1 : 0));
    }

    @Override
    public void onWasted(final int gpu, final int taskId, final boolean isHint) {
        expected.add(new Decision(Abi.ANTICIPATION_WASTED, gpu, taskId, 0, 0, isHint ? 1 : 0));
    }

    @Override
    public void onOverBudget(final int gpu, final int taskId) {
        expected.add(new Decision(Abi.ANTICIPATION_OVER_BUDGET, gpu, taskId, 0, 0, 0));
    }

    @Override
    public void onReserved(final int gpu, final int taskId, final long ns) {
        expected.add(new Decision(Abi.ANTICIPATION_RESERVED, gpu, taskId, ns, 0, 0));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalRing;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Drives a scheduler at random and journals as the dispatcher does: an input, then what was decided of it; some grants
 * later. Every kind of input that the daemon gives its scheduler is drawn. Some tasks can begin in patterns, which are
 * anticipated ({@link JournaledAnticipation}).
 */
final class JournaledRun implements DecisionSink {
    private static final PolicyReader READER = new PolicyReader(PolicyCatalog.builtIn());
    static final int GPUS = 2;
    private static final int TASKS = 10;
    private static final int CONTEXTS = 6;
    private static final long MS = 1_000_000;
    private static final long BUDGET_NS = 3 * MS;
    private static final long DEADLINE_NS = 9 * MS;
    private static final long STEP_MAX_NS = 1_700_000;
    private static final String PARTITIONS = "partitions {\"frame\":\"11ms\",\"guard\":\"500us\",\"inside\":\"%s\","
        + "\"lend_idle\":%s,\"windows\":[{\"partition\":1,\"offset\":\"0ms\",\"length\":\"4ms\"},"
        + "{\"partition\":2,\"offset\":\"5ms\",\"length\":\"3ms\"}],\"policy\":\"partitions\"}";
    /** As in POLICY events. */
    static final List<String> POLICIES = List.of("fp", "edf", "rr", "classes",
        "classes {\"class_width\":30,\"policy\":\"classes\"}", String.format(Locale.ROOT, PARTITIONS, "fp", "false"),
        String.format(Locale.ROOT, PARTITIONS, "edf", "true"));

    /** A decision whose event is written after that of its cause. */
    private record Later(int task, Runnable writes) {
    }

    private final Random random;
    private final JournalRing ring;
    private final SegmentScheduler scheduler;
    private final List<Later> decided = new ArrayList<>();
    private final List<long[]> toldLater = new ArrayList<>();
    private final long[] ticket = new long[TASKS + 1];
    private final boolean preemptive;
    private final boolean shares;
    /** Null: nothing is expected. */
    private final JournaledAnticipation anticipation;
    private boolean late;
    private boolean ofTimer;
    private long written;
    private long nowNs = 1;

    /** With {@code shares}, weights, caps, groups and turns are drawn too. */
    JournaledRun(final JournalRing ring, final String policy, final boolean preemptive, final boolean shares,
        final long seed) {
        this(ring, policy, preemptive, shares, false, seed);
    }

    /** With {@code expected}, tasks that begin in patterns are anticipated. */
    JournaledRun(final JournalRing ring, final String policy, final boolean preemptive, final boolean shares,
        final boolean expected, final long seed) {
        this.ring = ring;
        this.preemptive = preemptive;
        this.shares = shares;
        random = new Random(seed);
        final SchedulerConfig sizes = new SchedulerConfig(READER.policyOf(policy), GPUS, TASKS, CONTEXTS, preemptive,
            true, Unmanaged.BEST_EFFORT);
        scheduler = new SegmentScheduler(sizes, this);
        scheduler.countFromGrants();
        scheduler.chargeHints();
        final ObjectNode start = JsonNodeFactory.instance.objectNode();
        start.put("policy", policy.split(" ")[0]).put("policy_text", policy).put("inputs", "all")
            .put("budgets", "from-grant").put("announcements", "charged").put("gpus", GPUS).put("tasks_max", TASKS)
            .put("contexts_max", CONTEXTS).put("preemptive", preemptive).put("optimistic", true)
            .put("unmanaged", "best-effort");
        ring.writeText(EventKind.START, nowNs, 0, 0, 0, 0, 0, 0, start.toString());
        anticipation = expected ? new JournaledAnticipation(ring, sizes, scheduler, random.nextLong()) : null;
        for (int c = 1; c <= CONTEXTS; c++) {
            openContext(c);
        }
        for (int t = 1; t <= TASKS; t++) {
            open(t);
        }
    }

    /** The last two contexts are of processes that never registered. */
    private static int contextOf(final int t) {
        return 1 + t % (CONTEXTS - 2);
    }

    private static int gpuOf(final int context) {
        return context % GPUS;
    }

    private void openContext(final int c) {
        final ContextKind kind = c > CONTEXTS - 2 ? ContextKind.UNMANAGED : ContextKind.MANAGED;
        scheduler.addContext(c, gpuOf(c), kind);
        ring.writeText(EventKind.CONTEXT_OPEN, nowNs, gpuOf(c), 0, c, 0, c, kind.ordinal(), "c" + c);
        record();
    }

    private void open(final int t) {
        final int c = contextOf(t);
        final int priority = t % 3 == 0 ? 0 : 9 * t;
        final OverrunAction action = OverrunAction.values()[t % OverrunAction.values().length];
        final int partition = c % 3;
        final long windowNs = t % 4 == 1 ? 2 * BUDGET_NS : 0;
        final long periodNs = JournaledAnticipation.declaredNs(t);
        scheduler.addTask(new TaskParameters(t, c, priority, 0, DEADLINE_NS, t % 2 * BUDGET_NS, true, action, windowNs,
            partition));
        if (anticipation != null) {
            anticipation.open(t, gpuOf(c), c, priority);
        }
        ring.writeText(EventKind.TASK_OPEN, nowNs, gpuOf(c), t, c, 0, priority, 0, "{\"name\":\"t" + t
            + "\",\"priority\":" + priority + ",\"gpu_priority\":" + priority + ",\"deadline_ns\":" + DEADLINE_NS
            + ",\"period_ns\":" + periodNs + ",\"budget_ns\":"
            + t % 2 * BUDGET_NS + ",\"window_ns\":" + windowNs + ",\"partition\":" + partition
            + ",\"on_overrun\":\"" + action.label() + "\",\"optimistic\":true}");
        ticket[t] = 0;
        record();
    }

    private void write(final EventKind kind, final int flags, final int t, final long of, final long arg0,
        final long arg1, final long arg2) {
        assertTrue(ring.write(kind, nowNs, gpuOf(contextOf(t)), flags, t, of, contextOf(t), 0, arg0, arg1, arg2));
        written++;
    }

    private void policy(final int context, final long arg0, final long arg1, final String text) {
        assertTrue(ring.writeText(EventKind.POLICY, nowNs, 0, 0, context, 0, arg0, arg1, text));
        record();
    }

    private void record() {
        if (anticipation != null) {
            anticipation.follow(nowNs);
        }
        final List<Later> all = List.copyOf(decided);
        decided.clear();
        all.forEach(later -> later.writes().run());
        if (anticipation != null) {
            anticipation.record(nowNs);
        }
    }

    /** One duty cycle of the dispatcher: the clock first, then some input. */
    void step() {
        final long stepNs = nowNs + random.nextLong(STEP_MAX_NS);
        nowNs = anticipation == null ? stepNs : Math.max(nowNs, Math.min(stepNs, anticipation.nextNs()));
        late = random.nextInt(5) == 0;
        if (scheduler.nextTimerNs() <= nowNs) {
            final long before = written;
            scheduler.onTimer(nowNs);
            ofTimer = true;
            record();
            ofTimer = false;
            if (written == before) {
                write(EventKind.TIMER, 0, 0, 0, 0, 0, 0);
            }
        }
        if (!toldLater.isEmpty() && random.nextBoolean()) {
            final long[] told = toldLater.remove(0);
            granted((int) told[0], told[1]);
        }
        if (anticipation == null) {
            draw(1 + random.nextInt(TASKS));
            return;
        }
        final int due = anticipation.due(nowNs);
        if (due > 0) {
            begin(due);
        } else if (due < 0) {
            end(-due, false);
        } else if (nowNs == stepNs) {
            draw(anticipation.other(TASKS));
        }
        anticipation.enforced(nowNs);
        if (anticipation.poll(nowNs)) {
            record();
        }
    }

    private void draw(final int t) {
        switch (random.nextInt(26)) {
            case 0, 1, 2, 3, 4, 5, 6 -> begin(t);
            case 7, 8, 9, 10, 11 -> end(t, false);
            case 12 -> end(t, true);
            case 13 -> setPolicy();
            case 14 -> {
                close(t);
                open(t);
            }
            case 15 -> setPriority(t);
            case 16 -> {
                final OverrunAction action = OverrunAction.values()[random.nextInt(OverrunAction.values().length)];
                scheduler.setOverrunAction(t, action, nowNs);
                policy(0, t, 0, "overrun of task " + t + " is " + action.label());
            }
            case 17 -> exchangeContext();
            case 18 -> changeKind();
            case 19, 20 -> applied();
            case 21 -> applied();
            case 22 -> policy(0, 0, 0, "resume hold-off 0 ns");   // an earlier daemon says so
            case 23 -> {
                final boolean keep = random.nextBoolean();
                scheduler.setKeepReady(keep, nowNs);
                policy(0, keep ? 1 : 0, 0, "keep ready " + keep);
            }
            case 24 -> {
                if (anticipation == null) {
                    share();
                } else {
                    anticipation.change(t, nowNs);
                    record();
                }
            }
            default -> share();
        }
    }

    private void setPolicy() {
        final String text = POLICIES.get(random.nextInt(POLICIES.size()));
        scheduler.setPolicy(READER.policyOf(text), nowNs);
        policy(0, 0, 0, "policy " + text);
    }

    private void setPriority(final int t) {
        final int priority = t % 3 == 0 ? 0 : 1 + random.nextInt(99);
        scheduler.setPriority(t, priority, 0, nowNs);
        if (anticipation != null) {
            anticipation.ranked(t, priority, nowNs);
        }
        write(EventKind.PRIORITY, 0, t, ticket[t], priority, 0, 0);
        record();
    }

    private void exchangeContext() {
        final int c = CONTEXTS;
        scheduler.removeContext(c, nowNs);
        assertTrue(ring.write(EventKind.CONTEXT_CLOSE, nowNs, gpuOf(c), 0, 0, 0, c, 0, c, 0, 0));
        record();
        openContext(c);
    }

    private void changeKind() {
        final int c = CONTEXTS - 1;
        final ContextKind kind = ContextKind.values()[random.nextInt(ContextKind.values().length)];
        scheduler.setContextKind(c, kind);
        assertTrue(ring.write(EventKind.CONTEXT_KIND, nowNs, gpuOf(c), 0, 0, 0, c, 0, c, kind.ordinal(), 0));
        record();
    }

    /** The enforcer is another thread: it may be done after the cycle began. */
    private void applied() {
        final int c = 1 + random.nextInt(CONTEXTS);
        final boolean on = random.nextBoolean();
        final long tookNs = random.nextLong(MS / 2);
        final long doneNs = nowNs - MS / 4 + random.nextLong(MS / 2);
        assertTrue(ring.write(on ? EventKind.ENABLE : EventKind.DISABLE, Math.max(nowNs, doneNs), gpuOf(c), 0, 0, 0, c,
            0, doneNs - tookNs, tookNs, nowNs));
        scheduler.onApplied(c, on, doneNs, nowNs);
        record();
    }

    private void share() {
        if (!shares) {
            return;
        }
        final int c = 1 + random.nextInt(CONTEXTS);
        final int group = random.nextInt(3) == 0 ? 1 : scheduler.ownGroup(c);
        switch (random.nextInt(4)) {
            case 0 -> {
                final int weight = random.nextBoolean() ? SegmentScheduler.WEIGHT_DEFAULT : 50 + random.nextInt(500);
                scheduler.setWeight(group, weight, nowNs);
                policy(0, group, weight, "group " + group + " weight " + weight);
            }
            case 1 -> {
                final long periodNs = 2 * MS + random.nextInt(5) * MS;
                final long quotaNs = random.nextBoolean() ? 0 : 1 + random.nextLong(periodNs);
                scheduler.setCap(group, quotaNs, periodNs, nowNs);
                policy(0, group, quotaNs, quotaNs == 0 ? "group " + group + " no cap"
                    : "group " + group + " cap " + quotaNs + " ns of " + periodNs + " ns");
            }
            case 2 -> {
                final int joined = random.nextBoolean() ? SegmentScheduler.NONE : 1;
                if (scheduler.setGroup(c, joined, nowNs)) {
                    policy(c, joined, 0, "context " + c + " group " + joined);
                }
            }
            default -> {
                final Sharing how = Sharing.values()[random.nextInt(Sharing.values().length)];
                final long quantumNs = MS + random.nextLong(3 * MS);
                scheduler.setSharing(how, quantumNs, nowNs);
                policy(0, how.ordinal(), quantumNs, "sharing " + how.name().toLowerCase(Locale.ROOT) + " quantum "
                    + quantumNs + " ns");
            }
        }
    }

    private void close(final int t) {
        if (anticipation != null) {
            anticipation.close(t, nowNs);
        }
        scheduler.removeTask(t, nowNs);
        if (anticipation != null) {
            anticipation.closed(t, nowNs);
        }
        decided.removeIf(later -> later.task() == t);
        toldLater.removeIf(told -> told[0] == t);
        write(EventKind.TASK_CLOSE, 0, t, 0, 0, 0, 0);
        record();
    }

    private void begin(final int t) {
        if (scheduler.state(t) != SegmentState.IDLE) {
            return;   // refused: the daemon closes the task; here the scheduler's clock would go on unseen
        }
        final boolean optimistic = scheduler.isPregranted(t) && random.nextBoolean();
        final long next = ticket[t] + 1;
        final int outcome = scheduler.begin(t, next, nowNs - 1, 0, optimistic, nowNs - 1, nowNs);
        if (anticipation != null && (outcome == Outcome.ACCEPTED || outcome == Outcome.SKIPPED)) {
            anticipation.begin(t, nowNs);
        }
        if (outcome == Outcome.ACCEPTED) {
            ticket[t] = next;
            write(EventKind.BEGIN, optimistic ? Abi.FLAG_OPTIMISTIC : 0, t, next, nowNs - 1, nowNs - 1,
                scheduler.deadlineNs(t));
        } else if (outcome == Outcome.SKIPPED) {
            ticket[t] = next;
            write(EventKind.BEGIN, 0, t, next, nowNs - 1, nowNs - 1, 0);
            write(EventKind.CANCEL, 0, t, next, nowNs, 0, 0);
        }
        record();
        if (anticipation != null && outcome == Outcome.ACCEPTED) {
            anticipation.learn(t, nowNs - 1, nowNs);
        }
    }

    private void end(final int t, final boolean cancelled) {
        if (scheduler.state(t) != SegmentState.IDLE) {
            scheduler.end(t, ticket[t], nowNs);
            if (anticipation != null) {
                anticipation.end(t, nowNs);
            }
            toldLater.removeIf(told -> told[0] == t);
            write(cancelled ? EventKind.CANCEL : EventKind.END, 0, t, ticket[t], nowNs, 0, 0);
        }
        record();
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        // not journaled
    }

    @Override
    public void onPregrant(final int taskId, final boolean pregranted) {
        // not journaled
    }

    @Override
    public void onPreempt(final int gpu, final int t, final long of, final int by) {
        decided.add(new Later(t, () -> write(EventKind.PREEMPT, 0, t, of, Math.max(0, by), 0, 0)));
    }

    @Override
    public void onResume(final int gpu, final int t, final long of) {
        decided.add(new Later(t, () -> write(EventKind.RESUME, 0, t, of, 0, 0, 0)));
    }

    @Override
    public void onGrant(final int gpu, final int t, final long of) {
        final boolean waits = late && preemptive;
        decided.add(new Later(t, () -> {
            if (waits) {
                write(EventKind.DECIDED, 0, t, of, 0, 0, 0);
                toldLater.add(new long[] {t, of});
            } else {
                granted(t, of);
            }
        }));
    }

    /** The dispatcher reads its clock again after an answer, unless its timer decided. */
    private void granted(final int t, final long of) {
        final long cycleNs = nowNs;
        nowNs += ofTimer ? 0 : random.nextLong(MS / 2);
        write(EventKind.GRANT, 0, t, of, 0, 0, 0);
        scheduler.onGiven(t, of, nowNs);
        nowNs = cycleNs;
    }

    @Override
    public void onDeadlineMiss(final int t, final long of, final long deadlineNs) {
        decided.add(new Later(t, () -> write(EventKind.MISS, 0, t, of, deadlineNs, 0, 0)));
    }

    @Override
    public void onOverrun(final int t, final long of, final long budgetNs) {
        decided.add(new Later(t, () -> {
            write(EventKind.OVERRUN, 0, t, of, budgetNs, 0, 0);
            if (scheduler.ticket(t) != of) {   // the gate ended it
                toldLater.removeIf(told -> told[0] == t);
                write(EventKind.FORCED_END, 0, t, of, 0, 0, 0);
            }
        }));
    }
}

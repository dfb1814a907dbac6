/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Tells the scheduler of the core what the daemon's was told, and compares what it decides. Every grant, preemption,
 * resumption, missed deadline and used-up budget must come in the same order with the same values, and so must what was
 * decided about expected begins: a journal has no chains, cycles and periods that were learned, but all begins, ends
 * and costs from which the core learns them again. Which contexts are wanted on and which tasks are pre-granted is
 * decided again too, but is not in a journal and so is not compared.
 *
 * <p>All policies, weights, caps and their changes are replayed from journals whose START says {@code inputs: all}
 * (since ABI 1.2: such a journal tells when the scheduler looked at the clock, and when it learned what the hardware
 * did). A GRANT is an input, too, if START says {@code budgets: from-grant}: they count from then on. Older ones hold
 * enough for policies without parameters only; what else they hold ends the replay.
 *
 * <p>A replay begins with the start of a daemon and ends where events are missing. One thread.
 */
public final class DecisionReplay implements DecisionSink {
    private static final String INTERRUPT = "interrupt";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int DIFFERENCES_MAX = 20;
    /** Daemons that could leave best-effort contexts disabled for longer wrote this; what they decided is the same. */
    private static final String NO_HOLD_OFF = "resume hold-off 0 ns";

    /**
     * What came of it.
     *
     * @param inputs      events given to the scheduler
     * @param decisions   decisions compared
     * @param differences what did not agree, at most 20 lines; nothing is compared after the first
     * @param incomplete  why not everything was replayed, empty if it was
     */
    public record Result(long inputs, long decisions, List<String> differences, String incomplete) {
        /** Whether all of it was replayed and agreed. */
        public boolean agrees() {
            return differences.isEmpty() && incomplete.isEmpty();
        }
    }

    private record Decision(EventKind kind, int task, long ticket, long argument) {
    }

    private final Deque<Decision> expected = new ArrayDeque<>();
    private final Map<Integer, Long> decided = new HashMap<>();
    private static final Pattern CAP = Pattern.compile("group -?\\d+ (?:no cap|cap \\d+ ns of (\\d+) ns)");

    private final PolicyReader policies;
    private final List<String> differences = new ArrayList<>();
    private SegmentScheduler scheduler;
    private AnticipationReplay anticipation;
    private String incomplete = "";
    private boolean stopped;
    private boolean allInputs;
    private long lastSeq;
    private long inputs;
    private long decisions;

    private DecisionReplay(final PolicyReader policies) {
        this.policies = policies;
    }

    /**
     * Replays a source.
     *
     * @param source recording or journal
     * @return the result
     * @throws IOException if it cannot be read
     */
    public static Result of(final Source source) throws IOException {
        return of(source, new PolicyReader(PolicyCatalog.builtIn()));
    }

    /**
     * Replays a source in which policies of other catalogues decided.
     *
     * @param source   recording or journal
     * @param policies reads what it says of them
     * @return the result
     * @throws IOException if it cannot be read
     */
    public static Result of(final Source source, final PolicyReader policies) throws IOException {
        final DecisionReplay replay = new DecisionReplay(policies);
        source.forEach(replay::add);
        replay.finish();
        if (replay.scheduler == null && replay.incomplete.isEmpty()) {
            replay.incomplete = "the start of the daemon is not in it; record with --all";
        }
        return new Result(replay.inputs, replay.decisions, replay.differences, replay.incomplete);
    }

    private void finish() {
        // a daemon that was killed, or a recording that ends meanwhile, may lack what followed from the last input
        if (stopped && !expected.isEmpty() && differences.isEmpty() && incomplete.isEmpty()) {
            differences.add("at the end the scheduler decided " + expected.peek() + ", the daemon did not");
        } else if (stopped && differences.isEmpty() && incomplete.isEmpty()) {
            anticipation.left().ifPresent(differences::add);
        }
    }

    private void add(final JournalEvent event) {
        if (event.kind() == EventKind.START) {
            finish();
            expected.clear();
            decided.clear();
            lastSeq = 0;
            stopped = false;
            if (incomplete.isEmpty()) {
                scheduler = scheduler(event);
            }
        }
        if (scheduler == null || !incomplete.isEmpty() || !differences.isEmpty()) {
            return;
        }
        if (event.seq() != lastSeq + 1) {
            incomplete = "events are missing before number " + event.seq() + "; what follows cannot be replayed";
            return;
        }
        lastSeq = event.seq();
        stopped = event.kind() == EventKind.STOP;
        if (event.kind() == null) {
            incomplete = "event " + event.seq() + " is of kind " + event.kindCode() + ", which this program does not "
                + "know; use the one that recorded it";
            return;
        }
        apply(event);
    }

    private SegmentScheduler scheduler(final JournalEvent event) {
        final JsonNode config = json(event);
        if (!config.has("preemptive")) {
            incomplete = "the journal was written by an older daemon, whose START event lacks the inputs";
            return null;
        }
        allInputs = "all".equals(config.path("inputs").asText());
        final String name = config.path("policy").asText();
        if (!allInputs && !isComplete(name)) {
            incomplete = "policy " + name + " cannot be replayed from the journal of an older daemon, which does not "
                + "say its parameters";
            return null;
        }
        final Policy policy = policyOf(event, config.path("policy_text").asText().isEmpty() ? name
            : config.path("policy_text").asText());
        if (policy == null) {
            return null;
        }
        inputs++;
        final SchedulerConfig sizes = new SchedulerConfig(policy,
            config.path("gpus").asInt(), config.path("tasks_max").asInt(), config.path("contexts_max").asInt(),
            config.path("preemptive").asBoolean(), config.path("optimistic").asBoolean(),
            "allow".equals(config.path("unmanaged").asText()) ? Unmanaged.ALLOW : Unmanaged.BEST_EFFORT);
        final SegmentScheduler made = new SegmentScheduler(sizes, this);
        if ("from-grant".equals(config.path("budgets").asText())) {
            made.countFromGrants();
        }
        if ("charged".equals(config.path("announcements").asText())) {
            made.chargeHints();
        }
        anticipation = new AnticipationReplay(sizes, made);
        return made;
    }

    /** Whether the name says all of a policy: journals of older daemons say no more. */
    private static boolean isComplete(final String policy) {
        return PolicyCatalog.builtIn().find(policy).filter(row -> row.parameters().isEmpty()).isPresent();
    }

    private static JsonNode json(final JournalEvent event) {
        try {
            return JSON.readTree(event.text());
        } catch (final JsonProcessingException e) {
            throw new IllegalArgumentException("event " + event.seq() + ": its text is not JSON: "
                + e.getOriginalMessage() + "; was the file changed?", e);
        }
    }

    /** Journals of earlier versions say it for each task; the other strategies are gone. */
    private static void requireInterrupt(final String strategy) {
        if (!INTERRUPT.equals(strategy)) {
            throw new IllegalArgumentException("the journal has a task of strategy " + strategy + ", which only gpuseg "
                + "0.1.0 snapshots had; replay it with the version that wrote it");
        }
    }

    private void apply(final JournalEvent e) {
        inputs++;
        switch (e.kind()) {
            case CONTEXT_OPEN -> scheduler.addContext(e.contextId(), e.gpu(), kind(e));
            case CONTEXT_KIND -> scheduler.setContextKind(e.contextId(), kind(e));
            case CONTEXT_CLOSE -> scheduler.removeContext(e.contextId(), e.timeNs());
            case TASK_OPEN -> {
                final JsonNode a = json(e);
                requireInterrupt(a.path("strategy").asText(INTERRUPT));
                scheduler.addTask(new TaskParameters(e.taskId(), e.contextId(), a.path("priority").asInt(),
                    a.path("gpu_priority").asInt(), a.path("deadline_ns").asLong(), a.path("budget_ns").asLong(),
                    a.path("optimistic").asBoolean(), OverrunAction.named(a.path("on_overrun").asText()),
                    a.path("window_ns").asLong(), a.path("partition").asInt(), a.path("share_account").asInt(),
                    a.path("reserve").asInt() > 0));
                anticipation.open(e, a);
            }
            case TASK_CLOSE -> {
                final int before = expected.size();
                anticipation.close(e);
                scheduler.removeTask(e.taskId(), e.timeNs());
                forgetAfter(before, e.taskId());
                anticipation.closed(e);
                decided.remove(e.taskId());
            }
            case BEGIN -> {
                anticipation.begin(e);
                if (scheduler.begin(e.taskId(), e.ticket(), e.arg1(), e.arg2(),
                    (e.flags() & Abi.FLAG_OPTIMISTIC) != 0, e.arg0(), e.timeNs()) == Outcome.ACCEPTED) {
                    anticipation.learn(e);
                }
            }
            case FORCED_END -> scheduler.end(e.taskId(), e.ticket(), e.timeNs());
            case END, CANCEL -> {
                if (scheduler.end(e.taskId(), e.ticket(), e.timeNs()) == Outcome.ACCEPTED) {
                    anticipation.end(e);
                }
            }
            case PRIORITY -> {
                scheduler.setPriority(e.taskId(), (int) e.arg0(), (int) e.arg1(), e.timeNs());
                if (!scheduler.isReserved(e.taskId())) {
                    anticipation.priority(e);
                }
            }
            case HINT -> anticipation.hint(e);
            case ANTICIPATE -> anticipated(e);
            case POLICY -> {
                if (e.taskId() == 0) {
                    policy(e);
                }
            }
            case TIMER -> scheduler.onTimer(e.timeNs());
            case DISABLE, ENABLE -> {
                if (allInputs) {
                    scheduler.onApplied(e.contextId(), e.kind() == EventKind.ENABLE, e.arg0() + e.arg1(), e.arg2());
                }
            }
            default -> {
                inputs--;
                decision(e);
                return;
            }
        }
        anticipation.follow(e.kind() == EventKind.DISABLE || e.kind() == EventKind.ENABLE ? e.arg2() : e.timeNs());
    }

    private void anticipated(final JournalEvent e) {
        if (anticipation.event(e)) {
            inputs--;
            decisions++;
            if (anticipation.isDone()) {
                lookAtTheClock(e.timeNs());
            }
            anticipation.compare(e).ifPresent(differences::add);
        }
    }

    private Policy policyOf(final JournalEvent e, final String text) {
        try {
            return policies.policyOf(text);
        } catch (final IllegalArgumentException x) {
            incomplete = "event " + e.seq() + " cannot be replayed: " + x.getMessage()
                + (policies.catalog().find(text.split(" ", 2)[0]).isPresent() ? ""
                : "; a policy from a jar is replayed with that jar, see --policy-jar");
            return null;
        }
    }

    private void policy(final JournalEvent e) {
        if (!allInputs) {
            policyOfAnOlderDaemon(e);
            return;
        }
        final String text = e.text();
        final Matcher cap = CAP.matcher(text);
        if (text.startsWith("policy ")) {
            final Policy policy = policyOf(e, text.substring("policy ".length()));
            if (policy != null) {
                scheduler.setPolicy(policy, e.timeNs());
            }
        } else if (text.startsWith("context ")) {
            scheduler.setGroup(e.contextId(), (int) e.arg0(), e.timeNs());
        } else if (cap.matches()) {
            scheduler.setCap((int) e.arg0(), e.arg1(), e.arg1() == 0 ? 0 : Long.parseLong(cap.group(1)), e.timeNs());
        } else if (text.startsWith("share of account ")) {
            scheduler.setShare((int) e.arg0(), (int) e.arg1(), e.timeNs());
        } else if (text.startsWith("group ")) {
            scheduler.setWeight((int) e.arg0(), (int) e.arg1(), e.timeNs());
        } else if (text.startsWith("sharing ")) {
            scheduler.setSharing(Sharing.values()[(int) e.arg0()], e.arg1(), e.timeNs());
        } else if (text.startsWith("strategy ")) {
            requireInterrupt(text.replaceFirst(".* ", ""));
        } else if (text.startsWith("keep ready ")) {
            scheduler.setKeepReady(e.arg0() == 1, e.timeNs());
        } else if (text.startsWith("overrun ")) {
            scheduler.setOverrunAction((int) e.arg0(), OverrunAction.named(text.replaceFirst(".* ", "")), e.timeNs());
        } else if (!text.startsWith("settings ") && !text.equals(NO_HOLD_OFF) && !anticipation.policy(e)) {
            incomplete = "event " + e.seq() + " changes what this program does not know: \"" + text
                + "\"; use the one that recorded it";
        }
    }

    /** Its journal lacks when turns were handed over, and which weights tasks brought with them. */
    private void policyOfAnOlderDaemon(final JournalEvent e) {
        final String name = e.text().startsWith("policy ") ? e.text().substring("policy ".length()) : "";
        if (isComplete(name)) {
            scheduler.setPolicy(PolicyCatalog.builtIn().create(name), e.timeNs());
        } else if (e.text().startsWith("context ")) {
            scheduler.setGroup(e.contextId(), (int) e.arg0(), e.timeNs());
        } else {
            incomplete = "event " + e.seq() + " changes what cannot be replayed from the journal of an older daemon: \""
                + e.text() + "\"";
        }
    }

    private static ContextKind kind(final JournalEvent e) {
        return ContextKind.values()[(int) e.arg1()];
    }

    /** Decisions about a task in the event that closes it are not delivered. */
    private void forgetAfter(final int count, final int task) {
        final List<Decision> all = new ArrayList<>(expected);
        expected.clear();
        for (int i = 0; i < all.size(); i++) {
            if (i < count || all.get(i).task() != task) {
                expected.add(all.get(i));
            }
        }
    }

    /** Is no event of its own where something was decided: the decision tells of it. */
    private void lookAtTheClock(final long nowNs) {
        scheduler.onTimer(nowNs);
        anticipation.follow(nowNs);
    }

    private void decision(final JournalEvent e) {
        final Decision seen;
        switch (e.kind()) {
            case DECIDED -> {
                decided.put(e.taskId(), e.ticket());
                seen = new Decision(EventKind.GRANT, e.taskId(), e.ticket(), 0);
            }
            case GRANT -> {
                if (decided.getOrDefault(e.taskId(), -1L) == e.ticket()) {
                    decided.remove(e.taskId());
                    scheduler.onGiven(e.taskId(), e.ticket(), e.timeNs());
                    return;   // told now; decided before
                }
                seen = new Decision(EventKind.GRANT, e.taskId(), e.ticket(), 0);
            }
            case PREEMPT, MISS, OVERRUN, SHARE -> seen = new Decision(e.kind(), e.taskId(), e.ticket(), e.arg0());
            case RESUME -> seen = new Decision(e.kind(), e.taskId(), e.ticket(), 0);
            default -> {
                return;   // neither told to the scheduler nor decided by it
            }
        }
        if (expected.isEmpty()) {
            lookAtTheClock(e.timeNs());
        }
        final Decision due = expected.poll();
        decisions++;
        if (!seen.equals(due) && differences.size() < DIFFERENCES_MAX) {
            differences.add("event " + e.seq() + ": the daemon decided " + seen + ", the scheduler "
                + (due == null ? "nothing" : due.toString()));
        }
        if (e.kind() == EventKind.GRANT) {
            scheduler.onGiven(e.taskId(), e.ticket(), e.timeNs());
        }
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        // not in a journal: DISABLE and ENABLE are what the hardware did later
    }

    @Override
    public void onPreempt(final int gpu, final int taskId, final long ticket, final int byTaskId) {
        expected.add(new Decision(EventKind.PREEMPT, taskId, ticket, Math.max(0, byTaskId)));
    }

    @Override
    public void onResume(final int gpu, final int taskId, final long ticket) {
        expected.add(new Decision(EventKind.RESUME, taskId, ticket, 0));
    }

    @Override
    public void onGrant(final int gpu, final int taskId, final long ticket) {
        expected.add(new Decision(EventKind.GRANT, taskId, ticket, 0));
    }

    @Override
    public void onPregrant(final int taskId, final boolean pregranted) {
        // a word in a session, not in a journal
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long ticket, final long deadlineNs) {
        expected.add(new Decision(EventKind.MISS, taskId, ticket, deadlineNs));
    }

    @Override
    public void onShare(final int taskId, final boolean spent) {
        expected.add(new Decision(EventKind.SHARE, taskId, 0, spent ? 1 : 0));
    }

    @Override
    public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
        expected.add(new Decision(EventKind.OVERRUN, taskId, ticket, budgetNs));
    }
}

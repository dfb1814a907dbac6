/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.ResultWriter;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.ChainAnalysis;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.analysis.rta.LeastBudgets;
import dev.gpuseg.analysis.rta.Model;
import dev.gpuseg.analysis.rta.SharedClasses;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TimePartitioned;
import dev.gpuseg.analysis.rta.TurnSlices;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.daemon.conductor.AdmissionControl;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/**
 * Admits a task if the sound analysis of the running policy proves every deadline of what is admitted together with it.
 * Tasks of the file that use the CPU only never register: they are always part of the set.
 *
 * <p>After a restart the places of the tasks that were admitted before are kept for a while, so that a newcomer cannot
 * take them: for a task of the same name and user. Places that no task has claimed by then are given up.
 *
 * <p>Thread-safe; a call may take as long as an analysis. Never called on the dispatcher's thread.
 */
public final class ProvenAdmission implements AdmissionControl {
    private static final int REMEMBERED = 16;
    private static final long SAY_EVERY_NS = 1_000_000_000L;
    private static final ObjectMapper JSON = new ObjectMapper();

    /** What was refused, or admitted without proof. */
    private record Incident(long timeNs, int uid, String name, String text, Prospect prospect) {
    }

    /**
     * What was found for a set.
     *
     * @param prospect by the bounds that run
     * @param other    by the others; null if nobody states turns
     * @param turns    whether begins are by turns
     * @param crossing what jobs in progress pay for this change; null if there are none
     */
    private record Verdict(Prospect prospect, Prospect other, boolean turns, Crossing crossing) {
    }

    /** A task whose begins were by turns when they changed to calls, while it was open: theorem 17. */
    private record Crossing(int clientId, String name, long waitNs, long untilNs) {
        boolean isOf(final Admitted task) {
            return task.clientId() == clientId && task.request().name().equals(name);
        }
    }

    private final AdmissionSettings settings;
    private final Capabilities capabilities;
    /** Why this daemon takes no turns; empty if it can. */
    private final String noTurns;
    private final AdmittedFile file;
    private final LongSupplier clockNs;
    private final TaskModels models;
    private final List<Admitted> tasks = new ArrayList<>();
    private final Deque<Incident> incidents = new ArrayDeque<>();
    private Policy policy;
    /** Overrun actions that administrators set, by the name of the task. */
    private Map<String, OverrunAction> overrunRules = Map.of();
    private SoundAnalysis sound;
    private Prospect current;
    /** What the bounds that do not run say of what is open; null if nobody states turns. */
    private Prospect other;
    /** Whether begins are proven by turns. */
    private boolean takesTurns;
    private Crossing crossing;
    /** Null where the daemon does as it likes. */
    private TurnsControl control;
    /** The device may not follow the last change yet. */
    private boolean changes;
    /** Where the bounds of open tasks stand; null before the dispatcher is there. */
    private PromisedBounds promised;
    private final Set<Integer> promisedTo = new HashSet<>();
    private long saidBroken;
    private long saidConstants;
    /** Some set since the last time without tasks was not proven. */
    private boolean unproven;
    private long refused;
    private long warned;
    private long dropped;
    private long saidNs = Long.MIN_VALUE / 2;
    private String fileFailure = "";

    /**
     * Starts with the places of the tasks that an earlier daemon had admitted.
     *
     * @param settings     mode other than off
     * @param policy       what decides, with its parameters
     * @param capabilities of the mechanism
     * @param gpus         number of GPUs that the daemon drives
     * @param state        file of the admitted tasks
     * @param clockNs      CLOCK_MONOTONIC, ns
     * @throws IllegalArgumentException if admission is to be enforced and cannot be, with one line of why
     */
    public ProvenAdmission(final AdmissionSettings settings, final Policy policy, final Capabilities capabilities,
        final int gpus, final Path state, final LongSupplier clockNs) {
        this(settings, policy, capabilities, gpus, state, clockNs, "this daemon takes no turns");
    }

    /**
     * The same for a daemon that may take turns.
     *
     * @param settings     mode other than off
     * @param policy       what decides, with its parameters
     * @param capabilities of the mechanism
     * @param gpus         number of GPUs that the daemon drives
     * @param state        file of the admitted tasks
     * @param clockNs      CLOCK_MONOTONIC, ns
     * @param noTurns      why best effort takes no turns, one line; empty if it can
     * @throws IllegalArgumentException if admission is to be enforced and cannot be, with one line of why
     */
    public ProvenAdmission(final AdmissionSettings settings, final Policy policy, final Capabilities capabilities,
        final int gpus, final Path state, final LongSupplier clockNs, final String noTurns) {
        this.noTurns = noTurns;
        this.settings = settings;
        this.policy = policy;
        this.clockNs = clockNs;
        this.capabilities = capabilities;
        file = new AdmittedFile(state);
        models = new TaskModels(settings);
        sound = soundOn(policy, capabilities, settings.waitMode(), settings.cores());
        final String impossible = impossible(gpus);
        if (impossible != null && settings.mode() == AdmissionMode.ENFORCE) {
            throw new IllegalArgumentException("--admission enforce: " + impossible);
        } else if (impossible != null) {
            say(impossible);
        }
        load();
        adopt(decide(sound, tasks));
    }

    private String impossible(final int gpus) {
        if (!sound.exists()) {
            return sound.reason();
        }
        if (settings.platform().gpus().size() < gpus) {
            return "the platform describes " + settings.platform().gpus().size() + " GPUs, the daemon drives " + gpus
                + "; add the others under gpus, or use --gpus " + settings.platform().gpus().size();
        }
        for (final var gpu : settings.platform().gpus()) {
            if (capabilities.level() >= Capabilities.DEACTIVATE && gpu.epsilonNs() < capabilities.disableNs()) {
                return "epsilon is " + Durations.format(gpu.epsilonNs()) + ", less than the "
                    + Durations.format(capabilities.disableNs()) + " that one disable of this mechanism takes; measure "
                    + "epsilon on this machine";
            }
        }
        if (settings.declared() != null) {
            try {
                sound.analysis().analyse(settings.declared());
            } catch (final InvalidModelException e) {
                return "task-set file: " + e.getMessage();
            }
        }
        final Prospect cpuOnly = judge(sound, List.of());
        return cpuOnly.proven() ? null : "the CPU-only tasks of the task-set file alone: "
            + Refusal.text(cpuOnly, null);
    }

    private void load() {
        if (settings.graceNs() == 0) {
            return;
        }
        final List<Admitted> places = new ArrayList<>();
        try {
            for (final Admitted place : file.read(clockNs.getAsLong() + settings.graceNs())) {
                final Admitted.Source source = source(place);
                if (source == Admitted.Source.UNKNOWN || source == Admitted.Source.DECLARED
                    && models.mismatch(place.request(), byPriority(), byDeadline()) != null) {
                    dropped++;
                } else {
                    places.add(place.withSource(source));
                }
            }
        } catch (final IOException e) {
            fileFailure = e.getMessage();
            say(e.getMessage());
            return;
        }
        if (sound.exists() && decide(sound, places).prospect().proven()) {
            tasks.addAll(places);
        } else if (!places.isEmpty()) {
            dropped += places.size();
            say("the " + places.size() + " tasks that were admitted before are not schedulable with the present "
                + "settings; no place is kept for them");
        }
    }

    // ---- what the conductor asks ----------------------------------------------------------------------------------

    @Override
    public synchronized String refuse(final TaskOpen request, final Client client) {
        expire();
        Admitted newcomer = new Admitted(request, client.uid(), client.clientId(), client.pid(), 0,
            request.priority(), request.gpuPriority(), Admitted.Source.UNKNOWN, 0);
        newcomer = newcomer.withSource(source(newcomer));
        final Admitted place = placeOf(newcomer);
        final List<Admitted> others = new ArrayList<>(tasks);
        others.remove(place);
        final List<Admitted> all = new ArrayList<>(others);
        all.add(newcomer);
        Verdict verdict = null;
        Prospect prospect = null;
        String why = conflict(newcomer, others);
        if (why == null) {
            verdict = decide(sound, all);
            prospect = verdict.prospect();
            why = prospect.proven() ? null : Refusal.text(prospect, nameInSet(newcomer, all),
                prospect.problem().isEmpty() ? Boosts.advice(prospect, sound.boosted(), all, settings.declared()) : "")
                + ofOther(verdict, nameInSet(newcomer, all));
        }
        if (why != null) {
            incident(newcomer, why, prospect);
            if (settings.mode() == AdmissionMode.ENFORCE) {
                refused++;
                return why;
            }
            warned++;
            say("not proven: " + why);
        }
        tasks.clear();
        tasks.addAll(others);
        tasks.add(prospect == null ? newcomer.withSource(Admitted.Source.UNKNOWN) : newcomer);
        adopt(prospect == null ? decide(sound, tasks) : verdict);
        save();
        return null;
    }

    /**
     * Where the bounds of what is admitted stand, and what comes of them. Before the first client.
     *
     * @param bounds by task
     */
    public synchronized void promise(final PromisedBounds bounds) {
        promised = bounds;
        bounds.constants(settings.platform().gpus().stream().mapToLong(Gpu::alphaNs).toArray(),
            settings.platform().gpus().stream().mapToLong(Gpu::epsilonNs).toArray());
        judged(current);
    }

    /**
     * Where the daemon is told whether begins are by turns; at first they are not. Before the first client.
     *
     * @param turns takes turns, or not
     */
    public synchronized void control(final TurnsControl turns) {
        control = turns;
        if (takesTurns) {
            tell(current);
        }
    }

    /**
     * Which bounds run. Where no real-time task is open, those by turns if they hold, as these measure better, unless
     * those by calls hold, too, and the file declares more tasks with windows, which will need calls. Beside an open
     * task begins change from turns to calls only, and the job in progress must keep its deadline (theorem 17).
     */
    private Verdict decide(final SoundAnalysis plain, final List<Admitted> admitted) {
        final TurnProof proof = TurnProof.of(settings, plain, policy, noTurns);
        final Prospect calls = judge(plain, admitted);
        if (!takesTurns && (!proof.isStated() || !plain.exists())) {
            return new Verdict(calls, null, false, crossing);
        }
        final Prospect turns = !proof.isStated() ? Prospect.unproven(null, "the platform states no turns")
            : judgeTurns(proof, plain, admitted);
        final Admitted open = tasks.stream().filter(task -> task.isRealTime() && !task.isKept()
            && admitted.stream().anyMatch(same -> isOf(same, task.clientId(), task.request().name())))
            .findFirst().orElse(null);
        final boolean anyRealTime = admitted.stream().anyMatch(Admitted::isRealTime);
        if (proof.together() != null && anyRealTime && (open == null ? turns.proven() : takesTurns)) {
            // what is open changes neither bounds nor slices; no other bounds could follow
            return new Verdict(turns, calls, true, null);
        }
        if (open == null || !takesTurns) {
            final boolean chosen = open == null && anyRealTime && turns.proven()
                && !(calls.proven() && awaitsMore(admitted));
            return new Verdict(chosen ? turns : calls, chosen ? calls : turns, chosen, open == null ? null : crossing);
        }
        if (turns.proven() && anyRealTime) {
            return new Verdict(turns, calls, true, null);
        }
        if (!plain.turns()) {
            return new Verdict(Prospect.unproven(plain.analysis(), "begins of task \"" + open.request().name()
                + "\" are by turns, and their change to policy " + policy.name() + " has no sound analysis; close it "
                + "first"), turns, false, null);
        }
        final Crossing crossed = crossing(open);
        return new Verdict(judge(plain, admitted, crossed), turns, false, crossed);
    }

    /** What its job in progress pays; counted for as long as a job can meet one that it delayed. */
    private Crossing crossing(final Admitted open) {
        final long longestNs = current.set().tasks().stream().mapToLong(Task::deadlineNs).max().orElse(0);
        return new Crossing(open.clientId(), open.request().name(),
            TurnSlices.waitNs(current.set(), nameInSet(open, tasks)), clockNs.getAsLong() + 2 * longestNs);
    }

    /** Whether the file declares a task with windows that is not open and will need calls. */
    private boolean awaitsMore(final List<Admitted> admitted) {
        return settings.declared().tasks().stream().anyMatch(task -> !task.bestEffort() && task.gpuSegmentCount() > 0
            && admitted.stream().noneMatch(open -> open.request().name().equals(task.name())));
    }

    private Prospect judgeTurns(final TurnProof proof, final SoundAnalysis plain, final List<Admitted> admitted) {
        final String conflict = proof.conflict(admitted);
        return conflict.isEmpty() ? proof.checked(judgeBy(proof.analysis(), false, admitted, crossing,
            proof.together() != null), admitted)
            : Prospect.unproven(proof.analysis(), conflict);
    }

    /** What the other bounds say, after a refusal by those that would run. */
    private String ofOther(final Verdict verdict, final String newcomer) {
        final String text = verdict.other() == null || verdict.other().analysis() == null ? ""
            : "; by turns: " + Refusal.text(verdict.other(), newcomer)
            + (verdict.other().set() != null && settings.platform().limits().turns().together()
            ? "; counted is all that the file declares (turns: together)" : "");
        return text + (takesTurns && verdict.crossing() != null ? "; counted is a job of \""
            + verdict.crossing().name() + "\" that began by turns: open it after this task, not before" : "");
    }

    private void adopt(final Verdict verdict) {
        other = verdict.other();
        crossing = verdict.crossing();
        final boolean isNew = verdict.turns() != takesTurns;
        takesTurns = verdict.turns();
        if (isNew && control != null) {
            tell(verdict.prospect());
        }
        judged(verdict.prospect());
    }

    private void tell(final Prospect prospect) {
        changes = true;
        control.take(takesTurns, takesTurns ? TurnProof.of(settings, sound, policy, noTurns).slicesNs() : Map.of(),
            "admission " + (takesTurns ? "by turns: " : "by calls: ")
            + TurnProof.text(prospect.analysis(), settings.platform()));
    }

    /** What the bounds that do not run say; empty if nobody states turns. */
    private String otherSays() {
        if (other == null) {
            return "";
        }
        final String by = takesTurns ? "calls" : "turns";
        if (other.proven()) {
            return "proven by " + by + ", too: " + TurnProof.text(other.analysis(), settings.platform());
        }
        return "not proven by " + by + ": " + (other.problem().isEmpty() ? "the bound of "
            + other.set().tasks().stream().filter(task -> !task.bestEffort()
                && other.result().boundOf(other.set(), task.name()) == null)
            .map(task -> '"' + task.name() + '"').collect(Collectors.joining(", ")) + " is above the deadline"
            : other.problem());
    }

    /**
     * From now on this is what is known of the set. One without proof promises nothing, nor does what follows it, since
     * its jobs delay others, until no task is open.
     */
    private void judged(final Prospect now) {
        current = now;
        unproven = !tasks.isEmpty() && (unproven || !isProven());
        if (promised == null) {
            return;
        }
        final Set<Integer> before = new HashSet<>(promisedTo);
        promisedTo.clear();
        final boolean proven = !unproven && now.result() != null;
        for (final Admitted task : tasks) {
            final Long boundNs = task.taskId() == 0 || !task.isRealTime() || !proven ? null
                : now.result().boundOf(now.set(), nameInSet(task, tasks));
            if (boundNs != null) {
                promised.promise(task.taskId(), boundNs);
                promisedTo.add(task.taskId());
            }
        }
        before.removeAll(promisedTo);
        before.forEach(promised::withdraw);
    }

    private boolean isProven() {
        return current.proven() && tasks.stream().noneMatch(task -> task.source() == Admitted.Source.UNKNOWN);
    }

    /** Once for each time that this is asked and more bounds were broken: to the daemon's log. */
    private void sayBroken() {
        final long constants = promised == null ? 0 : promised.constantsBroken();
        if (constants > saidConstants) {
            saidConstants = constants;
            System.err.println("gpuseg: admission: " + (promised.lastWasWait() ? "a begin waited "
                : "a driver call took ") + Durations.format(promised.lastTookNs()) + ", " + (promised.lastWasWait()
                ? "epsilon is " : "alpha is ") + Durations.format(promised.lastConstantNs()) + "; " + constants
                + " calls and waits above their constant since the start: the profile does not hold on this machine "
                + "(gpuseg calibrate, gpuseg doctor)");
        }
        final long now = promised == null ? 0 : promised.broken();
        if (now > saidBroken) {
            saidBroken = now;
            final int id = promised.lastTask();
            final String name = tasks.stream().filter(task -> task.taskId() == id)
                .map(task -> task.request().name()).findFirst().orElse("?");
            System.err.println("gpuseg: admission: a job of task \"" + name + "\" took "
                + Durations.format(promised.lastResponseNs()) + ", its bound is "
                + Durations.format(promised.lastBoundNs()) + "; " + now + " jobs above their bound since the start: a "
                + "hypothesis of the proof does not hold on this machine (gpuseg doctor, gpuseg trace check)");
        }
    }

    /** What speaks against a newcomer before any analysis; null if nothing does. */
    private String conflict(final Admitted newcomer, final List<Admitted> others) {
        final TaskOpen request = newcomer.request();
        final String who = "task \"" + request.name() + "\": ";
        if (!sound.exists()) {
            return who + sound.reason();
        }
        if (newcomer.source() == Admitted.Source.UNKNOWN) {
            return TaskModels.unknown(effective(newcomer), settings.declared() != null);
        }
        if (sound.analysis() instanceof TimePartitioned table && newcomer.isRealTime()
            && !table.opens(request.partition())) {
            return who + (request.partition() == 0 ? "it has no partition, and the windows leave no time without one"
                : "partition " + request.partition() + " has no window") + "; open it in a partition that has one, or "
                + "change the table";
        }
        if (newcomer.source() != Admitted.Source.DECLARED) {
            return null;
        }
        for (final Admitted other : others) {
            if (beganAlone(other, newcomer)) {
                return who + "task \"" + other.request().name() + "\" of its process began without waiting while it "
                    + "was alone; open all tasks of a process before one begins, or with GPUSEG_TASK_ALWAYS_WAIT";
            }
            if (other.request().name().equals(request.name())) {
                return who + (other.isKept() ? "its place is kept for user " + Integer.toUnsignedLong(other.uid())
                    + " after a restart" : "it is open in process " + other.pid())
                    + "; a declared task is opened once";
            }
        }
        return models.mismatch(request, byPriority(), byDeadline());
    }

    /**
     * Hypothesis C4 of {@code analysis/docs/processes.md}: what shares a context begins by waiting. A task alone
     * in its process need not, and its window may go on while the next task is opened.
     */
    private boolean beganAlone(final Admitted other, final Admitted newcomer) {
        return capabilities.level() != Capabilities.GATE && promised != null && newcomer.isRealTime()
            && other.isRealTime() && other.pid() > 0 && other.pid() == newcomer.pid()
            && other.request().gpu() == newcomer.request().gpu() && other.taskId() > 0
            && promised.hasBegunUnasked(other.taskId());
    }

    private Admitted placeOf(final Admitted newcomer) {
        for (final Admitted task : tasks) {
            if (task.isKept() && task.uid() == newcomer.uid()
                && task.request().name().equals(newcomer.request().name())) {
                return task;
            }
        }
        return null;
    }

    @Override
    public void opened(final TaskOpen request, final int taskId) {
        final TurnsControl turns = awaited();
        final boolean inForce = turns == null || turns.isInForce();   // without the lock: status does not wait for it
        opened(request, taskId, inForce);
    }

    private synchronized TurnsControl awaited() {
        final boolean waits = changes || takesTurns;
        changes = false;
        return waits ? control : null;
    }

    private synchronized void opened(final TaskOpen request, final int taskId, final boolean inForce) {
        tasks.replaceAll(task -> isOf(task, request.clientId(), request.name()) ? task.withTaskId(taskId) : task);
        if (!inForce && takesTurns && request.priority() > 0) {
            withoutTurns(request);
        }
        final Admitted before = tasks.stream().filter(task -> task.taskId() == taskId).findFirst().orElse(null);
        if (before != null && before.source() == Admitted.Source.DECLARED
            && tasks.stream().anyMatch(beside -> beside != before && beganAlone(beside, before))) {
            say("a task in process " + before.pid() + " began without waiting in the moment in which \""
                + request.name() + "\" was opened beside it; nothing is proven while that is open");
            tasks.replaceAll(task -> task == before ? task.withSource(Admitted.Source.UNKNOWN) : task);
            current = judge(sound, tasks);
        }
        judged(current);
    }

    /** The only real-time task with windows has begun nothing yet, so it can still go by calls. */
    private void withoutTurns(final TaskOpen request) {
        final Prospect calls = judge(sound, tasks);
        if (!calls.proven()) {
            say("the time slices by which \"" + request.name() + "\" is proven are not set, as the driver does not "
                + "answer or refuses them; nothing is proven while it is open");
            tasks.replaceAll(task -> isOf(task, request.clientId(), request.name())
                ? task.withSource(Admitted.Source.UNKNOWN) : task);
            return;
        }
        adopt(new Verdict(calls, Prospect.unproven(current.analysis(), "the time slices were not set in time"), false,
            null));
    }

    @Override
    public synchronized void closed(final int clientId, final String name) {
        if (tasks.removeIf(task -> isOf(task, clientId, name))) {
            adopt(decide(sound, tasks));
            save();
        }
    }

    @Override
    public synchronized void clientGone(final int clientId, final int reason) {
        if (reason == Removal.STOPPING) {
            return;   // what it had is kept for the next daemon
        }
        if (tasks.removeIf(task -> !task.isKept() && task.clientId() == clientId)) {
            adopt(decide(sound, tasks));
            save();
        }
    }

    private static boolean isOf(final Admitted task, final int clientId, final String name) {
        return !task.isKept() && task.clientId() == clientId && task.request().name().equals(name);
    }

    // ---- what administrators ask ----------------------------------------------------------------------------------

    /**
     * Whether the policy and the rules for tasks that are known by their budget may change; if so, admission goes by
     * the new ones from now on. Weights, caps and the sharing concern best effort alone. Any thread but the
     * dispatcher's.
     *
     * @param change what is to change
     * @return null if it may, else one line why not
     */
    public synchronized String refuseSettings(final PolicySettings change) {
        final Map<String, OverrunAction> rules = new HashMap<>(overrunRules);
        for (final PolicySettings.TaskRule rule : change.taskRules()) {
            if (rule.overrun() != null) {
                rules.put(rule.task(), rule.overrun());
            }
        }
        final Policy next = change.policy() == null ? policy : change.policy();
        final String slices = slices(change);
        if (slices != null) {
            return slices;
        }
        return next.equals(policy) && rules.equals(overrunRules) ? null : refuseChange(next, rules);
    }

    /** Slices of new weights are calls of the driver before the next disable, which epsilon does not contain. */
    private String slices(final PolicySettings change) {
        if (change.sharing() != Sharing.TIMESLICES || settings.mode() != AdmissionMode.ENFORCE) {
            return null;
        }
        refused++;
        return "sharing: timeslices makes calls of the driver that delay the next disable, and epsilon does not "
            + "contain them; use sharing: turns, or --admission warn";
    }

    /** The analysis that holds for a policy on a mechanism, or why none does. */
    static SoundAnalysis soundOn(final Policy policy, final Capabilities capabilities, final WaitMode mode,
        final CoreOrder cores) {
        if (capabilities.holdsLaunches() && capabilities.level() < Capabilities.DEACTIVATE) {
            return SoundAnalysis.none("a mechanism that only holds launches has no sound analysis: what is queued on "
                + "the GPU runs on beside the segment; use one of level 3 (" + MechanismCatalog.interrupting()
                + ") or gate, or --admission off");
        }
        return SoundAnalysis.of(policy, capabilities.level(), mode, cores, MechanismCatalog.interrupting());
    }

    private static List<SharedClasses.Ranked> ranked(final List<Admitted> admitted) {
        return admitted.stream().filter(Admitted::isRealTime).map(open -> new SharedClasses.Ranked(
            open.request().name(), open.request().gpu(), open.gpuPriority())).toList();
    }

    private String refuseChange(final Policy wanted, final Map<String, OverrunAction> rules) {
        expire();
        final SoundAnalysis next = soundOn(wanted, capabilities, settings.waitMode(), settings.cores());
        final Policy policyBefore = policy;
        final Map<String, OverrunAction> rulesBefore = overrunRules;
        policy = wanted;
        overrunRules = rules;
        final String what = wanted.equals(policyBefore) ? "rules for tasks" : "policy " + wanted.name();
        String why = next.exists() ? null : next.reason();
        Verdict verdict = null;
        final List<Admitted> changed = new ArrayList<>();
        for (final Admitted task : tasks) {
            final Admitted now = task.source() == Admitted.Source.DECLARED ? task : reclassified(task);
            if (now.source() != Admitted.Source.UNKNOWN || task.source() == Admitted.Source.UNKNOWN) {
                changed.add(now);
            } else if (!task.isKept()) {
                changed.add(now);
                why = why == null ? TaskModels.unknown(effective(now), settings.declared() != null) : why;
            }
        }
        if (why == null) {
            for (final Admitted task : tasks) {
                why = why == null && task.source() == Admitted.Source.DECLARED
                    ? models.mismatch(task.request(), false, byDeadline()) : why;
            }
        }
        if (why == null) {
            verdict = decide(next, changed);
            why = verdict.prospect().proven() ? null : Refusal.text(verdict.prospect(), null) + ofOther(verdict, null);
        }
        if (why != null && settings.mode() == AdmissionMode.ENFORCE) {
            policy = policyBefore;
            overrunRules = rulesBefore;
            refused++;
            return what + ": " + why;
        }
        if (why != null) {
            warned++;
            say("not proven: " + what + ": " + why);
        }
        sound = next;
        dropped += tasks.size() - changed.size();
        final Verdict now = verdict == null ? decide(sound, changed) : verdict;
        tasks.clear();
        tasks.addAll(changed);
        adopt(now);
        return null;
    }

    /**
     * Whether priorities of open tasks may change; if so, they count from now on. Any thread but the dispatcher's.
     *
     * @param taskId      id of the task, 0 = all of that name
     * @param name        of the tasks
     * @param priority    0..99
     * @param gpuPriority 0..99
     * @return null if they may, else one line why not
     */
    public synchronized String refusePriority(final int taskId, final String name, final int priority,
        final int gpuPriority) {
        expire();
        final List<Admitted> changed = new ArrayList<>();
        for (final Admitted task : tasks) {
            final boolean meant = taskId > 0 ? task.taskId() == taskId
                : !task.isKept() && task.request().name().equals(name);
            changed.add(meant ? reclassified(task.withPriorities(priority, gpuPriority)) : task);
        }
        if (changed.equals(tasks)) {
            return null;
        }
        final Verdict verdict = decide(sound, changed);
        String why = verdict.prospect().proven() ? null : Refusal.text(verdict.prospect(), null)
            + ofOther(verdict, null);
        for (int i = 0; i < changed.size(); i++) {
            if (changed.get(i).source() == Admitted.Source.UNKNOWN
                && tasks.get(i).source() != Admitted.Source.UNKNOWN) {
                why = TaskModels.unknown(effective(changed.get(i)), settings.declared() != null);
            }
        }
        if (why != null && settings.mode() == AdmissionMode.ENFORCE) {
            refused++;
            return "priority " + priority + ": " + why;
        }
        if (why != null) {
            warned++;
            say("not proven: priority " + priority + ": " + why);
        }
        tasks.clear();
        tasks.addAll(changed);
        adopt(verdict);
        return null;
    }

    /** A best-effort task that becomes a real-time one needs a model. */
    private Admitted reclassified(final Admitted task) {
        if (task.source() == Admitted.Source.DECLARED || task.source() == Admitted.Source.UNKNOWN) {
            return task;
        }
        return task.withSource(source(task));
    }

    private Admitted.Source source(final Admitted task) {
        return models.source(effective(task), capabilities.level() == Capabilities.GATE);
    }

    /** The overrun action of a task: the one that an administrator set, else its own. */
    private TaskOpen effective(final Admitted task) {
        final TaskOpen request = task.request();
        return request.with(task.priority(), task.gpuPriority(),
            overrunRules.getOrDefault(request.name(), request.overrun()));
    }

    /** Gives up the places whose time is over. Any thread but the dispatcher's. */
    public synchronized void expire() {
        sayBroken();
        final long nowNs = clockNs.getAsLong();
        final int before = tasks.size();
        if (tasks.removeIf(task -> task.isKept() && nowNs - task.keptUntilNs() >= 0)) {
            dropped += before - tasks.size();
            adopt(decide(sound, tasks));
            save();
        }
    }

    // ---- the set --------------------------------------------------------------------------------------------------

    private boolean byDeadline() {
        return policy.ordering().needs().contains(TaskNeed.DEADLINE);
    }

    private boolean byPriority() {
        return !sound.exists() || sound.analysis().needsPriorities();
    }

    private Prospect judge(final SoundAnalysis plain, final List<Admitted> admitted) {
        return judge(plain, admitted, crossing);
    }

    /** Declared tasks in the order of the file, then the others in the order of their admission. */
    private Prospect judge(final SoundAnalysis plain, final List<Admitted> admitted, final Crossing crossed) {
        if (!plain.exists()) {
            return Prospect.unproven(null, plain.reason());
        }
        final boolean boosts = admitted.stream().anyMatch(Boosts::counts);
        final SoundAnalysis by = boosts ? plain.boosted() : plain;
        return by.exists() ? judgeBy(by.analysis(), boosts, admitted, crossed, false)
            : Prospect.unproven(null, by.reason());
    }

    /** {@code wholeFile}: with all declared tasks, open or not; they share their GPU by time slices. */
    private Prospect judgeBy(final Analysis analysis, final boolean boosts, final List<Admitted> admitted,
        final Crossing crossed, final boolean wholeFile) {
        final List<Task> placed = new ArrayList<>();
        if (settings.declared() != null) {
            for (final Task task : settings.declared().tasks()) {
                if (task.gpuSegmentCount() == 0 || wholeFile
                    && admitted.stream().noneMatch(open -> isDeclaredAs(open, task))) {
                    placed.add(task);
                }
                for (final Admitted open : admitted) {
                    if (isDeclaredAs(open, task)) {
                        placed.add(asOpened(task, open, crossed));
                    }
                }
            }
        }
        // a gate preempts nothing, so contexts do not matter to its analysis
        String disorder = capabilities.level() == Capabilities.GATE ? "" : SharedProcesses.conflict(admitted);
        if (disorder.isEmpty() && !wholeFile) {
            disorder = SharedClasses.conflict(policy, ranked(admitted));
        }
        if (disorder.isEmpty() && boosts) {
            disorder = Boosts.disorder(admitted, placed);
        }
        if (!disorder.isEmpty()) {
            return Prospect.unproven(analysis, disorder);
        }
        final List<Task> floating = new ArrayList<>();
        for (final Admitted open : admitted) {
            if (open.source() == Admitted.Source.BUDGET) {
                floating.add(TaskModels.ofBudget(open, nameInSet(open, admitted)));
            }
        }
        final Chains chains = DeclaredChains.of(settings.declared(), placed);
        final String unbounded = ChainAnalysis.refusal(analysis, chains);
        if (!unbounded.isEmpty()) {
            return Prospect.unproven(analysis, unbounded);
        }
        final String id = settings.declared() == null ? "admitted" : settings.declared().id();
        return withBudgets(Prospect.of(withPartitions(analysis, admitted), id, settings.platform(),
            settings.waitMode(), placed, floating, chains), admitted, boosts, crossed);
    }

    private static boolean isDeclaredAs(final Admitted open, final Task task) {
        return open.source() == Admitted.Source.DECLARED && open.request().name().equals(task.name());
    }

    /** No proof where a job within its declared times can use up its budget: its overrun action would act. */
    private Prospect withBudgets(final Prospect prospect, final List<Admitted> admitted, final boolean boosts,
        final Crossing crossed) {
        if (!prospect.proven() || prospect.result() == null) {
            return prospect;
        }
        for (final Admitted open : admitted) {
            final TaskOpen request = effective(open);
            if (open.source() == Admitted.Source.DECLARED && open.isRealTime() && request.budgetNs() > 0
                && request.overrun() != OverrunAction.NOTIFY) {
                // a window that began by turns has waited for them within its budget
                final Model model = counts(crossed, open) ? Model.TURNS : prospect.analysis().description().model();
                final String refusal = new LeastBudgets(prospect.set(), prospect.result(), model, request.optimistic(),
                    boosts)
                    .of(request.name()).refusal(request.name(), request.budgetNs());
                if (!refusal.isEmpty()) {
                    return new Prospect(prospect.analysis(), prospect.set(), prospect.result(), refusal);
                }
            }
        }
        return prospect;
    }

    /** Partitions are what the tasks asked for when they were opened; a task without GPU has none. */
    private Analysis withPartitions(final Analysis analysis, final List<Admitted> admitted) {
        if (!(analysis instanceof TimePartitioned partitioned)) {
            return analysis;
        }
        final Map<String, Integer> partitions = new HashMap<>();
        for (final Admitted open : admitted) {
            partitions.put(open.source() == Admitted.Source.DECLARED ? open.request().name()
                : nameInSet(open, admitted), open.request().partition());
        }
        return partitioned.with(name -> partitions.getOrDefault(name, 0));
    }

    private boolean counts(final Crossing crossed, final Admitted open) {
        return crossed != null && crossed.isOf(open) && clockNs.getAsLong() - crossed.untilNs() < 0;
    }

    /** A hint may have changed the priorities since. The process is the one that registered, once it is known. */
    private Task asOpened(final Task declared, final Admitted open, final Crossing crossed) {
        final Task found = open.pid() > 0 ? declared.inProcess("pid " + open.pid()) : declared;
        final Task task = counts(crossed, open) ? found.withTimes(found.deadlineNs(), found.jitterNs(),
            found.blockingNs() + crossed.waitNs()) : found;
        if (open.priority() == open.request().priority() && open.gpuPriority() == open.request().gpuPriority()) {
            return task;
        }
        return task.withRank(open.priority(), open.gpuPriority(), !open.isRealTime());
    }

    /** Names are unique within a process only. */
    private String nameInSet(final Admitted task, final List<Admitted> all) {
        final Set<String> taken = new HashSet<>();
        for (final Admitted other : all) {
            String name = other.request().name();
            for (int n = 2; !taken.add(name); n++) {
                name = other.request().name() + " (" + n + ")";
            }
            if (other == task) {
                return name;
            }
        }
        throw new IllegalArgumentException("task \"" + task.request().name() + "\" is not in the list");
    }

    private void save() {
        try {
            file.write(tasks);
            fileFailure = "";
        } catch (final IOException | RuntimeException e) {
            fileFailure = file.path() + " cannot be written: " + e.getMessage()
                + "; after a restart no place is kept for what was admitted since";
            say(fileFailure);
        }
    }

    private void incident(final Admitted task, final String text, final Prospect prospect) {
        if (incidents.size() == REMEMBERED) {
            incidents.removeFirst();
        }
        incidents.addLast(new Incident(clockNs.getAsLong(), task.uid(), task.request().name(), text, prospect));
    }

    /** To the daemon's log, not more often than once a second: clients can make it happen. */
    private void say(final String text) {
        final long nowNs = clockNs.getAsLong();
        if (nowNs - saidNs >= SAY_EVERY_NS) {
            saidNs = nowNs;
            System.err.println("gpuseg: admission: " + text);
        }
    }

    // ---- status ---------------------------------------------------------------------------------------------------

    /**
     * What is admitted and what was not. Any thread but the dispatcher's.
     *
     * @param all whether tasks of every user are shown
     * @param uid else those of this user alone, without the bounds of others
     * @return a new node
     */
    public synchronized ObjectNode status(final boolean all, final int uid) {
        expire();
        final ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("mode", settings.mode().word());
        node.put("policy", policy.name());
        node.put("analysis", current.analysis() == null ? "" : current.analysis().name());
        node.put("claim", current.set() == null ? ""
            : Soundness.of(current.analysis().description(), current.set(), true).text() + ofUndeclared());
        node.put("problem", current.problem());
        node.put("begins", takesTurns ? "turns" : "calls");
        node.put("constants", TurnProof.text(current.analysis(), settings.platform()));
        node.put("other", otherSays());
        final long broken = promised == null ? 0 : promised.broken();
        node.put("bounds_broken", broken);
        final long constants = promised == null ? 0 : promised.constantsBroken();
        node.put("constants_broken", constants);
        node.put("contexts_measured", settings.platform().limits().contexts());
        node.put("proven", broken == 0 && constants == 0 && isProven());
        node.put("refused", refused);
        node.put("warned", warned);
        node.put("dropped", dropped);
        node.put("grace_ns", settings.graceNs());
        node.put("file_failure", fileFailure);
        final ArrayNode list = node.putArray("tasks");
        for (final Admitted task : tasks) {
            if (all || task.uid() == uid) {
                list.addObject().put("name", task.request().name()).put("uid", Integer.toUnsignedLong(task.uid()))
                    .put("pid", task.pid()).put("task", task.taskId()).put("kept", task.isKept())
                    .put("model", task.source().name().toLowerCase(Locale.ROOT))
                    .put("boost", task.request().boost());
            }
        }
        if (all) {
            node.set("result", json(current));
        }
        final ArrayNode past = node.putArray("incidents");
        for (final Incident incident : incidents) {
            if (all || incident.uid() == uid) {
                final ObjectNode entry = past.addObject().put("time_ns", incident.timeNs())
                    .put("name", incident.name()).put("text", incident.text());
                if (all) {
                    entry.set("result", json(incident.prospect()));
                }
            }
        }
        return node;
    }

    /** What is believed of tasks that are known by their budget alone; empty if there is none. */
    private String ofUndeclared() {
        final String names = tasks.stream().filter(task -> task.source() == Admitted.Source.BUDGET && task.isRealTime())
            .map(task -> '"' + task.request().name() + '"').collect(Collectors.joining(", "));
        return names.isEmpty() ? "" : "; of " + names + " also if each job begins one segment, whose work on the core, "
            + "with or without the GPU, is at most its budget; its own deadline only if it ends within its budget";
    }

    /** As {@code analyze --format json} has it; null if there is none. */
    private static JsonNode json(final Prospect prospect) {
        if (prospect == null || prospect.result() == null) {
            return JsonNodeFactory.instance.nullNode();
        }
        try {
            // the boosts of what is open have been checked
            return JSON.readTree(ResultWriter.json(prospect.set(), List.of(prospect.result()), true));
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException("a result is not JSON: " + e.getMessage(), e);
        }
    }
}

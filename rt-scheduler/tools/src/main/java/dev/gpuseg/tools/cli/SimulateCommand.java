/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.analysis.report.WorstCase;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.HostWork;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import dev.gpuseg.analysis.sim.SimulationResult;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.analysis.sim.TraceSink;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.daemon.launch.PolicyJarOption;
import dev.gpuseg.daemon.policy.PolicySource;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code gpuseg simulate}: runs a task set in simulated time under the live scheduler core. */
@Command(name = "simulate", mixinStandardHelpOptions = true,
    description = {"Run a task set in simulated time, with the scheduler code of the daemon.",
        "Exit status: 0 no deadline missed, 1 failure, 2 wrong use or input, 3 a real-time job missed its deadline or "
            + "a chain a limit."})
final class SimulateCommand implements Callable<Integer> {
    private static final String GATE = "gate";
    private static final int PERCENT = 100;
    private static final String GATED = "gate-";
    private static final List<String> RANDOM = List.of("arrivals", "offsets", "execution", "host", "jitter");

    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "FILE", description = "Task set in YAML or JSON.")
    private Path file;

    @Option(names = "--scheduler", paramLabel = "NAME", defaultValue = "fp",
        completionCandidates = Words.class, description = "Scheduler of the GPU: ${COMPLETION-CANDIDATES}. "
            + "A policy preempts; gate-POLICY decides at begin only; gate is gate-fp. Policies of "
            + "--policy-jar can be named too; parameters stand in --policy-file (default: ${DEFAULT-VALUE}).")
    private String scheduler;

    @Option(names = "--policy-file", paramLabel = "FILE",
        description = "Frame of partitions, width of classes, and the partition, budget, overrun action, weight and "
            + "cap of each task, as `gpuseg run` reads it. With anticipate: declared lower work is disabled ahead "
            + "of begins "
            + "that follow from the tasks' periods, within the anticipation_budget.")
    private Path policyFile;

    @Mixin
    private PolicyJarOption jar;

    @Option(names = "--cpu", paramLabel = "POLICY", defaultValue = "fp",
        description = "Scheduler of the cores: fp or edf (default: ${DEFAULT-VALUE}).")
    private String cpu;

    @Option(names = "--duration", paramLabel = "D",
        description = "How long jobs arrive, such as 10s (default: ten of the longest periods).")
    private String duration;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1",
        description = "Seed of the random numbers (default: ${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--format", paramLabel = "F", defaultValue = "text",
        description = "Output format: text or json (default: ${DEFAULT-VALUE}).")
    private String format;

    @Option(names = "--hold", paramLabel = "MODEL", defaultValue = "window",
        description = "What of a segment holds the GPU: window, from begin to end, host part included; boost, the "
            + "same, "
            + "and the host part of the holder runs above all other work of its core; ceiling, like boost, but from "
            + "begin to end, whether or not the task holds the GPU (the window boost of libgpuseg); abstract, the "
            + "device part alone, as published equations assume (default: ${DEFAULT-VALUE}).")
    private String hold;

    @Option(names = "--random", paramLabel = "WHAT", split = ",",
        description = "What is drawn at random: arrivals, each up to half a period late (else periodic); offsets, the "
            + "first arrivals (else all at 0); execution, times of jobs and updates up to their worst case (else "
            + "that); host, host parts before or after the device part (else before); jitter, the release jitter of "
            + "the tasks (else none). Several with commas.")
    private List<String> random = List.of();

    @Option(names = "--first-arrivals", paramLabel = "T", split = ",",
        description = "First arrival of each task in file order, such as 2ms,0ms,1ms.")
    private List<String> firstArrivals;

    @Option(names = "--schedule", description = "Print the whole schedule.")
    private boolean schedule;

    /** What --scheduler can be: the policies, and each behind a gate. */
    static final class Words implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return words(PolicyCatalog.builtIn()).iterator();
        }

        static List<String> words(final PolicyCatalog catalog) {
            final List<String> words = new ArrayList<>();
            catalog.all().forEach(row -> words.add(row.name()));
            words.add(GATE);
            catalog.all().stream().filter(PolicyDescription::enforces).forEach(row -> words.add(GATED + row.name()));
            return words;
        }
    }

    @Override
    public Integer call() throws IOException {
        final PrintWriter err = spec.commandLine().getErr();
        final SimulationResult result;
        final List<String> lines = new ArrayList<>();
        try (PolicySource policies = jar.open()) {
            if (!format.equals("text") && !format.equals("json")) {
                throw new IllegalArgumentException("--format is '" + format + "'; it must be text or json");
            }
            final TaskSet set = new TaskSetReader().read(file);
            final Simulator simulator = new Simulator(set);
            final PolicySettings settings =
                policyFile == null ? PolicySettings.NONE : policies.reader().read(policyFile);
            configure(simulator, set, settings);
            if (firstArrivals != null) {
                simulator.setFirstArrivals(firstArrivals.stream().mapToLong(t -> duration("--first-arrivals",
                    t)).toArray());
            }
            final Scheduler decides = scheduler(simulator, settings, policies.catalog());
            result = simulator.run(options(set, decides, settings.ahead()), schedule ? new Schedule(set, lines) : null);
        } catch (final InvalidFileException | IllegalArgumentException e) {
            err.println("simulate: " + e.getMessage());
            return 2;
        }
        final PrintWriter out = spec.commandLine().getOut();
        out.print(format.equals("json") ? json(result, lines) : text(result, lines));
        out.flush();
        return result.anyRealTimeMiss() || result.anyChainMiss() ? 3 : 0;
    }

    private static void configure(final Simulator simulator, final TaskSet set, final PolicySettings settings) {
        for (final PolicySettings.TaskRule rule : settings.taskRules()) {
            int at = 0;
            while (at < set.tasks().size() && !set.tasks().get(at).name().equals(rule.task())) {
                at++;
            }
            if (at == set.tasks().size()) {
                throw new IllegalArgumentException("--policy-file: task \"" + rule.task()
                    + "\" is not in the task set; check the name");
            }
            simulator.setAttributes(at, Math.max(0, rule.partition()), Math.max(0, rule.budgetNs()),
                rule.overrun() == null ? OverrunAction.DEMOTE : rule.overrun(), rule.share().weight(),
                Math.max(0, rule.share().quotaNs()), rule.share().periodNs());
        }
    }

    /** The policy that is asked for, with the parameters of the policy file if that names it, too. */
    private Scheduler scheduler(final Simulator simulator, final PolicySettings settings, final PolicyCatalog catalog) {
        if (!Words.words(catalog).contains(scheduler)) {
            throw new IllegalArgumentException("--scheduler is '" + scheduler + "'; it must be one of "
                + String.join(", ", Words.words(catalog)));
        }
        final boolean gated = scheduler.equals(GATE) || scheduler.startsWith(GATED);
        final String name = scheduler.equals(GATE) ? catalog.standard().name()
            : gated ? scheduler.substring(GATED.length()) : scheduler;
        if (settings.policy() != null && settings.policy().name().equals(name)) {
            simulator.setPolicy(settings.policy());
        } else if (catalog.get(name).hasDefaults()) {
            simulator.setPolicy(catalog.create(name));
        } else {
            throw new IllegalArgumentException("--scheduler " + scheduler + " needs parameters; name a policy file "
                + "with policy: " + name);
        }
        return gated ? Scheduler.GATE_POLICY : Scheduler.POLICY;
    }

    private SimulationOptions options(final TaskSet set, final Scheduler decides, final PolicySettings.Ahead ahead) {
        final long durationNs = duration == null ? WorstCase.usualDurationNs(set) : duration("--duration", duration);
        for (final String what : random) {
            if (!RANDOM.contains(what)) {
                throw new IllegalArgumentException("--random is '" + what + "'; it must be one of "
                    + String.join(", ", RANDOM));
            }
        }
        return new SimulationOptions(decides, choose("--cpu", cpu, CpuPolicy.values()),
            choose("--hold", hold, Hold.values()), set.platform().optimistic(), true, Update.STALL,
            random.contains("arrivals") ? Arrivals.SPORADIC : Arrivals.PERIODIC,
            random.contains("offsets") ? Offsets.RANDOM : Offsets.SYNCHRONOUS,
            random.contains("execution") ? Execution.RANDOM : Execution.WORST,
            random.contains("jitter") ? Jitter.RANDOM : Jitter.NONE,
            random.contains("host") ? HostWork.ANYWHERE : HostWork.FIRST, durationNs, seed)
            .anticipating(anticipationPpm(ahead));
    }

    /** As the policy file says; without one nothing is anticipated. */
    private static int anticipationPpm(final PolicySettings.Ahead ahead) {
        if (ahead.mode() == null || ahead.mode() == Anticipate.OFF) {
            return 0;
        }
        return ahead.budgetPercent() < 0 ? Anticipator.BUDGET_DEFAULT_PPM
            : ahead.budgetPercent() * (Anticipator.PPM / PERCENT);
    }

    private static long duration(final String option, final String text) {
        try {
            return Durations.parse(text);
        } catch (final IllegalArgumentException e) {
            throw new IllegalArgumentException(option + " " + e.getMessage(), e);
        }
    }

    private static <E extends Enum<E>> E choose(final String option, final String text, final E[] values) {
        final StringBuilder known = new StringBuilder();
        for (final E value : values) {
            final String word = value.name().toLowerCase(Locale.ROOT).replace('_', '-');
            if (word.equals(text)) {
                return value;
            }
            known.append(known.length() == 0 ? "" : ", ").append(word);
        }
        throw new IllegalArgumentException(option + " is '" + text + "'; it must be one of " + known);
    }

    private String text(final SimulationResult result, final List<String> lines) {
        final StringBuilder out = new StringBuilder();
        out.append(result.taskSetId()).append(": ").append(result.anyRealTimeMiss()
            ? "DEADLINE MISSED" : result.anyChainMiss() ? "CHAIN LIMIT MISSED" : "no deadline missed")
            .append(" in ").append(Durations.format(result.options().durationNs())).append(" of simulated arrivals (")
            .append(scheduler).append(", ")
            .append(result.options().hold().name().toLowerCase(Locale.ROOT)).append(", ").append(result.updates())
            .append(" runlist updates)\n");
        int width = 4;
        for (final var task : result.tasks()) {
            width = Math.max(width, task.name().length());
        }
        final String row = "%-" + width + "s %8s %8s %12s %12s %12s %11s %14s%n";
        out.append(String.format(Locale.ROOT, row, "task", "jobs", "misses", "max R (ms)", "mean R (ms)", "D (ms)",
            "preempted", "max wait (ms)"));
        for (final var task : result.tasks()) {
            out.append(String.format(Locale.ROOT, row, task.name(), task.jobs(), task.bestEffort()
                ? "-" : task.misses(),
                Durations.milliseconds(task.maxResponseNs()), Durations.milliseconds(task.meanResponseNs()),
                task.bestEffort() ? "-" : Durations.milliseconds(task.deadlineNs()), task.preemptions(),
                Durations.milliseconds(task.maxGrantWaitNs())));
        }
        for (final var task : result.tasks()) {
            if (task.missLimit() != null) {
                out.append("task ").append(task.name()).append(": at most ").append(task.mostMisses()).append(" of ")
                    .append(task.missLimit().jobs()).append(" jobs in a row late, limit ")
                    .append(task.missLimit().misses()).append('\n');
            }
        }
        for (final var chain : result.chains()) {
            out.append("chain ").append(chain.name()).append(": longest reaction ")
                .append(ofLimit(chain.maxReactionNs(), chain.reactionDeadlineNs())).append(", largest age ")
                .append(ofLimit(chain.maxAgeNs(), chain.ageDeadlineNs())).append(", ").append(chain.outputs())
                .append(" outputs, ").append(chain.misses()).append(" misses\n");
        }
        lines.forEach(line -> out.append(line).append('\n'));
        return out.toString();
    }

    private static String ofLimit(final long ns, final long limitNs) {
        return Durations.milliseconds(ns) + (limitNs == 0 ? "" : " of " + Durations.milliseconds(limitNs)) + " ms";
    }

    private static void writeChains(final JsonGenerator json, final SimulationResult result) throws IOException {
        if (result.chains().isEmpty()) {
            return;
        }
        json.writeArrayFieldStart("chains");
        for (final var chain : result.chains()) {
            json.writeStartObject();
            json.writeStringField("name", chain.name());
            json.writeNumberField("outputs", chain.outputs());
            json.writeNumberField("misses", chain.misses());
            json.writeNumberField("max_reaction_ns", chain.maxReactionNs());
            json.writeNumberField("reaction_deadline_ns", chain.reactionDeadlineNs());
            json.writeNumberField("max_age_ns", chain.maxAgeNs());
            json.writeNumberField("age_deadline_ns", chain.ageDeadlineNs());
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    private String json(final SimulationResult result, final List<String> lines) throws IOException {
        final StringWriter text = new StringWriter();
        try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
            json.useDefaultPrettyPrinter();
            json.writeStartObject();
            json.writeStringField("id", result.taskSetId());
            json.writeBooleanField("simulated", true);
            json.writeBooleanField("missed", result.anyRealTimeMiss());
            json.writeStringField("scheduler", scheduler);
            json.writeStringField("hold", result.options().hold().name().toLowerCase(Locale.ROOT));
            json.writeBooleanField("optimistic", result.options().optimistic());
            json.writeBooleanField("keep_ready", result.options().keepReady());
            json.writeNumberField("anticipation_ppm", result.options().anticipationPpm());
            json.writeNumberField("duration_ns", result.options().durationNs());
            json.writeNumberField("seed", result.options().seed());
            json.writeNumberField("events", result.events());
            json.writeNumberField("updates", result.updates());
            json.writeArrayFieldStart("tasks");
            for (final var task : result.tasks()) {
                json.writeStartObject();
                json.writeStringField("name", task.name());
                json.writeBooleanField("best_effort", task.bestEffort());
                json.writeNumberField("deadline_ns", task.deadlineNs());
                json.writeNumberField("jobs", task.jobs());
                json.writeNumberField("completed", task.completed());
                json.writeNumberField("misses", task.misses());
                json.writeNumberField("max_response_ns", task.maxResponseNs());
                json.writeNumberField("mean_response_ns", task.meanResponseNs());
                json.writeNumberField("worst_arrival_ns", task.worstArrivalNs());
                json.writeNumberField("preemptions", task.preemptions());
                json.writeNumberField("max_grant_wait_ns", task.maxGrantWaitNs());
                if (task.missLimit() != null) {
                    json.writeObjectFieldStart("weakly_hard");
                    json.writeNumberField("misses", task.missLimit().misses());
                    json.writeNumberField("jobs", task.missLimit().jobs());
                    json.writeNumberField("most", task.mostMisses());
                    json.writeEndObject();
                }
                json.writeEndObject();
            }
            json.writeEndArray();
            writeChains(json, result);
            if (!lines.isEmpty()) {
                json.writeArrayFieldStart("schedule");
                for (final String line : lines) {
                    json.writeString(line);
                }
                json.writeEndArray();
            }
            json.writeEndObject();
        }
        return text + "\n";
    }

    /** One line for each interval: {@code from-ns to-ns resource activity task}. */
    private record Schedule(TaskSet set, List<String> lines) implements TraceSink {
        @Override
        public void onCpu(final int cpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            add(fromNs, toNs, "cpu" + cpu, activity.name(), task);
        }

        @Override
        public void onGpu(final int gpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            add(fromNs, toNs, "gpu" + gpu, activity.name(), task);
        }

        @Override
        public void onSegment(final int gpu, final int task, final Activity activity, final long fromNs,
            final long toNs) {
            add(fromNs, toNs, "segment" + gpu, activity.name(), task);
        }

        @Override
        public void onJob(final int task, final long arrivalNs, final long endNs, final boolean missed) {
            add(arrivalNs, endNs, "job", missed ? "missed" : "done", task);
        }

        private void add(final long fromNs, final long toNs, final String where, final String what, final int task) {
            lines.add(fromNs + " " + toNs + " " + where + " " + what.toLowerCase(Locale.ROOT) + " "
                + (task < 0 ? "-" : set.tasks().get(task).name()));
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.assign.PriorityAssignment;
import dev.gpuseg.analysis.certificate.Certificate;
import dev.gpuseg.analysis.io.BatchRunner;
import dev.gpuseg.analysis.io.Dossier;
import dev.gpuseg.analysis.io.ForeignFormat;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.analysis.io.PlatformOrigin;
import dev.gpuseg.analysis.io.Provenance;
import dev.gpuseg.analysis.io.ReportFormat;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.io.ResultWriter;
import dev.gpuseg.analysis.io.TaskSetFormat;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.io.TaskSetWriter;
import dev.gpuseg.analysis.io.Verdict;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.partition.Partitioning;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.analysis.report.Refusals;
import dev.gpuseg.analysis.report.Report;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.analysis.rta.LeastBudgets;
import dev.gpuseg.analysis.rta.SharedClasses;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TimePartitioned;
import dev.gpuseg.analysis.rta.TurnChoice;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.TraceBuilder;
import dev.gpuseg.tools.trace.TraceMeasurement;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Whether every deadline of a task set holds, and what each bound is made of. */
@Command(name = "analyze", mixinStandardHelpOptions = true, modelTransformer = AnalyzeCommand.Catalogue.class,
    description = "Compute response-time bounds for a task set: prove that every deadline holds, or show which one "
        + "may not.",
    footer = "%nTimes in files carry a unit (10ms). Priorities are 1..99, 99 is the highest.%nA set is accepted if "
        + "every task keeps its deadline and every chain its limits.%nExit status: 0 every requested analysis accepts "
        + "the set (--batch: all lines were analysed), 3 one does not, 2 the input is wrong, 1 failure.")
final class AnalyzeCommand implements Callable<Integer> {
    private static final int OK = 0;
    private static final int FAILURE = 1;
    private static final int USAGE = 2;
    private static final int NO = 3;
    private static final byte[] ZIP = {'P', 'K'};
    private static final String TASKSET = "taskset";

    @Spec
    private CommandSpec spec;

    @Parameters(arity = "0..1", paramLabel = "FILE", description = "Task set in YAML or JSON.")
    private Path file;

    @Option(names = "--batch", paramLabel = "FILE",
        description = "Analyse many task sets; the file has one JSON object per line.")
    private Path batch;

    @Option(names = "--analysis", paramLabel = "NAME,…",
        description = "Names of analyses, listed below, or all (default: gcaps-window-suspend or gcaps-window-busy, by "
            + "the mode of the set; if its platform states turns, the better of this and turns-suspend).")
    private String analysisNames;

    @Option(names = "--policy-file", paramLabel = "FILE",
        description = "Policy with its parameters, as `gpuseg run` and `gpuseg simulate` read it, instead of "
            + "--analysis: fp, edf, classes of one task each, or time partitions with the partition of each task.")
    private Path policyFile;
    private PolicySettings policy;

    @Option(names = "--assign", paramLabel = "rm|dm|audsley|opa",
        description = "Assign priorities: rm by period, dm by deadline. audsley and opa start with dm; if the first "
            + "analysis refuses that, they search GPU priorities (the published search, the frontier search).")
    private String assignment;

    @Option(names = "--partition", paramLabel = "wfd|ffd|bfd",
        description = "Assign cores and GPUs: worst fit, first fit or best fit, by decreasing utilisation.")
    private String partitioning;

    @Option(names = "--from", paramLabel = "FORMAT",
        description = "Read another format: gcaps-artifact (with --batch), gcaps-csv, disb, rt-app.")
    private String from;

    @Option(names = "--cpus", paramLabel = "N",
        description = "Number of cores, if the other format does not state it (default: 4).")
    private int cpus = 4;

    @Option(names = "--format", paramLabel = "text|json|html|taskset",
        description = "Output format; taskset writes the task set as read, partitioned and assigned instead of "
            + "analysing "
            + "it (default: text).")
    private String format = "text";

    @Option(names = "--out", paramLabel = "FILE", description = "Write to this file instead of standard output.")
    private Path output;

    @Option(names = "--measured", paramLabel = "FILE",
        description = "Show measured response times (a recording, or the output of `gpuseg demo --json` or `gpuseg "
            + "trace stats --json`) beside the bounds. Exit status 3 if one exceeds a bound that is sound for this "
            + "scheduler, or a deadline was missed that holds by it.")
    private Path measuredFile;

    @Option(names = "--certificate", paramLabel = "FILE",
        description = "Also write the set with its bounds (gcaps-window-suspend) for `gpuseg verify`. Nothing is "
            + "written if a deadline does not hold.")
    private Path certificateFile;

    @Option(names = "--example", description = "Print a task set with comments to start from, which this command "
        + "accepts, and nothing else. The format: man 5 gpuseg-taskset.")
    private boolean example;

    @Override
    public Integer call() {
        final PrintWriter out = spec.commandLine().getOut();
        try {
            if (example) {
                if (file != null || batch != null) {
                    throw new IllegalArgumentException("--example analyses nothing; leave out "
                        + (file != null ? file : "--batch"));
                }
                write(TaskSetFormat.example(), out);
                return OK;
            }
            if ((file == null) == (batch == null)) {
                throw new IllegalArgumentException("name one FILE, or --batch FILE; --example prints one "
                    + "to start from");
            }
            if (certificateFile != null && batch != null) {
                throw new IllegalArgumentException("--certificate goes with one FILE, not with --batch");
            }
            if (policyFile != null && batch != null) {
                throw new IllegalArgumentException(
                    "--policy-file goes with one FILE, not with --batch; use --analysis");
            }
            return batch != null ? runBatch(out) : runOne(out);
        } catch (final InvalidFileException | IllegalArgumentException e) {
            return refuse(e.getMessage(), USAGE);
        } catch (final ResultFile.UnwritableException e) {
            return refuse(e.getMessage(), FAILURE);
        } catch (final IOException e) {
            return refuse((batch != null ? batch : file) + ": " + ResultFile.reason(e), FAILURE);
        }
    }

    private int refuse(final String message, final int status) {
        final PrintWriter err = spec.commandLine().getErr();
        err.println("gpuseg analyze: " + message);
        err.flush();
        return status;
    }

    private int runOne(final PrintWriter out) throws IOException {
        final TaskSet set;
        final List<Analysis> made = new ArrayList<>();
        final List<AnalysisResult> results = new ArrayList<>();
        TurnChoice choice = null;
        final Measurement measured = measuredFile == null ? null : measurement();
        final TaskSetReader reader = new TaskSetReader();
        try {
            final TaskSet given = from == null ? reader.read(file)
                : ForeignFormat.of(from).read(file, cpus, -1);
            set = prepare(given);
            if (certificateFile != null && !set.chains().eventPredecessors().isEmpty()) {
                throw new InvalidModelException("chains: a certificate knows no event edges; leave out --certificate, "
                    + "or write sampling");
            }
            if (!converts()) {
                requireClassesOfOne(set);
                choice = policyFile == null && analysisNames == null ? TurnChoice.of(set).orElse(null) : null;
                for (final Analysis analysis : choice == null ? analyses(set) : List.of(choice.analysis())) {
                    made.add(analysis);
                    results.add(analysis.analyse(set));
                }
                refuseSmallBudgets(set, made, results);
            }
        } catch (final InvalidModelException e) {
            throw new InvalidFileException(file.toString(), 0, e.getMessage());
        }
        final boolean certified = certificateFile == null || certify(set);
        write(converts() ? TaskSetWriter.json(set) : render(set, results, new Dossier(measured,
            Refusals.of(made, set, results), provenance(set, reader.platformOrigin(), certified), choice)), out);
        boolean holds = certified && results.stream().allMatch(AnalysisResult::schedulable)
            && (results.isEmpty() || !Verdict.of(set, results, measured).contradicted());
        if (measured != null) {
            for (final AnalysisResult result : results) {
                final boolean sound = Soundness.of(Analyses.describe(result.analysis()), set).verdict()
                    != Soundness.Verdict.NOT_SOUND;
                for (final String line : measured.exceeded(result)) {
                    holds &= !sound;
                    spec.commandLine().getErr().println("gpuseg analyze: " + line);
                }
            }
        }
        return holds ? OK : NO;
    }

    /** Figures of another command, or what a recording, which is no text, says of each job. */
    private Measurement measurement() throws IOException {
        return Files.isDirectory(measuredFile) || isZip(measuredFile)
            ? TraceMeasurement.of(TraceBuilder.read(Source.open(measuredFile)), measuredFile.toString())
            : Measurement.read(measuredFile);
    }

    private static boolean isZip(final Path path) throws IOException {
        if (!Files.isRegularFile(path)) {
            return false;
        }
        try (InputStream in = Files.newInputStream(path)) {
            return Arrays.equals(in.readNBytes(ZIP.length), ZIP);
        }
    }

    private Provenance provenance(final TaskSet set, final PlatformOrigin read, final boolean certified)
        throws IOException {
        PlatformOrigin origin = read;
        if (origin == null) {   // another format knows no platform
            origin = new PlatformOrigin(List.of(new Provenance.Constant("cpus", "" + set.platform().cpus(),
                "option --cpus or the file"), new Provenance.Constant("epsilon",
                Durations.format(set.platform().gpus().isEmpty() ? 0 : set.platform().gpus().get(0).epsilonNs()),
                "default of --from, not measured")), null, null);
        }
        final List<Provenance.Input> files = new ArrayList<>();
        files.add(input("task set", file, changes()));
        if (origin.profile() != null) {
            files.add(input("profile", origin.profile(), origin.measurement(Instant.now())));
        }
        if (policyFile != null) {
            files.add(input("policy", policyFile, ""));
        }
        if (measuredFile != null) {
            files.add(input("measurement", measuredFile, ""));
        }
        if (certificateFile != null && certified) {
            files.add(input("certificate", certificateFile, ""));
        }
        return new Provenance("gpuseg " + Report.VERSION, files, origin.constants());
    }

    /** What can be read once only, as a pipe, was read for its content. */
    private static Provenance.Input input(final String role, final Path path, final String remark) throws IOException {
        return new Provenance.Input(role, path.toString(), Files.isRegularFile(path)
            ? Provenance.sha256(path) : Provenance.NOT_HASHED, remark);
    }

    private boolean certify(final TaskSet set) throws IOException {
        final Optional<Certificate> certificate = Certificate.of(set);
        if (certificate.isPresent()) {
            ResultFile.write(certificateFile, certificate.get().json());
        }
        return certificate.isPresent();
    }

    private int runBatch(final PrintWriter out) throws IOException {
        if (!List.of("text", "json", TASKSET).contains(format)) {
            throw new IllegalArgumentException("--format is " + format + "; a batch writes one JSON line per set");
        }
        final TaskSetReader reader = new TaskSetReader();
        final BatchRunner.LineReader lines = from == null ? reader::readLine : ForeignFormat.of(from).lines();
        final List<Analysis> analyses = Analyses.parse(analysisNames == null ? "gcaps-window-suspend" : analysisNames);
        final BatchRunner runner = new BatchRunner(lines, this::prepare, analyses, converts());
        if (output == null) {
            runner.run(batch, out);
            out.flush();
            return OK;
        }
        final BatchRunner.Summary[] summary = new BatchRunner.Summary[1];
        ResultFile.writeText(output, to -> summary[0] = runner.run(batch, to));
        out.print(converts() ? summary[0].sets() + " task sets written\n" : summary[0].text());
        out.flush();
        return OK;
    }

    private boolean converts() {
        return format.equals(TASKSET);
    }

    /** What makes the analysed set another one than the daemon reads from the file; empty: nothing. */
    private String changes() {
        final List<String> changes = new ArrayList<>();
        if (from != null) {
            changes.add("read as " + from);
        }
        if (partitioning != null) {
            changes.add("cores by " + partitioning);
        }
        if (assignment != null) {
            changes.add("priorities by " + assignment);
        }
        return String.join(", ", changes);
    }

    private TaskSet prepare(final TaskSet given) {
        TaskSet set = given;
        if (partitioning != null) {
            set = Partitioning.of(partitioning).partition(set);
        }
        if (assignment != null) {
            set = PriorityAssignment.of(assignment).assign(set, analyses(set).get(0));
        }
        return set;
    }

    /** What --policy-file says, read once. */
    private PolicySettings settings() {
        policy = policy == null ? new PolicyReader(PolicyCatalog.builtIn()).read(policyFile) : policy;
        return policy;
    }

    /** As the daemon's admission does. Priorities that were to be assigned are in the set. */
    private void requireClassesOfOne(final TaskSet set) {
        final Policy policy = policyFile == null ? null : settings().policy();
        final String conflict = policy == null || isTogether(set, policy) ? "" : SharedClasses.conflict(policy, set);
        if (!conflict.isEmpty()) {
            throw new IllegalArgumentException("--policy-file " + policyFile + ": " + conflict);
        }
    }

    /** Whether real-time tasks share their GPU by slices, so that turns bound them. */
    private static boolean isTogether(final TaskSet set, final Policy policy) {
        final TurnLimits turns = set.platform().limits().turns();
        return turns != null && turns.together() && SharedClasses.apart(policy, set).isEmpty();
    }

    private List<Analysis> analyses(final TaskSet set) {
        if (policyFile != null) {
            return List.of(ofPolicy(set, settings()));
        }
        return analysisNames == null ? List.of(Analyses.recommended(set.mode())) : Analyses.parse(analysisNames);
    }

    /** A budget that a job within its declared times can use up makes the bounds void: its overrun action acts. */
    private void refuseSmallBudgets(final TaskSet set, final List<Analysis> made, final List<AnalysisResult> results)
        throws IOException {
        if (policyFile == null || !results.get(0).schedulable()) {
            return;
        }
        final LeastBudgets budgets = new LeastBudgets(set, results.get(0), made.get(0).description().model(),
            set.platform().optimistic(), false);
        for (final PolicySettings.TaskRule rule : settings().taskRules()) {
            final boolean acts = rule.budgetNs() > 0 && rule.overrun() != null
                && rule.overrun() != OverrunAction.NOTIFY;
            for (final Task task : set.tasks()) {
                final String refusal = acts && task.name().equals(rule.task()) && !task.bestEffort()
                    && task.gpuSegmentCount() > 0 ? budgets.of(task.name()).refusal(task.name(), rule.budgetNs()) : "";
                if (!refusal.isEmpty()) {
                    throw new InvalidModelException("--policy-file " + policyFile + ": " + refusal);
                }
            }
        }
    }

    /** What is sound for a policy with a mechanism that interrupts running work. */
    private Analysis ofPolicy(final TaskSet set, final PolicySettings settings) {
        if (analysisNames != null || format.equals("html")) {
            throw new IllegalArgumentException("--policy-file goes with neither --analysis nor --format html; it "
                + "chooses the analysis, and the report knows no partitions");
        }
        final Map<String, Integer> partitions = new HashMap<>();
        for (final PolicySettings.TaskRule rule : settings.taskRules()) {
            if (set.tasks().stream().noneMatch(task -> task.name().equals(rule.task()))) {
                throw new IllegalArgumentException("--policy-file: task \"" + rule.task()
                    + "\" is not in the task set; check the name");
            }
            partitions.put(rule.task(), Math.max(0, rule.partition()));
        }
        if (settings.policy() == null) {
            throw new IllegalArgumentException("--policy-file " + policyFile + " names no policy; add one");
        }
        final SoundAnalysis sound = SoundAnalysis.of(settings.policy(), Capabilities.INTERRUPT, set.mode(),
            CoreOrder.FP, MechanismCatalog.interrupting());
        if (!sound.exists()) {
            throw new IllegalArgumentException("--policy-file " + policyFile + ": " + sound.reason());
        }
        if (sound.turns() && isTogether(set, settings.policy())) {
            return Analyses.byTurns();
        }
        return sound.analysis() instanceof TimePartitioned p ? p.with(name -> partitions.getOrDefault(name, 0))
            : sound.analysis();
    }

    private String render(final TaskSet set, final List<AnalysisResult> results, final Dossier dossier) {
        if (format.equals("text")) {
            return ResultWriter.text(set, results, dossier);
        }
        if (format.equals("json")) {
            return ResultWriter.json(set, results, dossier);
        }
        final List<String> known = new ArrayList<>(List.of("text", "json", TASKSET));
        for (final ReportFormat report : ServiceLoader.load(ReportFormat.class)) {
            if (report.name().equals(format)) {
                return report.render(set, results, dossier);
            }
            known.add(report.name());
        }
        throw new IllegalArgumentException("--format is " + format + "; known are " + String.join(", ", known));
    }

    private void write(final String text, final PrintWriter out) throws IOException {
        if (output != null) {
            ResultFile.write(output, text);
        } else {
            out.print(text);
            out.flush();
        }
    }

    /** Lists the analyses at the end of the help. */
    static final class Catalogue implements IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec command) {
            final List<String> lines = new ArrayList<>(List.of(command.usageMessage().footer()));
            lines.addAll(List.of("", "Analyses:"));
            final List<Analysis> known = new ArrayList<>(Analyses.all());
            known.addAll(Analyses.withStatedTurns());
            for (final Analysis analysis : known) {
                lines.add(("  " + analysis.name() + ": " + analysis.summary() + " ["
                    + Soundness.of(analysis.description()).text() + "]").replace("%", "%%"));
            }
            command.usageMessage().footer(lines.toArray(new String[0]));
            return command;
        }
    }
}

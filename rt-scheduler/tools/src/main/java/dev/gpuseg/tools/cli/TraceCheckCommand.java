/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.launch.PolicyJarOption;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.Trace;
import dev.gpuseg.tools.trace.TraceBounds;
import dev.gpuseg.tools.trace.TraceBuilder;
import dev.gpuseg.tools.trace.TraceCheck;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** A recording against what was assumed and promised. */
@Command(name = "check", mixinStandardHelpOptions = true,
    description = "Compare a recording with a task set: execution times, periods, deadlines, the bounds that are "
        + "sound for its policy and mechanism, chains, priority inversions, lost records. What ran under policy rr is "
        + "not judged.",
    footer = "%nExit status: 0 every check passed, 3 one did not, 2 the input is wrong, 1 failure.")
final class TraceCheckCommand implements Callable<Integer> {
    /** Findings of one kind that are printed. */
    private static final int SHOWN = 10;
    private static final double PERCENT = 100;
    private static final long NS_PER_US = 1_000;

    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "RECORDING", description = "Recording, or directory of a journal.")
    private Path file;

    @Option(names = "--taskset", paramLabel = "FILE", required = true, description = "Task set in YAML or JSON.")
    private Path taskSet;

    @Option(names = "--decisions",
        description = "Also replay the scheduler and compare its decisions with the recorded ones.")
    private boolean decisions;

    @Mixin
    private PolicyJarOption jar;

    @Option(names = "--tolerance", paramLabel = "TIME", defaultValue = "200us",
        description = "Time allowed on top of every limit, for the jitter of clocks and wake-ups (default: "
            + "${DEFAULT-VALUE}).")
    private String tolerance;

    @Option(names = "--json", description = "Print JSON; times are in nanoseconds.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        final TaskSet set;
        final long toleranceNs;
        try {
            set = new TaskSetReader().read(taskSet);
            toleranceNs = Durations.parse(tolerance);
        } catch (final InvalidFileException | IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        final Source source = Source.open(file);
        final Trace trace = TraceBuilder.read(source);
        final TraceBounds bounds = TraceBounds.of(trace, set);
        final TraceCheck.Result checked = TraceCheck.of(trace, set, bounds.result(), toleranceNs);
        final List<TraceCheck.Finding> findings = new ArrayList<>(checked.findings());
        final List<String> notes = new ArrayList<>(checked.notes());
        if (!bounds.reason().isEmpty()) {
            notes.add(bounds.reason());
        }
        long compared = 0;
        if (decisions) {
            final DecisionReplay.Result replay = replay(source);
            compared = replay.decisions();
            for (final String difference : replay.differences()) {
                findings.add(new TraceCheck.Finding("decision", "", 0, 0, 0, 0, difference));
            }
            if (compared == 0) {   // nothing was shown, so nothing holds
                findings.add(new TraceCheck.Finding("decision", "", 0, 0, 0, 0, "no decision was compared: "
                    + (replay.incomplete().isEmpty() ? "there is none in it" : replay.incomplete())));
            } else if (!replay.incomplete().isEmpty()) {
                notes.add("decisions: " + replay.incomplete());
            }
        }
        final PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(
                asJson(trace, checked, findings, notes, compared)));
        } else {
            print(out, trace, checked, findings, notes, compared, bounds.result());
        }
        out.flush();
        return findings.isEmpty() ? ExitCode.OK : ExitCode.NO;
    }

    private DecisionReplay.Result replay(final Source source) throws IOException {
        try (PolicySource policies = jar.open()) {
            return DecisionReplay.of(source, policies.reader());
        } catch (final IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
    }

    private static ObjectNode asJson(final Trace trace, final TraceCheck.Result checked,
        final List<TraceCheck.Finding> findings, final List<String> notes, final long compared) {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("holds", findings.isEmpty()).put("simulated", trace.isSimulated()).put("jobs_judged", checked.judged())
            .put("jobs_left_out", checked.leftOut()).put("decisions_compared", compared);
        for (final TraceCheck.TaskRow row : checked.tasks()) {
            root.withArray("tasks").addObject().put("task", row.task()).put("jobs", row.jobs()).put("late", row.late())
                .put("longest_ns", row.longestNs()).put("deadline_ns", row.deadlineNs())
                .put("bound_ns", row.boundNs());
        }
        root.putArray("findings");
        for (final TraceCheck.Finding f : findings) {
            root.withArray("findings").addObject().put("kind", f.kind()).put("task", f.task()).put("job", f.job())
                .put("time_ns", f.timeNs()).put("measured", f.measuredNs()).put("limit", f.limitNs())
                .put("text", f.text());
        }
        for (final TraceCheck.MissRow row : checked.misses()) {
            root.withArray("misses").addObject().put("task", row.task()).put("late", row.late())
                .put("most", row.most()).put("jobs", row.jobs()).put("limit", row.limit()).put("bound", row.bound());
        }
        for (final TraceCheck.ChainRow chain : checked.chains()) {
            root.withArray("chains").addObject().put("name", chain.name()).put("outputs", chain.outputs())
                .put("unmatched", chain.unmatched()).put("max_reaction_ns", chain.maxReactionNs())
                .put("reaction_bound_ns", chain.reactionBoundNs()).put("reaction_deadline_ns", chain.reactionLimitNs())
                .put("max_age_ns", chain.maxAgeNs()).put("age_bound_ns", chain.ageBoundNs())
                .put("age_deadline_ns", chain.ageLimitNs());
        }
        root.putArray("notes");
        notes.forEach(root.withArray("notes")::add);
        return root;
    }

    /** A line for each task: how many jobs, how many late, and how near the longest came to what it must not exceed. */
    private static void table(final PrintWriter out, final List<TraceCheck.TaskRow> rows) {
        final int width = Math.max(4, rows.stream().mapToInt(row -> row.task().length()).max().orElse(0));
        final String format = "%-" + width + "s %7s %6s %10s  %s%n";
        if (!rows.isEmpty()) {
            out.printf(Locale.ROOT, format, "task", "jobs", "late", "longest", "of");
        }
        for (final TraceCheck.TaskRow row : rows) {
            out.printf(Locale.ROOT, format, row.task(), row.jobs(), row.deadlineNs() == 0 ? "-" : "" + row.late(),
                row.jobs() == 0 ? "-" : Durations.format(row.longestNs() / NS_PER_US * NS_PER_US), limit(row));
        }
    }

    private static String limit(final TraceCheck.TaskRow row) {
        if (row.deadlineNs() == 0) {
            return "best effort";
        }
        final long limitNs = row.boundNs() == null ? row.deadlineNs() : row.boundNs();
        return (row.boundNs() == null ? "deadline " : "bound ") + Durations.format(limitNs) + (row.jobs() == 0
            || limitNs == 0 ? "" : String.format(Locale.ROOT, " (%.0f %%)", PERCENT * row.longestNs() / limitNs));
    }

    private static String figure(final long seenNs, final Long boundNs, final long limitNs) {
        return (seenNs == 0 ? "not seen" : Durations.format(seenNs))
            + (boundNs == null ? "" : ", bound " + Durations.format(boundNs))
            + (limitNs == 0 ? "" : ", limit " + Durations.format(limitNs));
    }

    private void print(final PrintWriter out, final Trace trace, final TraceCheck.Result checked,
        final List<TraceCheck.Finding> findings, final List<String> notes, final long compared,
        final AnalysisResult result) {
        table(out, checked.tasks());
        final Map<String, List<TraceCheck.Finding>> kinds = new LinkedHashMap<>();
        findings.forEach(finding -> kinds.computeIfAbsent(finding.kind(), kind -> new ArrayList<>()).add(finding));
        kinds.forEach((kind, all) -> {
            all.stream().limit(SHOWN).forEach(finding -> out.println(kind + ": " + finding.text()));
            if (all.size() > SHOWN) {
                out.println(kind + ": " + (all.size() - SHOWN) + " more (--json shows all)");
            }
        });
        for (final TraceCheck.MissRow row : checked.misses()) {
            out.println("task " + row.task() + ": " + row.late() + " late, at most " + row.most() + " of " + row.jobs()
                + " in a row, limit " + row.limit() + (row.bound() == null ? "" : ", bound " + row.bound()));
        }
        for (final TraceCheck.ChainRow chain : checked.chains()) {
            out.println("chain " + chain.name() + ": longest reaction " + figure(chain.maxReactionNs(),
                chain.reactionBoundNs(), chain.reactionLimitNs()) + "; largest age " + figure(chain.maxAgeNs(),
                chain.ageBoundNs(), chain.ageLimitNs()) + "; " + chain.outputs() + " outputs");
        }
        for (final String note : notes) {
            out.println("note: " + note);
        }
        out.println((findings.isEmpty() ? "holds: " : findings.size() + " broken: ") + checked.judged()
            + " jobs judged" + (checked.leftOut() > 0 ? ", " + checked.leftOut() + " left out (policy rr)" : "")
            + (result == null ? "" : ", bounds of " + result.analysis()) + (decisions ? ", " + compared
            + " decisions compared" : "") + ", tolerance " + tolerance
            + (trace.isSimulated() ? "; SIMULATED GPU" : ""));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.core.BestEffortTurns;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.space.Space;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.CalibrationMethod;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.tools.calibrate.AmdCalibration;
import dev.gpuseg.tools.calibrate.AmdProfile;
import dev.gpuseg.tools.calibrate.BeginWaits;
import dev.gpuseg.tools.calibrate.Calibration;
import dev.gpuseg.tools.calibrate.CalibrationRig;
import dev.gpuseg.tools.calibrate.NvidiaCalibration;
import dev.gpuseg.tools.calibrate.SimCalibration;
import dev.gpuseg.tools.calibrate.SpaceCalibration;
import dev.gpuseg.tools.calibrate.SpaceCosts;
import dev.gpuseg.tools.calibrate.SpaceProfile;
import dev.gpuseg.tools.calibrate.Witness;
import dev.gpuseg.tools.demo.Workload;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Measures a platform and writes its profile. */
@Command(name = "calibrate", mixinStandardHelpOptions = true,
    description = "Measure what enforcement and sharing cost on this machine, and write a profile for `gpuseg "
        + "analyze` (`platform: NAME` in a task set beside it). Nothing else should use the GPU meanwhile.")
final class CalibrateCommand implements Callable<Integer> {
    private static final double NS_PER_MS = 1e6;
    private static final double PERCENT = 100;
    /** Measurements that {@link #measure} makes: of responses, of those again with churn, of rates. */
    private static final int RESPONSES = 5;
    private static final int RESPONSES_OF_CHURN = 3;
    private static final int RATES = 2;
    /** A rate takes as long as so many kernels. */
    private static final int KERNELS_OF_A_RATE = 75;
    /** In place of a mechanism, also with a reserve. */
    private static final String SPACE = "space";
    private static final Pattern SPACE_AND_RESERVE = Pattern.compile(SPACE + "(?::([0-9]{1,2})%?)?");
    /** Added to the longest delays observed, percent. */
    private static final int MARGIN = 20;

    @Spec
    private CommandSpec spec;
    /** How long begins waited with turns and slices. */
    private BeginWaits waits;

    @Option(names = "--mechanism", paramLabel = "NAME", completionCandidates = Mechanisms.class,
        description = "How the GPU is controlled: ${COMPLETION-CANDIDATES} (default: as `gpuseg run` would choose; sim "
            + "on demand only). space measures what `gpuseg run --space` costs, with a reserve of 12 percent "
            + "(space:20: of 20), in an MPS of its own, and adds that to --out if calibrate has written it.")
    private String mechanism;

    @Option(names = "--out", paramLabel = "FILE", defaultValue = "platform.yaml",
        description = "The profile; a task set names it without .yaml (default: ${DEFAULT-VALUE}).")
    private Path out;

    @Option(names = "--jobs", paramLabel = "N", defaultValue = "200",
        description = "Kernels timed in each measurement, 20..100000 (default: ${DEFAULT-VALUE}).")
    private int jobs;

    @Option(names = "--workload", paramLabel = "NAME|FILE", defaultValue = Workload.DEFAULT,
        description = "With --mechanism sim: the workload whose platform the virtual GPU imitates (default: "
            + "${DEFAULT-VALUE}).")
    private String workload;

    @Option(names = "--idle", paramLabel = "spin|hybrid|sleep", defaultValue = "hybrid",
        description = "As the daemon of `gpuseg run` will be started: epsilon contains its wake-ups (default: "
            + "${DEFAULT-VALUE}).")
    private String idle;

    @Option(names = "--others", paramLabel = "N", defaultValue = "3",
        description = "Number of processes that are disabled while delays are measured, 1..14. Each one adds to "
            + "epsilon: use as many as there will be. With --mechanism space: number of places (default: "
            + "${DEFAULT-VALUE}).")
    private int others;

    @Option(names = "--churn", paramLabel = "N", defaultValue = "2",
        description = "Processes per second that make a context, work and end while delays are measured a second time, "
            + "0..20, beside nvidia-smi in its forms where it is installed; 0 measures only without them (default: "
            + "${DEFAULT-VALUE}). Driver calls take longer while contexts come and go.")
    private double churn;

    @Option(names = "--gpu", paramLabel = "N", defaultValue = "0",
        description = "With --mechanism amd: index of the GPU, in the order of KFD's nodes (default: "
            + "${DEFAULT-VALUE}).")
    private int gpu;

    @Option(names = "--pid", paramLabel = "PID", split = ",",
        description = "With --mechanism amd: disable and enable these processes again and again (default: every "
            + "process with compute queues on the GPU, except display servers).")
    private List<Integer> pids = List.of();

    @Option(names = "--witness", paramLabel = "FILE[:OFFSET]",
        description = "With --mechanism amd: mapped file in which a process that --pid does not name counts its "
            + "kernels (8 bytes at OFFSET, default 0). Also measures how long that process stands still while others "
            + "are switched.")
    private String witness;

    @Option(names = "--json", description = "Also print the result as JSON.")
    private boolean json;

    /** The names to choose from. */
    static final class Mechanisms implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Stream.concat(MechanismCatalog.all().stream()
                .filter(m -> m.calibration() != CalibrationMethod.NONE).map(MechanismDescription::name),
                Stream.of(SPACE)).iterator();
        }
    }

    private CalibrationMethod method() {
        return MechanismCatalog.find(mechanism).map(MechanismDescription::calibration).orElse(CalibrationMethod.NONE);
    }

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (jobs < 20 || jobs > 100_000) {
            throw usage("--jobs is " + jobs + "; use 20..100000");
        }
        if (others < 1 || others > 14) {
            throw usage("--others is " + others + "; use 1..14");
        }
        try {
            IdleMode.named(idle);
        } catch (final IllegalArgumentException e) {
            throw usage("--idle: " + e.getMessage());
        }
        final String file = out.getFileName().toString();
        if (!file.matches("[A-Za-z0-9][A-Za-z0-9._-]{0,95}\\.yaml")) {
            throw usage("--out is " + out + "; name a file of letters, digits, '.', '_' and '-' that ends in .yaml");
        }
        if (!(churn >= 0 && churn <= 20)) {
            throw usage("--churn is " + churn + "; use 0..20 processes per second");
        }
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        if (mechanism == null) {
            try {
                mechanism = MechanismCatalog.bestToCalibrate(MechanismCatalog.survey(RuntimeDirectory.find(null)))
                    .name();
            } catch (final MechanismException e) {
                throw usage(e.getMessage());
            }
        }
        if (method() == CalibrationMethod.AMD_QUEUES) {
            return amd(result);
        }
        if (!pids.isEmpty() || witness != null || gpu != 0) {
            throw usage("--gpu, --pid and --witness are for --mechanism amd");
        }
        if (SPACE_AND_RESERVE.matcher(mechanism).matches()) {
            return space(result);
        }
        final Calibration calibration;
        try (CalibrationRig rig = rig()) {
            result.put("idle", idle).put("others", others);
            result.put("begun", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
            rig.describe(result);
            say("mechanism " + mechanism + ": takes about " + seconds(rig) + " s, more where the machine is busy");
            calibration = measure(rig, result);
        }
        ResultFile.write(out, profile(calibration, result));
        print(calibration, result);
        return ExitCode.OK;
    }

    private int amd(final ObjectNode result) throws IOException, InterruptedException, TimeoutException {
        if (witness != null && pids.isEmpty()) {
            throw usage("--witness is given without --pid, so all processes would be disabled; name them with --pid");
        }
        final AmdCalibration.Costs costs;
        final AmdProfile profile;
        try (Witness watched = witness == null ? null : witness();
            AmdCalibration rig = new AmdCalibration(gpu, pids, idle, jobs)) {
            say("mechanism " + mechanism + ": " + jobs + " changes of each set of processes, which takes minutes");
            result.put("idle", idle).put("begun", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
            costs = rig.measure(watched, result);
        }
        profile = new AmdProfile(costs, MARGIN, result);
        ResultFile.write(out, profile.text());
        final PrintWriter to = spec.commandLine().getOut();
        if (json) {
            to.println(profile.json().put("profile", out.toString()));
        } else {
            to.printf("%s%nwritten: %s%n", profile.summary(), out);
        }
        to.flush();
        return ExitCode.OK;
    }

    private int space(final ObjectNode result) throws IOException, InterruptedException, TimeoutException {
        final Matcher named = SPACE_AND_RESERVE.matcher(mechanism);
        final Space space;
        try {
            space = Space.equal(named.matches() && named.group(1) != null ? Integer.parseInt(named.group(1))
                : Space.RESERVE_DEFAULT, others);
        } catch (final IllegalArgumentException e) {
            throw usage("--mechanism " + mechanism + ": " + e.getMessage());
        }
        final SpaceProfile profile = new SpaceProfile(out);
        final SpaceCosts costs;
        try (SpaceCalibration rig = new SpaceCalibration(space)) {
            result.put("begun", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
            say("mechanism space: takes about " + rig.seconds(jobs) + " s, more where the machine is busy");
            costs = rig.measure(jobs, this::say);
            rig.describe(result);
        }
        costs.describe(result);
        final SpaceLimits limits = costs.limits(MARGIN);
        ResultFile.write(out, profile.text(limits, MARGIN, result));
        final PrintWriter to = spec.commandLine().getOut();
        if (json) {
            to.println(result.put("margin_percent", MARGIN).put("profile", out.toString())
                .put("slowdown_percent", limits.slowdownPercent()).put("in_flight_ns", limits.inFlightNs()));
        } else {
            to.printf(Locale.ROOT, "%s%s%nspace of %d %%: slowdown %d %% (%s), in flight %.3f ms (%s); margin of %d %% "
                + "in both%nwritten: %s%n", result.path("driver").asText(), result.path("simulated").asBoolean()
                ? " (SIMULATED)" : "", limits.reservePercent(), limits.slowdownPercent(),
                result.path("slowest").asText(), limits.inFlightNs() / NS_PER_MS, result.path("longest").asText(),
                MARGIN, out);
        }
        to.flush();
        return ExitCode.OK;
    }

    private int seconds(final CalibrationRig rig) {
        return (churn == 0 ? RESPONSES : RESPONSES + RESPONSES_OF_CHURN) * rig.seconds(jobs) + RATES
            * rig.seconds(KERNELS_OF_A_RATE);
    }

    private void say(final String line) {
        final PrintWriter to = spec.commandLine().getErr();
        to.println(line);
        to.flush();
    }

    private Witness witness() throws IOException {
        final int colon = witness.lastIndexOf(':');
        final boolean given = colon >= 0 && witness.substring(colon + 1).matches("[0-9]{1,18}");
        final Path file = Path.of(given ? witness.substring(0, colon) : witness);
        try {
            return new Witness(file, given ? Long.parseLong(witness.substring(colon + 1)) : 0);
        } catch (final IllegalArgumentException e) {
            throw usage(e.getMessage());
        } catch (final IOException e) {
            throw usage("--witness: " + file + " cannot be read: " + ResultFile.reason(e));
        }
    }

    private CalibrationRig rig() throws IOException, InterruptedException, TimeoutException {
        switch (method()) {
            case VIRTUAL_GPU:
                try {
                    return new SimCalibration(Workload.named(workload), idle, others);
                } catch (final IllegalArgumentException e) {
                    throw usage("--workload: " + e.getMessage());
                }
            case CUDA_KERNELS:
                return new NvidiaCalibration(idle, others);
            default:
                throw usage("--mechanism is \"" + mechanism + "\"; use " + MechanismCatalog.namesOfCalibrated()
                    + ", or " + SPACE + " or " + SPACE + ":20");
        }
    }

    private Calibration measure(final CalibrationRig rig, final ObjectNode result) throws IOException,
        InterruptedException, TimeoutException {
        final long[] alone = say("alone", rig.responses(CalibrationRig.Mode.ALONE, jobs), result);
        final long[] shared = say("shared", rig.responses(CalibrationRig.Mode.SHARED, jobs), result);
        final long[] blocking = say("blocking", rig.responses(CalibrationRig.Mode.BLOCKING, jobs), result);
        final long[] optimistic = say("optimistic", rig.responses(CalibrationRig.Mode.OPTIMISTIC, jobs), result);
        final long[] turns = say("turns", rig.responses(CalibrationRig.Mode.TURNS, jobs), result);
        final long[] calls = say("driver_calls", rig.calls(), result);
        final long[] returns = say("enable", rig.returns(), result);
        final double one = rig.rate(1);
        final double two = rig.rate(2);
        result.put("kernels_per_s_one", one).put("kernels_per_s_two", two);
        result.put("driver_timeslice_ns", rig.timesliceNs());
        final Calibration quiet = Calibration.of(new Calibration.Samples(alone, blocking, optimistic, shared, calls,
            returns, one, two, rig.timesliceNs()), MARGIN / PERCENT);
        result.put("quiet_epsilon_ns", quiet.epsilonNs()).put("quiet_alpha_ns", quiet.alphaNs())
            .put("churn_per_s", churn);
        if (churn == 0) {
            addWaits(rig, new BeginWaits(quiet.aloneNs(), turns), result);
            return quiet;
        }
        rig.churn(churn);
        final Calibration.Samples busy = new Calibration.Samples(alone,
            say("churn_blocking", rig.responses(CalibrationRig.Mode.BLOCKING, jobs), result),
            say("churn_optimistic", rig.responses(CalibrationRig.Mode.OPTIMISTIC, jobs), result), shared,
            say("churn_calls", rig.calls(), result), say("churn_enable", rig.returns(), result), one, two,
            rig.timesliceNs());
        addWaits(rig, new BeginWaits(quiet.aloneNs(), turns, say("churn_turns",
            rig.responses(CalibrationRig.Mode.TURNS, jobs), result)), result);
        result.put("churn_processes", rig.cameAndWent());
        return quiet.orLonger(Calibration.of(busy, MARGIN / PERCENT));
    }

    /** The waits, under which circumstances, and whether the others took turns in them. */
    private void addWaits(final CalibrationRig rig, final BeginWaits measured, final ObjectNode result) {
        if (others > 1 && rig.turnsTaken() == 0) {
            throw new IllegalStateException("calibrate: of " + others + " processes none was given a turn; nothing is "
                + "known of waits with turns (is the GPU used by others?)");
        }
        waits = measured;
        final ObjectNode wait = result.putObject("wait_ns");
        waits.describe(wait);
        wait.put("contexts", others).put("slice_ns", BestEffortTurns.SHORT_SLICE_NS)
            .put("turn_ns", BestEffortTurns.TURN_NS).put("turns_taken", rig.turnsTaken()).put("churn_per_s", churn);
        final ArrayNode monitors = wait.putArray("monitors");
        rig.monitors().forEach(monitors::add);
    }

    private long[] say(final String name, final long[] values, final ObjectNode result) {
        if (values.length == 0) {
            throw new IllegalStateException("calibrate: nothing was measured (" + name + ")");
        }
        final long[] sorted = values.clone();
        Arrays.sort(sorted);
        result.putObject(name + "_ns").put("n", sorted.length).put("min", sorted[0])
            .put("p50", sorted[sorted.length / 2]).put("p99", sorted[sorted.length * 99 / 100])
            .put("max", sorted[sorted.length - 1]);
        final PrintWriter to = spec.commandLine().getErr();
        to.printf(Locale.ROOT, "%-13s n %5d   min %8.3f   p50 %8.3f   max %8.3f ms%n", name, sorted.length,
            sorted[0] / NS_PER_MS, sorted[sorted.length / 2] / NS_PER_MS, sorted[sorted.length - 1] / NS_PER_MS);
        to.flush();
        return values;
    }

    private String profile(final Calibration c, final ObjectNode result) {
        final StringBuilder text = new StringBuilder("# Written by gpuseg calibrate. Longest delays observed, plus ")
            .append(MARGIN).append(" %: no proof that none is longer.\n");
        if (result.path("simulated").asBoolean()) {
            text.append("# SIMULATED: these are constants of a virtual GPU or a stand-in.\n");
        }
        text.append("cpus: ").append(Runtime.getRuntime().availableProcessors()).append('\n');
        text.append("epsilon: ").append(Workload.us(c.epsilonNs()))
            .append("   # all other contexts disabled and all enabled; no update exceeds it (window.md, section 7)\n");
        text.append("alpha: ").append(Workload.us(c.alphaNs())).append('\n');
        if (result.path("churn_per_s").asDouble() > 0) {
            text.append("# Both hold while ").append(result.path("churn_per_s").asText())
                .append(" processes a second make and free contexts. A task set that says platform: {churn: none} "
                    + "gets the values of quiet.\n")
                .append("quiet: {epsilon: ").append(Workload.us(result.path("quiet_epsilon_ns").asLong()))
                .append(", alpha: ").append(Workload.us(result.path("quiet_alpha_ns").asLong())).append("}\n");
        } else {
            text.append("# Both hold only while no process makes or frees a context (--churn 0).\n");
        }
        text.append("theta: ").append(Workload.us(c.thetaNs())).append('\n');
        text.append("timeslice: ").append(Workload.us(Math.max(1, c.timesliceNs()))).append('\n');
        text.append("optimistic: true\n");
        text.append("# With turns: of ").append(waits.count()).append(" begins none waited longer, so at most ")
            .append(String.format(Locale.ROOT, "%.2f", waits.longerPercent()))
            .append(" % do (95 % confidence).\nturns: {slice: ")
            .append(Workload.us(BestEffortTurns.SHORT_SLICE_NS)).append(", contexts: ").append(others)
            .append(", wait: ").append(Workload.us(waitNs())).append(", samples: ").append(waits.count()).append("}\n");
        // what a maximum of so many updates, with so many contexts, can say is printed with every bound
        text.append("contexts: ").append(others + 1).append('\n');
        text.append("samples: ").append(updates(result)).append('\n');
        text.append("measured: ").append(result.put("margin_percent", MARGIN)
            .put("one_way_epsilon_ns", c.oneWayNs())).append('\n');
        return text.toString();
    }

    /** The longest wait of a begin with the margin. */
    private long waitNs() {
        return Math.max(1, (long) Math.ceil(waits.longestNs() * (1 + MARGIN / PERCENT)));
    }

    /** The updates of which epsilon is the longest. */
    private static int updates(final ObjectNode result) {
        int n = 0;
        for (final String name : new String[] {"blocking_ns", "optimistic_ns", "churn_blocking_ns",
            "churn_optimistic_ns"}) {
            n += result.path(name).path("n").asInt();
        }
        return Math.max(1, n);
    }

    private void print(final Calibration c, final ObjectNode result) {
        final PrintWriter to = spec.commandLine().getOut();
        if (json) {
            result.put("profile", out.toString()).put("epsilon_ns", c.epsilonNs()).put("alpha_ns", c.alphaNs())
                .put("theta_ns", c.thetaNs()).put("wait_constant_ns", waitNs()).put("timeslice_ns", c.timesliceNs());
            to.println(result);
        } else {
            to.printf(Locale.ROOT, "%s%s%nepsilon %.3f ms (%.3f if no update both disables and enables; "
                + "%.3f while no process makes or frees a context), longest driver call %.3f, switch %.3f ms, "
                + "time slice %.3f ms; margin of %d %% in epsilon, the driver call and the wait%n"
                + "a begin with turns waits at most %.3f ms: longest of %d waits %.3f, p50 %.3f, p99 %.3f ms; "
                + "a longer one has a probability of at most %.2f %%%nwritten: %s%n",
                result.path("driver").asText(), result.path("simulated").asBoolean()
                ? " (SIMULATED)" : "", c.epsilonNs() / NS_PER_MS, c.oneWayNs() / NS_PER_MS,
                result.path("quiet_epsilon_ns").asLong() / NS_PER_MS, c.alphaNs() / NS_PER_MS,
                c.thetaNs() / NS_PER_MS, c.timesliceNs() / NS_PER_MS, MARGIN, waitNs() / NS_PER_MS, waits.count(),
                waits.longestNs() / NS_PER_MS, waits.quantileNs(500) / NS_PER_MS, waits.quantileNs(990) / NS_PER_MS,
                waits.longerPercent(), out);
        }
        to.flush();
    }

    private CommandLine.ParameterException usage(final String message) {
        return new CommandLine.ParameterException(spec.commandLine(), message);
    }
}

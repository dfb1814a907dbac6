/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.Node;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.daemon.config.ConfigFile;
import dev.gpuseg.daemon.config.ConfigProblem;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.daemon.jvm.LastWords;
import dev.gpuseg.daemon.jvm.OutOfMemory;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.daemon.process.Daemon;
import dev.gpuseg.daemon.process.DaemonConfig;
import dev.gpuseg.daemon.process.SiteRules;
import dev.gpuseg.daemon.process.StartUpException;
import dev.gpuseg.daemon.process.Supervision;
import dev.gpuseg.daemon.space.Space;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.CpuSet;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.NotifySocket;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.ipc.platform.UserNames;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The daemon, in the foreground. */
@Command(name = "run", mixinStandardHelpOptions = true, modelTransformer = PolicyHelp.OfRun.class,
    description = "Run the daemon in the foreground until SIGTERM, SIGINT or `gpuseg stop`.")
public final class RunCommand implements Callable<Integer> {
    /**
     * A process id, set by commands that start a daemon for themselves: the daemon stops when that process has ended,
     * also if it was killed. No setting, since it makes sense for a child only.
     */
    public static final String PARENT_PROPERTY = "gpuseg.parent";
    /** What is for others, too, is given to them; directories can be passed through. */
    private static final int OWN_FILES = 0066;

    private static final String SIM = "sim";
    /** The mechanism for clients of an MPS server, of which the driver cannot preempt one alone. */
    private static final String SPACED = "launch";

    private final LastWords stopFailure = new LastWords();

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = RunSettings.FILE_OPTION, paramLabel = "FILE",
        description = "Read settings from this YAML file. Every other option of this command is a key, without its "
            + "dashes, and there are further keys: see `gpuseg config --help`. The command line takes precedence "
            + "(default: /etc/gpuseg/gpuseg.yaml where gpuseg is installed).")
    private Path settings;

    @Option(names = "--policy", paramLabel = "NAME", completionCandidates = PolicyHelp.class,
        description = "Order of the tasks: ${COMPLETION-CANDIDATES}, explained below. Parameters stand in "
            + "--policy-file (default: fp; with --mechanism observe: rr).")
    private String policy;

    @Option(names = "--policy-jar", paramLabel = "FILE",
        description = "Jar with further policies. They are checked for conformance before the daemon starts. Without "
            + "--policy the only policy of the jar is used. Its code runs in the daemon, so a daemon of root refuses "
            + "a jar that another user could write. No analysis covers it: --admission enforce refuses it.")
    private Path policyJar;

    @Option(names = "--policy-file", paramLabel = "FILE",
        description = "Read the policy and its parameters (partitions, weights, caps, overrun actions) from this "
            + "file; see `gpuseg policy`.")
    private Path policyFile;

    @Option(names = "--mechanism", paramLabel = "NAME", defaultValue = MechanismCatalog.AUTO,
        completionCandidates = MechanismHelp.class,
        description = "How the policy is enforced: ${COMPLETION-CANDIDATES}; explained below. auto takes "
            + "what `gpuseg doctor` calls the best on this machine; a line at the start says which, and whether "
            + "running work is interrupted (default: ${DEFAULT-VALUE}).")
    private String mechanism;

    @Option(names = "--virtual-gpu",
        description = "Start a virtual GPU (gpuseg-vgpu) in the runtime directory unless one runs there, and use "
            + "mechanism sim. It ends with the daemon. All results are simulated.")
    private boolean virtualGpu;

    @Option(names = "--space",
        description = "Keep a part of the GPU free for short loops (`gpuseg exec --reserve`), by an MPS server that "
            + "programs under `gpuseg exec` become clients of; with mechanism launch, which auto is then "
            + "(keys: space-reserve, space-places).")
    private boolean space;

    @Option(names = "--gpus", paramLabel = "N",
        description = "Number of GPUs, the first ones, 1..16 (default: all that are found; with --space 1).")
    private Integer gpus;

    @Option(names = "--idle", paramLabel = "spin|hybrid|sleep", defaultValue = "hybrid",
        description = "What the dispatcher does without work: spin polls all the time, hybrid polls for 200 us and "
            + "then sleeps, sleep sleeps at once (default: ${DEFAULT-VALUE}).")
    private String idle;

    @Option(names = "--anticipate", paramLabel = "off|declared|learned",
        description = "Disable lower work shortly before a real-time task is expected to begin: declared does so for "
            + "tasks that declare a period, learned also for those whose begins show one (default: declared).")
    private String anticipate;

    @Option(names = "--journal", paramLabel = "DIR",
        description = "Directory of the journal (default: journal in the runtime directory).")
    private Path journal;

    @Option(names = "--cpu", paramLabel = "N", defaultValue = "-1",
        description = "Pin the dispatcher to this CPU (default: any).")
    private int cpu;

    @Option(names = "--priority", paramLabel = "N", defaultValue = "0",
        description = "SCHED_FIFO priority of the dispatcher, 1..99, or 0 for none. The daemon's other threads, which "
            + "it may have to wait for, become real-time as well: priority 1, or this one where they stop all others "
            + "(default: ${DEFAULT-VALUE}).")
    private int priority;

    @Option(names = "--metrics", paramLabel = "127.0.0.1:PORT",
        description = "Serve metrics for Prometheus at /metrics on this port of 127.0.0.1, where every local user can "
            + "read them. Port 0 takes any free port (default: no metrics).")
    private String metrics;

    @Mixin
    private SiteOptions site;

    private final SettingKeys keys = SettingKeys.defaults();
    private final Function<RuntimeDirectory, List<MechanismCatalog.Surveyed>> survey;

    /** On this machine. */
    public RunCommand() {
        this(MechanismCatalog::survey);
    }

    /**
     * With another look at the devices.
     *
     * @param survey what works here, for a runtime directory
     */
    RunCommand(final Function<RuntimeDirectory, List<MechanismCatalog.Surveyed>> survey) {
        this.survey = survey;
    }

    @Override
    public Integer call() {
        OutOfMemory.watchThreads();
        final AppliedSettings applied = readSettings();
        final OptionProblems problems = new OptionProblems();
        try (PolicySource policies = policies(problems)) {
            final DaemonConfig config = config(policies, problems);
            final Endpoint metricsAt = metricsEndpoint(problems);
            if (!problems.none() || !applied.problems().isEmpty()) {
                return refused(applied, problems.all());
            }
            try (VirtualGpu gpu = virtualGpu ? VirtualGpu.start(config.directory(), config.priority()) : null) {
                return run(config, metricsAt, gpu);
            }
        } catch (final StartUpException e) {
            spec.commandLine().getErr().println("gpuseg: " + applied.place(e).map(ConfigProblem::toString)
                .orElse("cannot start: " + e.getMessage()));
            return e.option().isEmpty() ? ExitCode.FAILURE : ExitCode.USAGE;
        }
    }

    /**
     * Checks the options against each other and this machine, as before a start. Starts nothing. Returns what is
     * refused, naming the option, its value and the remedy.
     */
    List<StartUpException> check() {
        final OptionProblems problems = new OptionProblems();
        try (PolicySource policies = policies(problems)) {
            final DaemonConfig config = config(policies, problems);
            metricsEndpoint(problems);
            if (problems.none()) {
                Daemon.requireStartable(config);
            }
        } catch (final StartUpException e) {
            problems.add(e);
        }
        return problems.all();
    }

    /** Says every mistake: those in the file in the order of the lines, then those of the command line. */
    private int refused(final AppliedSettings applied, final List<StartUpException> refused) {
        final PrintWriter err = spec.commandLine().getErr();
        Stream.concat(applied.problems().stream(), refused.stream().map(applied::place).flatMap(Optional::stream))
            .sorted(Comparator.comparingInt(ConfigProblem::line)).forEach(problem -> err.println("gpuseg: " + problem));
        final List<StartUpException> typed = refused.stream().filter(e -> applied.place(e).isEmpty()).toList();
        typed.forEach(e -> err.println("gpuseg: " + e.getMessage()));
        if (!typed.isEmpty()) {
            err.println("See: " + spec.qualifiedName(" ") + " --help");
        }
        return ExitCode.USAGE;
    }

    private int run(final DaemonConfig asked, final Endpoint metricsAt, final VirtualGpu gpu) {
        final Optional<SudoCaller> caller = SudoCaller.of(System.getenv(), ProcessStatus.uid(ProcessStatus.pid()),
            UserNames::of, line -> spec.commandLine().getErr().println("gpuseg: " + line));
        final DaemonConfig config = caller.map(user ->
            asked.but().site(asked.site().serving(user.uid())).build()).orElse(asked);
        final Daemon daemon;
        final NotifySocket notify = NotifySocket.ofEnvironment();
        FileAccess.umask(OWN_FILES);
        final String scarce = OutOfMemory.warning();
        if (!scarce.isEmpty()) {
            spec.commandLine().getErr().println("gpuseg: " + scarce);
        }
        try {
            lockMemory();
            daemon = Daemon.start(config, metricsAt, () -> spec.commandLine().getErr().println("gpuseg: starting in "
                + config.directory().root()
                + (keys.warmUp() ? ", warming up (some seconds; warm-up: false in the settings file starts at once, "
                    + "with slow first segments)" : "")));
        } catch (final StartUpException e) {
            notify.close();
            throw e;
        }
        final PrintWriter out = spec.commandLine().getOut();
        final Supervision supervision = new Supervision(notify, daemon::answers, "policy " + config.policy().name()
            + ", mechanism " + config.mechanism() + ", in " + config.directory().root());
        final Thread hook = new Thread(() -> {
            supervision.close();
            stopAndHalt(daemon, gpu);
        }, "gpuseg-stop");
        Runtime.getRuntime().addShutdownHook(hook);
        stopWithParent();
        out.println("gpuseg enforces with " + enforcement(MechanismCatalog.get(config.mechanism()), daemon.level(),
            mechanism.equals(MechanismCatalog.AUTO) && !virtualGpu ? ", chosen by --mechanism auto" : ""));
        caller.ifPresent(user -> out.println("gpuseg serves user " + user.name() + ", who called sudo, with "
            + config.site().limits().describePriority(user.uid())
            + "; `sudo env -u SUDO_UID gpuseg run` serves the group of its socket only"));
        out.println("gpuseg daemon ready: pid " + ProcessHandle.current().pid() + ", dir "
            + config.directory().root() + ", policy " + config.policy().name() + ", mechanism " + config.mechanism()
            + MechanismHelp.caveat(config.mechanism()) + ", journal " + config.journal()
            + (metricsAt == null ? "" : ", metrics " + daemon.metricsEndpoint()));
        out.flush();
        try {
            final String who = daemon.awaitStopRequest();
            out.println("gpuseg daemon stops, asked by " + (who.isEmpty() ? "a signal" : who));
            out.flush();
            supervision.close();
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return stop(daemon);
    }

    /**
     * What was chosen, and what it does and does not do to work that runs.
     *
     * @param level that the mechanism reached on this device
     * @param how   why it was chosen, in words that follow the level; may be empty
     */
    static String enforcement(final MechanismDescription chosen, final int level, final String how) {
        return chosen.name() + " (level " + level + how + "): " + chosen.consequence()
            + (level < Capabilities.INTERRUPT ? "; `gpuseg doctor` says what a higher level needs" : "");
    }

    private static void stopWithParent() {
        final Long parent = Long.getLong(PARENT_PROPERTY);
        if (parent != null) {
            ProcessHandle.of(parent).map(ProcessHandle::onExit).orElseGet(() -> CompletableFuture.completedFuture(null))
                .thenRun(() -> System.exit(ExitCode.OK));
        }
    }

    /** A dispatcher that was given a processor or a real-time priority shall not wait for pages either. */
    private void lockMemory() {
        final boolean asked = Boolean.TRUE.equals(keys.lockMemory());
        if (!asked && (keys.lockMemory() != null || cpu < 0 && priority == 0)) {
            return;
        }
        try {
            ThreadControl.lockMemory();
        } catch (final IllegalStateException | SystemCallException e) {
            if (asked) {
                throw new StartUpException("lock-memory: " + e.getMessage(), e);
            }
            spec.commandLine().getErr().println("gpuseg: memory is not locked, page faults can delay the dispatcher: "
                + e.getMessage() + "; lock-memory: false silences this");
        }
    }

    /** A signal is a clean stop too, so the exit status is 0 and not 128 + the signal. */
    private void stopAndHalt(final Daemon daemon, final VirtualGpu gpu) {
        final int status = stop(daemon);
        if (status == ExitCode.OK && gpu != null) {
            gpu.close();
        }
        Runtime.getRuntime().halt(status);
    }

    /** Returns the exit status. Both the command and the signal that ends it come here: a failure is said once. */
    private int stop(final Daemon daemon) {
        try {
            daemon.close();
            return ExitCode.OK;
        } catch (final RuntimeException e) {
            stopFailure.sayOnce("gpuseg: " + e.getMessage());
            return ExitCode.FAILURE;
        }
    }

    private Endpoint metricsEndpoint(final OptionProblems problems) {
        return metrics == null || metrics.isEmpty() ? null
            : problems.in("--metrics", () -> Endpoint.parse(metrics));
    }

    /** Takes over what the settings file says. */
    private AppliedSettings readSettings() {
        final Path file = settings == null ? RunSettings.defaultFile() : settings;
        if (file == null) {
            return AppliedSettings.NONE;
        }
        final RunSettings known = new RunSettings();
        return apply(known, ConfigFile.read(file, known));
    }

    /** Takes over what a file says, where the command line says nothing. */
    AppliedSettings apply(final RunSettings known, final ConfigFile file) {
        return known.apply(List.of(spec, keys.spec()), file);
    }

    /** Null, with a problem noted, if the jar is refused. */
    private PolicySource policies(final OptionProblems problems) {
        return problems.in("--policy-jar", () -> PolicySource.openOwned(policyJar));
    }

    /** What the options say together; null if one of them, or the jar, is refused. */
    private DaemonConfig config(final PolicySource policies, final OptionProblems problems) {
        if (gpus != null) {
            problems.isIn("--gpus", gpus, 1, 16);
        }
        if (priority < 0 || priority > 99) {
            problems.add("--priority", "--priority is " + priority + "; use 1..99, or 0 for none");
        }
        if (cpu != -1 && !CpuSet.exists(cpu)) {
            problems.add("--cpu", "--cpu is " + cpu + "; this machine has no such CPU, see `lscpu -e`");
        }
        keys.check(problems);
        final IdleMode whenIdle = problems.in("--idle",
            () -> IdleMode.named(idle).ofDispatcher(Runtime.getRuntime().availableProcessors()));
        final SiteRules rules = site.rules(keys, problems);
        final RuntimeDirectory where = problems.in("--dir", () -> directory(directory.resolve()));
        final Path events = journal == null ? where == null ? null : where.journal()
            : problems.in("--journal", () -> directory("--journal", journal.toAbsolutePath()));
        final MechanismDescription chosen = mechanism(where, problems);
        final PolicySettings shares = policies == null ? null : shares(policies.reader(), problems);
        final Policy decides = shares == null || chosen == null ? null : decides(policies, shares, chosen, problems);
        final Space division = keys.space(problems);
        return !problems.none() ? null : DaemonConfig.of(where, decides, chosen.name())
            .gpus(gpus != null ? gpus : space ? 1 : chosen.gpusHere())
            .idle(whenIdle)
            .optimistic(keys.optimistic())
            .journal(events)
            .journalBytes(keys.journalBytes())
            .watchdogPeriodMs(keys.watchdogPeriodMs())
            .cpu(cpu)
            .priority(priority)
            .queueBytes(keys.queueBytes())
            .warmUpRecords(keys.warmUp() ? DaemonConfig.WARM_UP_RECORDS : 0)
            .site(rules)
            .settings(shares)
            .policies(policies)
            .holdLaunches(keys.holdLaunches())
            .space(space ? division : null)
            .build();
    }

    private static RuntimeDirectory directory(final RuntimeDirectory where) {
        directory("--dir", where.root());
        return where;
    }

    /** Refuses a directory that cannot be made because a file stands in its way. */
    private static Path directory(final String option, final Path path) {
        Path there = path;
        while (!Files.exists(there)) {
            there = there.getParent();
        }
        if (!Files.isDirectory(there)) {
            throw new IllegalArgumentException(option + " is " + path + ", and " + there
                + " is no directory; name another");
        }
        return path;
    }

    /** The row of the mechanism; the devices are surveyed where none is named. Null if that cannot be told. */
    private MechanismDescription mechanism(final RuntimeDirectory where, final OptionProblems problems) {
        final boolean auto = mechanism.equals(MechanismCatalog.AUTO);
        if (virtualGpu && !auto && !mechanism.equals(SIM)) {
            problems.add("--virtual-gpu", "--virtual-gpu needs --mechanism " + SIM + ", and --mechanism is " + mechanism
                + "; leave one out");
            return null;
        }
        if (space && (virtualGpu || gpus != null && gpus > 1 || !auto && !mechanism.equals(SPACED))) {
            problems.add("--space", "--space works with mechanism " + SPACED + " on one GPU, and "
                + (virtualGpu ? "--virtual-gpu is given" : gpus != null && gpus > 1 ? "--gpus is " + gpus
                : "--mechanism is " + mechanism) + "; leave one out");
            return null;
        }
        if (space) {
            return MechanismCatalog.get(SPACED);
        }
        if (auto && !virtualGpu) {
            return where == null ? null : MechanismCatalog.best(survey.apply(where)).mechanism();
        }
        final Optional<MechanismDescription> chosen = MechanismCatalog.find(virtualGpu ? SIM : mechanism);
        if (chosen.isEmpty()) {
            problems.add("--mechanism", "mechanism \"" + mechanism + "\" is unknown; use " + MechanismCatalog.AUTO
                + ", " + MechanismCatalog.names());
        }
        return chosen.orElse(null);
    }

    private Policy decides(final PolicySource policies, final PolicySettings shares, final MechanismDescription chosen,
        final OptionProblems problems) {
        if (shares.policy() != null) {
            if (policy != null) {
                problems.add("--policy", "--policy and the policy of " + policyFile
                    + " are both given; leave one out");
            }
            return shares.policy();
        }
        final PolicyCatalog catalog = policies.catalog();
        if (policy == null) {
            return policyJar == null && chosen.level() == Capabilities.OBSERVE ? catalog.observing()
                : problems.in("--policy-jar", policies::standard);
        }
        return problems.in("--policy", () -> {
            if (!catalog.get(policy).hasDefaults()) {
                throw new IllegalArgumentException("--policy " + policy
                    + " needs parameters; give them in a file, with --policy-file FILE");
            }
            return catalog.create(policy);
        });
    }

    /** The policy file, and what is said beside it; null if one of them is refused. */
    private PolicySettings shares(final PolicyReader reader, final OptionProblems problems) {
        final ObjectNode options = JsonNodeFactory.instance.objectNode();
        if (anticipate != null && problems.in("--anticipate", () -> Anticipate.named(anticipate)) != null) {
            options.put("anticipate", anticipate);
        }
        final Integer budget = keys.anticipationBudget(problems);
        if (budget != null) {
            options.put("anticipation_budget", budget.intValue());
        }
        if (policyFile == null && options.isEmpty()) {
            return PolicySettings.NONE;
        }
        final Node said = Node.of(options, "the command line", "the settings");
        return problems.in("--policy-file", () -> {
            final Node file = policyFile == null ? null : PolicyReader.load(policyFile);
            return reader.read(file == null ? said : file.kind() == Node.Kind.MAPPING ? said.over(file) : file);
        });
    }
}

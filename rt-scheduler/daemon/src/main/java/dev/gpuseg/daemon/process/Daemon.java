/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.admission.AdmissionMode;
import dev.gpuseg.daemon.admission.ProvenAdmission;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.daemon.cgroup.CgroupTree;
import dev.gpuseg.daemon.cgroup.Cgroups;
import dev.gpuseg.daemon.conductor.AdmissionControl;
import dev.gpuseg.daemon.conductor.ConductorAgent;
import dev.gpuseg.daemon.conductor.ConductorConfig;
import dev.gpuseg.daemon.conductor.ContextLimits;
import dev.gpuseg.daemon.conductor.HousekeepingAgent;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.daemon.dispatch.Counters;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.daemon.enforce.Enforcer;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.daemon.jvm.CompilerTime;
import dev.gpuseg.daemon.jvm.LastWords;
import dev.gpuseg.daemon.jvm.OutOfMemory;
import dev.gpuseg.daemon.jvm.PauseWatch;
import dev.gpuseg.daemon.jvm.RuntimeThreads;
import dev.gpuseg.daemon.metrics.LiveModel;
import dev.gpuseg.daemon.metrics.PrometheusExporter;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.daemon.policy.SavedPolicy;
import dev.gpuseg.daemon.space.SpaceAdmission;
import dev.gpuseg.daemon.space.SpaceKeeper;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.WatchdogPage;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.MechanismSetup;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.launch.HoldingMechanism;
import dev.gpuseg.mechanisms.launch.LaunchMechanism;
import dev.gpuseg.mechanisms.launch.SpaceMechanism;
import dev.gpuseg.mechanisms.observer.Observer;
import dev.gpuseg.mechanisms.observer.ObserverMode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import java.util.function.LongConsumer;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.NoOpIdleStrategy;

/**
 * Builds a daemon from its parts, starts it in an order in which nothing can be left disabled, and takes it down
 * again. What it cannot do it refuses at start, with the reason.
 *
 * <p>Start: claim the directory; connect the mechanism; enable what a dead daemon left disabled; warm up; journal;
 * status page; watchdog; threads; socket. Stop: grant and enable everything; enforcers; clients; journal; held file
 * checked; watchdog.
 */
public final class Daemon implements AutoCloseable {
    private static final int TASKS_MAX = 4096;
    private static final int CONTEXTS_MAX = 1024;
    /** Disables programs outside of a space. */
    private static final String OUTSIDE = "nvidia";
    private static final long STOP_LIMIT_NS = 3_000_000_000L;
    private static final long POLL_MS = 1;

    private final DaemonConfig config;
    private final long incarnationNs = System.nanoTime();
    private final Counters counters = new Counters();
    private final CountDownLatch stopAsked = new CountDownLatch(1);
    private final List<Mechanism> mechanisms = new ArrayList<>();
    private final List<Thread> enforcerThreads = new ArrayList<>();
    /** Slow work: it renders, looks around, writes files. */
    private final ScheduledExecutorService background = Executors.newSingleThreadScheduledExecutor(task -> {
        final Thread thread = new Thread(task, "gpuseg-background");
        thread.setDaemon(true);
        return thread;
    });

    private final LiveModel liveModel = new LiveModel();
    private final Endpoint metricsAt;

    private InstanceLock lock;
    /** None where daemons with this mechanism do not meet, or where it cannot be told. */
    private final List<InstanceLock> machineLocks = new ArrayList<>();
    private Observer observer;
    private HeldFile held;
    private StatusPage status;
    private JournalRing ring;
    private JournalAgent journal;
    private JournalRunner journalRunner;
    private WatchdogKeeper watchdog;
    /** Null without --space. */
    private SpaceKeeper space;
    private volatile Enforcer[] enforcers = new Enforcer[0];
    private DispatcherAgent dispatcher;
    private Thread dispatcherThread;
    private AgentRunner conductorRunner;
    private ConductorAgent conductor;
    private AgentRunner housekeepingRunner;
    private PrometheusExporter exporter;
    /** Null while admission is off. */
    private ProvenAdmission admission;
    private DaemonStatus shown;
    private PauseWatch pauseWatch;
    private double warmUpBytesPerRecord = -1;
    /** Null without a real-time priority. */
    private CompilerTime compilerTime;
    private BusyLooks busyLooks;
    private volatile String stopReason = "";
    private boolean closed;
    /** Why it has not stopped cleanly; null if it has, or runs. */
    private RuntimeException failure;

    private Daemon(final DaemonConfig config, final Endpoint metricsAt) {
        this.config = config;
        this.metricsAt = metricsAt;
    }

    /**
     * Starts a daemon. It accepts clients when this returns.
     *
     * @param config what to start
     * @return the running daemon
     * @throws StartUpException if it cannot do what was asked, with the reason and what to do instead
     */
    public static Daemon start(final DaemonConfig config) {
        return start(config, null);
    }

    /**
     * Starts a daemon that shows metrics to Prometheus.
     *
     * @param config    what to start
     * @param metricsAt where metrics are read, or null for nowhere
     * @return the running daemon
     * @throws StartUpException if it cannot do what was asked, with the reason and what to do instead
     */
    public static Daemon start(final DaemonConfig config, final Endpoint metricsAt) {
        return start(config, metricsAt, () -> { });
    }

    /**
     * The same, for a caller that tells somebody who waits what takes so long.
     *
     * @param config    what to start
     * @param metricsAt where metrics are read, or null for nowhere
     * @param onWarmUp  run once nothing stands in the way and before some seconds of warm-up, unless there is none
     * @return the running daemon
     * @throws StartUpException if it cannot do what was asked, with the reason and what to do instead
     */
    public static Daemon start(final DaemonConfig config, final Endpoint metricsAt, final Runnable onWarmUp) {
        final Daemon daemon = new Daemon(config, metricsAt);
        try {
            daemon.open(onWarmUp);
            return daemon;
        } catch (final RuntimeException | Error e) {
            try {
                daemon.close();
            } catch (final RuntimeException onClose) {
                e.addSuppressed(onClose);
            }
            throw e;
        }
    }

    /**
     * Refuses what cannot work on any machine: settings that contradict each other, and policies of a jar that break a
     * law, which takes up to some seconds. Looks at no device and starts nothing.
     *
     * @param config what would be started
     * @throws StartUpException naming the option to blame
     */
    public static void requireStartable(final DaemonConfig config) {
        requireConforming(config);
        final MechanismDescription mechanism = MechanismCatalog.get(config.mechanism());
        final AdmissionMode proof = config.site().admission().mode();
        if (mechanism.level() == Capabilities.OBSERVE && config.policy().enforces()) {
            throw refused("--mechanism", "policy " + config.policy().name() + " needs a mechanism that can hold "
                + "segments back, observe cannot; use --mechanism gate (level 1), or --policy "
                + PolicyCatalog.builtIn().observing().name() + " to record only");
        }
        if (config.gpus() > mechanism.gpusMax()) {
            throw refused("--gpus", "--gpus is " + config.gpus() + ", and mechanism \"" + mechanism.name()
                + "\" drives " + mechanism.gpusMax() + " GPU; use --gpus " + mechanism.gpusMax());
        }
        if (config.site().observer() == ObserverMode.ON && !mechanism.observed()) {
            throw refused("observer", "observer is on with --mechanism " + mechanism.name()
                + ", which does not use it; use auto");
        }
        if (proof == AdmissionMode.ENFORCE && config.site().unmanaged() == Unmanaged.ALLOW) {
            throw refused("--admission", "--admission enforce with unmanaged: allow: what unregistered processes do "
                + "on the GPU is in no analysis; use unmanaged: best-effort, or --admission warn");
        }
    }

    /** What comes from a jar is checked before it decides about anybody. */
    private static void requireConforming(final DaemonConfig config) {
        final String jar = config.policies().refusal();
        final String refused = jar == null ? config.policies().refusal(config.policy()) : jar;
        if (refused != null) {
            throw refused("--policy-jar", refused);
        }
    }

    private static StartUpException refused(final String option, final String why) {
        return new StartUpException(option, why, null);
    }

    private void open(final Runnable onWarmUp) {
        requireStartable(config);
        final Path root = config.directory().root();
        try {
            config.directory().create();
        } catch (final RuntimeException e) {
            throw new StartUpException(e.getMessage(), e);
        }
        lock = InstanceLock.take(root);
        final MechanismDescription device = device();
        lockMachine(device, root);
        openSpace(device);
        connectMechanisms(device);
        final Capabilities capabilities = mechanisms.get(0).capabilities();
        admission = admission(capabilities);
        held = HeldFile.openOrCreate(config.directory().held());
        new Leftovers(held, mechanisms, this::releaseWithTool, config.directory()).enable();
        config.directory().deleteLeftovers();
        if (config.warmUpRecords() > 0) {
            onWarmUp.run();
            warmUpBytesPerRecord = WarmUp.run(root.resolve("warm-up"), config.warmUpRecords(), config.policy(),
                mechanisms.get(0));
        }
        ring = new JournalRing(root.resolve("journal.ring"), JournalRing.DEFAULT_CAPACITY);
        tightenJournal();
        journal = new JournalAgent(ring, config.journal(), config.journalBytes());
        journal.addTap(liveModel);
        status = StatusPage.create(config.directory().status(), incarnationNs, config.policy().name(),
            mechanisms.get(0).name(), capabilities.level(), capabilities.holdsLaunches());
        watchdog = new WatchdogKeeper(config.watchdogPeriodMs() > 0 ? startWatchdog(status::heartbeat) : null,
            () -> startWatchdog(ignored -> { }), this::watchWith);
        startThreads(capabilities);
    }

    /** What disables contexts: with a space those of programs outside, where that is possible. */
    private MechanismDescription device() {
        final MechanismDescription mechanism = MechanismCatalog.get(config.mechanism());
        if (config.space() == null) {
            return mechanism;
        }
        final MechanismDescription device = MechanismCatalog.get(OUTSIDE);
        final MechanismVerdict verdict = device.survey(config.directory());
        if (!verdict.usable()) {
            say("programs outside of the space are not disabled: " + verdict.reason());
            return mechanism;
        }
        return device;
    }

    /** Two daemons that disable and enable the same contexts leave some disabled for good. */
    private void lockMachine(final MechanismDescription mechanism, final Path root) {
        if (!mechanism.exclusive() || !mechanism.survey(config.directory()).usable()) {
            return;   // where it cannot be used, it is about to be refused
        }
        try {
            for (final Path common : RuntimeDirectory.common()) {
                machineLocks.add(InstanceLock.takeForMachine(mechanism.name(), common, root));
            }
        } catch (final IOException e) {
            say("whether another daemon controls the GPUs of this machine cannot be told: " + e.getMessage());
        }
    }

    /** An earlier release may have left the journal in the runtime directory for all users to read. */
    private void tightenJournal() {
        if (config.journal().startsWith(config.directory().root()) && Files.isDirectory(config.journal())) {
            FileAccess.chmod(config.journal(), 0700);
        }
    }

    private ProvenAdmission admission(final Capabilities capabilities) {
        if (config.site().admission().mode() == AdmissionMode.OFF) {
            return null;
        }
        if (config.priority() == 0) {
            say("--admission: at normal priority any program can hold this daemon up, and epsilon means nothing then; "
                + "give it a --priority above that of the tasks");
        }
        try {
            return new ProvenAdmission(config.site().admission(), config.policy(), capabilities,
                config.gpus(), config.directory().admitted(), System::nanoTime,
                DispatcherAgent.obstacleToTurns(mechanisms.get(0), config.gpus(), config.optimistic()));
        } catch (final IllegalArgumentException e) {
            throw new StartUpException("--admission", e.getMessage(), e);
        }
    }

    private boolean simulated() {
        return MechanismCatalog.get(config.mechanism()).simulated();
    }

    private void connectMechanisms(final MechanismDescription opened) {
        observer = ObserverLaunch.open(config.site().observer(), opened.name(), config.priority());
        try {
            for (int gpu = 0; gpu < config.gpus(); gpu++) {
                final Mechanism device = opened.open(new MechanismSetup(config.directory(), gpu,
                    config.site().protection(), observer, config.space() != null));
                if (config.space() != null && opened.name().equals(OUTSIDE)) {
                    mechanisms.add(new SpaceMechanism(new LaunchMechanism(true), device, space::isInside));
                } else {
                    mechanisms.add(config.holdLaunches() && device.capabilities().preemptive()
                        && !device.capabilities().holdsLaunches() ? new HoldingMechanism(device) : device);
                }
            }
        } catch (final MechanismException e) {
            throw new StartUpException(e.getMessage(), e);
        }
    }

    private void openSpace(final MechanismDescription device) {
        if (config.space() == null) {
            return;
        }
        final int served = config.site().servedUser();
        try {
            space = SpaceKeeper.start(config.directory(), config.space(),
                served < 0 ? ProcessStatus.effectiveUid() : served, System.getenv(SpaceKeeper.PIPE_VARIABLE),
                device.name().equals(OUTSIDE) && config.site().unmanaged() == Unmanaged.BEST_EFFORT, Daemon::say);
        } catch (final IOException e) {
            throw new StartUpException("--space: " + e.getMessage(), e);
        }
    }

    private AdmissionControl admissionOfAll() {
        final AdmissionControl proven = admission == null ? AdmissionControl.ALL : admission;
        return space == null ? proven : new SpaceAdmission(proven, space.space(), space.pipe(), Path.of("/proc"));
    }

    private Watchdog startWatchdog(final LongConsumer heartbeat) {
        return WatchdogProcess.start(config.directory(), config.watchdogPeriodMs(), config.priority(), heartbeat);
    }

    /** Another watchdog runs. */
    private void watchWith(final WatchdogPage page) {
        for (final Enforcer enforcer : enforcers) {
            enforcer.watchdog(page);
        }
    }

    private void releaseWithTool() {
        try {
            final Process tool = new ProcessBuilder(NativePrograms.named("gpuseg-watchdog").toString(), "--dir",
                config.directory().root().toString(), "--release", "--force").inheritIO().start();
            if (!tool.waitFor(STOP_LIMIT_NS, TimeUnit.NANOSECONDS)) {
                tool.destroyForcibly();
                say("the release of what is held did not end within " + TimeUnit.NANOSECONDS.toSeconds(STOP_LIMIT_NS)
                    + " s, and was ended");   // what it did not enable is in the held file still
            }
        } catch (final IOException | IllegalStateException e) {
            throw new StartUpException("held file: " + held.count() + " contexts of another mechanism are disabled, "
                + "and the release tool does not start: " + e.getMessage(), e);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void startThreads(final Capabilities capabilities) {
        final SchedulerConfig scheduling = new SchedulerConfig(config.policy(), config.gpus(), TASKS_MAX, CONTEXTS_MAX,
            capabilities.preemptive(), config.optimistic(), config.site().unmanaged());
        final IdleMode enforcersIdle = config.idle().ofEnforcers(Runtime.getRuntime().availableProcessors());
        final Enforcer[] all = new Enforcer[config.gpus()];
        for (int gpu = 0; gpu < all.length; gpu++) {
            all[gpu] = new Enforcer(gpu, mechanisms.get(gpu), held, watchdog.page(), CONTEXTS_MAX, config.priority(),
                enforcersIdle, this::wakeDispatcher);
        }
        enforcers = all;
        dispatcher = new DispatcherAgent(scheduling, enforcers, ring, status, counters, config.idle());
        if (config.site().admission().mode() == AdmissionMode.ENFORCE) {
            dispatcher.keepToProvenRules();
            admission.control(new DaemonTurns(dispatcher, enforcers[0]));
        }
        if (admission != null) {
            final PromisedBounds promised = new PromisedBounds(TASKS_MAX);
            dispatcher.compareWith(promised);
            admission.promise(promised);
        }
        requireUsable(config.settings());
        final SavedPolicy saved = new SavedPolicy(config.directory().savedPolicy(System.getenv("STATE_DIRECTORY")),
            config.policies().reader());
        restore(saved);
        final Cgroups cgroups = new Cgroups(new CgroupTree(Path.of("/proc")), config.site().groups(),
            new GroupCommands(dispatcher));
        journal.addTap(cgroups.tap());
        shown = new DaemonStatus(new DaemonStatus.Sources(config, incarnationNs, simulated(), TASKS_MAX, CONTEXTS_MAX,
            warmUpBytesPerRecord, mechanisms.get(0), observer, counters, counter -> conductor.count(counter), held,
            ring, journal, liveModel, cgroups, admission, watchdog, space, dispatcher::hotPathBytes,
            this::metricsText));
        final DispatcherCommands commands = new DispatcherCommands(new DispatcherCommands.Context(dispatcher,
            background, shown, this::requestStop, config.policies(), saved, admission, () -> conductor.proxy()));
        final HousekeepingAgent housekeeping = new HousekeepingAgent();
        conductor = new ConductorAgent(new ConductorConfig(config.directory(), incarnationNs, config.gpus(),
            config.policy().needs(), config.queueBytes(), config.site().clientsPerUser(), config.site().tasksPerUser(),
            config.site().limits(), config.site().servedUser(), groupOf()),
            admissionOfAll(), commands, housekeeping);
        exposeMetrics();
        dispatcher.conductor(conductor.proxy());
        dispatcher.start(shown.configuration().toString());
        journalRunner = new JournalRunner(journal);
        journalRunner.start();
        final CompletableFuture<Void> scheduled = new CompletableFuture<>();
        commands.rehearse();
        collectStart();
        dispatcherThread = new Thread(() -> runDispatcher(scheduled), "gpuseg-dispatcher");
        dispatcherThread.start();
        awaitScheduled(scheduled);
        for (final Enforcer enforcer : enforcers) {
            enforcerThreads.add(enforcer.start());
        }
        for (final Mechanism mechanism : mechanisms) {
            mechanism.processListener((pid, startTicks, name) ->
                dispatcher.submit(() -> dispatcher.processes().addUnmanaged(pid, startTicks, name)));
        }
        housekeepingRunner = runner(housekeeping);
        conductorRunner = runner(conductor);
        pauseWatch = new PauseWatch((beganNs, durationNs) ->
            dispatcher.submit(() -> dispatcher.onCollection(beganNs, durationNs)));
        new Supervisor(dispatcher, background, watchdog, cgroups, liveModel, admission, counters,
            new ContextLimits(config.site().limits(), ProcessStatus.effectiveUid(), Daemon::say), Daemon::say).start();
        busyLooks = new BusyLooks(dispatcher, mechanisms, Daemon::say);
        busyLooks.start();
        if (space != null) {
            space.open();
            background.scheduleWithFixedDelay(space::keep, 1, 1, TimeUnit.SECONDS);
        }
        if (config.priority() > 0) {
            compilerTime = new CompilerTime(RuntimeThreads.compilers(), RuntimeThreads.LOWEST,
                () -> dispatcher.submit(() -> counters.increment(Counter.COMPILERS_ORDINARY)));
            compilerTime.start();
            RuntimeThreads.raise(config.priority());   // after the warm-up, which may take its time
        }
    }

    /**
     * Moves what the start has made, and what stays, to the old generation while no client waits. The first young
     * collections would otherwise copy it, while they stop the dispatcher: 9 to 13 ms were measured, 5 since, at a time
     * that whoever floods the daemon with commands may choose.
     */
    private static void collectStart() {
        System.gc();
    }

    private static void say(final String line) {
        System.err.println("gpuseg: " + line);
    }

    /** The control group of a process; the tree that it looks into is the asking thread's own. */
    private IntFunction<AskingGroup> groupOf() {
        final CgroupTree tree = new CgroupTree(Path.of("/proc"));
        return pid -> {
            final String path = tree.pathOf(pid);
            return new AskingGroup(path, config.site().groups().now().ofProcess(path));
        };
    }

    /** Before the first event. */
    private void exposeMetrics() {
        if (metricsAt == null) {
            return;
        }
        try {
            exporter = new PrometheusExporter(liveModel, shown, metricsAt);
        } catch (final UncheckedIOException e) {
            throw new StartUpException("metrics: " + e.getMessage(), e);
        }
    }

    /**
     * What its mechanism can do on the device of this machine.
     *
     * @return 0..3, see {@link Capabilities}
     */
    public int level() {
        return mechanisms.get(0).capabilities().level();
    }

    /**
     * Where metrics are read.
     *
     * @return the endpoint with the port that was given, null if nowhere
     */
    public Endpoint metricsEndpoint() {
        return exporter == null ? null : exporter.endpoint();
    }

    private String metricsText() {
        return metricsAt == null ? "" : exporter == null ? metricsAt.toString() : exporter.endpoint().toString();
    }

    private void requireUsable(final PolicySettings settings) {
        try {
            dispatcher.policy().requireUsable(settings);
        } catch (final IllegalArgumentException e) {
            throw new StartUpException("--policy-file", e.getMessage(), e);
        }
        final String refused = admission == null ? null : admission.refuseSettings(settings);
        if (refused != null) {
            throw refused("--admission", "--admission enforce: " + refused);
        }
        dispatcher.submit(() -> dispatcher.policy().apply(settings));
    }

    /** Repeats the saved commands. A file that cannot be used does not keep the daemon from starting. */
    private void restore(final SavedPolicy saved) {
        try {
            final PolicySettings settings = saved.read();
            if (settings == PolicySettings.NONE) {
                return;
            }
            dispatcher.policy().requireUsable(settings);
            final String broken = settings.policy() == null ? null : config.policies().refusal(settings.policy());
            final String refused = broken != null || admission == null ? broken : admission.refuseSettings(settings);
            if (refused != null) {
                throw new IllegalArgumentException(saved.path() + ": " + refused);
            }
            dispatcher.submit(() -> dispatcher.policy().apply(settings));
            saved.accepted();
            System.err.println("gpuseg: settings of `gpuseg policy --save` hold again (" + saved.path()
                + "); --forget removes them");
        } catch (final IllegalArgumentException e) {
            System.err.println("gpuseg: saved policy settings are ignored: " + e.getMessage());
        }
    }

    private static AgentRunner runner(final org.agrona.concurrent.Agent agent) {
        final AgentRunner runner = new AgentRunner(NoOpIdleStrategy.INSTANCE,
            error -> {
                OutOfMemory.exitIf(error);
                System.err.println("gpuseg: " + agent.roleName() + ": " + error);
            }, null, agent);
        AgentRunner.startOnThread(runner);
        return runner;
    }

    private void runDispatcher(final CompletableFuture<Void> scheduled) {
        try {
            if (config.cpu() >= 0) {
                ThreadControl.pinTo(config.cpu());
            }
            if (config.priority() > 0) {
                ThreadControl.realTime(config.priority());
            }
            scheduled.complete(null);
        } catch (final SystemCallException e) {
            scheduled.completeExceptionally(new StartUpException("dispatcher on CPU " + config.cpu()
                + " with SCHED_FIFO priority " + config.priority() + ": " + e.getMessage()
                + "; grant CAP_SYS_NICE, or start without --cpu and --priority", e));
        }
        dispatcher.run();   // also after a refusal: the parts are taken down in the usual way
    }

    private void awaitScheduled(final CompletableFuture<Void> scheduled) {
        try {
            scheduled.get(STOP_LIMIT_NS, TimeUnit.NANOSECONDS);
        } catch (final ExecutionException e) {
            throw (StartUpException) e.getCause();
        } catch (final TimeoutException e) {
            throw new StartUpException("the dispatcher's thread does not start; is CPU " + config.cpu()
                + " taken by real-time threads?", e);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StartUpException("interrupted while starting", e);
        }
    }

    private void wakeDispatcher() {
        dispatcher.wake();
    }

    private void requestStop(final String who) {
        stopReason = who;
        stopAsked.countDown();
    }

    /**
     * Waits until a client asks the daemon to stop through the socket.
     *
     * @return the process that asked
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public String awaitStopRequest() throws InterruptedException {
        stopAsked.await();
        return stopReason;
    }

    /**
     * Whether the dispatcher's thread answers. Any thread but the dispatcher's.
     *
     * @param limitNs how long to wait, nanoseconds
     * @return false if it has not answered in that time
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public boolean answers(final long limitNs) throws InterruptedException {
        final CountDownLatch answered = new CountDownLatch(1);
        dispatcher.submit(answered::countDown);
        return answered.await(limitNs, TimeUnit.NANOSECONDS);
    }

    /**
     * The counters. Any thread.
     *
     * @return live values
     */
    public Counters counters() {
        return counters;
    }

    /**
     * Bytes that the hot path allocated per record in the second half of the warm-up.
     *
     * @return bytes, -1 without warm-up
     */
    public double warmUpBytesPerRecord() {
        return warmUpBytesPerRecord;
    }

    /**
     * What the dispatcher's thread had allocated at its last command, registrations and administration excepted. Any
     * thread.
     *
     * @return bytes; undefined if the JVM does not count
     */
    public long hotPathBytes() {
        return dispatcher.hotPathBytes();
    }

    /**
     * Stops cleanly: all begins are granted, all contexts enabled, the journal is closed, the held file is empty. Time
     * slices that the driver does not let it give back stay noted for the watchdog, which says so.
     *
     * <p>A thread whose call of the driver does not return keeps all that it uses: files stay mapped and locked, and
     * the caller has to end the process.
     *
     * @throws IllegalStateException if a context could not be enabled, or a thread did not end; again at each call
     */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            try {
                closeAll();
            } catch (final RuntimeException e) {
                failure = e;
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    private void closeAll() {
        stopAsked.countDown();
        if (compilerTime != null) {
            compilerTime.close();
        }
        if (pauseWatch != null) {
            pauseWatch.close();
        }
        background.shutdownNow();
        if (busyLooks != null) {
            busyLooks.stop();
        }
        if (exporter != null) {
            exporter.close();   // before the files that it reads
        }
        try {
            if (dispatcherThread != null) {
                stopThreads();
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            closeFiles();
        }
    }

    private void stopThreads() throws InterruptedException {
        dispatcher.submit(dispatcher::beginStop);
        if (!enforcerThreads.isEmpty()) {
            await(this::enforcersIdle);   // those that are not are told to stop all the same
        }
        if (conductorRunner != null) {
            conductorRunner.close();
        }
        if (housekeepingRunner != null) {
            housekeepingRunner.close();
        }
        if (!enforcerThreads.isEmpty()) {
            for (final Enforcer enforcer : enforcers) {
                enforcer.stop();
            }
        }
        for (final Thread thread : enforcerThreads) {
            join(thread);
        }
        final CountDownLatch journaled = new CountDownLatch(1);
        dispatcher.submit(() -> {
            dispatcher.journalStop();
            journaled.countDown();
        });
        if (!journaled.await(STOP_LIMIT_NS, TimeUnit.NANOSECONDS)) {
            LastWords.say("gpuseg: the dispatcher does not answer: the journal ends without a STOP");
        }
        dispatcher.stop();
        join(dispatcherThread);
        if (!background.awaitTermination(STOP_LIMIT_NS, TimeUnit.NANOSECONDS)) {
            LastWords.say("gpuseg: work in the background does not end");   // running() names it
        }
        if (busyLooks != null && !busyLooks.awaitEnd(STOP_LIMIT_NS)) {
            LastWords.say("gpuseg: a question how busy a GPU is does not return");
        }
        if (running().isEmpty()) {
            dispatcher.close();
        }
        if (journalRunner != null) {
            journalRunner.stop();
        }
    }

    /** At most as long as a stop may take; {@link #running} tells whether it has ended. */
    private static void join(final Thread thread) throws InterruptedException {
        thread.join(TimeUnit.NANOSECONDS.toMillis(STOP_LIMIT_NS));
    }

    /** Names of the threads that use a mechanism, or the files, still. */
    private List<String> running() {
        final List<String> names = new ArrayList<>();
        for (final Thread thread : enforcerThreads) {
            if (thread.isAlive()) {
                names.add(thread.getName());
            }
        }
        if (dispatcherThread != null && dispatcherThread.isAlive()) {
            names.add(dispatcherThread.getName());
        }
        if (dispatcherThread != null && !background.isTerminated()) {
            names.add("gpuseg-background");
        }
        if (busyLooks != null && !busyLooks.hasEnded()) {
            names.add(BusyLooks.THREAD);
        }
        if (exporter != null && !exporter.isClosed()) {
            names.add("gpuseg-metrics");
        }
        if (journalRunner != null && journalRunner.hangs()) {
            names.add(journalRunner.name());
        }
        return names;
    }

    private boolean enforcersIdle() {
        for (final Enforcer enforcer : enforcers) {
            if (!enforcer.isIdle()) {
                return false;
            }
        }
        return dispatcher.policy().isStopping();
    }

    private static void await(final BooleanSupplier condition) throws InterruptedException {
        final long limitNs = System.nanoTime() + STOP_LIMIT_NS;
        while (!condition.getAsBoolean() && System.nanoTime() - limitNs < 0) {
            TimeUnit.MILLISECONDS.sleep(POLL_MS);
        }
    }

    private void closeFiles() {
        final List<String> running = running();
        if (!running.isEmpty()) {
            throw new IllegalStateException("stopped, but " + String.join(" and ", running) + " did not end within "
                + TimeUnit.NANOSECONDS.toSeconds(STOP_LIMIT_NS) + " s: a call of the driver, a disk, or a reader of "
                + "standard error hangs. Contexts may still be disabled; the watchdog tries to enable them, and so "
                + "does `gpuseg release --dir " + config.directory().root() + "`");
        }
        final int stillHeld = held == null ? 0 : held.count();
        final int stillChanged = held == null ? 0 : held.timeslices();
        if (journal != null && journalRunner == null) {
            journal.close();
        }
        if (watchdog != null) {
            watchdog.close();
        }
        if (space != null) {
            space.close();
        }
        for (final Mechanism mechanism : mechanisms) {
            mechanism.close();
        }
        if (observer != null) {
            observer.close();
        }
        if (ring != null) {
            ring.close();
        }
        if (status != null) {
            status.close();
        }
        if (held != null) {
            held.close();
        }
        machineLocks.forEach(InstanceLock::close);
        if (lock != null) {
            lock.close();
        }
        if (stillChanged > 0) {
            LastWords.say("gpuseg: stopped, but " + stillChanged + " contexts still have time slices that are not "
                + "their own; the watchdog tries to give them back, and so does `gpuseg release --dir "
                + config.directory().root() + "`");
        }
        if (stillHeld > 0) {
            throw new IllegalStateException("stopped, but " + stillHeld + " contexts are still disabled; run `gpuseg "
                + "release --dir " + config.directory().root() + "`");
        }
    }
}

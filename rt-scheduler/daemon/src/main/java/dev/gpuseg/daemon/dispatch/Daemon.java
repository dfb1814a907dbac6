/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.admission.AdmissionMode;
import dev.gpuseg.daemon.admission.ProvenAdmission;
import dev.gpuseg.daemon.cgroup.CgroupTree;
import dev.gpuseg.daemon.cgroup.Cgroups;
import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.daemon.conductor.AdmissionControl;
import dev.gpuseg.daemon.conductor.ConductorAgent;
import dev.gpuseg.daemon.conductor.ConductorConfig;
import dev.gpuseg.daemon.conductor.ConductorCounter;
import dev.gpuseg.daemon.conductor.HousekeepingAgent;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.daemon.metrics.DaemonReadings;
import dev.gpuseg.daemon.metrics.LiveModel;
import dev.gpuseg.daemon.metrics.PrometheusExporter;
import dev.gpuseg.daemon.policy.PolicySettings;
import dev.gpuseg.daemon.policy.SavedPolicy;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.ipc.platform.ClockReading;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.MechanismSetup;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.ObjLongConsumer;
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
    private static final long STOP_LIMIT_NS = 3_000_000_000L;
    private static final long HOUSEKEEPING_MS = 200;
    private static final long POLL_MS = 1;
    private static final String VERSION = "0.1.0";
    private static final long CLOCKS_S = 10;

    private final DaemonConfig config;
    private final long incarnationNs = System.nanoTime();
    private final Counters counters = new Counters();
    private final CountDownLatch stopAsked = new CountDownLatch(1);
    private final List<Mechanism> mechanisms = new ArrayList<>();
    private final List<Thread> enforcerThreads = new ArrayList<>();
    private final ScheduledExecutorService clerk = Executors.newSingleThreadScheduledExecutor(task -> {
        final Thread thread = new Thread(task, "gpuseg-clerk");
        thread.setDaemon(true);
        return thread;
    });

    private final LiveModel liveModel = new LiveModel();
    private final Endpoint metricsAt;

    private InstanceLock lock;
    private HeldFile held;
    private StatusPage status;
    private JournalRing ring;
    private JournalAgent journal;
    private JournalRunner journalRunner;
    private WatchdogProcess watchdog;
    private Enforcer[] enforcers = new Enforcer[0];
    private DispatcherAgent dispatcher;
    private Thread dispatcherThread;
    private AgentRunner conductorRunner;
    private ConductorAgent conductor;
    private AgentRunner housekeepingRunner;
    private PrometheusExporter exporter;
    /** Null while admission is off. */
    private ProvenAdmission admission;
    private Cgroups cgroups;
    /** Of the clerk: what the dispatcher knew last. */
    private List<ProcessView> knownProcesses = List.of();
    private int knownVersion;
    private PauseWatch pauseWatch;
    private double warmUpBytesPerRecord = -1;
    private volatile String stopReason = "";
    private volatile long watchdogRestarts;
    private volatile String watchdogFailure = "";
    private boolean closed;

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
        final Daemon daemon = new Daemon(config, metricsAt);
        try {
            daemon.open();
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

    private void open() {
        final Path root = config.directory().root();
        try {
            config.directory().create();
        } catch (final RuntimeException e) {
            throw new StartUpException(e.getMessage(), e);
        }
        lock = InstanceLock.take(root);
        connectMechanisms();
        final Capabilities capabilities = mechanisms.get(0).capabilities();
        if (capabilities.level() == Capabilities.OBSERVE && config.policy().enforces()) {
            throw new StartUpException("policy " + config.policy().name() + " needs a mechanism that can hold segments "
                + "back, observe cannot; use --mechanism gate (level 1), or --policy rr to record only");
        }
        admission = admission(capabilities);
        held = HeldFile.openOrCreate(config.directory().held());
        enableLeftovers();
        config.directory().deleteLeftovers();
        if (config.warmUpRecords() > 0) {
            warmUpBytesPerRecord = WarmUp.run(root.resolve("warm-up"), config.warmUpRecords(), config.policy(),
                mechanisms.get(0));
            System.gc();   // the warm-up's garbage, while nobody waits: the next collection is far away then
        }
        ring = new JournalRing(root.resolve("journal.ring"), JournalRing.DEFAULT_CAPACITY);
        tightenJournal();
        journal = new JournalAgent(ring, config.journal(), config.journalBytes());
        journal.addTap(liveModel);
        status = StatusPage.create(config.directory().status(), incarnationNs, config.policy().name(),
            mechanisms.get(0).name(), capabilities.level());
        if (config.watchdogPeriodMs() > 0) {
            watchdog = WatchdogProcess.start(config.directory(), config.watchdogPeriodMs(), config.priority(),
                status::heartbeat);
        }
        startThreads(capabilities);
    }

    /** An earlier release may have left the journal in the runtime directory for everybody to read. */
    private void tightenJournal() {
        if (config.journal().startsWith(config.directory().root()) && Files.isDirectory(config.journal())) {
            FileAccess.chmod(config.journal(), 0700);
        }
    }

    private ProvenAdmission admission(final Capabilities capabilities) {
        if (config.site().admission().mode() == AdmissionMode.OFF) {
            return null;
        }
        if (config.site().admission().mode() == AdmissionMode.ENFORCE && config.site().unmanaged() == Unmanaged.ALLOW) {
            throw new StartUpException("--admission enforce with --unmanaged allow: what unregistered processes do on "
                + "the GPU is in no analysis; use --unmanaged best-effort, or --admission warn");
        }
        try {
            return new ProvenAdmission(config.site().admission(), config.policy(), capabilities, config.gpus(),
                config.directory().admitted(), System::nanoTime);
        } catch (final IllegalArgumentException e) {
            throw new StartUpException(e.getMessage(), e);
        }
    }

    private boolean simulated() {
        return MechanismCatalog.get(config.mechanism()).simulated();
    }

    private void connectMechanisms() {
        try {
            for (int gpu = 0; gpu < config.gpus(); gpu++) {
                mechanisms.add(MechanismCatalog.get(config.mechanism()).open(new MechanismSetup(config.directory(), gpu,
                    config.site().protection())));
            }
        } catch (final MechanismException e) {
            throw new StartUpException(e.getMessage(), e);
        }
    }

    /** What a dead daemon left disabled is enabled before anything else. */
    private void enableLeftovers() {
        final Mechanism first = mechanisms.get(0);
        final List<List<Integer>> ours = new ArrayList<>();
        final List<List<ContextRef>> contexts = new ArrayList<>();
        for (int gpu = 0; gpu < mechanisms.size(); gpu++) {
            ours.add(new ArrayList<>());
            contexts.add(new ArrayList<>());
        }
        held.forEach((index, id, pid, startTicks, gpu, contextId, payload) -> {
            if (startTicks != 0 && !ProcessStatus.isAlive(pid, startTicks)) {
                held.release(index);   // its contexts died with it
            } else if (id == first.id() && gpu >= 0 && gpu < mechanisms.size()) {
                ours.get(gpu).add(index);
                contexts.get(gpu).add(new ContextRef(contextId, gpu, pid, startTicks, "held"));
            }
        });
        for (int gpu = 0; gpu < mechanisms.size(); gpu++) {
            enableLeftovers(mechanisms.get(gpu), contexts.get(gpu).toArray(new ContextRef[0]), ours.get(gpu));
        }
        if (held.count() + held.timeslices() > 0) {
            releaseWithTool();   // it knows the form of every mechanism's time slices
        }
        if (held.timeslices() > 0) {
            System.err.println("gpuseg: time slices of " + held.timeslices() + " contexts are still those of an "
                + "earlier daemon; they keep them until they end");
        }
        if (held.count() > 0) {
            throw new StartUpException("held file " + config.directory().held() + ": " + held.count()
                + " contexts are still disabled and could not be enabled (" + first.lastError()
                + "); run `gpuseg release --dir " + config.directory().root() + "`");
        }
    }

    /** A mechanism switches contexts of its own GPU only. */
    private void enableLeftovers(final Mechanism mechanism, final ContextRef[] enable, final List<Integer> entries) {
        if (enable.length == 0) {
            return;
        }
        for (final ContextRef context : enable) {
            mechanism.attach(context);
        }
        mechanism.apply(new ContextRef[0], 0, enable, enable.length);
        for (int i = 0; i < enable.length; i++) {
            if (enable[i].outcome() == ContextRef.Outcome.DONE) {   // what is ABSENT here is left to the tool
                held.release(entries.get(i));
            }
            mechanism.detach(enable[i]);
        }
    }

    private void releaseWithTool() {
        try {
            final Process tool = new ProcessBuilder(NativePrograms.named("gpuseg-watchdog").toString(), "--dir",
                config.directory().root().toString(), "--release", "--force").inheritIO().start();
            if (!tool.waitFor(STOP_LIMIT_NS, TimeUnit.NANOSECONDS)) {
                tool.destroyForcibly();
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
        enforcers = new Enforcer[config.gpus()];
        for (int gpu = 0; gpu < enforcers.length; gpu++) {
            enforcers[gpu] = new Enforcer(gpu, mechanisms.get(gpu), held, watchdog == null ? null : watchdog.page(),
                CONTEXTS_MAX, config.priority(), enforcersIdle, this::wakeDispatcher);
        }
        dispatcher = new DispatcherAgent(scheduling, enforcers, ring, status, counters, config.idle());
        requireUsable(config.settings());
        final SavedPolicy saved = new SavedPolicy(config.directory().savedPolicy(System.getenv("STATE_DIRECTORY")));
        restore(saved);
        final DispatcherCommands commands =
            new DispatcherCommands(dispatcher, clerk, this::completeStatus, this::requestStop);
        commands.saved(saved);
        commands.liveView(this::liveView);
        commands.admission(admission);
        final HousekeepingAgent housekeeping = new HousekeepingAgent();
        final boolean deadlinesRequired = config.policy().needs().contains(TaskNeed.DEADLINE);
        conductor = new ConductorAgent(new ConductorConfig(config.directory(), incarnationNs, config.gpus(),
            deadlinesRequired, config.queueBytes(), config.site().clientsPerUser(), config.site().tasksPerUser()),
            admission == null ? AdmissionControl.ALL : admission, commands, housekeeping);
        exposeMetrics();
        dispatcher.conductor(conductor.proxy());
        commands.conductor(conductor.proxy());
        cgroups = new Cgroups(new CgroupTree(Path.of("/proc")), config.site().groups(),
            new GroupCommands(dispatcher));
        journal.addTap(cgroups.tap());
        dispatcher.start(configuration().toString());
        journalRunner = new JournalRunner(journal);
        journalRunner.start();
        final CompletableFuture<Void> scheduled = new CompletableFuture<>();
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
        clerk.scheduleWithFixedDelay(this::readClocks, 0, CLOCKS_S, TimeUnit.SECONDS);
        clerk.scheduleWithFixedDelay(this::lookAround, HOUSEKEEPING_MS, HOUSEKEEPING_MS, TimeUnit.MILLISECONDS);
    }

    /** Before the first event. */
    private void exposeMetrics() {
        if (metricsAt == null) {
            return;
        }
        try {
            exporter = new PrometheusExporter(liveModel, new Readings(), metricsAt);
        } catch (final UncheckedIOException e) {
            throw new StartUpException("metrics: " + e.getMessage(), e);
        }
    }

    /**
     * Where metrics are read.
     *
     * @return the endpoint with the port that was given, null if nowhere
     */
    public Endpoint metricsEndpoint() {
        return exporter == null ? null : exporter.endpoint();
    }

    private final class Readings implements DaemonReadings {
        @Override
        public Map<String, String> info() {
            final Capabilities capabilities = mechanisms.get(0).capabilities();
            return Map.of("version", VERSION, "mechanism", mechanisms.get(0).name(), "level",
                capabilities.levelName(), "simulated", Boolean.toString(simulated()));
        }

        @Override
        public void counters(final ObjLongConsumer<String> to) {
            for (final Counter counter : Counter.values()) {
                if (counter != Counter.MAX_CYCLE_NS) {   // no counter: shown as a gauge
                    to.accept(counter.label(), counters.get(counter));
                }
            }
        }

        @Override
        public void conductorCounters(final ObjLongConsumer<String> to) {
            for (final ConductorCounter counter : ConductorCounter.values()) {
                to.accept(counter.name().toLowerCase(java.util.Locale.ROOT), conductor.count(counter));
            }
        }

        @Override
        public int heldContexts() {
            return held.count();
        }

        @Override
        public long maxCycleNs() {
            return counters.get(Counter.MAX_CYCLE_NS);
        }

        @Override
        public long journalWritten() {
            return journal.written();
        }

        @Override
        public long journalLost() {
            return journal.lost() + ring.dropped();
        }
    }

    private void requireUsable(final PolicySettings settings) {
        try {
            dispatcher.policy().requireUsable(settings);
        } catch (final IllegalArgumentException e) {
            throw new StartUpException(e.getMessage(), e);
        }
        final String refused = admission == null ? null : admission.refuseSettings(settings);
        if (refused != null) {
            throw new StartUpException("--admission enforce: " + refused);
        }
        dispatcher.submit(() -> dispatcher.policy().apply(settings));
    }

    /** As if somebody gave the saved commands again; a file that cannot be used keeps no daemon from starting. */
    private void restore(final SavedPolicy saved) {
        try {
            final PolicySettings settings = saved.read();
            if (settings == PolicySettings.NONE) {
                return;
            }
            dispatcher.policy().requireUsable(settings);
            final String refused = admission == null ? null : admission.refuseSettings(settings);
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
            error -> System.err.println("gpuseg: " + agent.roleName() + ": " + error), null, agent);
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

    /** Every 200 ms, on the clerk's thread: orphaned processes and the watchdog. */
    private void lookAround() {
        liveModel.tick(System.nanoTime());
        if (dispatcher.processes().hasOrphans()) {
            dispatcher.submit(() -> {
                final List<ProcessEntry> orphans = dispatcher.processes().orphans();
                clerk.execute(() -> forgetDead(orphans));
            });
        }
        if (admission != null) {
            admission.expire();
        }
        followCgroups();
        if (watchdog != null && !watchdog.isAlive() && stopAsked.getCount() > 0) {
            restartWatchdog();
        }
    }

    private void followCgroups() {
        final int version = dispatcher.processes().version();
        if (version != knownVersion) {
            dispatcher.submit(() -> {
                final List<ProcessView> views = dispatcher.processes().views();
                clerk.execute(() -> {
                    knownProcesses = views;
                    knownVersion = version;
                    cgroups.look(knownProcesses, System.nanoTime());
                });
            });
        } else if (cgroups.isDue(System.nanoTime())) {
            cgroups.look(knownProcesses, System.nanoTime());
        }
    }

    /** On the clerk's thread: what carries the journal's times to wall time and to other tracers' clocks. */
    private void readClocks() {
        final ClockReading clocks = ClockReading.now();
        final String others = JsonNodeFactory.instance.objectNode().put("boottime_ns", clocks.boottimeNs())
            .put("uncertainty_ns", clocks.uncertaintyNs()).toString();
        dispatcher.submit(() -> dispatcher.journal().clocks(clocks.monotonicNs(), clocks.realtimeNs(), others));
    }

    private void forgetDead(final List<ProcessEntry> orphans) {
        for (final ProcessEntry orphan : orphans) {
            if (!ProcessStatus.isAlive(orphan.pid, orphan.startTicks)) {
                dispatcher.submit(() -> dispatcher.processes().forgetOrphan(orphan));
            }
        }
    }

    private void restartWatchdog() {
        try {
            final WatchdogProcess next =
                WatchdogProcess.start(config.directory(), config.watchdogPeriodMs(), config.priority(),
                    ignored -> { });
            watchdog = next;
            for (final Enforcer enforcer : enforcers) {
                enforcer.watchdog(next.page());
            }
            watchdogRestarts = watchdogRestarts + 1;
            watchdogFailure = "";
        } catch (final StartUpException e) {
            watchdogFailure = e.getMessage();   // shown by status; tried again in 200 ms
        }
    }

    private void requestStop(final String who) {
        stopReason = who;
        stopAsked.countDown();
    }

    /**
     * Waits until somebody asks the daemon to stop through the socket.
     *
     * @return who asked
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
     * @return bytes; of no meaning if the JVM does not count
     */
    public long hotPathBytes() {
        return dispatcher.hotPathBytes();
    }

    private ObjectNode configuration() {
        final ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("pid", ProcessHandle.current().pid());
        node.put("incarnation_ns", incarnationNs);
        node.put("dir", config.directory().root().toString());
        node.put("policy", config.policy().name());
        node.put("policy_text", config.settings().policyText());
        node.put("inputs", "all");
        node.put("mechanism", mechanisms.get(0).name());
        node.put("level", mechanisms.get(0).capabilities().level());
        node.put("level_name", mechanisms.get(0).capabilities().levelName());
        node.put("simulated", simulated());
        node.put("gpus", config.gpus());
        node.put("preemptive", mechanisms.get(0).capabilities().preemptive());
        node.put("tasks_max", TASKS_MAX);
        node.put("contexts_max", CONTEXTS_MAX);
        node.put("disable_ns", mechanisms.get(0).capabilities().disableNs());
        node.put("enable_ns", mechanisms.get(0).capabilities().enableNs());
        node.put("idle", config.idle().name().toLowerCase(java.util.Locale.ROOT));
        node.put("optimistic", config.optimistic());
        node.put("journal", config.journal().toString());
        node.put("journal_bytes", config.journalBytes());
        node.put("metrics", metricsAt == null ? "" : exporter == null ? metricsAt.toString()
            : exporter.endpoint().toString());
        node.put("watchdog_period_ms", config.watchdogPeriodMs());
        node.put("warm_up_records", config.warmUpRecords());
        node.put("admission", config.site().admission().mode().word());
        node.put("unmanaged", config.site().unmanaged() == Unmanaged.ALLOW ? "allow" : "best-effort");
        return node;
    }

    /** On the clerk's thread: what {@code top} and {@code live} show. */
    private ObjectNode liveView(final JsonNode request) {
        final ObjectNode view = liveModel.view(request.path("since").asLong(-2), request.path("columns").asBoolean(),
            System.nanoTime());
        final ObjectNode self = configuration();
        self.put("uptime_ns", System.nanoTime() - incarnationNs);
        self.put("policy", view.path("policy").asText());
        self.put("held_contexts", held.count());
        self.put("tap_failure", journal.tapFailure());
        self.put("heap_used_bytes", ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
        view.set("daemon", self);
        final ObjectNode counted = view.putObject("counters");
        for (final Counter counter : Counter.values()) {
            counted.put(counter.label(), counters.get(counter));
        }
        return view;
    }

    private void completeStatus(final ObjectNode root, final PeerCredentials peer) {
        final boolean all = DispatcherCommands.mayChange(peer);
        if (!all) {
            StatusFilter.keepOwn(root, peer.uid());
        }
        final Set<Integer> own = new HashSet<>();
        root.path("clients").forEach(client -> own.add(client.path("pid").asInt()));
        root.set("cgroups", cgroups.status(System.nanoTime(), pid -> all || own.contains(pid)));
        if (admission != null) {
            root.set("admission", admission.status(all, peer.uid()));
        }
        final ObjectNode self = configuration();
        self.put("uptime_ns", System.nanoTime() - incarnationNs);
        self.put("policy", root.path("policy").asText());
        self.put("watchdog_pid", watchdog == null ? 0 : watchdog.pid());
        self.put("watchdog_restarts", watchdogRestarts);
        self.put("watchdog_failure", watchdogFailure);
        self.put("held_contexts", held.count());
        self.put("journal_events", journal.written());
        self.put("journal_lost", journal.lost());
        self.put("journal_failure", journal.failure());
        self.put("journal_tap_failure", journal.tapFailure());
        self.put("warm_up_bytes_per_record", warmUpBytesPerRecord);
        self.put("hot_path_allocated_bytes", hotPathBytes());
        root.set("daemon", self);
        final ArrayNode list = root.putArray("counters");
        for (final Counter counter : Counter.values()) {
            list.addObject().put("label", counter.label()).put("description", counter.description())
                .put("value", counters.get(counter));
        }
        for (final ConductorCounter counter : ConductorCounter.values()) {
            list.addObject().put("label", "conductor_" + counter.name().toLowerCase(java.util.Locale.ROOT))
                .put("description", counter.description()).put("value", conductor.count(counter));
        }
    }

    /**
     * Stops cleanly: everybody is granted, everything is enabled, the journal is closed, the held file is empty.
     *
     * @throws IllegalStateException if a context could not be enabled
     */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        stopAsked.countDown();
        if (pauseWatch != null) {
            pauseWatch.close();
        }
        clerk.shutdownNow();
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
            await(this::enforcersIdle);
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
            thread.join(TimeUnit.NANOSECONDS.toMillis(STOP_LIMIT_NS));
        }
        final CountDownLatch journaled = new CountDownLatch(1);
        dispatcher.submit(() -> {
            dispatcher.journalStop();
            journaled.countDown();
        });
        journaled.await(STOP_LIMIT_NS, TimeUnit.NANOSECONDS);
        dispatcher.stop();
        dispatcherThread.join();
        dispatcher.close();
        if (journalRunner != null) {
            journalRunner.stop();
        }
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
        final int stillHeld = held == null ? 0 : held.count();
        if (journal != null && journalRunner == null) {
            journal.close();
        }
        if (watchdog != null) {
            watchdog.close();
        }
        for (final Mechanism mechanism : mechanisms) {
            mechanism.close();
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
        if (lock != null) {
            lock.close();
        }
        if (stillHeld > 0) {
            throw new IllegalStateException("stopped, but " + stillHeld + " contexts are still disabled; run `gpuseg "
                + "release --dir " + config.directory().root() + "`");
        }
    }
}

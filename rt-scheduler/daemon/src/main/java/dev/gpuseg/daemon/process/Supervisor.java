/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.gpuseg.daemon.admission.ProvenAdmission;
import dev.gpuseg.daemon.cgroup.Cgroups;
import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.daemon.conductor.ContextLimits;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.daemon.dispatch.Counters;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.daemon.dispatch.ProcessEntry;
import dev.gpuseg.daemon.dispatch.ProcessRegistry;
import dev.gpuseg.daemon.metrics.LiveModel;
import dev.gpuseg.ipc.platform.ClockReading;
import dev.gpuseg.ipc.platform.ProcessCpuTime;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.DeviceFile;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * What the daemon looks after while it runs, at intervals, on the background thread: processes that died without a
 * registration, control groups, the watchdog, admissions that expire, clocks. The dispatcher is asked through commands
 * and never waited for.
 */
final class Supervisor {
    private static final long LOOK_MS = 200;
    private static final long CLOCKS_S = 10;
    private static final long SAY_AGAIN_NS = TimeUnit.MINUTES.toNanos(10);

    private final DispatcherAgent dispatcher;
    private final ScheduledExecutorService background;
    private final WatchdogKeeper watchdog;
    private final Cgroups cgroups;
    private final LiveModel liveModel;
    private final ProvenAdmission admission;
    private final Counters counters;
    private final IdleProcesses idle;
    /** The processes that the dispatcher reported last. Background thread. */
    private List<ProcessView> knownProcesses = List.of();
    private int knownVersion;
    private long foreignSeen;
    private final ContextLimits contextLimits;
    private long endedSeen;
    private final Consumer<String> log;
    /** When it was said that processes are not controlled; 0 = never. */
    private long uncontrolledSaidNs;

    /**
     * @param dispatcher whose processes are looked after
     * @param background the thread that does so
     * @param watchdog   kept running
     * @param cgroups    followed
     * @param liveModel  told of the time
     * @param admission  told of the time; null while it is off
     * @param counters   of the dispatcher, which alone changes them
     * @param contextLimits how many contexts a user may have
     * @param log        receives a line for what an administrator should mend
     */
    Supervisor(final DispatcherAgent dispatcher, final ScheduledExecutorService background,
        final WatchdogKeeper watchdog, final Cgroups cgroups, final LiveModel liveModel,
        final ProvenAdmission admission, final Counters counters, final ContextLimits contextLimits,
        final Consumer<String> log) {
        this.log = log;
        this.contextLimits = contextLimits;
        this.counters = counters;
        idle = new IdleProcesses(new ProcessCpuTime()::readNs, new ProcDriverThreads(), this::tellIdle);
        this.dispatcher = dispatcher;
        this.background = background;
        this.watchdog = watchdog;
        this.cgroups = cgroups;
        this.liveModel = liveModel;
        this.admission = admission;
    }

    /** Looks from now on, until the background thread is shut down. */
    void start() {
        background.scheduleWithFixedDelay(this::readClocks, 0, CLOCKS_S, TimeUnit.SECONDS);
        background.scheduleWithFixedDelay(this::look, LOOK_MS, LOOK_MS, TimeUnit.MILLISECONDS);
    }

    /** One look. */
    void look() {
        final long nowNs = System.nanoTime();
        liveModel.tick(nowNs);
        if (dispatcher.processes().hasOrphans()) {
            dispatcher.submit(() -> {
                final List<ProcessEntry> orphans = dispatcher.processes().orphans();
                background.execute(() -> forgetDead(orphans));
            });
        }
        lookAtUncontrolled(nowNs);
        if (admission != null) {
            admission.expire();
        }
        final long foreign = DeviceFile.foreignSeen();
        if (foreign != foreignSeen) {
            foreignSeen = foreign;
            dispatcher.submit(() -> counters.set(Counter.FOREIGN_DESCRIPTORS, foreign));
        }
        followCgroups(nowNs);
        idle.look(knownProcesses);
        dispatcher.lookAtTurns();
        watchdog.keep();
    }

    private void tellIdle(final ProcessView process, final boolean isIdle) {
        dispatcher.submit(() -> dispatcher.processes().idle(process.pid(), process.startTicks(), isIdle));
    }

    private void forgetDead(final List<ProcessEntry> orphans) {
        for (final ProcessEntry orphan : orphans) {
            if (!ProcessStatus.isAlive(orphan.pid, orphan.startTicks)) {
                dispatcher.submit(() -> dispatcher.processes().forgetOrphan(orphan));
            }
        }
    }

    private void lookAtUncontrolled(final long nowNs) {
        final ProcessRegistry processes = dispatcher.processes();
        final int count = processes.uncontrolledCount();
        if (count == 0) {
            return;
        }
        if (uncontrolledSaidNs == 0 || nowNs - uncontrolledSaidNs >= SAY_AGAIN_NS) {
            uncontrolledSaidNs = nowNs;
            log.accept("all " + processes.numbers() + " context numbers are in use: " + count + " processes with a GPU "
                + "context stay enabled beside real-time work, and none can register; end some, and bound users with "
                + "limit contexts in limits.d or with pids.max of their control groups");
        }
        dispatcher.submit(() -> {
            final List<ProcessRegistry.Uncontrolled> all = processes.uncontrolled();
            background.execute(() -> {
                for (final ProcessRegistry.Uncontrolled each : all) {
                    if (!ProcessStatus.isAlive(each.pid(), each.startTicks())) {
                        dispatcher.submit(() -> processes.forgetUncontrolled(each));
                    }
                }
            });
        });
    }

    private void followCgroups(final long nowNs) {
        final int version = dispatcher.processes().version();
        if (version != knownVersion) {
            dispatcher.submit(() -> {
                final List<ProcessView> views = dispatcher.processes().views();
                background.execute(() -> {
                    knownProcesses = views;
                    knownVersion = version;
                    cgroups.look(knownProcesses, System.nanoTime());
                    limitContexts();
                });
            });
        } else if (cgroups.isDue(nowNs)) {
            cgroups.look(knownProcesses, nowNs);
        }
    }

    private void limitContexts() {
        final long ended = contextLimits.look(knownProcesses);
        if (ended != endedSeen) {
            endedSeen = ended;
            dispatcher.submit(() -> counters.set(Counter.CONTEXTS_BEYOND_LIMIT, ended));
        }
    }

    /** What carries the journal's times to wall time and to other tracers' clocks. */
    private void readClocks() {
        final ClockReading clocks = ClockReading.now();
        final String others = JsonNodeFactory.instance.objectNode().put("boottime_ns", clocks.boottimeNs())
            .put("uncertainty_ns", clocks.uncertaintyNs()).toString();
        dispatcher.submit(() -> dispatcher.journal().clocks(clocks.monotonicNs(), clocks.realtimeNs(), others));
    }
}

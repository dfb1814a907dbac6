/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.cgroup.CgroupTree;
import dev.gpuseg.daemon.cgroup.Cgroups;
import dev.gpuseg.daemon.cgroup.GroupRule;
import dev.gpuseg.daemon.cgroup.GroupSink;
import dev.gpuseg.daemon.cgroup.LiveRules;
import dev.gpuseg.daemon.cgroup.ProcessView;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.ContextLimits;
import dev.gpuseg.daemon.conductor.UserLimits;
import dev.gpuseg.daemon.dispatch.Counters;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.daemon.dispatch.FakeJournal;
import dev.gpuseg.daemon.enforce.Enforcement;
import dev.gpuseg.daemon.enforce.FakeEnforcement;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.metrics.LiveModel;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.WatchdogPage;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class SupervisorTest {
    private static final int LOOKS_MOST = 10_000;

    @TempDir
    private Path directory;
    private final FakeJournal events = new FakeJournal();
    private final ManualExecutor background = new ManualExecutor();
    private final List<Integer> assigned = new ArrayList<>();
    private final List<String> watchdogs = new ArrayList<>();
    private final List<String> said = new ArrayList<>();
    private StatusPage status;
    private DispatcherAgent dispatcher;
    private Supervisor supervisor;

    private final class Assigned implements GroupSink {
        @Override
        public void define(final int groupId, final GroupRule rule) {
            // there are no rules
        }

        @Override
        public void assign(final ProcessView process, final int groupId, final boolean isProtected) {
            assigned.add(process.pid());
        }
    }

    @BeforeEach
    void wire() {
        status = StatusPage.create(directory.resolve("status"), 0, "fp", "fake", 3);
        dispatcher = new DispatcherAgent(new SchedulerConfig(FixedPriority.INSTANCE, 1, 4, 4, true, true,
            Unmanaged.BEST_EFFORT), new Enforcement[] {new FakeEnforcement(4)}, events, status, new Counters(),
            IdleMode.SPIN);
        supervisor = new Supervisor(dispatcher, background, new WatchdogKeeper(null, () -> null, page -> { }),
            new Cgroups(new CgroupTree(Path.of("/proc")), LiveRules.NONE, new Assigned()), new LiveModel(), null,
            new Counters(), new ContextLimits(UserLimits.NONE, 0, line -> { }), said::add);
    }

    @AfterEach
    void close() {
        dispatcher.close();
        status.close();
        background.shutdownNow();
    }

    /** The dispatcher and the background thread do what was asked of them, in turn. */
    private void settle() {
        for (int i = 0; i < 5; i++) {
            dispatcher.cycle();
            background.runDue();
        }
    }

    private void look() {
        supervisor.look();
        settle();
    }

    @Test
    void shouldForgetAProcessThatDiedUnregisteredAndKeepOneThatLives() {
        final int self = ProcessStatus.pid();
        dispatcher.processes().addUnmanaged(self, ProcessStatus.startTicks(self), "lives");
        dispatcher.processes().addUnmanaged(1 << 22, 1, "died");
        look();
        assertEquals(1, dispatcher.processes().count());
        assertEquals("lives", dispatcher.processes().orphans().get(0).name);
        assertTrue(events.kinds().contains(EventKind.CONTEXT_CLOSE));
    }

    @Test
    void shouldAskForProcessesOnlyWhenOneCameOrWent() {
        look();
        assertFalse(assigned.contains(ProcessStatus.pid()));
        dispatcher.processes().addUnmanaged(ProcessStatus.pid(), ProcessStatus.startTicks(ProcessStatus.pid()), "us");
        // registered, or it would be asked for as an orphan
        dispatcher.processes().register(new Client(1, ProcessStatus.pid(), 0, 0,
            ProcessStatus.startTicks(ProcessStatus.pid()), "us", null, null, null));
        look();
        assertTrue(assigned.contains(ProcessStatus.pid()), assigned.toString());
        supervisor.look();
        assertEquals(0, dispatcher.cycle(), "nothing new was asked");
    }

    @Test
    void shouldJournalClocksAndLookAgainAndAgain() {
        supervisor.start();
        assertEquals(2, background.repeated.size());
        background.repeated.get(0).run();
        settle();
        assertTrue(events.kinds().contains(EventKind.CLOCK));
        assertTrue(events.texts().stream().anyMatch(text -> text.contains("boottime_ns")), events.texts().toString());
    }

    @Test
    void shouldSayOnceThatAllContextNumbersAreInUseAndForgetTheDead() {
        final int dead = Integer.MAX_VALUE;
        dispatcher.submit(() -> {
            for (int i = 0; i < 6; i++) {
                dispatcher.processes().addUnmanaged(dead - i, 1, "p" + i);
            }
        });
        settle();
        supervisor.look();
        assertEquals(1, said.size(), said.toString());
        assertTrue(said.get(0).startsWith("all 4 context numbers are in use: 2 processes"), said.get(0));
        assertTrue(said.get(0).contains("limit contexts in limits.d"), said.get(0));
        settle();
        assertEquals(0, dispatcher.processes().uncontrolledCount());
        supervisor.look();
        assertEquals(1, said.size(), said.toString());
    }

    @Test
    void shouldKeepTheWatchdog() {
        final Supervisor keeping = new Supervisor(dispatcher, background, new WatchdogKeeper(new Dead(), () -> {
            watchdogs.add("started");
            return new Dead();
        }, page -> { }), new Cgroups(new CgroupTree(Path.of("/proc")), LiveRules.NONE, new Assigned()),
            new LiveModel(), null,
            new Counters(), new ContextLimits(UserLimits.NONE, 0, line -> { }), said::add);
        keeping.look();
        keeping.look();
        assertEquals(List.of("started", "started"), watchdogs);
    }

    @Test
    void shouldNoticeThatAProcessHasNoWork() throws IOException, InterruptedException {
        final Process sleeper = new ProcessBuilder("sleep", "1000").start();
        try {
            final int pid = (int) sleeper.pid();
            dispatcher.processes().addUnmanaged(pid, ProcessStatus.startTicks(pid), "sleep");
            // the first looks see its start, which takes as long as the machine lets it
            for (int i = 0; i < LOOKS_MOST && !isIdle(); i++) {
                look();
                TimeUnit.MILLISECONDS.sleep(1);
            }
            assertTrue(isIdle());
        } finally {
            sleeper.destroyForcibly().waitFor();
        }
    }

    private boolean isIdle() {
        final boolean[] idle = new boolean[1];
        dispatcher.processes().forEach(process -> idle[0] |= process.isIdle);
        return idle[0];
    }

    private static final class Dead implements Watchdog {
        @Override
        public boolean isAlive() {
            return false;
        }

        @Override
        public long pid() {
            return 1;
        }

        @Override
        public WatchdogPage page() {
            return null;
        }

        @Override
        public void close() {
            // it is gone
        }
    }
}

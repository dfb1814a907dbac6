/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.daemon.cgroup.CgroupTree;
import dev.gpuseg.daemon.cgroup.Cgroups;
import dev.gpuseg.daemon.cgroup.GroupRule;
import dev.gpuseg.daemon.cgroup.LiveRules;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.daemon.dispatch.Counters;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.daemon.dispatch.FakeConductor;
import dev.gpuseg.daemon.dispatch.StatusView;
import dev.gpuseg.daemon.enforce.Enforcement;
import dev.gpuseg.daemon.enforce.FakeEnforcement;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.metrics.LiveModel;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.daemon.policy.SavedPolicy;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.QueueTemplate;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.ipc.platform.EventFd;
import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.observer.Observer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Commands as the conductor hands them over, through a dispatcher whose cycles the test runs, and what they show. */
@Timeout(60)
class DispatcherCommandsTest {
    private static final AskingGroup POD = new AskingGroup("/pod/1", new GroupRule("/pod/**", 100, 0, 0, false, 50));
    private static final PeerCredentials OWNER = new PeerCredentials(1, ProcessStatus.effectiveUid(), 0);
    private static final PeerCredentials STRANGER = new PeerCredentials(2, 54321, 54321);

    @TempDir
    private Path directory;
    private final FakeConductor conductor = new FakeConductor();
    private final FakeEnforcement enforcer = new FakeEnforcement(4);
    private final ManualExecutor background = new ManualExecutor();
    private final List<String> stops = new ArrayList<>();
    private final List<AutoCloseable> open = new ArrayList<>();
    private DispatcherAgent dispatcher;
    private DispatcherCommands commands;
    private Path savedFile;

    private <T extends AutoCloseable> T opened(final T resource) {
        open.add(resource);
        return resource;
    }

    @BeforeEach
    void wire() {
        final Counters counters = new Counters();
        final JournalRing ring = opened(new JournalRing(directory.resolve("ring"), 1 << 16));
        final JournalAgent journal = opened(new JournalAgent(ring, directory.resolve("journal"), 1 << 20));
        final StatusPage page = opened(StatusPage.create(directory.resolve("status"), 0, "fp", "fake", 3));
        dispatcher = new DispatcherAgent(new SchedulerConfig(FixedPriority.INSTANCE, 1, 4, 4, true, true,
            Unmanaged.BEST_EFFORT), new Enforcement[] {enforcer}, ring, page, counters, IdleMode.SPIN);
        dispatcher.conductor(conductor);
        final DaemonConfig config = DaemonConfig.of(RuntimeDirectory.resolve(directory.toString()),
            PolicyCatalog.builtIn().standard(), "gate").warmUpRecords(0).build();
        final DaemonStatus shown = new DaemonStatus(new DaemonStatus.Sources(config, 0, true, 4, 4, -1,
            enforcer.mechanism, Observer.none("a test"), counters, counter -> 7,
            opened(HeldFile.openOrCreate(directory.resolve("held"))), ring, journal, new LiveModel(),
            new Cgroups(new CgroupTree(Path.of("/proc")), LiveRules.NONE, new GroupCommands(dispatcher)), null,
            new WatchdogKeeper(null, () -> null, p -> { }), null, () -> 0,
            () -> ""));
        savedFile = directory.resolve("saved.json");
        final PolicySource policies = PolicySource.builtIn();
        commands = new DispatcherCommands(new DispatcherCommands.Context(dispatcher, background, shown, stops::add,
            policies, new SavedPolicy(savedFile, policies.reader()), null, () -> conductor));
    }

    @AfterEach
    void close() throws Exception {
        dispatcher.close();
        background.shutdownNow();
        for (int i = open.size() - 1; i >= 0; i--) {
            if (!(open.get(i) instanceof JournalRing)) {
                open.get(i).close();
            }
        }
        open.get(0).close();
    }

    private String ask(final PeerCredentials peer, final String json) {
        return ask(peer, AskingGroup.FREE, json);
    }

    private String ask(final PeerCredentials peer, final AskingGroup group, final String json) {
        commands.admin(5, peer, group, json);
        for (int i = 0; i < 4; i++) {
            dispatcher.cycle();
            background.runDue();
        }
        return conductor.last();
    }

    // ---- refusals -------------------------------------------------------------------------------------------------

    @Test
    void shouldRefuseWhatIsNoCommand() {
        assertTrue(ask(OWNER, "{").startsWith("reply 5 status -22"), conductor.last());
        assertTrue(ask(OWNER, "{\"command\":\"reboot\"}").contains("use status, live, stop, set or policy"));
    }

    /** Root of a container may reach the socket; it is no administrator of this machine. */
    @Test
    void shouldLetRootOfARuledGroupOnlyLook() {
        final PeerCredentials root = new PeerCredentials(77, 0, 0);
        for (final String command : List.of("live", "stop", "policy", "set")) {
            assertTrue(ask(root, POD, "{\"command\":\"" + command + "\"}")
                .contains("is in a control group whose"), command);
        }
        assertTrue(ask(root, POD, "{\"command\":\"status\"}").startsWith("reply 5 status 0"), conductor.last());
        assertTrue(stops.isEmpty());
    }

    /** Its number of a user is root's, and nobody of its group is there. */
    @Test
    void shouldShowRootOfARuledGroupNothingOfOthers() {
        final Session session = opened(Session.create(1, 0));
        final ClientQueue queue = opened(ClientQueue.create(QueueTemplate.create(directory.resolve("template"),
            ClientQueue.BYTES_MIN), directory.resolve("client"), 1, ProcessStatus.effectiveUid(),
            ProcessStatus.effectiveGid(), ProcessStatus.pid(), session, () -> { }));
        dispatcher.clients().add(new Client(1, ProcessStatus.pid(), 0, 0, 1, "host", session, queue,
            opened(new EventFd())));
        final PeerCredentials root = new PeerCredentials(77, 0, 0);
        assertTrue(ask(root, "{\"command\":\"status\"}").contains("\"name\":\"host\""), conductor.last());
        assertFalse(ask(root, POD, "{\"command\":\"status\"}").contains("\"name\":\"host\""), conductor.last());
    }

    @Test
    void shouldLetAStrangerOnlyLook() {
        for (final String command : List.of("live", "stop", "policy", "hint")) {
            assertTrue(ask(STRANGER, "{\"command\":\"" + command + "\"}").startsWith("reply 5 status -1 "), command);
        }
        assertEquals(List.of(), stops);
        assertTrue(ask(STRANGER, "{\"command\":\"status\"}").startsWith("reply 5 status 0 "), conductor.last());
    }

    @Test
    void shouldSayOfEachCounterWhetherItMeansTrouble() {
        final String status = ask(OWNER, "{\"command\":\"status\"}");
        for (final String counter : List.of("\"label\":\"begins\"", "\"label\":\"conductor_clients_opened\"")) {
            assertTrue(status.matches("(?s).*" + counter + "[^}]*\"trouble\":false.*"), status);
        }
        for (final String counter : List.of("\"label\":\"job_misses\"", "\"label\":\"conductor_clients_died\"")) {
            assertTrue(status.matches("(?s).*" + counter + "[^}]*\"trouble\":true.*"), status);
        }
    }

    @Test
    void shouldRefuseAPolicyOrSettingThatDoesNotExist() {
        assertTrue(ask(OWNER, "{\"command\":\"policy\",\"policy\":\"lottery\"}").startsWith("reply 5 status -22"));
        assertTrue(ask(OWNER, "{\"command\":\"policy\",\"settings\":{\"colour\":1}}").startsWith("reply 5 status -22"));
        assertFalse(Files.exists(savedFile));
    }

    @Test
    void shouldRefuseAHintForATaskThatIsNotOpenOrAPriorityThatIsNone() {
        assertTrue(ask(OWNER, "{\"command\":\"hint\",\"task\":\"camera\",\"priority\":10}")
            .contains("no open task \\\"camera\\\""), conductor.last());
        assertTrue(ask(OWNER, "{\"command\":\"hint\",\"task\":\"camera\",\"priority\":100}")
            .startsWith("reply 5 status -22"));
        assertTrue(ask(OWNER, "{\"command\":\"hint\",\"task\":\"camera\"}").startsWith("reply 5 status -22"));
        assertTrue(ask(OWNER, "{\"command\":\"hint\",\"task\":\"camera\",\"priority\":0,\"gpu_priority\":5}")
            .startsWith("reply 5 status -22"), "best effort with a GPU priority");
    }

    // ---- what is done ---------------------------------------------------------------------------------------------

    @Test
    void shouldChangeThePolicy() {
        assertTrue(ask(OWNER, "{\"command\":\"policy\",\"policy\":\"edf\"}").contains("\"policy edf\""));
        assertEquals("edf", dispatcher.snapshot().take(StatusView.ALL).path("policy").asText());
    }

    @Test
    void shouldApplyAndSaveSettings() {
        final String reply = ask(OWNER, "{\"command\":\"policy\",\"settings\":{\"quantum\":\"5ms\"},"
            + "\"save\":true}");
        assertTrue(reply.contains("quantum 5ms"), reply);
        assertTrue(Files.exists(savedFile), reply);
        assertFalse(ask(OWNER, "{\"command\":\"policy\",\"forget\":true}").contains("saved in"), conductor.last());
        assertFalse(Files.exists(savedFile));
    }

    @Test
    void shouldAskTheDaemonToStop() {
        assertTrue(ask(OWNER, "{\"command\":\"stop\"}").contains("\"stopping\":true"));
        assertEquals(List.of("pid 1, uid " + OWNER.uid()), stops);
    }

    @Test
    void shouldShowTheWholeStatusToTheOwner() {
        dispatcher.processes().addUnmanaged(4711, 9, "stranger");
        final String reply = ask(OWNER, "{\"command\":\"status\"}");
        for (final Counter counter : Counter.values()) {
            assertTrue(reply.contains("\"label\":\"" + counter.label() + "\""), counter.label());
        }
        assertTrue(reply.contains("conductor_") && reply.contains("\"value\":7"), reply);
        assertTrue(reply.contains("\"mechanism\":\"fake\"") && reply.contains("\"simulated\":true"), reply);
        assertTrue(reply.contains("\"pid\":4711"), reply);   // a time may contain these digits, too
        assertFalse(ask(STRANGER, "{\"command\":\"status\"}").contains("\"pid\":4711"), "of another user");
    }

    @Test
    void shouldShowTheLiveView() {
        final String reply = ask(OWNER, "{\"command\":\"live\",\"since\":-1}");
        assertTrue(reply.contains("\"daemon\"") && reply.contains("\"heap_used_bytes\""), reply);
        assertTrue(reply.contains("\"journal_drops\":0"), reply);
    }
}

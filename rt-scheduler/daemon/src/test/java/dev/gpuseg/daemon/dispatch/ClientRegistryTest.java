/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.QueueTemplate;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.platform.EventFd;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** With sessions and queues as clients have them; the conductor, the enforcer and the journal are fakes. */
@Timeout(60)
class ClientRegistryTest {
    private static final int EAGAIN = -11;
    private static final int EINVAL = -22;
    private static final int ENOSPC = -28;
    private static final int FIRST = 1;
    private static final int SECOND = 2;

    @TempDir
    private Path directory;
    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final FakeConductor conductor = new FakeConductor();
    private final List<Runnable> later = new ArrayList<>();
    private final List<Client> opened = new ArrayList<>();
    private final Doorbells doorbells = new Doorbells();
    private final ClientRegistry clients = new ClientRegistry(new ClientRegistry.Parts(rig.scheduler, rig.desired,
        rig.processes, rig.tasks, rig.policy, rig.anticipation, rig.grants, rig.decisions, doorbells, rig.journal,
        rig.counters, rig.clock, new ShareAccounts(rig.scheduler, DispatchRig.CONTEXTS, rig.journal, rig.clock)),
        this::runLater, true);
    private boolean faults;
    private QueueTemplate template;

    @BeforeEach
    void wire() {
        clients.conductor(conductor);
        template = QueueTemplate.create(directory.resolve("template"), ClientQueue.BYTES_MIN);
    }

    @AfterEach
    void close() {
        for (final Client client : opened) {
            client.queue().close();
            client.session().close();
            client.doorbell().close();
        }
        doorbells.close();
    }

    private Client add(final int clientId) {
        final Session session = Session.create(clientId, 0);
        final ClientQueue queue = ClientQueue.create(template, directory.resolve("client" + clientId), clientId,
            ProcessStatus.effectiveUid(), ProcessStatus.effectiveGid(), ProcessStatus.pid(), session, () -> { });
        final Client client = new Client(clientId, 100 + clientId, 0, 0, 1, "client" + clientId, session, queue,
            new EventFd());
        opened.add(client);
        clients.add(client);
        return client;
    }

    private int open(final int clientId, final String name, final int priority) {
        clients.openTask(DispatchRig.request(clientId, name, priority));
        return conductor.taskId;
    }

    /** The client's queue is found empty. */
    private void readToTheEnd(final int at) {
        clients.polled(clients.get(at), 0, 16);
        runLater();
    }

    private void runLater(final Runnable command) {
        later.add(command);
        if (faults) {
            throw new InternalError("a fault of a truncated file");
        }
    }

    private void runLater() {
        final List<Runnable> due = List.copyOf(later);
        later.clear();
        due.forEach(Runnable::run);
    }

    private void refused(final TaskOpen request, final int errno, final String why) {
        final long before = rig.count(Counter.TASKS_REFUSED);
        clients.openTask(request);
        assertTrue(conductor.last().contains(" status " + errno + " "), conductor.last());
        assertTrue(conductor.last().contains(why), conductor.last());
        assertEquals(before + 1, rig.count(Counter.TASKS_REFUSED));
    }

    // ---- refusals -------------------------------------------------------------------------------------------------

    @Test
    void shouldRefuseATaskOfAClientThatIsNotThereOrNoLonger() {
        refused(DispatchRig.request(FIRST, "camera", 10), EAGAIN, "client 1 is being removed");
        add(FIRST);
        clients.remove(FIRST, Removal.CLOSED);
        refused(DispatchRig.request(FIRST, "camera", 10), EAGAIN, "register again");
        add(SECOND);
        clients.poison(clients.get(1), Abi.POISON_TICKET, "test");
        refused(DispatchRig.request(SECOND, "camera", 10), EAGAIN, "register again");
    }

    @Test
    void shouldRefuseATaskWhileTheDaemonStops() {
        add(FIRST);
        rig.policy.stop();
        refused(DispatchRig.request(FIRST, "camera", 10), EAGAIN, "register again");
    }

    @Test
    void shouldRefuseATaskThatItsGpuCannotServe() {
        add(FIRST);
        refused(new TaskOpen(1, FIRST, "camera", 10, 10, 1, true, 0, 0, 0), EINVAL, "gpu is 1; this daemon has 1");
    }

    @Test
    void shouldRefuseASecondPartitionInOneProcess() {
        add(FIRST);
        clients.openTask(DispatchRig.request(FIRST, "camera", 10).withPartition(1));
        refused(DispatchRig.request(FIRST, "lidar", 10).withPartition(2), EINVAL, "use one partition per process");
        clients.openTask(DispatchRig.request(FIRST, "radar", 10).withPartition(1));
        assertEquals(2, rig.count(Counter.TASKS_OPENED));
    }

    @Test
    void shouldRefuseATaskForWhichThereIsNoId() {
        add(FIRST);
        for (int i = 0; i < DispatchRig.TASKS; i++) {
            open(FIRST, "task" + i, 10);
        }
        refused(DispatchRig.request(FIRST, "one too many", 10), ENOSPC, "no free task id of " + DispatchRig.TASKS);
    }

    @Test
    void shouldNotCloseTheTaskOfAnotherClient() {
        add(FIRST);
        add(SECOND);
        final int task = open(FIRST, "camera", 10);
        for (final int id : new int[] {task, 0, -1, 1 << 20}) {
            clients.closeTask(5, SECOND, id);
            assertTrue(conductor.last().startsWith("closed 5 status " + EINVAL), conductor.last());
        }
        readToTheEnd(1);
        assertNotNull(rig.tasks.get(task));
    }

    // ---- tasks ----------------------------------------------------------------------------------------------------

    @Test
    void shouldOpenATaskWithAllThatItAsksFor() {
        final Client client = add(FIRST);
        rig.forget();
        clients.openTask(new TaskOpen(9, FIRST, "camera", 10, 12, 0, true, 0, 0, 0,
            OverrunAction.SUSPEND, 0, 0, 250, 0));
        assertEquals("opened 9 status 0", conductor.last());
        final TaskEntry task = rig.tasks.get(conductor.taskId);
        assertEquals(12, task.gpuPriority);
        assertEquals(clients.get(0).process.contexts[0], task.contextId);
        assertEquals(250, rig.scheduler.weight(rig.scheduler.ownGroup(task.contextId)));
        assertTrue(rig.scheduler.isPregranted(task.id), "nothing is begun");
        assertEquals(EventKind.TASK_OPEN, rig.events.events.get(0).kind());
        assertTrue(rig.events.events.get(0).text().contains("\"name\":\"camera\""));
        assertEquals(client.clientId(), rig.events.events.get(0).clientId());
        assertEquals(1, rig.count(Counter.TASKS_OPENED));
    }

    @Test
    void shouldCloseATaskOnlyWhenItsClientsRecordsAreRead() {
        add(FIRST);
        final int task = open(FIRST, "camera", 10);
        clients.closeTask(5, FIRST, task);
        clients.polled(clients.get(0), 16, 16);   // there may be more
        runLater();
        assertNotNull(rig.tasks.get(task));
        clients.polled(clients.get(0), 3, 16);
        assertNotNull(rig.tasks.get(task), "in a cycle of its own");
        runLater();
        assertNull(rig.tasks.get(task));
        assertEquals("closed 5 status 0", conductor.last());
        assertEquals(EventKind.TASK_CLOSE, rig.events.last().kind());
        assertEquals(task, open(FIRST, "lidar", 10), "the id is free");
    }

    @Test
    void shouldUseTheSlotsOfClosedTasksAgain() {
        add(FIRST);
        for (int i = 0; i <= Abi.SLOTS_MAX; i++) {
            final int task = open(FIRST, "camera", 10);
            assertTrue(conductor.last().startsWith("opened 1 status 0"), conductor.last());
            clients.closeTask(5, FIRST, task);
            readToTheEnd(0);
        }
    }

    @Test
    void shouldReadNoClientForEverThatWantsToClose() {
        add(FIRST);
        final int task = open(FIRST, "camera", 10);
        clients.closeTask(5, FIRST, task);
        for (int taken = 0; taken <= ClientRegistry.RECORDS_LEFT_MAX; taken += 16) {
            clients.polled(clients.get(0), 16, 16);
        }
        runLater();
        assertNull(rig.tasks.get(task), "it writes on and on");
    }

    @Test
    void shouldLetTheNextRunWhenARunningTaskIsClosed() {
        add(FIRST);
        add(SECOND);
        final TaskEntry holder = rig.tasks.get(open(FIRST, "camera", 20));
        final TaskEntry waiting = rig.tasks.get(open(SECOND, "lidar", 10));
        rig.begin(holder, 1, false);
        rig.begin(waiting, 1, true);
        rig.forget();
        clients.closeTask(5, FIRST, holder.id);
        readToTheEnd(0);
        assertTrue(rig.events.kinds().indexOf(EventKind.TASK_CLOSE) < rig.events.kinds().indexOf(EventKind.DECIDED),
            rig.events.kinds().toString());
        assertEquals(waiting.id, rig.scheduler.runningTask(0));
    }

    // ---- clients --------------------------------------------------------------------------------------------------

    @Test
    void shouldAnswerForAClientThatIsNotThere() {
        clients.remove(77, Removal.DIED);
        assertEquals("removed 77", conductor.last());
    }

    @Test
    void shouldRemoveAClientWithItsTasksWhenItsRecordsAreRead() {
        add(FIRST);
        final int task = open(FIRST, "camera", 10);
        clients.remove(FIRST, Removal.DIED);
        clients.remove(FIRST, Removal.CLOSED);   // asked again: the first reason counts
        assertEquals(1, clients.count());
        readToTheEnd(0);
        assertEquals(0, clients.count());
        assertNull(rig.tasks.get(task));
        assertEquals("removed 1", conductor.last());
        assertEquals(0, rig.processes.count(), "it died");
        assertEquals(1, rig.count(Counter.CLIENTS_CLOSED));
        assertEquals(EventKind.CLIENT_CLOSE, rig.events.last().kind());
    }

    @Test
    void shouldPoisonOneClientAndLeaveTheOthersAlone() {
        add(FIRST);
        add(SECOND);
        final TaskEntry bad = rig.tasks.get(open(FIRST, "camera", 20));
        final TaskEntry good = rig.tasks.get(open(SECOND, "lidar", 10));
        assertFalse(clients.hasPoisoned());
        clients.poison(clients.get(0), Abi.POISON_TICKET, "a reason");
        clients.poison(clients.get(0), Abi.POISON_LENGTH, "another");
        assertTrue(clients.hasPoisoned());
        assertNull(rig.tasks.get(bad.id));
        assertEquals(good, rig.tasks.get(good.id));
        assertEquals(1, rig.count(Counter.POISONED));
        assertEquals("poisoned 1 code " + Abi.POISON_TICKET + " a reason", conductor.last());
        assertEquals(-Abi.POISON_TICKET, opened.get(0).queue().poll((id, record) -> { }, 16, 1));
        assertEquals(0, opened.get(1).queue().poll((id, record) -> { }, 16, 1));
    }

    /** As where the dispatcher is woken for a command, and a fault of a truncated file is delivered in that call. */
    @Test
    void shouldLoseNoCommandToAFaultThatSurfacesWhenItIsQueued() {
        add(FIRST);
        final int camera = open(FIRST, "camera", 20);
        final int lidar = open(FIRST, "lidar", 10);
        clients.closeTask(1, FIRST, camera);
        clients.closeTask(2, FIRST, lidar);
        clients.remove(FIRST, Removal.CLOSED);
        faults = true;
        assertThrows(InternalError.class, () -> clients.polled(clients.get(0), 0, 16));
        faults = false;
        runLater();
        assertNull(rig.tasks.get(camera));
        assertNull(rig.tasks.get(lidar));
        assertEquals(0, clients.count());
        assertEquals("removed 1", conductor.last());
    }

    @Test
    void shouldFindTheClientWhoseFileWasTruncated() throws IOException {
        add(FIRST);
        add(SECOND);
        assertFalse(clients.poisonTruncated());
        final Path cycle;
        try (Stream<Path> files = Files.list(opened.get(1).queue().directory())) {
            cycle = files.filter(p -> p.toString().endsWith(".cq4")).findFirst().orElseThrow();
        }
        try (FileChannel channel = FileChannel.open(cycle, StandardOpenOption.WRITE)) {
            channel.truncate(4096);
        }
        assertTrue(clients.poisonTruncated());
        assertFalse(clients.get(0).poisoned);
        assertTrue(clients.get(1).poisoned);
        assertFalse(clients.poisonTruncated(), "once");
    }
}

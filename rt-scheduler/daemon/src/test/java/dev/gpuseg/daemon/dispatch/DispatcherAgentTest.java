/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.daemon.enforce.Enforcement;
import dev.gpuseg.daemon.enforce.FakeEnforcement;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.QueueTemplate;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.platform.EventFd;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The loop and the records, cycle by cycle, with queues as clients write them; enforcer and journal are fakes. */
@Timeout(60)
class DispatcherAgentTest {
    private static final long MS = 1_000_000;
    private static final long NEVER = Long.MAX_VALUE;

    @TempDir
    private Path directory;
    private final FakeEnforcement enforcer = new FakeEnforcement(4);
    private final FakeJournal events = new FakeJournal();
    private final Counters counters = new Counters();
    private final FakeConductor conductor = new FakeConductor();
    private final List<Client> clients = new ArrayList<>();
    private final List<RecordWriter> writers = new ArrayList<>();
    private StatusPage status;
    private DispatcherAgent dispatcher;
    private QueueTemplate template;

    @BeforeEach
    void wire() {
        status = StatusPage.create(directory.resolve("status"), 0, "fp", "fake", 3);
        dispatcher = new DispatcherAgent(new SchedulerConfig(FixedPriority.INSTANCE, 1, 4, 4, true, true,
            Unmanaged.BEST_EFFORT), new Enforcement[] {enforcer}, events, status, counters, IdleMode.SPIN);
        dispatcher.conductor(conductor);
        template = QueueTemplate.create(directory.resolve("template"), ClientQueue.BYTES_MIN);
    }

    @AfterEach
    void close() {
        for (final Client client : clients) {
            client.queue().close();
            client.session().close();
            client.doorbell().close();
        }
        dispatcher.close();
        status.close();
    }

    /** Registers a client with one task; both have the number that is returned. */
    private int client(final int priority) throws IOException {
        return client(priority, Long.MAX_VALUE);
    }

    private int client(final int priority, final long recordsPerSecond) throws IOException {
        final int id = clients.size() + 1;
        final Session session = Session.create(id, 0);
        final ClientQueue queue = ClientQueue.create(template, directory.resolve("client" + id), id,
            ProcessStatus.effectiveUid(), ProcessStatus.effectiveGid(), ProcessStatus.pid(), session, () -> { });
        final Client client = new Client(id, 100 + id, 0, id, 1, "client" + id, session, queue, new EventFd(),
            recordsPerSecond);
        clients.add(client);
        writers.add(new RecordWriter(queue.directory()));
        dispatcher.clients().add(client);
        dispatcher.clients().openTask(DispatchRig.request(id, "task" + id, priority));
        assertEquals(id, conductor.taskId);
        enforcer.enforce(1);
        events.events.clear();
        return id;
    }

    private void write(final int task, final int kind, final int flags, final long ticket) {
        writers.get(task - 1).write(kind, flags, task, ticket, 0);
    }

    /** Without stalls: they depend on the machine. */
    private List<FakeJournal.Event> journaled() {
        return events.events.stream().filter(event -> event.kind() != EventKind.STALL).toList();
    }

    private List<EventKind> kinds() {
        return journaled().stream().map(FakeJournal.Event::kind).toList();
    }

    private FakeJournal.Event last() {
        return journaled().get(journaled().size() - 1);
    }

    private long count(final Counter counter) {
        return counters.get(counter);
    }

    @Test
    void shouldDropTheClientThatEndsWhatItNeverBeganAndServeTheOthers() throws IOException {
        final int bad = client(10);
        final int good = client(20);
        write(bad, Abi.RECORD_END, 0, 3);
        write(good, Abi.RECORD_BEGIN, 0, 1);
        dispatcher.cycle();
        assertTrue(conductor.last().startsWith("poisoned " + bad + " code " + Abi.POISON_TICKET), conductor.last());
        assertEquals(1, count(Counter.POISONED));
        assertEquals(1, count(Counter.BEGINS));
        assertFalse(dispatcher.clients().get(1).poisoned);
    }

    @Test
    void shouldLetARecordOfAUserWithoutCreditWaitAndServeTheOthers() throws IOException {
        final int fast = client(10, 10);
        final int other = client(20);
        final int records = 40;
        for (int i = 0; i < records; i++) {
            writers.get(fast - 1).write(Abi.RECORD_HINT, 0, fast, 0, System.nanoTime());
            writers.get(other - 1).write(Abi.RECORD_HINT, 0, other, 0, System.nanoTime());
        }
        final long before = count(Counter.RECORDS);
        for (int i = 0; i < records; i++) {
            dispatcher.cycle();
        }
        assertEquals(records + 1, count(Counter.RECORDS) - before, "all of one, and what the other had saved");
        assertEquals(1, count(Counter.RECORDS_DELAYED));
        assertTrue(dispatcher.clients().get(0).muted, "its bell wakes nobody");
        assertFalse(dispatcher.clients().get(1).muted);
        dispatcher.clients().remove(fast, Removal.DIED);
        for (int i = 0; i < records; i++) {
            dispatcher.cycle();
        }
        assertEquals(2 * records, count(Counter.RECORDS) - before, "what a client leaves behind is read at once");
        assertEquals(1, dispatcher.clients().count());
    }

    @Test
    void shouldDropTheClientThatUsesATicketTwice() throws IOException {
        final int task = client(10);
        write(task, Abi.RECORD_BEGIN, 0, 5);
        write(task, Abi.RECORD_END, 0, 5);
        write(task, Abi.RECORD_BEGIN, 0, 5);
        dispatcher.cycle();
        assertTrue(conductor.last().startsWith("poisoned " + task), conductor.last());
    }

    /** It is not in the journal, so nothing may follow from it: what follows from the end of its task does. */
    @Test
    void shouldNotTakeARefusedBeginForTheOneThatIsExpected() throws IOException {
        final int bad = client(20);
        final int good = client(10);
        write(bad, Abi.RECORD_BEGIN, 0, 5);
        write(bad, Abi.RECORD_END, 0, 5);
        writers.get(bad - 1).write(Abi.RECORD_HINT, 0, bad, 0, System.nanoTime());
        writers.get(good - 1).write(Abi.RECORD_HINT, 0, good, 0, System.nanoTime());
        dispatcher.cycle();
        assertEquals(EventKind.ANTICIPATE, last().kind());
        assertEquals(bad, last().taskId());
        events.events.clear();
        write(bad, Abi.RECORD_BEGIN, 0, 5);
        dispatcher.cycle();
        assertEquals(EventKind.TASK_CLOSE, kinds().get(0), kinds()::toString);
        assertEquals(EventKind.ANTICIPATE, kinds().get(1), kinds()::toString);
        assertEquals(good, journaled().get(1).taskId());
    }

    @Test
    void shouldIgnoreHintsFurtherAheadThanTheUserMayGiveThem() throws IOException {
        final int client = client(10);
        dispatcher.clients().openTask(DispatchRig.request(client, "limited", 20).withHintLead(60_000 * MS));
        final int limited = conductor.taskId;
        final RecordWriter writer = writers.get(0);
        writer.write(Abi.RECORD_HINT, 0, limited, 0, System.nanoTime() + 61_000 * MS);
        dispatcher.cycle();
        assertEquals(1, count(Counter.HINTS_BEYOND_LIMIT));
        writer.write(Abi.RECORD_HINT, 0, limited, 0, System.nanoTime() + 1);
        writer.write(Abi.RECORD_HINT, 0, client, 0, System.nanoTime() + 3_600_000 * MS);
        dispatcher.cycle();
        assertEquals(1, count(Counter.HINTS_BEYOND_LIMIT), "the other task has no limit");
    }

    @Test
    void shouldTakeABatchOfEachClientInTurn() throws IOException {
        final int busy = client(10);
        final int other = client(20);
        for (int i = 1; i <= 20; i++) {
            write(busy, Abi.RECORD_BEGIN, Abi.FLAG_OPTIMISTIC, i);
            write(busy, Abi.RECORD_END, 0, i);
        }
        write(other, Abi.RECORD_BEGIN, Abi.FLAG_OPTIMISTIC, 1);
        dispatcher.cycle();
        assertEquals(17, count(Counter.RECORDS), "16 of one, then the other's");
        dispatcher.cycle();
        dispatcher.cycle();
        assertEquals(41, count(Counter.RECORDS));
    }

    @Test
    void shouldJournalABeginThatWaitsBeforeItsAnswer() throws IOException {
        final int low = client(10);
        final int high = client(20);
        write(high, Abi.RECORD_BEGIN, 0, 1);
        dispatcher.cycle();
        assertEquals(List.of(EventKind.BEGIN, EventKind.DECIDED), kinds());
        assertEquals(0, count(Counter.GRANTS));
        enforcer.enforce(2);
        dispatcher.cycle();
        assertEquals(1, count(Counter.GRANTS));
        assertEquals(List.of(EventKind.BEGIN, EventKind.DECIDED, EventKind.GRANT, EventKind.ENFORCED), kinds());
        write(low, Abi.RECORD_BEGIN, 0, 1);
        dispatcher.cycle();
        assertEquals(EventKind.BEGIN, last().kind(), "it waits");
        write(high, Abi.RECORD_END, 0, 1);
        dispatcher.cycle();
        assertTrue(kinds().indexOf(EventKind.END) > 0, kinds().toString());
        assertEquals(1, count(Counter.ENDS));
    }

    @Test
    void shouldNotDateADecisionBeforeTheRecordThatItFollowsFrom() throws IOException {
        final int task = client(10);
        write(task, Abi.RECORD_BEGIN, 0, 1);
        dispatcher.cycle();
        assertTrue(journaled().get(0).timeNs() - journaled().get(0).arg0() >= 0, events.events.toString());
    }

    @Test
    void shouldCountAJobAndItsResponseTime() throws IOException {
        final int task = client(10);
        write(task, Abi.RECORD_RELEASE, 0, 0);
        write(task, Abi.RECORD_JOB_END, 0, 0);
        dispatcher.cycle();
        assertEquals(1, count(Counter.JOBS));
        assertEquals(List.of(EventKind.RELEASE, EventKind.JOB_END), kinds());
    }

    @Test
    void shouldTellOfAJobAboveTheBoundOfItsAdmission() throws IOException {
        final int task = client(10);
        final PromisedBounds bounds = new PromisedBounds(task);
        dispatcher.compareWith(bounds);
        bounds.promise(task, Long.MAX_VALUE);
        write(task, Abi.RECORD_RELEASE, 0, 0);
        write(task, Abi.RECORD_JOB_END, 0, 0);
        dispatcher.cycle();
        assertEquals(0, count(Counter.BOUNDS_BROKEN), "it is kept");
        bounds.withdraw(task);
        bounds.promise(task, 1);
        write(task, Abi.RECORD_RELEASE, 0, 0);
        LockSupport.parkNanos(1_000_000);
        write(task, Abi.RECORD_JOB_END, 0, 0);
        dispatcher.cycle();
        assertEquals(1, count(Counter.BOUNDS_BROKEN));
        assertEquals(EventKind.BOUND, last().kind());
        assertEquals(1, last().arg1());
        assertTrue(last().arg0() > 1, "its response time: " + last().arg0());
        assertEquals(1, bounds.broken());
        assertEquals(task, bounds.lastTask());
    }

    @Test
    void shouldTellOfADriverCallAboveTheConstantOfTheProof() throws IOException {
        client(10);
        final PromisedBounds bounds = new PromisedBounds(4);
        dispatcher.compareWith(bounds);
        bounds.constants(new long[] {800}, new long[] {0});
        enforcer.changed(1, true, 100, 900);
        dispatcher.cycle();
        assertEquals(0, count(Counter.CONSTANTS_BROKEN), "it took as long as it may");
        enforcer.changed(1, false, 1_000, 1_801);
        dispatcher.cycle();
        assertEquals(1, count(Counter.CONSTANTS_BROKEN));
        assertEquals(1, bounds.constantsBroken());
        final var event = journaled().stream().filter(e -> e.kind() == EventKind.BOUND).findFirst().orElseThrow();
        assertEquals(List.of(801L, 800L, 1L), List.of(event.arg0(), event.arg1(), event.arg2()));
    }

    @Test
    void shouldTellAdmissionWhichTasksBeganWithoutWaiting() throws IOException {
        final PromisedBounds bounds = new PromisedBounds(4);
        dispatcher.compareWith(bounds);
        bounds.beganUnasked(1);
        final int first = client(10);
        final int second = client(20);
        assertFalse(bounds.hasBegunUnasked(first), "it was opened again");
        write(first, Abi.RECORD_BEGIN, 0, 1);
        write(first, Abi.RECORD_END, 0, 1);
        write(second, Abi.RECORD_BEGIN, Abi.FLAG_OPTIMISTIC, 1);
        dispatcher.cycle();
        assertFalse(bounds.hasBegunUnasked(first));
        assertTrue(bounds.hasBegunUnasked(second));
    }

    @Test
    void shouldCountACancelledJobAsSkippedAndCompareItWithNoBound() throws IOException {
        final int task = client(10);
        final PromisedBounds bounds = new PromisedBounds(task);
        dispatcher.compareWith(bounds);
        bounds.promise(task, 1);
        write(task, Abi.RECORD_RELEASE, 0, 0);
        write(task, Abi.RECORD_JOB_END, Abi.FLAG_CANCELLED, 0);
        dispatcher.cycle();
        assertEquals(List.of(EventKind.RELEASE, EventKind.JOB_CANCEL), kinds());
        assertEquals(1, count(Counter.JOBS_SKIPPED));
        assertEquals(0, count(Counter.JOBS));
        assertEquals(0, count(Counter.JOB_MISSES));
        assertEquals(0, count(Counter.BOUNDS_BROKEN));
        write(task, Abi.RECORD_JOB_END, 0, 0);
        write(task, Abi.RECORD_JOB_END, Abi.FLAG_CANCELLED, 0);
        dispatcher.cycle();
        assertEquals(1, count(Counter.JOBS_SKIPPED), "a job ends once");
        assertEquals(0, count(Counter.JOBS));
    }

    @Test
    void shouldJournalStampAndSampleOfARelease() throws IOException {
        final int task = client(10);
        writers.get(task - 1).write(Abi.RECORD_RELEASE, 0, task, 0, 4711, -815);
        dispatcher.cycle();
        assertEquals(EventKind.RELEASE, last().kind());
        assertEquals(4711, last().arg1());
        assertEquals(-815, last().arg2());
    }

    @Test
    void shouldCancelABegin() throws IOException {
        final int task = client(10);
        write(task, Abi.RECORD_BEGIN, 0, 1);
        write(task, Abi.RECORD_END, Abi.FLAG_CANCELLED, 1);
        dispatcher.cycle();
        assertEquals(1, count(Counter.CANCELS));
        assertEquals(0, count(Counter.ENDS));
        assertEquals(EventKind.CANCEL, last().kind());
    }

    @Test
    void shouldRunOneCommandInEachCycleAndSurviveOneThatFails() {
        final List<String> ran = new ArrayList<>();
        dispatcher.submit(() -> {
            throw new IllegalStateException("test");
        });
        dispatcher.submit(() -> ran.add("second"));
        assertEquals(1, dispatcher.cycle());
        assertEquals(List.of(), ran);
        assertEquals(1, count(Counter.CYCLE_ERRORS));
        assertTrue(last().text().contains("test"), last().text());
        dispatcher.cycle();
        assertEquals(List.of("second"), ran);
        assertEquals(0, dispatcher.cycle());
    }

    private boolean doesNobodyWaitAfter(final Runnable command) {
        dispatcher.submit(command);
        dispatcher.cycle();
        return status.doesNobodyWait();
    }

    @Test
    void shouldSayWhetherATaskIsOpenThatWaitsForWhatOthersHaveInFlight() throws IOException {
        assertTrue(status.doesNobodyWait());
        final int map = client(0);
        assertTrue(doesNobodyWaitAfter(() -> { }), "best effort waits for nobody");
        dispatcher.submit(() -> dispatcher.clients().openTask(DispatchRig.request(map, "camera", 10)));
        dispatcher.cycle();
        assertFalse(status.doesNobodyWait());
        final int camera = conductor.taskId;
        dispatcher.submit(() -> dispatcher.clients().closeTask(1, map, camera));
        for (int i = 0; i < 3; i++) {
            dispatcher.cycle();
        }
        assertTrue(status.doesNobodyWait());
        assertFalse(doesNobodyWaitAfter(() -> dispatcher.policy().setPriority(map, "", 20, 0, line -> { })),
            "it was raised");
        assertTrue(doesNobodyWaitAfter(() -> dispatcher.policy().setPriority(map, "", 0, 0, line -> { })));
    }

    @Test
    void shouldNotTakeATaskWithAPartOfItsOwnForOneThatWaits() throws IOException {
        final int id = client(0);
        assertTrue(doesNobodyWaitAfter(() -> dispatcher.clients().closeTask(1, id, id)));
        for (int i = 0; i < 3; i++) {
            dispatcher.cycle();
        }
        conductor.taskId = 0;
        assertTrue(doesNobodyWaitAfter(() -> dispatcher.clients().openTask(DispatchRig.request(id, "loop", 90)
            .withReserve(12))));
        assertTrue(conductor.taskId > 0, "it is open");
    }

    /** It has not looked at everything: to sleep then would leave records of other clients behind. */
    @Test
    void shouldNotCountACycleThatFailedAsIdle() {
        enforcer.failure = new IllegalStateException("test");
        assertTrue(dispatcher.cycle() > 0);
        assertEquals(1, count(Counter.CYCLE_ERRORS));
        enforcer.failure = null;
        assertEquals(0, dispatcher.cycle());
    }

    @Test
    void shouldEnableEverythingWhenItStops() throws IOException {
        final int low = client(10);
        final int high = client(20);
        write(low, Abi.RECORD_BEGIN, 0, 1);
        dispatcher.cycle();
        write(high, Abi.RECORD_BEGIN, 0, 1);
        dispatcher.cycle();
        assertEquals(List.of(clients.get(0).clientId()), enforcer.off());
        dispatcher.submit(dispatcher::beginStop);
        dispatcher.cycle();
        assertEquals(List.of(), enforcer.off());
        assertTrue(dispatcher.policy().isStopping());
        dispatcher.journalStop();
        assertEquals(EventKind.STOP, last().kind());
        assertNotNull(dispatcher.snapshot().take(StatusView.ALL));
    }

    @Test
    void shouldSleepNoLongerThanTheHeartbeatAllows() {
        assertEquals(14, DispatcherAgent.sleepMs(0, NEVER, NEVER));
        assertEquals(14, DispatcherAgent.sleepMs(0, 100 * MS, 100 * MS));
        assertEquals(0, DispatcherAgent.sleepMs(5 * MS, 4 * MS, NEVER), "a hint is overdue");
        assertEquals(0, DispatcherAgent.sleepMs(5 * MS, NEVER, 4 * MS), "a timer is overdue");
    }

    @Test
    void shouldWakeEarlyForAHintAndNotBeforeATimer() {
        assertEquals(2, DispatcherAgent.sleepMs(0, 3 * MS - 1, NEVER));
        assertEquals(3, DispatcherAgent.sleepMs(0, NEVER, 3 * MS - 1));
        assertEquals(2, DispatcherAgent.sleepMs(0, 9 * MS, 2 * MS), "a budget must not wait for a hint");
        assertEquals(2, DispatcherAgent.sleepMs(0, 2 * MS, 9 * MS));
    }
}

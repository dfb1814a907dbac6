/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The judge must be able to say no. */
@Timeout(60)
class InvariantCheckTest {
    private static final int HIGH = 1;
    private static final int LOW = 2;
    private static final int HIGH_PID = 1001;
    private static final int LOW_PID = 1002;
    // Why an execution ended, as in engine.h of the virtual GPU.
    private static final int REMOVED = 0;
    private static final int COMPLETED = 1;

    @TempDir
    private Path directory;
    private JournalRing ring;
    private JournalAgent agent;
    private final ByteBuffer spans = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);

    @BeforeEach
    void open() {
        ring = new JournalRing(directory.resolve("ring"), 1 << 16);
        agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20);
        ring.writeText(EventKind.START, 1, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\"}");
        ring.writeText(EventKind.CLIENT_OPEN, 2, 0, 0, HIGH, HIGH, HIGH_PID, 0, "high");
        ring.writeText(EventKind.CLIENT_OPEN, 3, 0, 0, LOW, LOW, LOW_PID, 0, "low");
        ring.writeText(EventKind.TASK_OPEN, 4, 0, HIGH, HIGH, HIGH, 90, 0, "{}");
        ring.writeText(EventKind.TASK_OPEN, 5, 0, LOW, LOW, LOW, 10, 0, "{}");
    }

    @AfterEach
    void close() {
        agent.close();
        ring.close();
    }

    private void event(final long timeNs, final EventKind kind, final int task) {
        ring.write(kind, timeNs, 0, 0, task, 1, task, task, 0, 0, 0);
    }

    private void span(final long startNs, final long endNs, final int pid) {
        span(startNs, endNs, pid, COMPLETED);
    }

    private void span(final long startNs, final long endNs, final int pid, final int flags) {
        spans.putLong(startNs).putLong(endNs).putInt(pid).putInt(flags).putLong(0);
        assertEquals(0, spans.position() % Abi.SimSpan.SIZE);
    }

    private InvariantCheck.Finding judge() throws IOException {
        return judge("fp");
    }

    private InvariantCheck.Finding judge(final String policy) throws IOException {
        agent.drain();
        final byte[] log = new byte[spans.position()];
        spans.flip().get(log);
        return InvariantCheck.of(directory.resolve("journal"), Files.write(directory.resolve("spans"), log), policy);
    }

    private void window(final long fromNs, final long toNs) {
        event(fromNs - 1, EventKind.GRANT, HIGH);
        event(fromNs, EventKind.ENFORCED, HIGH);
        event(toNs, EventKind.END, HIGH);
    }

    @Test
    void shouldAcceptExecutionsOfTheHolderAndOfOthersOutside() throws IOException {
        window(100, 200);
        span(50, 100, LOW_PID);
        span(100, 200, HIGH_PID);
        span(200, 300, LOW_PID);
        final InvariantCheck.Finding finding = judge();
        assertEquals(0, finding.overlaps());
        assertEquals(1, finding.windows());
        assertEquals(3, finding.spans());
    }

    @Test
    void shouldFindAnotherContextInsideAWindow() throws IOException {
        window(100, 200);
        window(300, 400);
        span(50, 101, LOW_PID);
        span(199, 220, LOW_PID);
        span(310, 320, LOW_PID);
        assertEquals(3, judge().overlaps());
    }

    /** The watchdog enabled all contexts at a time, and the daemon learned of it at 260. */
    private void released(final long firstNs) {
        ring.write(EventKind.WATCHDOG, 260, 0, 0, 0, 0, 0, 0, 1, firstNs, 0);
    }

    @Test
    void shouldAcceptThatOthersRunOnceTheWatchdogHasEnabledThem() throws IOException {
        window(100, 200);
        window(210, 250);
        released(150);
        window(300, 400);
        span(150, 260, LOW_PID);
        final InvariantCheck.Finding finding = judge();
        assertEquals(0, finding.overlaps());
        assertEquals(2, finding.windows(), "the second was believed, not enforced");
    }

    @Test
    void shouldFindOthersBeforeTheWatchdogEnabledThemAndAfterTheDaemonKnew() throws IOException {
        window(100, 200);
        window(210, 250);
        released(150);
        window(300, 400);
        span(149, 200, LOW_PID);
        span(310, 320, LOW_PID);
        assertEquals(2, judge().overlaps());
    }

    @Test
    void shouldCountAllOfAWindowWhereTheWatchdogDidNotSayWhen() throws IOException {
        window(100, 200);
        released(0);
        span(190, 200, LOW_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldFindTwoRealTimeSegmentsRunningAtOnce() throws IOException {
        event(100, EventKind.GRANT, HIGH);
        event(110, EventKind.GRANT, LOW);
        event(120, EventKind.END, HIGH);
        event(130, EventKind.END, LOW);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldAcceptAnOptimisticBeginThatIsPreemptedAtOnce() throws IOException {
        event(100, EventKind.GRANT, HIGH);
        event(110, EventKind.GRANT, LOW);
        event(110, EventKind.PREEMPT, LOW);
        event(120, EventKind.END, HIGH);
        assertEquals(0, judge().overlaps());
    }

    /** The daemon learned at a time that the lower process is dead. */
    private void died(final long atNs) {
        ring.write(EventKind.CONTEXT_CLOSE, atNs, 0, 0, 0, 0, LOW, 0, LOW_PID, 0, 0);
    }

    @Test
    void shouldAcceptThatTheGpuHearsOfADeathAfterTheDaemon() throws IOException {
        died(90);
        window(100, 200);
        span(50, 106, LOW_PID, REMOVED);
        assertEquals(0, judge().overlaps());
    }

    @Test
    void shouldFindADeadProcessThatRanOnOrBeganAgain() throws IOException {
        died(90);
        window(100, 200);
        span(50, 106, LOW_PID, COMPLETED);
        span(106, 110, LOW_PID, REMOVED);
        assertEquals(2, judge().overlaps());
    }

    @Test
    void shouldFindAProcessThatWasKilledInsideTheWindow() throws IOException {
        window(100, 200);
        span(50, 150, LOW_PID, REMOVED);
        died(160);
        assertEquals(1, judge().overlaps());
    }

    /** A window of the lower task from 100 on, taken over at 180 by a begin of the task at a time. */
    private void takenOver(final int task, final int flags, final long beginNs) {
        event(99, EventKind.GRANT, LOW);
        event(100, EventKind.ENFORCED, LOW);
        ring.write(EventKind.BEGIN, 180, 0, flags, task, 1, task, task, beginNs, 0, 0);
        event(180, EventKind.PREEMPT, LOW);
        span(100, 130, LOW_PID);
    }

    @Test
    void shouldAcceptThatAHigherTaskRunsFromItsBeginOn() throws IOException {
        takenOver(HIGH, Abi.FLAG_OPTIMISTIC, 140);
        span(140, 170, HIGH_PID);
        assertEquals(0, judge().overlaps());
    }

    @Test
    void shouldFindAThirdProcessBetweenThatBeginAndItsNews() throws IOException {
        takenOver(HIGH, Abi.FLAG_OPTIMISTIC, 140);
        span(140, 150, HIGH_PID);
        span(150, 160, HIGH_PID + LOW_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldFindAHigherTaskThatRunsOnInAWindowAfterItsNews() throws IOException {
        event(99, EventKind.GRANT, LOW);
        event(100, EventKind.ENFORCED, LOW);
        ring.write(EventKind.BEGIN, 180, 0, Abi.FLAG_OPTIMISTIC, HIGH, 1, HIGH, HIGH, 140, 0, 0);
        event(200, EventKind.PREEMPT, LOW);   // too late
        span(140, 190, HIGH_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldFindAHigherTaskThatRanBeforeItsBegin() throws IOException {
        takenOver(HIGH, Abi.FLAG_OPTIMISTIC, 140);
        span(139, 170, HIGH_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldFindAHigherTaskThatDidNotWaitThoughItHadTo() throws IOException {
        takenOver(HIGH, 0, 140);
        span(140, 170, HIGH_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldFindATaskOfNoHigherRankThatDidNotWait() throws IOException {
        ring.writeText(EventKind.TASK_OPEN, 6, 0, 3, 3, HIGH, 10, 0, "{}");
        takenOver(3, Abi.FLAG_OPTIMISTIC, 140);
        span(140, 170, HIGH_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldRankByThePriorityOfSegmentsNotOfThreads() throws IOException {
        ring.writeText(EventKind.TASK_OPEN, 6, 0, HIGH, HIGH, HIGH, 90, 0, "{\"gpu_priority\":5}");
        takenOver(HIGH, Abi.FLAG_OPTIMISTIC, 140);
        span(140, 170, HIGH_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldRankByThePriorityThatWasSetLast() throws IOException {
        ring.write(EventKind.PRIORITY, 7, 0, 0, HIGH, 0, HIGH, HIGH, 90, 5, 0);
        takenOver(HIGH, Abi.FLAG_OPTIMISTIC, 140);
        span(140, 170, HIGH_PID);
        assertEquals(1, judge().overlaps());
    }

    @Test
    void shouldExcuseNoBeginAheadUnderDeadlines() throws IOException {
        ring.writeText(EventKind.POLICY, 6, 0, 0, 0, 0, 0, 0, "policy edf");
        takenOver(HIGH, Abi.FLAG_OPTIMISTIC, 140);
        span(140, 170, HIGH_PID);
        assertEquals(1, judge("edf").overlaps());
    }

    @Test
    void shouldCountEventsThatTheJournalLacks() throws IOException {
        while (ring.write(EventKind.RELEASE, 6, 0, 0, HIGH, 0, HIGH, HIGH, 0, 0, 0)) {
            Thread.onSpinWait();
        }
        agent.drain();
        event(10, EventKind.RELEASE, HIGH);
        assertEquals(1, judge().journalGaps());
    }

    @Test
    void shouldCountBeginsByProcess() throws IOException {
        event(100, EventKind.BEGIN, HIGH);
        event(110, EventKind.BEGIN, HIGH);
        event(120, EventKind.BEGIN, LOW);
        final InvariantCheck.Finding finding = judge();
        assertEquals(2L, finding.begins().get(HIGH_PID));
        assertEquals(1L, finding.begins().get(LOW_PID));
    }
}

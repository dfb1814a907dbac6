/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.ipc.journal.EventKind;
import java.util.List;
import org.junit.jupiter.api.Test;

class ProcessRegistryTest {
    private static final int PID = 4711;
    private static final long START = 99;

    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE, true, 2);
    private final ProcessRegistry processes = rig.processes;

    private static Client client(final int id, final int pid, final long startTicks) {
        return new Client(id, pid, 0, 0, startTicks, "program", null, null, null);
    }

    private List<Long> kinds() {
        return rig.events.events.stream().filter(e -> e.kind() == EventKind.CONTEXT_KIND)
            .map(FakeJournal.Event::arg1).toList();
    }

    private static long code(final ContextKind kind) {
        return kind.ordinal();
    }

    private void takeAllNumbers() {
        for (int pid = 1; pid <= DispatchRig.CONTEXTS / 2; pid++) {
            processes.addUnmanaged(pid, 1, "p" + pid);
        }
    }

    @Test
    void shouldCountAProcessForWhichThereIsNoNumberAndControlItWhenThereIsOne() {
        takeAllNumbers();
        processes.addUnmanaged(99, 1, "one too many");
        processes.addUnmanaged(99, 1, "one too many");
        processes.addUnmanaged(100, 1, "the next");
        assertEquals(2, rig.count(Counter.CONTEXTS_UNNUMBERED), "once each");
        assertEquals(2, processes.uncontrolledCount());
        assertEquals(DispatchRig.CONTEXTS / 2, processes.count());
        processes.forgetUncontrolled(processes.uncontrolled().get(1));
        processes.forgetOrphan(processes.orphans().get(0));
        assertEquals(0, processes.uncontrolledCount());
        assertTrue(processes.orphans().stream().anyMatch(each -> each.pid == 99), "it is controlled from now on");
    }

    @Test
    void shouldRefuseToRegisterAProcessForWhichThereIsNoNumber() {
        assertTrue(processes.hasNumbersFor(99));
        takeAllNumbers();
        assertNull(processes.register(client(1, 99, 1)));
        assertEquals(1, rig.count(Counter.CONTEXTS_UNNUMBERED));
        assertFalse(processes.hasNumbersFor(99));
        assertTrue(processes.hasNumbersFor(2), "it has its numbers");
        assertSame(processes.orphans().get(1), processes.register(client(1, 2, 1)));
        processes.forgetOrphan(processes.orphans().get(0));
        assertTrue(processes.hasNumbersFor(99));
        assertEquals(99, processes.register(client(1, 99, 1)).pid);
    }

    @Test
    void shouldNotForgetWhoeverWaitsForANumberWhenItRegisters() {
        takeAllNumbers();
        processes.addUnmanaged(99, 1, "one too many");
        processes.forgetOrphan(processes.orphans().get(0));
        assertEquals(99, processes.register(client(1, 99, 1)).pid);
        assertEquals(0, processes.uncontrolledCount());
        assertEquals(DispatchRig.CONTEXTS / 2, processes.count());
    }

    @Test
    void shouldGiveAProcessOneContextOnEachGpu() {
        final ProcessEntry process = processes.register(client(1, PID, START));
        assertEquals(2, process.contexts.length);
        assertNotEquals(process.contexts[0], process.contexts[1]);
        assertEquals(List.of("attach " + process.contexts[0] + " pid " + PID, "registered " + process.contexts[0]
            + " true", "joined " + process.contexts[0]), rig.enforcers[0].calls);
        assertTrue(rig.scheduler.contextDesired(process.contexts[1]));
        assertEquals(List.of(EventKind.CONTEXT_OPEN, EventKind.CONTEXT_OPEN), rig.events.kinds());
    }

    @Test
    void shouldKnowAProcessOnceHoweverOftenItRegisters() {
        final ProcessEntry process = processes.register(client(1, PID, START));
        assertSame(process, processes.register(client(2, PID, START)));
        processes.addUnmanaged(PID, START, "found by the mechanism, too");
        assertEquals(1, processes.count());
        assertEquals(2, process.clients);
    }

    @Test
    void shouldTellAReusedPidFromTheProcessThatHadIt() {
        final ProcessEntry old = processes.register(client(1, PID, START));
        final ProcessEntry young = processes.register(client(2, PID, START + 1));
        assertEquals(2, processes.count());
        assertNotEquals(old.contexts[0], young.contexts[0]);
    }

    /** The disable of a dead process, named by its pid, would freeze the one that has the pid now. */
    @Test
    void shouldDisableNothingOfAProcessWhosePidWasGivenOutAgain() {
        final ProcessEntry dead = processes.register(client(1, PID, START));
        processes.register(client(2, PID, START + 1));
        assertEquals(List.of(code(ContextKind.PROTECTED), code(ContextKind.PROTECTED)), kinds());
        assertTrue(dead.isProtected);
        processes.unregister(dead, null, Removal.DIED);
        assertEquals(1, processes.count());
    }

    @Test
    void shouldForgetAnOrphanWhosePidWasGivenOutAgain() {
        processes.addUnmanaged(PID, START, "dead");
        final ProcessEntry young = processes.register(client(1, PID, START + 1));
        assertEquals(1, processes.count());
        assertFalse(processes.hasOrphans());
        assertTrue(rig.scheduler.contextDesired(young.contexts[0]));
    }

    @Test
    void shouldKeepAProcessThatHangsUpButLivesAsUnmanaged() {
        final ProcessEntry process = processes.register(client(1, PID, START));
        final int version = processes.version();
        processes.unregister(process, null, Removal.CLOSED);
        assertEquals(1, processes.count());
        assertEquals(version, processes.version());
        assertTrue(processes.hasOrphans());
        assertEquals(List.of(process), processes.orphans());
        assertEquals(List.of(code(ContextKind.UNMANAGED), code(ContextKind.UNMANAGED)), kinds());
        assertEquals("registered " + process.contexts[0] + " false",
            rig.enforcers[0].calls.get(rig.enforcers[0].calls.size() - 1));
        processes.register(client(2, PID, START));
        assertFalse(processes.hasOrphans());
        assertEquals(code(ContextKind.MANAGED), kinds().get(3));
    }

    @Test
    void shouldNotForgetAProcessThatIsStillRegisteredElsewhere() {
        final ProcessEntry process = processes.register(client(1, PID, START));
        processes.register(client(2, PID, START));
        processes.unregister(process, null, Removal.DIED);
        assertEquals(1, processes.count());
        assertFalse(processes.hasOrphans());
        processes.forgetOrphan(process);
        assertEquals(1, processes.count(), "it is no orphan");
    }

    @Test
    void shouldTellTheEnforcersOfEverySessionOfAProcess() {
        final ProcessEntry process = processes.register(client(1, PID, START));
        processes.register(client(2, PID, START));
        processes.unregister(process, null, Removal.CLOSED);
        processes.unregister(process, null, Removal.DIED);
        for (int gpu = 0; gpu < 2; gpu++) {
            final int context = process.contexts[gpu];
            assertEquals(List.of("joined " + context, "joined " + context, "left " + context, "left " + context,
                "detach " + context), rig.enforcers[gpu].calls.stream()
                .filter(call -> call.matches("(joined|left|detach) .*")).toList(), "a context is left before it goes");
        }
    }

    @Test
    void shouldForgetADeadProcessAndUseItsContextsAgain() {
        final ProcessEntry process = processes.register(client(1, PID, START));
        final int version = processes.version();
        rig.desired.set(0, process.contexts[0], false);
        rig.desired.publish(0, false, false);
        processes.unregister(process, null, Removal.DIED);
        assertEquals(0, processes.count());
        assertFalse(processes.hasOrphans());
        assertNotEquals(version, processes.version());
        assertEquals(List.of(), rig.enforcers[0].off(), "the next process with this id starts enabled");
        assertTrue(rig.enforcers[0].calls.contains("detach " + process.contexts[0]));
        assertTrue(rig.events.kinds().contains(EventKind.CONTEXT_CLOSE));
        assertEquals(process.contexts[0], processes.register(client(2, PID + 1, START)).contexts[0]);
    }

    @Test
    void shouldForgetAnOrphanThatTurnsOutToBeDead() {
        processes.addUnmanaged(PID, START, "stranger");
        assertTrue(processes.hasOrphans());
        processes.forgetOrphan(processes.orphans().get(0));
        assertEquals(0, processes.count());
        assertFalse(processes.hasOrphans());
    }

    @Test
    void shouldProtectByRuleUntilTheRuleIsGone() {
        processes.addUnmanaged(PID, START, "stranger");
        processes.protect(PID, START + 1, true);
        assertEquals(List.of(), kinds(), "a reused pid");
        processes.protect(PID, START, true);
        processes.protect(PID, START, true);
        assertEquals(List.of(code(ContextKind.PROTECTED), code(ContextKind.PROTECTED)), kinds(), "once, on two GPUs");
        processes.register(client(1, PID, START));
        assertEquals(code(ContextKind.PROTECTED), kinds().get(2), "also while it is registered");
        processes.protect(PID, START, false);
        assertEquals(code(ContextKind.MANAGED), kinds().get(4));
    }

    @Test
    void shouldShowProcessesToTheFollowerOfControlGroups() {
        final ProcessEntry process = processes.register(client(1, PID, START));
        processes.addUnmanaged(PID + 1, START, "stranger");
        assertEquals(2, processes.views().size());
        assertEquals(PID, processes.views().get(0).pid());
        assertTrue(processes.views().get(0).registered());
        assertEquals(List.of(process.contexts[0], process.contexts[1]), processes.views().get(0).contexts());
        assertFalse(processes.views().get(1).registered());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.mechanisms.ContextRef;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class DispatcherJournalTest {
    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final TaskEntry task = rig.task(3, 30);
    private final ContextRef context = new ContextRef(5, 0, 205, 9, "other");

    /** One call of each method, by its name. */
    private Map<String, Consumer<DispatcherJournal>> all() {
        final Map<String, Consumer<DispatcherJournal>> calls = new LinkedHashMap<>();
        calls.put("started", j -> j.started("{}"));
        calls.put("stopped", DispatcherJournal::stopped);
        calls.put("timer", DispatcherJournal::timer);
        calls.put("stalled", j -> j.stalled(1));
        calls.put("collected", j -> j.collected(1, 2));
        calls.put("clocks", j -> j.clocks(1, 2, "{}"));
        calls.put("clientOpened", j -> j.clientOpened(task.client));
        calls.put("clientClosed", j -> j.clientClosed(task.client));
        calls.put("clientPoisoned", j -> j.clientPoisoned(task.client, 1, "why"));
        calls.put("contextOpened", j -> j.contextOpened(context, ContextKind.MANAGED, "other"));
        calls.put("contextKind", j -> j.contextKind(context, ContextKind.MANAGED));
        calls.put("contextClosed", j -> j.contextClosed(context));
        calls.put("taskOpened", j -> j.taskOpened(task, "{}"));
        calls.put("taskClosed", j -> j.taskClosed(task));
        calls.put("release", j -> j.release(task, 1, 0, 0));
        calls.put("hint", j -> j.hint(task, 1));
        calls.put("begin", j -> j.begin(task, 0, 1, 2, 3, 4));
        calls.put("end", j -> j.end(task, 0, 1, 2, 3));
        calls.put("cancel", j -> j.cancel(task, 0, 1, 2));
        calls.put("jobEnd", j -> j.jobEnd(task, 1, 2));
        calls.put("jobCancel", j -> j.jobCancel(task, 1));
        calls.put("decided", j -> j.decided(task, 0, 1));
        calls.put("granted", j -> j.granted(task, 1, 2));
        calls.put("resumed", j -> j.resumed(task, 0, 1));
        calls.put("preempted", j -> j.preempted(task, 0, 1, 2));
        calls.put("missed", j -> j.missed(task, 1, 2));
        calls.put("overran", j -> j.overran(task, 1, 2));
        calls.put("share", j -> j.share(1, 50));
        calls.put("shareSpent", j -> j.shareSpent(task, true));
        calls.put("boundBroken", j -> j.boundBroken(task, 2, 1));
        calls.put("constantBroken", j -> j.constantBroken(0, null, 2, 1));
        calls.put("forcedEnd", j -> j.forcedEnd(task, 1));
        calls.put("enforced", j -> j.enforced(task, 0, 1, 2));
        calls.put("applied", j -> j.applied(0, 5, true, 1, 2));
        calls.put("watchdogReleased", j -> j.watchdogReleased(0, 1, 2));
        calls.put("mechanismFailed", j -> j.mechanismFailed(0, "how"));
        calls.put("failed", j -> j.failed(new IllegalStateException("how")));
        calls.put("policy", j -> j.policy("fp"));
        calls.put("settings", j -> j.settings("{}"));
        calls.put("sharing", j -> j.sharing(Sharing.TURNS, 1));
        calls.put("keepsReady", DispatcherJournal::keepsReady);
        calls.put("overrunAction", j -> j.overrunAction(task, OverrunAction.NOTIFY));
        calls.put("weight", j -> j.weight(1, 100));
        calls.put("cap", j -> j.cap(1, 2, 3));
        calls.put("anticipate", j -> j.anticipate(Anticipate.DECLARED, 1));
        calls.put("anticipateTask", j -> j.anticipateTask(task, Anticipate.OFF));
        calls.put("anticipationCost", j -> j.anticipationCost(0, 1, 2));
        calls.put("anticipation", j -> j.anticipation(Abi.ANTICIPATION_DUE, 0, null, 0, 0, 0));
        calls.put("contextGroup", j -> j.contextGroup(1, 2));
        calls.put("priority", j -> j.priority(task, 1, 2));
        calls.put("prioritySet", j -> j.prioritySet(task, 1, 2, "what"));
        return calls;
    }

    @Test
    void shouldCountEveryEventThatFindsNoRoom() {
        rig.events.full = true;
        long drops = 0;
        for (final Map.Entry<String, Consumer<DispatcherJournal>> call : all().entrySet()) {
            call.getValue().accept(rig.journal);
            assertEquals(++drops, rig.count(Counter.JOURNAL_DROPS), call.getKey());
        }
    }

    @Test
    void shouldCountNoneThatIsWritten() {
        int written = 0;
        for (final Map.Entry<String, Consumer<DispatcherJournal>> call : all().entrySet()) {
            call.getValue().accept(rig.journal);
            assertEquals(++written, rig.events.events.size(), call.getKey());
        }
        assertEquals(0, rig.count(Counter.JOURNAL_DROPS));
    }

    /** Or the two tests above would not see a new one. */
    @Test
    void shouldHaveNoMethodThatIsNotTested() {
        final TreeSet<String> methods = new TreeSet<>();
        Arrays.stream(DispatcherJournal.class.getDeclaredMethods())
            .filter(m -> !Modifier.isPrivate(m.getModifiers()) && !m.isSynthetic()).map(Method::getName)
            .forEach(methods::add);
        methods.remove("written");
        assertEquals(methods, new TreeSet<>(all().keySet()));
    }

    @Test
    void shouldDateEventsByTheCycleUnlessSomethingLaterLedToThem() {
        rig.clock.set(100);
        rig.journal.stopped();
        assertEquals(100, rig.events.last().timeNs());
        rig.journal.applied(0, 5, false, 40, 90);
        assertEquals(100, rig.events.last().timeNs());
        rig.journal.applied(0, 5, true, 90, 110);
        assertEquals(110, rig.events.last().timeNs(), "the device finished within the cycle");
        assertEquals(EventKind.DISABLE, rig.events.last().kind());
        assertEquals(90, rig.events.last().arg0());
        assertEquals(20, rig.events.last().arg1(), "what it cost");
        assertEquals(100, rig.events.last().arg2(), "when the core was told");
        rig.journal.enforced(task, 0, 1, 120);
        assertEquals(120, rig.events.last().timeNs());
        rig.journal.enforced(task, 0, 1, 80);
        assertEquals(100, rig.events.last().timeNs(), "never before what was journaled last");
    }

    @Test
    void shouldPutEachArgumentWhereReadersLookForIt() {
        rig.journal.begin(task, Abi.FLAG_OPTIMISTIC, 7, 11, 12, 13);
        assertEquals(new FakeJournal.Event(EventKind.BEGIN, 1, 0, Abi.FLAG_OPTIMISTIC, 3, 7, 3, 3, 11, 12, 13, ""),
            rig.events.last());
        rig.journal.preempted(task, 0, 7, 4);
        assertEquals(new FakeJournal.Event(EventKind.PREEMPT, 1, 0, 0, 3, 7, 3, 3, 4, 0, 0, ""), rig.events.last());
        rig.journal.contextKind(context, ContextKind.PROTECTED);
        assertEquals(new FakeJournal.Event(EventKind.CONTEXT_KIND, 1, 0, 0, 0, 0, 5, 0, 205,
            ContextKind.PROTECTED.ordinal(), 0, ""), rig.events.last());
        rig.journal.watchdogReleased(0, 2, 44);
        assertEquals(new FakeJournal.Event(EventKind.WATCHDOG, 1, 0, 0, 0, 0, 0, 0, 2, 44, 0, ""), rig.events.last());
        rig.journal.constantBroken(0, null, 31, 30);
        assertEquals(new FakeJournal.Event(EventKind.BOUND, 1, 0, 0, 0, 0, 0, 0, 31, 30, 1, ""), rig.events.last(),
            "a call");
        rig.journal.constantBroken(0, task, 31, 30);
        assertEquals(new FakeJournal.Event(EventKind.BOUND, 1, 0, 0, 3, 0, 3, 3, 31, 30, 2, ""), rig.events.last(),
            "a wait");
        rig.journal.cap(6, 0, 0);
        assertEquals(new FakeJournal.Event(EventKind.POLICY, 1, 0, 0, 0, 0, 0, 0, 6, 0, 0, "group 6 no cap"),
            rig.events.last());
        rig.journal.anticipation(Abi.ANTICIPATION_ACTED, 0, task, 21, 22, 1);
        assertEquals(new FakeJournal.Event(EventKind.ANTICIPATE, 1, 0, Abi.ANTICIPATION_ACTED, 3, 0, 3, 3, 21, 22, 1,
            ""), rig.events.last());
        task.optimistic = true;
        rig.journal.granted(task, 7, rig.clock.nowNs());
        assertEquals(Abi.FLAG_OPTIMISTIC, rig.events.last().flags());
    }

    @Test
    void shouldTellWhetherAnythingWasWrittenSinceALook() {
        final long before = rig.journal.written();
        rig.journal.keepsReady();
        assertEquals(before, rig.journal.written(), "text tells a replay nothing of the time");
        rig.journal.anticipation(Abi.ANTICIPATION_DUE, 0, null, 0, 0, 0);
        assertEquals(before, rig.journal.written(), "nor do expected begins");
        rig.journal.decided(task, 0, 1);
        assertTrue(rig.journal.written() > before);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.mechanisms.Capabilities;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The better of two bounds, and the changes between them ({@code analysis/docs/turns.md}, theorems 16 and 17). */
class TurnAdmissionTest {
    private static final long MS = 1_000_000L;
    private static final Capabilities LEVEL_3 = new Capabilities(Capabilities.INTERRUPT, 300_000, 0, 200_000, 0, 64,
        false, "process");
    private static final String TURNS = ", turns: {slice: 100us, contexts: 1}";
    private static final String CAMERA = "  - {name: camera, cpu: 1, period: 100ms, deadline: %s, priority: 70, "
        + "segments: [{cpu: 2ms}, {gpu: {host: 1ms, device: 4ms}}]}\n";
    private static final String PLAN = "  - {name: plan, cpu: 2, period: 100ms, priority: 60, segments: [{cpu: 2ms}, "
        + "{gpu: {host: 1ms, device: 4ms}}]}\n";

    @TempDir
    private Path directory;
    private long nowNs = 5;
    private final List<String> told = new ArrayList<>();
    private boolean inForce = true;
    private Map<String, Long> slices = Map.of();
    private Policy policy = FixedPriority.INSTANCE;

    private ProvenAdmission admission(final String epsilon, final String turns, final String tasks)
        throws IOException {
        return admission(epsilon, turns, tasks, AdmissionMode.ENFORCE, "");
    }

    private ProvenAdmission admission(final String epsilon, final String turns, final String tasks,
        final AdmissionMode mode, final String noTurns) throws IOException {
        final Path file = Files.writeString(directory.resolve("set.yaml"), "version: 1\nid: s\nplatform: {cpus: 3, "
            + "epsilon: " + epsilon + ", theta: 200us, optimistic: true, clock: 1, newcomers: none" + turns
            + "}\nmode: suspend\ntasks:\n" + tasks);
        final ProvenAdmission admission = new ProvenAdmission(AdmissionSettings.of(mode,
            AdmissionSettings.declared(file), null, CoreOrder.FP, 1_000 * MS), policy, LEVEL_3, 1,
            directory.resolve("admitted.json"), () -> nowNs, noTurns);
        if (mode == AdmissionMode.ENFORCE) {
            admission.control(new TurnsControl() {
                @Override
                public void take(final boolean taken, final Map<String, Long> slicesNs, final String proof) {
                    told.add(proof);
                    slices = slicesNs;
                }

                @Override
                public boolean isInForce() {
                    return inForce;
                }
            });
        }
        return admission;
    }

    private static TaskOpen open(final int client, final String name, final int priority, final long deadlineMs,
        final long budgetMs) {
        return new TaskOpen(1, client, name, priority, priority, 0, true, 100 * MS, deadlineMs * MS, budgetMs * MS);
    }

    private static String refuse(final ProvenAdmission admission, final TaskOpen request) {
        final int id = request.clientId();
        final String refused = admission.refuse(request, new Client(id, 1000 + id, 0, 0, 7, "app", null, null, null));
        if (refused == null) {
            admission.opened(request, id);
        }
        return refused;
    }

    private static String begins(final ProvenAdmission admission) {
        final ObjectNode status = admission.status(true, 0);
        assertTrue(status.path("proven").asBoolean(), status::toString);
        return status.path("begins").asText();
    }

    @Test
    void shouldTakeTurnsWhereCallsProveNothingAndSayByWhatItIsProven() throws IOException {
        final ProvenAdmission admission = admission("55ms", TURNS, CAMERA.formatted("50ms"));
        assertEquals(List.of(), told, "nothing is open");
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        final String by = "turns-suspend (epsilon 55ms, theta 200us, turns of 100us with 1 met)";
        assertEquals(List.of("admission by turns: " + by), told);
        final ObjectNode status = admission.status(true, 0);
        assertEquals("turns", begins(admission));
        assertEquals("turns-suspend", status.path("analysis").asText());
        assertEquals(by, status.path("constants").asText());
        assertEquals("not proven by calls: the bound of \"camera\" is above the deadline",
            status.path("other").asText());
        assertTrue(status.path("claim").asText().startsWith("sound for this scheduler with policy fp"),
            status::toString);
        final List<String> ids = new ArrayList<>();
        status.path("result").findValues("hypotheses").forEach(all -> all.forEach(one -> ids.add(one.path("id")
            .asText())));
        assertTrue(ids.containsAll(List.of("U1", "U2", "U3", "U4", "U5", "U6", "N1")), ids::toString);
    }

    @Test
    void shouldGoByCallsWhereTurnsProveNothingOrNobodyStatesThem() throws IOException {
        final ProvenAdmission coarse = admission("1ms", ", turns: {slice: 60ms, contexts: 3}",
            CAMERA.formatted("50ms"));
        assertNull(refuse(coarse, open(1, "camera", 70, 50, 0)));
        assertEquals("calls", begins(coarse));
        assertEquals("not proven by turns: the bound of \"camera\" is above the deadline",
            coarse.status(true, 0).path("other").asText());
        assertEquals(List.of(), told, "that is how it starts");
        final ProvenAdmission silent = admission("1ms", "", CAMERA.formatted("50ms"));
        assertNull(refuse(silent, open(1, "camera", 70, 50, 0)));
        assertEquals("calls", begins(silent));
        assertEquals("", silent.status(true, 0).path("other").asText());
        final ProvenAdmission warns = admission("1ms", TURNS, CAMERA.formatted("50ms"), AdmissionMode.WARN, "");
        assertNull(refuse(warns, open(1, "camera", 70, 50, 0)));
        assertEquals("calls", begins(warns));
    }

    @Test
    void shouldTakeTurnsWhereBothHoldUnlessTheFileAwaitsATaskThatNeedsCalls() throws IOException {
        final ProvenAdmission both = admission("1ms", TURNS, CAMERA.formatted("50ms"));
        assertNull(refuse(both, open(1, "camera", 70, 50, 0)));
        assertEquals("turns", begins(both));
        assertEquals("proven by calls, too: gcaps-window-suspend (epsilon 1ms, theta 200us)",
            both.status(true, 0).path("other").asText());
        final ProvenAdmission awaits = admission("1ms", TURNS, CAMERA.formatted("50ms") + PLAN);
        assertNull(refuse(awaits, open(1, "camera", 70, 50, 0)));
        assertEquals("calls", begins(awaits));
        assertNull(refuse(awaits, open(2, "plan", 60, 100, 0)));
        assertEquals("calls", begins(awaits));
    }

    @Test
    void shouldRefuseWithWhatBothBoundsSay() throws IOException {
        final ProvenAdmission admission = admission("55ms", TURNS, CAMERA.formatted("8ms"));
        final String refused = refuse(admission, open(1, "camera", 70, 8, 0));
        assertTrue(refused.startsWith("task \"camera\" can miss: bound over 100ms, deadline 8ms (gcaps-window-suspend)")
            && refused.contains("; by turns: task \"camera\" can miss: bound ")
            && refused.contains("deadline 8ms (turns-suspend); fits with") && refused.lines().count() == 1, refused);
        assertEquals(List.of(), told);
    }

    /** Whatever hypothesis fails: by calls, or not at all. */
    @Test
    void shouldNotTakeTurnsWhereAHypothesisFails() throws IOException {
        final String camera = CAMERA.formatted("50ms");
        final TaskOpen plain = open(1, "camera", 70, 50, 0);
        refusedByTurns(admission("55ms", TURNS, camera, AdmissionMode.ENFORCE, "with 2 GPUs no turns"), plain,
            "with 2 GPUs no turns");
        refusedByTurns(admission("55ms", TURNS, camera), new TaskOpen(1, 1, "camera", 70, 70, 0, false, 100 * MS,
            50 * MS, 0), "GPUSEG_TASK_ALWAYS_WAIT");
        refusedByTurns(admission("55ms", TURNS, camera), new TaskOpen(1, 1, "camera", 70, 70, 0, true, 100 * MS,
            50 * MS, 0, OverrunAction.NOTIFY, 0, 0, 0, 0, 0, 50, 0), "may use 50% of the GPU");
        refusedByTurns(admission("55ms", TURNS, camera), open(1, "camera", 70, 50, 6),
            "the budget of \"camera\" is 6ms");
        refusedByTurns(admission("55ms", TURNS, camera), new TaskOpen(1, 1, "camera", 70, 70, 0, true, 100 * MS,
            50 * MS, 0, OverrunAction.NOTIFY, 6 * MS, 0, 0, 0), "longest window of 6ms");
        refusedByTurns(admission("55ms", ", turns: {slice: 50us, contexts: 1}", camera), plain, "U3");
        final ProvenAdmission one = admission("55ms", TURNS, camera + PLAN);
        assertNull(refuse(one, plain));
        refusedByTurns(one, open(2, "plan", 60, 100, 0), "U5");
        refusedByTurns(one, open(3, "other", 50, 100, 5), "task \"other\" is not declared");
        assertEquals("turns", begins(one), "what was open keeps its proof");
    }

    private static void refusedByTurns(final ProvenAdmission admission, final TaskOpen request, final String why) {
        final String refused = refuse(admission, request);
        assertTrue(refused != null && refused.contains("; by turns: ") && refused.contains(why), "" + refused);
    }

    /** A job that began by turns pays for both, so its bound is above either; a while later it is forgotten. */
    @Test
    void shouldCountTheJobInProgressWhereBeginsChangeToCalls() throws IOException {
        final ProvenAdmission admission = admission("1ms", TURNS, CAMERA.formatted("50ms"));
        final PromisedBounds bounds = new PromisedBounds(8);
        admission.promise(bounds);
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        assertEquals("turns", begins(admission));
        final long byTurns = boundOf(admission, "camera");
        assertNull(refuse(admission, open(2, "plan", 60, 100, 5)));
        assertEquals("calls", begins(admission));
        assertTrue(told.get(1).startsWith("admission by calls: gcaps-window-suspend (epsilon 1ms"), told::toString);
        final long crossing = boundOf(admission, "camera");
        admission.closed(2, "plan");
        assertEquals("calls", begins(admission), "a real-time task is open");
        nowNs += 200 * MS;
        assertNull(refuse(admission, open(2, "plan", 60, 100, 5)));
        final long byCalls = boundOf(admission, "camera");
        // one wait: its own switch, a turn of best effort and one more, each with a switch; two calls for best effort
        assertEquals(byCalls + 1_200_000, crossing);
        assertTrue(crossing > byTurns, byTurns + " " + crossing);
        admission.closed(2, "plan");
        admission.closed(1, "camera");
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        assertEquals("turns", begins(admission), "none was open");
        assertEquals(3, told.size(), told::toString);
    }

    /** What theorem 16 counts for waits is what a job in progress pays, also where it was measured. */
    @Test
    void shouldCountTheMeasuredWaitOfTheJobInProgress() throws IOException {
        final ProvenAdmission admission = admission("1ms", ", turns: {slice: 100us, contexts: 1, wait: 7ms, samples: "
            + "1000}", CAMERA.formatted("50ms"));
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        assertEquals("turns", begins(admission));
        assertEquals("admission by turns: turns-suspend (epsilon 1ms, theta 200us, turns of 100us with 1 met, waits of "
            + "at most 7ms measured)", told.get(0));
        assertNull(refuse(admission, open(2, "plan", 60, 100, 5)));
        assertEquals("calls", begins(admission));
        final long crossing = boundOf(admission, "camera");
        admission.closed(2, "plan");
        nowNs += 200 * MS;
        assertNull(refuse(admission, open(2, "plan", 60, 100, 5)));
        // one wait, and two calls for best effort
        assertEquals(boundOf(admission, "camera") + 7 * MS + 2 * 200_000, crossing);
    }

    private static long boundOf(final ProvenAdmission admission, final String name) {
        for (final var task : admission.status(true, 0).path("result").findValues("tasks").get(0)) {
            if (task.path("name").asText().equals(name)) {
                return task.path("wcrt_ns").asLong();
            }
        }
        throw new AssertionError(name);
    }

    @Test
    void shouldRefuseAChangeThatAJobInProgressDoesNotBear() throws IOException {
        final ProvenAdmission admission = admission("1ms", ", turns: {slice: 100us, contexts: 3}",
            CAMERA.formatted("11ms"));
        assertNull(refuse(admission, open(1, "camera", 70, 11, 0)));
        assertEquals("turns", begins(admission));
        final String refused = refuse(admission, open(2, "plan", 60, 100, 5));
        assertTrue(refused != null && refused.contains("makes \"camera\" miss")
            && refused.contains("counted is a job of \"camera\" that began by turns: open it after this task, not "
            + "before"), "" + refused);
        assertEquals("turns", begins(admission));
        admission.closed(1, "camera");
        assertNull(refuse(admission, open(2, "plan", 60, 100, 5)));
        assertNull(refuse(admission, open(1, "camera", 70, 11, 0)), "in the other order");
        assertEquals("calls", begins(admission));
    }

    /** Its window has waited for turns, and now for calls: both use up the budget. */
    @Test
    void shouldRefuseAChangeThatUsesUpTheBudgetOfAJobInProgress() throws IOException {
        final ProvenAdmission admission = admission("1ms", TURNS, CAMERA.formatted("50ms"));
        assertNull(refuse(admission, open(1, "camera", 70, 50, 9)));
        assertEquals("turns", begins(admission));
        final String refused = refuse(admission, open(2, "plan", 60, 100, 5));
        assertTrue(refused != null && refused.contains("the budget of \"camera\" is 9ms")
            && refused.contains("raise the budget to 10.2ms"), "" + refused);
        admission.closed(1, "camera");
        assertNull(refuse(admission, open(2, "plan", 60, 100, 5)));
        assertNull(refuse(admission, open(1, "camera", 70, 50, 9)), "by calls from its start");
    }

    @Test
    void shouldRefuseAPolicyToWhichNoChangeIsProven() throws IOException {
        final ProvenAdmission admission = admission("1ms", TURNS, CAMERA.formatted("50ms"));
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        final PolicySettings edf = new PolicySettings(EarliestDeadlineFirst.INSTANCE, null, 0, List.of(), List.of(),
            "{}");
        final String refused = admission.refuseSettings(edf);
        assertTrue(refused != null && refused.contains("close it first"), "" + refused);
        admission.closed(1, "camera");
        assertNull(admission.refuseSettings(edf));
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        assertEquals("calls", begins(admission));
    }

    @Test
    void shouldGoByCallsOrClaimNothingWhereTheSlicesAreNotSetInTime() throws IOException {
        inForce = false;
        final ProvenAdmission both = admission("1ms", TURNS, CAMERA.formatted("50ms"));
        assertNull(refuse(both, open(1, "camera", 70, 50, 0)));
        assertEquals("calls", begins(both));
        assertEquals(2, told.size());
        final ProvenAdmission only = admission("55ms", TURNS, CAMERA.formatted("50ms"));
        assertNull(refuse(only, open(1, "camera", 70, 50, 0)));
        assertFalse(only.status(true, 0).path("proven").asBoolean());
        only.closed(1, "camera");
        inForce = true;
        assertNull(refuse(only, open(1, "camera", 70, 50, 0)));
        assertEquals("turns", begins(only));
    }

    private static final String TOGETHER = TURNS.replace("1}", "1, together: true}");

    /** Bounds and slices are those of the whole file, so nothing changes with what is open. */
    @Test
    void shouldProveSeveralTasksThatShareTheGpuBySlices() throws IOException {
        policy = new HighestClassFirst(99);
        final ProvenAdmission admission = admission("55ms", TOGETHER, CAMERA.formatted("50ms") + PLAN);
        assertNull(refuse(admission, open(2, "plan", 60, 100, 0)), "the lower one first");
        assertEquals("turns", begins(admission));
        final long alone = boundOf(admission, "plan");
        assertEquals(Map.of("camera", 1_000 * MS, "plan", 1_000 * MS), slices);
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        assertEquals("turns", begins(admission));
        assertEquals(alone, boundOf(admission, "plan"));
        assertEquals(1, told.size(), told::toString);
        final String claim = admission.status(true, 0).path("claim").asText();
        assertTrue(claim.startsWith("sound for this scheduler with policy classes of class_width 99"), claim);
        assertTrue(refuse(admission, open(3, "other", 50, 100, 5)).contains("task \"other\" is not declared"));
        assertTrue(admission.refusePriority(2, "plan", 80, 80).contains("has GPU priority 80, and the slices are those "
            + "of its declared 60 (turns: together)"));
        assertTrue(admission.refuseSettings(new PolicySettings(FixedPriority.INSTANCE, null, 0, List.of(), List.of(),
            "{}")).contains("policy fp disables \"plan\" for \"camera\"; use policy classes with class_width 99"));
        admission.closed(2, "plan");
        assertEquals("turns", begins(admission), "the other goes on as before");
        admission.closed(1, "camera");
        assertNull(refuse(admission, open(1, "camera", 70, 50, 0)));
        assertEquals(3, told.size(), "to calls and back, while none was open");
    }

    @Test
    void shouldNotProveTasksTogetherThatThePolicyKeepsApartOrTurnsDoNotAccept() throws IOException {
        refusedByTurns(admission("55ms", TOGETHER, CAMERA.formatted("50ms") + PLAN), open(1, "camera", 70, 50, 0),
            "policy fp disables \"plan\" for \"camera\"");
        policy = new HighestClassFirst(65);
        refusedByTurns(admission("55ms", TOGETHER, CAMERA.formatted("50ms") + PLAN), open(1, "camera", 70, 50, 0),
            "policy classes disables \"plan\" for \"camera\"");
        policy = new HighestClassFirst(99);
        refusedByTurns(admission("55ms", TOGETHER, CAMERA.formatted("8ms") + PLAN), open(2, "plan", 60, 100, 0),
            "makes \"camera\" miss: bound 12.4ms, deadline 8ms (turns-suspend); no change of this task alone helps: "
            + "close another one; counted is all that the file declares (turns: together)");
        final ProvenAdmission one = admission("55ms", TURNS, CAMERA.formatted("50ms") + PLAN);
        assertNull(refuse(one, open(2, "plan", 60, 100, 0)), "alone");
        refusedByTurns(one, open(1, "camera", 70, 50, 0), "are in one class of GPU 0 and run together");
    }

    @Test
    void shouldKeepAPlaceThatOnlyTurnsProveOverARestart() throws IOException {
        assertNull(refuse(admission("55ms", TURNS, CAMERA.formatted("50ms")), open(1, "camera", 70, 50, 0)));
        told.clear();
        final ProvenAdmission next = admission("55ms", TURNS, CAMERA.formatted("50ms"));
        assertEquals(1, told.size(), "before the task is there");
        assertEquals("turns", begins(next));
        assertTrue(next.status(true, 0).path("tasks").path(0).path("kept").asBoolean());
        assertNull(refuse(next, open(1, "camera", 70, 50, 0)));
        assertEquals("turns", begins(next));
    }
}

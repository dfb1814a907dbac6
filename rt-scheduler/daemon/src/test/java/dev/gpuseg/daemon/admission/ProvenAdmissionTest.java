/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.analysis.rta.TimePartitioned;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.TimePartitions;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ProvenAdmissionTest {
    private static final long MS = 1_000_000L;
    private static final long GRACE_NS = 1_000 * MS;
    private static final Capabilities LEVEL_3 = capabilities(Capabilities.INTERRUPT);

    @TempDir
    private Path directory;
    private long nowNs = 5;

    private static Capabilities capabilities(final int level) {
        return new Capabilities(level, 300_000, 0, 200_000, 0, 64, false, "process");
    }

    private AdmissionSettings settings(final String tasks) throws IOException {
        final Path file = Files.writeString(directory.resolve("set.yaml"), "version: 1\nid: s\n"
            + "platform: {cpus: 2, epsilon: 1ms}\nmode: suspend\ntasks:\n" + tasks);
        return AdmissionSettings.of(AdmissionMode.ENFORCE, AdmissionSettings.declared(file), null,
            CoreOrder.FP, GRACE_NS);
    }

    private static String task(final String name, final int cpu, final int priority, final int deviceMs) {
        return "  - {name: " + name + ", cpu: " + cpu + ", period: 100ms, priority: " + priority
            + ", segments: [{cpu: 2ms}, {gpu: {host: 1ms, device: " + deviceMs + "ms}}]}\n";
    }

    private ProvenAdmission admission(final AdmissionSettings settings) {
        return new ProvenAdmission(settings, FixedPriority.INSTANCE, LEVEL_3, 1, directory.resolve("admitted.json"),
            () -> nowNs);
    }

    private static TaskOpen open(final int client, final String name, final int priority, final long budgetMs) {
        return new TaskOpen(1, client, name, priority, priority, 0, true, 100 * MS, 100 * MS, budgetMs * MS);
    }

    private static Client client(final int id, final int uid) {
        return new Client(id, 1000 + id, uid, uid, 7, "app", null, null, null);
    }

    private static SoundAnalysis sound(final String policy, final int level, final WaitMode mode,
        final CoreOrder cores) {
        return sound(PolicyCatalog.builtIn().create(policy), level, mode, cores);
    }

    private static SoundAnalysis sound(final Policy policy, final int level, final WaitMode mode,
        final CoreOrder cores) {
        return SoundAnalysis.of(policy, level, mode, cores, MechanismCatalog.interrupting());
    }

    @Test
    void shouldChooseASoundAnalysisOrSayWhyThereIsNone() {
        for (final WaitMode mode : WaitMode.values()) {
            assertEquals("gcaps-window-" + mode.word(),
                sound("fp", 3, mode, CoreOrder.FP).analysis().name());
            assertEquals("gate-" + mode.word(), sound("fp", 1, mode, CoreOrder.FP).analysis().name());
        }
        assertEquals("edf-edf-busy", sound("edf", 3, WaitMode.BUSY, CoreOrder.EDF).analysis().name());
        for (final String policy : new String[] {"fp", "edf"}) {
            assertEquals("SCHED_DEADLINE postpones the deadline of a thread that wakes, so cores by deadline have no "
                + "sound analysis for threads that suspend; use core-order: fp",
                sound(policy, 3, WaitMode.SUSPEND, CoreOrder.EDF).reason());
        }
        assertEquals("edf-fp-suspend", sound("edf", 3, WaitMode.SUSPEND, CoreOrder.FP).analysis().name());
        assertTrue(sound("edf", 3, WaitMode.BUSY, CoreOrder.FP).reason().contains("deadlock"));
        assertTrue(sound("edf", 1, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("gate"));
        assertTrue(sound("rr", 3, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("rr"));
        assertTrue(sound("fp", 2, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("level 2"));
        assertTrue(sound("fp", 3, WaitMode.SUSPEND, CoreOrder.EDF).reason().contains("core-order: fp"));
        for (final String policy : new String[] {"fp", "edf"}) {
            for (final CoreOrder cores : CoreOrder.values()) {
                for (final WaitMode mode : WaitMode.values()) {
                    final SoundAnalysis chosen = sound(policy, 3, mode, cores);
                    assertTrue(!chosen.exists() || chosen.analysis().claim() == Analysis.Claim.SOUND);
                }
            }
        }
    }

    /** Two updates follow a begin that does not wait, and control stops the host part: both use up the budget. */
    @Test
    void shouldRefuseABudgetThatAJobWithinItsTimesCanUseUp() throws IOException {
        final AdmissionSettings settings = settings("  - {name: control, cpu: 1, period: 100ms, priority: 80, "
            + "segments: [{cpu: 10ms}]}\n" + task("camera", 1, 70, 4));
        final ProvenAdmission admission = admission(settings);
        final TaskOpen five = open(1, "camera", 70, 5).with(70, 70, OverrunAction.DEMOTE);
        final String refused = admission.refuse(five, client(1, 0));
        assertTrue(refused.contains("the budget of \"camera\" is 5ms, and a job within its declared times may use "
            + "17ms of it (window 5ms") && refused.contains("raise the budget to 17ms"), refused);
        assertNull(admission.refuse(open(1, "camera", 70, 17).with(70, 70, OverrunAction.DEMOTE), client(1, 0)));
        admission.closed(1, "camera");
        assertNull(admission.refuse(open(1, "camera", 70, 5).with(70, 70, OverrunAction.NOTIFY), client(1, 0)),
            "no action follows");
    }

    /** Of a set that was not proven some jobs go on, and delay those of a later set that is. */
    @Test
    void shouldPromiseBoundsOfProvenSetsOnlyUntilNoTaskIsOpen() throws IOException {
        final AdmissionSettings enforce = settings(task("camera", 1, 70, 4) + task("lidar", 2, 60, 5));
        final ProvenAdmission admission = admission(new AdmissionSettings(AdmissionMode.WARN, enforce.declared(),
            enforce.platform(), CoreOrder.FP, GRACE_NS));
        final PromisedBounds bounds = new PromisedBounds(9);
        admission.promise(bounds);
        opened(admission, open(1, "lidar", 60, 0), 1);
        final long alone = bounds.of(1);
        assertTrue(alone > 0, "its bound");
        opened(admission, open(2, "camera", 70, 0), 2);
        assertTrue(bounds.of(1) > alone && bounds.of(2) > 0, "camera precedes it");
        final long both = bounds.of(1);
        admission.closed(2, "camera");
        assertEquals(both, bounds.of(1), "camera has delayed its job in progress");
        assertEquals(0, bounds.of(2));
        opened(admission, open(3, "unknown", 50, 0), 3);
        assertEquals(0, bounds.of(1), "nothing is proven");
        admission.closed(3, "unknown");
        assertEquals(0, bounds.of(1), "jobs of then go on");
        admission.closed(1, "lidar");
        opened(admission, open(1, "lidar", 60, 0), 4);
        assertEquals(alone, bounds.of(4));
    }

    private static void opened(final ProvenAdmission admission, final TaskOpen request, final int id) {
        assertNull(admission.refuse(request, client(request.clientId(), 0)));
        admission.opened(request, id);
    }

    @Test
    void shouldRefuseSlicesWhoseCallsNoConstantContains() throws IOException {
        final PolicySettings slices = new PolicySettings(null, Sharing.TIMESLICES, 0, List.of(), List.of(), "");
        final String refused = admission(settings(task("camera", 1, 70, 4))).refuseSettings(slices);
        assertTrue(refused.contains("sharing: timeslices") && refused.contains("use sharing: turns"), refused);
        final AdmissionSettings enforce = settings(task("camera", 1, 70, 4));
        assertNull(admission(new AdmissionSettings(AdmissionMode.WARN, enforce.declared(), enforce.platform(),
            CoreOrder.FP, GRACE_NS)).refuseSettings(slices));
    }

    @Test
    void shouldSayWhatIsBelievedOfATaskThatIsKnownByItsBudget() throws IOException {
        final ProvenAdmission admission = admission(settings(task("camera", 1, 70, 4)));
        assertNull(admission.refuse(open(2, "guest", 20, 5).with(20, 20, OverrunAction.DEMOTE), client(2, 0)));
        final String claim = admission.status(true, 0).path("claim").asText();
        assertTrue(claim.contains("of \"guest\" also if each job begins one segment, whose work on the core, with or "
            + "without the GPU, is at most its budget"), claim);
    }

    @Test
    void shouldRefuseWhatDiffersFromTheFile() throws IOException {
        final ProvenAdmission admission = admission(settings(task("camera", 1, 70, 4)));
        assertTrue(admission.refuse(open(1, "camera", 71, 0), client(1, 0)).contains("priority is 71"));
        assertTrue(admission.refuse(open(1, "camera", 0, 0), client(1, 0)).contains("real time"));
        assertTrue(admission.refuse(open(1, "camera", 70, 3), client(1, 0)).contains("budget is 3ms"));
        assertTrue(admission.refuse(new TaskOpen(1, 1, "camera", 70, 70, 0, true, 50 * MS, 50 * MS, 0),
            client(1, 0)).contains("period is 50ms"));
        assertNull(admission.refuse(open(1, "camera", 70, 7), client(1, 0)));
        assertTrue(admission.refuse(open(2, "camera", 70, 7), client(2, 0)).contains("is open in process 1001"));
        admission.closed(1, "camera");
        assertNull(admission.refuse(open(2, "camera", 70, 7), client(2, 0)));
    }

    @Test
    void shouldTryEveryCoreForATaskWithoutOne() throws IOException {
        // 30 ms of a guest fit beside camera on core 2, but not above it on core 1: it may be there
        final String camera = "  - {name: camera, cpu: 1, period: 100ms, deadline: 50ms, priority: 50, "
            + "segments: [{cpu: 20ms}, {gpu: {host: 1ms, device: 4ms}}]}\n";
        final ProvenAdmission admission = admission(settings(camera));
        assertNull(admission.refuse(new TaskOpen(1, 1, "camera", 50, 50, 0, true, 0, 0, 0), client(1, 0)));
        final String low = admission.refuse(open(2, "guest", 40, 10), client(2, 0));
        assertNull(low);
        final String high = admission.refuse(open(3, "guest", 60, 30), client(3, 0));
        assertTrue(high.contains("makes \"camera\" miss"), high);
        for (int i = 4; i < 14; i++) {
            admission.refuse(new TaskOpen(1, i, "tiny", 1, 1, 0, true, 3_000 * MS, 3_000 * MS, MS), client(i, 0));
        }
        assertTrue(admission.status(true, 0).path("incidents").toString().contains("too many cases"));
    }

    @Test
    void shouldRefuseOtherOrdersOnTheGpuThanOnTheCore() throws IOException {
        for (final int gpuPriority : new int[] {10, 40}) {   // inverted, and equal: the earlier begin would go first
            final String a = task("a", 1, 50, 1).replace("priority: 50", "priority: 50, gpu_priority: " + gpuPriority);
            final AdmissionSettings file = settings(a + task("b", 1, 40, 1));
            final String text = assertThrows(IllegalArgumentException.class, () -> admission(file)).getMessage();
            assertTrue(text.contains("\"a\" (priority 50, gpu_priority " + gpuPriority + ") and \"b\" (priority 40, "
                + "gpu_priority 40) share core 1") && text.contains("give \"a\" the higher gpu_priority"), text);
            final ProvenAdmission guests = admission(settings(task("b", 1, 40, 1)));
            assertNull(guests.refuse(open(1, "b", 40, 0), client(1, 0)));
            final String refused = guests.refuse(new TaskOpen(1, 2, "guest", 50, gpuPriority, 0, true, 100 * MS,
                100 * MS, MS), client(2, 0));
            assertTrue(refused.contains("\"guest\" (priority 50, gpu_priority " + gpuPriority + ") and \"b\""),
                refused);
            guests.closed(1, "b");
        }
    }

    /** What an administrator changes must not lead to the orders that a registration may not have. */
    @Test
    void shouldRefuseAPriorityThatMakesTheOrdersDiffer() throws IOException {
        final ProvenAdmission admission = admission(settings(task("a", 1, 50, 1) + task("b", 1, 40, 1)));
        assertNull(admission.refuse(open(1, "a", 50, 0), client(1, 0)));
        assertNull(admission.refuse(open(2, "b", 40, 0), client(2, 0)));
        final String refused = admission.refusePriority(0, "b", 40, 50);
        assertTrue(refused.contains("share core 1"), refused);
        assertNull(admission.refusePriority(0, "b", 45, 45));
    }

    private static Client ofProcess(final int id, final int pid) {
        return new Client(id, pid, 0, 0, 7, "app", null, null, null);
    }

    /** Live, high is granted when the 40 ms of low are over: the hardware cannot preempt its own context. */
    @Test
    void shouldRefuseTwoTasksOfOneProcessWhereTheOneWaitsTooLongForTheOther() throws IOException {
        final String tasks = task("high", 1, 70, 1).replace("period: 100ms", "period: 100ms, deadline: 10ms")
            + task("low", 2, 40, 40);
        final ProvenAdmission admission = admission(settings(tasks));
        final TaskOpen high = new TaskOpen(1, 1, "high", 70, 70, 0, true, 100 * MS, 10 * MS, 0);
        assertNull(admission.refuse(high, ofProcess(1, 4711)));
        final String refused = admission.refuse(open(2, "low", 40, 0), ofProcess(2, 4711));
        assertTrue(refused.contains("\"high\""), refused);
        assertTrue(admission.status(true, 0).path("proven").asBoolean(), "high alone");
        assertNull(admission.refuse(open(2, "low", 40, 0), ofProcess(3, 4712)), "another process");
        final String guest = admission.refuse(open(4, "guest", 30, 1), ofProcess(4, 4712));
        assertTrue(guest.contains("process 4712"), guest);
        final String beside = admission.refuse(open(4, "worker", 0, 0), ofProcess(4, 4711));
        assertTrue(beside.contains("\"worker\" (best effort)"), beside);
        assertNull(admission.refuse(open(5, "worker", 0, 0), ofProcess(5, 4713)));
        assertNull(admission.refuse(open(5, "worker2", 0, 0), ofProcess(5, 4713)), "best-effort tasks are equals");
        assertTrue(admission.refusePriority(0, "worker", 20, 20) != null, "worker2 shares its context");
        assertTrue(admission.status(true, 0).path("proven").asBoolean(), "all of it was refused");
    }

    /** With time enough the waiting for the other task is part of the bound. */
    @Test
    void shouldAdmitTwoTasksOfOneProcessWithTheWaitInTheBound() throws IOException {
        final ProvenAdmission admission = admission(settings(task("high", 1, 70, 1) + task("low", 2, 40, 40)));
        assertNull(admission.refuse(open(1, "high", 70, 0), ofProcess(1, 4711)));
        final long alone = boundOf(admission, "high");
        assertNull(admission.refuse(open(2, "low", 40, 0), ofProcess(2, 4711)));
        final JsonNode status = admission.status(true, 0);
        assertTrue(status.path("proven").asBoolean(), status.toString());
        assertTrue(boundOf(admission, "high") >= alone + 40 * MS, "it waits for low: " + status);
        final JsonNode contexts = status.findValue("hypotheses");
        assertTrue(contexts.toString().contains("inside of process \\\"pid 4711\\\""), contexts.toString());
        assertTrue(admission.refuse(open(3, "guest", 30, 1), ofProcess(3, 4711))
            .contains("declare both in the task-set file"), "one that is known by its budget alone");
    }

    /** Theorem 10 says nothing of a window that was begun before the tasks shared a context, without waiting. */
    @Test
    void shouldRefuseATaskWhoseProcessHasBegunWithoutWaiting() throws IOException {
        final String tasks = task("high", 1, 70, 1) + task("low", 2, 40, 4);
        final ProvenAdmission admission = admission(settings(tasks));
        final PromisedBounds bounds = new PromisedBounds(8);
        admission.promise(bounds);
        assertNull(admission.refuse(open(1, "high", 70, 0), ofProcess(1, 4711)));
        admission.opened(open(1, "high", 70, 0), 5);
        bounds.beganUnasked(5);
        assertEquals("task \"low\": task \"high\" of its process began without waiting while it was alone; open all "
            + "tasks of a process before one begins, or with GPUSEG_TASK_ALWAYS_WAIT",
            admission.refuse(open(2, "low", 40, 0), ofProcess(1, 4711)));
        assertTrue(admission.status(true, 0).path("proven").asBoolean(), "high alone");
        assertNull(admission.refuse(open(2, "low", 40, 0), ofProcess(2, 4712)), "another process");
        admission.closed(2, "low");
        bounds.opened(5);
        assertNull(admission.refuse(open(1, "low", 40, 0), ofProcess(1, 4711)), "nothing was begun");
        assertTrue(admission.status(true, 0).path("proven").asBoolean());
        bounds.beganUnasked(5);   // after admission was asked, and before the dispatcher knew the second task
        admission.opened(open(1, "low", 40, 0), 6);
        assertFalse(admission.status(true, 0).path("proven").asBoolean(), "too late to be refused");
    }

    /** The platform of these tests has epsilon and alpha; a call above them contradicts every bound. */
    @Test
    void shouldCallNothingProvenOnceACallOrAWaitBrokeItsConstant() throws IOException {
        final AdmissionSettings settings = settings(task("high", 1, 70, 1));
        final long alphaNs = settings.platform().gpus().get(0).alphaNs();
        final long epsilonNs = settings.platform().gpus().get(0).epsilonNs();
        final ProvenAdmission admission = admission(settings);
        final PromisedBounds bounds = new PromisedBounds(8);
        admission.promise(bounds);
        assertNull(admission.refuse(open(1, "high", 70, 0), ofProcess(1, 4711)));
        assertEquals(0, bounds.called(0, alphaNs));
        assertEquals(0, bounds.waited(0, epsilonNs));
        assertEquals(0, bounds.waited(7, Long.MAX_VALUE), "a GPU of which nothing is said");
        assertTrue(admission.status(true, 0).path("proven").asBoolean(), "as long as they hold");
        assertEquals(alphaNs, bounds.called(0, alphaNs + 1));
        assertFalse(bounds.lastWasWait());
        final JsonNode status = admission.status(true, 0);
        assertFalse(status.path("proven").asBoolean(), status.toString());
        assertEquals(1, status.path("constants_broken").asInt());
        assertEquals(epsilonNs, bounds.waited(0, epsilonNs + 5));
        assertTrue(bounds.lastWasWait() && bounds.lastTookNs() == epsilonNs + 5
            && bounds.lastConstantNs() == epsilonNs);
        assertEquals(2, admission.status(true, 0).path("constants_broken").asInt());
    }

    private static long boundOf(final ProvenAdmission admission, final String task) {
        for (final JsonNode node : admission.status(true, 0).path("result").findValue("tasks")) {
            if (node.path("name").asText().equals(task)) {
                return node.path("wcrt_ns").asLong();
            }
        }
        throw new AssertionError("no task " + task);
    }

    private static String rareMap(final int misses) {
        return "  - {name: map, cpu: 1, period: 100ms, priority: 70, overload: {period: 5s, typical: 25}, "
            + "segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 40ms}}]}\n"
            + "  - {name: track, cpu: 2, period: 100ms, deadline: 40ms, max_period: 100ms, priority: 60, "
            + "weakly_hard: {misses: " + misses + ", jobs: 40}, segments: [{cpu: 1ms}, {gpu: {host: 1ms, "
            + "device: 10ms}}]}\n";
    }

    @Test
    void shouldAdmitATaskThatMayMissAsOftenAsTheBoundSays() throws IOException {
        final TaskOpen track = new TaskOpen(1, 2, "track", 60, 60, 0, true, 100 * MS, 40 * MS, 0);
        final ProvenAdmission kept = admission(settings(rareMap(1)));
        assertNull(kept.refuse(open(1, "map", 70, 0), client(1, 0)));
        assertNull(kept.refuse(track, client(2, 0)));
        assertTrue(kept.status(true, 0).path("proven").asBoolean());
        assertEquals(1, kept.status(true, 0).path("result").findValue("misses").path(0).path("bound").asInt());
        Files.delete(directory.resolve("admitted.json"));
        final ProvenAdmission broken = admission(settings(rareMap(0)));
        assertNull(broken.refuse(open(1, "map", 70, 0), client(1, 0)));
        final String refused = broken.refuse(track, client(2, 0));
        assertTrue(refused != null && refused.contains("at most 1 of 40 jobs late, limit 0 MISS"), refused);
    }

    /** A gate preempts nothing, so that it does not matter whose context work is in. */
    @Test
    void shouldAdmitTasksOfOneProcessAtAGate() throws IOException {
        final ProvenAdmission gate = new ProvenAdmission(settings(task("a", 1, 70, 4) + task("b", 2, 60, 4)),
            FixedPriority.INSTANCE, capabilities(Capabilities.GATE), 1, directory.resolve("gate.json"), () -> nowNs);
        assertNull(gate.refuse(open(1, "a", 70, 0), ofProcess(1, 4711)));
        assertNull(gate.refuse(open(1, "b", 60, 0), ofProcess(1, 4711)));
        assertEquals("gate-suspend", gate.status(true, 0).path("analysis").asText());
        assertTrue(gate.status(true, 0).path("proven").asBoolean());
    }

    @Test
    void shouldRefuseAFileInWhichABestEffortTaskSharesAProcess() throws IOException {
        final AdmissionSettings shared = settings((task("a", 1, 70, 4) + task("b", 2, 60, 4))
            .replace(", cpu: ", ", process: robot, cpu: ").replace("priority: 60", "best_effort: true"));
        final String text = assertThrows(IllegalArgumentException.class, () -> admission(shared)).getMessage();
        assertTrue(text.contains("task-set file: tasks \"a\" and \"b\" share process \"robot\""), text);
    }

    @Test
    void shouldChooseTheBoostAnalysisOnlyWhereItsMechanismIsBuilt() {
        final SoundAnalysis fp = sound("fp", 3, WaitMode.SUSPEND, CoreOrder.FP);
        assertEquals("gcaps-boost-tight-suspend", fp.boosted().analysis().name());
        assertTrue(sound("fp", 3, WaitMode.BUSY, CoreOrder.FP).boosted().reason().contains("spin"));
        assertEquals("edf-boost-suspend",
            sound("edf", 3, WaitMode.SUSPEND, CoreOrder.FP).boosted().analysis().name());
        final SoundAnalysis gate = sound("fp", 1, WaitMode.SUSPEND, CoreOrder.FP);
        assertTrue(gate.exists());
        assertTrue(gate.boosted().reason().contains("fp or edf with core-order: fp and a mechanism of level 3"));
        assertTrue(sound("edf", 3, WaitMode.BUSY, CoreOrder.EDF).boosted().reason().contains("spin"));
    }

    /** Nothing bounds what tasks of one class take from each other; alone in its class each is as under fp. */
    @Test
    void shouldProveTasksOfDifferentClassesOnly() throws IOException {
        final AdmissionSettings settings = settings(task("a", 1, 50, 4) + task("b", 2, 45, 4) + task("c", 2, 30, 4));
        final ProvenAdmission admission = new ProvenAdmission(settings, new HighestClassFirst(10), LEVEL_3, 1,
            directory.resolve("classes.json"), () -> nowNs);
        assertNull(admission.refuse(open(1, "a", 50, 0), client(1, 0)));
        final String refused = admission.refuse(open(2, "b", 45, 0), client(2, 0));
        assertTrue(refused.contains("\"a\" (gpu_priority 50) and \"b\" (gpu_priority 45) are in one class of GPU 0"),
            refused);
        assertNull(admission.refuse(open(3, "c", 30, 0), client(3, 0)));
        assertTrue(admission.refusePriority(0, "c", 42, 42).contains("are in one class"));
        assertEquals("gcaps-window-suspend", admission.status(true, 0).path("analysis").asText());
        assertTrue(admission.status(true, 0).path("proven").asBoolean());
        assertTrue(sound("classes", 1, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("gate"));
        final PolicySettings wide = new PolicySettings(new HighestClassFirst(99), null, 0, List.of(),
            List.of(), "");
        assertTrue(admission.refuseSettings(wide).contains("are in one class"));
    }

    /** On core 1 a CPU-only task of 30 ms can stop camera inside its window; lidar on core 2 then waits for both. */
    private static String stoppedHolder() {
        return "  - {name: control, cpu: 1, period: 100ms, priority: 80, segments: [{cpu: 30ms}]}\n"
            + task("camera", 1, 70, 4)
            + "  - {name: lidar, cpu: 2, period: 100ms, deadline: 20ms, priority: 60, segments: [{cpu: 1ms}, "
            + "{gpu: {host: 1ms, device: 2ms}}]}\n";
    }

    private static TaskOpen lidar(final int boost) {
        return new TaskOpen(1, 2, "lidar", 60, 60, 0, true, 100 * MS, 20 * MS, 0).withBoost(boost);
    }

    @Test
    void shouldUseTheBoostAnalysisForTasksThatAskForItAndOnlyForThem() throws IOException {
        final ProvenAdmission plain = admission(settings(stoppedHolder()));
        assertNull(plain.refuse(open(1, "camera", 70, 0), client(1, 0)));
        assertEquals("gcaps-window-suspend", plain.status(true, 0).path("analysis").asText());
        final String refused = plain.refuse(lidar(0), client(2, 0));
        assertTrue(refused.contains("gcaps-window-suspend") && refused.contains("deadline 20ms"), refused);
        assertTrue(refused.matches(".*\\(gcaps-window-suspend\\); fits (with [^;]*, or )?if all tasks are opened with "
            + "a boost_priority \\(gcaps-boost-tight-suspend\\): camera 81, lidar 61"), "one list of ways: " + refused);
        assertFalse(refused.contains("close another one"), "what helps, or that nothing does: " + refused);
        plain.closed(1, "camera");
        assertNull(plain.refuse(open(1, "camera", 70, 0).withBoost(90), client(1, 0)));
        assertNull(plain.refuse(lidar(90), client(2, 0)), "a boosted holder is not stopped");
        assertEquals("gcaps-boost-tight-suspend", plain.status(true, 0).path("analysis").asText());
        final String claim = plain.status(true, 0).path("claim").asText();
        assertTrue(claim.startsWith("sound for this scheduler with policy fp at level 3, if N1: "), claim);
        assertFalse(claim.contains("M8"), "admission knows of the boosts");
        assertTrue(plain.status(true, 0).path("proven").asBoolean());
        assertEquals(90, plain.status(true, 0).path("tasks").get(1).path("boost").asInt());
        final ProvenAdmission next = admission(settings(stoppedHolder()));
        assertEquals("gcaps-boost-tight-suspend", next.status(true, 0).path("analysis").asText(),
            "also after a restart");
        assertEquals(2, next.status(true, 0).path("tasks").size());
    }

    @Test
    void shouldRefuseBoostsForWhichNothingIsProven() throws IOException {
        final AdmissionSettings settings = settings(task("a", 1, 50, 1) + task("b", 1, 40, 1) + task("c", 2, 30, 1)
            + "  - {name: control, cpu: 1, period: 100ms, priority: 60, segments: [{cpu: 1ms}]}\n");
        final ProvenAdmission admission = admission(settings);
        final String low = admission.refuse(open(1, "a", 50, 0).withBoost(60), client(1, 0));
        assertTrue(low.contains("boost 60 on core 1, where \"control\" has priority 60"), low);
        assertNull(admission.refuse(open(1, "a", 50, 0).withBoost(80), client(1, 0)));
        final String mixed = admission.refuse(open(11, "b", 40, 0), client(11, 0));
        assertTrue(mixed.contains("\"b\" has no boost and \"a\" has one"), mixed);
        for (final int boost : new int[] {80, 81}) {
            final String crossed = admission.refuse(open(11, "b", 40, 0).withBoost(boost), client(11, 0));
            assertTrue(crossed.contains("boosts 80 and " + boost), crossed);
        }
        assertNull(admission.refuse(open(11, "b", 40, 0).withBoost(79), client(11, 0)));
        assertNull(admission.refuse(open(12, "c", 30, 0).withBoost(31), client(12, 0)), "another core");
        final String guest = admission.refuse(open(2, "guest", 20, 1).withBoost(99), client(2, 0));
        assertTrue(guest.contains("has a boost (99)") && guest.contains("declare its times"), guest);
        assertTrue(admission.refuse(open(2, "guest", 20, 1), client(2, 0)).contains("no boost and"));
        assertTrue(admission.refusePriority(0, "b", 0, 0).contains("is best effort now"));
        final PolicySettings edf = new PolicySettings(EarliestDeadlineFirst.INSTANCE, null, 0, List.of(),
            List.of(), "");
        assertNull(admission.refuseSettings(edf), "edf-boost-suspend accepts them");
        assertTrue(admission.status(true, 0).path("proven").asBoolean(), "all of it was refused");
    }

    @Test
    void shouldNotTrustABudgetThatNothingEnforces() throws IOException {
        final ProvenAdmission admission = admission(settings(task("camera", 1, 70, 4)));
        final TaskOpen guest = open(2, "guest", 20, 5);
        final String refused = admission.refuse(guest.with(20, 20, OverrunAction.NOTIFY), client(2, 0));
        assertTrue(refused.contains("overrun action is notify") && refused.contains("declare it"), refused);
        assertNull(admission.refuse(open(1, "camera", 70, 0).with(70, 70, OverrunAction.NOTIFY), client(1, 0)),
            "what is declared is taken at its word");
        assertNull(admission.refuse(guest.with(20, 20, OverrunAction.SUSPEND), client(2, 0)));
        assertNull(admission.refuse(open(4, "worker", 0, 0).with(0, 0, OverrunAction.NOTIFY), client(4, 0)),
            "best effort needs no model");
        final String ruled = admission.refuseSettings(rule("guest", OverrunAction.NOTIFY));
        assertTrue(ruled.startsWith("rules for tasks: task \"guest\""), ruled);
        assertNull(admission.refuseSettings(rule("guest", OverrunAction.DEMOTE)));
        assertNull(admission.refuseSettings(rule("later", OverrunAction.NOTIFY)), "no task is concerned yet");
        assertTrue(admission.refuse(open(3, "later", 10, 1), client(3, 0)).contains("notify"), "the rule holds");
        assertNull(admission.refuseSettings(rule("later", OverrunAction.SUSPEND)));
        assertNull(admission.refuse(open(3, "later", 10, 1).with(10, 10, OverrunAction.NOTIFY), client(3, 0)));
    }

    @Test
    void shouldOnlyWarnOfABudgetThatNothingEnforces() throws IOException {
        final AdmissionSettings enforce = settings(task("camera", 1, 70, 4));
        final ProvenAdmission admission = admission(new AdmissionSettings(AdmissionMode.WARN, enforce.declared(),
            enforce.platform(), CoreOrder.FP, GRACE_NS));
        assertNull(admission.refuse(open(2, "guest", 20, 5), client(2, 0)));
        assertTrue(admission.status(true, 0).path("proven").asBoolean());
        assertNull(admission.refuseSettings(rule("guest", OverrunAction.NOTIFY)));
        assertFalse(admission.status(true, 0).path("proven").asBoolean());
        assertEquals("unknown", admission.status(true, 0).path("tasks").get(0).path("model").asText());
        assertEquals(1, admission.status(true, 0).path("warned").asInt());
    }

    private static TimePartitions table(final Policy inner, final long secondMs) {
        return new TimePartitions(inner, 50 * MS, 0, 2 * MS, false, new TimePartitions.Window(1, 0, 30 * MS),
            new TimePartitions.Window(2, 30 * MS, secondMs * MS));
    }

    private static PolicySettings policy(final Policy policy) {
        return new PolicySettings(policy, null, 0, List.of(), List.of(), "");
    }

    @Test
    void shouldAdmitByTheWindowsOfThePartitionWithTheNumbersOfTheAnalysis() throws IOException {
        final AdmissionSettings settings = settings(task("camera", 1, 70, 4) + task("lidar", 2, 60, 4)
            + task("map", 2, 50, 18));
        final ProvenAdmission admission = new ProvenAdmission(settings, table(FixedPriority.INSTANCE, 20), LEVEL_3, 1,
            directory.resolve("admitted.json"), () -> nowNs);
        assertNull(admission.refuse(open(1, "camera", 70, 0).withPartition(1), client(1, 0)));
        assertNull(admission.refuse(open(2, "lidar", 60, 0).withPartition(2), client(2, 0)));
        final JsonNode status = admission.status(true, 0);
        assertEquals("partition-fp-suspend", status.path("analysis").asText());
        assertTrue(status.path("proven").asBoolean(), status.toString());
        final AnalysisResult same = new TimePartitioned(table(FixedPriority.INSTANCE, 20),
            task -> "camera".equals(task) ? 1 : 2, false).analyse(settings.declared().withTasks(
            settings.declared().tasks().subList(0, 2)));
        final JsonNode tasks = status.path("result").path("results").path("partition-fp-suspend").path("tasks");
        for (int i = 0; i < 2; i++) {
            assertEquals(same.tasks().get(i).wcrtNs(), tasks.get(i).path("wcrt_ns").asLong());
        }
        // 18 + 1 ms of work a job are too much for what is left of partition 2, and not for partition 1
        final String refused = admission.refuse(open(3, "map", 50, 0).withPartition(2), client(3, 0));
        assertTrue(refused.contains("\"map\"") && refused.contains("partition-fp-suspend"), refused);
        assertEquals("task \"map\": partition 3 has no window; open it in a partition that has one, or change the "
            + "table",
            admission.refuse(open(3, "map", 50, 0).withPartition(3), client(3, 0)));
        assertTrue(admission.refuse(open(3, "map", 50, 0), client(3, 0)).contains("it has no partition"));
        assertNull(admission.refuse(open(3, "map", 50, 0).withPartition(1), client(3, 0)));
        // the table may not shrink below what was proven
        final String shrunk = admission.refuseSettings(policy(table(FixedPriority.INSTANCE, 5)));
        assertTrue(shrunk.startsWith("policy partitions: task \"lidar\""), shrunk);
        assertNull(admission.refuseSettings(policy(table(EarliestDeadlineFirst.INSTANCE, 20))));
        assertEquals("partition-edf-fp-suspend", admission.status(true, 0).path("analysis").asText());
        // the next daemon keeps the places in their partitions
        admission.clientGone(1, Removal.STOPPING);
        admission.clientGone(2, Removal.STOPPING);
        admission.clientGone(3, Removal.STOPPING);
        final ProvenAdmission next = new ProvenAdmission(settings, table(FixedPriority.INSTANCE, 20), LEVEL_3, 1,
            directory.resolve("admitted.json"), () -> nowNs);
        assertEquals(3, next.status(true, 0).path("tasks").size(), next.status(true, 0).toString());
    }

    @Test
    void shouldSayInOneLineWhichPartitionsAreNotAnalysed() throws IOException {
        final AdmissionSettings enforce = settings(task("camera", 1, 70, 4));
        final TimePartitions classes = table(new HighestClassFirst(10), 20);
        final String text = assertThrows(IllegalArgumentException.class, () -> new ProvenAdmission(enforce, classes,
            LEVEL_3, 1, directory.resolve("x"), () -> nowNs)).getMessage();
        assertTrue(text.contains("use inside: fp or edf") && text.lines().count() == 1, text);
        final ProvenAdmission running = admission(enforce);
        assertTrue(running.refuseSettings(policy(classes)).contains("policy partitions"));
        assertEquals("fp", running.status(true, 0).path("policy").asText());
        final ProvenAdmission warned = new ProvenAdmission(new AdmissionSettings(AdmissionMode.WARN, enforce.declared(),
            enforce.platform(), CoreOrder.FP, GRACE_NS), classes, LEVEL_3, 1, directory.resolve("x"), () -> nowNs);
        assertNull(warned.refuse(open(1, "camera", 70, 0), client(1, 0)));
        assertFalse(warned.status(true, 0).path("proven").asBoolean());
        assertTrue(warned.status(true, 0).path("problem").asText().contains("partitions"));
        final TimePartitions fp = table(FixedPriority.INSTANCE, 20);
        assertTrue(sound(fp, 1, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("level 3"));
        assertTrue(sound(fp, 3, WaitMode.BUSY, CoreOrder.FP).reason().contains("use mode: suspend"));
        assertTrue(sound(fp, 3, WaitMode.SUSPEND, CoreOrder.EDF).reason().contains("core-order: fp"));
        assertFalse(sound(fp, 3, WaitMode.SUSPEND, CoreOrder.FP).boosted().exists());
    }

    private static PolicySettings rule(final String task, final OverrunAction action) {
        return new PolicySettings(null, null, 0, List.of(new PolicySettings.TaskRule(task,
            new PolicySettings.Share(0, -1, 0), action, -1, -1)), List.of(), "");
    }

    @Test
    void shouldKeepAPlaceForTheSameUserOnlyAndNotForever() throws IOException {
        final AdmissionSettings settings = settings(task("camera", 1, 70, 4));
        final ProvenAdmission first = admission(settings);
        assertNull(first.refuse(open(1, "camera", 70, 0), client(1, 1000)));
        first.clientGone(1, Removal.STOPPING);
        final ProvenAdmission second = admission(settings);
        final String other = second.refuse(open(2, "camera", 70, 0), client(2, 1001));
        assertTrue(other.contains("kept for user 1000"), other);
        assertNull(second.refuse(open(3, "camera", 70, 0), client(3, 1000)));
        second.clientGone(3, Removal.DIED);
        assertTrue(admission(settings).status(true, 0).path("tasks").isEmpty(),
            "a client that died gives its place up");
        assertNull(second.refuse(open(4, "camera", 70, 0), client(4, 1000)));
        final ProvenAdmission third = admission(settings);
        nowNs += GRACE_NS;
        assertNull(third.refuse(open(5, "camera", 70, 0), client(5, 1001)));
        assertEquals(1, third.status(true, 0).path("dropped").asInt());
    }

    @Test
    void shouldCountKeptPlacesAgainstNewcomers() throws IOException {
        final AdmissionSettings settings = settings(task("a", 1, 70, 45) + task("b", 2, 60, 45));
        final ProvenAdmission first = admission(settings);
        assertNull(first.refuse(open(1, "a", 70, 0), client(1, 1000)));
        final ProvenAdmission second = admission(settings);
        assertTrue(second.refuse(open(2, "b", 60, 0), client(2, 1001)).contains("bound"), "a's place is kept");
        nowNs += GRACE_NS;
        assertNull(second.refuse(open(3, "b", 60, 0), client(3, 1001)));
    }

    @Test
    void shouldBelieveNoFileThatIsNotItsOwn() throws IOException {
        final AdmissionSettings settings = settings(task("camera", 1, 70, 4));
        final Path file = directory.resolve("admitted.json");
        final ProvenAdmission first = admission(settings);
        assertNull(first.refuse(open(1, "camera", 70, 0), client(1, 1000)));
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
        final String good = Files.readString(file);
        for (final String bad : new String[] {"", "{}", "[]", "{\"version\":1,\"tasks\":7}", "\u0000",
            good.replace("\"priority\":70", "\"priority\":100"), good.replace("\"priority\":70", "\"priority\":\"x\""),
            good.replace("camera", "ca\\nmera"), good.replace("\"uid\":1000", "\"uid\":-1"),
            good.replace("\"boost\":0", "\"boost\":100"), good.replace("\"demote\"", "\"pray\""),
            good.substring(0, good.length() / 2), good.replace("\"period_ns\":1", "\"period_ns\":1e999")}) {
            Files.write(file, bad.getBytes(StandardCharsets.UTF_8));
            final var status = admission(settings).status(true, 0);
            assertTrue(status.path("tasks").isEmpty(), bad);
            assertFalse(status.path("file_failure").asText().isEmpty(), bad);
        }
        Files.delete(file);
        Files.createSymbolicLink(file, Files.writeString(directory.resolve("elsewhere"), good));
        assertTrue(admission(settings).status(true, 0).path("tasks").isEmpty(), "links are not followed");
        Files.delete(file);
        Files.writeString(file, good);
        assertEquals(1, admission(settings).status(true, 0).path("tasks").size());
        Files.writeString(file, good.replace("\"priority\":70", "\"priority\":71"));
        assertEquals(1, admission(settings).status(true, 0).path("dropped").asInt(), "the task-set file has changed");
        if (ProcessStatus.effectiveUid() == 0) {
            Files.writeString(file, good);
            FileAccess.chown(file, 1234, -1);
            assertTrue(admission(settings).status(true, 0).path("tasks").isEmpty(), "another user's");
        }
    }

    @Test
    void shouldShowAUserHisOwnTasksOnly() throws IOException {
        final ProvenAdmission admission = admission(settings(task("camera", 1, 70, 4)));
        assertNull(admission.refuse(open(1, "camera", 70, 0), client(1, 1000)));
        assertNull(admission.refuse(open(2, "other", 1, 1), client(2, 1001)));
        final String seen = admission.status(false, 1001).toString();
        assertTrue(seen.contains("other") && !seen.contains("camera"), seen);
        assertTrue(admission.status(true, 0).toString().contains("camera"));
    }

    @Test
    void shouldRefuseToStartWithConstantsThatCannotBeTrue() throws IOException {
        final AdmissionSettings settings = settings(task("camera", 1, 70, 4));
        final AdmissionSettings fast = new AdmissionSettings(AdmissionMode.ENFORCE,
            settings.declared().withPlatform(settings.platform().withEpsilonNs(1_000)),
            settings.platform().withEpsilonNs(1_000), CoreOrder.FP, 0);
        final String text = assertThrows(IllegalArgumentException.class, () -> admission(fast)).getMessage();
        assertTrue(text.contains("epsilon is 1us") && text.contains("300us"), text);
        final AdmissionSettings unassigned = settings(task("camera", 1, 70, 4).replace("priority: 70, ", ""));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> admission(unassigned)).getMessage()
            .contains("priority is missing"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> new ProvenAdmission(settings,
            FixedPriority.INSTANCE, LEVEL_3, 2,
            directory.resolve("x"), () -> 0)).getMessage().contains("the daemon drives 2"));
        final AdmissionSettings full = settings("  - {name: hog, cpu: 1, period: 10ms, priority: 9, "
            + "segments: [{cpu: 11ms}]}\n");
        assertTrue(assertThrows(IllegalArgumentException.class, () -> admission(full)).getMessage().contains("hog"));
    }

    @Test
    void shouldSayThatBoundsWhichCountWorkBesideAreConditional() throws IOException {
        final ProvenAdmission admission = admission(withSpace(settings(task("camera", 1, 70, 4))));
        assertNull(admission.refuse(open(1, "camera", 70, 0), client(1, 1000)));
        assertTrue(admission.status(true, 0).path("claim").asText()
            .contains("B1: no single segment becomes more than 10% longer"),
            "what is not checked is said");
    }

    /** Queued work runs on beside the segment: no factor makes that sound. */
    @Test
    void shouldRefuseHeldLaunchesWhateverTheFactor() throws IOException {
        final Capabilities launch = capabilities(Capabilities.GATE).withHeldLaunches();
        final AdmissionSettings ten = withSpace(settings(task("camera", 1, 70, 4)));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> new ProvenAdmission(ten, FixedPriority.INSTANCE,
            launch, 1, directory.resolve("beside.json"), () -> nowNs)).getMessage()
            .contains("what is queued on the GPU runs on"));
    }

    private static AdmissionSettings withSpace(final AdmissionSettings settings) {
        final var platform = settings.platform().withSpace(new SpaceLimits(0, 10, 0));
        return new AdmissionSettings(settings.mode(), settings.declared().withPlatform(platform), platform,
            settings.cores(), settings.graceNs());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.Removal;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.mechanism.Capabilities;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
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
        return AdmissionSettings.read(AdmissionMode.ENFORCE, file, null, CoreOrder.FP, GRACE_NS);
    }

    private static String task(final String name, final int cpu, final int priority, final int deviceMs) {
        return "  - {name: " + name + ", cpu: " + cpu + ", period: 100ms, priority: " + priority
            + ", segments: [{cpu: 2ms}, {gpu: {host: 1ms, device: " + deviceMs + "ms}}]}\n";
    }

    private ProvenAdmission admission(final AdmissionSettings settings) {
        return new ProvenAdmission(settings, "fp", LEVEL_3, 1, directory.resolve("admitted.json"), () -> nowNs);
    }

    private static TaskOpen open(final int client, final String name, final int priority, final long budgetMs) {
        return new TaskOpen(1, client, name, priority, priority, 0, true, 100 * MS, 100 * MS, budgetMs * MS);
    }

    private static Client client(final int id, final int uid) {
        return new Client(id, 1000 + id, uid, uid, 7, "app", null, null, null);
    }

    @Test
    void shouldChooseASoundAnalysisOrSayWhyThereIsNone() {
        for (final WaitMode mode : WaitMode.values()) {
            assertEquals("gcaps-window-" + mode.word(),
                SoundAnalysis.of("fp", 3, mode, CoreOrder.FP).analysis().name());
            assertEquals("gate-" + mode.word(), SoundAnalysis.of("fp", 1, mode, CoreOrder.FP).analysis().name());
            assertEquals("edf-edf-" + mode.word(), SoundAnalysis.of("edf", 3, mode, CoreOrder.EDF).analysis().name());
        }
        assertEquals("edf-fp-suspend", SoundAnalysis.of("edf", 3, WaitMode.SUSPEND, CoreOrder.FP).analysis().name());
        assertTrue(SoundAnalysis.of("edf", 3, WaitMode.BUSY, CoreOrder.FP).reason().contains("deadlock"));
        assertTrue(SoundAnalysis.of("edf", 1, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("gate"));
        assertTrue(SoundAnalysis.of("rr", 3, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("rr"));
        assertTrue(SoundAnalysis.of("fp", 2, WaitMode.SUSPEND, CoreOrder.FP).reason().contains("level 2"));
        assertTrue(SoundAnalysis.of("fp", 3, WaitMode.SUSPEND, CoreOrder.EDF).reason().contains("--cores fp"));
        for (final String policy : new String[] {"fp", "edf"}) {
            for (final CoreOrder cores : CoreOrder.values()) {
                for (final WaitMode mode : WaitMode.values()) {
                    final SoundAnalysis chosen = SoundAnalysis.of(policy, 3, mode, cores);
                    assertTrue(!chosen.exists() || chosen.analysis().claim() == Analysis.Claim.SOUND);
                }
            }
        }
    }

    @Test
    void shouldRefuseWhatDiffersFromTheFile() throws IOException {
        final ProvenAdmission admission = admission(settings(task("camera", 1, 70, 4)));
        assertTrue(admission.refuse(open(1, "camera", 71, 0), client(1, 0)).contains("priority is 71"));
        assertTrue(admission.refuse(open(1, "camera", 0, 0), client(1, 0)).contains("real time"));
        assertTrue(admission.refuse(open(1, "camera", 70, 3), client(1, 0)).contains("budget is 3ms"));
        assertTrue(admission.refuse(new TaskOpen(1, 1, "camera", 70, 70, 0, true, 50 * MS, 50 * MS, 0),
            client(1, 0)).contains("period is 50ms"));
        assertNull(admission.refuse(open(1, "camera", 70, 5), client(1, 0)));
        assertTrue(admission.refuse(open(2, "camera", 70, 5), client(2, 0)).contains("is open in process 1001"));
        admission.closed(1, "camera");
        assertNull(admission.refuse(open(2, "camera", 70, 5), client(2, 0)));
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
    void shouldRefuseOppositeOrdersOnACoreAndOnTheGpu() throws IOException {
        final String a = task("a", 1, 50, 1).replace("priority: 50", "priority: 50, gpu_priority: 10");
        final ProvenAdmission admission = admission(settings(a + task("b", 1, 40, 1)));
        assertNull(admission.refuse(new TaskOpen(1, 1, "a", 50, 10, 0, true, 0, 0, 0), client(1, 0)));
        final String refused = admission.refuse(open(1, "b", 40, 0), client(1, 0));
        assertTrue(refused.contains("opposite orders"), refused);
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
        assertTrue(assertThrows(IllegalArgumentException.class, () -> new ProvenAdmission(settings, "fp", LEVEL_3, 2,
            directory.resolve("x"), () -> 0)).getMessage().contains("the daemon drives 2"));
        final AdmissionSettings full = settings("  - {name: hog, cpu: 1, period: 10ms, priority: 9, "
            + "segments: [{cpu: 11ms}]}\n");
        assertTrue(assertThrows(IllegalArgumentException.class, () -> admission(full)).getMessage().contains("hog"));
    }
}

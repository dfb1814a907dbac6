/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Admission by a real daemon of a real client of the C library, next to what {@code analyze} says of the same file.
 */
@Timeout(120)
@Tag("long")
@Tag("beside")
class AdmissionSystemTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PLATFORM = "version: 1\nid: robot\nplatform: {cpus: 2, epsilon: 1ms}\nmode: suspend\n"
        + "tasks:\n";
    private static final String CAMERA = "  - {name: camera, cpu: 1, period: 80ms, priority: 70,"
        + " segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}, {cpu: 4ms}]}\n";
    private static final String CONTROL = "  - {name: control, cpu: 1, period: 20ms, priority: 80,"
        + " segments: [{cpu: 3ms}]}\n";
    private static final String LIDAR = "  - {name: lidar, cpu: 2, period: 100ms, deadline: 60ms, priority: 60,"
        + " segments: [{cpu: 5ms}, {gpu: {host: 2ms, device: %dms}}]}\n";
    private static final String LOGGER = "  - {name: logger, cpu: 2, period: 200ms, best_effort: true,"
        + " segments: [{gpu: {host: 1ms, device: 40ms}}]}\n";

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Path taskSet(final String... tasks) throws IOException {
        return Files.writeString(rig.file("set.yaml"), PLATFORM + String.join("", tasks));
    }

    private Path fits() throws IOException {
        return taskSet(CONTROL, CAMERA, String.format(LIDAR, 10), LOGGER);
    }

    private Path fails() throws IOException {
        return taskSet(CONTROL, CAMERA, String.format(LIDAR, 45), LOGGER);
    }

    private static JsonNode analyze(final Path file, final String analysis, final int status) throws IOException {
        final StringOutput out =
            StringOutput.of("analyze", file.toString(), "--analysis", analysis, "--format", "json");
        assertEquals(status, out.status(), out.text());
        return JSON.readTree(out.out());
    }

    private Child client(final String name, final String... actions) {
        return rig.start(name, TaskClient.command(rig, actions));
    }

    /** What a process is answered that opens one task: two tasks of one process would share a GPU context. */
    private String open(final String name, final int priority, final int periodMs, final int deadlineMs,
        final int budgetMs) throws InterruptedException {
        return client(name, TaskClient.open(name, priority, periodMs, deadlineMs, budgetMs), "pause")
            .await("open " + name, 20).strip();
    }

    private static void acceptsAllWithTheNumbersOfAnalyze(final SystemRig rig, final AdmissionSystemTest test,
        final String policy, final String analysis) throws Exception {
        final Path file = test.fits();
        rig.gpu();
        rig.daemon("--policy", policy, "--admission", "enforce", "--taskset", file.toString());
        assertEquals("open camera 0", test.open("camera", 70, 80, 80, 0));
        assertEquals("open lidar 0", test.open("lidar", 60, 100, 60, 0));
        assertEquals("open logger 0", test.open("logger", 0, 0, 0, 0));
        final JsonNode admission = rig.status().path("admission");
        assertEquals(analyze(file, analysis, ExitCode.OK).path("results"), admission.path("result").path("results"));
        assertTrue(admission.path("proven").asBoolean(), admission::toString);
        assertEquals(0, rig.counter("conductor_tasks_not_admitted"));
    }

    private static void refusesWithTheNumbersOfAnalyze(final SystemRig rig, final AdmissionSystemTest test,
        final String policy, final String analysis) throws Exception {
        final Path file = test.fails();
        rig.gpu();
        rig.daemon("--policy", policy, "--admission", "enforce", "--taskset", file.toString());
        assertEquals("open camera 0", test.open("camera", 70, 80, 80, 0));
        assertEquals("open logger 0", test.open("logger", 0, 333, 0, 0), "the period of best effort is in no bound");
        final String refusal = test.open("lidar", 60, 100, 60, 0);
        for (final String word : List.of("-4000", "lidar", "bound", "deadline 60ms", analysis,
            "fits with", "% of its GPU time")) {
            assertTrue(refusal.contains(word), refusal + " should say " + word);
        }
        final JsonNode admission = rig.status().path("admission");
        final JsonNode refused = analyze(file, analysis, ExitCode.NO).path("results");
        ((ObjectNode) refused.path(analysis)).remove("why");   // what would help is in the refusal itself
        assertEquals(refused, admission.path("incidents").get(0).path("result").path("results"));
        assertTrue(admission.path("proven").asBoolean(), "what is open is proven");
        assertEquals("gone", rig.state("lidar"));
        assertEquals(1, rig.counter("conductor_tasks_not_admitted"));
    }

    @Test
    void shouldAcceptWhatAnalyzeCallsSchedulableUnderFixedPriorityWithTheSameNumbers() throws Exception {
        acceptsAllWithTheNumbersOfAnalyze(rig, this, "fp", "gcaps-window-suspend");
    }

    @Test
    void shouldAcceptWhatAnalyzeCallsSchedulableUnderEdfWithTheSameNumbers() throws Exception {
        acceptsAllWithTheNumbersOfAnalyze(rig, this, "edf", "edf-fp-suspend");
    }

    @Test
    void shouldRefuseTheTaskThatAnalyzeCallsUnschedulableUnderFixedPriority() throws Exception {
        refusesWithTheNumbersOfAnalyze(rig, this, "fp", "gcaps-window-suspend");
    }

    @Test
    void shouldRefuseTheTaskThatAnalyzeCallsUnschedulableUnderEdf() throws Exception {
        refusesWithTheNumbersOfAnalyze(rig, this, "edf", "edf-fp-suspend");
    }

    /** The job takes far longer than the file says: a proven bound does not hold, and everybody is told. */
    @Test
    void shouldSayThatAProofIsBrokenByTheFirstJobAboveItsBound() throws Exception {
        final Path file = fits();
        rig.gpu();
        final Child daemon = rig.daemon("--admission", "enforce", "--taskset", file.toString());
        SystemRig.await("what normal priority means", 20_000,
            () -> daemon.said().contains("--admission: at normal priority any program can hold this daemon up"));
        final Child camera = client("camera", TaskClient.open("camera", 70, 80, 80, 0), "segments:camera:1:0",
            "pause");
        camera.await("segments 0", 20);
        assertEquals(0, rig.counter("bounds_broken"));
        assertTrue(rig.status().path("admission").path("proven").asBoolean());
        client("late", TaskClient.open("lidar", 60, 100, 60, 0), "segments:lidar:1:400000", "pause")
            .await("segments 0", 20);
        SystemRig.await("the job that is counted", 20_000, () -> rig.counter("bounds_broken") == 1);
        final JsonNode admission = rig.status().path("admission");
        assertFalse(admission.path("proven").asBoolean(), admission::toString);
        assertEquals(1, admission.path("bounds_broken").asInt());
        SystemRig.await("a line in the log", 20_000,
            () -> daemon.said().contains("gpuseg: admission: a job of task \"lidar\" took "));
        final StringOutput text = StringOutput.of("status", "--dir", rig.directory().root().toString());
        assertTrue(text.out().contains("proof    BROKEN: 1 jobs took longer than their bound"), text.text());
    }

    @Test
    void shouldRefuseAtStartThreadsThatSpinUnderEdfOverFixedPriorityCores() throws Exception {
        final Path file = Files.writeString(rig.file("busy.yaml"),
            (PLATFORM + CAMERA).replace("mode: suspend", "mode: busy"));
        rig.gpu();
        final List<String> command = JavaCommand.daemon(List.of("--dir", rig.directory().root().toString(),
            "--mechanism", "sim", "--policy", "edf", "--admission", "enforce", "--taskset", file.toString()));
        command.addAll(rig.settings());
        final Child daemon = rig.start("daemon", command);
        assertEquals(ExitCode.USAGE, daemon.awaitExit(40));
        assertTrue(daemon.said().contains("deadlock") && daemon.said().contains("mode: suspend"), daemon.said());
    }

    @Test
    void shouldKeepThePlacesOfItsTasksOverARestartAndGiveThemUpInTime() throws Exception {
        final Path file = fits();
        rig.gpu();
        final String[] options = {"--admission", "enforce", "--taskset", file.toString()};
        rig.with("admission-grace: 600s");
        final Child daemon = rig.daemon(options);
        final Child first = client("first", TaskClient.open("camera", 70, 80, 80, 0), "pause");
        first.await("open camera 0", 20);
        SystemRig.signal(daemon, "KILL");
        daemon.awaitExit(20);
        first.close();
        rig.daemon(options);
        assertTrue(rig.status().path("admission").path("tasks").get(0).path("kept").asBoolean());
        // the same user gets it back, and while it is open no other user gets it
        final Child again = client("again", TaskClient.open("camera", 70, 80, 80, 0), "pause");
        assertEquals("open camera 0", again.await("open camera", 20).strip());
        final Child other = client("other", TaskClient.open("camera", 70, 80, 80, 0));
        assertTrue(other.await("open camera", 20).contains("is open in process " + again.pid()));
        assertEquals(0, other.awaitExit(20));
        rig.without("admission-grace: 600s").with("admission-grace: 100ms");
        SystemRig.signal(again, "STOP");   // or its library would take the place again by itself
        final Child next = rig.nextDaemon(options);
        SystemRig.await("the place is given up", 20_000,
            () -> rig.status().path("admission").path("tasks").isEmpty());
        assertEquals(1, rig.status().path("admission").path("dropped").asInt());
        assertFalse(Files.readString(rig.directory().admitted()).contains("camera"));
        assertTrue(next.isAlive());
    }

    @Test
    void shouldAnalyseATaskThatIsNotInTheFileByItsBudget() throws Exception {
        final Path file = fits();
        rig.gpu();
        rig.daemon("--admission", "enforce", "--taskset", file.toString());
        assertEquals("open camera 0", open("camera", 70, 80, 80, 0));
        assertEquals("open guest 0", open("guest", 50, 200, 0, 3));
        final String greedy = open("greedy", 99, 100, 0, 90);
        assertTrue(greedy.contains("-4000") && greedy.contains("makes \"") && greedy.contains("% of its GPU time"),
            greedy);
        final String vague = open("vague", 50, 200, 0, 0);
        assertTrue(vague.contains("budget 0ns") && vague.contains("declare it"), vague);
        assertEquals("open worker 0", open("worker", 0, 0, 0, 0));
    }

    /** The hardware preempts no task for another one of its process; the bounds contain that wait for declared ones. */
    @Test
    void shouldAdmitDeclaredTasksOfOneProcessAndRefuseAGuestBesideThem() throws Exception {
        final Path file = fits();
        rig.gpu();
        rig.daemon("--admission", "enforce", "--taskset", file.toString());
        final Child client = client("app", TaskClient.open("camera", 70, 80, 80, 0),
            TaskClient.open("lidar", 60, 100, 60, 0), TaskClient.open("guest", 30, 1_000, 1_000, 1), "pause");
        assertEquals("open camera 0", client.await("open camera", 20).strip());
        assertEquals("open lidar 0", client.await("open lidar", 20).strip());
        final String refusal = client.await("open guest", 20);
        assertTrue(refusal.contains("-4000") && refusal.contains("both open in process " + client.pid()), refusal);
        assertTrue(rig.status().path("admission").path("proven").asBoolean());
    }

    @Test
    void shouldWarnAndOpenAllTheSameWhereItOnlyWarns() throws Exception {
        final Path file = fails();
        rig.gpu();
        final Child daemon = rig.daemon("--admission", "warn", "--taskset", file.toString());
        assertEquals("open camera 0", open("camera", 70, 80, 80, 0));
        assertEquals("open lidar 0", open("lidar", 60, 100, 60, 0));
        final JsonNode admission = rig.status().path("admission");
        assertFalse(admission.path("proven").asBoolean());
        assertEquals(1, admission.path("warned").asInt());
        SystemRig.await("the daemon's log says so", 20_000, () -> daemon.said().contains("lidar"));
    }

    @Test
    void shouldRefuseHintsAndPoliciesThatBreakWhatWasProven() throws Exception {
        final Path file = fits();
        rig.gpu();
        rig.daemon("--admission", "enforce", "--taskset", file.toString());
        final String dir = rig.directory().root().toString();
        assertEquals("open camera 0", open("camera", 70, 80, 80, 0));
        assertEquals("open lidar 0", open("lidar", 60, 100, 60, 0));
        assertEquals("open guest 0", open("guest", 50, 90, 0, 28));
        final StringOutput set = StringOutput.of("policy", "--dir", dir, "--set", "rr");
        assertEquals(ExitCode.FAILURE, set.status());
        assertTrue(set.text().contains("no sound analysis"), set.text());
        final StringOutput rule = StringOutput.of("set", "--dir", dir, "guest", "--overrun", "notify");
        assertEquals(ExitCode.FAILURE, rule.status());
        assertTrue(rule.text().contains("its budget bounds nothing"), rule.text());
        assertEquals("fp", rig.status().path("policy").asText());
        final StringOutput high = StringOutput.of("set", "--dir", dir, "guest", "--priority", "90");
        assertEquals(ExitCode.FAILURE, high.status(), high.text());
        assertTrue(high.text().contains("bound") && high.text().contains("deadline"), high.text());
        assertEquals(ExitCode.OK, StringOutput.of("set", "--dir", dir, "lidar", "--priority", "61").status());
        assertEquals(61, rig.status().path("tasks").get(1).path("priority").asInt());
    }

    @Test
    void shouldIgnoreSavedSettingsThatAdmissionRefuses() throws Exception {
        final Path file = fits();
        Files.writeString(rig.file("policy.json"), "{\"version\": 1, \"policy\": \"rr\"}");
        rig.gpu();
        final Child daemon = rig.daemon("--admission", "enforce", "--taskset", file.toString());
        SystemRig.await("it says so", 20_000, () -> daemon.said().contains("saved policy settings are ignored")
            && daemon.said().contains("policy rr has no sound analysis"));
        assertEquals("fp", rig.status().path("policy").asText());
        assertEquals("fp", rig.status().path("admission").path("policy").asText());
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.rta.TurnSlices;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A real daemon with mechanism nvidia on the RM stand-in, its watchdog, and the bench's programs as applications. */
@Timeout(240)
@Tag("beside")
class NvidiaSystemTest {
    private static final int START_LIMIT_S = 120;
    private static final int LIMIT_MS = 30_000;
    private static final String MPS_PIPE = "CUDA_MPS_PIPE_DIRECTORY";
    private static final int OWN_US = 2048;
    /** Of the highest real-time task, and of best effort beside it. */
    private static final int TASK_US = 1_000_000;
    private static final int OTHERS_US = 100;
    private static final int TURNS = 10;
    /** Of the page of gpuseg-rm-app: makes its second context, and counts there. */
    private static final int SECOND_CONTEXT_AT = 12;
    private static final int SECOND_KERNELS_AT = 56;
    private static final int SEGMENTS = 400;
    /** Longer than many kernels of a best-effort process. */
    private static final int QUIET_MS = 300;
    private static final int STOP = 19;
    private static final int CONT = 18;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path BUILD =
        Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native", "build").toAbsolutePath();
    private static final Path FAKE = BUILD.resolve("libgpuseg-rm-fake.so");
    private static final Path CAPTURE = BUILD.resolve("libgpuseg-preload.so");

    private final List<Child> children = new ArrayList<>();
    private Path root;
    private Process standin;

    @BeforeEach
    void start() throws IOException {
        assumeTrue(Files.exists(FAKE) && Files.exists(BUILD.resolve("standin/gpuseg-bench-rt")),
            "the stand-ins are not built: make -C rt-scheduler/native");
        root = Files.createTempDirectory(Path.of("/dev/shm"), "gpuseg-test-nvidia-");
        standin = new ProcessBuilder(BUILD.resolve("gpuseg-rm-standin").toString(), socket(), "0", "2")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        assertEquals("ready", standin.inputReader().readLine());
        for (final String gpu : List.of("0000:06:00.0", "0000:07:00.0")) {
            Files.createDirectories(root.resolve("gpus").resolve(gpu));
        }
        final Path watchdog = Files.createDirectory(root.resolve("programs")).resolve("gpuseg-watchdog");
        Files.writeString(watchdog, "#!/bin/sh\nLD_PRELOAD='" + FAKE + "' exec " + BUILD.resolve("gpuseg-watchdog")
            + " \"$@\"\n");
        Files.setPosixFilePermissions(watchdog, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    @AfterEach
    void stop() throws InterruptedException {
        for (int i = children.size() - 1; i >= 0; i--) {
            children.get(i).close();
        }
        if (standin != null) {
            standin.destroyForcibly().waitFor();
        }
        if (root != null) {
            RuntimeDirectory.deleteTree(root);
        }
    }

    private String socket() {
        return root.resolve("rm.sock").toString();
    }

    private RuntimeDirectory directory() {
        return RuntimeDirectory.resolve(root.resolve("run").toString());
    }

    private Child daemon(final String... options) throws InterruptedException {
        return daemon(List.of(), options);
    }

    private Child daemon(final List<String> before, final String... options) throws InterruptedException {
        return start(before, List.of("--mechanism", "nvidia"), options);
    }

    private Child start(final List<String> before, final List<String> kind, final String... options)
        throws InterruptedException {
        final List<String> arguments = new ArrayList<>(List.of("--dir", directory().root().toString()));
        arguments.addAll(kind);
        arguments.addAll(DaemonSettings.write(root.resolve("settings.yaml"), "warm-up: false"));
        arguments.addAll(List.of(options));
        final List<String> java = JavaCommand.daemon(arguments);
        java.addAll(1, List.of("-Dgpuseg.programs=" + root.resolve("programs"), "-Dgpuseg.nvidia.library=" + FAKE,
            "-Dgpuseg.nvidia.gpus=" + root.resolve("gpus")));
        final List<String> command = new ArrayList<>(before);
        command.addAll(List.of("env", "GPUSEG_RM_STANDIN=" + socket()));
        command.addAll(java);
        final Child daemon = Child.start("daemon", command, root.resolve("daemon.err"));
        children.add(daemon);
        daemon.await("ready", START_LIMIT_S);
        return daemon;
    }

    /** A process and the page in which it counts. */
    private record App(Child child, MappedByteBuffer page) {
        long kernels() {
            return page.getLong(16);
        }

        long wrong() {
            return page.getLong(24);
        }
    }

    private App app(final Path program, final String... arguments) throws IOException {
        return app("", program, arguments);
    }

    /** Of the MPS server with this pipe directory; empty = none is named. */
    private App app(final String pipe, final Path program, final String... arguments) throws IOException {
        final Path file = Files.createTempFile(root, "page", "");
        Files.write(file, new byte[4096]);
        final List<String> command = new ArrayList<>(List.of("env"));
        command.addAll(pipe.isEmpty() ? List.of("-u", MPS_PIPE) : List.of(MPS_PIPE + "=" + pipe));
        command.addAll(List.of("GPUSEG_RM_STANDIN=" + socket(), "GPUSEG_DIR=" + directory().root(),
            "LD_PRELOAD=" + CAPTURE + " " + FAKE, program.toString()));
        for (final String argument : arguments) {
            command.add("PAGE".equals(argument) ? file.toString() : argument);
        }
        final MappedByteBuffer page;
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            page = channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096);
        }
        page.order(ByteOrder.LITTLE_ENDIAN);
        final App app = new App(Child.start("application", command, root.resolve("app.err")), page);
        children.add(app.child());
        return app;
    }

    /** A real-time task with segments of 5 ms. */
    private App realTime(final int priority, final int gpu) throws IOException {
        return realTime("", priority, gpu);
    }

    private App realTime(final String pipe, final int priority, final int gpu) throws IOException {
        return realTime(pipe, priority, gpu, "camera");
    }

    private App realTime(final String pipe, final int priority, final int gpu, final String name) throws IOException {
        return app(pipe, BUILD.resolve("standin/gpuseg-bench-rt"), "--mode", "segment", "--kernel-ms", "5", "--per",
            "1", "--jobs", "100000", "--pause-ms", "2", "--priority", Integer.toString(priority), "--own-page", "PAGE",
            "--gpu", Integer.toString(gpu), "--name", name);
    }

    /** A task that is open and begins nothing for a minute. */
    private App idle(final String priority, final String... options) throws IOException {
        final List<String> words = new ArrayList<>(List.of("--mode", "segment", "--kernel-ms", "5", "--per", "1",
            "--jobs", "100", "--pause-ms", "60000", "--priority", priority, "--name", "camera"));
        words.addAll(List.of(options));
        return app(BUILD.resolve("standin/gpuseg-bench-rt"), words.toArray(new String[0]));
    }

    private App bestEffort(final Path program) throws IOException {
        return app(program, "PAGE", "2", "1", "600");
    }

    /**
     * A tool that looks at a process has its descriptors, too. It is not taken for another process with the same work
     * if the daemon knows whose they are.
     */
    private void awaitChannels(final App app) throws Exception {
        await("its channels are known", () -> context(0, app).path("units").asInt() == 8);
    }

    /** A best-effort process whose channels the daemon knows. */
    private App knownStranger() throws Exception {
        final App stranger = bestEffort(BUILD.resolve("standin/gpuseg-bench-be"));
        awaitChannels(stranger);
        return stranger;
    }

    private static void await(final String what, final Condition condition) throws Exception {
        final long limitNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT_MS);
        while (!condition.holds()) {
            if (System.nanoTime() - limitNs > 0) {
                throw new AssertionError("not within " + LIMIT_MS + " ms: " + what);
            }
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    /** Something that becomes true. */
    private interface Condition {
        boolean holds() throws Exception;
    }

    /** Time slice of the process's compute work, 0 if it has none. */
    private long timesliceUs(final App app) throws Exception {
        final ProcessBuilder tool = new ProcessBuilder(BUILD.resolve("gpuseg-rm").toString(), "list",
            Long.toString(app.child().pid()));
        tool.environment().put("GPUSEG_RM_STANDIN", socket());
        tool.environment().put("LD_PRELOAD", FAKE.toString());
        final Process list = tool.start();
        final String line = list.inputReader().readLine();
        list.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS);
        if (line == null) {
            return 0;   // it has not opened the driver yet
        }
        final JsonNode said = JSON.readTree(line);
        for (final JsonNode tsg : said.path("tsgs")) {
            if (tsg.path("gr0").asBoolean()) {
                return tsg.path("timeslice_us").asLong();
            }
        }
        return 0;
    }

    private int notedSlices() {
        try (HeldFile held = HeldFile.openOrCreate(directory().held())) {
            return held.timeslices();
        }
    }

    private JsonNode status() {
        return AdminClient.ask(directory(), AdminClient.command("status"));
    }

    private JsonNode context(final int gpu, final App app) {
        for (final JsonNode context : status().path("gpus").path(gpu).path("contexts")) {
            if (context.path("pid").asLong() == app.child().pid()) {
                return context;
            }
        }
        return com.fasterxml.jackson.databind.node.MissingNode.getInstance();
    }

    @Test
    @Tag("long")
    void shouldGiveSharesBackAfterAKillOfTheDaemon() throws Exception {
        final Path rules = root.resolve("policy.yaml");
        Files.writeString(rules, "version: 1\nsharing: timeslices\nquantum: 1ms\n");
        final Child daemon = daemon("--policy-file", rules.toString());
        final App stranger = bestEffort(BUILD.resolve("standin/gpuseg-bench-be"));
        final App task = idle("0");
        await("the task is open", () -> status().path("tasks").size() == 1);
        awaitChannels(task);
        awaitChannels(stranger);
        assertEquals(ExitCode.OK, StringOutput.of("set", "--dir", directory().root().toString(), "camera",
            "--weight", "400").status());
        await("the task has its share", () -> timesliceUs(task) == 4_000);
        await("so has the process that never registered", () -> timesliceUs(stranger) == 1_000);
        SystemRig.signal(daemon, "KILL");
        await("both have their own again", () -> timesliceUs(task) == OWN_US && timesliceUs(stranger) == OWN_US);
        await("and that is forgotten", () -> notedSlices() == 0);
    }

    @Test
    void shouldLetBestEffortTakeTurnsBesideARealTimeTaskAndGiveAllBackAfterAKill() throws Exception {
        final Child daemon = daemon();
        final App first = knownStranger();
        final App second = knownStranger();
        assertEquals(OWN_US, timesliceUs(first), "without a real-time task nothing is changed");
        final App task = idle("70");
        await("the task has a long slice", () -> timesliceUs(task) == TASK_US);
        await("the others have short ones", () -> timesliceUs(first) == OTHERS_US && timesliceUs(second) == OTHERS_US);
        final long before = counter("disables");
        final long kernels = Math.min(first.kernels(), second.kernels());
        await("they take turns", () -> counter("disables") >= before + TURNS
            && Math.min(first.kernels(), second.kernels()) > kernels + TURNS);
        SystemRig.signal(daemon, "KILL");
        await("all have their own slices again", () -> timesliceUs(task) == OWN_US && timesliceUs(first) == OWN_US
            && timesliceUs(second) == OWN_US);
        await("and nothing is noted", () -> notedSlices() == 0);
        final long[] left = {first.kernels(), second.kernels()};
        await("both work", () -> first.kernels() > left[0] && second.kernels() > left[1]);
        assertEquals(0, first.wrong() + second.wrong());
    }

    private int disables(final int gpu) {
        final AtomicInteger found = new AtomicInteger();
        JournalReader.forEach(directory().journal(), event -> found.addAndGet(
            event.kind() == EventKind.DISABLE && event.gpu() == gpu ? 1 : 0));
        return found.get();
    }

    @Test
    @Tag("long")
    void shouldLetBestEffortTakeTurnsOnEachGpuByItself() throws Exception {
        daemon("--gpus", "2");
        final List<App> apps = new ArrayList<>();
        for (int i = 0; i < 2 * 2; i++) {
            final int gpu = i / 2;
            final App app = app(BUILD.resolve("standin/gpuseg-bench-be"), "PAGE", "2", "1", "600",
                Integer.toString(gpu));
            await("its channels are known", () -> context(gpu, app).path("units").asInt() == 8);
            apps.add(app);
        }
        idle("70", "--gpu", "1");
        await("those of GPU 1 take turns", () -> disables(1) > TURNS);
        assertEquals(OWN_US, timesliceUs(apps.get(0)), "no real-time task is open on GPU 0");
        assertEquals(0, disables(0));
        idle("70");
        await("those of GPU 0 as well", () -> disables(0) > TURNS);
        for (final App app : apps) {
            await("it has a short slice", () -> timesliceUs(app) == OTHERS_US);
            final long before = app.kernels();
            await("it works", () -> app.kernels() > before + TURNS);
        }
        final App both = app(BUILD.resolve("gpuseg-rm-app"), "PAGE", "2", "gpus");
        both.page().putInt(SECOND_CONTEXT_AT, 1);
        await("it is on both", () -> context(0, both).path("units").asInt() > 0
            && context(1, both).path("units").asInt() > 0);
        final long before = both.kernels();
        final long second = both.page().getLong(SECOND_KERNELS_AT);
        await("it works on both", () -> both.kernels() > before + TURNS
            && both.page().getLong(SECOND_KERNELS_AT) > second + TURNS);
        assertEquals(0, apps.stream().mapToLong(App::wrong).sum() + both.wrong());
    }

    /** A loop with a part of the space. */
    private Child loop() {
        final Child loop = Child.start("loop", List.of("env", "-u", MPS_PIPE, "GPUSEG_DIR=" + directory().root(),
            "GPUSEG_CUPTI=" + NativePrograms.ofClientLibrary("tests/cuda/libcupti.so.13"),
            NativePrograms.ofClientLibrary("gpuseg-exec").toString(), "--priority", "90", "--reserve", "10%", "--name",
            "loop", "--", NativePrograms.ofClientLibrary("tests/cuda/inject_app").toString(), "without-end"),
            root.resolve("loop.err"));
        children.add(loop);
        return loop;
    }

    private static boolean isWorking(final App app) throws InterruptedException {
        final long before = app.kernels();
        TimeUnit.MILLISECONDS.sleep(QUIET_MS);
        return app.kernels() > before;
    }

    @Test
    @Tag("long")
    void shouldDisableProgramsOutsideOfASpaceWhileALoopHasAPartOfIt() throws Exception {
        final Child daemon = start(List.of("env", "-u", MPS_PIPE, "PATH=" + SpaceRig.STAND_IN + ":"
            + System.getenv("PATH")), List.of("--space"));
        final App first = knownStranger();
        assertTrue(isWorking(first), "nobody has a part");
        final Child loop = loop();
        await("it has no turns beside the loop", () -> !isWorking(first));
        final App second = knownStranger();
        await("nor has who comes later", () -> !isWorking(second));
        SystemRig.signal(loop, "TERM");
        await("both work again", () -> isWorking(first) && isWorking(second));
        loop();
        await("another loop", () -> !isWorking(first) && !isWorking(second));
        SystemRig.signal(daemon, "KILL");
        await("the watchdog enables them", () -> isWorking(first) && isWorking(second));
        assertEquals(0, first.wrong() + second.wrong());
        final DecisionReplay.Result replayed = DecisionReplay.of(Source.open(directory().journal()));
        assertTrue(replayed.agrees(), replayed.toString());
    }

    @Test
    @Tag("long")
    void shouldDecideTheSameInAReplayOfSegmentsBesideTurns() throws Exception {
        final Child daemon = daemon();
        final App first = knownStranger();
        final App second = knownStranger();
        final App task = realTime(70, 0);
        await("both ways were tried", () -> task.kernels() > SEGMENTS);
        endWithTheSameDecisionsInAReplay(daemon, first, second, task);
    }

    /** A task set whose updates of 60 ms prove nothing. */
    private Path declared(final String ofTurns, final String tasks) throws IOException {
        return Files.writeString(root.resolve("set.yaml"), "version: 1\nid: robot\nplatform: {cpus: 2, epsilon: 60ms, "
            + "theta: 300us, optimistic: true, clock: 1, newcomers: none, turns: {slice: 100us, contexts: 2" + ofTurns
            + "}}\ntasks:\n" + tasks);
    }

    private void endWithTheSameDecisionsInAReplay(final Child daemon, final App... apps) throws Exception {
        daemon.terminate();
        daemon.awaitExit(START_LIMIT_S);
        final DecisionReplay.Result replayed = DecisionReplay.of(Source.open(directory().journal()));
        assertTrue(replayed.agrees(), replayed.toString());
        for (final App app : apps) {
            assertEquals(0, app.wrong());
        }
    }

    /** An update of 60 ms proves nothing of the set, so it runs by turns; both ways of begins are tried there, too. */
    @Test
    void shouldTakeTurnsWhereAdmissionProvesThemAndDecideTheSameInAReplay() throws Exception {
        final Path set = declared("", """
              - {name: camera, cpu: 1, period: 100ms, priority: 70, segments: [{gpu: {host: 1ms, device: 6ms}}]}
            """);
        final Child daemon = daemon("--gpus", "1", "--admission", "enforce", "--taskset", set.toString());
        final App first = knownStranger();
        final App second = knownStranger();
        assertEquals("calls", status().path("admission").path("begins").asText());
        final App task = realTime(70, 0);
        await("the task is admitted", () -> status().path("tasks").size() == 1);
        assertEquals("turns", status().path("admission").path("begins").asText(), () -> "" + status());
        assertEquals("turns-suspend (epsilon 60ms, theta 300us, turns of 100us with 2 met)",
            status().path("admission").path("constants").asText());
        await("all have the slices of the proof", () -> timesliceUs(task) == TASK_US
            && timesliceUs(first) == OTHERS_US && timesliceUs(second) == OTHERS_US);
        await("both ways were tried", () -> task.kernels() > SEGMENTS / 4);
        endWithTheSameDecisionsInAReplay(daemon, first, second, task);
    }

    /** Tasks that share the GPU by the slices of the proof: no call disables one for another. */
    @Test
    void shouldRunTogetherWhatAdmissionProvesTogether() throws Exception {
        final Path set = declared(", together: true", """
              - {name: camera, cpu: 1, period: 100ms, deadline: 40ms, priority: 70,
                 segments: [{gpu: {host: 1ms, device: 6ms}}]}
              - {name: plan, cpu: 2, period: 200ms, priority: 60, segments: [{gpu: {host: 1ms, device: 30ms}}]}
            """);
        final long planUs = TurnSlices.of(new TaskSetReader().read(set))[1] / 1000;
        assertTrue(planUs > 1000 && planUs < 30_000, planUs + " us");
        final Path rules = Files.writeString(root.resolve("policy.yaml"), "version: 1\npolicy: classes\nclass_width: "
            + "99\n");
        final Child daemon = daemon("--gpus", "1", "--admission", "enforce", "--taskset", set.toString(),
            "--policy-file", rules.toString());
        final App other = knownStranger();
        final App plan = realTime("", 60, 0, "plan");
        final App camera = realTime(70, 0);
        await("both are admitted", () -> status().path("tasks").size() == 2);
        final JsonNode admission = status().path("admission");
        assertEquals("turns true", admission.path("begins").asText() + " " + admission.path("proven").asText(),
            admission::toString);
        await("all have the slices of the proof", () -> timesliceUs(camera) == TASK_US && timesliceUs(plan) == planUs
            && timesliceUs(other) == OTHERS_US);
        final long ofPlan = plan.kernels();
        final long ofCamera = camera.kernels();
        await("both work", () -> plan.kernels() > ofPlan + TURNS && camera.kernels() > ofCamera + TURNS);
        endWithTheSameDecisionsInAReplay(daemon, other, plan, camera);
    }

    @Test
    void shouldSetSlicesByRank() throws Exception {
        daemon();
        final App low = realTime(40, 0);
        awaitChannels(low);
        final App high = realTime(80, 0);
        awaitChannels(high);
        await("slices go by rank", () -> timesliceUs(low) == 250 && timesliceUs(high) == 1_000_000);
        final long ofLow = low.kernels();
        final long ofHigh = high.kernels();
        await("both work", () -> low.kernels() > ofLow + TURNS && high.kernels() > ofHigh + TURNS);
        assertEquals(0, low.wrong() + high.wrong());
    }

    @Test
    void shouldGiveTimeSlicesBackWhenTheDaemonStops() throws Exception {
        final Path rules = root.resolve("policy.yaml");
        Files.writeString(rules, "version: 1\nsharing: timeslices\nquantum: 1ms\n"
            + "tasks: [{task: camera, weight: 400}]\n");
        final Child daemon = daemon("--policy-file", rules.toString());
        final App task = idle("0");
        awaitChannels(task);
        await("the slice is set", () -> timesliceUs(task) == 4_000);
        SystemRig.signal(daemon, "TERM");
        assertEquals(0, daemon.awaitExit(START_LIMIT_S), daemon.said());
        assertEquals(OWN_US, timesliceUs(task));
        assertEquals(0, notedSlices(), daemon::said);
    }

    private int held() {
        try (HeldFile held = HeldFile.openOrCreate(directory().held())) {
            return held.count();
        }
    }

    /** The driver answers no call until the test lets it. */
    private int stopWhileACallHangs(final Child daemon) throws Exception {
        realTime(60, 0);
        awaitChannels(bestEffort(BUILD.resolve("standin/gpuseg-bench-be")));
        await("something is disabled", () -> held() > 0);
        ProcessStatus.signal((int) standin.pid(), STOP);
        TimeUnit.MILLISECONDS.sleep(100);   // a call begins
        SystemRig.signal(daemon, "TERM");
        final int status = daemon.awaitExit(START_LIMIT_S);
        ProcessStatus.signal((int) standin.pid(), CONT);
        return status;
    }

    @Test
    @Tag("long")
    void shouldEndAndSaySoWhenACallOfTheDriverDoesNotReturn() throws Exception {
        final Child daemon = daemon();
        assertEquals(ExitCode.FAILURE, stopWhileACallHangs(daemon), daemon.said());
        assertTrue(daemon.said().contains("stopped, but gpuseg-enforcer-0 did not end within 3 s"), daemon.said());
        await("the watchdog enables what was left", () -> held() == 0);
    }

    /** What is said at the end waits for nobody, in the daemon and in the watchdog. */
    @Test
    @Tag("long")
    void shouldEndWhenACallOfTheDriverDoesNotReturnAndNobodyReadsItsErrors() throws Exception {
        final Path pipe = root.resolve("errors");
        final Child daemon = daemon(List.of("sh", "-c", "mkfifo \"$0\" && exec 2<> \"$0\" && exec \"$@\"",
            pipe.toString()));
        final Process fill = new ProcessBuilder("dd", "if=/dev/zero", "of=" + pipe, "oflag=nonblock", "bs=1024",
            "count=2048").redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        assertEquals(1, fill.waitFor(), "the pipe takes no more");
        assertEquals(ExitCode.FAILURE, stopWhileACallHangs(daemon));
        await("the watchdog enables what was left", () -> held() == 0);
    }

    @Test
    void shouldHaveNothingNotedOfAProcessThatEndsAsTheDaemonStops() throws Exception {
        final Path rules = root.resolve("policy.yaml");
        Files.writeString(rules, "version: 1\nsharing: timeslices\nquantum: 1ms\n"
            + "tasks: [{task: camera, weight: 400}]\n");
        final Child daemon = daemon("--policy-file", rules.toString());
        final App stranger = bestEffort(BUILD.resolve("standin/gpuseg-bench-be"));
        final App task = idle("0");
        awaitChannels(task);
        await("the slice is set", () -> timesliceUs(task) == 4_000);
        awaitChannels(stranger);
        await("so is that of the process that never registered", () -> timesliceUs(stranger) == 1_000);
        SystemRig.signal(daemon, "STOP");   // it learns of the end and of its own at the same time
        stranger.child().close();
        SystemRig.signal(daemon, "TERM");
        SystemRig.signal(daemon, "CONT");
        assertEquals(0, daemon.awaitExit(START_LIMIT_S), daemon.said());
        assertEquals(OWN_US, timesliceUs(task));
        assertEquals(0, notedSlices(), daemon::said);
    }

    @Test
    void shouldKnowTheGpuOfEachProcessAndHoldEachGpuForItsOwnTask() throws Exception {
        daemon("--gpus", "2");
        final App camera = realTime(80, 1);
        await("it has segments", () -> camera.kernels() > 2);
        await("its channels are known, on GPU 1 only",
            () -> context(1, camera).path("units").asInt() == 8 && context(0, camera).path("units").asInt() == 0);
        assertEquals(1, status().path("tasks").get(0).path("gpu").asInt());
        final App other = bestEffort(BUILD.resolve("standin/gpuseg-bench-be"));
        await("the other process is found on GPU 0", () -> context(0, other).path("units").asInt() == 8);
        final long before = other.kernels();
        await("it works", () -> other.kernels() > before + 3);
        await("segments go on", () -> camera.kernels() > 10);
        assertEquals(0, camera.wrong() + other.wrong());
    }

    /** Its pipe directory, too. */
    private App mpsServer(final String pipe) throws Exception {
        Files.createDirectories(Path.of(pipe));
        final Path program = root.resolve("nvidia-cuda-mps-server");
        Files.copy(BUILD.resolve("gpuseg-rm-app"), program);
        final App server = app(pipe, program, "PAGE", "2");
        await("the server is known", () -> remark(server).startsWith("MPS server: it is disabled"));
        return server;
    }

    @Test
    @Tag("long")
    void shouldTakeAnMpsServerAndItsClientsOffForTasksThatAreNoClients() throws Exception {
        daemon();
        final String pipe = root.resolve("mps").toString();
        final App server = mpsServer(pipe);
        final App client = app(pipe, BUILD.resolve("gpuseg-rm-app"), "PAGE", "2");
        await("the client is known", () -> context(0, client).path("units").asInt() == 2);
        final App camera = realTime(80, 0);
        await("it has segments", () -> camera.kernels() > 20);
        await("segments disable them", () -> counter("disables") > 2);
        final App old = app(pipe, BUILD.resolve("gpuseg-rm-app"), "PAGE", "2", "client");
        await("a process without channels and without a task runs", () -> old.page().getInt(4) == 1);
        final long before = client.kernels();
        await("the client works between segments", () -> client.kernels() > before + 2);
        assertFalse(remark(server).contains("stays enabled"));
        assertEquals("", remark(client));
        assertEquals(0, camera.wrong() + server.wrong() + client.wrong());
    }

    @Test
    void shouldLetATaskThatIsAnMpsClientWorkAndSayWhoStaysOnForIt() throws Exception {
        daemon();
        final String pipe = root.resolve("mps").toString();
        final App server = mpsServer(pipe);
        final App client = app(pipe, BUILD.resolve("gpuseg-rm-app"), "PAGE", "2");
        await("the client is known", () -> context(0, client).path("units").asInt() == 2);
        final App unrelated = bestEffort(BUILD.resolve("standin/gpuseg-bench-be"));
        await("the other process is known", () -> context(0, unrelated).path("units").asInt() == 8);
        final App camera = realTime(pipe, 80, 0);
        await("it has segments", () -> camera.kernels() > 20);
        final String why = "it stays enabled, because pid " + camera.child().pid() + " is registered";
        await("the server stays enabled", () -> remark(server).contains(why));
        await("so does the client", () -> remark(client).contains(why));
        assertEquals("", remark(unrelated));
        await("that is counted", () -> counter("mechanism_errors") > 0);
        await("and shown", () -> status().path("gpus").path(0).path("enforcement_incomplete").asBoolean());
        final long off = counter("disables");
        await("an unrelated process is disabled", () -> counter("disables") > off + 2);
        final long before = client.kernels();
        await("the client works", () -> client.kernels() > before + 5);
        camera.child().close();
        await("the server is disabled again", () -> remark(server).startsWith("MPS server: it is disabled"));
        assertEquals(0, camera.wrong() + server.wrong() + client.wrong() + unrelated.wrong());
    }

    private String remark(final App app) {
        return context(0, app).path("remark").asText();
    }

    private long counter(final String label) {
        for (final JsonNode counter : status().path("counters")) {
            if (label.equals(counter.path("label").asText())) {
                return counter.path("value").asLong();
            }
        }
        throw new IllegalArgumentException("no counter " + label);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.amd.AmdRig.App;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * {@code gpuseg calibrate --mechanism amd} on the stand-in of KFD, whose changes take a time that the test sets: what
 * is found must be at least that. No AMD hardware, and none of these times is one.
 */
@Timeout(600)
@Tag("long")
class AmdCalibrateTest {
    private static final int CHANGE_US = 3_000;
    private static final long CHANGE_NS = CHANGE_US * 1_000L;
    private static final int JOBS = 20;
    private static final int PATIENT_MS = 60_000;
    private static final int TERM = 15;
    private static final int KILL = 9;

    @TempDir
    private Path directory;
    private AmdRig rig;
    private final List<Process> started = new ArrayList<>();

    @BeforeEach
    void start() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "tracing other processes needs root here");
        rig = new AmdRig(directory);
        System.setProperty(AmdSysfs.ROOT_PROPERTY, directory.toString());
    }

    @AfterEach
    void stop() throws Exception {
        System.clearProperty(AmdSysfs.ROOT_PROPERTY);
        for (final Process p : started) {
            p.destroyForcibly().waitFor();
        }
        if (rig != null) {
            rig.close();
            assertEquals(0, rig.table.getInt(AmdRig.FOREIGN), "an ioctl that is not in the table reached the driver");
        }
    }

    private Process program(final String... arguments) throws Exception {
        final Process process = rig.gpuseg(PATIENT_MS, directory.resolve("out"), arguments);
        started.add(process);
        return process;
    }

    private String output(final int status, final String... arguments) throws Exception {
        final Process process = program(arguments);
        assertTrue(process.waitFor(4 * AmdRig.LIMIT_MS, TimeUnit.MILLISECONDS), "it does not end");
        final String out = AmdRig.read(directory.resolve("out"));
        assertEquals(status, process.exitValue(), out + AmdRig.read(AmdRig.errors(directory.resolve("out"))));
        return out;
    }

    private JsonNode calibrate(final String... more) throws Exception {
        final List<String> command = new ArrayList<>(List.of("calibrate", "--mechanism", "amd", "--jobs",
            Integer.toString(JOBS), "--json", "--out", directory.resolve("card.yaml").toString()));
        command.addAll(List.of(more));
        return new ObjectMapper().readTree(output(0, command.toArray(String[]::new)));
    }

    private Path taskSet(final String platform) throws Exception {
        final Path file = directory.resolve("set.yaml");
        Files.writeString(file, "version: 1\nid: x\nplatform: " + platform + "\ntasks:\n  - {name: a, cpu: 1, period: "
            + "1000s, priority: 5, segments: [{gpu: {host: 1ms, device: 2ms}}]}\n");
        return file;
    }

    private Gpu gpu(final String platform) throws Exception {
        return new TaskSetReader().read(taskSet(platform)).platform().gpus().get(0);
    }

    /** Two processes with one and three queues are switched; a third one is left alone. */
    @ParameterizedTest
    @ValueSource(ints = {AmdRig.MODE_NO_HWS, AmdRig.MODE_HWS, AmdRig.MODE_MES})
    void shouldFindWhatAChangeTakesAndWriteAProfileThatAnalyzeTakes(final int mode) throws Exception {
        rig.delay(mode, CHANGE_US);
        final boolean everybodyPays = mode == AmdRig.MODE_HWS;
        final App one = rig.start(1);
        final App three = rig.start(3);
        final App untouched = rig.start(1);
        final JsonNode found = calibrate("--pid", one.pid() + "," + three.pid(), "--witness", untouched.file() + ":16");
        assertEquals(everybodyPays ? "hws" : mode == AmdRig.MODE_MES ? "mes" : "no-hws", found.path("mode").asText());
        assertEquals("kfd", found.path("interface").asText());
        assertTrue(found.path("simulated").asBoolean(), found.toString());
        assertEquals(2, found.path("processes").asInt());
        assertEquals(4, found.path("queues").asInt());

        // lower limits are exact: nothing is ever faster than the stand-in's own wait
        assertTrue(found.path("change_ns").asLong() >= CHANGE_NS, found.toString());
        for (final JsonNode cell : found.path("changes")) {
            final int units = everybodyPays ? 1 : cell.path("queues").asInt();
            assertEquals(units, cell.path("units").asInt(), cell.toString());
            for (final String figure : List.of("hold_ns", "release_ns", "kernel_took_ns", "kernel_last_ns")) {
                assertTrue(cell.path(figure).path("p50").asLong() >= units * CHANGE_NS, figure + " of " + cell);
                assertTrue(cell.path(figure).path("n").asInt() >= JOBS, figure + " of " + cell);
            }
            assertEquals(everybodyPays ? 2 * JOBS : 0, cell.path("runlists").asInt(), cell.toString());
        }
        assertEquals(3, found.path("changes").size(), "each alone, both");
        final long both = (everybodyPays ? 1 : 4) * CHANGE_NS;
        assertTrue(found.path("kernel_max_since_boot_ns").asLong() >= both, found.toString());
        assertTrue(found.path("epsilon_ns").asLong() >= both, found.toString());
        assertTrue(found.path("alpha_ns").asLong() >= both, found.toString());
        assertTrue(found.path("epsilon_ns").asLong() > found.path("command_ns").asLong(), found.toString());
        assertTrue(found.path("begin_to_return_ns").path("p50").asLong() >= both, found.toString());

        // who was not named stood still while all queues were unmapped, and worked on in the other modes
        final JsonNode witness = found.path("witness");
        final int changes = witness.path("changes").asInt();
        final int wentOn = witness.path("changes_in_which_it_went_on").asInt();
        assertTrue(changes >= 3 * 2 * JOBS, witness.toString());
        assertTrue(everybodyPays ? wentOn <= changes / 2 : wentOn >= changes / 4, witness.toString());
        assertTrue(!everybodyPays || witness.path("still_during_changes_ns").path("p50").asLong() >= CHANGE_NS * 3 / 4,
            witness.toString());
        one.mustAdvance("when all is done");
        three.mustAdvance("when all is done");

        final String text = Files.readString(directory.resolve("card.yaml"));
        assertTrue(text.contains("NO AMD HARDWARE") && text.contains("description: \"SIMULATED"), text);
        for (final String unknown : List.of("theta", "timeslice", "  contexts", "  queues", "  foreign")) {
            assertTrue(text.contains('\n' + unknown + ": unknown"), unknown + " in " + text);
        }
        final String refused = assertThrows(InvalidFileException.class, () -> gpu("card")).getMessage();
        assertTrue(refused.contains("theta is unknown"), refused);
        final String rest = "profile: card, theta: 1ms, timeslice: 5ms, ";
        final Gpu measured = gpu("{" + rest + "amd: {foreign: none}}");
        assertTrue(measured.epsilonNs() >= both && measured.alphaNs() >= both, measured.toString());
        final Gpu more = gpu("{" + rest + "epsilon: unknown, amd: {foreign: 100s, contexts: 5, queues: 3}}");
        assertTrue(more.epsilonNs() >= (everybodyPays ? 2 : 15) * CHANGE_NS, more.toString());
        assertTrue(more.stallNs() >= CHANGE_NS, more.toString());
        final Path set = directory.resolve("set.yaml");
        final AnalysisResult bound = Analyses.get("gcaps-window-suspend").analyse(new TaskSetReader().read(set));
        assertTrue(bound.tasks().get(0).wcrtNs() >= 3_000_000 + more.epsilonNs(), bound.toString());
        if (everybodyPays) {   // a program takes a while to start
            output(0, "analyze", set.toString(), "--analysis", "gcaps-window-suspend");
        }
    }

    @ParameterizedTest
    @EnumSource(value = ControlInterface.class, names = {"AGENT"})
    void shouldFindARunlistAProcessOrQueueWithTheStockDriver(final ControlInterface by) throws Exception {
        rig.delay(AmdRig.MODE_HWS, CHANGE_US);
        only(by);
        final App one = rig.start(1);
        final App three = rig.start(3);
        rig.table.putInt(AmdRig.FAIL, 2);
        final JsonNode found = calibrate();
        assertTrue(found.path("failed_changes").asInt() >= 2, found.toString());
        final String text = Files.readString(directory.resolve("card.yaml"));
        assertTrue(text.contains("changes failed and are not in these numbers") && text.contains("errno 5"), text);
        assertEquals(by.label(), found.path("interface").asText());
        assertEquals(2, found.path("processes").asInt(), "found by themselves");
        for (final JsonNode cell : found.path("changes")) {
            final int units = cell.path(by == ControlInterface.AGENT ? "queues" : "processes").asInt();
            assertEquals(units, cell.path("units").asInt(), cell.toString());
            assertFalse(cell.has("kernel_took_ns"), cell.toString());
        }
        assertTrue(found.path("change_ns").asLong() >= CHANGE_NS, found.toString());
        assertTrue(found.path("epsilon_ns").asLong() >= 2 * CHANGE_NS, found.toString());
        one.mustAdvance("when all is done");
        three.mustAdvance("when all is done");
    }

    private void only(final ControlInterface by) {
        rig.table.putInt(AmdRig.HOLD_ABI, by == ControlInterface.KFD ? 1 : 0);
    }

    private int taken() {
        return rig.table.getInt(AmdRig.HOLDS) + rig.table.getInt(AmdRig.DEACTIVATED);
    }

    /** When it is interrupted or killed, disabled processes are enabled by itself, the kernel or the watchdog. */
    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldEnableAllProcessesWhenInterruptedOrKilled(final ControlInterface by) throws Exception {
        rig.delay(AmdRig.MODE_HWS, 50_000);
        only(by);
        final App app = rig.start(2);
        for (final int signal : new int[] {TERM, KILL}) {
            final int before = taken();
            final Process process = program("calibrate", "--mechanism", "amd", "--jobs", "10000", "--out",
                directory.resolve("never.yaml").toString());
            AmdRig.await("it disables the process", () -> taken() >= before + 2 || !process.isAlive());
            assertTrue(process.isAlive(), "it ended too early");
            ProcessStatus.signal((int) process.pid(), signal);
            assertTrue(process.waitFor(AmdRig.LIMIT_MS, TimeUnit.MILLISECONDS), "it does not end");
            app.mustAdvance("after signal " + signal);
            assertFalse(Files.exists(directory.resolve("never.yaml")));
            removeFilesOf(process.pid());
        }
    }

    /** What one that was killed could not remove itself. */
    private static void removeFilesOf(final long pid) throws Exception {
        try (DirectoryStream<Path> list = Files.newDirectoryStream(Path.of("/dev/shm"),
            "gpuseg-calibrate-" + pid + "-*")) {
            list.forEach(RuntimeDirectory::deleteTree);
        }
    }

    private String refusal(final Integer... pids) throws Exception {
        final Path file = Files.createTempFile(directory, "held", "");
        Files.delete(file);
        try (HeldFile held = HeldFile.openOrCreate(file)) {
            final String text = assertThrows(MechanismException.class,
                () -> new AmdGauge(0, List.of(pids), held).close()).getMessage();
            assertFalse(text.contains("\n"), text);
            return text;
        }
    }

    @Test
    void shouldRefuseInOneLineWhatCannotWork() throws Exception {
        assertTrue(refusal().contains("no process has compute queues on GPU 0"));
        assertTrue(refusal(999_999_999).contains("does not exist"));
        final App app = rig.start(1);
        final App idle = rig.start(0);
        assertTrue(refusal(app.pid(), idle.pid()).contains("process " + idle.pid() + " has no compute queue"));
        rig.gpu(1, AmdRig.GPU_ID, 110_000);
        rig.policy(2);
        assertTrue(refusal().contains("NO_HWS) on gfx11.0.0"));
        Files.writeString(directory.resolve("sys/class/kfd/kfd/topology/nodes/1/gpu_id"), "0\n");
        assertTrue(refusal().contains("no GPU in /sys/class/kfd"));
        app.mustAdvance("after all these refusals");
    }

    @Test
    void shouldGiveUpWhereChangesFailAgainAndAgain() throws Exception {
        rig.delay(AmdRig.MODE_HWS, 100);
        final App app = rig.start(1);
        rig.table.putInt(AmdRig.FAIL, 1_000_000);
        final String never = directory.resolve("no.yaml").toString();
        assertEquals("", output(1, "calibrate", "--mechanism", "amd", "--out", never));
        final String errors = AmdRig.read(AmdRig.errors(directory.resolve("out")));
        assertTrue(errors.contains("6 changes failed, the last so: ") && errors.contains("errno 5"), errors);
        assertFalse(Files.exists(directory.resolve("no.yaml")));
        app.mustAdvance("after the failures");
    }

    @Test
    void shouldRefuseAWitnessThatIsSwitchedOrMissing() throws Exception {
        final App app = rig.start(1);
        output(2, "calibrate", "--mechanism", "amd", "--witness", app.file().toString());
        output(2, "calibrate", "--mechanism", "amd", "--pid", Integer.toString(app.pid()), "--witness",
            directory.resolve("none").toString());
        output(2, "calibrate", "--mechanism", "sim", "--pid", "1");
        assertEquals(0, taken());
    }
}

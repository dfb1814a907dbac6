/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.TaskSet;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Key amd of a platform. The numbers are made up: no AMD hardware was measured. */
class AmdCostsTest {
    private static final long MS = 1_000_000L;
    private static final String TASKS = """
        tasks:
          - {name: t, cpu: 1, period: 80ms, priority: 7, segments: [{gpu: {host: 1ms, device: 2ms}}]}
        """;

    private static TaskSet read(final String platform) throws InvalidFileException {
        return new TaskSetReader().readText("platform: {cpus: 2, theta: 1ms, timeslice: 5ms, " + platform + "}\n"
            + TASKS, "amd.yaml");
    }

    private static Gpu gpu(final String amd) throws InvalidFileException {
        return read("amd: {" + amd + "}").platform().gpus().get(0);
    }

    private static void refused(final String platform, final String... words) {
        final String text = assertThrows(InvalidFileException.class, () -> read(platform)).getMessage();
        assertFalse(text.contains("\n"), text);
        for (final String word : words) {
            assertTrue(text.contains(word), text + " should say: " + word);
        }
    }

    @Test
    void shouldChargeOneRunlistForEachCallInModeHws() throws Exception {
        final String rest = ", mode: hws, change: 2ms, command: 300us, foreign: 1s";
        assertEquals(300_000 + 2 * 2 * MS, gpu("interface: kfd, contexts: 64" + rest).epsilonNs(),
            "disable, then enable");
        assertEquals(300_000 + 3 * 2 * MS, gpu("interface: kfd, contexts: 65" + rest).epsilonNs(), "two batches");
        assertEquals(300_000 + 15 * 2 * MS, gpu("interface: agent, contexts: 5, queues: 3" + rest).epsilonNs(),
            "a call a queue");
        final Gpu gpu = gpu("interface: kfd, contexts: 5" + rest);
        assertEquals(2 * MS, gpu.stallNs(), "changes by other processes stop all queues");
        assertEquals(1_000 * MS, gpu.stallPeriodNs());
    }

    @Test
    void shouldChargeEveryQueueInTheOtherModes() throws Exception {
        final String rest = ", change: 1ms, command: 0ms, contexts: 3, queues: 4, foreign: none";
        assertEquals(12 * MS, gpu("interface: kfd, mode: no-hws" + rest).epsilonNs());
        assertEquals(12 * MS, gpu("interface: agent, mode: mes" + rest).epsilonNs());
        assertEquals(12 * MS, gpu("interface: agent, mode: no-hws" + rest).epsilonNs());
        assertEquals(0, gpu("interface: kfd, mode: mes" + rest).stallNs());
    }

    @Test
    void shouldNeedNoUpdatesBehindTheGate() throws Exception {
        final Gpu gpu = gpu("interface: gate, mode: hws, change: 2ms, foreign: 100ms");
        assertEquals(0, gpu.epsilonNs());
        assertEquals(2 * MS, gpu.stallNs(), "other processes still change queues");
        assertEquals(0, gpu("interface: gate, mode: mes").stallNs());
    }

    @Test
    void shouldTakeAMeasuredEpsilonInsteadOfItsParts() throws Exception {
        final Gpu gpu = read("epsilon: 7ms, amd: {interface: kfd, mode: hws, foreign: none}").platform().gpus().get(0);
        assertEquals(7 * MS, gpu.epsilonNs());
        assertEquals(0, gpu.stallNs());
    }

    @Test
    void shouldNameWhatIsUnknownAndWhatToDo() {
        refused("amd: {interface: kfd, mode: hws, command: 1ms, contexts: 4, foreign: none}", "amd: change is unknown",
            "runlist", "measure the longest");
        refused("amd: {interface: kfd, mode: mes, change: unknown, command: 1ms, contexts: 4, foreign: none}",
            "amd: change is unknown", "MES");
        refused("amd: {interface: kfd, mode: hws, change: 1ms, contexts: 4, foreign: none}", "amd: command is unknown");
        refused("amd: {interface: kfd, mode: hws, change: 1ms, command: 1ms, foreign: none}",
            "amd: contexts is unknown");
        refused("amd: {interface: kfd, mode: mes, change: 1ms, command: 1ms, contexts: 4, foreign: none}",
            "amd: queues is unknown");
        refused("amd: {interface: kfd, mode: hws, change: 1ms, command: 1ms, contexts: 4}", "amd: foreign is unknown",
            "stops all queues of the GPU", "or none");
        refused("epsilon: 1ms, amd: {interface: kfd, mode: hws, foreign: 1s}", "amd: change is unknown");
        refused("amd: {mode: hws}", "amd: interface is unknown", "gpuseg doctor");
        refused("amd: {interface: kfd}", "amd: mode is unknown");
        refused("amd: {interface: kfd, mode: turbo}", "'turbo'", "hws, mes, no-hws");
        refused("amd: {interface: criu, mode: hws}", "'criu'", "write one of agent, gate, kfd");
        refused("amd: {interface: kfd, mode: hws, colour: red}", "'colour'");
        refused("amd: 3", "write a mapping");
        refused("stall: {length: 1ms, period: 1s}, amd: {interface: gate, mode: mes}", "amd: foreign instead");
    }

    @Test
    void shouldNotAssumeTheConstantsOfAnotherMaker() {
        final String text = assertThrows(InvalidFileException.class, () -> new TaskSetReader().readText(
            "platform: {cpus: 2, epsilon: 1ms, timeslice: 1ms, amd: {interface: kfd, mode: hws, foreign: none}}\n"
                + TASKS,
            "amd.yaml")).getMessage();
        assertTrue(text.contains("theta is unknown"), text);
    }

    @Test
    void shouldReadAProfileAndWriteWhatItMeans(@TempDir final Path directory) throws Exception {
        Files.writeString(directory.resolve("mi.yaml"), "cpus: 2\ntheta: 1ms\ntimeslice: 5ms\namd: {interface: kfd, "
            + "mode: hws, change: 2ms, command: 1ms, contexts: 9, foreign: 50ms}\n");
        Files.writeString(directory.resolve("set.yaml"), "platform: mi\n" + TASKS);
        final TaskSet set = new TaskSetReader().read(directory.resolve("set.yaml"));
        final TaskSet again = new TaskSetReader().readText(TaskSetWriter.json(set), "written.json");
        assertEquals(set.platform().gpus(), again.platform().gpus());
        assertEquals(50 * MS, again.platform().gpus().get(0).stallPeriodNs());
    }

    @Test
    void shouldTakeKeyByKeyFromTheTaskSetWhatAProfileLeavesUnknown(@TempDir final Path directory) throws Exception {
        Files.writeString(directory.resolve("mi.yaml"), "cpus: 2\nepsilon: 9ms\nalpha: 4ms\ntheta: unknown\ntimeslice: "
            + "unknown\namd:\n  interface: kfd\n  mode: hws\n  command: 1ms\n  change: 2ms\n  contexts: unknown\n  "
            + "queues: unknown\n  foreign: unknown\n");
        final Path file = directory.resolve("set.yaml");
        final String rest = "platform: {profile: mi, theta: 1ms, timeslice: 5ms, ";
        Files.writeString(file, rest + "amd: {foreign: none}}\n" + TASKS);
        assertEquals(new Gpu(9 * MS, 4 * MS, MS, 5 * MS), new TaskSetReader().read(file).platform().gpus().get(0));
        Files.writeString(file, rest + "epsilon: unknown, amd: {foreign: 1s, contexts: 65}}\n" + TASKS);
        assertEquals(new Gpu(7 * MS, 6 * MS, MS, 5 * MS, 2 * MS, 1_000 * MS),
            new TaskSetReader().read(file).platform().gpus().get(0), "computed, so the measured alpha is not of it");
        Files.writeString(file, rest + "epsilon: 3ms, amd: {foreign: none}}\n" + TASKS);
        assertTrue(assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(file)).getMessage()
            .contains("alpha is 4ms, more than epsilon"));
        Files.writeString(file, rest + "amd: {contexts: 3}}\n" + TASKS);
        assertTrue(assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(file)).getMessage()
            .contains("amd: foreign is unknown"));
        Files.writeString(file, rest + "amd: none}\n" + TASKS);
        assertTrue(assertThrows(InvalidFileException.class, () -> new TaskSetReader().read(file)).getMessage()
            .contains("write a mapping"));
    }

    @Test
    void shouldReadStopsOfAnyGpu() throws Exception {
        final Gpu gpu = read("epsilon: 1ms, stall: {length: 2ms, period: 1s}").platform().gpus().get(0);
        assertEquals(2 * MS, gpu.stallNs());
        refused("epsilon: 1ms, stall: {length: 2ms, period: 2ms}", "leaves no GPU time");
        refused("epsilon: 1ms, stall: {length: 2ms}", "period");
    }
}

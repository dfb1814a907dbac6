/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ImportersTest {
    @TempDir
    private Path directory;

    private TaskSet read(final String format, final String content) throws IOException {
        return ForeignFormat.of(format).read(Files.writeString(directory.resolve("input.txt"), content), 2, 500_000);
    }

    @Test
    void shouldPutTheRoundingDifferenceIntoTheLargestSegment() throws IOException {
        final TaskSet set = new GcapsArtifactImporter().readLine("""
            {"kind":"util","v":0.5,"it":3,"ncpu":2,"tasks":[
             {"cpu":1,"prio":-1,"T":100,"C":1.01,"G":8.16,"Gm":1.8275,"Ge":6.3225,"ces":[0.5,0.5],
              "ges":[[4.78,0.8604,3.9196],[0.0,0.0,0.0],[3.37,0.9670,2.4030]]}]}""".replace("\n", ""), "golden", 7);
        final Task task = set.tasks().get(0);
        assertEquals("util-0.5-3", set.id());
        assertTrue(task.bestEffort());
        assertEquals(2, task.cpu());
        assertEquals(1_010_000, task.cpuNs());
        assertEquals(8_160_000, task.gpuNs());
        assertEquals(1_827_500, task.hostNs());
        assertEquals(6_322_500, task.deviceNs());
        assertEquals(3, task.gpuSegmentCount());
        assertEquals(new Segment.Gpu(0, 0), task.segments().get(3));
        assertEquals(510_000, ((Segment.Cpu) task.segments().get(0)).durationNs());
    }

    @Test
    void shouldRefuseRecordsOfAnotherKind() {
        for (final String line : new String[] {"{}", "[]", "x", "{\"ncpu\":1,\"tasks\":[{\"prio\":1}]}",
            "{\"ncpu\":1,\"tasks\":[{\"cpu\":0,\"prio\":1,\"T\":-5,\"C\":1,\"ces\":[1],\"ges\":[]}]}"}) {
            final String message = assertThrows(InvalidFileException.class,
                () -> new GcapsArtifactImporter().readLine(line, "golden", 3)).getMessage();
            assertTrue(message.startsWith("golden:3: "), message);
        }
        assertThrows(IllegalArgumentException.class, () -> ForeignFormat.of("xml"));
        assertThrows(IllegalArgumentException.class, () -> ForeignFormat.DISB.lines());
    }

    @Test
    void shouldImportTheCaseStudyTable() throws IOException {
        final TaskSet set = read("gcaps-csv",
            "taskid,workload,period,wcet\n1,histogram,100,11\n3,mmul_cpu,200,67.5\n");
        assertEquals(2, set.tasks().size());
        assertEquals(11_000_000, set.tasks().get(0).deviceNs());
        assertEquals(67_500_000, set.tasks().get(1).cpuNs());
        assertEquals(500_000, set.platform().gpus().get(0).epsilonNs());
        assertTrue(assertThrows(InvalidFileException.class, () -> read("gcaps-csv", "1,histogram,100\n")).getMessage()
            .contains("input.txt:1"));
        assertThrows(InvalidFileException.class, () -> read("gcaps-csv", "1,histogram,-100,3\n"));
    }

    @Test
    void shouldImportDisbLoadsAndMakeClosedLoopsBestEffort() throws IOException {
        final TaskSet set = read("disb", """
            {"tasks":[{"name":"vgg","exec_ms":3,"load":{"type":"uniform","frequency":100}},
                      {"name":"resnet","exec_ms":9.5,"load":{"type":"closed"}}]}""");
        assertEquals(10_000_000, set.tasks().get(0).periodNs());
        assertEquals(3_000_000, set.tasks().get(0).deviceNs());
        assertTrue(set.tasks().get(1).bestEffort());
        assertThrows(InvalidFileException.class, () -> read("disb",
            "{\"tasks\":[{\"load\":{\"type\":\"uniform\"}}]}"));
        assertThrows(InvalidFileException.class, () -> read("disb", "{}"));
    }

    @Test
    void shouldImportRtAppWithGpuEvents() throws IOException {
        final TaskSet set = read("rt-app", """
            {"global":{"default_policy":"SCHED_FIFO"},"tasks":{
              "camera":{"priority":70,"cpus":[1],"run0":2000,"gpu0":{"host":500,"device":4000},"run1":1000,
                        "timer":{"ref":"t","period":33333}},
              "logger":{"policy":"SCHED_OTHER","phases":{"a":{"run":4000,"timer":{"period":200000}}}}}}""");
        final Task camera = set.tasks().get(0);
        assertEquals(33_333_000, camera.periodNs());
        assertEquals(2, camera.cpu());
        assertEquals(70, camera.gpuPriority());
        assertEquals(3_000_000, camera.cpuNs());
        assertEquals(4_000_000, camera.deviceNs());
        assertTrue(set.tasks().get(1).bestEffort());
        assertTrue(assertThrows(InvalidFileException.class, () -> read("rt-app",
            "{\"tasks\":{\"a\":{\"lock\":\"m\",\"timer\":{\"period\":100}}}}")).getMessage().contains("lock"));
        assertThrows(InvalidFileException.class, () -> read("rt-app", "{\"tasks\":{\"a\":{\"run\":10}}}"));
    }
}

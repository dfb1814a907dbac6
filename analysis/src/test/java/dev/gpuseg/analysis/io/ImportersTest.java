/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ImportersTest {
    private static final String TIMER = "\"timer\":{\"ref\":\"t\",\"period\":30000}";

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
        final String record = "{\"ncpu\":1,\"tasks\":[{\"cpu\":0,\"prio\":1,\"T\":9,\"C\":1,\"ces\":[1],\"ges\":[]}]}";
        final String[][] wrong = {
            {"\"ncpu\":1", "\"ncpu\":\"2\"", "ncpu is \"2\"; it must be a whole number"},
            {"\"prio\":1", "\"prio\":1.5", "prio is 1.5; it must be a whole number"},
            {"\"prio\":1", "\"priority\":1", "task t0: unknown key 'priority'; known are C, G, "},
            {"\"C\":1,", "\"C\":1,\"C\":2,", "not readable as JSON: Duplicate field 'C'; this"},
            {"\"C\":1,", "\"C\":5,", "t0: C is 5, 4ms more than its segments take; only rounding is made up for"},
            {"[]}]}", "[]}]} {}", "not readable as JSON: Trailing token"},
        };
        for (final String[] one : wrong) {
            final String message = assertThrows(InvalidFileException.class,
                () -> new GcapsArtifactImporter().readLine(record.replace(one[0], one[1]), "golden", 3)).getMessage();
            assertTrue(message.startsWith("golden:3: " + one[2]), message);
        }
        assertThrows(IllegalArgumentException.class, () -> ForeignFormat.of("xml"));
        assertThrows(IllegalArgumentException.class, () -> ForeignFormat.DISB.lines());
    }

    @Test
    void shouldImportTheCaseStudyTable() throws IOException {
        final TaskSet set = read("gcaps-csv",
            "\uFEFFtaskid,workload,period,wcet\r\n1,histogram,100,11\r\n3,\"mmul, \"\"cpu\"\"\",0.2s,67.5\r\n");
        assertEquals(2, set.tasks().size());
        assertEquals(11_000_000, set.tasks().get(0).deviceNs());
        assertEquals("3-mmul, \"cpu\"", set.tasks().get(1).name());
        assertEquals(67_500_000, set.tasks().get(1).cpuNs());
        assertEquals(200_000_000, set.tasks().get(1).periodNs());
        assertEquals(500_000, set.platform().gpus().get(0).epsilonNs());
    }

    @Test
    void shouldRefuseACaseStudyTableThatItWouldReadInPart() {
        refuses("gcaps-csv", "t1,camera_gpu,33,30\nt2,lidar_cpu,100,20\n", ":1: ", "t1,camera_gpu,33,30",
            "write a first line taskid,workload,period,wcet");
        final String header = "taskid,workload,period,wcet\n";
        refuses("gcaps-csv", header + "1,a,100,5\n2,b,100\n", ":3: has 3 columns");
        refuses("gcaps-csv", header + "1,a,100,5,7\n", ":2: has 5 columns");
        refuses("gcaps-csv", header + "1,a,-100,3\n", ":2: ", "period is '-100'");
        refuses("gcaps-csv", header + "1,a,0100,3\n", ":2: ", "period is '0100'; write a decimal number");
        refuses("gcaps-csv", header + "1,\"a\nb\",100,3\n", ":2: ", "printable");
        refuses("gcaps-csv", header + "1," + "a".repeat(63) + ",100,3\n", ":2: ", "65 bytes");
        refuses("gcaps-csv", header + "1,a,100,1e3\n", ":2: ", "wcet is '1e3'");
        refuses("gcaps-csv", "taskid,workload,period,deadline\n1,a,100,5\n", ":1: ", "deadline");
    }

    @Test
    void shouldImportDisbLoadsAndMakeClosedLoopsBestEffort() throws IOException {
        final TaskSet set = read("disb", """
            {"time": 60, "tasks":[
              {"name":"vgg","exec_ms":3,"priority":70,"load":{"type":"uniform","frequency":100}},
              {"name":"resnet","exec_ms":9.5,"load":{"type":"closed"}},
              {"id":"rt","exec_ms":"2ms","deadline_ms":9,"load":{"type":"periodic","priority":0,"frequency":50},
               "client":{"name":"rt","model_name":"vgg19","batch_size":1}}]}""");
        assertEquals(10_000_000, set.tasks().get(0).periodNs());
        assertEquals(3_000_000, set.tasks().get(0).deviceNs());
        assertEquals(70, set.tasks().get(0).priority());
        assertTrue(set.tasks().get(1).bestEffort());
        assertEquals(0, set.tasks().get(2).priority(), "the priority in a load orders its start");
        assertFalse(set.tasks().get(2).bestEffort());
        assertEquals("rt-3", set.tasks().get(2).name());
        assertEquals(2_000_000, set.tasks().get(2).deviceNs());
        assertEquals(9_000_000, set.tasks().get(2).deadlineNs());
        assertEquals(20_000_000, set.tasks().get(2).periodNs());
    }

    @Test
    void shouldRefuseADisbKeyOrLoadThatItDoesNotKnow() {
        refuses("disb", "{\"tasks\":[{\"exec_ms\":1,\n\"load\":{\"type\":\"uniform\"}}]}", ":2:", "frequency");
        refuses("disb", "{}", ":1:", "no list 'tasks'");
        refuses("disb", "{\"tasks\":[],\"clients\":[]}", "write one list");
        refuses("disb", disb("\"load\":{\"type\":\"bursty\",\"frequency\":9}"), "type is 'bursty'", "poisson");
        refuses("disb", disb("\"load\":{\"type\":\"periodic\",\"frequency\":9,\"burst\":3}"), "unknown key 'burst'");
        refuses("disb", disb("\"count\":3,\"frequency\":9"), "unknown key 'count'");
        refuses("disb", disb("\"frequency\":9,\"interval_ms\":3"), "write one of them");
        refuses("disb", disb("\"type\":\"poisson\",\"load\":{\"frequency\":9}"), "stands beside 'load'");
        refuses("disb", disb("\"frequency\":100,\"deadline_ms\":20"), "deadline <= period");
        refuses("disb", disb("\"frequency\":\"100\""), "frequency is '100'");
        refuses("disb", disb("\"frequency\":0"), "must be positive");
        refuses("disb", disb("\"frequency\":9,\"priority\":100"), "priority is '100'");
        refuses("disb", disb("\"type\":\"closed\",\"priority\":5"), "its load is 'closed'", "leave priority out");
        refuses("disb", disb("\"frequency\":10000000000000000000"), "more than 18 digits");
        refuses("disb", disb("\"frequency\":9,\"frequency\":90"), "occurs twice");
    }

    private static String disb(final String keys) {
        return "{\"tasks\":[{\"exec_ms\":1," + keys + "}]}";
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
        refuses("rt-app", rtApp("\"run\":10"), "has no period; give it a timer");
    }

    @Test
    void shouldReadTheCommentsAndCommasThatRtAppFilesHave() throws IOException {
        final Task task = read("rt-app", """
            \uFEFF/* two kinds
               of comment */
            { "tasks" : { // one task
                "a" : { "policy" : "SCHED_RR", "run" : 3000, "sleep" : 0, "priority" : 7, "cpus" : [0,],
                  "timer" : { "ref" : "unique", "period" : "20ms", "mode" : "absolute", }, }, }, }""").tasks().get(0);
        assertEquals(3_000_000, task.cpuNs());
        assertEquals(20_000_000, task.periodNs());
        assertEquals(7, task.priority());
        assertEquals(1, task.cpu());
    }

    @Test
    void shouldCountTheLoopOfAPhaseInsideAJob() throws IOException {
        final Task task = only("\"phases\":{\"work\":{\"loop\":10,\"run\":2000},\"wait\":{\"loop\":1," + TIMER + "}}");
        assertEquals(20_000_000, task.cpuNs());
        assertEquals(30_000_000, task.periodNs());
        assertEquals(10, task.priority(), "rt-app's default");
        final Task gpu = only("\"phases\":{\"a\":{\"loop\":3,\"run\":1,\"gpu\":{\"device\":10}},\"b\":{"
            + TIMER + "}}");
        assertEquals(3, gpu.gpuSegmentCount());
        assertEquals(30_000, gpu.deviceNs());
        refuses("rt-app", rtApp("\"phases\":{\"a\":{\"loop\":9999999,\"gpu\":{\"device\":10}},\"b\":{" + TIMER + "}}"),
            "more than 1024 segments");
        refuses("rt-app", rtApp("\"phases\":{\"a\":{\"loop\":2000000000,\"run\":1000000000},\"b\":{" + TIMER + "}}"),
            "104 days");
    }

    @Test
    void shouldTakeALoopOverATimerAsManyJobs() throws IOException {
        final Task task = only("\"phases\":{\"a\":{\"loop\":10,\"run\":6000," + TIMER + "},\"b\":{\"run\":6000,"
            + TIMER + "}}");
        assertEquals(6_000_000, task.cpuNs());
        assertEquals(30_000_000, task.periodNs());
        refuses("rt-app", rtApp("\"phases\":{\"light\":{\"loop\":10,\"run\":6000,\"timer\":{\"ref\":\"t\","
            + "\"period\":10000}},\"heavy\":{\"run\":1000,\"timer\":{\"ref\":\"t\",\"period\":100000}}}"),
            "timers of 10ms and 100ms", "loops");
        refuses("rt-app", rtApp("\"phases\":{\"a\":{\"loop\":300,\"run\":1000," + TIMER + "},\"b\":{\"run\":7000,"
            + TIMER + "}}"), "jobs that differ, of ", "1ms", "7ms", "loops");
        refuses("rt-app", rtApp("\"run1\":1000,\"timer1\":{\"ref\":\"uniqueA\",\"period\":30000},\"run2\":1000,"
            + "\"timer2\":{\"ref\":\"uniqueB\",\"period\":30000}"), "refs that differ");
        refuses("rt-app", rtApp("\"run\":1000,\"timer1\":{\"ref\":\"u\",\"period\":30000},"
            + "\"timer2\":{\"ref\":\"u\",\"period\":30000}"), "jobs that differ");
    }

    @Test
    void shouldBeginAJobAfterTheTimer() throws IOException {
        assertEquals(List.of(new Segment.Gpu(0, 5_000), new Segment.Cpu(2_000_000)),
            only("\"run\":2000," + TIMER + ",\"gpu\":{\"device\":5}").segments());
    }

    @Test
    void shouldReadAListOfEventsInItsOrder() throws IOException {
        final Task task = only("\"events\":[{\"run\":1000},{\"run\":2000},{" + TIMER + "}]");
        assertEquals(3_000_000, task.cpuNs());
        refuses("rt-app", rtApp("\"events\":[{\"run\":1000},{" + TIMER + "}],\"run\":5"), "stands beside 'events'");
        refuses("rt-app", rtApp("\"events\":[{\"jump\":1000},{" + TIMER + "}]"), "jump is an unknown key");
        refuses("rt-app", rtApp("\"events\":[{\"loop\":3},{" + TIMER + "}]"), "loop is an unknown key");
        refuses("rt-app", rtApp("\"events\":{\"run\":3}"), "a list of events");
    }

    @Test
    void shouldRefuseWhatWouldBeLostOrRepeated() {
        refuses("rt-app", rtApp("\"run\":6000,\"run\":6000," + TIMER),
            ":1:", "key 'run' occurs twice", "run1 and run2");
        refuses("rt-app", rtApp("\"loop\":10,\"run\":6000," + TIMER), "loop is '10', so the task ends");
        refuses("rt-app", rtApp("\"phases\":{\"a\":{\"loop\":0,\"run\":6000," + TIMER + "}}"), "loop is '0'");
        refuses("rt-app", rtApp("\"phases\":{\"a\":{\"loop\":-1,\"run\":6," + TIMER + "},\"b\":{\"run\":1}}"),
            "the other phases do not take part");
        refuses("rt-app", rtApp("\"run\":5,\"phases\":{\"a\":{\"run\":6000," + TIMER + "}}"), "stands beside 'phases'");
        refuses("rt-app", rtApp("\"phases\":{\"a\":{\"run\":6000," + TIMER + "},\"b\":{\"loop\":3}}"), "has no event");
        refuses("rt-app", rtApp("\"instance\":0,\"run\":6000," + TIMER), "instance is '0'");
        refuses("rt-app", rtApp("\"cpus\":[0,1,2],\"run\":6000," + TIMER), "core 3 is '2'");
        refuses("rt-app", rtApp("\"cpus\":[],\"run\":6000," + TIMER), "cpus names 0 cores of 2");
        refuses("rt-app", rtApp("\"phases\":{\"a\":{\"cpus\":[1],\"run\":6000," + TIMER + "}}"), "cpus differs");
        refuses("rt-app", rtApp("\"dl-period\":20000,\"run\":6000"), "dl-period has no effect with SCHED_FIFO");
        refuses("rt-app", rtApp("\"run\":1e3," + TIMER), "run is '1e3'");
        refuses("rt-app", rtApp("\"run\":\"1000\"," + TIMER), "bare number 1000");
        refuses("rt-app", rtApp("\"run\":-1," + TIMER), "run is '-1'");
        refuses("rt-app", rtApp("\"priority\":100,\"run\":6000," + TIMER), "priority is '100'");
        refuses("rt-app", rtApp("\"policy\":\"FIFO\",\"run\":6000," + TIMER), "policy is 'FIFO'");
        refuses("rt-app", rtApp("\"prio\":1,\"run\":6000," + TIMER), "prio is an unknown key", "priority");
        refuses("rt-app", rtApp("\"gpu\":{\"device\":1,\"deadline\":5}," + TIMER), "unknown key 'deadline'");
        refuses("rt-app", rtApp("\"run\":1,\"timer\":{\"period\":10,\"offset\":5}"), "unknown key 'offset'");
        refuses("rt-app", rtApp("\"run\":1,\"timer\":{\"period\":0}"), "period is 0");
        refuses("rt-app", "{\"tasks\":{},\"globals\":{}}", "unknown key 'globals'", "'global'");
        refuses("rt-app", "{\"tasks\":{},\"global\":{\"policy\":1}}", "unknown key 'policy'");
        refuses("rt-app", rtApp(TIMER), "no work beside its timer");
        final String shared = "\"run\":1,\"timer\":{\"ref\":\"tick\",\"period\":10000}";
        refuses("rt-app", "{\"tasks\":{\"a\":{" + shared + "},\"b\":{" + shared + "}}}", "task \"b\" shares the timer",
            "task \"a\"");
        refuses("rt-app", rtApp("\"instance\":2," + shared), "its other instances");
    }

    @Test
    void shouldRefuseEveryEventThatTheModelHasNoPlaceFor() {
        for (final String event : List.of("\"sleep\":5", "\"lock\":\"m\"", "\"unlock\":\"m\"", "\"mem\":9",
            "\"wait\":{\"ref\":\"q\",\"mutex\":\"m\"}", "\"signal\":\"q\"", "\"broad\":\"q\"", "\"sync\":{}",
            "\"suspend\":\"a\"", "\"resume\":\"a\"", "\"iorun\":9", "\"memrun\":{}", "\"barrier\":\"b\"",
            "\"fork\":\"a\"", "\"sem_post\":\"s\"", "\"sem_wait1\":\"s\"", "\"yield\":\"\"")) {
            final String name = event.substring(1, event.indexOf('"', 1));
            refuses("rt-app", rtApp("\"run\":10," + event + "," + TIMER),
                ":1:", name + " is an event that has no place");
        }
    }

    @Test
    void shouldTakeAReservationForWhatTheKernelGives() throws IOException {
        final String deadline = "\"policy\":\"SCHED_DEADLINE\",\"dl-runtime\":4000,\"dl-period\":20000,"
            + "\"dl-deadline\":15000,";
        final Task endless = task(deadline + "\"run\":90000");
        assertEquals(4_000_000, endless.cpuNs(), "it never waits");
        assertEquals(20_000_000, endless.periodNs());
        assertEquals(15_000_000, endless.deadlineNs());
        final Task yielding = task(deadline + "\"run\":3000,\"yield\":\"\"");
        assertEquals(3_000_000, yielding.cpuNs());
        assertEquals(20_000_000, yielding.periodNs());
        refuses("rt-app", rtApp(deadline + "\"run\":5000,\"yield\":\"\""), "raise dl-runtime");
        refuses("rt-app", rtApp("\"policy\":\"SCHED_DEADLINE\",\"run\":5"), "without dl-runtime");
    }

    private static String rtApp(final String keys) {
        return "{\"global\":{\"default_policy\":\"SCHED_FIFO\"},\"tasks\":{\"a\":{" + keys + "}}}";
    }

    private Task task(final String keys) throws IOException {
        return read("rt-app", rtApp(keys)).tasks().get(0);
    }

    private Task only(final String keys) throws IOException {
        return task("\"loop\":-1," + keys);
    }

    private void refuses(final String format, final String content, final String... said) {
        final String message = assertThrows(InvalidFileException.class, () -> read(format, content), content)
            .getMessage();
        for (final String part : said) {
            assertTrue(message.contains(part), message);
        }
        assertFalse(message.contains("\n"), message);
    }
}

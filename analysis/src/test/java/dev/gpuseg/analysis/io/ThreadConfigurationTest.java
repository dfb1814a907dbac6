/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.ThreadConfiguration.Entry;
import dev.gpuseg.analysis.io.ThreadConfigurationWriter.Filled;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ThreadConfigurationTest {
    private static final String OWN = "@Service(/detector/describe_parameters)@Service(/detector/get_parameters)"
        + "@Subscription(/parameter_events)";

    /** As the executor's prerun writes it: a node with its parameters and two groups, another node, a thread. */
    private static final String PRERUN = """
        hardware_info:
          cpu_family: 6
          cpu_max_mhz: 2101.0000
          model_name: Intel(R) Xeon(R) Silver 4216 CPU @ 2.10GHz
        callback_groups:
          - id: /detector%s
            affinity: ~
            policy: SCHED_OTHER
            priority: 0

          - id: /detector@Subscription(/image)
            affinity: ~
            policy: SCHED_OTHER
            priority: 0

          - id: /perception/tracker@Timer(33333333)@Subscription(/boxes)@Waitable@Waitable
            affinity: ~
            policy: SCHED_OTHER
            priority: 0

        non_ros_threads:
          - id: lidar_driver
            affinity: ~
            policy: SCHED_OTHER
            priority: 0
        """.formatted(OWN);

    private static ThreadConfiguration read(final String yaml) throws InvalidFileException {
        return ThreadConfiguration.of(yaml, "cie.yaml");
    }

    private static String group(final String rest) {
        return "callback_groups:\n  - id: /detector@Subscription(/image)\n" + rest.indent(4);
    }

    /** Tasks like {@code {name: /detector, cpu: 3, priority: 70}}; a period and a segment are added. */
    private static TaskSet set(final String... tasks) throws InvalidFileException {
        final StringBuilder yaml = new StringBuilder("id: robot\nplatform: {cpus: 8, epsilon: 1ms}\ntasks:\n");
        for (final String task : tasks) {
            yaml.append("  - {").append(task).append(", period: 33ms, segments: [{gpu: {device: 1ms}}]}\n");
        }
        return new TaskSetReader().readText(yaml.toString(), "set.yaml");
    }

    private static Filled fill(final String yaml, final String... tasks) throws InvalidFileException {
        return ThreadConfigurationWriter.fill(set(tasks), read(yaml));
    }

    private static String refusal(final String yaml, final String... tasks) {
        return assertThrows(InvalidFileException.class, () -> fill(yaml, tasks)).getMessage();
    }

    // ---- reading ----

    @Test
    void shouldReadWhatThePrerunWrites() throws InvalidFileException {
        final List<Entry> entries = read(PRERUN).entries();
        assertEquals(List.of("/detector" + OWN, "/detector@Subscription(/image)",
            "/perception/tracker@Timer(33333333)@Subscription(/boxes)", "lidar_driver"),
            entries.stream().map(Entry::id).toList());
        assertEquals(new Entry("callback_groups", 1, 11, "/detector@Subscription(/image)", "", "SCHED_OTHER", 0,
            List.of()), entries.get(1));
    }

    @Test
    void shouldReadANiceValueUnderTheKeysOfBothVersionsAndTheKeysOfAgnocast() throws InvalidFileException {
        final List<Entry> entries = read("""
            rt_throttling: {runtime_us: 950000, period_us: 1000000}
            callback_groups:
              - {id: /a, policy: SCHED_BATCH, nice: -20, priority: 70}
              - {id: /b, policy: SCHED_IDLE, priority: 19}
              - {id: /b, domain_id: 2, affinity: [3, 1, 3], policy: SCHED_RR, priority: 99, nice: 50}
              - {id: /c, affinity: [], policy: SCHED_DEADLINE, runtime: 1, deadline: 2, period: 4294967295}
            non_ros_threads:
              - {name: driver, policy: SCHED_FIFO, priority: 1}
            """).entries();
        assertEquals(List.of(0, 0, 99, 0, 1), entries.stream().map(Entry::priority).toList());
        assertEquals(List.of(1, 3), entries.get(2).cores());
        assertEquals("2", entries.get(2).domain());
        assertTrue(entries.get(3).isReservation());
        assertEquals("driver", entries.get(4).id());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "policy: SCHED_FIFO                        | callback group \"/detector@Subscription(/image)\": priority is "
            + "missing; add it",
        "policy: SCHED_FIFO, priority: 0           | priority is '0'; it must be a whole number 1..99",
        "policy: SCHED_RR, priority: 100           | priority is '100'; it must be a whole number 1..99",
        "policy: SCHED_OTHER                       | nice is missing; add it",
        "policy: SCHED_OTHER, nice: 20             | nice is '20'; it must be a whole number -20..19",
        "policy: SCHED_OTHER, priority: 50         | priority is '50'; it must be a whole number -20..19",
        "policy: SCHED_DEADLINE, runtime: 1, period: 2 | deadline is missing; add it",
        "policy: FIFO, priority: 1                 | policy is 'FIFO'; write SCHED_OTHER, ",
        "priority: 1                               | policy is missing; add it",
        "policy: SCHED_FIFO, priority: 1, affinity: 3 | affinity is '3'; write a list of cores, like [2]",
        "policy: SCHED_FIFO, priority: 1, affinity: [-1] | core 1 is '-1'; it must be a whole number 0..1023",
        "policy: SCHED_FIFO, prio: 1               | unknown key 'prio'; ",
    })
    void shouldRefuseWhatTheConfiguratorRefusesAndNameTheRemedy(final String rest, final String message) {
        final String said = assertThrows(InvalidFileException.class, () -> read("callback_groups: [{id: "
            + "\"/detector@Subscription(/image)\", " + rest + "}]")).getMessage();
        assertTrue(said.startsWith("cie.yaml:1:") && said.contains(message), said);
    }

    @Test
    void shouldRefuseWhatIsNoConfiguration() {
        final String other = assertThrows(InvalidFileException.class, () -> read("tasks: []")).getMessage();
        assertEquals("cie.yaml:1:1: the thread configuration: unknown key 'tasks'; known are callback_groups, "
            + "hardware_info, non_ros_threads, rt_throttling", other);
        assertTrue(assertThrows(InvalidFileException.class, () -> read("hardware_info: {}")).getMessage()
            .contains("callback_groups is missing; give the file that the executor's prerun wrote"));
        final String same = "- {id: /a, policy: SCHED_OTHER, nice: 0}\n";
        assertTrue(assertThrows(InvalidFileException.class, () -> read("callback_groups:\n" + same + same))
            .getMessage().contains("callback group \"/a\" stands in line 2 already; remove one"));
    }

    // ---- whose thread ----

    @ParameterizedTest
    @CsvSource({
        "/detector, 1", "detector, 1", "/detector@Subscription(/image), 1",
        "/perception/tracker, 2", "perception/tracker, 2", "tracker, 2",
        "/perception/tracker@Timer(33333333)@Subscription(/boxes), 2",
        "/perception/tracker@Subscription(/boxes)@Timer(33333333), 2", "lidar_driver, 3",
    })
    void shouldFindTheThreadOfATaskByGroupNodeAndThread(final String task, final int index)
        throws InvalidFileException {
        final ThreadConfiguration configuration = read(PRERUN);
        assertEquals(configuration.entries().get(index), configuration.threadOf(task));
    }

    @ParameterizedTest
    @CsvSource({"camera", "/tracker", "racker", "driver", "image", "/detector@Timer(5)", "/perception"})
    void shouldFindNoThreadForAnotherName(final String task) throws InvalidFileException {
        assertNull(read(PRERUN).threadOf(task));
    }

    @Test
    void shouldFindLongNamesAsTheLibraryShortensThem() throws InvalidFileException {
        final String node = "/perception/object_recognition/detection/centerpoint/lidar_centerpoint";
        final ThreadConfiguration configuration = read("callback_groups:\n- {id: " + node
            + "@Subscription(/points), policy: SCHED_FIFO, priority: 40}\n");
        assertEquals(40, configuration.threadOf("/perception/object_recogni~b88af9a6~nterpoint/lidar_centerpoint")
            .priority());
        assertEquals(40, configuration.threadOf("lidar_centerpoint").priority());
    }

    @Test
    void shouldRefuseToChooseAmongGroupsOfANodeUnlessTheTaskHasTheNameOfOne() throws InvalidFileException {
        final ThreadConfiguration configuration = read("""
            callback_groups:
              - {id: /a/detector@Subscription(/image), policy: SCHED_FIFO, priority: 40}
              - {id: /a/detector@Timer(50000000), policy: SCHED_FIFO, priority: 41}
              - {id: /b/detector@Timer(50000000), policy: SCHED_FIFO, priority: 42}
            """);
        assertEquals("cie.yaml:2: task \"/a/detector\" may be of 2 threads: \"/a/detector@Subscription(/image)\", "
            + "\"/a/detector@Timer(50000000)\"; let the program open the task under one of these names",
            assertThrows(InvalidFileException.class, () -> configuration.threadOf("/a/detector")).getMessage());
        assertTrue(assertThrows(InvalidFileException.class, () -> configuration.threadOf("detector")).getMessage()
            .contains("may be of 3 threads"));
        assertEquals(41, configuration.threadOf("/a/detector@Timer(50000000)").priority());
        assertEquals(42, configuration.threadOf("/b/detector").priority());
    }

    @Test
    void shouldNameThreadsThatMayDelayTasksButAreNone() throws InvalidFileException {
        final ThreadConfiguration configuration = read("""
            callback_groups:
              - {id: /high, affinity: [2], policy: SCHED_FIFO, priority: 70}
              - {id: /low, affinity: [2], policy: SCHED_FIFO, priority: 69}
              - {id: /away, affinity: [0], policy: SCHED_FIFO, priority: 99}
              - {id: /anywhere, policy: SCHED_DEADLINE, runtime: 1, deadline: 2, period: 2}
              - {id: /other, policy: SCHED_OTHER, nice: -20}
              - {id: /task, affinity: [2], policy: SCHED_FIFO, priority: 70}
            """);
        final List<String> lines = configuration.uncounted(List.of(configuration.threadOf("/task")), Map.of(3, 70));
        assertEquals(2, lines.size(), lines.toString());
        assertTrue(lines.get(0).startsWith("cie.yaml:2: \"/high\" is SCHED_FIFO 70 and may run on cpu 3 of the set, "
            + "but "
            + "is no task of it, so no bound counts its time; "), lines.get(0));
        assertTrue(lines.get(1).startsWith("cie.yaml:5: \"/anywhere\" is SCHED_DEADLINE "), lines.get(1));
    }

    // ---- writing ----

    @Test
    void shouldFillInWhatThePrerunLeftOpenAndKeepTheRestByteForByte() throws InvalidFileException {
        final Filled filled = fill(PRERUN, "name: /detector, cpu: 3, priority: 70",
            "name: tracker, cpu: 4, priority: 60");
        final String[] parts = PRERUN.split("affinity: ~\n    policy: SCHED_OTHER\n    priority: 0\n", -1);
        final String empty = "affinity: ~\n    policy: SCHED_OTHER\n    priority: 0\n";
        assertEquals(parts[0] + empty + parts[1] + "affinity: [2]\n    policy: SCHED_FIFO\n    priority: 70\n"
            + parts[2]
            + "affinity: [3]\n    policy: SCHED_FIFO\n    priority: 60\n" + parts[3] + empty + parts[4], filled.yaml());
        assertEquals(List.of(), filled.remarks());
        assertEquals(2, filled.threads());
        assertEquals(2, filled.changed());
        final Filled again = fill(filled.yaml(), "name: /detector, cpu: 3, priority: 70",
            "name: tracker, cpu: 4, priority: 60");
        assertEquals(filled.yaml(), again.yaml());
        assertEquals(0, again.changed());
    }

    @Test
    void shouldChangeValuesInPlaceAndKeepCommentsWhateverTheStyle() throws InvalidFileException {
        final String task = "name: /detector, cpu: 3, priority: 70";
        assertEquals(group("affinity: [2] # isolated\n# kept\npolicy: SCHED_FIFO  # why\nnice: 5\npriority: 70\n"),
            fill(group("affinity: # isolated\n  - 0\n  - 1\n# kept\npolicy: SCHED_OTHER  # why\nnice: 5\n"), task)
                .yaml());
        assertEquals(group("policy: SCHED_FIFO\nnice: 0 # last\naffinity: [2]\npriority: 70\n"),
            fill(group("policy: SCHED_OTHER\nnice: 0 # last\n"), task).yaml());
        assertEquals(group("affinity: [2]\npolicy: SCHED_FIFO\npriority: 70"),
            fill(group("affinity:\npolicy: \"SCHED_FIFO\"\npriority: 1").stripTrailing(), task).yaml()
                .replace("\"", "") + "\n", "no line end at the end, no value of affinity");
        assertEquals("callback_groups: [{id: /detector, policy: SCHED_FIFO, nice: 0, affinity: [2], "
            + "priority: 70}] # x\n", fill("callback_groups: [{id: /detector@Timer(5), policy: SCHED_OTHER, nice: "
            + "0}] # x\n", task).yaml()
                .replace("@Timer(5)", ""));
        assertEquals("{\"callback_groups\": [{\"id\": \"/\u00e4\ud83d\ude00/detector@Timer(5)\", \"policy\": "
            + "\"SCHED_FIFO\", \"nice\": 0, \"affinity\": [2], \"priority\": 70}]}",
            fill("{\"callback_groups\": [{\"id\": \"/\u00e4\ud83d\ude00/detector@Timer(5)\", \"policy\": "
                + "\"SCHED_OTHER\", \"nice\": 0}]}", "name: detector, cpu: 3, priority: 70").yaml());
        final String windows = group("policy: SCHED_OTHER\nnice: 0\n").replace("\n", "\r\n");
        assertEquals(group("policy: SCHED_FIFO\nnice: 0\naffinity: [2]\npriority: 70\n").replace("\n", "\r\n"),
            fill(windows, task).yaml());
    }

    @Test
    void shouldTakeRealTimePrioritiesFromBestEffortAndKeepAnAffinityThatHasItsCore() throws InvalidFileException {
        final String mapper = "name: /detector, cpu: 3, best_effort: true";
        final Filled filled = fill(group("affinity: [2, 3]\npolicy: SCHED_FIFO\npriority: 40\n"), mapper);
        assertEquals(group("affinity: [2, 3]\npolicy: SCHED_OTHER\npriority: 0\nnice: 0\n"), filled.yaml());
        assertEquals(List.of("cie.yaml:2: \"/detector@Subscription(/image)\" was SCHED_FIFO 40 and is SCHED_OTHER now, "
            + "since task \"/detector\" is best effort"), filled.remarks());
        final String idle = group("affinity: []\npolicy: SCHED_IDLE\nnice: 3\n");
        assertEquals(idle, fill(idle, mapper).yaml(), "any core will do");
        assertEquals(group("affinity: [2]\npolicy: SCHED_OTHER\nnice: 3\n"),
            fill(group("affinity: [0, 1]\npolicy: SCHED_OTHER\nnice: 3\n"), mapper).yaml());
        assertEquals(group("policy: SCHED_OTHER\nruntime: 1\ndeadline: 2\nperiod: 2\npriority: 0\nnice: 0\n"),
            fill(group("policy: SCHED_DEADLINE\nruntime: 1\ndeadline: 2\nperiod: 2\n"), mapper).yaml());
    }

    @Test
    void shouldKeepTurnsAmongEqualPrioritiesAndReplaceReservations() throws InvalidFileException {
        final String task = "name: /detector, cpu: 3, priority: 70";
        assertEquals(group("affinity: [2]\npolicy: SCHED_RR\npriority: 70\n"),
            fill(group("affinity: [2]\npolicy: SCHED_RR\npriority: 7\n"), task).yaml());
        final Filled filled = fill(group("affinity: [2]\npolicy: SCHED_DEADLINE\nruntime: 1\ndeadline: 2\nperiod: 2\n"),
            task);
        assertEquals(group("affinity: [2]\npolicy: SCHED_FIFO\nruntime: 1\ndeadline: 2\nperiod: 2\npriority: 70\n"),
            filled.yaml());
        assertEquals(List.of("cie.yaml:2: \"/detector@Subscription(/image)\" was SCHED_DEADLINE and is SCHED_FIFO 70 "
            + "now; its runtime, deadline and period have no effect any more"), filled.remarks());
    }

    @Test
    void shouldNameTasksWithoutThreadAndWithoutCore() throws InvalidFileException {
        assertEquals(List.of("task \"camera\" is of no thread of cie.yaml, so its core and its priority 80 stand "
            + "only in "
            + "the set; see to them where its program starts", "cie.yaml:11: \"/detector@Subscription(/image)\" has no "
            + "affinity, since task \"detector\" has no cpu; write it into the set, or let gpuseg analyze --partition "
            + "wfd --format taskset do it"),
            fill(PRERUN, "name: camera, cpu: 1, priority: 80", "name: detector, priority: 70").remarks());
    }

    @Test
    void shouldRefuseWhatNoThreadCanBe() {
        assertEquals("cie.yaml: no thread is that of a task of \"robot\", such as \"camera\"; let the programs open "
            + "their tasks under the names of their nodes or callback groups",
            refusal(PRERUN, "name: camera, cpu: 1, priority: 80"));
        assertEquals("cie.yaml:11: \"/detector@Subscription(/image)\" is the thread of task \"detector\", which has no "
            + "priority; write it, or let gpuseg analyze --assign dm --format taskset do it",
            refusal(PRERUN, "name: detector, cpu: 1"));
        final String two = "cie.yaml:11: \"/detector@Subscription(/image)\" is the thread of tasks \"/detector\" and "
            + "\"detector\", which have ";
        assertEquals(two + "priority 70 and 60; give them one, or a callback group each",
            refusal(PRERUN, "name: /detector, cpu: 1, priority: 70", "name: detector, cpu: 1, priority: 60"));
        assertEquals(two + "cpu 1 and 2; give them one, or a callback group each",
            refusal(PRERUN, "name: /detector, cpu: 1, priority: 70", "name: detector, cpu: 2, priority: 70"));
        assertEquals(two + "priority 70 and 0; give them one, or a callback group each",
            refusal(PRERUN, "name: /detector, cpu: 1, priority: 70", "name: detector, cpu: 1, best_effort: true"));
    }

    @ParameterizedTest
    @CsvSource({"'? policy\n    : SCHED_OTHER'", "'policy:\n      SCHED_OTHER'"})
    void shouldRefuseAnEntryThatCannotBeChangedInPlace(final String policy) {
        assertEquals("cie.yaml:2: \"/detector@Timer(5)\" is written in a way that cannot be changed in place; write "
            + "each "
            + "of its keys in one line with its value", refusal("callback_groups:\n  - id: /detector@Timer(5)\n    "
            + policy.translateEscapes() + "\n    nice: 0\n", "name: /detector, cpu: 3, priority: 70"));
    }
}

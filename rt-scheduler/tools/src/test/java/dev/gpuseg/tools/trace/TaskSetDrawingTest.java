/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.io.ThreadConfiguration;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Task sets drawn from journals that a test writes: what cannot be had from a real run on demand. */
class TaskSetDrawingTest {
    private static final long MS = 1_000_000;

    @TempDir
    private Path directory;

    /** Writes events; times in ms. */
    private final class Writer implements AutoCloseable {
        private final JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 20);
        private final JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 24);
        private long ticket;

        Writer() {
            ring.writeText(EventKind.START, MS, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\","
                + "\"simulated\":true,\"gpus\":1}");
        }

        void open(final double atMs, final int task, final String name, final int pid, final int priority,
            final long periodMs) {
            ring.writeText(EventKind.TASK_OPEN, (long) (atMs * MS), 0, task, task, 1, priority, 0, "{\"id\":" + task
                + ",\"name\":\"" + name + "\",\"pid\":" + pid + ",\"priority\":" + priority + ",\"gpu_priority\":"
                + priority + ",\"period_ns\":" + periodMs * MS + ",\"deadline_ns\":" + periodMs * MS + "}");
        }

        void event(final EventKind kind, final double atMs, final int task, final long arg0, final long arg1) {
            ring.write(kind, (long) (atMs * MS), 0, 0, task, ticket, task, 1, arg0, arg1, 0);
            agent.drain();
        }

        void job(final double atMs, final int task, final double windowMs) {
            ticket++;
            final double endMs = atMs + windowMs;
            event(EventKind.BEGIN, atMs, task, (long) (atMs * MS), 0);
            event(EventKind.DECIDED, atMs, task, 0, 0);
            event(EventKind.GRANT, atMs, task, 0, 0);
            event(EventKind.END, endMs, task, (long) (endMs * MS), 0);
        }

        void close(final double atMs, final int task) {
            event(EventKind.TASK_CLOSE, atMs, task, 0, 0);
        }

        @Override
        public void close() {
            agent.drain();
            agent.close();
            ring.close();
        }
    }

    private StringOutput draw(final String... options) {
        final String[] all = new String[options.length + 5];
        System.arraycopy(new String[] {"trace", "taskset", directory.resolve("journal").toString(), "--out",
            directory.resolve("set.yaml").toString()}, 0, all, 0, 5);
        System.arraycopy(options, 0, all, 5, options.length);
        final StringOutput drawn = StringOutput.of(all);
        assertEquals(ExitCode.OK, drawn.status(), drawn.text());
        return drawn;
    }

    private TaskSet set() throws IOException {
        return new TaskSetReader().read(directory.resolve("set.yaml"));
    }

    private Task task(final String name) throws IOException {
        return set().tasks().stream().filter(t -> t.name().equals(name)).findAny().orElseThrow();
    }

    @Test
    void shouldKeepDeclaredPeriodsAlsoOfBestEffortAndWarnOfReleasesThatCameEarly() throws IOException {
        try (Writer run = new Writer()) {
            run.open(2, 1, "camera", 10, 50, 20);
            run.open(2, 2, "mapper", 11, 0, 100);
            for (final double at : new double[] {10, 30, 45, 65}) {
                run.job(at, 1, 1);
            }
            run.job(100, 2, 5);
            run.job(110, 2, 5);
        }
        final StringOutput drawn = draw();
        assertEquals(20 * MS, task("camera").periodNs());
        assertEquals(100 * MS, task("mapper").periodNs(), "as declared: admission compares it");
        assertTrue(drawn.err().contains("warning: task \"camera\": two releases were 15ms apart, less than its "
            + "declared period 20ms, which is kept"), drawn.err());
        assertTrue(!drawn.err().contains("mapper"), drawn.err());
        assertTrue(set().platform().simulated(), "every report of it says so");
    }

    @Test
    void shouldDrawTheLastProcessOfANameAndNameTheOthers() throws IOException {
        try (Writer run = new Writer()) {
            run.open(2, 1, "camera", 10, 50, 20);
            run.job(10, 1, 9);
            run.close(25, 1);
            run.open(30, 2, "camera", 77, 50, 40);
            run.job(40, 2, 3);
            run.job(80, 2, 3);
        }
        final StringOutput drawn = draw("--margin", "0");
        assertEquals(40 * MS, task("camera").periodNs());
        assertEquals(3 * MS, task("camera").gpuNs(), "not the 9 ms of another program");
        assertTrue(drawn.err().contains("drawn from process 77 alone; left out: process 10 of the same name (1 jobs)"),
            drawn.err());
        assertTrue(Files.readString(directory.resolve("set.yaml")).contains("# WARNING: task \"camera\""));
    }

    @Test
    void shouldWarnOfPartsLongerThanThePeriodAndLeaveAHiccupOutOnRequest() throws IOException {
        try (Writer run = new Writer()) {
            run.open(2, 1, "camera", 10, 50, 20);
            for (int i = 1; i <= 199; i++) {
                run.job(20 * i, 1, 2);
            }
            run.job(20 * 200, 1, 30);
        }
        final StringOutput drawn = draw();
        assertTrue(drawn.err().contains("its parts take 36ms with the margin, longer than its period 20ms")
            && drawn.err().contains("--percentile 99"), drawn.err());
        assertEquals(ExitCode.NO, StringOutput.of("analyze", directory.resolve("set.yaml").toString()).status());
        final StringOutput without = draw("--percentile", "99");
        assertEquals("", without.err());
        assertEquals(2_400_000, task("camera").gpuNs());
        assertTrue(Files.readString(directory.resolve("set.yaml")).contains("percentile 99 (what was longer is not in "
            + "it)"));
        assertEquals(ExitCode.USAGE, StringOutput.of("trace", "taskset", "x", "--percentile", "0").status());
    }

    @Test
    void shouldMakeNoCpuTimeOfTheBacklogOfBestEffort() throws IOException {
        try (Writer run = new Writer()) {
            run.open(2, 1, "model", 10, 0, 40);
            double at = 4_255;   // the recording begins where it lags already
            // every 40 ms one is released, each has the GPU for 60 and then computes for 1
            for (int i = 0; i < 50; i++) {
                run.ticket++;
                final double begun = at;
                run.event(EventKind.RELEASE, begun, 1, (10 + 40L * i) * MS, 0);
                run.event(EventKind.BEGIN, begun, 1, (long) (begun * MS), 0);
                run.event(EventKind.DECIDED, begun, 1, 0, 0);
                run.event(EventKind.GRANT, begun, 1, 0, 0);
                at += 60;
                if (i == 30) {   // an end that never came: the next job has to wait for it, too
                    run.event(EventKind.FORCED_END, at, 1, (long) (at * MS), 0);
                } else {
                    run.event(EventKind.END, at, 1, (long) (at * MS), 0);
                }
                at += 1;
                run.event(EventKind.JOB_END, at, 1, (long) (at * MS), (long) ((at - 10 - 40 * i) * MS));
            }
        }
        draw("--margin", "0");
        assertTrue(task("model").cpuNs() <= 2 * MS, "backlog, not CPU time: " + task("model"));
    }

    @Test
    void shouldPlaceTasksOnTheCoresThatExistTheBusiestFirst() throws IOException {
        try (Writer run = new Writer()) {
            for (int task = 1; task <= 3; task++) {
                run.open(2, task, "t" + task, 10 + task, 50 + task, 100);
            }
            for (int i = 1; i <= 2; i++) {
                run.job(100 * i, 1, 10);
                run.job(100 * i + 20, 2, 40);
                run.job(100 * i + 70, 3, 10);
            }
        }
        Files.writeString(directory.resolve("set.yaml"), TaskSetDrawing.draw(
            TraceBuilder.read(Source.open(directory.resolve("journal"))), new TaskSetDrawing.Wish("two", 20, 100, 2))
            .yaml());
        assertEquals(2, set().platform().cpus());
        assertEquals(List.of(2, 1, 2), set().tasks().stream().map(Task::cpu).toList());
        draw();
        assertEquals(Runtime.getRuntime().availableProcessors(), set().platform().cpus(), "those of this machine");
    }

    // ---- threads of the callback-isolated executor ----

    private static final String DEFAULTS = "    affinity: ~\n    policy: SCHED_OTHER\n    nice: 0\n";
    private static final String EXECUTOR = "# of the robot\ncallback_groups:\n"
        + "  - id: /detector@Service(/detector/get_parameters)@Subscription(/parameter_events)\n" + DEFAULTS
        + "  - id: /detector@Subscription(/image)\n    affinity: [3]  # isolated\n    policy: SCHED_FIFO\n"
        + "    priority: 40\n"
        + "  - id: /mapping/mapper@Timer(100000000)\n    affinity: [4, 5]\n    policy: SCHED_OTHER\n    nice: 5\n"
        + "  - id: /tracker@Timer(20000000)\n    affinity: [1]\n    policy: SCHED_RR\n    priority: 30\n"
        + "  - id: /logger@Timer(1000)\n    affinity: [1]\n    policy: SCHED_FIFO\n    priority: 90\n";

    /** A detector of GPU priority 70, a tracker of 60, a mapper of best effort. */
    private void recordRobot() {
        try (Writer run = new Writer()) {
            run.open(2, 1, "/detector", 10, 70, 40);
            run.open(2, 2, "/mapping/mapper", 10, 0, 100);
            run.open(2, 3, "tracker", 10, 60, 20);
            for (int i = 1; i <= 3; i++) {
                run.job(100 * i, 1, 4);
                run.job(100 * i + 10, 2, 30);
                run.job(100 * i + 60, 3, 2);
            }
        }
    }

    private Path executor(final String yaml) throws IOException {
        return Files.writeString(directory.resolve("cie.yaml"), yaml);
    }

    private StringOutput taskset(final String from, final String... options) {
        final List<String> all = new ArrayList<>(List.of("trace", "taskset", directory.resolve(from).toString(),
            directory.resolve("cie.yaml").toString()));
        all.addAll(List.of(options));
        return StringOutput.of(all.toArray(new String[0]));
    }

    @Test
    void shouldTakeCoresAndPrioritiesOfTheExecutorsThreadsAndGiveThemBack() throws IOException {
        recordRobot();
        final Path cie = executor(EXECUTOR);
        final StringOutput drawn = draw(cie.toString());
        assertEquals(List.of(4, 5, 2), set().tasks().stream().map(Task::cpu).toList(), "core 3 of Linux is core 4");
        assertEquals(List.of(40, 0, 30), set().tasks().stream().map(Task::priority).toList());
        assertEquals(List.of(70, 0, 60), set().tasks().stream().map(Task::gpuPriority).toList(), "as opened");
        assertEquals(Math.max(Runtime.getRuntime().availableProcessors(), 6), set().platform().cpus());
        assertEquals("gpuseg: warning: " + cie + ":19: \"/logger@Timer(1000)\" is SCHED_FIFO 90 and may run on cpu "
            + "2 of "
            + "the set, but is no task of it, so no bound counts its time; keep it off by its affinity, or add a task "
            + "for it\n", drawn.err());
        final String text = Files.readString(directory.resolve("set.yaml"));
        assertTrue(text.contains("Cores and priorities: " + cie + ".\n"), text);
        assertTrue(text.contains("# No task of the set: line 3, \"/detector@Service(/detecto~"), text);
        assertTrue(text.contains("# No task of the set: line 19, \"/logger@Timer(1000)\", SCHED_FIFO 90\n"), text);

        final Path back = directory.resolve("back.yaml");
        final StringOutput written = taskset("set.yaml", "--out", back.toString());
        assertEquals(ExitCode.OK, written.status(), written.text());
        assertEquals(EXECUTOR, Files.readString(back), "the same configuration");
        assertTrue(written.out().endsWith(": 3 threads have tasks of " + directory.resolve("set.yaml") + ", 0 of them "
            + "changed; all else is as in " + cie + "\n"), written.out());
    }

    @Test
    void shouldFillTheExecutorsTemplateSoThatTheNextDrawingAgrees() throws IOException {
        recordRobot();
        final Path cie = executor(EXECUTOR.replaceAll("affinity: .*", "affinity: ~").replaceAll("SCHED_FIFO|SCHED_RR",
            "SCHED_OTHER").replaceAll("priority: .*", "nice: 0"));
        final StringOutput first = draw(cie.toString());
        assertTrue(first.err().contains(cie + ":7: \"/detector@Subscription(/image)\" is SCHED_OTHER, but task "
            + "\"/detector\" is real-time; the set says priority 70, with which it was opened, and no bound holds "
            + "before "
            + "its thread has it: write SCHED_FIFO, or let gpuseg trace taskset SET " + cie + " do it\n"), first.err());
        assertTrue(first.err().contains("\"/tracker@Timer(20000000)\" has no affinity, but task \"tracker\" has one "
            + "core "
            + "in a set, which says cpu: " + task("tracker").cpu() + "; write affinity: [" + (task("tracker").cpu() - 1)
            + "], or "), first.err());
        final TaskSet set = set();
        final StringOutput filled = taskset("set.yaml");
        assertEquals(ExitCode.OK, filled.status(), filled.text());
        assertEquals("", filled.err());
        final ThreadConfiguration now = ThreadConfiguration.read(executor(filled.out()));
        assertEquals("SCHED_FIFO 70", now.threadOf("/detector").scheduling());
        assertEquals(List.of(task("tracker").cpu() - 1), now.threadOf("tracker").cores());
        assertEquals("SCHED_OTHER", now.threadOf("/logger").scheduling(), "none of the set stays");
        assertEquals("", draw(cie.toString()).err());
        assertEquals(set.tasks().get(2), task("tracker"));
        assertEquals(set.tasks().get(0), task("/detector"));
    }

    @Test
    void shouldNameWhatATaskSetCannotSayOfAThread() throws IOException {
        recordRobot();
        final Path cie = executor("callback_groups:\n"
            + "  - {id: /detector@Timer(5), affinity: [0, 1], policy: SCHED_FIFO, priority: 7}\n"
            + "  - {id: /mapping/mapper@Timer(5), policy: SCHED_FIFO, priority: 3}\n");
        final String said = draw(cie.toString()).err();
        final int cpu = task("/detector").cpu();
        assertTrue(cpu <= 2, "one of those that it may use: " + cpu);
        assertTrue(said.contains(cie + ":2: \"/detector@Timer(5)\" has affinity [0, 1], but task \"/detector\" has one "
            + "core in a set, which says cpu: " + cpu + "; write affinity: [" + (cpu - 1) + "], or "), said);
        assertTrue(said.contains(cie + ":3: \"/mapping/mapper@Timer(5)\" is SCHED_FIFO 3, but task "
            + "\"/mapping/mapper\" is best effort, which has no priority in a set, so no bound counts its time; write "
            + "SCHED_OTHER, or "), said);
        assertTrue(said.contains("task \"tracker\" is of no thread of " + cie + ", so its core and "
            + "its priority 60 are not from there; let its program open it under the name of its node or "
            + "callback group"), said);
    }

    @Test
    void shouldWarnWhereTasksShareAThread() throws IOException {
        try (Writer run = new Writer()) {
            run.open(2, 1, "/detector", 10, 70, 40);
            run.open(2, 2, "detector", 10, 60, 40);
            run.job(100, 1, 4);
            run.job(110, 2, 4);
        }
        final Path cie = executor("callback_groups: [{id: /detector@Timer(5), affinity: [0], policy: SCHED_FIFO, "
            + "priority: 7}]\n");
        assertTrue(draw(cie.toString()).err().contains(cie + ":1: \"/detector@Timer(5)\" is the thread of task "
            + "\"detector\" and of \"/detector\"; no bound counts that one waits while the other waits for the GPU: "
            + "give each a callback group of its own"));
        assertEquals(List.of(7, 7), set().tasks().stream().map(Task::priority).toList());
    }

    @Test
    void shouldRefuseWhatCannotBeConvertedAndWriteNothing() throws IOException {
        recordRobot();
        final Path out = directory.resolve("out.yaml");
        executor("callback_groups:\n  - {id: /detector@Timer(5), policy: SCHED_DEADLINE, runtime: 1, deadline: 2, "
            + "period: 2}\n");
        final StringOutput reserved = taskset("journal", "--out", out.toString());
        assertEquals(ExitCode.USAGE, reserved.status());
        assertTrue(reserved.err().contains("cie.yaml:2: \"/detector@Timer(5)\", the thread of task \"/detector\", is "
            + "SCHED_DEADLINE, for which a task set has no word; write SCHED_FIFO and a priority, or "),
            reserved.err());

        draw();
        final StringOutput margin = taskset("set.yaml", "--margin", "5", "--out", out.toString());
        assertEquals(ExitCode.USAGE, margin.status());
        assertTrue(margin.err().contains("--margin is for recordings, and "), margin.err());
        executor("callback_groups:\n  - {id: /other@Timer(5), policy: SCHED_OTHER, nice: 0}\n");
        final StringOutput none = taskset("set.yaml", "--out", out.toString());
        assertEquals(ExitCode.USAGE, none.status());
        assertTrue(none.err().contains("cie.yaml: no thread is that of a task of "), none.err());
        Files.delete(directory.resolve("cie.yaml"));
        assertTrue(taskset("journal").err().contains("cie.yaml: there is no such file"));
        assertFalse(Files.exists(out));
    }
}

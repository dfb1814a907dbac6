/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.TaskSetReader;
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
}

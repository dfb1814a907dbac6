/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Every trace command, on one recording of a real daemon on the virtual GPU, and on copies with planted faults. */
@Timeout(180)
@Tag("long")
class TraceCommandTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Columns of what a task wrote: it looked at the clock just before and just after it marked the end of a job. */
    private static final int WORKED = 3;
    private static final int RESPONSE = 1;

    @TempDir
    private static Path shared;
    private static Path recording;
    private static Path set;

    @TempDir
    private Path directory;

    private static Path files;

    @BeforeAll
    static void record() throws Exception {
        final int[] demos = new int[1];
        Attempts.of(4, () -> {
            record(shared.resolve("demo" + demos[0]++));
            final StringOutput checked = check(recording, "--decisions");
            String stalled = null;
            for (final JsonNode finding : JSON.readTree(checked.out()).path("findings")) {
                final String kind = finding.path("kind").asText();
                assertTrue(kind.matches("inversion|wcet|deadline|bound"), finding::toString);
                // disabled too late, or a preempted window that stood still: the set is drawn from undisturbed ones
                stalled = kind.matches("inversion|wcet") ? checked.out() : stalled;
            }
            return stalled;
        });
    }

    private static void record(final Path directory) throws IOException {
        files = directory.resolve("out");
        final StringOutput demo = StringOutput.of("demo", "--workload", "gcaps-xavier", "--duration", "2s", "--json",
            "--out", files.toString(), "--trace", directory.resolve("trace").toString());
        assertEquals(ExitCode.OK, demo.status(), demo.text());
        final JsonNode written = JSON.readTree(demo.out()).path("trace");
        recording = Path.of(written.path("recording").asText());
        assertTrue(Files.size(Path.of(written.path("timeline").asText())) > 10_000);
        assertTrue(Files.size(Path.of(written.path("perfetto").asText())) > 10_000);
        set = directory.resolve("set.yaml");
        final StringOutput drawn = StringOutput.of("trace", "taskset", recording.toString(), "--out", set.toString());
        assertEquals(ExitCode.OK, drawn.status(), drawn.text());
    }

    private static StringOutput check(final Path file, final String... more) {
        final List<String> arguments = new ArrayList<>(List.of("trace", "check", file.toString(), "--taskset",
            set.toString(), "--json"));
        arguments.addAll(List.of(more));
        return StringOutput.of(arguments.toArray(new String[0]));
    }

    private static JsonNode broken(final Path file, final String kind, final String... more) throws IOException {
        final StringOutput checked = check(file, more);
        assertEquals(ExitCode.NO, checked.status(), checked.text());
        for (final JsonNode finding : JSON.readTree(checked.out()).path("findings")) {
            if (kind.equals(finding.path("kind").asText())) {
                return finding;
            }
        }
        throw new AssertionError("no finding of kind " + kind + ": " + checked.out());
    }

    // ---- the recording ---------------------------------------------------------------------------------------------

    @Test
    void shouldWriteARecordingThatIsImmutableAndTellsItsOrigin() throws IOException {
        final JsonNode manifest = Source.open(recording).manifest();
        assertEquals(1, manifest.path("version").asInt());
        assertTrue(manifest.path("simulated").asBoolean());
        assertEquals(0, manifest.path("lost_events").asLong());
        assertEquals(1, manifest.path("incarnations").asInt());
        assertTrue(manifest.path("clocks").path("snapshots").size() >= 2, manifest::toString);
        assertTrue(manifest.path("config").path("mechanism").asText().equals("sim"), manifest::toString);
        assertFalse(Files.getPosixFilePermissions(recording).toString().contains("WRITE"));
        final StringOutput again = StringOutput.of("trace", "record",
            files.resolve("journal").toString(), "--out", recording.toString());
        assertEquals(ExitCode.USAGE, again.status());
        assertTrue(again.err().contains("never changed"), again::err);
    }

    @Test
    void shouldPutTheTasksOfARecordingOnTheThreadsOfTheExecutorAndBack() throws IOException {
        final StringBuilder yaml = new StringBuilder("callback_groups:\n");
        final List<Task> tasks = new TaskSetReader().read(set).tasks();
        for (int i = 0; i < tasks.size(); i++) {
            yaml.append("  - id: /robot/").append(tasks.get(i).name()).append("@Timer(5)\n    affinity: [").append(i
                + 10)
                .append("]\n    policy: ").append(tasks.get(i).bestEffort() ? "SCHED_OTHER\n    nice: 0\n"
                : "SCHED_FIFO\n    priority: " + (i + 1) + "\n");
        }
        final Path executor = Files.writeString(directory.resolve("cie.yaml"), yaml);
        final Path with = directory.resolve("with-threads.yaml");
        final StringOutput drawn = StringOutput.of("trace", "taskset", recording.toString(),
            executor.toString(), "--out", with.toString());
        assertEquals(ExitCode.OK, drawn.status(), drawn.text());
        final List<Task> placed = new TaskSetReader().read(with).tasks();
        assertEquals(tasks.size(), placed.size());
        for (int i = 0; i < placed.size(); i++) {
            assertEquals(i + 11, placed.get(i).cpu());
            assertEquals(tasks.get(i).bestEffort() ? 0 : i + 1, placed.get(i).priority());
            assertEquals(tasks.get(i).gpuPriority(), placed.get(i).gpuPriority());
        }
        assertEquals(yaml.toString(), StringOutput.of("trace", "taskset", with.toString(),
            executor.toString()).out());
    }

    @Test
    void shouldRefuseADamagedRecording() throws IOException {
        final byte[] bytes = Files.readAllBytes(recording);
        bytes[bytes.length / 3] ^= 0x55;
        final Path damaged = Files.write(directory.resolve("damaged.gpuseg"), bytes);
        assertEquals(ExitCode.FAILURE, StringOutput.of("trace", "stats", damaged.toString()).status());
        final Path other = Files.writeString(directory.resolve("other.gpuseg"), "not a recording");
        final StringOutput refused = StringOutput.of("trace", "stats", other.toString());
        assertEquals(ExitCode.USAGE, refused.status());
        assertTrue(refused.err().contains("not a recording"), refused::err);
    }

    @Test
    void shouldDrawResponseTimesBeforeAndAfter() throws Exception {
        for (final String format : List.of("html", "svg")) {
            final Path file = directory.resolve("stats." + format);
            final StringOutput drawn = StringOutput.of("trace", "stats", recording.toString(), "--out",
                file.toString());
            assertEquals(ExitCode.OK, drawn.status(), drawn.text());
            final String text = Files.readString(file);
            for (final String shown : List.of("histogram, priority 70", "mmul_gpu_2, best effort", "policy rr",
                "policy fp", "deadline 100 ms", "SIMULATED GPU", "complete within, %", "jobs, %",
                "prefers-color-scheme: dark")) {
                assertTrue(text.contains(shown), shown + " is not in the " + format);
            }
            assertTrue(!text.replace("http://www.w3.org/2000/svg", "")
                .matches("(?s).*(https?:|src=|@import|<script).*"), "something is loaded from elsewhere");
        }
        javax.xml.parsers.DocumentBuilderFactory.newInstance().newDocumentBuilder()
            .parse(directory.resolve("stats.svg").toFile());
        final StringOutput both = StringOutput.of("trace", "stats", recording.toString(), "--json", "--out",
            directory.resolve("both.svg").toString());
        assertEquals(ExitCode.USAGE, both.status());
    }

    @Test
    void shouldCountJobsAsTheTasksThemselvesDid() throws IOException {
        final StringOutput stats = StringOutput.of("trace", "stats", recording.toString(), "--json");
        assertEquals(ExitCode.OK, stats.status(), stats.text());
        int rows = 0;
        for (final JsonNode row : JSON.readTree(stats.out()).path("tasks")) {
            final List<String> jobs = Files.readAllLines(files.resolve(row.path("policy").asText() + "-"
                + row.path("name").asText() + ".csv"));
            assertEquals(jobs.size() - 1, row.path("jobs").asInt(), row::toString);
            final long max = row.path("response_ns").path("max").asLong();
            assertTrue(longest(jobs, WORKED) <= max && max <= longest(jobs, RESPONSE), () -> row + ": " + jobs);
            rows++;
        }
        assertEquals(14, rows, "seven tasks under two policies");
        final String text = StringOutput.of("trace", "stats", recording.toString()).out();
        assertTrue(text.contains("SIMULATED GPU") && text.contains("policy fp") && text.contains("histogram"), text);
    }

    private static long longest(final List<String> jobs, final int column) {
        return jobs.stream().skip(1).mapToLong(line -> Long.parseLong(line.split(",")[column])).max().orElseThrow();
    }

    @Test
    void shouldFollowOnlyForAsLongAsToldAndKeepWhatIsOpen() throws Exception {
        final Path out = directory.resolve("followed.gpuseg");
        final StringOutput followed = StringOutput.of("trace", "record",
            files.resolve("journal").toString(), "--out", out.toString(), "--duration", "50ms");
        assertEquals(ExitCode.OK, followed.status(), followed.text());
        final JsonNode manifest = Source.open(out).manifest();
        assertTrue(manifest.path("preface_events").asInt() >= 2, manifest::toString);
        assertEquals(0, manifest.path("lost_events").asLong());
        final StringOutput stats = StringOutput.of("trace", "stats", out.toString(), "--json");
        assertEquals(0, JSON.readTree(stats.out()).path("lost_events").asLong(), stats.text());
    }

    // ---- record, task set, analyse, check --------------------------------------------------------------------------

    @Test
    void shouldCloseTheLoopWithoutEditing() throws IOException {
        final StringOutput analyzed = StringOutput.of("analyze", set.toString(), "--format", "json");
        assertTrue(analyzed.status() == ExitCode.OK || analyzed.status() == ExitCode.NO, analyzed.text());
        final JsonNode tasks = JSON.readTree(analyzed.out()).path("results").path("gcaps-window-suspend").path("tasks");
        assertEquals(7, tasks.size(), analyzed.text());
        final StringOutput checked = check(recording, "--decisions");
        final JsonNode result = JSON.readTree(checked.out());
        final boolean late = lateJobs() > 0;   // on an overloaded machine deadlines are missed for real
        assertEquals(late ? ExitCode.NO : ExitCode.OK, checked.status(), checked.text());
        assertTrue(result.path("jobs_judged").asInt() > 50, checked.text());
        assertTrue(result.path("decisions_compared").asInt() > 100, checked.text());
        assertTrue(result.path("simulated").asBoolean());
        for (final JsonNode finding : result.path("findings")) {
            assertTrue(late && finding.path("kind").asText().matches("deadline|bound"), finding::toString);
        }
    }

    /** By the tasks' own account. */
    private static long lateJobs() throws IOException {
        long late = 0;
        for (final String task : List.of("histogram", "mmul_gpu_1", "mmul_cpu", "projection", "dxtc")) {
            late += Files.readAllLines(files.resolve("fp-" + task + ".csv")).stream()
                .filter(line -> line.endsWith(",1")).count();
        }
        return late;
    }

    @Test
    void shouldDrawWhatTheTasksWereToldToDo() throws IOException {
        final String yaml = Files.readString(set);
        assertTrue(yaml.contains("SIMULATED GPU") && yaml.contains("plus 20 %"), yaml);
        assertTrue(yaml.contains("name: histogram") && yaml.contains("period: 100ms"), yaml);
        assertTrue(yaml.contains("device: 10.8ms"), "9 ms and the margin: " + yaml);
        assertTrue(yaml.contains("name: mmul_gpu_2") && yaml.contains("best_effort: true"), yaml);
    }

    // ---- planted faults --------------------------------------------------------------------------------------------

    /** Events of the fp phase of one kind and task. */
    private static List<Integer> find(final List<JournalEvent> events, final EventKind kind, final String task) {
        final Map<Integer, String> names = new HashMap<>();
        final List<Integer> found = new ArrayList<>();
        boolean enforced = false;
        for (int i = 0; i < events.size(); i++) {
            final JournalEvent e = events.get(i);
            enforced |= e.kind() == EventKind.POLICY && e.text().equals("policy fp");
            if (e.kind() == EventKind.TASK_OPEN) {
                names.put(e.taskId(), e.text().replaceAll(".*\"name\":\"([^\"]*)\".*", "$1"));
            }
            if (enforced && e.kind() == kind && task.equals(names.get(e.taskId()))) {
                found.add(i);
            }
        }
        return found;
    }

    @Test
    void shouldFindAPlantedOverrunOfTheExecutionTime() throws IOException {
        final List<JournalEvent> events = Recordings.events(recording);
        final int third = find(events, EventKind.END, "projection").get(2);
        events.set(third, Recordings.with(events.get(third), Abi.Event.ARG1_OFFSET, 40_000_000L));
        final JsonNode finding = broken(Recordings.write(events, directory.resolve("planted")), "wcet");
        assertEquals("projection", finding.path("task").asText());
        assertEquals(3, finding.path("job").asInt() - firstEnforcedJob("projection") + 1, finding::toString);
        assertEquals(40_000_000L, finding.path("measured").asLong());
    }

    private static int firstEnforcedJob(final String task) throws IOException {
        return Files.readAllLines(files.resolve("rr-" + task + ".csv")).size();
    }

    @Test
    void shouldFindAPlantedLostRecord() throws IOException {
        final List<JournalEvent> events = Recordings.events(recording);
        events.remove(events.size() / 2);
        final JsonNode finding = broken(Recordings.write(events, directory.resolve("planted")), "lost");
        assertEquals(1, finding.path("measured").asInt());
    }

    @Test
    void shouldFindALossThatTheRingSuffered() throws IOException {
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 12);
            JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20)) {
            ring.writeText(EventKind.START, 1, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\"}");
            for (int i = 0; i < 100; i++) {
                ring.write(EventKind.STALL, 2 + i, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            }
            agent.drain();
            ring.write(EventKind.STALL, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            agent.drain();
        }
        final Path out = directory.resolve("lossy.gpuseg");
        Recorder.copy(directory.resolve("journal"), out);
        assertTrue(Source.open(out).manifest().path("lost_events").asLong() > 10);
        assertTrue(broken(out, "lost").path("measured").asInt() > 10);
    }

    @Test
    void shouldFindAPlantedPriorityInversion() throws IOException {
        // a begin that displaced best-effort work: let it wait for what it displaced
        final List<JournalEvent> events = Recordings.events(recording);
        final Set<Integer> removed = new HashSet<>();
        int at = -1;
        for (final int begin : find(events, EventKind.BEGIN, "histogram")) {
            if (events.get(begin + 1).kind() == EventKind.PREEMPT) {
                at = begin;
                break;
            }
        }
        assumeTrue(at >= 0, "in this run no histogram segment displaced another");
        final JournalEvent begin = events.get(at);
        events.set(at, Recordings.withoutFlags(begin));
        boolean ended = false;
        for (int i = at + 1; i < events.size() && !ended; i++) {
            final JournalEvent e = events.get(i);
            final boolean ours = e.taskId() == begin.taskId() && e.ticket() == begin.ticket();
            ended = ours && e.kind() == EventKind.END;
            if (ours && !ended || e.kind() == EventKind.PREEMPT) {
                removed.add(i);
            }
        }
        final List<JournalEvent> kept = new ArrayList<>();
        for (int i = 0; i < events.size(); i++) {
            if (!removed.contains(i)) {
                kept.add(events.get(i));
            }
        }
        final Path planted = Recordings.writeNumbered(kept, directory.resolve("planted"));
        final JsonNode finding = broken(planted, "inversion");
        assertEquals("histogram", finding.path("task").asText(), finding::toString);
        assertTrue(finding.path("measured").asLong() > 5_000_000, finding::toString);
        assertTrue(broken(planted, "decision", "--decisions").path("text").asText().contains("scheduler"));
    }

    @Test
    void shouldFindAPlantedChangeOfADecision() throws IOException {
        final List<JournalEvent> events = Recordings.events(recording);
        final List<Integer> preemptions = find(events, EventKind.PREEMPT, "simpleTexture3D");
        preemptions.addAll(find(events, EventKind.PREEMPT, "mmul_gpu_2"));
        final int first = preemptions.get(0);
        events.set(first, Recordings.with(events.get(first), Abi.Event.ARG0_OFFSET, 4095));
        final DecisionReplay.Result result =
            DecisionReplay.of(Source.open(Recordings.write(events, directory.resolve("planted"))));
        assertEquals(1, result.differences().size(), result::toString);
        assertTrue(result.differences().get(0).contains("argument=4095"), result::toString);
    }

    @Test
    void shouldSayThatTheRestCannotBeReplayedAfterALoss() throws IOException {
        final List<JournalEvent> events = Recordings.events(recording);
        events.remove(events.size() / 2);
        final DecisionReplay.Result result =
            DecisionReplay.of(Source.open(Recordings.write(events, directory.resolve("planted"))));
        assertTrue(result.incomplete().contains("missing"), result::toString);
        assertFalse(result.agrees());
    }

    // ---- exports ---------------------------------------------------------------------------------------------------

    private Path export(final String ending) {
        final Path out = directory.resolve("export." + ending);
        final StringOutput done = StringOutput.of("trace", "export", recording.toString(), "--out", out.toString());
        assertEquals(ExitCode.OK, done.status(), done.text());
        return out;
    }

    @Test
    void shouldWritePerfettoTracesAsPerfettoPublishesThem() throws IOException {
        try (InputStream in = Files.newInputStream(export("pftrace"))) {
            final PerfettoFormat.Contents read = PerfettoFormat.read(PerfettoFormat.packets(in));
            assertEquals(List.of(), read.problems());
            assertTrue(read.slices() > 500 && read.counts() > 500 && read.snapshots() >= 1, read::toString);
            assertTrue(read.arrows() > 100, read.arrows() + " arrows from begin over grant to end");
            assertTrue(read.tracks().containsValue("gpuseg (simulated)")
                && read.tracks().containsValue("GPU 0 (simulated)")
                && read.tracks().containsValue("histogram (priority 70)"), read.tracks()::toString);
            assertTrue(read.fields().size() >= 30, read.fields()::toString);
        }
    }

    @Test
    void shouldShowKernelsOfAnotherToolBesideTheSegments() throws IOException {
        final JsonNode manifest = Source.open(recording).manifest();
        final long firstNs = manifest.path("first_ns").asLong();
        final long lastNs = manifest.path("last_ns").asLong();
        final long aheadNs = 7_000_000_000_000L;   // the GPU's clock
        final Path clock = Files.writeString(directory.resolve("clock.csv"), "before_ns,gpu_ns,after_ns\n"
            + (firstNs - 400) + "," + (firstNs + aheadNs) + "," + (firstNs + 400) + "\n"
            + (lastNs - 300) + "," + (lastNs + aheadNs) + "," + (lastNs + 300) + "\n");
        final Path kernels = Files.writeString(directory.resolve("kernels.csv"), "gpu,name,start_gpu_ns,end_gpu_ns\n"
            + "0,gemm," + (firstNs + aheadNs + 5_000_000) + "," + (firstNs + aheadNs + 9_000_000) + "\n"
            + "0,copy," + (firstNs + aheadNs + 6_000_000) + "," + (firstNs + aheadNs + 7_000_000) + "\n");
        final Path out = directory.resolve("kernels.pftrace");
        final StringOutput done = StringOutput.of("trace", "export", recording.toString(), "--out", out.toString(),
            "--kernels", kernels.toString(), "--gpu-clock", clock.toString());
        assertEquals(ExitCode.OK, done.status(), done.text());
        try (InputStream in = Files.newInputStream(out)) {
            final PerfettoFormat.Contents read = PerfettoFormat.read(PerfettoFormat.packets(in));
            assertEquals(List.of(), read.problems());
            assertTrue(read.tracks().containsValue("kernels, +-400 ns")
                && read.tracks().containsValue("kernels, +-400 ns, 2"), read.tracks()::toString);
            final List<PerfettoFormat.Span> gemm = read.spans().stream().filter(s -> s.name().equals("gemm")).toList();
            assertEquals(1, gemm.size());
            assertEquals(firstNs + 5_000_000, gemm.get(0).fromNs(), 500);
            assertEquals(4_000_000, gemm.get(0).toNs() - gemm.get(0).fromNs(), 500);
        }
        final StringOutput alone = StringOutput.of("trace", "export", recording.toString(), "--kernels",
            kernels.toString());
        assertEquals(ExitCode.USAGE, alone.status());
        assertTrue(alone.err().contains("belong together"), alone.err());
        final StringOutput html = StringOutput.of("trace", "export", recording.toString(), "--kernels",
            kernels.toString(), "--gpu-clock", clock.toString(), "--out", directory.resolve("k.html").toString());
        assertEquals(ExitCode.USAGE, html.status());
        assertTrue(html.err().contains("name a file that ends in .pftrace"), html.err());
    }

    /** Each rule of the reader above is broken once, in a real export. */
    @Test
    void shouldTellWhatIsWrongWithAPerfettoTrace() throws IOException {
        final List<UnknownFieldSet> good;
        try (InputStream in = Files.newInputStream(export("pftrace"))) {
            good = PerfettoFormat.packets(in);
        }
        final int begin = find(good, 11, 9, 1);
        final int end = find(good, 11, 9, 2);
        final int track = find(good, 60, 1, -1);
        planted(good, 0, UnknownFieldSet.newBuilder(good.get(0)).clearField(13).build(), "before its sequence's state");
        planted(good, begin, null, "ends a slice that was not begun");
        planted(good, end, null, "open slices");
        planted(good, track, null, "not described");
        planted(good, track + 1, good.get(track), "described twice");
        planted(good, end, changed(good.get(end), 8, 1), "goes back in time");
        planted(good, begin, changed(good.get(begin), 58, 64), "no snapshot before has");
        planted(good, begin, changed(good.get(begin), 77, 1), "not in the table");
        planted(good, begin, UnknownFieldSet.newBuilder(good.get(begin)).clearField(8).addField(8,
            UnknownFieldSet.Field.newBuilder().addFixed64(1).build()).build(), "not of wire type VARINT");
        final int ending = find(good, 11, 48, -1);
        planted(good, ending + 1, good.get(ending), "goes on after its end");
    }

    private static void planted(final List<UnknownFieldSet> good, final int at, final UnknownFieldSet instead,
        final String said) throws IOException {
        final List<UnknownFieldSet> bad = new ArrayList<>(good);
        if (instead == null) {
            bad.remove(at);
        } else {
            bad.set(at, instead);
        }
        final List<String> problems = PerfettoFormat.read(bad).problems();
        assertTrue(problems.stream().anyMatch(p -> p.contains(said)), () -> said + ": " + problems);
    }

    private static UnknownFieldSet changed(final UnknownFieldSet packet, final int field, final long value) {
        return UnknownFieldSet.newBuilder(packet).clearField(field)
            .addField(field, UnknownFieldSet.Field.newBuilder().addVarint(value).build()).build();
    }

    /** The first packet whose message has a field, of a value unless that is -1. */
    private static int find(final List<UnknownFieldSet> packets, final int message, final int field, final long value)
        throws IOException {
        for (int i = 0; i < packets.size(); i++) {
            for (final ByteString bytes : packets.get(i).getField(message).getLengthDelimitedList()) {
                final UnknownFieldSet.Field found = UnknownFieldSet.parseFrom(bytes).getField(field);
                if (value < 0 ? !found.equals(UnknownFieldSet.Field.getDefaultInstance())
                    : found.getVarintList().contains(value)) {
                    return i;
                }
            }
        }
        throw new AssertionError("no packet has " + message + "." + field);
    }

    @Test
    void shouldWriteOneLinePerSegment() throws IOException {
        final List<String> csv = Files.readAllLines(export("csv"));
        final long begins = Recordings.events(recording).stream().filter(e -> e.kind() == EventKind.BEGIN).count();
        assertEquals(begins + 1, csv.size());
        csv.forEach(line -> assertEquals(24, line.split(",", -1).length, line));
    }

    @Test
    void shouldShowTheTimelineInABrowserWithoutAnyNetwork() throws Exception {
        TimelinePage.assumeBrowser();
        final List<JournalEvent> events = Recordings.events(recording);
        final int late = find(events, EventKind.JOB_END, "dxtc").get(1);
        events.set(late, Recordings.with(events.get(late), Abi.Event.ARG1_OFFSET, 450_000_000L));
        final Path planted = Recordings.write(events, directory.resolve("late <&.gpuseg"));
        final Path page = directory.resolve("timeline.html");
        assertEquals(ExitCode.OK, StringOutput.of("trace", "export", planted.toString(), "--out", page.toString())
            .status());
        final String html = Files.readString(page);
        assertFalse(html.matches("(?s).*(src|href)=\"(?!data:).*"), "nothing is loaded");
        final String shown = TimelinePage.shown(page, "", directory);
        assertTrue(shown.contains("SIMULATED GPU"), "label");
        assertTrue(shown.matches("(?s).*[1-9][0-9]* deadline miss(es)?</button>.*"), "the planted miss is counted");
        assertTrue(shown.matches("(?s).*<div class=\"tab on\" id=\"tab-misses\">.*dxtc.*50.000 ms.*"), "its row");
        assertTrue(shown.contains("late &lt;&amp;"), "names are escaped");
        for (final String task : List.of("histogram", "mmul_cpu", "simpleTexture3D")) {
            assertTrue(shown.contains(task), task);
        }
    }

    // ---- a task that misbehaves for real ---------------------------------------------------------------------------

    @Test
    void shouldReplayTheWorkloadAsLoad() throws IOException {
        final StringOutput replayed = StringOutput.of("replay", recording.toString(), "--duration", "1s", "--out",
            directory.resolve("replay").toString(), "--json");
        assertEquals(ExitCode.OK, replayed.status(), replayed.text());
        final JsonNode result = JSON.readTree(replayed.out());
        assertTrue(result.path("simulated").asBoolean());
        assertEquals(7, result.path("tasks").size(), replayed.text());
        for (final JsonNode task : result.path("tasks")) {
            assertTrue(task.path("replayed").path("jobs").asInt() >= 2, task::toString);
        }
        // the same set, half as long: now the real tasks overrun what was assumed of them
        final String halved = Files.readString(set).replace("device: 10.8ms", "device: 4ms");
        final Path wrong = Files.writeString(directory.resolve("wrong.yaml"), halved);
        final StringOutput checked = StringOutput.of("trace", "check", directory.resolve("replay").toString(),
            "--taskset", wrong.toString(), "--json");
        assertEquals(ExitCode.NO, checked.status(), checked.text());
        assertTrue(checked.out().contains("device part of segment 1 took 9ms, the set says 4ms"), checked.text());
        assertTrue(DecisionReplay.of(Source.open(directory.resolve("replay"))).agrees());
    }
}

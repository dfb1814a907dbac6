/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static dev.gpuseg.analysis.sim.Sets.MS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.RandomSets;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ResultWriter;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.io.TaskSetWriter;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.partition.Partitioning;
import dev.gpuseg.analysis.report.HtmlReport;
import dev.gpuseg.analysis.report.JsonReport;
import dev.gpuseg.analysis.report.Report;
import dev.gpuseg.analysis.report.TextReport;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Work beside GPU segments: {@code co_run} of the platform, analysis/docs/beside.md. */
class CoRunTest {
    private static final int PERCENT = 10;
    private static final int SETS = 300;

    private static TaskSet coRun(final TaskSet set, final int percent) {
        return set.withPlatform(set.platform().withCoRunPercent(percent));
    }

    /** Every window longer by as much as {@code more} says, in percent of its declared times. */
    private static TaskSet longer(final TaskSet set, final java.util.function.IntSupplier more) {
        final List<Task> tasks = new ArrayList<>();
        for (final Task task : set.tasks()) {
            final List<Segment> segments = new ArrayList<>();
            for (final Segment segment : task.segments()) {
                final long percent = 100L + more.getAsInt();
                segments.add(segment instanceof Segment.Gpu g ? new Segment.Gpu(g.hostNs() * percent / 100,
                    g.deviceNs() * percent / 100, g.totalNs() * percent / 100) : segment);
            }
            tasks.add(task.withSegments(segments));
        }
        return set.withTasks(tasks);
    }

    private static TaskSet one(final double deviceMs) {
        return Sets.set(WaitMode.SUSPEND, 1, 1, Sets.task("camera", 1, 50, 100, Sets.gpu(0, deviceMs)));
    }

    private static TaskSet file(final String platform) throws InvalidFileException {
        return new TaskSetReader().readText("version: 1\nid: s\nplatform: {cpus: 1, epsilon: 1ms" + platform
            + "}\nmode: suspend\ntasks:\n  - {name: camera, cpu: 1, period: 100ms, priority: 50, segments: [{gpu: "
            + "{host: 0ms, device: 10ms}}]}\n", "s.yaml");
    }

    @Test
    void shouldReadAndWriteTheFactor() throws InvalidFileException {
        final TaskSet set = file(", co_run: 10%");
        assertEquals(PERCENT, set.platform().coRunPercent());
        assertEquals(10 * MS, set.tasks().get(0).deviceNs(), "the file's times stay as declared");
        assertEquals(set, new TaskSetReader().readText(TaskSetWriter.json(set), "s.json"));
        assertEquals(0, file("").platform().coRunPercent());
    }

    @ParameterizedTest
    @CsvSource({"10", "0%", "101%", "10 %", "-1%", "010%", "1e1%", "1.5%", "\"\""})
    void shouldRefuseAnythingButAPercentage(final String value) {
        final String text = assertThrows(InvalidFileException.class, () -> file(", co_run: " + value)).getMessage();
        assertTrue(text.contains("co_run") && text.contains("1%..100%") && text.contains("co_run: 10%"), text);
    }

    @Test
    void shouldRoundUpAndLeaveCpuSegmentsAlone() {
        final TaskSet set = coRun(Sets.set(WaitMode.SUSPEND, 1, 1, new Task("t", 1, 0, 100 * MS, 100 * MS, 0, 0, 1, 1,
            false, List.of(new Segment.Cpu(5), new Segment.Gpu(1, 9, 9)))), PERCENT);
        assertEquals(List.of(new Segment.Cpu(5), new Segment.Gpu(2, 10, 10)), set.slowed().tasks().get(0).segments());
        final TaskSet slowed = set.slowed();
        assertSame(slowed, slowed.slowed(), "once");
        final TaskSet without = coRun(set, 0);
        assertSame(without, without.slowed());
    }

    /** Every analysis and the simulator see the longer segments, each once. */
    @Test
    void shouldCountEverySegmentThatMuchLonger() {
        int compared = 0;
        for (int seed = 0; seed < SETS / 10; seed++) {
            final TaskSet declared = RandomSets.of(seed);
            final TaskSet byHand = coRun(declared, PERCENT).slowed();
            for (final Analysis analysis : Analyses.all()) {
                compared += sameBounds(analysis, coRun(declared, PERCENT), byHand);
            }
            assertEquals(simulated(byHand, seed), simulated(coRun(declared, PERCENT), seed));
            assertEquals(Partitioning.WFD.partition(byHand).tasks().stream().map(Task::cpu).toList(),
                Partitioning.WFD.partition(coRun(declared, PERCENT)).tasks().stream().map(Task::cpu).toList());
        }
        assertTrue(compared > 100, compared + " bounds compared");
    }

    private static int sameBounds(final Analysis analysis, final TaskSet set, final TaskSet byHand) {
        final AnalysisResult expected;
        try {
            expected = analysis.analyse(byHand);
        } catch (final InvalidModelException e) {
            assertThrows(InvalidModelException.class, () -> analysis.analyse(set));
            return 0;
        }
        assertEquals(expected, analysis.analyse(set), analysis.name());
        return 1;
    }

    private static List<Long> simulated(final TaskSet set, final long seed) {
        final Simulator simulator = new Simulator(set);
        simulator.execute(SimulationOptions.ofDurationNs(300 * MS).withSeed(seed));
        final List<Long> responses = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            responses.add(simulator.maxResponseNs(i));
        }
        return responses;
    }

    /** Theorem 16: segments that are slowed by at most the factor, each by another share. */
    @Test
    void shouldBoundWhatIsSlowedByAtMostTheFactor() {
        final Analysis analysis = Analyses.get("gcaps-window-suspend");
        int schedulable = 0;
        for (int seed = 0; seed < SETS; seed++) {
            final SplittableRandom random = new SplittableRandom(seed);
            final TaskSet declared = RandomSets.of(seed);
            final AnalysisResult bounds = analysis.analyse(coRun(declared, PERCENT));
            if (!bounds.schedulable()) {
                continue;
            }
            schedulable++;
            final List<Long> seen = simulated(longer(declared, () -> random.nextInt(PERCENT + 1)), seed);
            for (int i = 0; i < seen.size(); i++) {
                final Long boundNs = bounds.tasks().get(i).wcrtNs();
                assertTrue(declared.tasks().get(i).bestEffort() || seen.get(i) <= boundNs, declared.id() + ": task " + i
                    + " took " + seen.get(i) + ", bound " + boundNs);
            }
        }
        assertTrue(schedulable > SETS / 10, schedulable + " sets");
    }

    /** Why the assumption speaks of every segment: a mean is no bound. */
    @Test
    void shouldBoundNothingWhereASingleSegmentIsSlowedMore() {
        final long boundNs = Analyses.get("gcaps-window-suspend").analyse(coRun(one(10), PERCENT)).tasks().get(0)
            .wcrtNs();
        assertEquals(13 * MS, boundNs, "10 ms, a tenth of it, two updates");
        assertTrue(simulated(one(10 * 1.1), 1).get(0) <= boundNs);
        assertTrue(simulated(one(10 * 1.4), 1).get(0) > boundNs);
    }

    @Test
    void shouldSayThatNothingChecksTheAssumption() throws Exception {
        final TaskSet set = Sets.stated(coRun(one(10), PERCENT));
        final AnalysisDescription analysis = Analyses.get("gcaps-window-suspend").description();
        final Soundness soundness = Soundness.of(analysis, set);
        assertEquals(Soundness.Verdict.CONDITIONAL, soundness.verdict());
        assertTrue(soundness.text().contains("if B1: with co_run 10% no single segment becomes more than 10% longer"),
            soundness.text());
        assertEquals(1, soundness.findings().stream().filter(f -> f.hypothesis() == Hypothesis.B1
            && f.status() == Hypotheses.Status.NOT_CHECKED).count());
        final Soundness without = Soundness.of(analysis, Sets.stated(one(10)));
        assertEquals(Soundness.Verdict.SOUND, without.verdict(), without.text());
        assertFalse(without.findings().stream().anyMatch(f -> f.hypothesis() == Hypothesis.B1));
        final List<AnalysisResult> results = List.of(Analyses.get("gcaps-window-suspend").analyse(set));
        final Report report = Report.create(set, "x".getBytes(StandardCharsets.UTF_8), results);
        final String assumed = "co_run 10%: every GPU segment counts 10% longer than declared";
        assertTrue(TextReport.render(report).contains(assumed));
        assertTrue(HtmlReport.render(report).contains("id=\"co-run\">" + assumed));
        assertEquals(PERCENT, new ObjectMapper().readTree(JsonReport.render(report)).path("co_run_percent").asInt());
        final String text = ResultWriter.text(set, results);
        assertTrue(text.contains(assumed) && text.contains("B1   not checked"), text);
        assertEquals(PERCENT, new ObjectMapper().readTree(ResultWriter.json(set, results)).path("co_run_percent")
            .asInt());
        final String plain = TextReport.render(Report.create(one(10), new byte[0],
            List.of(Analyses.get("gcaps-window-suspend").analyse(one(10)))));
        assertFalse(plain.contains("co_run"), plain);
    }

    @Test
    void shouldRefuseAPlatformBeyondTheRange() {
        final var platform = one(1).platform();
        assertThrows(InvalidModelException.class, () -> platform.withCoRunPercent(101));
        assertThrows(InvalidModelException.class, () -> platform.withCoRunPercent(-1));
        assertEquals(PERCENT, platform.withCoRunPercent(PERCENT).withEpsilonNs(5).coRunPercent());
    }
}

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
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.SpaceLimits;
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
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.Simulator;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Work beside GPU segments: {@code space} of the platform, analysis/docs/space.md. */
class SpaceTest {
    private static final int PERCENT = 10;
    private static final int PART = 10;
    private static final SpaceLimits SLOWER = new SpaceLimits(0, PERCENT, 0);
    /** How many random sets; more by -Dgpuseg.space.sets=N. */
    private static final int SETS = Integer.getInteger("gpuseg.space.sets", 300);
    private static final int SHORT = 30;

    private static TaskSet in(final TaskSet set, final SpaceLimits space) {
        return set.withPlatform(set.platform().withSpace(space));
    }

    /** A random set on its first GPU, with a part of the reserve for some tasks. */
    private static TaskSet random(final long seed, final SplittableRandom random, final long inFlightNs) {
        final TaskSet two = RandomSets.of(seed);
        final List<Task> tasks = new ArrayList<>();
        for (final Task task : two.tasks()) {
            final Task placed = task.withPlacement(task.cpu(), 0);
            tasks.add(task.bestEffort() || random.nextInt(3) > 0 ? placed : placed.withReserve(PART));
        }
        final SpaceLimits space = new SpaceLimits(SpaceLimits.MAX_RESERVE, PERCENT, inFlightNs);
        return new TaskSet(two.id(), two.platform().withGpus(two.platform().gpus().subList(0, 1)).withSpace(space),
            two.mode(), tasks);
    }

    /**
     * What may happen to such a set: each window slowed by a share of its own, each wait for work in flight as long as
     * it happens to be, and a part of the reserve as a GPU that nobody else uses.
     */
    private static TaskSet happening(final TaskSet set, final SplittableRandom random) {
        final List<Gpu> gpus = new ArrayList<>(set.platform().gpus());
        final List<Task> tasks = new ArrayList<>();
        for (final Task task : set.tasks()) {
            final boolean part = task.reservePercent() > 0;
            long mostNs = part || task.bestEffort() ? 0 : set.platform().space().inFlightNs();
            for (final Task other : set.tasks()) {
                if (!part && !task.bestEffort() && other != task && !other.bestEffort()
                    && other.reservePercent() == 0) {
                    for (final Segment segment : other.segments()) {
                        mostNs = Math.max(mostNs, segment instanceof Segment.Gpu g
                            ? g.deviceNs() * (100 + PERCENT) / 100 : 0);
                    }
                }
            }
            final List<Segment> segments = new ArrayList<>();
            for (final Segment segment : task.segments()) {
                segments.add(segment instanceof Segment.Gpu g ? slower(g, random.nextInt(PERCENT + 1),
                    random.nextLong(mostNs + 1)) : segment);
            }
            tasks.add(task.withReserve(0).withPlacement(task.cpu(), part ? gpus.size() : 0).withSegments(segments));
            if (part) {
                gpus.add(new Gpu(0, 0, 0, MS));
            }
        }
        return new TaskSet(set.id(), set.platform().withSpace(SpaceLimits.NONE).withGpus(gpus), set.mode(), tasks);
    }

    private static Segment slower(final Segment.Gpu window, final int percent, final long waitNs) {
        return new Segment.Gpu(window.hostNs() * (100 + percent) / 100, window.deviceNs() * (100 + percent) / 100
            + waitNs, window.totalNs() * (100 + percent) / 100 + waitNs);
    }

    private static TaskSet one(final double deviceMs) {
        return Sets.set(WaitMode.SUSPEND, 1, 1, Sets.task("camera", 1, 50, 100, Sets.gpu(0, deviceMs)));
    }

    private static TaskSet file(final String platform, final String task) throws InvalidFileException {
        return new TaskSetReader().readText("version: 1\nid: s\nplatform: {cpus: 1, epsilon: 1ms" + platform
            + "}\nmode: suspend\ntasks:\n  - {name: camera, cpu: 1, period: 100ms, priority: 50" + task
            + ", segments: [{gpu: {host: 0ms, device: 10ms}}]}\n", "s.yaml");
    }

    private static String refusal(final String platform, final String task) {
        return assertThrows(InvalidFileException.class, () -> file(platform, task)).getMessage();
    }

    @Test
    void shouldReadAndWriteSpaceAndReserve() throws InvalidFileException {
        final TaskSet set = file(", space: {reserve: 12%, slowdown: 10%, in_flight: 2ms}", ", reserve: 12%");
        assertEquals(new SpaceLimits(12, 10, 2 * MS), set.platform().space());
        assertEquals(12, set.tasks().get(0).reservePercent());
        assertEquals(10 * MS, set.tasks().get(0).deviceNs(), "the file's times stay as declared");
        assertEquals(set, new TaskSetReader().readText(TaskSetWriter.json(set), "s.json"));
        assertTrue(file("", "").platform().space().isNone());
    }

    @ParameterizedTest
    @CsvSource({"10", "10001%", "10 %", "-1%", "010%", "1e1%", "1.5%", "\"\""})
    void shouldRefuseAnythingButAPercentage(final String value) {
        final String text = refusal(", space: {slowdown: " + value + ", in_flight: 1ms}", "");
        assertTrue(text.contains("slowdown") && text.contains("0%..10000%, like 100%"), text);
    }

    @Test
    void shouldRefuseWhatDoesNotFitTogether() {
        assertTrue(refusal(", space: {slowdown: 10%, in_flight: 51ms}", "").contains("0ns..50ms"));
        assertTrue(refusal(", space: {slowdown: 10%}", "").contains("in_flight"));
        assertTrue(refusal(", space: {reserve: 91%, slowdown: 0%, in_flight: 0ms}", "").contains("1%..90%"));
        assertTrue(refusal("", ", reserve: 12%").contains("write space: {reserve: 12%, "));
        assertTrue(refusal(", space: {reserve: 10%, slowdown: 0%, in_flight: 0ms}", ", reserve: 12%")
            .contains("keeps 10% free"));
        final String gpus = assertThrows(InvalidFileException.class, () -> new TaskSetReader().readText(
            "version: 1\nid: s\nplatform: {cpus: 1, gpus: 2, epsilon: 1ms, space: {slowdown: 0%, in_flight: 1ms}}\n"
            + "tasks:\n  - {name: t, cpu: 1, period: 100ms, priority: 5, segments: [{cpu: 1ms}]}\n", "s.yaml"))
            .getMessage();
        assertTrue(gpus.contains("space is given for 2 GPUs"), gpus);
        final TaskSet base = in(one(1), new SpaceLimits(50, 0, 1));
        final Task first = base.tasks().get(0).inProcess("p").withReserve(PART);
        final Task second = Sets.task("b", 1, 40, 100, Sets.gpu(0, 1)).inProcess("p");
        assertTrue(assertThrows(InvalidModelException.class, () -> base.withTasks(List.of(first, second)))
            .getMessage().contains("give both a part or neither"));
        assertThrows(InvalidModelException.class, () -> Sets.task("c", 1, 0, 9, Sets.cpu(1)).withReserve(PART));
    }

    @Test
    void shouldRoundUpAndLeaveCpuSegmentsAlone() {
        final TaskSet set = in(Sets.set(WaitMode.SUSPEND, 1, 1, new Task("t", 1, 0, 100 * MS, 100 * MS, 0, 0, 1, 1,
            false, List.of(new Segment.Cpu(5), new Segment.Gpu(1, 9, 9)))), SLOWER);
        assertEquals(List.of(new Segment.Cpu(5), new Segment.Gpu(2, 10, 10)), set.slowed().tasks().get(0).segments());
        final TaskSet slowed = set.slowed();
        assertSame(slowed, slowed.slowed(), "once");
        final TaskSet without = in(set, SpaceLimits.NONE);
        assertSame(without, without.slowed());
    }

    @Test
    void shouldGiveATaskWithAPartItsOwnGpuAndLetOthersWaitForWhatIsInFlight() {
        final TaskSet without = in(Sets.set(WaitMode.SUSPEND, 2, 1,
            Sets.task("loop", 1, 90, 1, Sets.gpu(0, 0.1)),
            Sets.task("short", 1, 80, 10, Sets.gpu(0, 1)),
            Sets.task("long", 2, 70, 33, Sets.gpu(1, 5)),
            Sets.task("training", 2, 0, 100, Sets.gpu(1, 20))), new SpaceLimits(PART, 0, 2 * MS));
        final List<Task> tasks = new ArrayList<>(without.tasks());
        tasks.set(0, tasks.get(0).withReserve(PART));
        final TaskSet set = without.withTasks(tasks).slowed();
        assertEquals(List.of(1, 0, 0, 0), set.tasks().stream().map(Task::gpu).toList());
        assertEquals(new Gpu(0, 0, 0, MS), set.platform().gpus().get(1));
        assertEquals(List.of(MS / 10, 6 * MS, 7 * MS, 20 * MS), set.tasks().stream().map(Task::deviceNs).toList(),
            "short waits for the long one's 5 ms, long for 2 ms of best effort");
        final List<TaskResult> bounds = Analyses.get("gcaps-window-suspend").analyse(set).tasks();
        assertEquals(MS / 10, bounds.get(0).wcrtNs(), "neither an update nor anybody else");
        assertTrue(bounds.get(1).wcrtNs() >= 8 * MS, "5 in flight, 1 of its own, two updates");
    }

    /** Every analysis and the simulator see the longer segments, each once. */
    @Test
    void shouldCountEverySegmentThatMuchLonger() {
        int compared = 0;
        for (int seed = 0; seed < SHORT; seed++) {
            final TaskSet declared = random(seed, new SplittableRandom(seed), MS);
            final TaskSet byHand = declared.slowed();
            for (final Analysis analysis : Analyses.all()) {
                compared += sameBounds(analysis, declared, byHand);
            }
            assertEquals(simulated(byHand, seed), simulated(declared, seed));
            assertEquals(declared.tasks().size(), Partitioning.WFD.partition(declared).tasks().size());
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
        final Model model = analysis.description().model();
        if (model == Model.TURNS || model == Model.GATED_WINDOWS) {
            assertTrue(assertThrows(InvalidModelException.class, () -> analysis.analyse(set)).getMessage()
                .contains("begins take no turns"));
            return 0;
        }
        assertEquals(expected, analysis.analyse(set), analysis.name());
        return 1;
    }

    private static List<Long> simulated(final TaskSet set, final long seed) {
        return simulated(set, seed, SimulationOptions.ofDurationNs(300 * MS));
    }

    private static List<Long> simulated(final TaskSet set, final long seed, final SimulationOptions options) {
        final Simulator simulator = new Simulator(set);
        simulator.execute(options.withSeed(seed));
        final List<Long> responses = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            responses.add(simulator.maxResponseNs(i));
        }
        return responses;
    }

    /** Theorem 18, by fixed priority and by deadline. */
    @ParameterizedTest
    @CsvSource({"gcaps-window-suspend", "edf-fp-suspend"})
    void shouldBoundWhatIsSlowedAndWaitsForWorkInFlight(final String name) {
        final Analysis analysis = Analyses.get(name);
        final Model model = analysis.description().model();
        final SimulationOptions options = SimulationOptions.ofDurationNs(300 * MS).with(model.scheduler(),
            model.cores());
        int schedulable = 0;
        int parts = 0;
        for (int seed = 0; seed < SETS; seed++) {
            final SplittableRandom random = new SplittableRandom(seed);
            final TaskSet declared = random(seed, random, random.nextLong(2 * MS));
            final AnalysisResult bounds = analysis.analyse(declared);
            if (!bounds.schedulable()) {
                continue;
            }
            schedulable++;
            final List<Long> seen = simulated(happening(declared, random), seed, seed % 2 == 0 ? options
                : options.with(Arrivals.SPORADIC, Offsets.RANDOM, Execution.RANDOM, Jitter.RANDOM));
            for (int i = 0; i < seen.size(); i++) {
                final Long boundNs = bounds.tasks().get(i).wcrtNs();
                assertTrue(declared.tasks().get(i).bestEffort() || seen.get(i) <= boundNs, declared.id() + ": task " + i
                    + " took " + seen.get(i) + ", bound " + boundNs);
                parts += declared.tasks().get(i).reservePercent() > 0 ? 1 : 0;
            }
        }
        assertTrue(schedulable > SETS / 10, schedulable + " sets");
        assertTrue(parts > schedulable / 2, parts + " tasks with a part in " + schedulable + " sets");
    }

    /** Why the assumption speaks of every segment: a mean is no bound. */
    @Test
    void shouldBoundNothingWhereASingleSegmentIsSlowedMore() {
        final long boundNs = Analyses.get("gcaps-window-suspend").analyse(in(one(10), SLOWER)).tasks().get(0)
            .wcrtNs();
        assertEquals(13 * MS, boundNs, "10 ms, a tenth of it, two updates");
        assertTrue(simulated(one(10 * 1.1), 1).get(0) <= boundNs);
        assertTrue(simulated(one(10 * 1.4), 1).get(0) > boundNs);
    }

    @Test
    void shouldSayThatNothingChecksTheAssumptions() throws Exception {
        final TaskSet set = Sets.stated(in(one(10), SLOWER));
        final AnalysisDescription analysis = Analyses.get("gcaps-window-suspend").description();
        final Soundness soundness = Soundness.of(analysis, set);
        assertEquals(Soundness.Verdict.CONDITIONAL, soundness.verdict());
        assertTrue(soundness.text().contains("with policy fp under --space, if B1: no single segment "
            + "becomes more than 10% longer"), soundness.text());
        for (final Hypothesis hypothesis : List.of(Hypothesis.B1, Hypothesis.B2, Hypothesis.B3)) {
            assertEquals(1, soundness.findings().stream().filter(f -> f.hypothesis() == hypothesis
                && f.status() == Hypotheses.Status.NOT_CHECKED).count(), hypothesis.id());
        }
        final Soundness without = Soundness.of(analysis, Sets.stated(one(10)));
        assertEquals(Soundness.Verdict.SOUND, without.verdict(), without.text());
        assertFalse(without.findings().stream().anyMatch(f -> f.hypothesis() == Hypothesis.B1));
        final List<AnalysisResult> results = List.of(Analyses.get("gcaps-window-suspend").analyse(set));
        final Report report = Report.create(set, "x".getBytes(StandardCharsets.UTF_8), results);
        final String assumed = "space: every GPU segment counts 10% longer than declared";
        assertTrue(TextReport.render(report).contains(assumed));
        assertTrue(HtmlReport.render(report).contains("id=\"space\">" + assumed));
        assertTrue(new ObjectMapper().readTree(JsonReport.render(report)).path("space").asText().startsWith(assumed));
        final String text = ResultWriter.text(set, results);
        assertTrue(text.contains(assumed) && text.contains("B1   not checked"), text);
        assertTrue(new ObjectMapper().readTree(ResultWriter.json(set, results)).path("space").asText()
            .startsWith(assumed));
        final TaskSet part = in(one(10), new SpaceLimits(PART, PERCENT, 0));
        assertTrue(HtmlReport.render(Report.create(part.withTasks(List.of(part.tasks().get(0).withReserve(PART))),
            new byte[0], results)).contains("<td>50, reserve 10%</td>"));
        final String plain = TextReport.render(Report.create(one(10), new byte[0],
            List.of(Analyses.get("gcaps-window-suspend").analyse(one(10)))));
        assertFalse(plain.contains("space"), plain);
    }

    /** The daemon lets no segment wait for more than 50 ms: then both of them take the reserve. */
    @Test
    void shouldClaimNothingWhereASegmentOutlastsTheWaitForIt() {
        final TaskSet set = Sets.stated(in(Sets.set(WaitMode.SUSPEND, 2, 1,
            Sets.task("slow", 1, 50, 400, Sets.gpu(0, 51)), Sets.task("other", 2, 60, 400, Sets.gpu(0, 1))),
            new SpaceLimits(PART, 0, MS)));
        final Soundness soundness = Soundness.of(Analyses.get("gcaps-window-suspend").description(), set);
        assertEquals(Soundness.Verdict.NOT_SOUND, soundness.verdict());
        assertTrue(soundness.text().contains("segments of task \"slow\" may hold the GPU for 51ms"), soundness.text());
    }
}

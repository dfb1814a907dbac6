/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.Counterexamples;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.TimePartitions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A set that breaks a hypothesis of a theorem gets no verdict of it. */
class HypothesesTest {
    private static String refusal(final String analysis, final TaskSet set) {
        return assertThrows(InvalidModelException.class, () -> Analyses.get(analysis).analyse(set), analysis)
            .getMessage();
    }

    private static TaskSet withGpuPriority(final TaskSet set, final int gpuPriority) {
        final List<Task> tasks = new ArrayList<>(set.tasks());
        tasks.set(0, tasks.get(0).withPriorities(tasks.get(0).priority(), gpuPriority));
        return set.withTasks(tasks);
    }

    /** With 40 and 50 the bound of a was 4 ms, and its simulated response is more than its deadline of 10 ms. */
    @ParameterizedTest
    @ValueSource(strings = {"gcaps-window-suspend", "gcaps-window-busy", "gcaps-boost-suspend", "gcaps-boost-busy",
        "gate-suspend", "gate-busy", "gcaps-suspend", "gcaps-busy", "gcaps-suspend-capped", "gcaps-busy-printed"})
    void shouldRefuseOtherOrdersOnTheGpuThanOnTheCore(final String analysis) {
        final TaskSet inverted = Counterexamples.read("inverted-gpu-priority");
        for (final int gpuPriority : new int[] {40, 50}) {
            assertEquals("tasks \"a\" (priority 60, gpu_priority " + gpuPriority + ") and \"b\" (priority 50, "
                + "gpu_priority 50) share core 1 and a GPU, and their orders there differ; give \"a\" the higher "
                + "gpu_priority too, or leave gpu_priority out",
                refusal(analysis, withGpuPriority(inverted, gpuPriority)));
        }
        assertEquals(2, Analyses.get(analysis).analyse(withGpuPriority(inverted, 51)).tasks().size());
    }

    @Test
    void shouldAskForOneOrderOnACoreAndGpuOnly() {
        final TaskSet inverted = Counterexamples.read("inverted-gpu-priority");
        assertTrue(Analyses.get("edf-fp-suspend").analyse(inverted) != null, "the GPU goes by deadline");
        final List<Task> apart = new ArrayList<>(inverted.tasks());
        apart.set(1, apart.get(1).withPlacement(2, 0));
        Analyses.get("gcaps-window-suspend").analyse(new TaskSet("apart",
            new Platform(2, inverted.platform().gpus(), false, null), WaitMode.SUSPEND,
            apart));
        final TimePartitions table = new TimePartitions(FixedPriority.INSTANCE, 10 * Sets.MS, 0, 0, false,
            new TimePartitions.Window(1, 0, 5 * Sets.MS), new TimePartitions.Window(2, 5 * Sets.MS, 5 * Sets.MS));
        assertThrows(InvalidModelException.class,
            () -> new TimePartitioned(table, task -> 1, false).analyse(inverted));
        new TimePartitioned(table, task -> task.equals("a") ? 1 : 2, false).analyse(inverted);
    }

    @ParameterizedTest
    @ValueSource(strings = {"gcaps-window-busy", "gcaps-boost-suspend", "gcaps-boost-busy", "edf-edf-busy",
        "gcaps-boost-tight-suspend", "edf-boost-suspend", "gcaps-suspend", "gcaps-busy", "tsg-rr-suspend"})
    void shouldRefuseTasksOfOneProcess(final String analysis) {
        final TaskSet shared = Counterexamples.read("shared-process");
        final String text = refusal(analysis, shared);
        assertTrue(text.contains("\"high\"") && text.contains("\"low\"") && text.contains("process \"robot\"")
            && text.contains("run them in different processes"), text);
        final List<Task> besides = new ArrayList<>(shared.tasks());
        besides.set(1, besides.get(1).withRank(0, 0, true));
        assertTrue(refusal(analysis, shared.withTasks(besides)).contains("robot"), "best effort cannot be disabled");
        besides.set(1, shared.tasks().get(1).inProcess("other"));
        Analyses.get(analysis).analyse(shared.withTasks(besides));
        besides.set(1, shared.tasks().get(1).withSegments(List.of(Sets.cpu(1))));
        Analyses.get(analysis).analyse(shared.withTasks(besides));
    }

    @ParameterizedTest
    @ValueSource(strings = {"gcaps-window-suspend", "edf-edf-suspend", "edf-fp-suspend"})
    void shouldContainTheWaitForATaskOfTheSameProcess(final String name) {
        final Analysis analysis = Analyses.get(name);
        final TaskSet tight = Counterexamples.read("shared-process");
        assertFalse(analysis.analyse(tight).schedulable(), "40 ms of waiting, deadline 10 ms");
        final List<Task> tasks = new ArrayList<>(tight.tasks());
        tasks.set(0, tasks.get(0).withTimes(95 * Sets.MS, 0, 0));
        final TaskSet relaxed = tight.withTasks(tasks);
        final AnalysisResult bounds = analysis.analyse(relaxed);
        assertTrue(bounds.schedulable(), name);
        final Simulator simulator = new Simulator(relaxed);
        simulator.setFirstArrivals(new long[] {Sets.MS, 0});
        simulator.execute(SimulationOptions.ofDurationNs(2 * Sets.MS));
        assertTrue(simulator.maxResponseNs(0) > 40 * Sets.MS, "high: " + simulator.maxResponseNs(0));
        assertTrue(simulator.maxResponseNs(0) <= bounds.tasks().get(0).wcrtNs(), bounds.toString());
        final Soundness soundness = Soundness.of(analysis.description(), Sets.stated(relaxed));
        assertEquals(name.startsWith("edf-edf") ? Soundness.Verdict.NOT_SOUND : Soundness.Verdict.SOUND,
            soundness.verdict(), soundness.text());
        assertTrue(soundness.findings().stream().anyMatch(f -> f.hypothesis() == Hypothesis.M10
            && f.status() == Hypotheses.Status.TO_ENSURE && f.detail().contains("process \"robot\"")));
        tasks.set(1, tasks.get(1).withRank(0, 0, true));
        assertTrue(refusal(name, tight.withTasks(tasks)).contains("\"low\" is best effort"), "its windows");
    }

    @Test
    void shouldNotMindProcessesAtAGate() {
        final TaskSet shared = Counterexamples.read("shared-process");
        assertEquals(false, Analyses.get("gate-suspend").analyse(shared).schedulable(), "40 ms of blocking");
    }

    @Test
    void shouldRefuseTasksOfOneProcessInDifferentPartitions() {
        final TimePartitions table = new TimePartitions(FixedPriority.INSTANCE, 10 * Sets.MS, 0, 0, false,
            new TimePartitions.Window(1, 0, 5 * Sets.MS), new TimePartitions.Window(2, 5 * Sets.MS, 5 * Sets.MS));
        final TimePartitioned analysis = new TimePartitioned(table, task -> task.equals("high") ? 1 : 2, false);
        assertTrue(assertThrows(InvalidModelException.class,
            () -> analysis.analyse(Counterexamples.read("shared-process"))).getMessage().contains("robot"));
        assertTrue(assertThrows(InvalidModelException.class, () -> analysis.with(task -> 1)
            .analyse(Counterexamples.read("shared-process"))).getMessage().contains("robot"), "nor in the same one");
    }

    /** A thread that spins for the GPU keeps the core from the holder, if the kernel prefers neither. */
    @Test
    void shouldRefuseEqualPrioritiesOfThreadsThatSpinForOneGpu() {
        final TaskSet set = Sets.set(WaitMode.BUSY, 1, 0.1, Sets.task("a", 1, 50, 100, Sets.gpu(1, 1)),
            Sets.task("b", 1, 50, 100, Sets.gpu(1, 1)));
        assertTrue(refusal("gcaps-window-busy", set).contains("share core 1, a GPU and priority 50"));
        assertTrue(Analyses.get("gate-busy").analyse(set).schedulable());
        final TaskSet sleeping = set.withMode(WaitMode.SUSPEND);
        assertEquals(2, Analyses.get("gcaps-window-busy").analyse(sleeping).tasks().size(), "--analysis all");
        assertEquals(Soundness.Verdict.NOT_SOUND, claim("gcaps-window-busy", sleeping).verdict());
        assertTrue(Analyses.get("gcaps-window-suspend").analyse(set.withMode(WaitMode.SUSPEND)).schedulable());
    }

    private static Soundness claim(final String analysis, final TaskSet set) {
        return Soundness.of(Analyses.describe(analysis), Sets.stated(set));
    }

    @Test
    void shouldClaimSoundnessForTheSchedulerThatTheCatalogueOfPoliciesNames() {
        final TaskSet set = Sets.windowGap();
        assertEquals("sound for this scheduler with policy fp at level 3", claim("gcaps-window-suspend", set).text());
        assertEquals("sound for this scheduler with policy fp at level 1 (gate)", claim("gate-suspend", set).text());
        assertEquals("sound for this scheduler with policy edf at level 3", claim("edf-fp-suspend", set).text());
        for (final Analysis analysis : Analyses.all()) {
            final Soundness soundness = Soundness.of(analysis.description());
            assertEquals(analysis.claim() != Analysis.Claim.SOUND,
                soundness.verdict() == Soundness.Verdict.NOT_SOUND, analysis.name());
            assertTrue(soundness.verdict() != Soundness.Verdict.NOT_SOUND || soundness.text().matches(".*: M\\d+: .+"),
                analysis.name() + " names no hypothesis: " + soundness.text());
        }
    }

    /** The boost of libgpuseg lasts from begin to end, also while the thread spins without the GPU. */
    @Test
    void shouldNotClaimSoundnessForBoostedThreadsThatSpin() {
        final Soundness busy = claim("gcaps-boost-busy", Sets.windowGap().withMode(WaitMode.BUSY));
        assertEquals(Soundness.Verdict.NOT_SOUND, busy.verdict());
        assertTrue(busy.text().contains("M8: ") && busy.text().contains("from begin to end"), busy.text());
    }

    @Test
    void shouldSayThatAFileDoesNotStateTheBoostAndThatAdmissionKnowsIt() {
        final Soundness file = claim("gcaps-boost-suspend", Sets.windowGap());
        assertEquals(Soundness.Verdict.CONDITIONAL, file.verdict());
        assertTrue(file.text().contains("if M8: all real-time tasks with windows must be opened with boost_priority"),
            file.text());
        assertEquals(Soundness.Verdict.SOUND,
            Soundness.of(Analyses.describe("gcaps-boost-suspend"), Sets.stated(Sets.windowGap()), true).verdict());
    }

    @Test
    void shouldNotClaimSoundnessForAnotherModeThanThatOfTheSet() {
        final Soundness claim = claim("gcaps-window-busy", Sets.windowGap());
        assertTrue(claim.text().contains("M5: the set has mode: suspend, the analysis is for mode: busy"),
            claim.text());
    }

    @Test
    void shouldListEveryHypothesisWithItsStatus() {
        final List<Hypotheses.Finding> findings = claim("gcaps-window-suspend", Sets.windowGap()).findings();
        final List<String> ids = findings.stream().map(f -> f.hypothesis().id()).toList();
        assertEquals(List.of("M0", "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M9", "M10", "M11", "M12", "N1", "K1",
            "T1", "S1"), ids);
        assertTrue(findings.stream().allMatch(f -> f.status() == Hypotheses.Status.HOLDS || !f.detail().isEmpty()),
            "who can find it out, and how: " + findings);
        assertEquals(List.of("M6", "M10", "M12", "T1"), findings.stream()
            .filter(f -> f.status() == Hypotheses.Status.HOLDS).map(f -> f.hypothesis().id()).toList());
    }

    @Test
    void shouldDocumentEveryHypothesis() throws IOException {
        final Path docs = Path.of(System.getProperty("gpuseg.root"), "analysis/docs");
        String all = "";
        for (final String page : List.of("window.md", "stalls.md", "edf.md", "partitions.md",
            "misses.md", "space.md", "gate.md", "limits.md", "turns.md")) {
            all += Files.readString(docs.resolve(page));
        }
        for (final Hypothesis hypothesis : Hypothesis.values()) {
            assertTrue(all.contains("**(" + hypothesis.id() + ")"), hypothesis.id());
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.AnalysisResult;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Own work 7 ms and two updates of 1 ms: the bound of camera is 9 ms. */
class VerdictTest {
    private static final String HOLDS = "every deadline holds, if the hypotheses below hold";

    @TempDir
    private Path directory;

    private static TaskSet set(final String platform, final String deadline) throws InvalidFileException {
        return new TaskSetReader().readText("id: x\nplatform: {cpus: 1, epsilon: 1ms, clock: 1, newcomers: none"
            + platform + "}\ntasks:\n  - "
            + "{name: camera, cpu: 1, period: 80ms, deadline: " + deadline + ", priority: 5, segments: [{cpu: 1ms}, "
            + "{gpu: {host: 1ms, device: 5ms}}]}\n  - {name: log, cpu: 1, period: 80ms, best_effort: true, "
            + "segments: [{cpu: 1ms}]}\n", "x.yaml");
    }

    private Measurement measured(final String head, final String figures) throws IOException {
        return Measurement.read(Files.writeString(directory.resolve("run.json"), "{" + head + "\"tasks\":[" + figures
            + "]}"));
    }

    private static Verdict of(final TaskSet set, final Measurement measured, final String... analyses) {
        final List<AnalysisResult> results = Stream.of(analyses).map(a -> Analyses.get(a).analyse(set)).toList();
        return Verdict.of(set, results, measured);
    }

    @Test
    void shouldSayThatEveryDeadlineHoldsAndWhatIsSimulated() throws IOException {
        final String quick = "{\"name\":\"camera\",\"jobs\":9,\"misses\":0,\"response_ms\":{\"max\":8.5}}";
        assertEquals(new Verdict(Verdict.Kind.HOLDS, HOLDS, false, false), of(set("", "80ms"), null,
            "gcaps-window-suspend"));
        assertEquals(new Verdict(Verdict.Kind.HOLDS, HOLDS + " (simulated constants)", false, true),
            of(set(", simulated: true", "80ms"), null, "gcaps-window-suspend"));
        assertEquals(HOLDS + " (simulated measurement)", of(set("", "80ms"), measured("\"mechanism\":\"sim\",", quick),
            "gcaps-window-suspend").sentence());
        assertEquals(HOLDS + " (simulated constants and measurement)", of(set(", simulated: true", "80ms"),
            measured("\"simulated\":true,", quick), "gcaps-window-suspend").sentence());
        assertEquals(HOLDS + "; left open: M8", of(set("", "80ms"), null,
            "gcaps-boost-suspend").sentence());
    }

    @Test
    void shouldSayWhichTaskCanMissAndHowFarItsBoundIsAbove() throws IOException {
        final Verdict refused = of(set("", "8ms"), null, "gcaps-window-suspend");
        assertEquals("NOT schedulable: task \"camera\" may miss its deadline: its bound is at least 9.0 ms, its "
            + "deadline is 8.0 ms", refused.sentence());
        assertFalse(refused.holds() || refused.contradicted());
        // more digits where one does not tell them apart
        assertTrue(of(set("", "8999us"), null, "gcaps-window-suspend").sentence().endsWith("is at least 9 ms, its "
            + "deadline is 8.999 ms"));
        assertTrue(of(set("", "8ms"), measured("", "{\"name\":\"camera\",\"jobs\":7,\"misses\":3,\"response_ms\":"
            + "{\"max\":8.5}}"), "gcaps-window-suspend").sentence().endsWith("; measured: 3 of 7 jobs late"));
    }

    @Test
    void shouldSayThatAMeasurementContradictsABoundAndByHowManyJobs() throws IOException {
        final Verdict verdict = of(set("", "80ms"), measured("\"mechanism\":\"sim\",", "{\"name\":\"camera\","
            + "\"jobs\":2000,\"misses\":0,\"response_ms\":{\"p50\":7,\"p99\":11.25,\"max\":61.87}},{\"name\":\"log\","
            + "\"jobs\":5,\"misses\":5,\"response_ms\":{\"max\":900}}"), "gcaps-window-suspend");
        assertEquals("CONTRADICTED BY THE MEASUREMENT: task \"camera\" took 61.8 ms, its bound is 9.0 ms (at least 21 "
            + "of 2000 jobs above their bound) (simulated measurement)", verdict.sentence());
        assertTrue(verdict.contradicted() && verdict.simulated() && !verdict.holds());
        // a late job is above a bound that is below the deadline, whatever the percentiles say
        assertTrue(of(set("", "80ms"), measured("", "{\"name\":\"camera\",\"jobs\":2000,\"misses\":85,"
            + "\"response_ms\":{\"p50\":7,\"p99\":11.25,\"max\":189.6}}"), "gcaps-window-suspend").sentence()
            .endsWith("(at least 85 of 2000 jobs above their bound, 85 late)"));
    }

    /** Jobs that were given up late have no response. */
    @Test
    void shouldSayThatMissesContradictEvenIfNoResponseDoes() throws IOException {
        final Verdict verdict = of(set("", "80ms"), measured("", "{\"name\":\"camera\",\"jobs\":20,\"misses\":2,"
            + "\"response_ms\":{\"max\":8}}"), "gcaps-window-suspend");
        assertEquals("CONTRADICTED BY THE MEASUREMENT: task \"camera\" missed its deadline (2 of 20 jobs late)",
            verdict.sentence());
    }

    @Test
    void shouldLeaveOutWhatRanUnderRoundRobinAndAddUpTheRest() throws IOException {
        final String row = "{\"name\":\"camera\",\"policy\":\"%s\",\"jobs\":%d,\"misses\":0,\"response_ns\":"
            + "{\"p50\":%d,\"p99\":%d,\"max\":%d}}";
        final String rr = row.formatted("rr", 500, 90_000_000, 95_000_000, 99_000_000);
        final String fp = row.formatted("fp", 100, 5_000_000, 8_000_000, 8_000_000);
        assertEquals(HOLDS, of(set("", "80ms"), measured("", rr + "," + fp), "gcaps-window-suspend").sentence());
        final Measurement both = measured("", fp + "," + row.formatted("edf", 100, 10_000_000, 20_000_000,
            30_000_000));
        assertEquals(200, both.jobs());
        assertEquals(51, both.byTask().get("camera").above(9_000_000, 80_000_000));
        assertEquals(53, both.byTask().get("camera").above(7_999_999, 80_000_000));
        assertEquals(99_000_000, measured("", rr).maxNs("camera"), "nothing else ran");
    }

    @Test
    void shouldCallNothingAProofThatIsNotSoundForThisScheduler() throws IOException {
        final Verdict verdict = of(set("", "80ms"), null, "gcaps-suspend");
        assertEquals(Verdict.Kind.NO_PROOF, verdict.kind());
        assertTrue(verdict.sentence().startsWith("no proof: gcaps-suspend is not sound for this scheduler: M"),
            verdict.sentence());
        assertFalse(verdict.holds());
        assertEquals("no proof: none of 2 analyses is sound for this scheduler", of(set("", "80ms"), null,
            "gcaps-suspend", "mpcp-suspend").sentence());
    }

    @Test
    void shouldSayThatTheSetLeavesConditionsOpen() throws IOException {
        final TaskSet silent = new TaskSetReader().readText("id: x\nplatform: {cpus: 1, epsilon: 1ms}\ntasks:\n  - "
            + "{name: camera, cpu: 1, period: 80ms, priority: 5, segments: [{gpu: {host: 1ms, "
            + "device: 5ms}}]}\n", "x.yaml");
        final Verdict verdict = of(silent, null, "gcaps-window-suspend");
        assertEquals(new Verdict(Verdict.Kind.CONDITIONAL, HOLDS + "; left open: N1, K1", false, false),
            verdict);
        assertTrue(verdict.holds());
    }

    @Test
    void shouldLetTheWorstOfTheSoundAnalysesDecide() throws IOException {
        assertEquals(HOLDS + " [1 sound of 2 analyses]", of(set("", "80ms"), null, "gcaps-suspend",
            "gcaps-window-suspend").sentence());
        final TaskSet set = new TaskSetReader().readText("""
            id: x
            platform: {cpus: 2, epsilon: 0ms, clock: 1, newcomers: none}
            tasks:
              - {name: a, cpu: 1, period: 20ms, priority: 5, segments: [{gpu: {host: 0ms, device: 2ms}}]}
              - {name: b, cpu: 2, period: 90ms, priority: 4, segments: [{gpu: {host: 0ms, device: 30ms}}]}
            """, "x.yaml");
        final Verdict verdict = of(set, null, "gcaps-window-suspend", "gate-suspend");
        assertTrue(verdict.sentence().startsWith("NOT schedulable: task \"a\"") && verdict.sentence()
            .endsWith(" [gate-suspend]"), verdict.sentence());
    }
}

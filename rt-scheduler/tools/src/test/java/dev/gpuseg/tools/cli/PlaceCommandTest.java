/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Time or space: where the tasks of a set belong. */
class PlaceCommandTest {
    private static final String LOOP =
        "  - {name: loop, cpu: 1, period: 1ms, priority: 90%s, segments: [{gpu: {device: 150us}}]}\n";
    private static final String OTHERS =
        "  - {name: detector, cpu: 2, period: 33ms, priority: 70, segments: [{gpu: {device: 5ms}}]}\n"
        + "  - {name: training, cpu: 3, period: 100ms, best_effort: true, segments: [{gpu: {device: 20ms}}]}\n";

    @TempDir
    private Path directory;

    private StringOutput place(final String platform, final String tasks) throws IOException {
        final Path set = Files.writeString(directory.resolve("set.yaml"), "platform: {cpus: 4, " + platform
            + "}\ntasks:\n" + tasks);
        return StringOutput.of("place", set.toString());
    }

    private static void row(final StringOutput said, final String expression) {
        assertTrue(said.out().lines().anyMatch(line -> line.matches(expression)), said.text());
    }

    @Test
    void shouldGiveTheReserveToATaskThatPreemptionCannotServe() throws IOException {
        final StringOutput said = place("epsilon: 1ms", LOOP.formatted("") + OTHERS);
        assertEquals(ExitCode.OK, said.status(), said.text());
        assertTrue(said.out().contains("reserve 12%, slowdown 50%, in_flight 2ms (assumed: measure"), said.out());
        row(said, "loop +reserve 12% +0\\.225 +1\\.000 +its updates of 2ms and its work of 150us exceed its deadline "
            + ".*");
        row(said, "detector +inside +11\\.500 .*");
        row(said, "training +place +- +- +if no kernel of it is longer than 2ms .in_flight.");
    }

    @Test
    void shouldKeepWhatTheSetSays() throws IOException {
        final String space = "epsilon: 1ms, space: {reserve: 20%, slowdown: 10%, in_flight: 30ms}";
        final StringOutput said = place(space, LOOP.formatted(", reserve: 5%")
            + LOOP.formatted("").replace("loop", "second").replace("90", "89").replace("cpu: 1", "cpu: 4") + OTHERS);
        row(said, "loop +reserve 5% .*no longer on 5% of the multiprocessors");
        row(said, "second +reserve 15% .*");
        row(said, "training +place .*its segments are no longer than in_flight");
        assertTrue(said.out().contains("in_flight 30ms\n"), said.out());
        assertEquals(ExitCode.NO, said.status(), "the detector waits for 30 ms: " + said.out());
    }

    @Test
    void shouldLeaveToPreemptionWhatItServes() throws IOException {
        final StringOutput said = place("epsilon: 200us", LOOP.formatted("") + OTHERS);
        assertEquals(ExitCode.OK, said.status(), said.text());
        assertTrue(said.out().startsWith("space: not needed"), said.out());
        row(said, "loop +outside +0\\.550 .*preempts what is lower");
    }

    /** A kernel of 5 ms fills the GPU: no part of it would do. */
    @Test
    void shouldProposeNoPartForLongWork() throws IOException {
        final StringOutput said = place("epsilon: 20ms", OTHERS);
        assertEquals(ExitCode.NO, said.status(), said.text());
        row(said, "detector +outside +none +33\\.000 .*");
    }

    @Test
    void shouldRefuseWhatCannotBeAnalysed() throws IOException {
        final StringOutput said = place("epsilon: 1ms, gpus: 2", LOOP.formatted("") + OTHERS);
        assertEquals(ExitCode.USAGE, said.status(), said.text());
        assertTrue(said.err().contains("space is given for 2 GPUs"), said.err());
        assertEquals(1, said.err().lines().count());
    }
}

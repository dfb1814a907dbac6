/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

@Timeout(60)
class ChainCommandTest {
    private static final String SET = """
        version: 1
        id: stop
        platform: {cpus: 2, epsilon: 0ms}
        tasks:
          - {name: camera, cpu: 1, period: 10ms, max_period: 10ms, priority: 9, segments: [{cpu: 2ms}]}
          - {name: brake, cpu: 2, period: 10ms, EDGE segments: [{cpu: 3ms}], priority: 8}
        chains:
          - {name: stop, tasks: [camera, brake], LIMIT}
        """;

    @TempDir
    private Path directory;
    private String out;
    private String err;

    private int run(final Callable<Integer> command, final String edge, final String limit, final String... options)
        throws Exception {
        final Path file = directory.resolve("set.yaml");
        Files.writeString(file, SET.replace("EDGE", edge).replace("LIMIT", limit));
        final String[] arguments = new String[options.length + 1];
        arguments[0] = file.toString();
        System.arraycopy(options, 0, arguments, 1, options.length);
        final StringWriter outText = new StringWriter();
        final StringWriter errText = new StringWriter();
        final int exit = new CommandLine(command).setOut(new PrintWriter(outText)).setErr(new PrintWriter(errText))
            .execute(arguments);
        out = outText.toString();
        err = errText.toString();
        return exit;
    }

    @Test
    void shouldExitWithThreeWhenAChainMissesItsLimitThoughNoTaskDoes() throws Exception {
        assertEquals(0, run(new AnalyzeCommand(), "max_period: 10ms,", "reaction: 25ms"));
        assertTrue(out.contains("chain stop: reaction 25 of 25 ms ok"), out);
        assertEquals(3, run(new AnalyzeCommand(), "max_period: 10ms,", "reaction: 24ms"));
        assertTrue(out.contains("NOT schedulable") && out.contains("reaction 25 of 24 ms MISS"), out);
        assertEquals(3, run(new AnalyzeCommand(), "max_period: 10ms,", "reaction: 24ms", "--format", "json"));
        assertTrue(out.contains("\"reaction_ns\" : 25000000"), out);
    }

    @Test
    void shouldExitWithTwoWhenAChainCannotBeAnalysed() throws Exception {
        assertEquals(2, run(new AnalyzeCommand(), "", "reaction: 24ms"));
        assertTrue(err.contains("set.yaml:8:5: chain \"stop\": task \"brake\" has no max_period"), err);
    }

    @Test
    void shouldRefuseACertificateForTasksThatEventsRelease() throws Exception {
        final Path certificate = directory.resolve("c.json");
        assertEquals(2, run(new AnalyzeCommand(), "", "edges: event", "--certificate", certificate.toString()));
        assertTrue(err.contains("a certificate knows no event edges"), err);
        assertFalse(Files.exists(certificate));
    }

    @Test
    void shouldSimulateChainsAndExitWithThreeWhenOneMissesItsLimit() throws Exception {
        // samples at 0 and 10, written at 2 and 12; read at 0, 10 and 20: output at 13 of the sample of 0
        assertEquals(0, run(new SimulateCommand(), "max_period: 10ms,", "age: 13ms", "--format", "json"));
        assertTrue(out.contains("\"max_age_ns\" : 13000000"), out);
        assertEquals(3, run(new SimulateCommand(), "max_period: 10ms,", "age: 12ms"));
        assertTrue(out.startsWith("stop: CHAIN LIMIT MISSED") && out.contains("largest age 13 of 12 ms"), out);
        assertEquals(0, run(new SimulateCommand(), "", "edges: event, age: 5ms, reaction: 15ms"));
        assertTrue(out.contains("longest reaction 15 of 15 ms, largest age 5 of 5 ms"), out);
    }
}

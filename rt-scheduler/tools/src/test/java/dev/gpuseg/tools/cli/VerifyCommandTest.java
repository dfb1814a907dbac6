/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

@Timeout(120)
class VerifyCommandTest {
    private static final String SET = """
        platform: {cpus: 2, epsilon: 1ms}
        tasks:
          - {name: a, cpu: 1, period: 80ms, priority: 70, segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}]}
          - {name: b, cpu: 2, period: %s, priority: 60, segments: [{cpu: 2ms}, {gpu: {host: 1ms, device: 40ms}}]}
        """;

    @TempDir
    private Path directory;
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(final Callable<Integer> command, final String... arguments) {
        return new CommandLine(command).setOut(new PrintWriter(out)).setErr(new PrintWriter(err)).execute(arguments);
    }

    private Path certificate(final String period) throws IOException {
        final Path set = Files.writeString(directory.resolve("set.yaml"), SET.formatted(period));
        final Path certificate = directory.resolve("certificate.json");
        assertEquals(period.equals("100ms") ? 0 : 3, run(new AnalyzeCommand(), set.toString(), "--certificate",
            certificate.toString()), err.toString());
        return certificate;
    }

    @Test
    void shouldWriteNoCertificateOfASetThatMissesADeadline() throws IOException {
        assertFalse(Files.exists(certificate("48ms")));
    }

    @Test
    void shouldAnswer1AndTheLineToTypeWhereCoqcIsMissing() throws IOException {
        final Path certificate = certificate("100ms");
        assertEquals(1, run(new VerifyCommand(directory.resolve("none").toString()), certificate.toString()));
        assertTrue(err.toString().contains("sudo apt-get install coq"), err.toString());
    }

    @Test
    void shouldAnswer2ForOtherFiles() throws IOException {
        assertEquals(2, run(new VerifyCommand(), Files.writeString(directory.resolve("x"), "{}").toString()));
        assertEquals(1, err.toString().lines().count(), err.toString());
    }

    @Test
    void shouldAccept0AndReject3() throws IOException {
        assumeTrue(Path.of("/usr/bin/coqc").toFile().canExecute() || "1".equals(System.getenv("CI")),
            "coqc is missing");
        final Path certificate = certificate("100ms");
        assertEquals(0, run(new VerifyCommand(), certificate.toString()), err.toString());
        final String json = Files.readString(certificate);
        assertEquals(true, json.contains("\"jitter_ns\" : 0"));
        Files.writeString(certificate, json.replace("\"jitter_ns\" : 0", "\"jitter_ns\" : 1"));
        assertEquals(3, run(new VerifyCommand(), certificate.toString()), err.toString());
        assertTrue(out.toString().contains("ResponseBelowRightHandSide"), out.toString());
    }
}

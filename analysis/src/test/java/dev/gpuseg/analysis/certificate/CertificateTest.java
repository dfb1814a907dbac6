/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.certificate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class CertificateTest {
    private static final String SET = """
        platform: {cpus: 2, epsilon: 1ms}
        tasks:
          - {name: hc, cpu: 1, period: 200ms, priority: 80, segments: [{cpu: 3ms}]}
          - {name: a, cpu: 1, period: 80ms, priority: 70, segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}]}
          - {name: b, cpu: 2, period: 200ms, priority: 60, segments: [{cpu: 2ms}, {gpu: {host: 1ms, device: 40ms}}]}
        """;

    @TempDir
    private Path directory;

    private Certificate certificate(final String yaml) throws IOException {
        final Path file = Files.writeString(directory.resolve("set.yaml"), yaml);
        return Certificate.of(new TaskSetReader().read(file)).orElseThrow();
    }

    private Certificate reread(final String json) throws IOException {
        return Certificate.read(Files.writeString(directory.resolve("certificate.json"), json));
    }

    private static List<String> check(final Certificate certificate) throws IOException {
        assumeTrue(Path.of("/usr/bin/coqc").toFile().canExecute() || "1".equals(System.getenv("CI")),
            "coqc is missing; type: " + CoqCheck.INSTALL);
        return new CoqCheck("coqc").failures(certificate);
    }

    @Test
    void shouldReadWhatItWrites() throws IOException {
        final Certificate written = certificate(SET);
        assertEquals(written, reread(written.json()));
    }

    @Test
    void shouldRefuseWhatIsNoCertificate() throws IOException {
        final String json = certificate(SET).json();
        for (final String broken : List.of("", "{}", "[1]", json.replace("\"version\" : 1", "\"version\" : 2"),
            json.replace("\"stall_ns\" : 0", "\"stall_ns\" : -1"), json.replace("\"stall_ns\" : 0", "\"stall\" : 0"),
            json.replace("\"stall_ns\" : 0", "\"stall_ns\" : 0.5"), json + json,
            json.replace("\"stall_ns\" : 0", "\"stall_ns\" : 0, \"stall_ns\" : 1"))) {
            assertThrows(InvalidFileException.class, () -> reread(broken), broken);
        }
    }

    @Test
    void shouldBeAcceptedAndRejectedWithAnyBoundOneNanosecondLower() throws IOException {
        final Certificate good = certificate(SET);
        assertEquals(List.of(), check(good));
        for (int i = 0; i < good.tasks().size(); i++) {
            final String number = "\"response_ns\" : " + good.tasks().get(i).responseNs();
            final List<String> failures = check(reread(good.json().replace(number, "\"response_ns\" : "
                + (good.tasks().get(i).responseNs() - 1))));
            final String name = good.tasks().get(i).name();
            assertTrue(failures.stream().anyMatch(f -> f.contains(name) && f.contains("ResponseBelow")),
                failures.toString());
        }
    }

    @Test
    void shouldNameTheHypothesisThatFails() throws IOException {
        final Certificate ordered = certificate("""
            platform: {cpus: 2, epsilon: 1ms}
            tasks:
              - {name: a, cpu: 1, period: 900ms, priority: 70, gpu_priority: 71,
                 segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}]}
              - {name: b, cpu: 1, period: 900ms, priority: 60, segments: [{gpu: {host: 1ms, device: 4ms}}]}
            """);
        // the analysis refuses such a set, so that only a forged certificate has it
        assertRejected("GpuOrderIsNotCpuOrder", reread(ordered.json().replace("\"gpu_priority\" : 71",
            "\"gpu_priority\" : 50")));
        assertRejected("SharedProcess", reread(ordered.json().replace("\"process\" : 1", "\"process\" : 0")));
        final String easy = SET.replace("device: 40ms", "device: 5ms");
        assertRejected("EqualCpuPriorities", easy.replace("priority: 80", "priority: 70"));
        assertRejected("EqualGpuPriorities", easy.replace("priority: 60", "priority: 70"));
        assertRejected("TotalIsNotHostPlusDevice", easy.replace("device: 4ms}", "device: 4ms, total: 5ms}"));
        assertRejected("NoHostPart", easy.replace("host: 2ms", "host: 0ms"));
        assertRejected("BlockingOfCpuOnlyTask", easy.replace("priority: 80", "priority: 80, blocking: 1ms"));
    }

    private void assertRejected(final String failure, final String yaml) throws IOException {
        assertRejected(failure, certificate(yaml));
    }

    private static void assertRejected(final String failure, final Certificate certificate) throws IOException {
        final List<String> failures = check(certificate);
        assertTrue(failures.stream().anyMatch(f -> f.contains(failure)), failure + ": " + failures);
    }

    @Test
    void shouldNameEveryFailureOfALargeSet() throws IOException {
        final List<Certificate.TaskLine> tasks = IntStream.range(0, 60).mapToObj(i -> new Certificate.TaskLine("t" + i,
            i, 0, i, 1, 1, 100, 100, 0, 0, 10, 0, 9, List.of())).toList();
        assertEquals(60, check(new Certificate(Certificate.FORMAT, Certificate.VERSION, Certificate.ANALYSIS, "large",
            List.of(), tasks)).size());
    }

    @Test
    void shouldSayWhatToTypeWhereCoqcIsMissing() throws IOException {
        final Certificate good = certificate(SET);
        final IOException e = assertThrows(CoqCheck.MissingException.class,
            () -> new CoqCheck(directory.resolve("none").toString()).failures(good));
        assertTrue(e.getMessage().contains("sudo apt-get install coq"), e.getMessage());
    }
}

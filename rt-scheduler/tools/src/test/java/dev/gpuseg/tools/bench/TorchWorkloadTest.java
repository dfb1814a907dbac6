/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.tools.process.Child;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How workload.py speaks with the bench, on a stand-in of torch that computes nothing. */
@Timeout(300)
class TorchWorkloadTest {
    private static final int LIMIT_S = 120;
    private static final int JOBS = 40;
    private static final String PYTHON = "/usr/bin/python3";

    /** Every attribute, call and element of torch is one object. With CHANGES it computes something else each time. */
    private static final String TORCH = """
        import os
        import sys

        class Anything:
            __version__, __path__, __spec__ = "stand-in", [], None
            computed = 0
            def __init__(self, *_): pass
            def __mro_entries__(self, _): return (Anything,)
            def __getattr__(self, name): return self
            def __call__(self, *_, **__): return self
            def __getitem__(self, _): return self
            def __floordiv__(self, _): return self
            def __mul__(self, _): return self
            def __rmod__(self, _): return 0
            def __len__(self): return 1
            def __int__(self): return 7
            def __enter__(self): return self
            def __exit__(self, *_): pass
            def tobytes(self):
                Anything.computed += "CHANGES" in os.environ
                return b"%d" % Anything.computed

        sys.modules[__name__] = sys.modules["torch.nn"] = sys.modules["torch.nn.functional"] = Anything()
        """;

    @TempDir
    private Path directory;

    @BeforeEach
    void writeStandin() throws Exception {
        assumeTrue(Files.isExecutable(Path.of(PYTHON)), "python3 is not installed");
        Files.writeString(directory.resolve("torch.py"), TORCH);
    }

    private List<String> command(final String... arguments) {
        final List<String> command = new ArrayList<>(List.of("env", "PYTHONPATH=" + directory,
            "PYTHONDONTWRITEBYTECODE=1", PYTHON, TorchScenario.file()));
        command.addAll(List.of(arguments));
        return command;
    }

    private Child start(final List<String> command) {
        return Child.start("workload.py", command, directory.resolve("errors"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"cnn", "vit", "llm"})
    void shouldSayWhatTheBenchReadsOfAnInference(final String program) throws Exception {
        final Path samples = directory.resolve("samples.csv");
        try (Child child = start(command(program, "--jobs", Integer.toString(JOBS), "--period", "1", "--samples",
            samples.toString()))) {
            assertEquals(0, child.awaitExit(LIMIT_S), child.said());
            final JsonNode said = new ObjectMapper().readTree(child.lastLine());
            RecordedRunsTest.assertFigures(samples, said);
            assertEquals(JOBS, said.path("jobs").asInt());
            assertEquals(0, said.path("wrong").asInt(-1));
            assertEquals(0, said.path("other_kernels").asInt(-1));
            assertTrue(said.path("windows_ns").asLong() > 0, child.said());
            final long leastNs = (JOBS - 1) * 1_000_000L;
            assertTrue(said.path("loop_ns").asLong() >= leastNs, "jobs keep their period: " + child.said());
            assertEquals(64, said.path("digest").asText().length(), child.said());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"train-cnn", "train-vit", "train-llm", "products", "llm"})
    void shouldCountItsJobsUntilThePageSaysStop(final String program) throws Exception {
        final CudaBench.Other other = new CudaBench(directory).startCounting(program,
            page -> command(program, "--page", page.toString()));
        try {
            other.awaitReady();
            final long endNs = System.nanoTime() + LIMIT_S * 1_000_000_000L;
            while (other.kernels() < 10) {
                assertTrue(System.nanoTime() < endNs, "it counts nothing");
                Thread.sleep(5);
            }
            assertEquals(other.child().pid(), other.pid());
            other.askToStop();
            assertEquals(0, other.child().awaitExit(LIMIT_S), other.child().said());
            assertEquals(0, other.wrong());
        } finally {
            other.child().close();
        }
    }

    @Test
    void shouldFailWhereAResultDiffersFromTheFirst() throws Exception {
        final List<String> changing = command("cnn", "--jobs", Integer.toString(JOBS));
        changing.add(1, "CHANGES=1");
        try (Child child = start(changing)) {
            assertEquals(1, child.awaitExit(LIMIT_S), child.said());
            assertTrue(new ObjectMapper().readTree(child.lastLine()).path("wrong").asInt() > 0, child.said());
        }
    }

    @Test
    void shouldRefuseToMeasureWhatRunsWithoutEnd() throws Exception {
        try (Child child = start(command("products", "--jobs", "5"))) {
            assertEquals(2, child.awaitExit(LIMIT_S), child.said());
            assertTrue(child.said().contains("products runs without end: --page FILE"), child.said());
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The rounds of {@code fault_rounds.py}, which kills the daemon beside the programs of the bench. */
class FaultRoundsTest extends BenchGpuRig {
    @Test
    void shouldRecordTheFreezeOfEachRoundInWhichTheDaemonIsKilled() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/python3")), "python3 is not installed");
        final List<String> java = JavaCommand.of(Gpuseg.class, List.of());
        java.addAll(1, List.of("-Dgpuseg.programs=" + programs(), "-Dgpuseg.nvidia.library=" + FAKE));
        script(root().resolve("gpuseg"), java.stream().map(word -> "'" + word + "'")
            .collect(Collectors.joining(" ", "#!/bin/sh\nexec ", " \"$@\"\n")));
        final Path rounds = Path.of(System.getProperty("gpuseg.root", "."),
            "rt-scheduler/native/gpu-bench/fault_rounds.py");
        try (Child child = Child.start("fault rounds", List.of("env", "GPUSEG_RM_STANDIN=" + socket(),
            "/usr/bin/python3", rounds.toString(), "--kind", "daemon", "--rounds", "2", "--per", "1", "--build",
            programs().toString(), "--gpuseg", root().resolve("gpuseg").toString(), "--out",
            root().resolve("faults").toString()), root().resolve("fault-errors"))) {
            final int status = child.awaitExit(LIMIT_S);
            // 1: a process was frozen for longer than the period, which a busy machine can do
            assertTrue(status == 0 || status == 1, child.said());
            final JsonNode said = json(root().resolve("faults/faults-daemon.json"));
            assertEquals(2, said.path("rounds").asInt(), child.said());
            assertEquals(0, said.path("wrong").asInt(), child.said());
            final List<String> lines = Files.readAllLines(root().resolve("faults/faults-daemon.csv"));
            assertEquals(3, lines.size(), lines.toString());
            final int column = List.of(lines.get(0).split(",")).indexOf("freeze_ms");
            for (final String line : lines.subList(1, lines.size())) {
                assertTrue(Double.parseDouble(line.split(",")[column]) > 0, line);
            }
        }
    }
}

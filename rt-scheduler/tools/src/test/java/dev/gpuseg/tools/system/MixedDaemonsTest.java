/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A recording over two daemons, one of which scheduled a virtual GPU: whatever comes of it is labelled simulated. */
@Timeout(400)
@Tag("long")
@Tag("beside")
class MixedDaemonsTest {
    private static final int LIMIT_S = 120;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    /** Plays jobs under a daemon of its own, which ends afterwards. */
    private void daemon(final String mechanism) throws Exception {
        final String directory = rig.directory().root().toString();
        final List<String> command = JavaCommand.daemon("--dir", directory, "--mechanism", mechanism);
        command.addAll(rig.settings());
        final Child daemon = rig.start("daemon-" + mechanism, command);
        daemon.await("ready", LIMIT_S);
        jobs();
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", directory).status());
    }

    private void jobs() throws Exception {
        final Child client = rig.start("client", TaskClient.command(rig, TaskClient.open("camera", 70, 1000, 1000, 0),
            "jobs:camera:3:1000"));
        assertEquals(0, client.awaitExit(LIMIT_S), client::said);
    }

    private static String said(final StringOutput output) {
        assertTrue(output.status() == ExitCode.OK || output.status() == ExitCode.NO, output.text());
        return output.out();
    }

    @ParameterizedTest
    @CsvSource({"sim,gate", "gate,sim"})
    void shouldKeepTheLabelOfTheSimulatedOne(final String first, final String second) throws Exception {
        rig.gpu();
        daemon(first);
        daemon(second);
        final Path recording = rig.file("both.gpuseg");
        said(StringOutput.of("trace", "record", "--dir", rig.directory().root().toString(), "--out",
            recording.toString()));
        final JsonNode stats = new ObjectMapper().readTree(said(StringOutput.of("trace", "stats", recording.toString(),
            "--json")));
        assertTrue(stats.path("simulated").asBoolean(), stats.toString());
        assertEquals(6, stats.path("tasks").get(0).path("jobs").asInt(), "of both daemons: " + stats);
        assertTrue(said(StringOutput.of("trace", "stats", recording.toString())).contains("SIMULATED GPU"));

        final Path set = rig.file("set.yaml");
        said(StringOutput.of("trace", "taskset", recording.toString(), "--out", set.toString()));
        assertTrue(Files.readString(set).contains("simulated: true"), Files.readString(set));
        final Path report = rig.file("report.html");
        said(StringOutput.of("analyze", set.toString(), "--format", "html", "--out", report.toString()));
        assertTrue(Files.readString(report).toLowerCase(Locale.ROOT).contains("simulated"),
            "the report of a set from a simulated run");
        assertTrue(said(StringOutput.of("analyze", set.toString())).toLowerCase(Locale.ROOT)
            .contains("simulated"));
    }

    @Test
    void shouldNotLabelWhatWasNotSimulated() throws Exception {
        daemon("gate");
        final Path recording = rig.file("gate.gpuseg");
        said(StringOutput.of("trace", "record", "--dir", rig.directory().root().toString(), "--out",
            recording.toString()));
        assertFalse(said(StringOutput.of("trace", "stats", recording.toString())).contains("SIMULATED"));
    }
}

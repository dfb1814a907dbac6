/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.mechanisms.gate.GateMechanism;
import dev.gpuseg.mechanisms.gate.InstantMechanism;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
class WarmUpTest {
    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({"fp,true", "fp,false", "edf,true", "rr,true"})
    void shouldAllocateNothingPerEventFromQueueToJournalRing(final String policy, final boolean preemptive)
        throws IOException {
        final Path scratch = directory.resolve("warm-up");
        final double bytes = WarmUp.run(scratch, 240_000, PolicyCatalog.builtIn().create(policy),
            preemptive ? new InstantMechanism() : new GateMechanism());
        assertTrue(bytes >= 0, "this JVM does not count allocations");
        assertTrue(bytes < 0.1, bytes + " bytes per record: something allocates on the hot path");
        assertFalse(Files.exists(scratch), "the scratch directory is removed");
        assertEquals(List.of(), queuesMapped(scratch), "a deleted file that is mapped takes memory all the same");
    }

    private static List<String> queuesMapped(final Path scratch) throws IOException {
        return Files.readAllLines(Path.of("/proc/self/maps")).stream()
            .filter(line -> line.contains(scratch + "/client")).toList();
    }
}

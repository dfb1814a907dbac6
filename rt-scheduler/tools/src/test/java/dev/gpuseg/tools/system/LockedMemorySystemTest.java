/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.NativeTool;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The daemon's memory is locked where its dispatcher was given a processor; what is sparse stays so. */
@Timeout(120)
@Tag("long")
@Tag("beside")
class LockedMemorySystemTest {
    private static final long LEAST_KB = 50_000;
    private static final int CAP_IPC_LOCK = 14;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private static String lineOf(final String file, final String start) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of(file))) {
            return lines.filter(line -> line.startsWith(start)).findFirst().orElseThrow();
        }
    }

    private static boolean isPermitted() throws IOException {
        final long capabilities = Long.parseLong(lineOf("/proc/self/status", "CapEff:").substring(7).strip(), 16);
        return (capabilities >>> CAP_IPC_LOCK & 1) != 0
            || lineOf("/proc/self/limits", "Max locked memory").split("\\s+")[3].equals("unlimited");
    }

    /** How much of the JVM's file of classes is loaded: it is mapped as a whole, and hardly used. */
    private static double loadedOfClasses(final Child daemon) throws IOException {
        long size = 0;
        long resident = 0;
        boolean isClasses = false;
        for (final String line : Files.readAllLines(Path.of("/proc/" + daemon.pid() + "/smaps"))) {
            if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
                isClasses = line.endsWith("/lib/modules");
            } else if (isClasses && line.startsWith("Size:")) {
                size += Long.parseLong(line.replaceAll("\\D", ""));
            } else if (isClasses && line.startsWith("Rss:")) {
                resident += Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        assertTrue(size > 0, "the JVM maps no lib/modules");
        return (double) resident / size;
    }

    private static long lockedKb(final Child daemon) throws IOException {
        return Long.parseLong(lineOf("/proc/" + daemon.pid() + "/status", "VmLck:").replaceAll("\\D", ""));
    }

    @Test
    void shouldLockWhereTheDispatcherHasAProcessorAndFillNoSparseFile() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon("--cpu", "0");
        if (isPermitted()) {
            assertTrue(lockedKb(daemon) > LEAST_KB, "locked: " + lockedKb(daemon) + " kB");
            assertTrue(loadedOfClasses(daemon) < 0.5, loadedOfClasses(daemon) + " of lib/modules");
        } else {
            assertEquals(0, lockedKb(daemon));
            assertTrue(daemon.said().contains("memory is not locked") && daemon.said().contains("CAP_IPC_LOCK"),
                daemon.said());
        }
        SystemRig.summary(rig.task("camera", 50, "10ms", "gpu:0ms+1ms", "200ms"), 60);
        final List<Path> files;
        try (Stream<Path> all = Files.list(rig.directory().journal())) {
            files = all.filter(p -> p.toString().endsWith(".cq4")).toList();
        }
        assertFalse(files.isEmpty());
        for (final Path p : files) {
            final long taken = 512 * Long.parseLong(NativeTool.run(20, "stat", "-c", "%b", p.toString()).strip());
            assertTrue(taken < Files.size(p) / 2, p + " takes " + taken + " of " + Files.size(p) + " bytes");
        }
    }

    @Test
    void shouldLockNothingUnasked() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        assertEquals(0, lockedKb(daemon));
        assertFalse(daemon.said().contains("locked"), daemon.said());
        final Child second = rig.with("lock-memory: false").nextDaemon("--cpu", "0");
        assertEquals(0, lockedKb(second));
        assertFalse(second.said().contains("locked"), second.said());
    }
}

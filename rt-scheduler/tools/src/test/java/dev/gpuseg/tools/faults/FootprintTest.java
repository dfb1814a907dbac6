/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Closeable;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FootprintTest {
    private static final Footprint FIRST = new Footprint(7, 3, 3, 60, 23, 350_000);

    @TempDir
    private Path directory;

    private static Footprint later(final int clients, final int tasks, final int descriptors, final int threads,
        final long residentKib) {
        return new Footprint(7, clients, tasks, descriptors, threads, residentKib);
    }

    @Test
    void shouldFindNothingInADaemonThatHoldsWhatItHeld() {
        assertEquals("", FIRST.excess(FIRST, 3));
        assertEquals("", later(3, 3, 60 + Footprint.DESCRIPTORS_SLACK, 23 + Footprint.THREADS_SLACK,
            350_000 + Footprint.RESIDENT_SLACK_KIB).excess(FIRST, 3));
    }

    @Test
    void shouldNameEverythingThatADaemonDoesNotLetGo() {
        assertEquals("4 clients instead of 3 at most", later(4, 3, 60, 23, 350_000).excess(FIRST, 3));
        assertEquals("9 tasks instead of 3 at most", later(3, 9, 60, 23, 350_000).excess(FIRST, 3));
        assertTrue(later(3, 3, 61 + Footprint.DESCRIPTORS_SLACK, 24 + Footprint.THREADS_SLACK,
            350_001 + Footprint.RESIDENT_SLACK_KIB).excess(FIRST, 3)
            .matches("\\d+ descriptors .*, \\d+ threads .*, \\d+ KiB of memory .*"));
    }

    @Test
    void shouldCountWhatAProcessHolds() throws Exception {
        final long pid = ProcessHandle.current().pid();
        final var status = new ObjectMapper().readTree("{\"clients\":[{},{}],\"tasks\":[{}]}");
        final Footprint before = Footprint.of(pid, status);
        assertEquals(2, before.clients());
        assertEquals(1, before.tasks());
        assertTrue(before.threads() > 1 && before.residentKib() > 10_000, before.toString());
        final List<Closeable> open = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            final InputStream file = Files.newInputStream(Files.createFile(directory.resolve("file" + i)));
            open.add(file);
        }
        final Footprint after = Footprint.of(pid, status);
        for (final Closeable file : open) {
            file.close();
        }
        assertTrue(after.descriptors() >= before.descriptors() + 30, before + " " + after);
        assertTrue(after.excess(before, 2).contains("descriptors"), after.toString());
    }
}

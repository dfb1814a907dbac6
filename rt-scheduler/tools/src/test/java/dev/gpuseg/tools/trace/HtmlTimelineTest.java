/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Where the page opens: one task of 10 ms, ten seconds without a policy that enforces and ten with one. */
@Timeout(180)
@Tag("long")
class HtmlTimelineTest {
    private static final long MS = 1_000_000;
    private static final int JOBS = 1_000;
    private static final int LATE = 600;
    /** First release of the second phase. */
    private static final long SECOND_NS = 15_003 * MS;

    @TempDir
    private Path directory;
    private JournalRing ring;
    private long ticket;

    @BeforeEach
    void findBrowser() {
        TimelinePage.assumeBrowser();
    }

    private void phase(final String policy, final long startNs, final int late) {
        ring.writeText(EventKind.POLICY, startNs - MS, 0, 0, 0, 0, 0, 0, "policy " + policy);
        for (int k = 0; k < JOBS; k++) {
            final long releaseNs = startNs + 10 * MS * k;
            ticket++;
            Recordings.job(ring, ticket, releaseNs, (k == late ? 9 : 3) * MS);
        }
    }

    private Path page(final int late) {
        try (JournalRing opened = new JournalRing(directory.resolve("ring"), 1 << 21);
            JournalAgent agent = new JournalAgent(opened, directory.resolve("journal"), 1 << 24)) {
            ring = opened;
            ring.writeText(EventKind.START, 0, 0, 0, 0, 0, 0, 0, "{\"policy\":\"rr\",\"mechanism\":\"sim\"}");
            ring.writeText(EventKind.TASK_OPEN, 0, 0, 1, 1, 1, 0, 0, "{\"name\":\"control\",\"priority\":10,"
                + "\"period_ns\":10000000,\"deadline_ns\":5000000}");
            phase("rr", MS, late);
            phase("fp", SECOND_NS, -1);
            agent.drain();
        }
        final Path page = directory.resolve("page.html");
        final StringOutput exported = StringOutput.of("trace", "export", directory.resolve("journal").toString(),
            "--out", page.toString());
        assertEquals(ExitCode.OK, exported.status(), exported.text());
        return page;
    }

    private String shown(final Path page, final String hash) throws Exception {
        return TimelinePage.shown(page, hash, directory);
    }

    /** The span in view, ns from the first event. */
    private static long[] view(final String shown) {
        final Matcher from = Pattern.compile("data-from=\"(-?\\d+)\"").matcher(shown);
        final Matcher to = Pattern.compile("data-to=\"(-?\\d+)\"").matcher(shown);
        assertTrue(from.find() && to.find(), shown.substring(0, 300));
        return new long[] {Long.parseLong(from.group(1)), Long.parseLong(to.group(1))};
    }

    private static void assertAround(final long timeNs, final long[] view) {
        assertTrue(view[0] < timeNs && timeNs < view[1], timeNs + " in " + view[0] + " to " + view[1]);
        final long span = view[1] - view[0];
        assertTrue(span >= 50 * MS && span <= 100 * MS, "a few periods: " + span);
    }

    @Test
    void shouldOpenAtTheFirstMissAndShowTheSameInstantUnderTheOtherPolicy() throws Exception {
        final Path page = page(LATE);
        final String opened = shown(page, "");
        final long deadlineNs = MS + LATE * 10 * MS + 5 * MS;
        assertAround(deadlineNs, view(opened));
        assertTrue(opened.matches("(?s).*<button id=\"other\"[^>]*>same instant with gpuseg</button>.*"), "its button");
        final String other = shown(page, "#other");
        assertAround(deadlineNs - MS + SECOND_NS, view(other));
        assertTrue(other.contains(">same instant without gpuseg</button>"), "and back");
    }

    @Test
    void shouldOpenWithEverythingIfNothingWasMissed() throws Exception {
        final long[] view = view(shown(page(-1), ""));
        assertTrue(view[0] <= 0 && view[1] >= SECOND_NS + 10 * MS * (JOBS - 1), view[0] + " to " + view[1]);
    }
}

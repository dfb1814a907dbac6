/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.StallProbe;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.SystemRig;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * How long the records of one client wait while others write without pause and are killed. The bound
 * (rt-scheduler/docs/performance.md, "How long one client can make another wait") is in duty cycles; each cycle's real
 * length is used here.
 */
@Timeout(600)
@Tag("long")
class KillDelayTest {
    private static final int KILLS = Integer.getInteger("gpuseg.kills", 60);
    private static final int STALLS = 2;
    private static final int ATTEMPTS = 3;
    private static final String PACE_NS = "200000";
    private static final int LONGER_THAN_THE_TEST = 4_000_000;   // rounds of PACE_NS: 800 s
    private static final int KILLED = 128 + 9;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Child client(final String name, final int priority, final String pace, final String mode, final int n) {
        return rig.start(name, List.of(NativePrograms.named("gpuseg-bench-ipc").toString(), "--dir",
            rig.directory().root().toString(), "--priority", Integer.toString(priority), "--warmup", "0", "--wait",
            "sleep", "--pace", pace, "--n", Integer.toString(n), mode));
    }

    /**
     * A client that writes as fast as it can, ended after some ms: killed, or by its own end. False if it was to be
     * killed and had ended: a busy machine may not answer it in time.
     */
    private boolean disturb(final Random random, final boolean kill) throws Exception {
        final long before = rig.counter("tasks_opened");
        final Child writer = client("writer", 0, "0", "flood", kill ? 100_000_000 : 30_000);
        if (kill) {
            if (random.nextInt(8) != 0) {   // else it dies while it registers
                SystemRig.await("the writer has a task", 60_000, () -> rig.counter("tasks_opened") > before);
            }
            Thread.sleep(random.nextInt(12));
            writer.close();
        }
        final int status = writer.awaitExit(60);
        return !kill || status == KILLED;
    }

    /** Published to taken, ns, for one client's begins and ends. */
    private List<Long> delays(final long pid) {
        final Map<Integer, Long> pids = new HashMap<>();
        final List<Long> found = new ArrayList<>();
        JournalReader.forEach(rig.directory().journal(), event -> {
            if (event.kind() == EventKind.CLIENT_OPEN) {
                pids.put(event.clientId(), event.arg0());
            } else if ((event.kind() == EventKind.BEGIN || event.kind() == EventKind.END)
                && pids.getOrDefault(event.clientId(), 0L) == pid) {
                found.add(event.timeNs() - event.arg0());
            }
        });
        found.sort(null);
        return found;
    }

    private List<Long> phase(final String what, final boolean kill) throws Exception {
        final Child measured = client("measured", 99, PACE_NS, "begin", LONGER_THAN_THE_TEST);
        SystemRig.await("the measured client runs", 60_000, () -> rig.counter("begins") > 10);
        final Random random = new Random(20261121);
        int done = 0;
        for (int i = 0; i < 2 * KILLS && done < KILLS; i++) {
            done += disturb(random, kill) ? 1 : 0;
            assertTrue(measured.isAlive(), measured.said());
        }
        assertEquals(KILLS, done, what);
        SystemRig.signal(measured, "KILL");
        measured.awaitExit(60);
        final List<Long> delays = delays(measured.pid());
        System.out.printf("delay of another client's record, %s, %d times: n %d, p50 %d, p99 %d, max %d us; longest "
            + "duty cycle so far %d us%n", what, KILLS, delays.size(), at(delays, 50) / 1000, at(delays, 99) / 1000,
            at(delays, 100) / 1000, rig.counter("max_cycle_ns") / 1000);
        System.out.println("records " + rig.counter("records") + ", not journaled " + rig.counter("journal_drops"));
        return delays;
    }

    private static long at(final List<Long> sorted, final int percent) {
        return sorted.get(Math.min(sorted.size() - 1, sorted.size() * percent / 100));
    }

    private static long over(final List<Long> delays, final long boundNs) {
        return delays.stream().filter(ns -> ns > boundNs).count();
    }

    @Test
    void shouldNotLetAWriterThatIsKilledDelayAnotherClient() throws Exception {
        rig.gpu();
        rig.daemon("--idle", "spin");
        Attempts.of(ATTEMPTS, this::delay);
        assertEquals(0, rig.counter("cycle_errors"));
        assertEquals(0, rig.counter("poisoned"));
    }

    private String delay() throws Exception {
        final List<Long> undisturbed;
        final List<Long> disturbed;
        final long lateNs;
        try (StallProbe machine = new StallProbe()) {
            undisturbed = phase("writers that end by themselves", false);
            disturbed = phase("writers that are killed", true);
            lateNs = machine.longestNs();
        }
        assertTrue(undisturbed.size() > 300 && disturbed.size() > 300, "the measured client has run");
        // Two duty cycles. A cycle that the operating system interrupts is longer: therefore the measured length of
        // the longest one, and this machine's lateness for a client that is interrupted between its time stamp and its
        // publication. A dispatcher that is interrupted while it has nothing to do is counted nowhere: two records
        // may wait longer; kills that delay others would delay one each.
        final long boundNs = 2 * rig.counter("max_cycle_ns") + 10_000_000 + lateNs;
        return over(disturbed, boundNs) <= STALLS ? null : over(disturbed, boundNs) + " records waited longer than "
            + boundNs + " ns, up to " + at(disturbed, 100) + " ns";
    }
}

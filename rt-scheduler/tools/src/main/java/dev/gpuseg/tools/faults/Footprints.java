/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Whether daemons that live over several rounds hold ever more. The first round of a daemon gives the measure. One
 * thread.
 */
final class Footprints {
    private static final long LOOK_MS = 5;
    private static final long NS_PER_MS = 1_000_000;

    private record Life(Footprint first, int rounds) {
    }

    private final Map<FaultRig, Life> lives = new HashMap<>();
    private int mostRounds;
    private int mostDescriptors;
    private long mostResidentKib;

    /**
     * Waits until a daemon holds no more than after its first round.
     *
     * @param on      its rig
     * @param present clients that it has now, with one task each
     * @param limitMs how long
     * @param problem learns what it still holds then
     * @return the status that it gave last
     * @throws IllegalStateException if it does not answer
     */
    JsonNode judge(final FaultRig on, final int present, final long limitMs, final Consumer<String> problem)
        throws IOException, InterruptedException {
        final long untilNs = System.nanoTime() + limitMs * NS_PER_MS;
        while (true) {
            final JsonNode status = on.status();
            final Footprint now = Footprint.of(daemonPid(on, status), status);
            final Life known = lives.get(on);
            final Footprint first = known == null || known.first.pid() != now.pid() ? now : known.first;
            final String excess = now.excess(first, present);
            if (excess.isEmpty()) {
                final Life life = new Life(first, first == now ? 1 : known.rounds + 1);
                lives.put(on, life);
                mostRounds = Math.max(mostRounds, life.rounds);
                mostDescriptors = Math.max(mostDescriptors, now.descriptors() - first.descriptors());
                mostResidentKib = Math.max(mostResidentKib, now.residentKib() - first.residentKib());
                return status;
            }
            if (System.nanoTime() - untilNs > 0) {
                lives.remove(on);   // it has been said
                problem.accept("the daemon holds " + excess + ", after " + (known == null ? 0 : known.rounds)
                    + " rounds");
                return status;
            }
            TimeUnit.MILLISECONDS.sleep(LOOK_MS);
        }
    }

    /** The JVM itself: what started it may have another pid. */
    private static long daemonPid(final FaultRig on, final JsonNode status) {
        return status.path("daemon").path("pid").asLong(on.daemon().pid());
    }

    /** Puts {@code rounds_of_one_daemon_max, descriptors_growth_max, resident_growth_max_mib}. */
    void describe(final ObjectNode to) {
        to.put("rounds_of_one_daemon_max", mostRounds);
        to.put("descriptors_growth_max", mostDescriptors);
        to.put("resident_growth_max_mib", mostResidentKib >> 10);
    }
}

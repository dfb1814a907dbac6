/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;

/**
 * Response times of the segments of one process, from the release of the job to the end of the segment by its own
 * clock, as its records in the journal say it. One thread.
 */
final class Responses implements AutoCloseable {
    private static final double P99 = 99;
    private static final double NS_PER_MS = 1e6;
    private static final long LONGEST_NS = 60_000_000_000L;
    private static final int DIGITS = 3;
    private static final int BATCH = 4096;
    private static final int KEPT = 100_000;
    private static final int MOST_TIMES = 2;
    /** Below so many segments a 99th percentile is one event, and the attack alone is not judged. */
    private static final int JUDGED_ALONE = 1_000;

    private record Span(long releasedNs, long endedNs) {
    }

    private final JournalReader reader;
    private final Histogram undisturbed = new Histogram(1, LONGEST_NS, DIGITS);
    private final Histogram attacked = new Histogram(1, LONGEST_NS, DIGITS);
    private final Histogram controlled = new Histogram(1, LONGEST_NS, DIGITS);
    private final Map<Fault, Histogram> attackedBy = new EnumMap<>(Fault.class);
    private final Map<Fault, Histogram> controlOf = new EnumMap<>(Fault.class);
    private final Map<Long, Long> begun = new HashMap<>();
    private final Deque<Span> segments = new ArrayDeque<>();
    private int pid;
    private int clientId;
    private long lastReleaseNs;
    private final List<Long> missedNs = new ArrayList<>();
    private long misses;
    private long undisturbedMisses;
    private long controlledMisses;

    Responses(final Path journal) {
        reader = new JournalReader(journal);
    }

    /** Takes those of another process from now on: one that registers after this call, or has registered before. */
    void follow(final int process) {
        pid = process;
    }

    /** Reads what the journal has got since. */
    void read() {
        while (reader.poll(this::onEvent, BATCH) > 0) {
            continue;
        }
    }

    private void onEvent(final JournalEvent event) {
        if (event.kind() == EventKind.START) {
            clientId = 0;
            begun.clear();
        } else if (event.kind() == EventKind.CLIENT_OPEN && event.arg0() == pid) {
            clientId = event.clientId();
        } else if (event.clientId() != clientId || clientId == 0) {
            return;
        } else if (event.kind() == EventKind.BEGIN) {
            begun.put(event.ticket(), event.arg1() > 0 ? event.arg1() : event.arg0());
        } else if (event.kind() == EventKind.MISS) {
            missedNs.add(event.timeNs());
        } else if (event.kind() == EventKind.END) {
            final Long releasedNs = begun.remove(event.ticket());
            if (releasedNs != null) {
                lastReleaseNs = releasedNs;
                segments.add(new Span(releasedNs, event.arg0()));
            }
            if (segments.size() > KEPT) {
                segments.removeFirst();
            }
        }
    }

    /** When the job of the last segment that ended was released, as far as read; CLOCK_MONOTONIC ns, 0 = none yet. */
    long lastReleaseNs() {
        return lastReleaseNs;
    }

    /** Counts segments that were released within an interval as undisturbed; forgets all others. */
    void undisturbed(final long fromNs, final long toNs) {
        count(undisturbed, fromNs, toNs);
        undisturbedMisses += missesWithin(fromNs, toNs);
    }

    /** Counts segments that were released within an interval as attacked; forgets all others. */
    void attacked(final Fault fault, final long fromNs, final long toNs) {
        count(attacked, attackedBy, fault, fromNs, toNs);
        misses += missesWithin(fromNs, toNs);
    }

    /** Counts segments beside the control of an attack: as much processor time, the daemon left alone. */
    void controlled(final Fault fault, final long fromNs, final long toNs) {
        count(controlled, controlOf, fault, fromNs, toNs);
        controlledMisses += missesWithin(fromNs, toNs);
    }

    private long missesWithin(final long fromNs, final long toNs) {
        final long within = missedNs.stream().filter(missNs -> missNs - fromNs >= 0 && toNs - missNs >= 0).count();
        missedNs.clear();
        return within;
    }

    /** Whether segments without any attack were counted. */
    boolean hasUndisturbed() {
        return undisturbed.getTotalCount() > 0;
    }

    /** Whether segments beside the control of an attack were counted. */
    boolean hasControl(final Fault fault) {
        return controlOf.containsKey(fault);
    }

    private void count(final Histogram all, final Map<Fault, Histogram> byFault, final Fault fault, final long fromNs,
        final long toNs) {
        final Histogram now = new Histogram(1, LONGEST_NS, DIGITS);
        count(now, fromNs, toNs);
        byFault.computeIfAbsent(fault, key -> new Histogram(1, LONGEST_NS, DIGITS)).add(now);
        all.add(now);
    }

    private void count(final Histogram to, final long fromNs, final long toNs) {
        for (final Span segment : segments) {
            if (segment.releasedNs - fromNs >= 0 && toNs - segment.releasedNs >= 0) {
                to.recordValue(Math.min(LONGEST_NS, Math.max(1, segment.endedNs - segment.releasedNs)));
            }
        }
        segments.clear();
    }

    private static double p99Ms(final Histogram of) {
        return of.getValueAtPercentile(P99) / NS_PER_MS;
    }

    /**
     * The figures, and their judgement: an honest client's 99th percentile under attack is at most twice what it is
     * without one. Where the same processor time without an attack delays it more than that, the attack is not the
     * cause, and it is at most twice that one. Judged are all attacks together, and each with enough segments alone.
     *
     * @param to receives {@code innocent_p99_ms, innocent_segments, innocent_misses}, the same as
     *           {@code innocent_undisturbed_...} and {@code innocent_control_...}, and for each attack
     *           {@code innocent_p99_ms, control_p99_ms}
     * @return whether all of them are within that limit
     */
    boolean describe(final ObjectNode to) {
        put(to, "innocent_", attacked, misses);
        put(to, "innocent_undisturbed_", undisturbed, undisturbedMisses);
        put(to, "innocent_control_", controlled, controlledMisses);
        boolean holds = holds(attacked, controlled);
        for (final Map.Entry<Fault, Histogram> entry : attackedBy.entrySet()) {
            final ObjectNode node = (ObjectNode) to.path("by_fault").path(entry.getKey().label());
            final Histogram control = controlOf.getOrDefault(entry.getKey(), undisturbed);
            node.put("innocent_p99_ms", p99Ms(entry.getValue()));
            node.put("control_p99_ms", p99Ms(control));
            holds &= entry.getValue().getTotalCount() < JUDGED_ALONE || holds(entry.getValue(), control);
        }
        return holds;
    }

    private static void put(final ObjectNode to, final String prefix, final Histogram of, final long missed) {
        to.put(prefix + "p99_ms", p99Ms(of));
        to.put(prefix + "segments", of.getTotalCount());
        to.put(prefix + "misses", missed);
    }

    private boolean holds(final Histogram under, final Histogram control) {
        return p99Ms(under) <= MOST_TIMES * Math.max(p99Ms(undisturbed), p99Ms(control));
    }

    @Override
    public void close() {
        reader.close();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

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

    private record Segment(long releasedNs, long endedNs) {
    }

    private final JournalReader reader;
    private final Histogram undisturbed = new Histogram(1, LONGEST_NS, DIGITS);
    private final Histogram attacked = new Histogram(1, LONGEST_NS, DIGITS);
    private final Map<Fault, Histogram> byFault = new EnumMap<>(Fault.class);
    private final Map<Long, Long> begun = new HashMap<>();
    private final Deque<Segment> segments = new ArrayDeque<>();
    private int pid;
    private int clientId;
    private final List<Long> missedNs = new ArrayList<>();
    private long misses;

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
                segments.add(new Segment(releasedNs, event.arg0()));
            }
            if (segments.size() > KEPT) {
                segments.removeFirst();
            }
        }
    }

    /** Counts segments that were released within an interval as undisturbed; forgets all others. */
    void undisturbed(final long fromNs, final long toNs) {
        count(undisturbed, fromNs, toNs);
        missedNs.clear();
    }

    /** Counts segments that were released within an interval as attacked; forgets all others. */
    void attacked(final Fault fault, final long fromNs, final long toNs) {
        final Histogram of = byFault.computeIfAbsent(fault, key -> new Histogram(1, LONGEST_NS, DIGITS));
        final Histogram now = new Histogram(1, LONGEST_NS, DIGITS);
        count(now, fromNs, toNs);
        of.add(now);
        attacked.add(now);
        misses += missedNs.stream().filter(missNs -> missNs - fromNs >= 0 && toNs - missNs >= 0).count();
        missedNs.clear();
    }

    private void count(final Histogram to, final long fromNs, final long toNs) {
        for (final Segment segment : segments) {
            if (segment.releasedNs - fromNs >= 0 && toNs - segment.releasedNs >= 0) {
                to.recordValue(Math.min(LONGEST_NS, Math.max(1, segment.endedNs - segment.releasedNs)));
            }
        }
        segments.clear();
    }

    double undisturbedP99Ms() {
        return undisturbed.getValueAtPercentile(P99) / NS_PER_MS;
    }

    double attackedP99Ms() {
        return attacked.getValueAtPercentile(P99) / NS_PER_MS;
    }

    /** The same by attack. */
    Map<Fault, Double> p99Ms() {
        final Map<Fault, Double> figures = new EnumMap<>(Fault.class);
        byFault.forEach((fault, of) -> figures.put(fault, of.getValueAtPercentile(P99) / NS_PER_MS));
        return figures;
    }

    /** Segments that the attacked figure is made of. */
    long attackedCount() {
        return attacked.getTotalCount();
    }

    /** Deadlines that it missed under attack. */
    long misses() {
        return misses;
    }

    @Override
    public void close() {
        reader.close();
    }
}

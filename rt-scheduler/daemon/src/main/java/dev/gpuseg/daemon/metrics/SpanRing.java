/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The newest spans of time in which a task was in one state or a context was off. Guarded by its owner. */
final class SpanRing {
    /** About 1.1 MB; at 1,000 segments per second some 10 seconds. */
    static final int CAPACITY = 1 << 15;
    /** Most that one answer carries. */
    static final int ANSWER_MAX = 20_000;

    static final int WAITING = 1;
    static final int RUNNING = 2;
    static final int PREEMPTED = 3;
    /** The key is a context's id. */
    static final int CONTEXT_OFF = 4;

    private final byte[] kinds = new byte[CAPACITY];
    private final int[] keys = new int[CAPACITY];
    private final int[] others = new int[CAPACITY];
    private final long[] startsNs = new long[CAPACITY];
    private final long[] endsNs = new long[CAPACITY];
    private long next;

    void add(final int kind, final int key, final long startNs, final long endNs, final int other) {
        if (endNs - startNs <= 0) {
            return;
        }
        final int i = (int) (next & CAPACITY - 1);
        kinds[i] = (byte) kind;
        keys[i] = key;
        startsNs[i] = startNs;
        endsNs[i] = endNs;
        others[i] = other;
        next++;
    }

    /** Spans from a position on, as [kind, key, start, end, other], and where to go on. */
    void putInto(final ObjectNode parent, final long since) {
        final long oldest = Math.max(0, next - Math.min(CAPACITY, ANSWER_MAX));
        final long from = since < 0 || since > next ? oldest : Math.max(since, oldest);
        final ObjectNode node = parent.putObject("spans");
        node.put("next", next);
        node.put("skipped", since >= 0 && since < from ? from - since : 0);
        final ArrayNode list = node.putArray("list");
        for (long at = from; at < next; at++) {
            final int i = (int) (at & CAPACITY - 1);
            list.addArray().add(kinds[i]).add(keys[i]).add(startsNs[i]).add(endsNs[i]).add(others[i]);
        }
    }
}

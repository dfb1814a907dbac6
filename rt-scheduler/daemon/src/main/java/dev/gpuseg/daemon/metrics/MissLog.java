/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Deque;

/** The newest misses and overruns, with what the task was doing at that moment. Guarded by its owner. */
final class MissLog {
    /** How many are kept. */
    static final int CAPACITY = 200;

    /** One line. */
    static final class Entry {
        final long number;
        final long timeNs;
        final String kind;
        final String task;
        final int key;
        final int pid;
        final String doing;
        final long limitNs;
        /** By how much; -1 until the segment has ended. */
        long lateNs = -1;

        Entry(final long number, final long timeNs, final String kind, final TaskFigures task, final String doing,
            final long limitNs) {
            this.number = number;
            this.timeNs = timeNs;
            this.kind = kind;
            this.task = task.name;
            key = task.key;
            pid = task.pid;
            this.doing = doing;
            this.limitNs = limitNs;
        }
    }

    private final Deque<Entry> entries = new ArrayDeque<>(CAPACITY);
    private long total;

    Entry add(final long timeNs, final String kind, final TaskFigures task, final String doing, final long limitNs) {
        if (entries.size() == CAPACITY) {
            entries.removeFirst();
        }
        final Entry entry = new Entry(++total, timeNs, kind, task, doing, limitNs);
        entries.addLast(entry);
        return entry;
    }

    /** Newest first. */
    void putInto(final ObjectNode parent, final int limit) {
        parent.put("misses_total", total);
        final ArrayNode list = parent.putArray("misses");
        final var newest = entries.descendingIterator();
        while (newest.hasNext() && list.size() < limit) {
            final Entry entry = newest.next();
            list.addObject().put("number", entry.number).put("time_ns", entry.timeNs).put("kind", entry.kind)
                .put("task", entry.task).put("key", entry.key).put("pid", entry.pid).put("doing", entry.doing)
                .put("limit_ns", entry.limitNs).put("late_ns", entry.lateNs);
        }
    }
}

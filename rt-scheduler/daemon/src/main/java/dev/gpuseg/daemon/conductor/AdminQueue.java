/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Commands that wait for the dispatcher. An answer may be as large as all that the daemon knows, so only a few are made
 * at the same time: one for each user, {@link #IN_PROGRESS_MAX} in all. Users take turns; what waits is bounded in
 * number and in bytes, for each user and in all. One thread.
 */
final class AdminQueue {
    /** Commands that are being answered. */
    static final int IN_PROGRESS_MAX = 2;
    /** Waiting commands of one user. */
    static final int WAITING_PER_USER = 128;
    /** Waiting commands. */
    static final int WAITING_MAX = 512;
    /** Their texts, of one user. */
    static final long BYTES_PER_USER = 1L << 20;
    /** Their texts. */
    static final long BYTES_MAX = 4L << 20;

    /** A command. */
    record Waiting(long correlation, Connection connection, String json) {
        int uid() {
            return connection.peer.uid();
        }

        long bytes() {
            return (long) Character.BYTES * json.length();
        }
    }

    /** What one user waits for. */
    private static final class Line {
        private final ArrayDeque<Waiting> commands = new ArrayDeque<>();
        private long bytes;
    }

    /** By uid, whose turn is next first. */
    private final Map<Integer, Line> lines = new LinkedHashMap<>();
    /** Correlation and uid. */
    private final Map<Long, Integer> inProgress = new HashMap<>();
    private int waiting;
    private long bytes;

    /** Adds a command of a connection that is open; false if too many wait: it was not added. */
    boolean offer(final Waiting command) {
        final Line line = lines.get(command.uid());
        if (waiting >= WAITING_MAX || bytes + command.bytes() > BYTES_MAX) {
            return false;
        }
        if (line != null && (line.commands.size() >= WAITING_PER_USER
            || line.bytes + command.bytes() > BYTES_PER_USER)) {
            return false;
        }
        final Line to = line != null ? line : new Line();
        lines.putIfAbsent(command.uid(), to);
        to.commands.add(command);
        to.bytes += command.bytes();
        waiting++;
        bytes += command.bytes();
        return true;
    }

    /** Takes the next command that may be answered; it is in progress until {@link #finished}. Null if none may. */
    Waiting next() {
        if (inProgress.size() >= IN_PROGRESS_MAX) {
            return null;
        }
        for (final Iterator<Map.Entry<Integer, Line>> each = lines.entrySet().iterator(); each.hasNext();) {
            final Map.Entry<Integer, Line> entry = each.next();
            if (inProgress.containsValue(entry.getKey())) {
                continue;
            }
            final Waiting found = poll(entry.getValue());
            if (entry.getValue().commands.isEmpty()) {
                each.remove();
            }
            if (found != null) {
                final Line rest = lines.remove(found.uid());
                if (rest != null) {
                    lines.put(found.uid(), rest);   // to the end: the others come first
                }
                inProgress.put(found.correlation(), found.uid());
                return found;
            }
        }
        return null;
    }

    /** The first command of a line whose connection has not been closed meanwhile. */
    private Waiting poll(final Line line) {
        Waiting command = line.commands.poll();
        while (command != null) {
            waiting--;
            bytes -= command.bytes();
            line.bytes -= command.bytes();
            if (command.connection().open) {
                return command;
            }
            command = line.commands.poll();
        }
        return null;
    }

    /** A command was answered; one that is not in progress is ignored. */
    void finished(final long correlation) {
        inProgress.remove(correlation);
    }

    /** How many wait. */
    int size() {
        return waiting;
    }
}

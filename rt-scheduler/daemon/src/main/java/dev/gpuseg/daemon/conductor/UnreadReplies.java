/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/** Memory of replies that their peers have not read: for each user and in all. Conductor's thread. */
final class UnreadReplies {
    /** A user with more gets no answer to a command. */
    static final long COMMAND_BYTES = 2L << 20;
    /** Most of one user. */
    static final long USER_BYTES = 8L << 20;
    /** Most of all users. */
    static final long BYTES_MAX = 32L << 20;
    /** What a stored reply costs besides its bytes. */
    private static final int OVERHEAD = 64;

    private final Map<Integer, Long> byUser = new HashMap<>();
    private long bytes;

    /** Memory of a stored reply, bytes. */
    static long cost(final byte[] reply) {
        return reply.length + OVERHEAD;
    }

    /** Counts a reply of a connection. */
    void add(final Connection connection, final byte[] reply) {
        change(connection, cost(reply));
    }

    /** A reply of a connection was delivered. */
    void remove(final Connection connection, final byte[] reply) {
        change(connection, -cost(reply));
    }

    /** A connection was closed: nothing of it is kept. */
    void forget(final Connection connection) {
        change(connection, -connection.unsentBytes);
    }

    private void change(final Connection connection, final long by) {
        connection.unsentBytes += by;
        bytes += by;
        byUser.merge(connection.peer.uid(), by, (a, b) -> a + b == 0 ? null : Long.valueOf(a + b));
    }

    /** Unread bytes of a user. */
    long of(final int uid) {
        return byUser.getOrDefault(uid, 0L);
    }

    /** Unread bytes of all users. */
    long total() {
        return bytes;
    }

    /**
     * Which connection has to be closed.
     *
     * @param added       to which a reply was added
     * @param connections all
     * @return the one with most unread bytes, of the user with too many; null if there is room
     */
    Connection excess(final Connection added, final Collection<Connection> connections) {
        if (of(added.peer.uid()) > USER_BYTES) {
            return largest(added.peer.uid(), connections);
        }
        if (bytes <= BYTES_MAX) {
            return null;
        }
        int greediest = added.peer.uid();
        for (final Map.Entry<Integer, Long> user : byUser.entrySet()) {
            greediest = user.getValue() > of(greediest) ? user.getKey() : greediest;
        }
        return largest(greediest, connections);
    }

    private static Connection largest(final int uid, final Collection<Connection> connections) {
        Connection found = null;
        for (final Connection connection : connections) {
            if (connection.peer.uid() == uid && (found == null || connection.unsentBytes > found.unsentBytes)) {
                found = connection;
            }
        }
        return found;
    }
}

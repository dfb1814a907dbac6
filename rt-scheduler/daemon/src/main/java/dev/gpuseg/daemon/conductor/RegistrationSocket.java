/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ClockReading;
import dev.gpuseg.ipc.platform.Epoll;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.PeerProcess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.GroupPrincipal;
import java.nio.file.attribute.UserPrincipalNotFoundException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.LongUnaryOperator;

/**
 * The socket on which programs register, and its connections: accepts them, takes a bounded number of packets of each
 * in turn, keeps replies that a peer has not read yet, and tells an orderly end from a death. Requests of a peer with
 * unread replies wait in the kernel. What packets say is the {@link Peers}' business. Conductor's thread; never blocks.
 */
final class RegistrationSocket {
    static final int CONNECTIONS_MAX = 4 * Abi.CLIENTS_MAX;
    static final int PACKETS_PER_TURN = 16;
    static final int UNSENT_MAX = 1024;
    /** A dying process closes its socket a little before its pidfd says so. */
    static final long HANG_UP_GRACE_NS = 5_000_000L;
    private static final String GROUP = "gpuseg";
    private static final int BACKLOG = 128;

    /** Who is told what connections do. */
    interface Peers {
        /** A packet came; it is overwritten by the next. */
        void onPacket(Connection connection, Packet packet);

        /** The peer of a registered client closed its end and has not died since. */
        void onHangUp(Connection connection);

        /** The peer broke the rules. */
        void onOffence(Connection connection, String text);

        /** A connection could not be accepted. */
        void onAcceptError();

        /** A connection was refused: its user has as many as one may have. */
        void onTooMany();

        /** Unread replies need too much memory, most of it for this peer. */
        void onUnread(Connection connection, String text);

        /** A connection was closed from this side. */
        void onClosed(Connection connection);
    }

    private final Path path;
    private final Epoll epoll;
    private final long listenerToken;
    private final LongUnaryOperator connectionToken;
    private final Peers peers;
    private final SeqPacketSocket listener;
    private final Packet packet = new Packet(Abi.MSG_BYTES_MAX + 64);
    private final Packet resent = new Packet(Abi.MSG_BYTES_MAX);
    private final Map<Long, Connection> connections = new HashMap<>();
    private final Map<Object, Integer> connectionsByOwner = new HashMap<>();
    private final UnreadReplies unread = new UnreadReplies();
    private final int connectionsPerUser;
    private final Function<PeerProcess, Object> owners;
    private final List<Connection> hungUp = new ArrayList<>();
    private long nextId = 1;
    private boolean listening = true;
    /** When no connection waited, for kernels that do not say which process made one. */
    private long emptyNs;
    private boolean stopped;

    /**
     * Listens from now on.
     *
     * @param path               where
     * @param user               who may connect besides the group, and whose the socket is therefore; -1 = none
     * @param epoll              the caller waits for it and then calls {@link #accept} and {@link #serve}
     * @param listenerToken      of the socket itself
     * @param connectionToken    of a connection, from its id
     * @param connectionsPerUser most of one owner
     * @param owners             whose a connection is for that bound; null if it has none
     * @param peers              told what connections do
     */
    RegistrationSocket(final Path path, final int user, final Epoll epoll, final long listenerToken,
        final LongUnaryOperator connectionToken, final int connectionsPerUser,
        final Function<PeerProcess, Object> owners, final Peers peers) {
        this.owners = owners;
        this.connectionsPerUser = connectionsPerUser;
        this.path = path;
        this.epoll = epoll;
        this.listenerToken = listenerToken;
        this.connectionToken = connectionToken;
        this.peers = peers;
        RuntimeDirectory.deleteTree(path);
        listener = SeqPacketSocket.listen(path, BACKLOG);
        openTo(user, path);
        epoll.add(listener.fd(), Epoll.IN, listenerToken);
    }

    private static void openTo(final int user, final Path socket) {
        try {
            final GroupPrincipal group = socket.getFileSystem().getUserPrincipalLookupService()
                .lookupPrincipalByGroupName(GROUP);
            Files.setAttribute(socket, "posix:group", group);
        } catch (final UserPrincipalNotFoundException e) {
            // no such group: the daemon's own group it is
            FileAccess.chown(socket, -1, ProcessStatus.effectiveGid());
        } catch (final IOException e) {
            throw new UncheckedIOException(socket + " cannot be given to group " + GROUP + ": " + e.getMessage()
                + "; add the daemon's user to that group", e);
        }
        try {
            FileAccess.chown(socket, user, -1);
        } catch (final SystemCallException e) {
            throw new IllegalStateException(socket + " cannot be given to user " + Integer.toUnsignedString(user) + ": "
                + e.getMessage() + "; start the daemon without SUDO_UID", e);
        }
        FileAccess.chmod(socket, 0660);
    }

    /** Connections wait: accepts some of them. */
    void accept() {
        for (int i = 0; i < PACKETS_PER_TURN; i++) {
            SeqPacketSocket socket = null;
            PeerProcess process = null;
            try {
                final long nowNs = ClockReading.bootNs();
                socket = listener.accept();
                if (socket == null) {
                    emptyNs = nowNs;
                    return;
                }
                if (connections.size() >= CONNECTIONS_MAX) {
                    peers.onAcceptError();
                    socket.close();
                    continue;
                }
                process = PeerProcess.of(socket, emptyNs);
                final Object owner = owners.apply(process);
                if (owner != null && connectionsByOwner.getOrDefault(owner, 0) >= connectionsPerUser) {
                    peers.onTooMany();
                    process.close();
                    socket.close();
                    continue;
                }
                final Connection connection = new Connection(nextId++, socket, process, owner);
                epoll.add(socket.fd(), Epoll.IN | Epoll.RDHUP, connectionToken.applyAsLong(connection.id));
                connections.put(connection.id, connection);
                if (owner != null) {
                    connectionsByOwner.merge(owner, 1, Integer::sum);
                }
            } catch (final SystemCallException e) {
                // out of descriptors or memory: the connection waits in the backlog, others are served
                peers.onAcceptError();
                if (process != null) {
                    process.close();
                }
                if (socket != null) {
                    socket.close();
                } else {
                    // level-triggered: without a pause this would spin
                    epoll.remove(listener.fd());
                    listening = false;
                }
                return;
            }
        }
    }

    /** A connection is readable or writable; the events are those that {@link Epoll} returned. */
    void serve(final long id, final int ready) {
        final Connection connection = connections.get(id);
        if (connection == null || !connection.open || connection.hungUpUntilNs != 0) {
            return;
        }
        try {
            if ((ready & Epoll.OUT) != 0) {
                flush(connection);
            }
            // a peer that has closed its end will read no more: what it sent is read, up to the end
            final boolean ends = (ready & (Epoll.RDHUP | Epoll.HUP | Epoll.ERR)) != 0;
            for (int i = 0; i < PACKETS_PER_TURN && connection.open && connection.hungUpUntilNs == 0
                && (ends || connection.unsent.isEmpty()); i++) {
                final int n = connection.socket.receive(packet);
                if (n == SeqPacketSocket.NOTHING) {
                    return;
                }
                if (n == SeqPacketSocket.CLOSED) {
                    hangUp(connection);
                    return;
                }
                peers.onPacket(connection, packet);
            }
        } catch (final SystemCallException e) {
            peers.onOffence(connection, e.getMessage());
        }
    }

    /** Sends a packet, or keeps a copy, without descriptors, until the peer has read what came before. */
    void send(final Connection connection, final Packet reply) {
        if (!connection.open || connection.hungUpUntilNs != 0) {
            return;   // no peer reads it
        }
        if (connection.unsent.isEmpty()) {
            final int n = connection.socket.send(reply);
            if (n >= 0) {
                return;
            }
            if (n == SeqPacketSocket.CLOSED) {
                hangUp(connection);
                return;
            }
            epoll.modify(connection.socket.fd(), Epoll.OUT | Epoll.RDHUP, connectionToken.applyAsLong(connection.id));
        }
        if (connection.unsent.size() >= UNSENT_MAX) {
            peers.onOffence(connection, UNSENT_MAX + " replies are unread; read them");
            return;
        }
        final byte[] copy = new byte[reply.length()];
        reply.data().getBytes(0, copy);
        connection.unsent.add(copy);
        unread.add(connection, copy);
        for (Connection excess = unread.excess(connection, connections.values()); excess != null && excess.open;
            excess = unread.excess(connection, connections.values())) {
            peers.onUnread(excess, "replies of " + excess.unsentBytes + " bytes are unread, user "
                + Integer.toUnsignedString(excess.peer.uid()) + " has " + unread.of(excess.peer.uid())
                + "; read them");
        }
    }

    /** Unread bytes of a user. */
    long unreadOf(final int uid) {
        return unread.of(uid);
    }

    private void flush(final Connection connection) {
        while (!connection.unsent.isEmpty()) {
            final byte[] bytes = connection.unsent.peek();
            resent.data().putBytes(0, bytes);
            resent.length(bytes.length);
            resent.clearDescriptors();
            final int n = connection.socket.send(resent);
            if (n == SeqPacketSocket.NOTHING) {
                return;
            }
            if (n == SeqPacketSocket.CLOSED) {
                hangUp(connection);
                return;
            }
            connection.unsent.remove();
            unread.remove(connection, bytes);
        }
        epoll.modify(connection.socket.fd(), Epoll.IN | Epoll.RDHUP, connectionToken.applyAsLong(connection.id));
    }

    /** The peer closed its end: a death will show soon, or it was meant so. */
    private void hangUp(final Connection connection) {
        if (connection.hungUpUntilNs != 0) {
            return;
        }
        if (connection.client == null || connection.client.removing) {
            close(connection);
            return;
        }
        connection.hungUpUntilNs = System.nanoTime() + HANG_UP_GRACE_NS;
        epoll.remove(connection.socket.fd());
        hungUp.add(connection);
    }

    /** Whether {@link #judgeHangUps} is to be called soon. */
    boolean hasHungUp() {
        return !hungUp.isEmpty();
    }

    /** Tells of the peers that hung up a while ago and have not died since. */
    void judgeHangUps(final long nowNs) {
        if (hungUp.isEmpty()) {
            return;
        }
        for (final Connection connection : List.copyOf(hungUp)) {
            if (connection.client.removing) {
                hungUp.remove(connection);
            } else if (nowNs - connection.hungUpUntilNs >= 0) {
                hungUp.remove(connection);
                peers.onHangUp(connection);
            }
        }
    }

    /** Ends a connection. */
    void close(final Connection connection) {
        if (!connection.open) {
            return;
        }
        connection.open = false;
        connections.remove(connection.id);
        if (connection.owner != null) {
            connectionsByOwner.computeIfPresent(connection.owner, (owner, n) -> n == 1 ? null : Integer.valueOf(n - 1));
        }
        unread.forget(connection);
        connection.unsent.clear();
        peers.onClosed(connection);
        if (connection.hungUpUntilNs == 0) {
            epoll.remove(connection.socket.fd());
        }
        connection.socket.close();
        if (connection.client == null) {
            connection.process.close();
        }
        if (!listening) {
            epoll.add(listener.fd(), Epoll.IN, listenerToken);
            listening = true;
        }
    }

    /** The connections, in no order. */
    List<Connection> connections() {
        return List.copyOf(connections.values());
    }

    /**
     * Looks for connections without an event of the listener: on kernels before 6.5 a peer is believed if its process
     * was there before, and this says how long ago that is.
     */
    void look() {
        if (listening && !stopped) {
            accept();
        }
    }

    /** Accepts no other connection; those there are go on. */
    void stopListening() {
        if (listening) {
            epoll.remove(listener.fd());
        }
        listening = true;   // not to be listened to again when a connection is closed
        stopped = true;
        listener.close();
    }

    /** Closes all connections and deletes the socket. After {@link #stopListening}. */
    void close() {
        for (final Connection connection : connections()) {
            close(connection);
        }
        RuntimeDirectory.deleteTree(path);
    }
}

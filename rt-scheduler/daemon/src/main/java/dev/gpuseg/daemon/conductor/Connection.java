/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.PeerProcess;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import java.util.ArrayDeque;

/** One connection of the registration socket; conductor's thread. */
final class Connection {
    final long id;
    final SeqPacketSocket socket;
    final PeerCredentials peer;
    /** Closed with the connection, or with the registered client. */
    final PeerProcess process;
    /** Whose bound of connections it counts for, null for nobody's. */
    final Object owner;
    final ArrayDeque<byte[]> unsent = new ArrayDeque<>();
    /** Memory of {@link #unsent}; {@link UnreadReplies} counts it. */
    long unsentBytes;
    RegisteredClient client;
    int pending;
    /** When a hang-up counts as orderly unless the process turns out to be dead; 0 = not hung up. */
    long hungUpUntilNs;
    boolean open = true;

    Connection(final long id, final SeqPacketSocket socket, final PeerProcess process,
        final Object owner) {
        this.id = id;
        this.socket = socket;
        this.process = process;
        this.owner = owner;
        peer = process.credentials();
    }
}

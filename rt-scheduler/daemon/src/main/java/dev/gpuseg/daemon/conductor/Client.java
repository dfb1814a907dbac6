/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.platform.EventFd;

/**
 * One registered process. From {@link DispatcherProxy#addClient} until {@link ConductorProxy#clientRemoved} the
 * dispatcher thread alone polls the queue and writes the session's slots; afterwards the conductor closes and deletes
 * all of it.
 *
 * @param clientId   from 1, not reused while any trace of the former owner is left
 * @param pid        its process, from the kernel
 * @param uid        its user, from the kernel
 * @param gid        its group, from the kernel
 * @param startTicks its start, so that a reused pid is told apart
 * @param name       what it calls itself, printable
 * @param session    memory shared with it
 * @param queue      what it appends to
 * @param doorbell   rung by the client while the dispatcher sleeps; the dispatcher adds {@code doorbell.fd()} to its
 *                   epoll set and removes it before {@code clientRemoved}
 * @param recordsPerSecond limit of the user, over all of his processes; {@link Long#MAX_VALUE} = none
 */
public record Client(int clientId, int pid, int uid, int gid, long startTicks, String name, Session session,
    ClientQueue queue, EventFd doorbell, long recordsPerSecond) {

    /** One whose user has no limit on records. */
    public Client(final int clientId, final int pid, final int uid, final int gid, final long startTicks,
        final String name, final Session session, final ClientQueue queue, final EventFd doorbell) {
        this(clientId, pid, uid, gid, startTicks, name, session, queue, doorbell, Long.MAX_VALUE);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.util.List;
import java.util.function.IntFunction;

/**
 * The process that connected a socket. Its pid alone proves nothing: the process may have ended, its connection may
 * live on in a child, and another process may have the pid. So facts that give rights are asked for through this class.
 * Linux 6.5 gives a handle of exactly that process. Before that the handle is opened by pid, and believed if its
 * process is older than the connection.
 */
public final class PeerProcess implements AutoCloseable {
    /** Of the unit in which /proc counts, the same on every architecture that is supported. */
    private static final long NS_PER_TICK = 10_000_000L;

    private final PeerCredentials credentials;
    private final List<Integer> groups;
    private final PidFd handle;
    private final boolean bound;

    /**
     * A process.
     *
     * @param credentials as the kernel knows them
     * @param groups      supplementary ones when it connected
     * @param handle      closed with this object; null if there is none
     * @param bound       whether the handle is that of the process that connected, for certain
     */
    public PeerProcess(final PeerCredentials credentials, final List<Integer> groups, final PidFd handle,
        final boolean bound) {
        this.credentials = credentials;
        this.groups = groups;
        this.handle = handle;
        this.bound = bound;
    }

    /**
     * Takes hold of the process at the other end of a connection.
     *
     * @param socket  an accepted connection
     * @param sinceNs when it was not yet there, {@link ClockReading#bootNs()}
     * @return the process; without a handle if it has ended or is not visible here
     * @throws SystemCallException if this process has no descriptors left
     */
    public static PeerProcess of(final SeqPacketSocket socket, final long sinceNs) {
        final PeerCredentials credentials = socket.peerCredentials();
        final List<Integer> groups = socket.peerGroups();
        if (credentials.pid() <= 0) {
            return new PeerProcess(credentials, groups, null, false);
        }
        try {
            final PidFd exact = PidFd.ofPeer(socket);
            if (exact != null) {
                return new PeerProcess(credentials, groups, exact, true);
            }
            final PidFd found = PidFd.open(credentials.pid());
            return new PeerProcess(credentials, groups, found,
                isOlder(ProcessStatus.startTicks(credentials.pid()), sinceNs));
        } catch (final SystemCallException e) {
            if (e.errno() == Errno.ESRCH) {
                return new PeerProcess(credentials, groups, null, false);
            }
            throw e;
        }
    }

    /**
     * Whether a process existed at a time. One that did, and has the pid of a peer that connected later, is the peer.
     *
     * @param startTicks its start, 0 if it has ended
     * @param thenNs     time since boot
     */
    static boolean isOlder(final long startTicks, final long thenNs) {
        return startTicks > 0 && (startTicks + 1) * NS_PER_TICK <= thenNs;
    }

    /**
     * Reads something about the process.
     *
     * @param <T>     what
     * @param fact    reads it by pid
     * @param unknown what it is if nothing is known of the process
     * @return the fact, if the pid belonged to the process until it was read
     */
    public <T> T about(final IntFunction<T> fact, final T unknown) {
        if (handle == null || !bound) {
            return unknown;
        }
        final T read = fact.apply(credentials.pid());
        return handle.isDead() ? unknown : read;
    }

    /** Who it was when it connected; pid, uid, gid. */
    public PeerCredentials credentials() {
        return credentials;
    }

    /** Its supplementary groups when it connected; their numbers. */
    public List<Integer> groups() {
        return groups;
    }

    /** Its handle, null if there is none; stays owned by this object. */
    public PidFd handle() {
        return handle;
    }

    @Override
    public void close() {
        if (handle != null) {
            handle.close();
        }
    }
}

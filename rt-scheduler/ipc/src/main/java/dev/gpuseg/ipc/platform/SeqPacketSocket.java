/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.agrona.BufferUtil;

/**
 * A Unix socket that keeps message boundaries (AF_UNIX, SOCK_SEQPACKET). Sockets made by {@link #listen} and
 * {@link #accept} never block; those made by {@link #connect} block up to their timeout. One thread at a time.
 */
public final class SeqPacketSocket implements AutoCloseable {
    /** {@link #receive}: no message (non-blocking), or the timeout passed. */
    public static final int NOTHING = -1;
    /** {@link #receive} and {@link #send}: the peer has closed the connection. */
    public static final int CLOSED = -2;

    private static final int AF_UNIX = 1;
    private static final int SOCK_SEQPACKET = 5;
    private static final int SOCK_CLOEXEC = 0x80000;
    private static final int SOCK_NONBLOCK = 0x800;
    private static final int SOL_SOCKET = 1;
    private static final int SO_PEERCRED = 17;
    private static final int SO_PEERGROUPS = 59;
    private static final int SO_PEERPIDFD = 77;
    private static final int SO_MEMINFO = 55;
    private static final int MEMINFO_BYTES = 36;
    private static final int WMEM_ALLOC_OFFSET = 8;
    private static final int SO_RCVTIMEO = 20;
    private static final int SO_SNDTIMEO = 21;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int MSG_CMSG_CLOEXEC = 0x40000000;
    private static final int PATH_BYTES = 108;
    /** Bytes for the numbers of 32 groups. */
    private static final int GROUPS_AT_FIRST = 128;
    /** For an option of a socket and its length; kept, since others decide how often it is asked for. */
    private static final ThreadLocal<ByteBuffer> OPTION = ThreadLocal.withInitial(() ->
        ByteBuffer.allocateDirect(GROUPS_AT_FIRST + Integer.BYTES).order(ByteOrder.nativeOrder()));

    private final int fd;

    private SeqPacketSocket(final int fd) {
        this.fd = fd;
    }

    private static int open(final int flags) {
        final int fd = LibC.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
        if (fd < 0) {
            throw new SystemCallException("socket", "AF_UNIX, SOCK_SEQPACKET", Native.getLastError());
        }
        return fd;
    }

    private static ByteBuffer address(final Path path) {
        final byte[] text = path.toString().getBytes(StandardCharsets.UTF_8);
        if (text.length >= PATH_BYTES) {
            throw new IllegalArgumentException("socket path " + path + " has " + text.length
                + " bytes, the system allows " + (PATH_BYTES - 1) + "; choose a shorter GPUSEG_DIR");
        }
        final ByteBuffer address = ByteBuffer.allocateDirect(2 + PATH_BYTES).order(ByteOrder.nativeOrder());
        address.putShort(0, (short) AF_UNIX);
        for (int i = 0; i < text.length; i++) {
            address.put(2 + i, text[i]);
        }
        return address;
    }

    /**
     * Binds a path and listens. The path must not exist.
     *
     * @param path    where
     * @param backlog connections that may wait for {@link #accept}
     * @return the listening socket
     */
    public static SeqPacketSocket listen(final Path path, final int backlog) {
        final ByteBuffer address = address(path);
        final int fd = open(SOCK_NONBLOCK);
        if (LibC.bind(fd, BufferUtil.address(address), address.capacity()) < 0) {
            final int errno = Native.getLastError();
            LibC.close(fd);
            throw new SystemCallException("bind", path.toString(), errno);
        }
        if (LibC.listen(fd, backlog) < 0) {
            final int errno = Native.getLastError();
            LibC.close(fd);
            throw new SystemCallException("listen", path.toString(), errno);
        }
        return new SeqPacketSocket(fd);
    }

    /**
     * Connects to a listening socket.
     *
     * @param path      where
     * @param timeoutMs limit of every later send and receive, milliseconds; 0 = none
     * @return the connected socket
     * @throws SystemCallException with ENOENT or ECONNREFUSED if there is no listener
     */
    public static SeqPacketSocket connect(final Path path, final int timeoutMs) {
        final ByteBuffer address = address(path);
        final int fd = open(0);
        final ByteBuffer time = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
        time.putLong(0, timeoutMs / 1000).putLong(8, timeoutMs % 1000 * 1000L);
        if (LibC.setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, BufferUtil.address(time), 16) < 0
            || LibC.setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, BufferUtil.address(time), 16) < 0
            || LibC.connect(fd, BufferUtil.address(address), address.capacity()) < 0) {
            final int errno = Native.getLastError();
            LibC.close(fd);
            throw new SystemCallException("connect", path.toString(), errno);
        }
        return new SeqPacketSocket(fd);
    }

    /**
     * Accepts a waiting connection.
     *
     * @return the connection, or null if none waits or it has been closed already
     * @throws SystemCallException with EMFILE when this process has no descriptors left
     */
    public SeqPacketSocket accept() {
        final int connection = LibC.accept4(fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (connection >= 0) {
            return new SeqPacketSocket(connection);
        }
        final int errno = Native.getLastError();
        if (errno == Errno.EAGAIN || errno == Errno.EINTR || errno == Errno.ECONNABORTED) {
            return null;
        }
        throw new SystemCallException("accept4", Integer.toString(fd), errno);
    }

    /** The pid, uid and gid that the kernel recorded at the time of connect. */
    public PeerCredentials peerCredentials() {
        final ByteBuffer value = OPTION.get();
        value.putInt(12, 12);
        final long address = BufferUtil.address(value);
        if (LibC.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, address, address + 12) < 0) {
            throw new SystemCallException("getsockopt", fd + ", SO_PEERCRED", Native.getLastError());
        }
        return new PeerCredentials(value.getInt(0), value.getInt(4), value.getInt(8));
    }

    /** The supplementary groups of the peer at the time of connect. */
    List<Integer> peerGroups() {
        ByteBuffer value = OPTION.get();
        int room = GROUPS_AT_FIRST;
        while (true) {
            value.putInt(room, room);
            final long address = BufferUtil.address(value);
            final boolean all = LibC.getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, address, address + room) == 0;
            final int errno = all ? 0 : Native.getLastError();
            final int bytes = value.getInt(room);
            if (all) {
                final ByteBuffer read = value;
                return IntStream.range(0, bytes / Integer.BYTES).mapToObj(i -> read.getInt(i * Integer.BYTES)).toList();
            }
            if (errno != Errno.ERANGE || bytes <= room) {
                throw new SystemCallException("getsockopt", fd + ", SO_PEERGROUPS", errno);
            }
            room = bytes;
            value = ByteBuffer.allocateDirect(room + Integer.BYTES).order(ByteOrder.nativeOrder());
        }
    }

    /** A pidfd of the peer, or -1 where the kernel does not offer it. */
    int peerPidFd() {
        final ByteBuffer value = OPTION.get();
        value.putInt(4, 4);
        final long address = BufferUtil.address(value);
        if (LibC.getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, address, address + 4) == 0) {
            return value.getInt(0);
        }
        final int errno = Native.getLastError();
        if (errno == Errno.ENOPROTOOPT) {
            return -1;
        }
        throw new SystemCallException("getsockopt", fd + ", SO_PEERPIDFD", errno == Errno.EINVAL ? Errno.ESRCH : errno);
    }

    /**
     * Receives one message with its descriptors.
     *
     * @param packet where to
     * @return bytes received, {@link #NOTHING} or {@link #CLOSED}
     */
    public int receive(final Packet packet) {
        final long n = LibC.recvmsg(fd, packet.prepareReceive(), MSG_CMSG_CLOEXEC);
        if (n > 0) {
            packet.received((int) n);
            return (int) n;
        }
        if (n == 0) {
            packet.received(0);
            // an empty packet looks like the end of the stream; no correct peer sends one
            packet.closeDescriptors();
            return CLOSED;
        }
        return failed("recvmsg", Native.getLastError());
    }

    /**
     * Sends one message with the descriptors of the packet.
     *
     * @param packet bytes 0 .. length and descriptors
     * @return bytes sent, {@link #NOTHING} if the peer's buffer is full, or {@link #CLOSED}
     */
    public int send(final Packet packet) {
        final long n = LibC.sendmsg(fd, packet.prepareSend(), MSG_NOSIGNAL);
        return n >= 0 ? (int) n : failed("sendmsg", Native.getLastError());
    }

    /** Whether the peer has received every message that was sent to it; false while one waits. */
    public boolean isRead() {
        final ByteBuffer value = ByteBuffer.allocateDirect(MEMINFO_BYTES + 4).order(ByteOrder.nativeOrder());
        value.putInt(MEMINFO_BYTES, MEMINFO_BYTES);
        final long address = BufferUtil.address(value);
        if (LibC.getsockopt(fd, SOL_SOCKET, SO_MEMINFO, address, address + MEMINFO_BYTES) < 0) {
            throw new SystemCallException("getsockopt", fd + ", SO_MEMINFO", Native.getLastError());
        }
        return value.getInt(WMEM_ALLOC_OFFSET) == 0;   // memory of what is sent and not received
    }

    private int failed(final String call, final int errno) {
        switch (errno) {
            case Errno.EAGAIN:
            case Errno.EINTR:
                return NOTHING;
            case Errno.EPIPE:
            case Errno.ECONNRESET:
            case Errno.ENOTCONN:
                return CLOSED;
            default:
                throw new SystemCallException(call, Integer.toString(fd), errno);
        }
    }

    /** The descriptor; stays owned by this object. */
    public int fd() {
        return fd;
    }

    @Override
    public void close() {
        Descriptor.close(fd);
    }
}

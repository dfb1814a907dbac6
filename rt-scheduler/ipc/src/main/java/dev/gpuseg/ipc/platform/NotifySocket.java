/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.agrona.BufferUtil;

/**
 * The socket through which a service reports its state to its supervisor (sd_notify(3)): one datagram per message, to
 * the AF_UNIX address in {@code $NOTIFY_SOCKET}. Does nothing without a supervisor. Thread-safe; never blocks.
 */
public final class NotifySocket implements AutoCloseable {
    private static final int AF_UNIX = 1;
    private static final int SOCK_DGRAM = 2;
    private static final int SOCK_CLOEXEC = 0x80000;
    private static final int SOCK_NONBLOCK = 0x800;
    private static final int PATH_BYTES = 108;
    private static final long NS_PER_US = 1_000;

    /** Null: no supervisor. */
    private final SharedDescriptor socket;
    private final long watchdogNs;

    private NotifySocket(final SharedDescriptor socket, final long watchdogNs) {
        this.socket = socket;
        this.watchdogNs = watchdogNs;
    }

    /**
     * Connects to this process's supervisor.
     *
     * @return never null; sends nothing if there is none
     * @throws SystemCallException if one is named that cannot be reached
     */
    public static NotifySocket ofEnvironment() {
        return of(System.getenv(), ProcessHandle.current().pid());
    }

    /**
     * Connects to the supervisor that an environment names.
     *
     * @param environment with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, or without
     * @param pid         of this process
     * @return never null; sends nothing if there is no supervisor
     * @throws SystemCallException if one is named that cannot be reached
     */
    public static NotifySocket of(final Map<String, String> environment, final long pid) {
        final String where = environment.getOrDefault("NOTIFY_SOCKET", "");
        if (where.isEmpty()) {
            return new NotifySocket(null, 0);
        }
        final byte[] text = where.getBytes(StandardCharsets.UTF_8);
        if (where.charAt(0) != '/' && where.charAt(0) != '@' || text.length >= PATH_BYTES) {
            throw new IllegalArgumentException("NOTIFY_SOCKET is \"" + where + "\"; it must be an absolute path or "
                + "begin with @, and have less than " + PATH_BYTES + " bytes");
        }
        final ByteBuffer address = ByteBuffer.allocateDirect(2 + PATH_BYTES).order(ByteOrder.nativeOrder());
        address.putShort(0, (short) AF_UNIX);
        for (int i = 0; i < text.length; i++) {
            address.put(2 + i, i == 0 && text[0] == '@' ? 0 : text[i]);   // @ stands for the abstract name space
        }
        final int fd = LibC.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            throw new SystemCallException("socket", "AF_UNIX, SOCK_DGRAM", Native.getLastError());
        }
        if (LibC.connect(fd, BufferUtil.address(address), 2 + text.length) < 0) {
            final int errno = Native.getLastError();
            LibC.close(fd);
            throw new SystemCallException("connect", where, errno);
        }
        return new NotifySocket(new SharedDescriptor(fd), watchdogNs(environment, pid));
    }

    private static long watchdogNs(final Map<String, String> environment, final long pid) {
        final String us = environment.getOrDefault("WATCHDOG_USEC", "");
        final String whom = environment.getOrDefault("WATCHDOG_PID", Long.toString(pid));
        if (!us.matches("[0-9]{1,15}") || !whom.equals(Long.toString(pid))) {
            return 0;
        }
        return Long.parseLong(us) * NS_PER_US;
    }

    /** How often the supervisor expects {@code WATCHDOG=1}; nanoseconds, 0 = not at all. */
    public long watchdogNs() {
        return watchdogNs;
    }

    /**
     * Sends a message.
     *
     * @param state assignments, one a line, for instance "READY=1"
     * @return false if it did not reach the supervisor (its buffer is full or it has ended), there is none, or this is
     *     closed
     */
    public boolean send(final String state) {
        if (socket == null || !socket.enter()) {
            return false;
        }
        try {
            final byte[] text = state.getBytes(StandardCharsets.UTF_8);
            final ByteBuffer buffer = ByteBuffer.allocateDirect(text.length).put(text);
            return LibC.write(socket.fd(), BufferUtil.address(buffer), text.length) == text.length;
        } finally {
            socket.leave();
        }
    }

    @Override
    public void close() {
        if (socket != null) {
            socket.close();
        }
    }
}

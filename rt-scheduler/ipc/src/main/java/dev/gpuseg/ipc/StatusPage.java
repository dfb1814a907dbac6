/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The public state of a daemon: {@code struct gpuseg_status}. Written by the dispatcher thread only; mapped read-only
 * by clients and by the watchdog. A new daemon makes a new file, so that clients of the old one keep their mapping.
 */
public final class StatusPage implements AutoCloseable {
    private final MappedPage page;
    private final UnsafeBuffer buffer;

    private StatusPage(final MappedPage page) {
        this.page = page;
        buffer = page.buffer();
    }

    /**
     * Makes the page (0644), complete before it appears under its name.
     *
     * @param path           where
     * @param incarnationNs  the daemon's start, CLOCK_MONOTONIC ns
     * @param policy         at most 15 bytes
     * @param mechanism      at most 15 bytes
     * @param mechanismLevel 0 observe, 1 gate, 2 deactivate, 3 interrupt
     * @return the page, heartbeat 0, not sleeping
     */
    public static StatusPage create(final Path path, final long incarnationNs, final String policy,
        final String mechanism, final int mechanismLevel) {
        return create(path, incarnationNs, policy, mechanism, mechanismLevel, false);
    }

    /**
     * Makes the page (0644), complete before it appears under its name.
     *
     * @param path           where
     * @param incarnationNs  the daemon's start, CLOCK_MONOTONIC ns
     * @param policy         at most 15 bytes
     * @param mechanism      at most 15 bytes
     * @param mechanismLevel 0 observe, 1 gate, 2 deactivate, 3 interrupt
     * @param holdsLaunches  whether the words by which launches are held are used
     * @return the page, heartbeat 0, not sleeping
     */
    public static StatusPage create(final Path path, final long incarnationNs, final String policy,
        final String mechanism, final int mechanismLevel, final boolean holdsLaunches) {
        final Path temporary = path.resolveSibling(path.getFileName() + ".new");
        RuntimeDirectory.deleteTree(temporary);
        final StatusPage status = new StatusPage(MappedPage.create(temporary, Abi.Status.SIZE));
        final UnsafeBuffer buffer = status.buffer;
        final int pid = ProcessStatus.pid();
        buffer.putInt(Abi.Status.MAGIC_OFFSET, Abi.STATUS_MAGIC);
        buffer.putInt(Abi.Status.DAEMON_PID_OFFSET, pid);
        buffer.putInt(Abi.Status.MECHANISM_LEVEL_OFFSET, mechanismLevel);
        buffer.putLong(Abi.Status.HOLDS_LAUNCHES_OFFSET, holdsLaunches ? 1 : 0);
        buffer.putLong(Abi.Status.INCARNATION_OFFSET, incarnationNs);
        buffer.putLong(Abi.Status.DAEMON_START_TICKS_OFFSET, ProcessStatus.startTicks(pid));
        status.text(Abi.Status.POLICY_OFFSET, Abi.Status.POLICY_BYTES, policy);
        status.text(Abi.Status.MECHANISM_OFFSET, Abi.Status.MECHANISM_BYTES, mechanism);
        buffer.putIntOrdered(Abi.Status.VERSION_OFFSET, Abi.ABI_VERSION); // release, last: the page is complete
        FileAccess.chmod(temporary, 0644);
        try {
            Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (final IOException e) {
            throw new UncheckedIOException(path + " cannot be created: " + e.getMessage(), e);
        }
        return status;
    }

    /**
     * Opens the page of a daemon for reading.
     *
     * @param path where
     * @return the page, read-only
     */
    public static StatusPage open(final Path path) {
        final StatusPage status = new StatusPage(MappedPage.open(path, Abi.Status.SIZE, false));
        final int version = status.buffer.getIntVolatile(Abi.Status.VERSION_OFFSET);
        final int magic = status.buffer.getInt(Abi.Status.MAGIC_OFFSET);
        if (magic != Abi.STATUS_MAGIC || version >>> 16 != Abi.ABI_MAJOR) {
            status.close();
            throw new IllegalStateException(path + ": magic 0x" + Integer.toHexString(magic) + ", version 0x"
                + Integer.toHexString(version) + " is not a status page of version " + Abi.ABI_MAJOR
                + "; stop the daemon that wrote it");
        }
        return status;
    }

    private void text(final int offset, final int bytes, final String value) {
        final byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
        buffer.setMemory(offset, bytes, (byte) 0);
        buffer.putBytes(offset, utf8, 0, Math.min(utf8.length, bytes - 1));
    }

    private String text(final int offset, final int bytes) {
        int n = 0;
        while (n < bytes && buffer.getByte(offset + n) != 0) {
            n++;
        }
        return buffer.getStringWithoutLengthUtf8(offset, n);
    }

    /**
     * Shows that the dispatcher is alive; to be called at least every 20 ms.
     *
     * @param nowNs CLOCK_MONOTONIC ns
     */
    public void heartbeat(final long nowNs) {
        buffer.putLongOrdered(Abi.Status.HEARTBEAT_NS_OFFSET, nowNs); // release; pairs with the watchdog's acquire
    }

    /**
     * Sets whether a client must signal the doorbell after it appended. After {@code sleeping(true)} every queue must
     * be polled once more before waiting: a full fence follows this store, as one stands between the client's append
     * and its load of this word.
     *
     * @param sleeping true before waiting
     */
    public void sleeping(final boolean sleeping) {
        buffer.putIntVolatile(Abi.Status.SLEEPING_OFFSET, sleeping ? 1 : 0);
        VarHandle.fullFence();
    }

    /**
     * Sets whether best-effort work may have more in flight than a segment should wait for.
     *
     * @param nobody true while no open task would wait for it
     */
    public void nobodyWaits(final boolean nobody) {
        buffer.putLongOrdered(Abi.Status.NOBODY_WAITS_OFFSET, nobody ? 1 : 0);
    }

    /** Whether no open task waits for what best-effort work has in flight. */
    public boolean doesNobodyWait() {
        return buffer.getLongVolatile(Abi.Status.NOBODY_WAITS_OFFSET) != 0;
    }

    /** Shows that the daemon stops on purpose, so that the watchdog does not count it as a failure. */
    public void stopping() {
        buffer.putIntOrdered(Abi.Status.STOPPING_OFFSET, 1);
    }

    /**
     * Shows the name of another policy.
     *
     * @param policy at most 15 bytes
     */
    public void policy(final String policy) {
        text(Abi.Status.POLICY_OFFSET, Abi.Status.POLICY_BYTES, policy);
    }

    /** The policy's name. */
    public String policy() {
        return text(Abi.Status.POLICY_OFFSET, Abi.Status.POLICY_BYTES);
    }

    /** The mechanism's name. */
    public String mechanism() {
        return text(Abi.Status.MECHANISM_OFFSET, Abi.Status.MECHANISM_BYTES);
    }

    /** What the mechanism can do; 0 observe, 1 gate, 2 deactivate, 3 interrupt. */
    public int mechanismLevel() {
        return buffer.getInt(Abi.Status.MECHANISM_LEVEL_OFFSET);
    }

    /** The pid of the daemon. */
    public int daemonPid() {
        return buffer.getInt(Abi.Status.DAEMON_PID_OFFSET);
    }

    /** The daemon's start in clock ticks, to recognise a reused pid; field 22 of /proc/pid/stat. */
    public long daemonStartTicks() {
        return buffer.getLong(Abi.Status.DAEMON_START_TICKS_OFFSET);
    }

    /** Identifies this run of the daemon; its start, CLOCK_MONOTONIC ns. */
    public long incarnationNs() {
        return buffer.getLong(Abi.Status.INCARNATION_OFFSET);
    }

    /** The last heartbeat; CLOCK_MONOTONIC ns. */
    public long heartbeatNs() {
        return buffer.getLongVolatile(Abi.Status.HEARTBEAT_NS_OFFSET);
    }

    /** Whether clients must signal the doorbell. */
    public boolean isSleeping() {
        return buffer.getIntVolatile(Abi.Status.SLEEPING_OFFSET) != 0;
    }

    /** Whether the daemon stops on purpose. */
    public boolean isStopping() {
        return buffer.getIntVolatile(Abi.Status.STOPPING_OFFSET) != 0;
    }

    @Override
    public void close() {
        page.close();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;

/** The watchdog's state: {@code struct gpuseg_watchdog}, written by the watchdog only. Any thread may read. */
public final class WatchdogPage implements AutoCloseable {
    private final MappedPage page;
    private final UnsafeBuffer buffer;

    private WatchdogPage(final MappedPage page) {
        this.page = page;
        buffer = page.buffer();
    }

    /**
     * Maps the page read-only.
     *
     * @param path where
     * @return the page
     * @throws java.io.UncheckedIOException if there is none
     * @throws IllegalStateException        if it is not complete yet or of another version
     */
    public static WatchdogPage map(final Path path) {
        final WatchdogPage watchdog = new WatchdogPage(MappedPage.open(path, Abi.Watchdog.SIZE, false));
        final int version = watchdog.buffer.getIntVolatile(Abi.Watchdog.VERSION_OFFSET);
        final int magic = watchdog.buffer.getInt(Abi.Watchdog.MAGIC_OFFSET);
        if (magic != Abi.WATCHDOG_MAGIC || version >>> 16 != Abi.ABI_MAJOR) {
            watchdog.close();
            throw new IllegalStateException(path + ": magic 0x" + Integer.toHexString(magic) + ", version 0x"
                + Integer.toHexString(version) + " is not a watchdog page of version " + Abi.ABI_MAJOR
                + "; restart the watchdog");
        }
        return watchdog;
    }

    /**
     * How often the watchdog has enabled held contexts, or tried to: what failed may have happened. If it changes, the
     * enforcer must apply its state again.
     *
     * @return count, acquire
     */
    public long releases() {
        return buffer.getLongVolatile(Abi.Watchdog.RELEASES_OFFSET);
    }

    /** When it last did so; CLOCK_MONOTONIC ns, 0 = never. */
    public long lastReleaseNs() {
        return buffer.getLongVolatile(Abi.Watchdog.LAST_RELEASE_NS_OFFSET);
    }

    /**
     * When it first did so during the daemon's last silence. From then on contexts may have run that the daemon
     * considered disabled.
     *
     * @return CLOCK_MONOTONIC ns, 0 = never, or a watchdog of ABI 1.3 or before
     */
    public long firstReleaseNs() {
        return buffer.getLongVolatile(Abi.Watchdog.FIRST_RELEASE_NS_OFFSET);
    }

    /** Its last heartbeat; CLOCK_MONOTONIC ns. */
    public long heartbeatNs() {
        return buffer.getLongVolatile(Abi.Watchdog.HEARTBEAT_NS_OFFSET);
    }

    /** The pid of its process. */
    public int pid() {
        return buffer.getInt(Abi.Watchdog.PID_OFFSET);
    }

    /** How long a silent daemon is tolerated; milliseconds. */
    public int periodMs() {
        return buffer.getInt(Abi.Watchdog.PERIOD_MS_OFFSET);
    }

    @Override
    public void close() {
        page.close();
    }
}

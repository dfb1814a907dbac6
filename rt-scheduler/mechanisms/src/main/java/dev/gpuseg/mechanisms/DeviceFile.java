/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcPath;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/**
 * A device of a driver, told from what only has its name: a process with a mount namespace of its own can name any file
 * {@code /dev/nvidiactl}. A descriptor counts only if it is a character device with the driver's number; others get no
 * ioctl. The C counterpart is rt-scheduler/native/common/device_file.h. Any thread.
 */
public final class DeviceFile {
    /** Result of {@link #duplicate}: the descriptor is something else. */
    public static final int FOREIGN = -25;
    private static final Path DEVICES = Path.of("/proc/devices");
    private static final AtomicLong FOREIGN_SEEN = new AtomicLong();

    private final DriverLibrary driver;
    private final Set<String> names;
    private final int minor;
    /** The driver's number when it was asked for last: processes are examined often, and /proc/devices is text. */
    private volatile long known = FileIdentity.NONE;

    private DeviceFile(final DriverLibrary driver, final Set<String> names, final int minor) {
        this.driver = driver;
        this.names = names;
        this.minor = minor;
    }

    /**
     * A device by the name of its driver.
     *
     * @param driver its stand-in, if there is one, says which files are its own
     * @param minor  its number
     * @param names  of the driver in /proc/devices; versions differ
     * @return the device
     */
    public static DeviceFile ofDriver(final DriverLibrary driver, final int minor, final String... names) {
        return new DeviceFile(driver, Set.of(names), minor);
    }

    /**
     * A device whose number is that of the file of the same name in this process's own file system.
     *
     * @param driver its stand-in, if there is one, says which files are its own
     * @return the device
     */
    public static DeviceFile likeOwn(final DriverLibrary driver) {
        return new DeviceFile(driver, Set.of(), 0);
    }

    /**
     * How often a descriptor had the name of a device and was none. Any thread.
     *
     * @return looks, from 0
     */
    public static long foreignSeen() {
        return FOREIGN_SEEN.get();
    }

    /**
     * Whether a descriptor of another process is this device. Opens nothing and waits for no other process.
     *
     * @param pid  the process
     * @param fd   number of the descriptor in it
     * @param path the name that it shows
     * @return false also if it is not open any more
     */
    public boolean leadsTo(final int pid, final int fd, final String path) {
        final int found = check(ProcPath.ofDescriptor(pid, fd), path);
        if (found == FOREIGN) {
            FOREIGN_SEEN.incrementAndGet();
        }
        return found == 0;
    }

    /** 0, {@link #FOREIGN} or -errno; the link is a path at an address. */
    private int check(final long link, final String path) {
        if (driver.owns(link)) {
            return 0;
        }
        final FileIdentity file = FileIdentity.of(link);
        if (file.status() != 0) {
            return file.status();
        }
        if (driver.isReplaced()) {
            return FOREIGN;   // the driver's own devices, too: what a stand-in is asked must not reach a real GPU
        }
        if (file.isDevice(known)) {
            return 0;
        }
        final long now = number(path);   // the driver may have been loaded since
        known = names.isEmpty() ? FileIdentity.NONE : now;
        return file.isDevice(now) ? 0 : FOREIGN;
    }

    /** {@link FileIdentity#NONE} where there is no such device. */
    private long number(final String path) {
        if (names.isEmpty()) {
            final FileIdentity own = FileIdentity.of(path);
            return own.isCharacterDevice() ? own.number() : FileIdentity.NONE;
        }
        try (Stream<String> lines = Files.lines(DEVICES)) {
            return lines.takeWhile(line -> !line.startsWith("Block")).map(line -> line.strip().split("\\s+"))
                .filter(words -> words.length == 2 && names.contains(words[1]))
                .mapToLong(words -> FileIdentity.number(Integer.parseInt(words[0]), minor)).findFirst()
                .orElse(FileIdentity.NONE);
        } catch (final IOException e) {
            return FileIdentity.NONE;   // without /proc nothing can be told apart, so nothing is used
        }
    }

    /**
     * Duplicates a descriptor of another process if it is this device.
     *
     * @param pid    the process
     * @param pidfd  handle of it
     * @param remote number of the descriptor in it
     * @param path   the name that it shows
     * @return a descriptor, {@link #FOREIGN}, or -errno; -EBADF if it is not open any more
     */
    public int duplicate(final int pid, final int pidfd, final int remote, final String path) {
        final int looked = check(ProcPath.ofDescriptor(pid, remote), path);
        if (looked != 0) {
            return looked == -Errno.ENOENT ? -Errno.EBADF : looked;
        }
        final int fd = SystemCalls.pidfdGetfd(pidfd, remote);
        if (fd >= 0 && check(ProcPath.ofDescriptor(ProcessStatus.pid(), fd), path) != 0) {
            FOREIGN_SEEN.incrementAndGet();
            discard(fd);
            return FOREIGN;
        }
        return fd;
    }

    /**
     * Closes a descriptor of a file that was exchanged between look and duplication. To close it may ask a server that
     * never answers, so a thread of its own does it.
     */
    private static void discard(final int fd) {
        final Thread thread = new Thread(() -> SystemCalls.closeOnce(fd), "gpuseg-discard");
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Whether a descriptor of another process is a memory file (memfd). A file of another kind may have the same name,
     * and block who opens, reads or closes it.
     *
     * @param pid the process
     * @param fd  number of the descriptor in it
     * @return false also if it is not open any more
     */
    public static boolean isMemory(final int pid, final int fd) {
        return counted(FileIdentity.of(ProcPath.ofDescriptor(pid, fd)));
    }

    private static boolean counted(final FileIdentity file) {
        if (file.status() == 0 && !file.isMemory()) {
            FOREIGN_SEEN.incrementAndGet();
        }
        return file.isMemory();
    }

    /**
     * Duplicates a memory file of another process.
     *
     * @param pid    the process
     * @param pidfd  handle of it
     * @param remote number of the descriptor in it
     * @return a descriptor, {@link #FOREIGN}, or -errno
     */
    public static int duplicateMemory(final int pid, final int pidfd, final int remote) {
        final FileIdentity looked = FileIdentity.of(ProcPath.ofDescriptor(pid, remote));
        if (!counted(looked)) {
            return looked.status() == -Errno.ENOENT ? -Errno.EBADF : looked.status() != 0 ? looked.status() : FOREIGN;
        }
        final int fd = SystemCalls.pidfdGetfd(pidfd, remote);
        if (fd >= 0 && !counted(FileIdentity.of(ProcPath.ofDescriptor(ProcessStatus.pid(), fd)))) {
            discard(fd);
            return FOREIGN;
        }
        return fd;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.Descriptor;
import java.nio.file.Path;

/**
 * A file that its client may ask for: a descriptor that one thread duplicates to send it while another one closes it.
 *
 * <p>It is opened for reading and writing before the file is given to the client's user; afterwards a daemon without
 * {@code CAP_DAC_OVERRIDE} could not. Nothing is read, written or positioned by it here: the client shares the open
 * file with the daemon, and may change its position and flags.
 */
final class LentFile implements AutoCloseable {
    private static final int CLOSED = -1;

    private int fd;

    private LentFile(final int fd) {
        this.fd = fd;
    }

    /** Opens an existing file that the daemon owns; a symbolic link is refused. */
    static LentFile open(final Path path) {
        return new LentFile(Descriptor.openToWrite(path));
    }

    /**
     * A second descriptor, which the caller closes. Any thread.
     *
     * @return its number, -1 if the file is closed
     */
    synchronized int duplicate() {
        return fd == CLOSED ? CLOSED : Descriptor.duplicate(fd);
    }

    @Override
    public synchronized void close() {
        if (fd != CLOSED) {
            Descriptor.close(fd);
            fd = CLOSED;
        }
    }
}

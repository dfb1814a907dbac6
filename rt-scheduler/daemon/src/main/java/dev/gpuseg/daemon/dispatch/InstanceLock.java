/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** One daemon per runtime directory: a lock on a file, released by the kernel whatever happens to the process. */
final class InstanceLock implements AutoCloseable {
    private static final String NAME = "lock";

    private final FileChannel channel;

    private InstanceLock(final FileChannel channel) {
        this.channel = channel;
    }

    /**
     * Takes the lock.
     *
     * @param directory the runtime directory
     * @return the lock
     * @throws StartUpException if another daemon has it
     */
    static InstanceLock take(final Path directory) {
        final Path path = directory.resolve(NAME);
        try {
            final FileChannel channel = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ,
                StandardOpenOption.WRITE);
            FileLock lock;
            try {
                lock = channel.tryLock();
            } catch (final OverlappingFileLockException e) {
                lock = null;   // this very process holds it
            }
            if (lock == null) {
                channel.close();
                throw new StartUpException("another daemon (pid " + Files.readString(path).trim() + ") owns "
                    + directory + "; stop it with `gpuseg stop --dir " + directory + "` or choose another --dir");
            }
            channel.truncate(0);
            channel.write(ByteBuffer.wrap((ProcessHandle.current().pid() + "\n").getBytes(StandardCharsets.UTF_8)));
            return new InstanceLock(channel);
        } catch (final IOException e) {
            throw new StartUpException("lock " + path + ": " + e.getMessage() + "; choose another --dir", e);
        }
    }

    /**
     * The daemon that owns a directory.
     *
     * @param directory the runtime directory
     * @return its pid, or 0 if there is none
     */
    static long owner(final Path directory) {
        final Path path = directory.resolve(NAME);
        if (!Files.exists(path)) {
            return 0;
        }
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            final FileLock lock = channel.tryLock();
            if (lock != null) {
                lock.release();
                return 0;
            }
            return Long.parseLong(Files.readString(path).trim());
        } catch (final OverlappingFileLockException e) {
            return ProcessHandle.current().pid();
        } catch (final IOException | NumberFormatException e) {
            return 0;   // unreadable for this user: it will be told so when it connects
        }
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (final IOException e) {
            throw new java.io.UncheckedIOException("lock: " + e.getMessage(), e);
        }
    }
}

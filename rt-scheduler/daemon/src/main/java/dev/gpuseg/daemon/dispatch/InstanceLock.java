/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * One daemon per runtime directory, and one of those that control a driver's contexts per machine: a lock on a file,
 * released by the kernel whatever happens to the process.
 */
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
            final InstanceLock lock = take(path, ProcessHandle.current().pid() + "\n");
            if (lock == null) {
                throw new StartUpException("another daemon (pid " + Files.readString(path).trim() + ") owns "
                    + directory + "; stop it with `gpuseg stop --dir " + directory + "` or choose another --dir");
            }
            return lock;
        } catch (final IOException e) {
            throw new StartUpException("lock " + path + ": " + e.getMessage() + "; choose another --dir", e);
        }
    }

    /**
     * Takes the lock of all daemons that control contexts by one mechanism, whatever their runtime directories: a
     * context that two of them disable and enable may stay disabled.
     *
     * @param mechanism its name
     * @param common    a directory in which each daemon of this user looks, which exists
     * @param directory the runtime directory
     * @return the lock
     * @throws StartUpException if another daemon has it
     * @throws IOException      if there can be no lock there
     */
    static InstanceLock takeForMachine(final String mechanism, final Path common, final Path directory)
        throws IOException {
        final Path path = common.resolve(mechanism + "." + NAME);
        final InstanceLock lock = take(path, ProcessHandle.current().pid() + " " + directory + "\n");
        if (lock == null) {
            final String[] owner = (ownerSays(path) + " ").split(" ", 2);
            throw new StartUpException("another daemon (pid " + owner[0] + ", directory " + owner[1].trim()
                + ") controls the GPUs of this machine with mechanism " + mechanism + "; stop it with `gpuseg stop "
                + "--dir " + owner[1].trim() + "`, or use --mechanism gate");
        }
        return lock;
    }

    private static String ownerSays(final Path path) {
        try {
            return Files.readString(path).trim();
        } catch (final IOException e) {
            return "unknown unknown";   // it has the lock all the same
        }
    }

    /** Null if another daemon has it. */
    private static InstanceLock take(final Path path, final String content) throws IOException {
        final FileChannel channel = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ,
            StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
        FileLock lock;
        try {
            lock = channel.tryLock();
        } catch (final OverlappingFileLockException e) {
            lock = null;   // this very process holds it
        } catch (final IOException e) {
            channel.close();
            throw e;
        }
        if (lock == null) {
            channel.close();
            return null;
        }
        try {
            channel.truncate(0);
            channel.write(ByteBuffer.wrap(content.getBytes(StandardCharsets.UTF_8)));
        } catch (final IOException e) {
            channel.close();
            throw e;
        }
        return new InstanceLock(channel);
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

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * New directories for one run of a command. Each contains a file that its process keeps locked. The kernel ends the
 * lock with the process, in whatever way that ends, so {@link #removeLeftovers} knows whose owner is dead, also where a
 * process id was used again or belongs to another pid namespace. Thread-safe.
 */
public final class MemoryDirectory {
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");
    /** A daemon, its queues and some clients. */
    private static final long ROOM_BYTES = 48L << 20;
    private static final String OWNER = "owner.lock";
    private static final String PREFIX = "gpuseg-";
    /** Closing any channel of a locked file ends the lock of this process, so they are remembered and left alone. */
    private static final Map<Path, FileChannel> OURS = new ConcurrentHashMap<>();

    private MemoryDirectory() {
    }

    /**
     * Makes a directory for this process alone, in {@code /dev/shm} if that can be written and has room, else in the
     * temporary directory.
     *
     * @param prefix of its name
     * @return the directory; the caller deletes it
     * @throws IOException if it cannot be made
     */
    public static Path create(final String prefix) throws IOException {
        final boolean room = Files.isWritable(SHARED_MEMORY)
            && Files.getFileStore(SHARED_MEMORY).getUsableSpace() >= ROOM_BYTES;
        return own(room ? Files.createTempDirectory(SHARED_MEMORY, prefix) : Files.createTempDirectory(prefix));
    }

    /**
     * The same in the temporary directory, for what is too large for memory.
     *
     * @param prefix of its name
     * @return the directory; the caller deletes it
     * @throws IOException if it cannot be made
     */
    public static Path createOnDisk(final String prefix) throws IOException {
        return own(Files.createTempDirectory(prefix));
    }

    /** The lock is taken under another name first: what has the name of a lock was locked by its owner. */
    private static Path own(final Path directory) throws IOException {
        final Path unfinished = directory.resolve(OWNER + ".new");
        final FileChannel channel = FileChannel.open(unfinished, StandardOpenOption.WRITE,
            StandardOpenOption.CREATE_NEW);
        channel.lock();
        Files.move(unfinished, directory.resolve(OWNER), StandardCopyOption.ATOMIC_MOVE);
        OURS.put(directory, channel);
        return directory;
    }

    /**
     * Deletes a directory that {@link #create} or {@link #createOnDisk} made, with all that is in it.
     *
     * @param directory what they returned
     */
    public static void delete(final Path directory) {
        RuntimeDirectory.deleteTree(directory);
        final FileChannel owned = OURS.remove(directory);
        if (owned != null) {
            try {
                owned.close();
            } catch (final IOException e) {
                throw new UncheckedIOException(directory + ": its lock cannot be closed: " + e.getMessage(), e);
            }
        }
    }

    /**
     * Deletes what commands that were killed have left behind: directories of this user whose owner is dead, and in
     * which no daemon runs.
     *
     * @return what was deleted
     * @throws IOException if a directory of temporary files cannot be read
     */
    public static List<Path> removeLeftovers() throws IOException {
        final List<Path> removed = new ArrayList<>();
        for (final Path parent : List.of(SHARED_MEMORY, Path.of(System.getProperty("java.io.tmpdir")))) {
            if (!Files.isDirectory(parent)) {
                continue;
            }
            try (DirectoryStream<Path> found = Files.newDirectoryStream(parent, PREFIX + "*")) {
                for (final Path directory : found) {
                    if (isLeftover(directory)) {
                        RuntimeDirectory.deleteTree(directory);
                        removed.add(directory);
                    }
                }
            }
        }
        return removed;
    }

    private static boolean isLeftover(final Path directory) throws IOException {
        final Path owner = directory.resolve(OWNER);
        try {
            return !OURS.containsKey(directory) && Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
                && (Integer) Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS)
                == ProcessStatus.effectiveUid() && Files.isRegularFile(owner, LinkOption.NOFOLLOW_LINKS)
                && isFree(owner) && isFree(RuntimeDirectory.resolve(directory.toString()).lock());
        } catch (final NoSuchFileException e) {
            return false;   // its owner has deleted it meanwhile
        }
    }

    /** Whether nobody has locked that file, or there is none. */
    private static boolean isFree(final Path file) throws IOException {
        if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            return true;
        }
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
            FileLock lock = channel.tryLock()) {
            return lock != null;
        } catch (final OverlappingFileLockException e) {
            return false;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.mechanisms.MechanismCatalog;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * One daemon per runtime directory, and one of those that control a driver's contexts per machine: a lock on a file,
 * released by the kernel whatever happens to the process. The file is its user's alone from its first moment, so nobody
 * else has it open: a stranger's lock for reading would keep the next daemon from starting. A former file that others
 * could open counts as long as a daemon has locked it, which is not for reading, and is then deleted.
 */
public final class InstanceLock implements AutoCloseable {
    /** Of the file of releases that let every user read it. */
    private static final String FORMER = "lock";
    private static final Set<OpenOption> OPTIONS = Set.of(StandardOpenOption.CREATE, StandardOpenOption.READ,
        StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);

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
        final Path path = RuntimeDirectory.resolve(directory.toString()).lock();
        final Path former = directory.resolve(FORMER);
        try {
            final InstanceLock lock = take(path, former, ProcessHandle.current().pid() + "\n");
            if (lock == null) {
                throw new StartUpException("another daemon (pid " + ownerSays(path, former).split(" ")[0] + ") owns "
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
        final InstanceLock lock = takeIfFree(mechanism, common, directory);
        if (lock == null) {
            throw new StartUpException("another " + ownerOf(mechanism, common) + ", or use --mechanism gate");
        }
        return lock;
    }

    /**
     * Refuses while a daemon controls contexts by a mechanism: for a command that measures, and starts daemons of its
     * own. A daemon that is started meanwhile is not kept from it.
     *
     * @param mechanism its name
     * @throws IllegalStateException if one does, with its directory
     * @throws IOException           if it cannot be told
     */
    public static void requireNoDaemon(final String mechanism) throws IOException {
        if (MechanismCatalog.get(mechanism).exclusive()) {
            for (final Path common : RuntimeDirectory.common()) {
                requireNoDaemon(mechanism, common);
            }
        }
    }

    static void requireNoDaemon(final String mechanism, final Path common) throws IOException {
        final InstanceLock lock = takeIfFree(mechanism, common, common);
        if (lock == null) {
            throw new IllegalStateException("a " + ownerOf(mechanism, common));
        }
        lock.close();
    }

    private static InstanceLock takeIfFree(final String mechanism, final Path common, final Path directory)
        throws IOException {
        return take(lockFile(mechanism, common), formerFile(mechanism, common),
            ProcessHandle.current().pid() + " " + directory + "\n");
    }

    private static Path lockFile(final String mechanism, final Path common) {
        return common.resolve(mechanism + ".daemon.lock");
    }

    private static Path formerFile(final String mechanism, final Path common) {
        return common.resolve(mechanism + "." + FORMER);
    }

    private static String ownerOf(final String mechanism, final Path common) {
        final String[] owner = (ownerSays(lockFile(mechanism, common), formerFile(mechanism, common)) + " ")
            .split(" ", 2);
        return "daemon (pid " + owner[0] + ", directory " + owner[1].trim() + ") controls the GPUs of this machine "
            + "with mechanism " + mechanism + "; stop it with `gpuseg stop --dir " + owner[1].trim() + "`";
    }

    private static String ownerSays(final Path path, final Path former) {
        try {
            return BoundedFile.text(Files.exists(former, LinkOption.NOFOLLOW_LINKS) ? former : path,
                StandardCharsets.UTF_8).trim();
        } catch (final IOException e) {
            return "unknown unknown";   // it has the lock all the same
        }
    }

    /** Null if another daemon has it. */
    private static InstanceLock take(final Path path, final Path former, final String content)
        throws IOException {
        final FileChannel channel = FileChannel.open(path, OPTIONS, PosixFilePermissions.asFileAttribute(
            PosixFilePermissions.fromString("rw-------")));
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
            if (FileAccess.isLockedForWriting(former)) {
                channel.close();
                return null;
            }
            Files.deleteIfExists(former);
            channel.truncate(0);
            channel.write(ByteBuffer.wrap(content.getBytes(StandardCharsets.UTF_8)));
        } catch (final IOException e) {
            channel.close();
            throw e;
        }
        return new InstanceLock(channel);
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

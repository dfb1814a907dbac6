/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/**
 * A small file that only this process's user can access. It is replaced as a whole, and read only if no other user can
 * have created it.
 * Not thread-safe.
 */
public final class PrivateFile {
    private static final int MODE = 0600;

    private final Path path;
    private final long bytesMax;

    /**
     * Names a file; nothing is opened.
     *
     * @param path     where it is
     * @param bytesMax longer files are not read
     */
    public PrivateFile(final Path path, final long bytesMax) {
        this.path = path;
        this.bytesMax = bytesMax;
    }

    /**
     * Replaces its content; readable and writable by its owner only, and on the disk when this returns.
     *
     * @param content the whole content
     * @throws IOException if that fails; the old content stays
     */
    public void write(final byte[] content) throws IOException {
        final Path next = path.resolveSibling(path.getFileName() + ".new");
        Files.deleteIfExists(next);
        try (FileChannel out = FileChannel.open(next, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW)) {
            FileAccess.chmod(next, MODE);
            final ByteBuffer bytes = ByteBuffer.wrap(content);
            while (bytes.hasRemaining()) {
                out.write(bytes);
            }
            out.force(true);
        }
        Files.move(next, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    /**
     * Reads it.
     *
     * @return its content; null if there is none
     * @throws IOException if it cannot be read, or is a link, too long, or of another user: one line with the reason
     */
    public byte[] read() throws IOException {
        if (!exists()) {
            return null;
        }
        if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS) || Files.size(path) > bytesMax
            || (Integer) Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS)
            != ProcessStatus.effectiveUid()) {
            throw new IOException(path + " is not a file of at most " + bytesMax + " bytes of this user; remove it");
        }
        return Files.readAllBytes(path);
    }

    /** Whether something of that name exists; true also for a dangling link. */
    public boolean exists() {
        return Files.exists(path, LinkOption.NOFOLLOW_LINKS);
    }

    /**
     * Removes it.
     *
     * @return false if there was none
     * @throws IOException if that fails
     */
    public boolean delete() throws IOException {
        return Files.deleteIfExists(path);
    }

    /** The path. */
    public Path path() {
        return path;
    }
}

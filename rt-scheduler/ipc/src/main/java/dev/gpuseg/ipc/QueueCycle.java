/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.FileAccess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.agrona.concurrent.UnsafeBuffer;

/** One cycle file, mapped. The housekeeping thread makes and closes it; in between the dispatcher thread reads it. */
final class QueueCycle implements AutoCloseable {
    private final int number;
    private final Path path;
    private final Path link;
    private final long bytes;
    private final MappedPage page;
    private final UnsafeBuffer buffer;
    private final FileChannel channel;
    private final LentFile lent;
    /** The daemon has decided to end this cycle; before that an end-of-data header is a forgery. W housekeeping. */
    private volatile boolean ending;
    /** The end-of-data header is written. Housekeeping thread. */
    private boolean ended;

    private QueueCycle(final int number, final Path path, final Path link, final long bytes, final MappedPage page,
        final FileChannel channel, final LentFile lent) {
        this.number = number;
        this.path = path;
        this.link = link;
        this.bytes = bytes;
        this.page = page;
        buffer = page.buffer();
        this.channel = channel;
        this.lent = lent;
    }

    /** Writes a complete cycle file that the client cannot reach yet, its space reserved. */
    static void write(final QueueTemplate template, final Path path) {
        try {
            Files.deleteIfExists(path); // left by an interrupted attempt
        } catch (final IOException e) {
            throw new UncheckedIOException(path + " cannot be deleted: " + e.getMessage(), e);
        }
        try (FileChannel out = FileChannel.open(path, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW)) {
            Descriptor.allocate(path, template.bytes()); // first, so that a full file system is refused here
            final ByteBuffer content = ByteBuffer.wrap(template.cycle());
            while (content.hasRemaining()) {
                out.write(content);
            }
        } catch (final IOException e) {
            throw new UncheckedIOException(path + " cannot be written: " + e.getMessage()
                + "; free space there, lower the queue size, or raise the limit of open files", e);
        }
    }

    /**
     * Opens a file that {@link #write} made, and only then makes it visible to the client.
     *
     * @param path in a directory of the daemon's
     * @param link where the client finds the same file
     * @param uid  the client's user
     */
    static QueueCycle open(final QueueTemplate template, final Path path, final Path link, final int number,
        final int uid) {
        FileChannel channel = null;
        MappedPage page = null;
        LentFile lent = null;
        try {
            channel = FileChannel.open(path, StandardOpenOption.READ);
            page = MappedPage.open(path, template.bytes(), true);
            lent = LentFile.open(path);
            FileAccess.chmod(path, 0600);
            FileAccess.chown(path, uid, -1);
            Files.deleteIfExists(link);
            Files.createLink(link, path);
            return new QueueCycle(number, path, link, template.bytes(), page, channel, lent);
        } catch (final IOException e) {
            abandon(channel, page, lent);
            throw new UncheckedIOException(path + " cannot be opened: " + e.getMessage(), e);
        } catch (final RuntimeException | InternalError e) {
            abandon(channel, page, lent);
            throw e;
        }
    }

    private static void abandon(final FileChannel channel, final MappedPage page, final LentFile lent) {
        if (lent != null) {
            lent.close();
        }
        if (page != null) {
            page.close();
        }
        if (channel != null) {
            closeChannel(channel);
        }
    }

    private static void closeChannel(final FileChannel channel) {
        try {
            channel.close();
        } catch (final IOException e) {
            throw new UncheckedIOException("cycle file cannot be closed: " + e.getMessage(), e);
        }
    }

    int number() {
        return number;
    }

    /** The header word at a position: acquire; pairs with the client's publishing store. */
    int header(final int position) {
        return buffer.getIntVolatile(position);
    }

    /** Copies the record at a position, whose header was read. */
    void copy(final int position, final UnsafeBuffer into) {
        into.putBytes(0, buffer, position + QueueFormat.HEADER_BYTES, Abi.Record.SIZE);
    }

    boolean publishEndOfData(final int position) {
        return buffer.compareAndSetInt(position, 0, QueueFormat.END_OF_DATA);
    }

    /** A descriptor of the file for the client, which the caller closes; -1 if the cycle is closed. Any thread. */
    int lend() {
        return lent.duplicate();
    }

    boolean isEnding() {
        return ending;
    }

    void setEnding() {
        ending = true;
    }

    boolean isEnded() {
        return ended;
    }

    void setEnded() {
        ended = true;
    }

    /** Whether the file still has its size; access to a truncated one faults. */
    boolean isIntact() {
        try {
            return channel.size() >= bytes;
        } catch (final IOException e) {
            return false;
        }
    }

    /** Closes everything that this process has open of the file, and deletes it. */
    @Override
    public void close() {
        page.close();
        lent.close();
        closeChannel(channel);
        try {
            Files.deleteIfExists(link);
            Files.deleteIfExists(path);
        } catch (final IOException e) {
            throw new UncheckedIOException(path + " cannot be deleted: " + e.getMessage(), e);
        }
    }
}

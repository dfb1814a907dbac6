/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.agrona.IoUtil;
import org.agrona.concurrent.UnsafeBuffer;

/** A mapped file of a few pages and its little-endian accessors. */
final class MappedPage implements AutoCloseable {
    private final MappedByteBuffer mapping;
    private final UnsafeBuffer buffer;

    private MappedPage(final MappedByteBuffer mapping) {
        this.mapping = mapping;
        buffer = new UnsafeBuffer(mapping);
    }

    static MappedPage create(final Path path, final long bytes) {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE,
            StandardOpenOption.CREATE)) {
            return new MappedPage(channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes));
        } catch (final IOException e) {
            throw new UncheckedIOException(path + " cannot be mapped: " + e.getMessage(), e);
        }
    }

    static MappedPage open(final Path path, final long bytes, final boolean writable) {
        final StandardOpenOption[] options = writable
            ? new StandardOpenOption[] {StandardOpenOption.READ, StandardOpenOption.WRITE}
            : new StandardOpenOption[] {StandardOpenOption.READ};
        try (FileChannel channel = FileChannel.open(path, options)) {
            if (channel.size() < bytes) {
                throw new IllegalStateException(path + " has " + channel.size() + " bytes, " + bytes
                    + " are needed; it is not complete or of another version");
            }
            return new MappedPage(channel.map(
                writable ? FileChannel.MapMode.READ_WRITE : FileChannel.MapMode.READ_ONLY, 0, bytes));
        } catch (final IOException e) {
            throw new UncheckedIOException(path + " cannot be mapped: " + e.getMessage(), e);
        }
    }

    UnsafeBuffer buffer() {
        return buffer;
    }

    @Override
    public void close() {
        IoUtil.unmap(mapping);
    }
}

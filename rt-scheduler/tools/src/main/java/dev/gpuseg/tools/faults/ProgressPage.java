/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import dev.gpuseg.ipc.Abi;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.agrona.IoUtil;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * What a demo task knows to be recorded ({@code gpuseg_progress} in {@code gpuseg_abi.h}), readable while it lives and
 * after its death. Any thread.
 */
public final class ProgressPage implements AutoCloseable {
    private final MappedByteBuffer mapping;
    private final UnsafeBuffer page;

    /**
     * Maps a page.
     *
     * @param file made by the task
     * @throws IllegalStateException if it is not complete yet
     */
    public ProgressPage(final Path file) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            if (channel.size() < Abi.Progress.SIZE) {
                throw new IllegalStateException(file + " is not complete yet; try again");
            }
            mapping = channel.map(FileChannel.MapMode.READ_ONLY, 0, Abi.Progress.SIZE);
        } catch (final IOException e) {
            throw new UncheckedIOException(file + " cannot be mapped: " + e.getMessage(), e);
        }
        page = new UnsafeBuffer(mapping);
    }

    /** Its process. */
    public int pid() {
        return page.getInt(Abi.Progress.PID_OFFSET);
    }

    /** What the task does: {@code Abi.PROGRESS_*}. */
    public int state() {
        return page.getIntVolatile(Abi.Progress.STATE_OFFSET);
    }

    /** Begins that were recorded and granted. */
    public long begins() {
        return page.getLongVolatile(Abi.Progress.BEGINS_OFFSET);
    }

    /** Begins that the daemon answered after the task had waited. */
    public long answered() {
        return page.getLongVolatile(Abi.Progress.ANSWERED_OFFSET);
    }

    /** Ends that were recorded. */
    public long ends() {
        return page.getLongVolatile(Abi.Progress.ENDS_OFFSET);
    }

    /** Jobs completed, scheduled or not. */
    public long jobs() {
        return page.getLongVolatile(Abi.Progress.JOBS_OFFSET);
    }

    /** Whether its last mark reached a daemon: false while it runs unscheduled. */
    public boolean isManaged() {
        return page.getIntVolatile(Abi.Progress.MANAGED_OFFSET) != 0;
    }

    @Override
    public void close() {
        IoUtil.unmap(mapping);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Ends the use of duplicated descriptors, and closes them where nothing waits for it. Who uses one holds the lock; it
 * is marked under the lock and closed after that. RM frees all that a dead process had when its last descriptor is
 * closed, in the thread that closes it, which takes many ms: neither the enforcer nor the thread that follows processes
 * may be that thread.
 *
 * <p>Thread-safe.
 */
final class ControlCloser {
    private static final int CLOSE_MS = 1_000;

    private final Object lock;
    private final RmControl rm;
    private final Consumer<String> errors;
    /** Null: the caller closes. */
    private final ExecutorService thread;

    private ControlCloser(final Object lock, final RmControl rm, final Consumer<String> errors,
        final ExecutorService thread) {
        this.lock = lock;
        this.rm = rm;
        this.errors = errors;
        this.thread = thread;
    }

    /**
     * With a thread of its own, which starts now.
     *
     * @param gpu    a part of the thread's name
     * @param lock   of those who use descriptors
     * @param errors receives a line where RM refuses to enable what a dead process had
     */
    static ControlCloser ofThread(final int gpu, final Object lock, final Consumer<String> errors) {
        final ExecutorService thread = Executors.newSingleThreadExecutor(work -> {
            final Thread t = new Thread(work, "gpuseg-nvidia-close-" + gpu);
            t.setDaemon(true);
            return t;
        });
        thread.execute(() -> { });   // it exists from now on, so that its priority can be set
        return new ControlCloser(lock, new RmControl(), errors, thread);
    }

    /** For one who uses the descriptors alone: closes them at once. */
    static ControlCloser inPlace() {
        return new ControlCloser(new Object(), null, error -> { }, null);
    }

    /**
     * Ends the use of descriptors of a process that lives, or of which nothing is disabled.
     *
     * @param files  to be closed
     * @param forget makes others find them no more; under the lock
     */
    void retire(final List<ControlFile> files, final Runnable forget) {
        retire(files, forget, null);
    }

    /**
     * The same for a dead process. Its channels exist until the last descriptor is closed. They are enabled before, so
     * that the driver destroys them in the state of any process that was killed.
     *
     * @param had what may be disabled of it; null = nothing
     */
    void retire(final List<ControlFile> files, final Runnable forget, final RmContext had) {
        synchronized (lock) {
            forget.run();
            files.forEach(ControlFile::retire);
        }
        if (thread == null) {
            close(files, null);
        } else {
            final List<ControlFile> all = List.copyOf(files);
            thread.execute(() -> close(all, had));
        }
    }

    private void close(final List<ControlFile> files, final RmContext had) {
        if (had != null) {
            enable(had);
        }
        files.forEach(ControlFile::close);
    }

    private void enable(final RmContext had) {
        for (int k = 0; k < had.channelCount();) {
            rm.clear();
            while (k < had.channelCount() && rm.size() < RmControl.BATCH_MAX) {
                rm.add(had.channelClient(k), had.channel(k));
                k++;
            }
            final int status = rm.switchChannels(had.file().fd(), had.client(), had.subdevice(), false);
            if (status != RmStatus.OK) {
                enableOneByOne(had, status);
                return;
            }
        }
    }

    /** RM stops a list at the first channel that does not exist. */
    private void enableOneByOne(final RmContext had, final int refused) {
        int status = refused == RmStatus.INVALID_CHANNEL ? RmStatus.OK : refused;
        for (int k = 0; k < had.channelCount(); k++) {
            rm.clear();
            rm.add(had.channelClient(k), had.channel(k));
            final int one = rm.switchChannels(had.file().fd(), had.client(), had.subdevice(), false);
            status = status == RmStatus.OK && one != RmStatus.INVALID_CHANNEL ? one : status;
        }
        if (status != RmStatus.OK) {
            errors.accept("channels of a dead process could not be enabled: " + RmStatus.name(status));
        }
    }

    /** Closes what is retired, for at most {@value #CLOSE_MS} ms. Nothing may be retired after that. */
    void stop() {
        if (thread == null) {
            return;
        }
        thread.shutdown();
        try {
            thread.awaitTermination(CLOSE_MS, TimeUnit.MILLISECONDS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Counts on several threads of this process. */
public final class ThreadCounter implements SetCounter {
    private static final int CHUNK = 25;

    private final ExecutorService pool;

    /**
     * Starts threads.
     *
     * @param threads at least 1
     */
    public ThreadCounter(final int threads) {
        pool = Executors.newFixedThreadPool(threads, task -> {
            final Thread thread = new Thread(task, "sweep");
            thread.setDaemon(true);
            return thread;
        });
    }

    @Override
    public Tally count(final SetWork work, final long from, final long to, final Progress progress)
        throws InterruptedException {
        final CompletionService<Tally> done = new ExecutorCompletionService<>(pool);
        final List<Future<Tally>> chunks = new ArrayList<>();
        for (long first = from; first < to; first += CHUNK) {
            final long begin = first;
            final long end = Math.min(to, first + CHUNK);
            chunks.add(done.submit(() -> {
                final Tally tally = work.tally(begin, end);
                progress.add(end - begin);
                return tally;
            }));
        }
        final List<Tally> tallies = new ArrayList<>();
        try {
            for (int i = 0; i < chunks.size(); i++) {
                done.take().get();   // the first that fails ends the wait
            }
            for (final Future<Tally> chunk : chunks) {
                tallies.add(chunk.get());
            }
        } catch (final ExecutionException e) {
            pool.shutdownNow();
            throw new IllegalStateException("a set could not be judged: " + e.getCause().getMessage(), e.getCause());
        }
        return Tally.merge(work.columns(), tallies);
    }

    @Override
    public void close() {
        pool.shutdownNow();
    }
}

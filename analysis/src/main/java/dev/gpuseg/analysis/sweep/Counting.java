/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/** Sums counts over many sets on several threads. The sums do not depend on the number of threads. */
final class Counting implements AutoCloseable {
    /** Columns of this prefix are combined by their maximum, not summed. */
    static final String MAX = "max ";
    private static final int CHUNK = 25;

    /** Judges sets one after the other. There is one judge per chunk, so it need not be thread-safe. */
    interface Judge {
        /**
         * Adds the results of set k to the counts.
         *
         * @param k      number of the set
         * @param counts one for each column
         */
        void judge(long k, long[] counts);
    }

    private final ExecutorService pool;

    Counting(final int threads) {
        pool = Executors.newFixedThreadPool(threads, task -> {
            final Thread thread = new Thread(task, "sweep");
            thread.setDaemon(true);
            return thread;
        });
    }

    /** Judges sets from..to-1. */
    Map<String, Long> count(final List<String> columns, final long from, final long to, final Supplier<Judge> judges,
        final Progress progress) throws InterruptedException {
        final CompletionService<long[]> chunks = new ExecutorCompletionService<>(pool);
        int pending = 0;
        for (long first = from; first < to; first += CHUNK) {
            final long begin = first;
            final long end = Math.min(to, first + CHUNK);
            chunks.submit(() -> {
                final long[] counts = new long[columns.size()];
                final Judge judge = judges.get();
                for (long k = begin; k < end; k++) {
                    judge.judge(k, counts);
                }
                progress.add(end - begin);
                return counts;
            });
            pending++;
        }
        final long[] sum = new long[columns.size()];
        for (; pending > 0; pending--) {
            final long[] counts;
            try {
                counts = chunks.take().get();
            } catch (final ExecutionException e) {
                pool.shutdownNow();
                throw new IllegalStateException("a set could not be judged: " + e.getCause().getMessage(),
                    e.getCause());
            }
            for (int i = 0; i < sum.length; i++) {
                sum[i] = columns.get(i).startsWith(MAX) ? Math.max(sum[i], counts[i]) : sum[i] + counts[i];
            }
        }
        final Map<String, Long> result = new LinkedHashMap<>();
        for (int i = 0; i < sum.length; i++) {
            result.put(columns.get(i), sum[i]);
        }
        return result;
    }

    @Override
    public void close() {
        pool.shutdownNow();
    }
}

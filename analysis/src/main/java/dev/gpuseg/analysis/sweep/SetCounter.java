/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

/** Counts the results of many sets: with the threads of this process, or with an engine that has many machines. */
public interface SetCounter extends AutoCloseable {
    /** Sets that are counted and stored at once where a sweep has no points. */
    int STEP = 1_000;

    /**
     * Judges sets from..to-1.
     *
     * @param work     what to do with each set
     * @param from     first set
     * @param to       one after the last set
     * @param progress receives the number of sets done
     * @return the tally of all, whatever the number of threads, machines and parts
     * @throws InterruptedException  if the thread is interrupted
     * @throws IllegalStateException if a set cannot be judged
     */
    Tally count(SetWork work, long from, long to, Progress progress) throws InterruptedException;

    /** How many sets are worth a call; at least 1. */
    default int step() {
        return STEP;
    }

    @Override
    void close();
}

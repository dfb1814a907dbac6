/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

/** Told how a {@link DemoRun} proceeds, by its thread. */
public interface DemoProgress {
    /** For a run that nobody watches. */
    DemoProgress SILENT = new DemoProgress() {
        @Override
        public boolean isWatched() {
            return false;
        }

        @Override
        public void step(final String text) {
            return;   // nobody watches
        }

        @Override
        public void phase(final Phase phase) {
            return;   // nobody watches
        }
    };

    /**
     * Where a phase is.
     *
     * @param number     1 or 2
     * @param policy     of the daemon
     * @param elapsedNs  since its begin, not negative
     * @param durationNs how long jobs are released
     * @param jobs       of tasks with deadlines, completed
     * @param misses     of these, late
     */
    record Phase(int number, String policy, long elapsedNs, long durationNs, long jobs, long misses) {
    }

    /** Whether the daemon is to be asked for jobs and misses, some times a second. */
    boolean isWatched();

    /** Something that takes its time begins. */
    void step(String text);

    /** Some times a second. */
    void phase(Phase phase);
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/** Is told every measured duration of one task, on the journal's thread. Must not block. Durations in ns, from 0. */
interface TaskObserver {
    /** Ignores everything. */
    TaskObserver NONE = new TaskObserver() {
        @Override
        public void waited(final long ns) {
            // ignored
        }

        @Override
        public void segmentEnded(final long ns) {
            // ignored
        }

        @Override
        public void jobEnded(final long ns) {
            // ignored
        }

        @Override
        public void forgotten() {
            // nothing to free
        }
    };

    /** The time from a begin to its grant; 0 for an optimistic one. */
    void waited(long ns);

    /** The time from the begin of a segment to its end. */
    void segmentEnded(long ns);

    /** The time from the release of a job to its end. */
    void jobEnded(long ns);

    /** The task was closed some time ago, or had to make room: nothing more will come. */
    void forgotten();
}

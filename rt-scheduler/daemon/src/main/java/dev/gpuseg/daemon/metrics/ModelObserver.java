/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/** Is told every duration that the {@link LiveModel} measures, on the journal's thread. Must not block. */
interface ModelObserver {
    /** Ignores everything. */
    ModelObserver NONE = new ModelObserver() {
        @Override
        public TaskObserver task(final String name, final int pid, final int gpu) {
            return TaskObserver.NONE;
        }

        @Override
        public void enforced(final int gpu, final long ns) {
            // ignored
        }

        @Override
        public void contextSwitched(final int gpu, final boolean off, final long ns) {
            // ignored
        }

        @Override
        public void stalled(final long ns) {
            // ignored
        }
    };

    /** A task is seen for the first time. */
    TaskObserver task(String name, int pid, int gpu);

    /** The time from the decision for a real-time segment until every context that it preempts was disabled. */
    void enforced(int gpu, long ns);

    /** One operation of the mechanism on one context took so long. */
    void contextSwitched(int gpu, boolean off, long ns);

    /** A duty cycle of the dispatcher took so long. */
    void stalled(long ns);
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import java.util.Locale;

/** What a task's segment does, as seen in the journal. */
public enum TaskState {
    /** No segment is begun. */
    IDLE,
    /** Begun, not granted yet. */
    WAITING,
    /** Granted: it may use the GPU. */
    RUNNING,
    /** Preempted: its context is disabled. */
    PREEMPTED,
    /** The task was closed. */
    CLOSED;

    private final String label = name().toLowerCase(Locale.ROOT);

    /** The name that is shown, in lower case. */
    public String label() {
        return label;
    }
}

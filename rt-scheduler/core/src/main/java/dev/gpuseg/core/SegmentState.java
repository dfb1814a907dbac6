/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** The state of a task's segment; the values are those of {@code enum gpuseg_segment_state} in gpuseg_abi.h. */
public final class SegmentState {
    /** No segment is begun. */
    public static final int IDLE = 0;
    /** Begun, not granted yet. */
    public static final int WAITING = 1;
    /** Granted, and its context may use the GPU. */
    public static final int RUNNING = 2;
    /** Granted, and preempted by a better segment. */
    public static final int PREEMPTED = 3;

    private static final String[] NAMES = {"idle", "waiting", "running", "preempted"};

    private SegmentState() {
    }

    /**
     * The name of a state.
     *
     * @param state one of the constants of this class
     * @return a constant name such as {@code waiting}
     * @throws ArrayIndexOutOfBoundsException if it is none of them
     */
    public static String name(final int state) {
        return NAMES[state];
    }
}

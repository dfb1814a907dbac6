/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * What follows when a segment uses up its budget, beside the report. Where nothing can be preempted (the
 * gate), all but {@link #NOTIFY} end the segment, so that the next one is let in.
 */
public enum OverrunAction {
    /** Nothing: the segment keeps its rank. */
    NOTIFY("notify"),
    /** The segment is best effort until it ends. */
    DEMOTE("demote"),
    /** The segment's context is disabled until the segment ends; other contexts continue. */
    SUSPEND("suspend"),
    /** As {@link #DEMOTE}, and the next begin of the task is refused (or best effort, if it did not wait). */
    SKIP_NEXT("skip-next");

    private final String label;

    OverrunAction(final String label) {
        this.label = label;
    }

    /** The name in files and on the command line; notify, demote, suspend or skip-next. */
    public String label() {
        return label;
    }

    /**
     * The action of a name.
     *
     * @param label as {@link #label}
     * @return the action
     * @throws IllegalArgumentException if there is none of that name
     */
    public static OverrunAction named(final String label) {
        for (final OverrunAction action : values()) {
            if (action.label.equals(label)) {
                return action;
            }
        }
        throw new IllegalArgumentException("overrun action \"" + label
            + "\" is unknown; use notify, demote, suspend or skip-next");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** How a task's segments get the GPU from work of lower rank. */
public enum Strategy {
    /** Work of lower rank is taken off the hardware, from begin to end. This and the last one have bounds. */
    INTERRUPT("interrupt"),
    /**
     * Work without begun segments stays on the hardware; the task's context has a long time slice, which the device
     * keeps by itself. Costs nothing at begin and end, but a segment may wait for the slices of the others. Among begun
     * segments ranks count as always.
     */
    SLICE("slice"),
    /** Both: taken off, and until that is done the long time slice. */
    INTERRUPT_SLICE("interrupt+slice");

    private final String label;

    Strategy(final String label) {
        this.label = label;
    }

    /**
     * As written in settings and shown to users.
     *
     * @return for instance "interrupt+slice"
     */
    public String label() {
        return label;
    }

    /**
     * Whether work without begun segments is taken off the hardware.
     *
     * @return false for {@link #SLICE} only
     */
    public boolean interrupts() {
        return this != SLICE;
    }

    /**
     * Whether the task's context has a long time slice while the task is open.
     *
     * @return false for {@link #INTERRUPT} only
     */
    public boolean hasLongSlice() {
        return this != INTERRUPT;
    }

    /**
     * The strategy of a name.
     *
     * @param label as {@link #label()}
     * @return the strategy
     * @throws IllegalArgumentException if there is none of that name
     */
    public static Strategy named(final String label) {
        for (final Strategy s : values()) {
            if (s.label.equals(label)) {
                return s;
            }
        }
        throw new IllegalArgumentException("strategy \"" + label
            + "\" is unknown; use interrupt, slice or interrupt+slice");
    }
}

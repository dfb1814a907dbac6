/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

/**
 * What a mechanism can do and what it costs. Costs are nanoseconds, measured or stated by the device; 0 = none, or
 * unknown.
 *
 * @param level              0 observe, 1 gate (begins wait), 2 deactivate (no new work starts), 3 interrupt (running
 *                           kernels are preempted)
 * @param disableNs          cost of one disable call
 * @param disablePerContextNs cost added by each context of that call
 * @param enableNs           cost of one enable call
 * @param enablePerContextNs cost added by each context of that call
 * @param batchMax           contexts one call can carry, at least 1
 * @param timeslice          whether {@link Mechanism#setTimeslice} works
 * @param granularity        what one operation acts on, for reports: "process", "TSG", "queue"
 * @param holdsLaunches      whether a disable holds the launches of programs under {@code gpuseg exec}
 */
public record Capabilities(int level, long disableNs, long disablePerContextNs, long enableNs, long enablePerContextNs,
    int batchMax, boolean timeslice, String granularity, boolean holdsLaunches) {

    /** Decisions are recorded; nothing waits. */
    public static final int OBSERVE = 0;
    /** Begins wait; work that was launched continues. */
    public static final int GATE = 1;
    /** No new work of a disabled context starts. */
    public static final int DEACTIVATE = 2;
    /** Running kernels of a disabled context are preempted. */
    public static final int INTERRUPT = 3;

    /** Checks the ranges. */
    public Capabilities {
        if (level < OBSERVE || level > INTERRUPT || batchMax < 1) {
            throw new IllegalArgumentException("capabilities: level " + level + ", batch " + batchMax
                + "; level is 0..3 and a batch holds at least one context");
        }
    }

    /**
     * Of a mechanism that holds no launches.
     *
     * @param level               as above
     * @param disableNs           as above
     * @param disablePerContextNs as above
     * @param enableNs            as above
     * @param enablePerContextNs  as above
     * @param batchMax            as above
     * @param timeslice           as above
     * @param granularity         as above
     */
    public Capabilities(final int level, final long disableNs, final long disablePerContextNs, final long enableNs,
        final long enablePerContextNs, final int batchMax, final boolean timeslice, final String granularity) {
        this(level, disableNs, disablePerContextNs, enableNs, enablePerContextNs, batchMax, timeslice, granularity,
            false);
    }

    /** A copy whose launches are held besides. */
    public Capabilities withHeldLaunches() {
        return new Capabilities(level, disableNs, disablePerContextNs, enableNs, enablePerContextNs, batchMax,
            timeslice, granularity, true);
    }

    /**
     * Whether a granted segment can be preempted: by the device, or by holding its next launches.
     *
     * @return true for levels 2 and 3, and where launches are held
     */
    public boolean preemptive() {
        return level >= DEACTIVATE || holdsLaunches;
    }

    /**
     * Whether what a disabled context has queued runs on, while its next launches are held: it is off the GPU only once
     * that is done.
     *
     * @return true for mechanisms that can hold launches and nothing else
     */
    public boolean drains() {
        return level < DEACTIVATE && holdsLaunches;
    }

    /** The level in words; "observe", "gate", "deactivate" or "interrupt". */
    public String levelName() {
        return switch (level) {
            case OBSERVE -> "observe";
            case GATE -> "gate";
            case DEACTIVATE -> "deactivate";
            default -> "interrupt";
        };
    }
}

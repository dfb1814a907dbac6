/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

/** What the dispatcher, or an enforcer, does without work. */
public enum IdleMode {
    /** Polls on: lowest latency, one core always busy. */
    SPIN(Long.MAX_VALUE),
    /** Polls for 200 us after the last work, then sleeps until it is woken. */
    HYBRID(200_000),
    /** Sleeps at once. */
    SLEEP(0);

    /** The fewest processors on which an enforcer polls. */
    static final int CORES_TO_POLL = 4;

    private final long spinNs;

    IdleMode(final long spinNs) {
        this.spinNs = spinNs;
    }

    /**
     * How long it polls after the last work.
     *
     * @return ns
     */
    public long spinNs() {
        return spinNs;
    }

    /**
     * What the dispatcher does where this process may use so many processors. On the only one, polling keeps away the
     * clients whose records it waits for.
     *
     * @param cores processors that this process may use
     * @return {@link #SLEEP} in place of {@link #HYBRID} on one processor, else this mode
     */
    public IdleMode ofDispatcher(final int cores) {
        return this == HYBRID && cores < 2 ? SLEEP : this;
    }

    /**
     * What enforcers do beside a dispatcher of this mode. A thread that polls needs a core of its own: with fewer than
     * {@value #CORES_TO_POLL} an enforcer takes the dispatcher's, or the application's, and so sleeps.
     *
     * @param cores processors that this process may use
     * @return this mode, or {@link #SLEEP}
     */
    public IdleMode ofEnforcers(final int cores) {
        return cores < CORES_TO_POLL ? SLEEP : this;
    }

    /**
     * The mode of a name.
     *
     * @param name spin, hybrid or sleep
     * @return the mode
     * @throws IllegalArgumentException if there is no such mode
     */
    public static IdleMode named(final String name) {
        for (final IdleMode mode : values()) {
            if (mode.name().toLowerCase(java.util.Locale.ROOT).equals(name)) {
                return mode;
            }
        }
        throw new IllegalArgumentException("idle mode \"" + name + "\" is unknown; use spin, hybrid or sleep");
    }
}

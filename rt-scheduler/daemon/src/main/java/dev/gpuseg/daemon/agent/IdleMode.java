/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

/** What the dispatcher does when nothing waits for it. */
public enum IdleMode {
    /** Polls on: lowest latency, one core always busy. */
    SPIN(Long.MAX_VALUE),
    /** Polls for 200 us after the last work, then sleeps until a doorbell rings. */
    HYBRID(200_000),
    /** Sleeps at once. */
    SLEEP(0);

    private final long spinNs;

    IdleMode(final long spinNs) {
        this.spinNs = spinNs;
    }

    /**
     * How long it polls after the last work.
     *
     * @return ns
     */
    long spinNs() {
        return spinNs;
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

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Objects;

/**
 * A schedulability analysis whose bounds hold for a policy, and under which conditions. The analysis itself is known by
 * name only: the core does not depend on it.
 *
 * @param name      as {@code gpuseg analyze --analysis} writes it
 * @param level     what the mechanism must be able to do
 * @param cores     how the kernel orders the threads of a core
 * @param waiting   what a thread does while the GPU works for it
 * @param boosted   whether it holds for tasks whose threads run at a CPU ceiling inside their windows
 */
public record PolicyAnalysis(String name, Level level, Cores cores, Waiting waiting, boolean boosted) {
    /** What a mechanism can do. */
    public enum Level {
        /** It holds begins back (level 1). */
        GATE,
        /** It switches running work out (level 3). */
        INTERRUPT
    }

    /** How the kernel orders the threads of a core. */
    public enum Cores {
        /** By fixed priority. */
        PRIORITY,
        /** By deadline. */
        DEADLINE
    }

    /** What a thread does while the GPU works for it. */
    public enum Waiting {
        /** It sleeps. */
        SUSPEND,
        /** It spins. */
        BUSY
    }

    /** Checks that everything is given. */
    public PolicyAnalysis {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(level, "level");
        Objects.requireNonNull(cores, "cores");
        Objects.requireNonNull(waiting, "waiting");
    }
}

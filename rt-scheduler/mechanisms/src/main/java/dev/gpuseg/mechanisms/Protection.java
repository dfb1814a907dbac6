/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import java.util.Set;

/**
 * What a mechanism that finds processes by itself leaves alone.
 *
 * @param names      file names of programs (the first 15 bytes count) that belong to root or to the daemon's user,
 *                   besides display servers and the
 *                   driver's own services, which always are protected
 * @param allEngines whether copies are switched too, not only compute and graphics
 */
public record Protection(Set<String> names, boolean allEngines) {
    /** The built-in names alone, compute and graphics. */
    public static final Protection DEFAULTS = new Protection(Set.of(), false);

    /** Copies the names. */
    public Protection {
        names = Set.copyOf(names);
    }
}

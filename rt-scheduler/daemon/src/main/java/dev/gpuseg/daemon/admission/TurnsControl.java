/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import java.util.Map;

/** The part of the daemon that is told whether begins are proven by turns or by calls. Any thread but its own. */
public interface TurnsControl {
    /**
     * From now on best effort takes turns, or it does not: before any task that is opened later.
     *
     * @param taken    whether turns are taken
     * @param slicesNs time slices of the contexts of real-time tasks by their names, ns; of others, and if it is empty
     *                 of all, they go by rank
     * @param proof    by what is open is proven, one line
     */
    void take(boolean taken, Map<String, Long> slicesNs, String proof);

    /**
     * Waits until the device follows what was decided before: slices are set, and who does not have the turn rests.
     *
     * @return whether that came about, in the time that an administrator would wait
     */
    boolean isInForce();
}

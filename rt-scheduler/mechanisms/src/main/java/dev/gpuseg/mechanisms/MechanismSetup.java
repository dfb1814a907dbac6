/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.observer.Observer;

/**
 * What a mechanism is opened with.
 *
 * @param directory  the daemon's runtime directory
 * @param gpu        index of the GPU, from 0
 * @param protection processes that must not be touched
 * @param observer   sees processes begin and work; closed by the caller, after the mechanism
 * @param drains     where launches are held: whether a context counts as disabled only when it has nothing in flight
 */
public record MechanismSetup(RuntimeDirectory directory, int gpu, Protection protection, Observer observer,
    boolean drains) {
    /**
     * Without an observer: processes are scanned.
     *
     * @param directory  as above
     * @param gpu        as above
     * @param protection as above
     */
    public MechanismSetup(final RuntimeDirectory directory, final int gpu, final Protection protection) {
        this(directory, gpu, protection, Observer.none("not asked for"), false);
    }
}

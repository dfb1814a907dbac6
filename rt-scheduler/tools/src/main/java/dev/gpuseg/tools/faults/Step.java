/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

/** The moment at which a fault strikes; a drawn delay follows it. */
public enum Step {
    /** Whenever it comes. */
    ANY,
    /** The victim is outside a segment. */
    RESTING,
    /** The victim waits for its grant. */
    WAITING,
    /** The victim holds the GPU and works on the CPU. */
    HOLDING,
    /** The victim holds the GPU and its kernel runs. */
    KERNEL,
    /** Some context is disabled. */
    HELD,
    /** The daemon's successor is starting: it is hit as well. */
    STARTING,
    /** A client is registering. */
    REGISTERING
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** How unequal weights of best-effort contexts become unequal shares of a GPU. */
public enum Sharing {
    /** One group at a time has the GPU, in the order of virtual time. Works on everything that is preemptive. */
    TURNS,
    /** All groups have the turn; the device's round robin gives each context a timeslice proportional to its weight. */
    TIMESLICES
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

/** Which channels of a process are switched. */
public enum Scope {
    /** Channels of compute and graphics (engine GR0). Copies go on: they hardly disturb a kernel. */
    COMPUTE,
    /** All channels, those of the copy engines too. */
    ALL
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

/** Which channels of a process are disabled and enabled. */
public enum Scope {
    /** Channels of compute and graphics (engine GR0). Copies continue: they hardly disturb a kernel. */
    COMPUTE,
    /** All channels, also those of the copy engines. */
    ALL
}

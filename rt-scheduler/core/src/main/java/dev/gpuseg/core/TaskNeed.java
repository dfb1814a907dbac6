/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** What a policy looks at, so that real-time tasks must declare it. */
public enum TaskNeed {
    /** A priority of 1..99. */
    PRIORITY,
    /** A relative deadline. */
    DEADLINE,
    /** A longest time that a segment holds the GPU. */
    BUDGET,
    /** A time partition. */
    PARTITION
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** How contexts of processes that never registered are treated. */
public enum Unmanaged {
    /** They count as best effort: off the hardware while a real-time segment holds the GPU. */
    BEST_EFFORT,
    /** They are never disabled. */
    ALLOW
}

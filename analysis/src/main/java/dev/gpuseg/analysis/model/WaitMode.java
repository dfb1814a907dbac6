/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.Locale;

/** What a thread does while the GPU works for it. */
public enum WaitMode {
    /** The thread sleeps; its core is free for others. */
    SUSPEND,
    /** The thread spins at its own priority; its core is taken. */
    BUSY;

    /** The word used in files and in the names of analyses; {@code suspend} or {@code busy}. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
